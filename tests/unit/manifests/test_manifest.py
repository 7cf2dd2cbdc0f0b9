"""Manifests of files, directories and standard input, the bad ones beside the good."""

import json
from pathlib import Path

import orjson
import pytest
import yaml
from tests.unit.resource.cases import GOOD, TEMPLATE, Json, scheduled_job, spec

from evenkeel.manifests.documents import documents
from evenkeel.manifests.files import Text
from evenkeel.manifests.findings import Problem
from evenkeel.manifests.manifest import Manifests, load
from evenkeel.model import Cron, Hourly

CREATED = 1_767_225_599

HEAD = "apiVersion: evenkeel.dev/v1alpha1\nkind: ScheduledJob\n"


def manifest(name: str, body: str = "hourly: {minute: 17}") -> str:
    template = json.dumps(TEMPLATE)
    return f"{HEAD}metadata: {{name: {name}}}\nspec:\n  {body}\n  jobTemplate: {template}\n"


def never() -> str:
    raise AssertionError("nobody named standard input")


def load_text(text: str) -> Manifests:
    return load(["-"], stdin=lambda: text, created=CREATED)


def names(loaded: Manifests) -> list[str]:
    return [schedule.key for schedule in loaded.schedules]


def said(loaded: Manifests) -> list[str]:
    return [str(problem) for problem in loaded.problems]


def test_documents_come_in_the_order_of_the_file() -> None:
    loaded = load_text("---\n" + "---\n".join(manifest(name) for name in ("c", "a", "b")))
    assert names(loaded) == ["default/c", "default/a", "default/b"]
    assert said(loaded) == []


def test_a_manifest_counts_from_when_the_caller_says_and_is_known_by_its_name() -> None:
    (schedule,) = load_text(manifest("a")).schedules
    assert (schedule.created, schedule.uid) == (CREATED, "default/a")
    assert schedule.timing.rule == Hourly(17)


def test_a_time_of_day_without_quotes_is_a_time_of_day() -> None:
    body = "interval: {every: 1d}\n  placement: {window: {start: 22:00, end: 06:00}}"
    (schedule,) = load_text(manifest("a", body)).schedules
    assert schedule.placement.window is not None
    assert schedule.placement.window.start_s == 22 * 3600


def test_empty_documents_and_comments_are_nothing() -> None:
    loaded = load_text(f"# head\n---\n---\n# only words\n--- # more\n{manifest('a')}---\nnull\n")
    assert names(loaded) == ["default/a"]
    assert (said(loaded), loaded.notes) == ([], [])


def test_other_kinds_are_left_out_with_a_note() -> None:
    loaded = load_text("apiVersion: v1\nkind: ConfigMap\n---\n" + manifest("a"))
    assert names(loaded) == ["default/a"]
    assert [str(note) for note in loaded.notes] == ["stdin: document 1: ConfigMap"]


def test_lists_of_lists_and_typed_lists_are_opened() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [scheduled_job(spec(schedule="@daily"))]}
    bare = {"metadata": {"name": "bare"}, "spec": spec(hourly={"minute": 1})}
    typed = {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJobList",
        "items": [bare],
    }
    outer = {"apiVersion": "v1", "kind": "List", "items": [inner, typed]}
    assert names(load_text(yaml.safe_dump(outer))) == ["shop/nightly", "default/bare"]


def test_json_one_after_another_is_read() -> None:
    first = orjson.dumps(scheduled_job(spec(schedule="@daily"), name="a")).decode()
    second = json.dumps(scheduled_job(spec(schedule="@daily"), name="b"), indent=2)
    assert names(load_text(first + second)) == ["shop/a", "shop/b"]


def test_yaml_that_begins_with_a_brace_is_read() -> None:
    text = (
        "{apiVersion: evenkeel.dev/v1alpha1, kind: ScheduledJob, metadata: {name: a},"
        f" spec: {{schedule: '@daily', jobTemplate: {json.dumps(TEMPLATE)}}}}}"
    )
    assert names(load_text(text)) == ["default/a"]


def test_cronjobs_are_read_beside_scheduled_jobs() -> None:
    cronjob = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "backup", "namespace": "shop"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": TEMPLATE},
    }
    loaded = load_text(yaml.safe_dump(cronjob) + "---\n" + manifest("a"))
    assert names(loaded) == ["shop/backup", "default/a"]
    assert loaded.schedules[0].timing.rule == Cron("0 3 * * *")


