"""The CRD on a real API server: what it takes, what it refuses and in which words, what it keeps.

The specs are those of the reader's unit tests, so that what is proven there holds here: whatever
the API server refuses `read` refuses with the same sentence, and the other way round for rules
that both know. Each table goes to the server in one kubectl call per verb.
"""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.sent import VERBS, Sent
from tests.unit.resource.cases import (
    GOOD,
    LET_THROUGH_BY_THE_SCHEMA,
    ONE_OF,
    REFUSED_BY_BOTH,
    REFUSED_IN_OTHER_WORDS,
    TEMPLATE,
    Json,
    spec,
)

from evenkeel.model import Rejection, Schedule
from evenkeel.resource.read import read
from evenkeel.resource.record import DURATIONS_COUNT, LONGEST_RUN_S, Memory, Placed, Record, Shown
from evenkeel.resource.status import parse, render

CRDS = Path(__file__).parents[2] / "crds"
SENT = Sent("ScheduledJob", "sj")
manifest, send, get, columns = SENT.manifest, SENT.send, SENT.get, SENT.columns
BAD = [
    *((bad, bad.sentence) for bad in REFUSED_BY_BOTH),
    *((bad, words) for bad, words in REFUSED_IN_OTHER_WORDS),
]


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Cluster:
    """A cluster that knows ScheduledJobs, by plain client-side apply."""
    cluster.install_crd()
    return cluster


def report_status(server: Cluster, ns: str, name: str, status: Json) -> None:
    patch = json.dumps({"status": status})
    server.kubectl(
        "patch", "sj", name, "-n", ns, "--subresource=status", "--type=merge", "-p", patch
    )


# --- what is taken and what is refused --------------------------------------------------------


@pytest.fixture(scope="module", params=VERBS)
def refusals(
    server: Cluster, request: pytest.FixtureRequest
) -> tuple[dict[str, str], subprocess.CompletedProcess[str]]:
    return SENT.refusals(server, [bad.spec for bad, _ in BAD], *VERBS[request.param])


@pytest.mark.parametrize(
    "number", range(len(BAD)), ids=[bad.why.replace(" ", "_") for bad, _ in BAD]
)
def test_what_is_wrong_is_refused_at_its_field_with_a_sentence(
    refusals: tuple[dict[str, str], subprocess.CompletedProcess[str]], number: int
) -> None:
    answers, done = refusals
    bad, words = BAD[number]
    assert f"bad-{number}" in answers, done.stderr[-2000:]
    assert f"{bad.field}: " in answers[f"bad-{number}"]
    assert any(word in answers[f"bad-{number}"] for word in words.split("|"))
    assert f"scheduledjob.evenkeel.dev/bad-{number} " not in done.stdout


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_what_is_right_is_taken_and_read_as_it_was_written(
    server: Cluster, namespace: str, verb: tuple[str, ...]
) -> None:
    specs = {f"good-{number}": each for number, each in enumerate(GOOD.values())}
    done = send(server, namespace, specs, *verb)
    assert done.returncode == 0, done.stderr
    stored = json.loads(server.kubectl("get", "sj", "-n", namespace, "-o", "json").stdout)["items"]
    assert len(stored) == len(GOOD)
    for raw in stored:
        name = raw["metadata"]["name"]
        # defaults that the server filled in must be those that the reader takes for granted
        written = {"metadata": raw["metadata"], "spec": specs[name]}
        ours, theirs = read(written), read(raw)
        assert isinstance(ours, Schedule), ours
        assert isinstance(theirs, Schedule), theirs
        template = {"template": b"", "template_hash": ""}  # nulls in it may be pruned
        assert replace(theirs, **template) == replace(ours, **template)


def test_what_no_schema_can_know_is_taken_and_refused_by_the_reader(
    server: Cluster, namespace: str
) -> None:
    specs = {f"odd-{number}": bad.spec for number, bad in enumerate(LET_THROUGH_BY_THE_SCHEMA)}
    done = send(server, namespace, specs, "create")
    assert done.returncode == 0, done.stderr
    for number, bad in enumerate(LET_THROUGH_BY_THE_SCHEMA):
        result = read(get(server, namespace, f"odd-{number}"))
        assert isinstance(result, Rejection)
        assert (result.field, result.reason) == (bad.field, bad.reason)


def test_a_misspelt_field_is_refused(server: Cluster, namespace: str) -> None:
    done = send(server, namespace, {"x": spec(schedule="@daily", timezone="UTC")}, "create")
    assert done.returncode != 0
    assert 'unknown field "spec.timezone"' in done.stderr


