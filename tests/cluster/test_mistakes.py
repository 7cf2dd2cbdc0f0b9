"""Every mistake of the table on a real API server, beside a running operator and CronJob.

And objects with these mistakes that were stored before the CRD refused them. Both need a cluster
with the operator; it starts once.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import BATCH, GROUP, MERGE, RefusedError, World, eventually
from tests.mistakes import GOOD, MISTAKES, CronJob, Mistake, Where, refused_since_lately

from evenkeel.resource.crd import crd

Json = dict[str, Any]
STRICT = "fieldValidation=Strict"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/scheduledjobs.evenkeel.dev"
JSON_PATCH = "application/json-patch+json"
ADDED_BY_THE_API_SERVER = "some validation rules were not checked"
LOOSE = (
    *("x-kubernetes-validations", "required", "enum", "pattern", "format"),
    *("minLength", "minItems", "minimum", "maximum"),
)


def post(world: World, path: str, manifest: Json, *, dry: bool = False) -> str:
    """What the API server refuses it with; nothing if it takes it."""
    query = f"{STRICT}&dryRun=All" if dry else STRICT
    try:
        world.call("POST", f"{path}?{query}", manifest)
    except RefusedError as refused:
        return str(refused)
    return ""


def named(manifest: Json, name: str) -> Json:
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}}


def by_number(mistakes: list[Mistake]) -> dict[str, Mistake]:
    return {f"mistake-{number}": mistake for number, mistake in enumerate(mistakes)}


@pytest.fixture(scope="module")
def ns(world: World) -> Iterator[str]:
    yield world.namespace("mistakes")
    world.leave()


# --- objects of before: they must be there before the operator ---------------------------------


def loose(schema: Json) -> Json:
    """The same schema without what may refuse a value of the right type."""
    kept: Json = {}
    for key, part in schema.items():
        if key == "properties":
            kept[key] = {name: loose(each) for name, each in part.items()}
        elif key in ("items", "additionalProperties"):
            kept[key] = loose(part)
        elif key not in LOOSE:
            kept[key] = part
    return kept


def install(world: World, manifest: Json, *, refuses: bool) -> None:
    """Put the CRD in place of the present one, and wait until the API server goes by it."""
    present = world.get(CRD_PATH)
    world.call("PUT", CRD_PATH, {**present, "spec": manifest["spec"]})
    bad = named(MISTAKES[0].manifest(), "probe")
    path = f"{GROUP}/namespaces/default/scheduledjobs"
    eventually(lambda: bool(post(world, path, bad, dry=True)) is refuses, "the new CRD applies")


@pytest.fixture(scope="module")
def old(world: World, ns: str) -> dict[str, Mistake]:
    """Stored by a CRD that refuses nothing; then ours takes its place."""
    found = by_number(refused_since_lately())
    ours, other = crd(), crd()
    fields = other["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    fields["spec"] = loose(fields["spec"])
    path = f"{GROUP}/namespaces/{ns}/scheduledjobs"
    try:
        install(world, other, refuses=False)
        for name, mistake in found.items():
            assert post(world, path, named(mistake.manifest(), name)) == "", mistake.name
    finally:
        install(world, ours, refuses=True)
    return found


@pytest.fixture(scope="module")
def running(world: World, old: dict[str, Mistake]) -> Iterator[OperatorProcess]:
    with (
        tempfile.TemporaryDirectory() as directory,
        operator(world.cluster.kubeconfig, directory=Path(directory)) as found,
    ):
        yield found


def all_of(
    world: World, ns: str, names: dict[str, Mistake], holds: Callable[[Json], bool], what: str
) -> None:
    """Wait until each of these objects is as it should be."""
    path = f"{GROUP}/namespaces/{ns}/scheduledjobs"

    def look() -> bool:
        there = {each["metadata"]["name"]: each for each in world.items(path)}
        wrong = [mistake.name for name, mistake in names.items() if not holds(there[name])]
        assert not wrong, wrong
        return True

    eventually(look, what)


def observed(generation: int) -> Callable[[Json], bool]:
    return lambda each: (each.get("status") or {}).get("observedGeneration") == generation


@pytest.mark.usefixtures("running")
def test_objects_of_before_go_on(world: World, ns: str, old: dict[str, Mistake]) -> None:
    """Status, labels, an edit beside the mistake, the mistake mended, deletion: in this order."""
    path = f"{GROUP}/namespaces/{ns}/scheduledjobs"

    def patch(body: object, kind: str = MERGE) -> list[str]:
        wrong = []
        for name, mistake in old.items():
            try:
                world.call("PATCH", f"{path}/{name}", body, kind)
            except RefusedError as refused:
                wrong.append(f"{mistake.name}: {refused}")
        return wrong

    all_of(world, ns, old, observed(1), "the operator stores each status")
    assert not patch({"metadata": {"labels": {"team": "shop"}}})
    assert not patch({"spec": {"suspend": True}})
    all_of(world, ns, old, observed(2), "the operator stores each status after an edit")
    mended = {**GOOD["spec"], "suspend": True}
    assert not patch([{"op": "replace", "path": "/spec", "value": mended}], JSON_PATCH)
    all_of(
        world,
        ns,
        old,
        lambda each: each["status"]["state"] == "Suspended",
        "each schedule is accepted once it is mended",
    )
    for name in old:
        world.delete(ns, name)


# --- the table ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refusals(world: World) -> dict[str, str]:
    path = f"{GROUP}/namespaces/default/scheduledjobs"
    return {each.name: post(world, path, each.manifest(), dry=True) for each in MISTAKES}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name.replace(" ", "_"))
def test_apply_refuses_a_mistake_or_takes_it(refusals: dict[str, str], mistake: Mistake) -> None:
    refused = refusals[mistake.name]
    assert bool(refused) == (mistake.where is Where.APPLY), refused
    if refused:
        assert mistake.says in refused


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.name.replace(" ", "_"))
def test_cronjob_refuses_a_mistake_or_takes_it(world: World, mistake: Mistake) -> None:
    if mistake.cronjob is CronJob.HAS_NO_SUCH_FIELD:
        return
    refused = post(world, f"{BATCH}/namespaces/default/cronjobs", mistake.as_cronjob(), dry=True)
    assert bool(refused) == (mistake.cronjob is CronJob.REFUSES), refused


def test_a_refusal_is_one_sentence(refusals: dict[str, str]) -> None:
    """Causes are joined by commas and stand in brackets where there are several."""
    several = [text for text in refusals.values() if ": [" in text]
    assert not [text for text in several if text.count(ADDED_BY_THE_API_SERVER) != 1]
    assert not [text for text in several if len(fields(text)) > 2]


def fields(refusal: str) -> list[str]:
    """The fields of its causes, each followed by the kind of its mistake."""
    kinds = ("Invalid value", "Required value", "Unsupported value", "Too long", "Too many")
    return [kind for kind in kinds for _ in range(refusal.count(f": {kind}: "))] or [refusal]


@pytest.mark.usefixtures("running")
def test_what_apply_takes_is_told_by_a_condition(world: World, ns: str) -> None:
    taken = [each for each in MISTAKES if each.where in (Where.CONDITION, Where.HINT)]
    found = {f"taken-{number}": mistake for number, mistake in enumerate(taken)}
    path = f"{GROUP}/namespaces/{ns}/scheduledjobs"
    for name, mistake in found.items():
        assert post(world, path, named(mistake.manifest(), name)) == ""

    def told(each: Json) -> bool:
        mistake = found[each["metadata"]["name"]]
        conditions = {one["type"]: one for one in (each.get("status") or {}).get("conditions", ())}
        accepted = [conditions.get(kind) for kind in ("ScheduleAccepted", "TemplateAccepted")]
        wanted = "True" if mistake.where is Where.HINT else "False"
        return any(
            one is not None and one["status"] == wanted and mistake.says in one["message"]
            for one in accepted
        ) and (mistake.where is Where.HINT or conditions["Ready"]["status"] == "False")

    all_of(world, ns, found, told, "a condition says the sentence")
    for name in found:
        world.delete(ns, name)


def test_nothing_that_cronjob_refuses_is_accepted() -> None:
    accepted = {
        each.name
        for each in MISTAKES
        if each.cronjob is CronJob.REFUSES and each.where in (Where.RUN, Where.HINT)
    }
    misspelt = {each.name for each in MISTAKES if each.says == "unknown field"}
    assert accepted <= misspelt
