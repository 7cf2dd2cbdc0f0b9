"""All mistakes of an object, each once, with the field that was meant."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mistakes import GOOD, MISTAKES, CronJob, Mistake, Where
from tests.unit.resource.test_read_never_raises import SPECS

from evenkeel.manifests.manifest import Manifests, load

Json = dict[str, Any]


def load_text(text: str) -> Manifests:
    return load(["-"], stdin=lambda: text, created=1_767_225_599)


def said(raw: object) -> list[str]:
    """`field: sentence` of each mistake of one object."""
    loaded = load_text(json.dumps(raw))
    assert len(loaded.schedules) == (not loaded.problems)
    return [f"{each.field}: {each.sentence}" for each in loaded.problems]


def said_of(text: str) -> list[str]:
    return said(yaml.safe_load(text))


def with_container(**fields: Any) -> Json:
    raw: Json = json.loads(json.dumps(GOOD))
    raw["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0].update(fields)
    return raw


CONTAINER = "spec.jobTemplate.spec.template.spec.containers[0]"


def of_each(mistake: Mistake, raw: Json) -> None:
    """Something is said, and it names what was changed."""
    lines = said(raw)
    changed = [path.strip("/").split("/") for path in mistake.change]
    names = {next(part for part in reversed(path) if not part.isdigit()) for path in changed}
    assert any(name in line for line in lines for name in names), lines


FROM_A_MANIFEST = [each for each in MISTAKES if each.where is not Where.HINT]


@pytest.mark.parametrize("mistake", FROM_A_MANIFEST, ids=lambda each: each.name)
def test_what_people_get_wrong_is_found_without_a_cluster(mistake: Mistake) -> None:
    of_each(mistake, mistake.manifest())


@pytest.mark.parametrize(
    "mistake",
    [each for each in FROM_A_MANIFEST if each.cronjob is CronJob.REFUSES],
    ids=lambda each: each.name,
)
def test_what_the_api_of_cron_job_refuses_is_found_too(mistake: Mistake) -> None:
    of_each(mistake, mistake.as_cronjob())


@pytest.mark.parametrize(
    "mistake", [each for each in MISTAKES if each.where is Where.HINT], ids=lambda each: each.name
)
def test_what_is_accepted_with_a_hint_is_no_mistake(mistake: Mistake) -> None:
    assert said(mistake.manifest()) == []


def test_the_good_manifest_has_no_mistake() -> None:
    assert said(GOOD) == []
    assert said({**GOOD, "apiVersion": "batch/v1", "kind": "CronJob"}) == []


def test_all_mistakes_of_an_object_are_told_each_once() -> None:
    raw = with_container(comand=["true"], image=5)
    raw["metadata"]["namespace"] = False
    raw["spec"] |= {
        "schedule": "60 * * * *",
        "timeZone": "Mars/Olympus",
        "concurencyPolicy": "Forbd",
        "retry": {"limit": 99, "delay": 5},
        "startTime": "soon",
        "dst": {"gap": "Jump", "fold": "First"},
    }
    assert sorted(said(raw)) == [
        "metadata.namespace: must be a string; without quotes YAML reads it as false: put it in "
        "quotes",
        "spec.concurencyPolicy: is not a field of a ScheduledJob; did you mean concurrencyPolicy?",
        "spec.concurrencyPolicy: must be 'Allow', 'Forbid', 'Replace' or 'Queue'; did you mean "
        "Forbid?",
        "spec.dst.gap: must be 'Shift' or 'Skip'",
        f"{CONTAINER}.comand: is not a field here; did you mean command?",
        f"{CONTAINER}.image: must be a string; without quotes YAML reads it as a number: put it in "
        "quotes",
        "spec.retry.delay: is not a field of a ScheduledJob",
        "spec.retry.limit: must be at most 20",
        "spec.schedule: minute '60' is out of range; 0 to 59 are possible",
        "spec.startTime: write an RFC 3339 time with a zone, such as 2030-01-31T06:00:00Z",
        "spec.timeZone: 'Mars/Olympus' is not a known time zone; write an IANA name such as "
        "Europe/Berlin, or UTC",
    ]


def test_mistakes_in_the_entries_of_a_list_are_told_at_their_place() -> None:
    parameters = [
        {"name": "DAY", "valu": "1"},
        {"name": "REGION", "value": "mars", "enum": ["eu", "us"]},
        {"name": "LIMIT", "value": 5},
    ]
    assert said({**GOOD, "spec": {**GOOD["spec"], "parameters": parameters}}) == [
        "spec.parameters[0].valu: is not a field of a ScheduledJob; did you mean value?",
        "spec.parameters[1]: value must be one of the values in enum: a run by schedule gets it",
        "spec.parameters[2].value: must be a string; without quotes YAML reads it as a number: put "
        "it in quotes",
    ]


TWO_RULES = """
apiVersion: evenkeel.dev/v1alpha1
kind: ScheduledJob
metadata: {name: a}
spec:
  at: "2030-01-31T06:00:00Z"
  timeZone: Europe/Berlin
  dayMatch: And
  placement: {pinned: true}
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
"""


def test_all_rules_that_are_broken_are_told_and_none_names_its_field_twice() -> None:
    assert said_of(TWO_RULES) == [
        "spec.dayMatch: works with schedule only, not with at",
        "spec.timeZone: works with schedule, hourly and interval only, not with at",
        "spec.placement.pinned: works with interval only, not with at",
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"schedul": "0 3 * * *", "schedule": None}, "spec.schedul: * did you mean schedule?"),
        ({"timezone": "UTC"}, "spec.timezone: * did you mean timeZone?"),
        ({"time_zone": "UTC"}, "spec.time_zone: * did you mean timeZone?"),
        ({"suspended": True}, "spec.suspended: * did you mean suspend?"),
        ({"restartPolicy": "Never"}, "spec.restartPolicy: * it belongs in jobTemplate.spec.tem"),
        ({"backoffLimit": 0}, "spec.backoffLimit: * it belongs in jobTemplate.spec"),
        ({"image": "x"}, "spec.image: * it belongs in jobTemplate.spec.template.spec.containers[]"),
        ({"retry": {"missedRuns": "All"}}, "spec.retry.missedRuns: * here; it belongs in spec"),
        ({"colour": "red"}, "spec.colour: is not a field of a ScheduledJob"),
    ],
)
def test_the_field_that_was_meant_is_named(change: Json, line: str) -> None:
    raw = {**GOOD, "spec": {**GOOD["spec"], **change}}
    (found,) = said(raw)
    begin, _, end = line.partition("*")
    assert found.startswith(begin)
    assert end in found


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"schedule": "H * * * *"}, "spec.schedule: minute 'H' is not taken by CronJob's API"),
        ({"schedule": "0 0 L * *"}, "spec.schedule: day of month 'L' is not taken by CronJob's"),
        ({"schedule": "0 0 * * 5#2"}, "spec.schedule: day of week '5#2' is not taken by CronJob's"),
        ({"schedule": "0 0 * * 1,5L"}, "spec.schedule: day of week '5L' is not taken by CronJob's"),
        (
            {"schedule": "0 0 * * 1-7"},
            "spec.schedule: day of week '1-7': CronJob's API takes 0 to 6",
        ),
        ({"concurrencyPolicy": "Queue"}, "spec.concurrencyPolicy: Queue is not known to CronJob"),
        ({"missedRuns": "All"}, "spec.missedRuns: is not a field of a CronJob"),
        ({"jobTemplat": {}}, "spec.jobTemplat: is not a field of a CronJob; did you mean jobT"),
        ({"schedule": "@every soon"}, "spec.schedule: @every needs a duration"),
        ({"schedule": "@every 5s"}, "spec.schedule: 5s is too frequent: by default"),
    ],
)
def test_a_cron_job_is_held_to_its_own_api(change: Json, line: str) -> None:
    spec = {**GOOD["spec"], **change}
    (found,) = said({**GOOD, "apiVersion": "batch/v1", "kind": "CronJob", "spec": spec})
    assert found.startswith(line)


@pytest.mark.parametrize(
    "schedule",
    ["0 0 * * THU", "0 0 * JUL *", "0 0 ? MAR-JUL MON-FRI", "*/90 * * * *", "@daily", "0 0 * * 0"],
)
def test_what_cron_job_takes_is_no_mistake(schedule: str) -> None:
    spec = {**GOOD["spec"], "schedule": schedule}
    assert said({**GOOD, "apiVersion": "batch/v1", "kind": "CronJob", "spec": spec}) == []


def test_a_cron_job_has_52_characters_for_its_name_and_a_scheduled_job_253() -> None:
    metadata = {"name": "n" * 53}
    assert said({**GOOD, "metadata": metadata}) == []
    (found,) = said({**GOOD, "metadata": metadata, "apiVersion": "batch/v1", "kind": "CronJob"})
    assert found == ("metadata.name: has 53 characters; a CronJob may have 52, a ScheduledJob 253")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1234", "metadata.name: must be a string; without quotes YAML reads it as a number: "),
        ("off", "metadata.name: must be a string; without quotes YAML reads it as false: "),
        ("[a]", "metadata.name: must be a string"),
        ("", "metadata.name: is required"),
    ],
)
def test_a_name_that_is_no_string_is_told_so(text: str, sentence: str) -> None:
    yaml_text = TWO_RULES.replace("name: a}", f"name: {text}}}", 1)
    found = [f"{each.field}: {each.sentence}" for each in load_text(yaml_text).problems]
    assert found[0].startswith(sentence)


KINDS = [
    ("batch/v2", "CronJob", "apiVersion: batch/v2 has no CronJob; write batch/v1"),
    ("v1", "CronJob", "apiVersion: v1 has no CronJob; write batch/v1"),
    (
        "evenkeel.dev/v1alpha1",
        "CronJob",
        "kind: CronJob is not a kind of evenkeel.dev; write Sched",
    ),
    ("batch/v1", "ScheduledJob", "apiVersion: batch/v1 has no ScheduledJob; write evenkeel.dev/v1"),
    ("evenkeel.io/v1", "ScheduledJob", "apiVersion: evenkeel.io/v1 has no ScheduledJob; write ev"),
    ("evenkeel.dev/v2", "ScheduledJob", "apiVersion: evenkeel.dev/v2 is not known; write evenk"),
    (
        "evenkeel.dev/v1alpha1",
        "ScheduleJob",
        "kind: ScheduleJob is not a kind of evenkeel.dev; write ScheduledJob",
    ),
    (
        "evenkeel.dev/v1alpha1",
        "RunRequests",
        "kind: RunRequests is not a kind of evenkeel.dev; write RunRequest",
    ),
    (
        "evenkeel.dev/v1alpha1",
        "Backfill",
        "kind: Backfill is not a kind of evenkeel.dev; write ScheduledJob or RunRequest",
    ),
    ("evenkeel.dev/v1", "RunRequest", "apiVersion: evenkeel.dev/v1 is not known; write evenkeel"),
    ("batch/v1", "RunRequest", "apiVersion: batch/v1 has no RunRequest; write evenkeel.dev/v1al"),
    (None, "RunRequest", "apiVersion: is required; write evenkeel.dev/v1alpha1"),
    ("batch/v1", "Cronjob", "kind: Cronjob is not a kind of batch/v1; did you mean CronJob?"),
    (None, "CronJob", "apiVersion: is required; write batch/v1"),
    (None, "ScheduledJob", "apiVersion: is required; write evenkeel.dev/v1alpha1"),
    ("batch/v1", None, "kind: is required"),
    (5, "CronJob", "apiVersion: must be a string"),
]


@pytest.mark.parametrize(("version", "kind", "line"), KINDS)
def test_what_was_meant_as_one_of_the_three_kinds_is_told(
    version: object, kind: object, line: str
) -> None:
    raw = {key: value for key, value in GOOD.items() if key not in ("apiVersion", "kind")}
    raw |= {} if version is None else {"apiVersion": version}
    raw |= {} if kind is None else {"kind": kind}
    (found,) = said(raw)
    assert found.startswith(line)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("batch/v1", "Job"),
        ("v1", "ConfigMap"),
        ("example.com/v1", "ScheduledJob"),
        ("example.com/v1", "RunRequest"),
        ("batch.volcano.sh/v1", "CronJob"),
    ],
)
def test_other_kinds_and_other_groups_are_left_out(version: str, kind: str) -> None:
    loaded = load_text(json.dumps({"apiVersion": version, "kind": kind}))
    assert (loaded.problems, len(loaded.notes)) == ([], 1)


NAMES = (
    "spec template containers name image env value resources requests cpu metadata labels volumes "
    "volumeMounts backoffLimit restartPolicy schedule interval every at placement window retry limt"
)

TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["Never", "5", "a", "0 0 * * *", "25m", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split(" ")), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(
    kind=st.sampled_from(["ScheduledJob", "CronJob"]),
    metadata=st.just({"name": "a"}) | TREES,
    spec=SPECS | TREES,
    template=TREES,
)
@settings(max_examples=400, deadline=None)
def test_any_tree_is_understood_or_has_a_mistake_with_a_sentence(
    kind: str, metadata: Any, spec: Any, template: Any
) -> None:
    if isinstance(spec, dict):
        spec = {**spec, "jobTemplate": template}
    version = "batch/v1" if kind == "CronJob" else "evenkeel.dev/v1alpha1"
    raw = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    try:
        text = json.dumps(raw, allow_nan=False)
    except (ValueError, TypeError):
        return  # infinity, bytes, or an integer of 5,000 digits: no text holds them
    loaded = load_text(text)
    assert bool(loaded.problems) != bool(loaded.schedules)
    told = [(each.field, each.sentence) for each in loaded.problems]
    assert len(told) == len(set(told))
    for field, sentence in told:
        assert sentence
        assert "could not be read" not in sentence
        assert len(field) + len(sentence) < 2000


@given(TREES)
@settings(max_examples=200, deadline=None)
def test_any_document_is_left_out_or_has_a_mistake(tree: Any) -> None:
    loaded = load_text(json.dumps(tree))
    assert loaded.schedules == []