def test_a_second_kind_is_refused_until_the_first_is_null(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="@daily")}, "create")
    patch = ("patch", "sj", "x", "-n", namespace, "--type=merge", "-p")
    refused = server.kubectl(*patch, '{"spec": {"hourly": {"minute": 5}}}', check=False)
    assert ONE_OF in refused.stderr
    assert "set the old one to null" in refused.stderr
    server.kubectl(*patch, '{"spec": {"hourly": {"minute": 5}, "schedule": null}}')
    changed = get(server, namespace, "x")["spec"]
    assert changed["hourly"] == {"minute": 5}
    assert changed.get("schedule") is None


def test_a_second_kind_is_exchanged_by_server_side_apply(server: Cluster, namespace: str) -> None:
    apply = ("apply", "--server-side")
    assert send(server, namespace, {"x": spec(schedule="@daily")}, *apply).returncode == 0
    changed = spec(schedule=None, interval={"every": "25m"})
    done = send(server, namespace, {"x": changed}, *apply)
    assert done.returncode == 0, done.stderr
    assert isinstance(read(get(server, namespace, "x")), Schedule)


# --- what is filled in and what is kept -------------------------------------------------------


def test_defaults_appear(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="@daily")}, "create")
    assert get(server, namespace, "x")["spec"] == {
        "schedule": "@daily",
        "timeZone": "UTC",
        "suspend": False,
        "missedRuns": "Latest",
        "catchUpLimit": 100,
        "concurrencyPolicy": "Allow",
        "maxQueued": 20,
        "priority": 0,
        "placement": {"pinned": False},
        "retry": {"limit": 0, "delaySeconds": 10, "factor": 2, "maxDelaySeconds": 3600},
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": TEMPLATE,
    }


def test_half_a_policy_is_completed(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="@daily", dst={"fold": "Both"})}, "create")
    assert get(server, namespace, "x")["spec"]["dst"] == {"gap": "Shift", "fold": "Both"}


def test_fields_of_newer_jobs_and_pods_are_kept_at_every_level(
    server: Cluster, namespace: str
) -> None:
    template = {
        "newer": 1,
        "metadata": {"newer": 2},
        "spec": {
            "newer": 3,
            "template": {
                "metadata": {"newer": 4},
                "spec": {
                    "newer": {"deep": [5]},
                    "restartPolicy": "Never",
                    "containers": [
                        {
                            "name": "main",
                            "image": "busybox:1",
                            "newer": 6,
                            "securityContext": {"newer": [{"a": 7}]},
                        }
                    ],
                },
            },
        },
    }
    done = send(server, namespace, {"x": spec(schedule="@daily", jobTemplate=template)}, "create")
    assert done.returncode == 0, done.stderr
    assert get(server, namespace, "x")["spec"]["jobTemplate"] == template


def test_a_cronjob_becomes_a_scheduled_job_by_two_lines(server: Cluster, namespace: str) -> None:
    cronjob = manifest(
        "x",
        {
            "schedule": "0 3 * * *",
            "timeZone": "Europe/Berlin",
            "startingDeadlineSeconds": 60,
            "concurrencyPolicy": "Forbid",
            "suspend": True,
            "successfulJobsHistoryLimit": 5,
            "failedJobsHistoryLimit": 0,
            "jobTemplate": TEMPLATE,
        },
    )
    changed = json.dumps(cronjob)
    original = json.dumps({**cronjob, "apiVersion": "batch/v1", "kind": "CronJob"})
    for text in (original, changed):
        server.kubectl("create", "-n", namespace, "-f", "-", input=text)
    stored = get(server, namespace, "x")["spec"]
    assert {name: stored[name] for name in cronjob["spec"]} == cronjob["spec"]


STATUS: Json = {
    "observedGeneration": 1,
    "state": "Suspended",
    "images": "shop:1",
    "nextLocal": "2126-01-01T01:00:00+01:00",
    "scheduleText": "*/5 * * * *",
    "nextRunTime": "2126-01-01T00:00:00Z",
    "upcoming": ["2126-01-01T00:00:00Z"],
    "lastScheduleTime": "2026-01-01T00:00:00Z",
    "lastResult": "succeeded",
    "active": [{"kind": "Job", "name": "x-1"}],
    "activeCount": 2,
    "recent": [{"due": "2026-01-01T00:00:00Z", "state": "succeeded", "attempt": 1}],
    "counts": {"succeeded": 1, "lost": 0},
    "internal": {
        "mark": "2026-01-01T00:00:00Z",
        "timing": {"hash": "h", "since": "2026-01-01T00:00:00Z", "fields": {"schedule": "x"}},
        "waiting": [{"due": "2026-01-01T00:00:00Z", "attempt": 1, "reason": "launching"}],
        "unnamedActive": 3,
        "durations": [1, 31622400],
        "templateHash": "t",
    },
    "placement": {
        "anchor": "2026-01-01T00:00:00Z",
        "slot": "14:15",
        "load": 2.5,
        "expectedSeconds": 90,
    },
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ok",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ],
}


