"""The CRD of RunRequest on a real API server: what it takes, what it refuses and in which words,
what it keeps, and what nobody may change.

The specs are those of the reader's unit tests, as in test_crd. Each table goes to the server in one
kubectl call per verb.
"""

import json
import subprocess
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.sent import VERBS, Sent
from tests.unit.resource.cases import Json
from tests.unit.resource.request_cases import (
    GOOD_REQUESTS,
    JANUARY,
    REQUESTS_REFUSED_BY_BOTH,
    REQUESTS_REFUSED_IN_OTHER_WORDS,
    backfill,
    wish,
)

from evenkeel.model import Cron, Request, RequestState, RunState, Timing
from evenkeel.reasons import Reason, RequestCondition
from evenkeel.resource.record import Condition, RecentRun
from evenkeel.resource.request_read import read_request
from evenkeel.resource.request_record import (
    MOST_DUES,
    REQUEST_ACTIVE_COUNT,
    ActiveRun,
    Plan,
    RequestMemory,
    RequestRecord,
    RequestShown,
)
from evenkeel.resource.request_rules import FIXED
from evenkeel.resource.request_status import parse_request, render_request

SENT = Sent("RunRequest", "rr")
manifest, send, get, columns = SENT.manifest, SENT.send, SENT.get, SENT.columns
BAD = [
    *((bad, bad.sentence) for bad in REQUESTS_REFUSED_BY_BOTH),
    *REQUESTS_REFUSED_IN_OTHER_WORDS,
]


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Cluster:
    """A cluster that knows RunRequests, by plain client-side apply."""
    cluster.install_crd()
    return cluster


def change(server: Cluster, ns: str, name: str, spec: Json) -> subprocess.CompletedProcess[str]:
    patch = json.dumps({"spec": spec})
    return server.kubectl("patch", "rr", name, "-n", ns, "--type=merge", "-p", patch, check=False)


