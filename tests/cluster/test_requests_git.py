"""What Git and annotations carry: a request that is applied again and again runs once, and one
annotation on many schedules makes one request each, whatever becomes of the operator."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.many import create_all
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.requests import OVER, Requests, asked_by, hours, run_request
from tests.cluster.world import GROUP, Json, World, due, eventually

pytestmark = pytest.mark.timeout(900)

TRIGGER = "evenkeel.dev/trigger"
APPLIED = 20
NEVER = {"schedule": "0 0 1 1 *"}
SCHEDULES = 30
SETTLE_S = 180.0


@pytest.fixture(scope="module")
def operated(
    kwok_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Requests, OperatorProcess]]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("git")
    with operator(
        kwok_cluster.kubeconfig,
        directory=tmp_path_factory.mktemp("git"),
        flags=("--namespace", ns),
    ) as running:
        yield Requests(world, ns), running
    world.leave([ns])
    world.close()


def test_a_finished_request_that_is_applied_again_and_again_runs_nothing_again(
    operated: tuple[Requests, OperatorProcess],
) -> None:
    requests, running = operated
    world, ns = requests.world, requests.ns
    world.create(ns, "nightly", interval={"every": "1h", "offset": "0s"})
    span, dues = hours(4, 1, now=time.time())
    wish = run_request("nightly-january", "nightly", range=span, include="All")

    def apply() -> str:
        words = ("apply", "-n", ns, "-f", "-")
        return world.cluster.kubectl(*words, input=json.dumps(wish)).stdout

    assert "created" in apply()
    ended = requests.ended("nightly-january", "Succeeded")
    for number in range(APPLIED):
        assert "unchanged" in apply()
        if number == APPLIED // 2:
            running.kill()
            running.start()
        time.sleep(0.2)
    world.create(ns, "after", schedule="0 0 1 1 *")
    requests.create("after-now", "after")
    requests.ended("after-now", "Succeeded")  # so what was applied before has been looked at

    assert requests.began("nightly-january") == dues
    assert requests.status("nightly-january") == ended


def test_one_annotation_on_many_schedules_makes_one_request_each_and_a_restart_no_more(
    operated: tuple[Requests, OperatorProcess],
) -> None:
    requests, running = operated
    world = requests.world
    names = [f"team-{number:02}" for number in range(SCHEDULES)]

    create_all(world.cluster, requests.ns, {each: dict(NEVER) for each in names})

    annotate(requests, names, "first")
    running.kill()  # wherever it is with them
    running.start()
    made = asked_once(requests, names)
    for name in names:
        (one,) = made[name]
        assert one.startswith(f"{name}-")
    begun = {name: triggered_jobs(requests, name) for name in names}
    assert all(len(jobs) == 1 for jobs in begun.values())

    requests.delete(made[names[-1]][0])  # as its ttl does a day later
    running.kill()
    running.start()
    annotate(requests, names, "first")
    annotate(requests, names[:1], "second")  # what happens after it is seen to happen
    eventually(lambda: len(triggered_jobs(requests, names[0])) == 2, "another id, another run")
    first = names[0]
    eventually(lambda: trigger_in(world.schedule(requests.ns, first)) == "second", "remembered")
    assert {name: triggered_jobs(requests, name) for name in names[1:]} == {
        name: jobs for name, jobs in begun.items() if name != names[0]
    }
    left = requests.items()
    assert len(made_by(left, first)) == 2
    assert made_by(left, names[-1]) == []
    assert all(made_by(left, name) == made[name] for name in names[1:-1])


def annotate(requests: Requests, names: list[str], trigger: str) -> None:
    words = ("annotate", "-n", requests.ns, "--overwrite", "sj", *names, f"{TRIGGER}={trigger}")
    requests.world.cluster.kubectl(*words)


def asked_once(requests: Requests, names: list[str]) -> dict[str, list[str]]:
    """The requests by schedule, once all have ended and every schedule remembers its id."""

    def look() -> dict[str, list[str]]:
        stored = requests.world.items(f"{GROUP}/namespaces/{requests.ns}/scheduledjobs")
        known = {each["metadata"]["name"]: trigger_in(each) for each in stored}
        assert {known[name] for name in names} == {"first"}
        found = [each for each in requests.items() if each["spec"]["schedule"] in names]
        assert len(found) == len(names)
        assert {each["status"]["state"] for each in found} <= set(OVER)
        return {name: made_by(found, name) for name in names}

    return eventually(look, "each has its request, which has ended", within_s=SETTLE_S, every_s=1)


def made_by(requests: list[Json], schedule: str) -> list[str]:
    """The names of the requests among these that ask for this schedule."""
    return [each["metadata"]["name"] for each in requests if each["spec"]["schedule"] == schedule]


def trigger_in(schedule: Json) -> str:
    """The id that this schedule remembers."""
    return str(schedule["status"].get("internal", {}).get("trigger", ""))


def triggered_jobs(requests: Requests, name: str) -> list[tuple[str, str]]:
    """Request and due time of the Jobs of one schedule."""
    return [(asked_by(job), due(job)) for job in requests.world.jobs(requests.ns, name)]