def with_unknown_fields(value: Any) -> Any:
    """The same, and in every object a field that only a newer operator knows."""
    if isinstance(value, dict):
        return {**{name: with_unknown_fields(part) for name, part in value.items()}, "newer": "?"}
    if isinstance(value, list):
        return [with_unknown_fields(part) for part in value]
    return value


def test_the_status_of_a_newer_operator_is_kept(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="*/5 * * * *")}, "create")
    status = with_unknown_fields(STATUS)
    report_status(server, namespace, "x", status)
    assert get(server, namespace, "x")["status"] == status


def test_what_the_operator_learned_comes_back(server: Cluster, namespace: str) -> None:
    """The longest run, and as many runs as a status names."""
    send(server, namespace, {"x": spec(interval={"every": "1h"})}, "create")
    lasted = [LONGEST_RUN_S] * DURATIONS_COUNT
    memory = Memory(
        record=Record(durations=lasted, expected_s=LONGEST_RUN_S),
        placed=Placed(anchor=0, every_s=3600, placed_at=0, reason="the least loaded"),
    )
    report_status(server, namespace, "x", render(memory, Shown("Scheduled"), ns=namespace))
    stored = get(server, namespace, "x")
    assert stored["status"]["placement"]["expectedSeconds"] == LONGEST_RUN_S
    found = parse(stored["status"])
    assert (found.record, found.placed) == (memory.record, memory.placed)
    assert "weight" not in stored["spec"]["placement"]
    assert "weight" not in stored["status"]["placement"]


# --- what people see --------------------------------------------------------------------------


def test_columns_before_the_operator_has_seen_a_schedule(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="*/5 * * * *")}, "create")
    head, row = columns(server, namespace)
    assert head == [
        "NAME", "SCHEDULE", "STATE", "NEXT", "LAST", "RESULT", "ACTIVE", "AGE",
    ]  # fmt: skip
    assert row[:2] == ["x", "Pending"]
    assert len(row) == 3, "beside its name, only its state and age are known"


def test_who_waits_for_a_schedule_waits_until_the_operator_has_seen_it(
    server: Cluster, namespace: str
) -> None:
    send(server, namespace, {"x": spec(schedule="*/5 * * * *")}, "create")
    wait = ("-n", namespace, "wait", "sj/x", "--for=condition=Ready", "--timeout=2s")
    assert "timed out" in server.kubectl(*wait, check=False).stderr
    report_status(server, namespace, "x", STATUS)
    assert "condition met" in server.kubectl(*wait).stdout


def test_columns_show_what_the_operator_reports(server: Cluster, namespace: str) -> None:
    paused = spec(schedule="*/5 * * * *", timeZone="Europe/Berlin", priority=7, suspend=True)
    send(server, namespace, {"x": paused}, "create")
    report_status(server, namespace, "x", STATUS)
    _, row = columns(server, namespace)
    assert row[:4] == ["x", "*/5 * * * *", "Suspended", "2126-01-01T00:00:00Z"]
    assert re.fullmatch(r"[0-9]+[ydhms][0-9a-z]*", row[4]), "LAST is an age"
    assert row[5:7] == ["succeeded", "2"]
    head, row = columns(server, namespace, "-o", "wide")
    assert head[-5:] == ["ZONE", "NEXT LOCAL", "SLOT", "PRIORITY", "IMAGES"]
    assert row[-5:] == ["Europe/Berlin", "2126-01-01T01:00:00+01:00", "14:15", "7", "shop:1"]


def test_it_is_found_by_short_name_and_category(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": spec(schedule="@daily")}, "create")
    for name in ("sj", "scheduledjob", "evenkeel", "all"):
        out = server.kubectl("get", name, "-n", namespace, "-o", "name").stdout
        assert out == "scheduledjob.evenkeel.dev/x\n"


def test_people_can_ask_what_a_field_means(server: Cluster) -> None:
    out = server.kubectl("explain", "scheduledjob.spec.interval").stdout
    assert "runs are at anchor + offset" in out.lower().replace("\n    ", " ")