def report_status(server: Cluster, ns: str, name: str, status: Json) -> None:
    patch = json.dumps({"status": status})
    server.kubectl(
        *("patch", "rr", name, "-n", ns, "--subresource=status", "--type=merge"),
        *("--patch-file=/dev/stdin",),
        input=patch,
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
    assert f"runrequest.evenkeel.dev/bad-{number} " not in done.stdout


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_what_is_right_is_taken_and_read_as_it_was_written(
    server: Cluster, namespace: str, verb: tuple[str, ...]
) -> None:
    specs = {f"good-{number}": each for number, each in enumerate(GOOD_REQUESTS.values())}
    done = send(server, namespace, specs, *verb)
    assert done.returncode == 0, done.stderr
    stored = json.loads(server.kubectl("get", "rr", "-n", namespace, "-o", "json").stdout)["items"]
    assert len(stored) == len(GOOD_REQUESTS)
    for raw in stored:
        # defaults that the server filled in must be those that the reader takes for granted
        written = {"metadata": raw["metadata"], "spec": specs[raw["metadata"]["name"]]}
        theirs = read_request(raw)
        assert isinstance(theirs, Request), theirs
        assert theirs == read_request(written)


def test_a_misspelt_field_is_refused(server: Cluster, namespace: str) -> None:
    done = send(server, namespace, {"x": wish(maxactive=2)}, "create")
    assert done.returncode != 0
    assert 'unknown field "spec.maxactive"' in done.stderr


def test_a_request_without_name_gets_one(server: Cluster, namespace: str) -> None:
    raw = manifest("", wish())
    raw["metadata"] = {"generateName": "nightly-"}
    done = server.kubectl(
        *("create", "-n", namespace, "-f", "-", "-o", "name"), input=json.dumps(raw)
    )
    assert done.stdout.startswith("runrequest.evenkeel.dev/nightly-")


# --- what nobody may change -------------------------------------------------------------------

WHOLE = backfill(
    include="NotRun",
    order="NewestFirst",
    maxActive=4,
    overlap="Allow",
    stopAfterFailures=7,
    parameters=[{"name": "DAY", "value": "1"}],
    force=True,
    dryRun=True,
    ttlSecondsAfterFinished=60,
)
CHANGES: dict[str, list[Any]] = {
    "schedule": ["other"],
    "range": [{"to": "2026-03-01T00:00:00Z"}],
    "include": ["All", None],
    "order": ["OldestFirst"],
    "overlap": ["Wait"],
    "stopAfterFailures": [8, None],
    "parameters": [[{"name": "DAY", "value": "2"}], [], None],
    "force": [False, None],
    "dryRun": [False],
    "ttlSecondsAfterFinished": [61, None],
}


def test_only_suspend_and_max_active_can_be_changed(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": WHOLE}, "create")
    for field, values in CHANGES.items():
        for value in values:
            refused = change(server, namespace, "x", {field: value})
            assert refused.returncode != 0, (field, value)
            assert f"spec.{field}: " in refused.stderr
            assert FIXED in refused.stderr
    assert change(server, namespace, "x", {"suspend": True, "maxActive": 9}).returncode == 0
    stored = get(server, namespace, "x")
    assert (stored["spec"]["suspend"], stored["spec"]["maxActive"]) == (True, 9)
    assert stored["metadata"]["generation"] == 2


def test_a_single_run_stays_one(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"now": wish(), "later": wish(at="2126-01-01T00:00:00Z")}, "create")
    for name, spec in (
        ("now", {"at": "2026-01-01T00:00:00Z"}),
        ("now", {"range": JANUARY}),
        ("later", {"at": None}),
        ("later", {"at": "2126-01-02T00:00:00Z"}),
        ("later", {"at": None, "range": JANUARY}),
    ):
        refused = change(server, namespace, name, spec)
        assert refused.returncode != 0, (name, spec)
        assert FIXED in refused.stderr
    refused = change(server, namespace, "now", {"maxActive": 2})
    assert "maxActive works with range only" in refused.stderr


def test_the_same_file_can_be_applied_again_and_again(server: Cluster, namespace: str) -> None:
    for verb in (("apply",), ("apply",), ("apply", "--server-side", "--force-conflicts")):
        done = send(server, namespace, {"x": WHOLE}, *verb)
        assert done.returncode == 0, done.stderr
    assert get(server, namespace, "x")["metadata"]["generation"] == 1


# --- what is filled in and what is kept -------------------------------------------------------


def test_defaults_appear(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": wish()}, "create")
    stored = get(server, namespace, "x")
    assert stored["spec"] == {
        "schedule": "nightly",
        "include": "NotSucceeded",
        "order": "OldestFirst",
        "maxActive": 1,
        "overlap": "Wait",
        "stopAfterFailures": 3,
        "suspend": False,
        "force": False,
        "dryRun": False,
    }
    assert stored["status"]["state"] == "Pending"


def test_a_status_of_every_size_comes_back(server: Cluster, namespace: str) -> None:
    """As large as it may become: 10,000 due times, 100 active runs."""
    send(server, namespace, {"x": backfill()}, "create")
    first = 1_767_225_600
    memory = RequestMemory(
        generation=1,
        state=RequestState.RUNNING,
        schedule_uid="u",
        plan=Plan(MOST_DUES, b"\xaa" * (MOST_DUES // 8), Timing(Cron("* * * * *"))),
        mark=first,
        active=tuple(
            ActiveRun(first + 60 * n, 2, Reason.RETRYING, "n" * 63, "u" * 36, first)
            for n in range(REQUEST_ACTIVE_COUNT)
        ),
        record=RequestRecord(
            counts={"succeeded": 1, "failed": 2, "skipped": 3, "cancelled": 4, "lost": 5},
            recent=[RecentRun(first + n, RunState.FAILED, exit_code=1) for n in range(10)],
            consecutive_failures=2,
        ),
        started=first,
        finished=first,
        conditions={
            kind.value: Condition("True", "Accepted", "x" * 1024, first, 1)
            for kind in RequestCondition
        },
    )
    shown = RequestShown(MOST_DUES, tuple(first + n for n in range(20)))
    report_status(server, namespace, "x", render_request(memory, shown))
    stored = get(server, namespace, "x")["status"]
    assert parse_request(stored) == memory
    assert len(json.dumps(stored)) < 60_000

    report_status(server, namespace, "x", render_request(RequestMemory(), RequestShown()))
    assert parse_request(get(server, namespace, "x")["status"]) == RequestMemory()


def test_the_status_of_a_newer_operator_is_kept(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": backfill()}, "create")
    status = {
        "newer": 1,
        "counts": {"newer": 2},
        "active": [{"due": "2026-01-01T00:00:00Z", "newer": 3}],
        "plan": {"newer": 4, "timing": {"newer": 5, "fields": {"newer": 6}}},
        "dues": {"newer": 7},
    }
    report_status(server, namespace, "x", status)
    stored = get(server, namespace, "x")["status"]
    assert {name: stored[name] for name in status} == status


# --- what people see --------------------------------------------------------------------------


def test_columns_before_the_operator_has_seen_a_request(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": wish()}, "create")
    head, row = columns(server, namespace)
    assert head == ["NAME", "SCHEDULE", "STATE", "DONE", "OF", "AGE"]
    assert row[:3] == ["x", "nightly", "Pending"]
    assert len(row) == 4, "beside that only its age is known"


def test_columns_show_how_far_it_is(server: Cluster, namespace: str) -> None:
    raw = manifest("x", backfill(), annotations={"evenkeel.dev/requested-by": "ann"})
    server.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(raw))
    record = RequestRecord(counts={"succeeded": 3, "failed": 1})
    memory = RequestMemory(state=RequestState.RUNNING, record=record)
    report_status(server, namespace, "x", render_request(memory, RequestShown(300)))
    _, row = columns(server, namespace)
    assert row[:5] == ["x", "nightly", "Running", "4", "300"]
    head, row = columns(server, namespace, "-o", "wide")
    assert head[-3:] == ["INCLUDE", "FAILED", "REQUESTED BY"]
    assert row[-3:] == ["NotSucceeded", "1", "ann"]


def test_who_waits_for_the_end_is_told(server: Cluster, namespace: str) -> None:
    send(server, namespace, {"x": wish()}, "create")
    wait = ("-n", namespace, "wait", "rr/x", "--for=condition=Complete", "--timeout=2s")
    assert "timed out" in server.kubectl(*wait, check=False).stderr
    complete = {RequestCondition.COMPLETE.value: Condition("True", "Succeeded", "", 0, 1)}
    memory = RequestMemory(state=RequestState.SUCCEEDED, conditions=complete)
    report_status(server, namespace, "x", render_request(memory, RequestShown(1)))
    assert "condition met" in server.kubectl(*wait).stdout


def test_it_is_found_by_short_name_and_category_and_is_not_in_all(
    server: Cluster, namespace: str
) -> None:
    """`kubectl delete all --all` must not delete what tells who asked for what."""
    send(server, namespace, {"x": wish()}, "create")
    for name in ("rr", "runrequest", "evenkeel"):
        out = server.kubectl("get", name, "-n", namespace, "-o", "name").stdout
        assert out == "runrequest.evenkeel.dev/x\n"
    assert server.kubectl("get", "all", "-n", namespace, "-o", "name").stdout == ""


def test_people_can_ask_what_a_field_means(server: Cluster) -> None:
    out = server.kubectl("explain", "runrequest.spec.include").stdout
    assert "those without a run that succeeded" in " ".join(out.split())