POISON: dict[str, tuple[str, str]] = {
    "a tab": (
        f"{HEAD}spec:\n\tx: 1\n",
        "stdin: document 1: line 4: is not YAML that kubectl reads",
    ),
    "infinity": (f"{HEAD}spec: .inf\n", "stdin: document 1: is not YAML that kubectl reads: .inf"),
    "a text": ("hello\n", "stdin: document 1: is not an object"),
    "no kind": ("metadata: {name: x}\n", "default/x: is not a Kubernetes object"),
    "another version of ours": (
        manifest("x").replace("v1alpha1", "v2"),
        "default/x: apiVersion: evenkeel.dev/v2 is not known; write evenkeel.dev/v1alpha1",
    ),
    "a bad schedule": (
        manifest("x", "schedule: 0 0 0 * * *"),
        "default/x: spec.schedule: five fields are expected",
    ),
    "a misspelt field": (
        manifest("x", "hourly: {minute: 1}\n  timezone: UTC"),
        "default/x: spec.timezone: is not a field of a ScheduledJob",
    ),
    "a misspelt field further in": (
        manifest("x", "schedule: '@daily'\n  retry: {limits: 1}"),
        "default/x: spec.retry.limits: is not a field of a ScheduledJob",
    ),
    "31 February": (manifest("x", "schedule: 0 0 31 2 *"), "default/x: spec.schedule: "),
    "a year 9999 that never comes": (
        manifest("x", "at: 9999-12-31T23:59:59-12:00"),
        "default/x: spec.at: times lie between 1970 and 9999",
    ),
    "no name": (
        HEAD + f"spec: {{hourly: {{minute: 1}}, jobTemplate: {json.dumps(TEMPLATE)}}}",
        "document 1: metadata.name: is required",
    ),
    "a name with capitals": (
        manifest("Upper_Case"),
        "default/Upper_Case: metadata.name: must be at most 253 lowercase letters, digits, dots",
    ),
    "a name that is too long": (
        manifest("n" * 254),
        "metadata.name: must be at most 253 lowercase letters",
    ),
    "a namespace with a dot": (
        manifest("x").replace("{name: x}", "{name: x, namespace: a.b}"),
        "a.b/x: metadata.namespace: must be at most 63 lowercase letters, digits and hyphens",
    ),
    "a CronJob with a bad name": (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: -x}\n"
        f"spec: {{schedule: 0 * * * *, jobTemplate: {json.dumps(TEMPLATE)}}}\n",
        "default/-x: metadata.name: must be",
    ),
    "a CronJob without a spec": (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n",
        "default/x: spec: is required",
    ),
    "a CronJob with its own zone": (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\n"
        f"spec: {{schedule: TZ=UTC 0 * * * *, jobTemplate: {json.dumps(TEMPLATE)}}}\n",
        "default/x: spec.schedule: a zone inside the text is not supported",
    ),
    "NaN in JSON": ('{"kind": NaN}', "NaN is not a number that JSON has"),
    "JSON nested without end": (
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "nested more than 200 deep",
    ),
}


@pytest.mark.parametrize(("text", "sentence"), POISON.values(), ids=POISON)
def test_a_bad_document_is_a_problem_and_the_rest_is_read(text: str, sentence: str) -> None:
    loaded = load_text(f"{text.rstrip()}\n---\n{manifest('good')}")
    assert names(loaded) == ["default/good"]
    (problem,) = said(loaded)
    assert sentence in problem
    assert problem.startswith("stdin: document 1: ")


@pytest.mark.parametrize("order", [1, -1], ids=["CronJob first", "ScheduledJob first"])
@pytest.mark.parametrize("suspended", ["CronJob", "ScheduledJob"])
def test_in_the_middle_of_a_hand_over_the_suspended_one_is_left_out(
    suspended: str, order: int
) -> None:
    both = [
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": "backup"},
            "spec": {
                "schedule": schedule,
                "suspend": kind == suspended,
                "jobTemplate": TEMPLATE,
            },
        }
        for version, kind, schedule in (
            ("batch/v1", "CronJob", "0 1 * * *"),
            ("evenkeel.dev/v1alpha1", "ScheduledJob", "0 2 * * *"),
        )
    ]
    loaded = load_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": both[::order]}))
    assert said(loaded) == []
    (left,) = loaded.schedules
    assert not left.suspend
    assert isinstance(left.timing.rule, Cron)
    assert left.timing.rule.text == ("0 2 * * *" if suspended == "CronJob" else "0 1 * * *")


def test_the_same_name_twice_is_a_problem_that_names_both_places() -> None:
    loaded = load_text(f"{manifest('a')}---\n{manifest('a')}")
    assert names(loaded) == ["default/a"]
    assert said(loaded) == [
        "stdin: document 2: default/a: metadata.name: is defined twice: first in stdin, document 1"
    ]


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
def test_every_right_spec_passes_the_check_for_unknown_fields(good: Json) -> None:
    loaded = load_text(json.dumps(scheduled_job(good)))
    assert said(loaded) == []


def test_a_directory_is_read_in_order_and_not_below_itself(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(manifest("b"))
    (tmp_path / "a.yml").write_text("\ufeff" + manifest("a"), encoding="utf-8")
    (tmp_path / "c.json").write_text(json.dumps(scheduled_job(spec(schedule="@daily"), name="c")))
    (tmp_path / "README.md").write_text("no manifest")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.yaml").write_text(manifest("d"))
    loaded = load([str(tmp_path)], stdin=never, created=CREATED)
    assert names(loaded) == ["default/a", "default/b", "shop/c"]
    assert said(loaded) == []


def test_what_cannot_be_opened_is_a_problem_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "empty").mkdir()
    missing = tmp_path / "missing.yaml"
    loaded = load(
        [str(missing), str(tmp_path / "empty"), str(tmp_path)], stdin=never, created=CREATED
    )
    assert said(loaded) == [
        f"{missing}: cannot be read: No such file or directory",
        f"{tmp_path / 'empty'}: holds no file that ends in .yaml, .yml, .json",
        f"{tmp_path / 'binary.yaml'}: is not UTF-8 text",
    ]


def test_lines_are_counted_from_the_top_of_the_file() -> None:
    problems: list[Problem] = []
    text = "kind: A\n---\nkind: B\n---\nkind: [\n"
    read = Text("f.yaml", text, in_directory=False)
    found = list(documents(read, problems=problems, skipped=[]))
    assert [each.object["kind"] for each in found] == ["A", "B"]
    (problem,) = problems
    assert (problem.index, problem.line, problem.sentence[:8]) == (3, 6, "line 6: ")
