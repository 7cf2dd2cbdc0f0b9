"""Requests beside an API server that refuses statuses, loses answers, or dies: nothing begins that
no stored status tells of, and nothing is asked for twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from tests.cluster.fault_proxy import Answer, Call, Fault, FaultProxy, Reset, Times, fault_proxy
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.requests import OVER, Requests, counted, hours, kind_of, twice
from tests.cluster.world import Json, World, eventually, template

pytestmark = pytest.mark.timeout(900)

NEVER = {"schedule": "0 0 1 1 *"}
HOURLY = {"interval": {"every": "1h", "offset": "0s"}}
BROKEN = b'{"kind":"Status","status":"Failure","message":"etcdserver: request timed out"}'
WATCHED_S = 4
"""So long nothing may begin: without a cause to wait a run begins within a tenth of a second."""


@dataclass
class Stage:
    requests: Requests
    proxy: FaultProxy
    operator: OperatorProcess
    refused: list[Call] = field(default_factory=list)

    def refuse_statuses(self, name: str) -> None:
        """From now on no status of this request is stored."""
        self.refused.clear()

        def rule(call: Call) -> Fault | None:
            if call.verb != "PATCH" or not call.path.endswith(f"/runrequests/{name}/status"):
                return None
            self.refused.append(call)
            return Answer(503, BROKEN)

        self.proxy.rule = rule

    def answer_again(self) -> None:
        self.proxy.rule = lambda call: None


@pytest.fixture(scope="module")
def running(kwok_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("requests-faults")
    directory = tmp_path_factory.mktemp("requests-faults")
    with (
        fault_proxy(kwok_cluster, directory=directory) as proxy,
        operator(proxy.kubeconfig, directory=directory, flags=("--namespace", ns)) as found,
    ):
        yield Stage(Requests(world, ns), proxy, found)
    world.leave([ns])
    world.close()


@pytest.fixture
def stage(running: Stage) -> Iterator[Stage]:
    yield running
    running.answer_again()
    cluster = running.requests.world.cluster
    cluster.start_api_server()  # where a test has failed meanwhile: other tests need it
    if not running.operator.running:
        running.operator.start()


def test_nothing_begins_before_the_plan_is_stored(stage: Stage) -> None:
    requests, world = stage.requests, stage.requests.world
    world.create(requests.ns, "plan", **HOURLY)
    span, dues = hours(3, 1, now=time.time())
    stage.refuse_statuses("plan-all")

    requests.create("plan-all", "plan", range=span, include="All")

    eventually(lambda: len(stage.refused) >= 2, "its status is refused")
    stage.operator.kill()
    stage.operator.start()
    stage.refused.clear()
    eventually(lambda: len(stage.refused) >= 2, "the next process plans it, and is refused too")
    time.sleep(WATCHED_S)
    kind = kind_of(requests.get("plan-all"))
    assert [tried for tried in world.tries(requests.ns) if kind in tried[0]] == []
    assert "plan" not in requests.status("plan-all")

    stage.answer_again()
    requests.ended("plan-all", "Succeeded")
    assert requests.began("plan-all") == dues


def test_a_job_that_vanishes_is_not_created_before_a_stored_status_names_its_run(
    stage: Stage,
) -> None:
    """A process that was killed would find neither the Job nor a word of its run."""
    requests, world = stage.requests, stage.requests.world
    vanishes = template(ttlSecondsAfterFinished=0, runs_for="500ms")
    world.create(requests.ns, "vanish", **HOURLY, jobTemplate=vanishes)
    span, dues = hours(9, 1, now=time.time())
    requests.create("vanish-all", "vanish", range=span, include="All")
    eventually(lambda: len(requests.began("vanish-all")) >= 2, "two have begun")

    stage.refuse_statuses("vanish-all")
    eventually(lambda: len(stage.refused) >= 2, "its status is refused")
    begun = requests.began("vanish-all")
    time.sleep(WATCHED_S)
    assert requests.began("vanish-all") == begun
    assert len(begun) < len(dues), "all had begun: this proves nothing"
    stage.operator.kill()
    stage.answer_again()
    stage.operator.start()

    status = eventually(
        lambda: (found := requests.status("vanish-all"))["state"] in OVER and found, "it is over"
    )
    made = world.created(requests.ns)
    assert twice(made) == {}
    assert sorted(requests.began("vanish-all")) == dues
    assert sum(counted(status).values()) == len(dues)
    assert set(counted(status)) <= {"succeeded", "lost"}


def test_no_job_goes_before_a_stored_status_tells_of_its_end(stage: Stage) -> None:
    """The next process would launch its run again."""
    requests, world = stage.requests, stage.requests.world
    world.create(requests.ns, "limit", **HOURLY, successfulJobsHistoryLimit=0)
    span, dues = hours(9, 1, now=time.time())
    requests.create("limit-all", "limit", range=span, include="All")
    eventually(lambda: requests.began("limit-all"), "one has begun")

    stage.refuse_statuses("limit-all")

    def has_ended() -> bool:
        """Two of those that are left, which no stored status tells of."""
        return sum("completionTime" in job["status"] for job in requests.jobs("limit-all")) >= 2

    eventually(has_ended, "two have ended, and are left")
    stage.operator.kill()
    stage.answer_again()
    stage.operator.start()

    status = requests.ended("limit-all", "Succeeded")
    assert counted(status) == {"succeeded": len(dues)}
    assert twice(world.created(requests.ns)) == {}
    assert sorted(requests.began("limit-all")) == dues
    eventually(lambda: requests.jobs("limit-all") == [], "history keeps none")


LOST: dict[str, Fault] = {
    "500 and done": Answer(500, BROKEN, after=True),
    "500 and not done": Answer(500, BROKEN),
    "reset and done": Reset(after=True),
    "429": Answer(429, headers={"Retry-After": "1"}),
}


def test_a_trigger_makes_one_request_whatever_becomes_of_the_answer(stage: Stage) -> None:
    requests, world = stage.requests, stage.requests.world
    names = {case: f"trigger-{number}" for number, case in enumerate(LOST)}
    for name in names.values():
        world.create(requests.ns, name, **NEVER)
    rules = [Times(1, fault, of=lambda call: is_make(call)) for fault in LOST.values()]

    def rule(call: Call) -> Fault | None:
        """Each fault once, for one trigger after the other."""
        for each in rules:
            if fault := each(call):
                return fault
        return None

    stage.proxy.rule = rule
    words = ("annotate", "-n", requests.ns, "sj", *names.values(), "evenkeel.dev/trigger=one")
    world.cluster.kubectl(*words)

    def made() -> list[Json]:
        return [each for each in requests.items() if each["spec"]["schedule"] in names.values()]

    eventually(
        lambda: [each["status"]["state"] for each in made()] == ["Succeeded"] * len(LOST),
        "each trigger has its request, which has run",
    )
    assert not any(each.left for each in rules), "a fault did not happen"
    jobs = [job for job in world.created(requests.ns) if job.startswith("trigger-")]
    assert len(jobs) == len(LOST)
    assert twice(jobs) == {}
    eventually(
        lambda: (
            {world.internal(requests.ns, name).get("trigger") for name in names.values()} == {"one"}
        ),
        "each schedule remembers it",
    )


def is_make(call: Call) -> bool:
    return call.verb == "POST" and call.path.endswith("/runrequests")


def test_a_range_goes_on_when_the_api_server_is_back(stage: Stage) -> None:
    requests, world = stage.requests, stage.requests.world
    lasts = template(runs_for="1s")
    world.create(requests.ns, "outage", **HOURLY, jobTemplate=lasts, successfulJobsHistoryLimit=50)
    span, dues = hours(13, 1, now=time.time())
    requests.create("outage-all", "outage", range=span, include="All", maxActive=3)
    eventually(lambda: len(requests.dues("outage-all")) >= 3, "some have begun")

    world.cluster.stop_api_server()
    time.sleep(5)
    world.cluster.start_api_server()

    status = requests.ended("outage-all", "Succeeded", within_s=240)
    assert counted(status) == {"succeeded": len(dues)}
    assert requests.dues("outage-all") == dues  # all Jobs are left, and each was created once
    assert twice(world.created(requests.ns)) == {}
