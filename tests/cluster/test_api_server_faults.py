"""An API server that answers wrongly, late, not at all, or dies, and an operator that lives on."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.fault_proxy import Answer, Call, Fault, Reset, Silent, Slow, Times, fault_proxy
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import (
    BATCH,
    World,
    due,
    eventually,
    every,
    once,
    owner,
    seconds,
    template,
)

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}
MANY = {"successfulJobsHistoryLimit": 500}


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    kwok_cluster.start_api_server()  # where a test has failed meanwhile: other tests need it
    found.leave()
    found.close()


BUSY = Answer(429, headers={"Retry-After": "1"})
BROKEN = (
    b'{"kind":"Status","status":"Failure","message":"etcdserver: request timed out","code":500}'
)
CREATE_FAULTS: dict[str, Fault] = {
    "too-many-requests": BUSY,
    "500-and-done": Answer(500, BROKEN, after=True),
    "500-and-not-done": Answer(500, BROKEN),
    "504-and-done": Answer(504, BROKEN, after=True),
    "504-and-not-done": Answer(504, b"<html>a gateway</html>"),
    "reset-and-done": Reset(after=True),
    "reset-and-not-done": Reset(after=False),
    "no-answer-in-time": Slow(3),
}


def test_whatever_becomes_of_a_creates_answer_there_is_one_job(
    world: World, tmp_path: Path
) -> None:
    spaces = {word: world.namespace(f"faults-{word}") for word in CREATE_FAULTS}
    rules = [
        Times(1, fault, of=lambda call, ns=spaces[word]: call.is_create and f"/{ns}/" in call.path)
        for word, fault in CREATE_FAULTS.items()
    ]

    def rule(call: Call) -> Fault | None:
        for each in rules:
            if fault := each(call):
                return fault
        return None

    with fault_proxy(world.cluster, directory=tmp_path) as proxy:
        proxy.rule = rule
        flags = [word for ns in spaces.values() for word in ("--namespace", ns)]
        settings = SETTINGS | {"REQUEST_TIMEOUT": "1.5"}
        with operator(
            proxy.kubeconfig, directory=tmp_path, settings=settings, flags=flags
        ) as running:
            at = once(due_in=20)
            for ns in spaces.values():
                world.create(ns, "it", at=at)
            for word, ns in spaces.items():
                eventually(
                    lambda ns=ns: world.counts(ns, "it") == {"succeeded": 1}, f"one run: {word}",
                    within_s=150,
                )  # fmt: skip
            assert [each.left for each in rules] == [0] * len(rules), "a fault did not happen"
            unknown = running.metrics().get('evenkeel_creates_total{verdict="unknown"}', 0)
            assert unknown >= len([word for word in spaces if word != "too-many-requests"])
        for word, ns in spaces.items():
            assert len(world.jobs(ns)) == 1, word


GONE = json.dumps(
    {
        "type": "ERROR",
        "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "gone"},
    }
).encode()


def test_a_watch_that_is_too_old_is_begun_again_and_nothing_is_missed(
    world: World, tmp_path: Path
) -> None:
    """Of the Jobs: 410 as a status, 410 in the stream, an end without a word. Of the schedules the
    last two: no API server answers their watch by the first, and kopf would end over it."""
    ns = world.namespace("faults-watch")
    faults = {
        "/jobs": [Answer(410, b'{"code":410}'), Answer(200, GONE + b"\n"), Answer(200, b"")],
        "/scheduledjobs": [Answer(200, GONE + b"\n"), Answer(200, b"")],
    }
    rules = [
        Times(1, fault, of=lambda call, kind=kind: call.path.endswith(kind) and call.is_watch)
        for kind, some in faults.items()
        for fault in some
    ]

    def rule(call: Call) -> Fault | None:
        for each in rules:
            if fault := each(call):
                return fault
        return None

    with fault_proxy(world.cluster, directory=tmp_path) as proxy:
        proxy.rule = rule
        with operator(
            proxy.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=("--namespace", ns)
        ) as running:
            world.create(ns, "it", interval=every(1), **MANY)
            eventually(
                lambda: world.counts(ns, "it").get("succeeded", 0) >= 3, "it runs", within_s=150
            )
            eventually(lambda: [each.left for each in rules] == [0] * 5, "each fault happens")
            gone = 'evenkeel_watch_restarts_total{reason="gone"}'
            eventually(lambda: running.metrics().get(gone, 0) >= 2, "both are told of")
            world.edit(ns, "it", suspend=True)
            eventually(
                lambda: world.condition(ns, "it", "Active")["reason"] == "Suspended", "heard"
            )
        lists = [
            call
            for call in proxy.calls
            if call.path.endswith("/jobs") and call.verb == "GET" and not call.is_watch
        ]
        assert len(lists) < 15, "a hot loop of lists"
        jobs = world.jobs(ns)
        assert len({due(job) for job in jobs}) == len(jobs)


def test_schedules_that_come_and_go_while_their_watch_is_silent_are_seen_by_lists(
    world: World, tmp_path: Path
) -> None:
    ns = world.namespace("faults-silent")
    world.create(ns, "stays", interval=every(1), **MANY)

    def rule(call: Call) -> Fault | None:
        return Silent() if call.path.endswith("/scheduledjobs") and call.is_watch else None

    with fault_proxy(world.cluster, directory=tmp_path) as proxy:
        proxy.rule = rule
        settings = SETTINGS | {"PRUNE": "1"}
        with operator(
            proxy.kubeconfig, directory=tmp_path, settings=settings, flags=("--namespace", ns)
        ) as running:
            at = once(due_in=40)
            world.create(ns, "goes", at=at)
            eventually(lambda: world.status(ns, "goes").get("nextRunTime") == at, "it is known")
            assert running.schedules() == 2

            world.delete(ns, "goes")  # nothing is due, so no write of ours meets its absence

            eventually(lambda: running.schedules() == 1, "it is forgotten")
            assert time.time() < seconds(at), "this machine is too slow: it came to its time"
            eventually(
                lambda: any(due(job) > at for job in world.jobs(ns, "stays")),
                "its time has passed",
                within_s=150,
            )
        assert any(name.startswith("stays-") for name in world.created(ns))
        assert not any(name.startswith("goes-") for name, _ in world.tries(ns))


GRACE_S = 4
REST_S = 150  # the pauses of the watches and of the status writes have grown to 30 s each by then


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "outage_s",
    [20, pytest.param(100, marks=pytest.mark.long)],  # kopf by itself gives up after 54 s
    ids=["short", "long"],
)
def test_an_api_server_that_dies_and_comes_back(
    world: World, tmp_path: Path, outage_s: int
) -> None:
    """Longer than grace: every due time is accounted for, none ran twice."""
    spaces = {policy: world.namespace("faults-outage") for policy in ("Latest", "Skip", "All")}
    flags = [word for ns in spaces.values() for word in ("--namespace", ns)]
    settings = SETTINGS | {"GRACE": f"{GRACE_S}", "REQUEST_TIMEOUT": "5"}
    with operator(
        world.cluster.kubeconfig, directory=tmp_path, settings=settings, flags=flags
    ) as mine:
        for policy, ns in spaces.items():
            limit = {"catchUpLimit": 500} if policy == "All" else {}
            world.create(ns, "it", interval=every(1), missedRuns=policy, **limit, **MANY)
        for ns in spaces.values():
            eventually(lambda ns=ns: len(world.jobs(ns)) >= 2, "it runs")
        world.cluster.stop_api_server()
        died_at = time.time()
        time.sleep(outage_s)
        eventually(lambda: mine.get("/livez")[0] == 200, "it lives", within_s=20)
        begun_at = time.time()
        world.cluster.start_api_server()
        back_at = time.time()
        for ns in spaces.values():
            eventually(
                lambda ns=ns: any(seconds(due(job)) > back_at + 3 for job in world.jobs(ns)),
                "it runs again",
                within_s=150,
            )
            world.edit(ns, "it", suspend=True)
        for policy, ns in spaces.items():
            dues, counts = verdicts(world, ns, "it")
            in_outage = [each for each in dues if died_at + 1 < each < begun_at - GRACE_S - 2]
            if policy == "All":
                assert counts.get("missed", 0) == 0
            elif policy == "Skip":
                assert in_outage == []
                assert counts["missed"] >= 8
            else:
                assert len(in_outage) <= 2, "more than the latest was caught up"
                assert counts["missed"] >= 8


def verdicts(world: World, ns: str, name: str) -> tuple[list[float], dict[str, int]]:
    """Of a schedule of every second that was suspended: the due times that ran, and how many came
    to which end; every due time has one, and none ran twice."""
    eventually(
        lambda: (
            world.condition(ns, name, "Active")["reason"] == "Suspended"
            and not world.waiting(ns, name)
            and not world.status(ns, name)["activeCount"]
            # A create under way when it was suspended is no Job yet, and does not wait.
            and world.counts(ns, name).get("succeeded") == len(world.jobs(ns, name))
        ),
        "it has come to rest",
        within_s=REST_S,
    )
    dues = [seconds(due(job)) for job in world.jobs(ns, name)]
    assert len(set(dues)) == len(dues), "a due time ran twice"
    first, last = min(dues), seconds(world.internal(ns, name)["mark"])
    counts = world.counts(ns, name)
    assert counts["succeeded"] == len(dues)
    assert sum(counts.values()) == last - first + 1, "a due time has no verdict, or two"
    return dues, counts


IN_FLIGHT, RETRY_AFTER_S, DEADLINE_S = 16, 2, 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("grace_s", "full_s"),
    [(4, 24), pytest.param(30, 60, marks=pytest.mark.long)],
    ids=["short", "long"],
)
def test_an_api_server_that_has_no_room_for_longer_than_grace(
    world: World, tmp_path: Path, grace_s: int, full_s: int
) -> None:
    """Every create is answered by 429. Afterwards what became of each due time is what its
    schedule says about due times that nobody launched in time."""
    ns = world.namespace("faults-full")
    policies: dict[str, dict[str, Any]] = {
        "latest": {"missedRuns": "Latest"},
        "skip": {"missedRuns": "Skip"},
        "deadline": {"missedRuns": "Latest", "startingDeadlineSeconds": DEADLINE_S},
    }
    flags = ("--namespace", ns)
    settings = SETTINGS | {"GRACE": f"{grace_s}", "CREATES_IN_FLIGHT": f"{IN_FLIGHT}"}
    refused: list[Call] = []
    full = threading.Event()

    def rule(call: Call) -> Fault | None:
        if not (full.is_set() and call.is_create):
            return None
        refused.append(call)
        return Answer(429, headers={"Retry-After": f"{RETRY_AFTER_S}"})

    with fault_proxy(world.cluster, directory=tmp_path) as proxy:
        proxy.rule = rule
        with operator(proxy.kubeconfig, directory=tmp_path, settings=settings, flags=flags):
            for policy, words in policies.items():
                world.create(ns, policy, interval=every(1), **words, **MANY)
            for policy in policies:
                eventually(lambda name=policy: len(world.jobs(ns, name)) >= 2, "it runs")
            full.set()
            began_at = time.time()
            at = once(due_in=8)
            for policy, words in policies.items():
                world.create(ns, f"once-{policy}", at=at, **words)
            assert time.time() < seconds(at), "this machine is too slow"
            time.sleep(full_s)
            ended_at = time.time()
            full.clear()
            assert 0 < len(refused) <= IN_FLIGHT * ((ended_at - began_at) / RETRY_AFTER_S + 2)
            for policy in policies:
                eventually(
                    lambda name=policy: any(
                        seconds(due(job)) > ended_at + 3 for job in world.jobs(ns, name)
                    ),
                    "it runs again",
                    within_s=150,
                )
                world.edit(ns, policy, suspend=True)
            for policy in policies:
                dues, counts = verdicts(world, ns, policy)
                patience_s = DEADLINE_S if policy == "deadline" else grace_s
                # It counts from the first refusal, and the pause that the server asked for is over
                # a moment after the server has room.
                too_old = ended_at - patience_s - 2 * RETRY_AFTER_S - 1
                in_vain = [each for each in dues if began_at + 1 < each < too_old]
                assert len(in_vain) <= (2 if policy == "latest" else 0)
                assert counts["missed"] >= too_old - began_at - 3
            for policy in policies:
                expected = {"succeeded" if policy == "latest" else "missed": 1}
                eventually(
                    lambda name=f"once-{policy}", ends=expected: world.counts(ns, name) == ends,
                    f"once-{policy} has its one end",
                )
            [row] = world.recent(ns, "once-deadline")
            assert row["reason"] == "deadline"


@pytest.mark.timeout(900)
def test_what_etcd_has_compacted_away_meanwhile_is_learnt_by_a_list(
    world: World, tmp_path: Path
) -> None:
    """The operator stands still while a Job of its goes, the API server is begun again and etcd
    forgets the past: the version from which it would go on is too old, by the server's own word."""
    ns = world.namespace("faults-compacted")
    flags = ("--namespace", ns)
    with operator(
        world.cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags
    ) as running:
        hangs = template(fate="hang")
        world.create(ns, "goes", interval=every(1), concurrencyPolicy="Forbid", jobTemplate=hangs)
        world.create(ns, "stays", interval=every(1), **MANY)
        eventually(lambda: world.counts(ns, "stays").get("succeeded", 0) >= 2, "it runs")
        [job] = eventually(lambda: world.jobs(ns, "goes"), "the one that will vanish runs")
        gone = f"{BATCH}/namespaces/{ns}/jobs/{job['metadata']['name']}"
        with running.paused():
            world.cluster.stop_api_server()  # what happens from here on no watch of ours is told
            world.cluster.start_api_server()
            world.call("DELETE", f"{gone}?propagationPolicy=Background")
            world.cluster.stop_api_server()
            compact(world.cluster)
            world.cluster.start_api_server()
        eventually(
            lambda: running.metrics().get('evenkeel_watch_restarts_total{reason="gone"}', 0) >= 1,
            "the server says that it is gone",
            within_s=180,
        )
        eventually(lambda: world.counts(ns, "goes").get("lost") == 1, "the vanished is lost")
        enough = world.counts(ns, "stays")["succeeded"] + 3
        eventually(
            lambda: world.counts(ns, "stays")["succeeded"] >= enough, "it goes on", within_s=150
        )
        world.create(ns, "new", at=once(due_in=10))
        eventually(lambda: world.counts(ns, "new") == {"succeeded": 1}, "schedules are seen")
    jobs = world.jobs(ns)
    assert len({(due(job), owner(job)["uid"]) for job in jobs}) == len(jobs)


def compact(cluster: Cluster) -> None:
    """Have etcd forget all that is not of now, by the JSON form of its own protocol."""
    socket_path = cluster.kubeconfig.parent / "etcd.sock"

    def ask(what: str, question: dict[str, object]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(socket_path))
        connection.request("POST", f"/v3/kv/{what}", json.dumps(question))
        answer = connection.getresponse()
        content: dict[str, Any] = json.loads(answer.read())
        connection.close()
        assert answer.status == 200, content
        return content

    revision = ask("range", {"key": "AA==", "limit": 1})["header"]["revision"]
    ask("compaction", {"revision": revision, "physical": True})
