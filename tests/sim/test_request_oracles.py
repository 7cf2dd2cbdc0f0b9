"""The oracles of requests: what is planted is found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.sim.controllers import Fate
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import play
from tests.sim.request_differences import differences_of
from tests.sim.requested import without_requests
from tests.sim.scenario import TWENTY, right, world
from tests.sim.server import Json
from tests.sim.world import NEW_YEAR, create, every, request, trigger

from evenkeel import rfc3339
from evenkeel.ledger.rows import RunRow
from evenkeel.model import RunState

RANGE = {"from": rfc3339.show(NEW_YEAR - 50), "to": rfc3339.show(NEW_YEAR + 61)}
STORY = world(
    create(1, "a", TWENTY),
    create(1, "b", every(3_600)),
    request(70, "r", "a", range=RANGE, include="All", maxActive=2),
    trigger(80, "b", "now"),
    lasts_s=200,
    fate=lambda job: Fate(0.5, 3),
)
"""Of -40, -20, 0, 20, 40 and 60."""


@pytest.fixture
def outcome() -> Outcome:
    return right(play(STORY))


def uid_of(outcome: Outcome, name: str = "r") -> str:
    uid: str = outcome.request(name)["metadata"]["uid"]
    return uid


def tell(outcome: Outcome, change: Callable[[Json], Any], *, ended: bool | None = None) -> None:
    """Change the stored statuses of the request: all of them, or those before or from its end."""
    uid, stored = uid_of(outcome), []
    for at, status in outcome.request_statuses[uid]:
        told = copy.deepcopy(status)
        if ended is None or (told["state"] in ("Succeeded", "Failed")) is ended:
            change(told)
        stored.append((at, told))
    outcome.request_statuses[uid] = stored


def a_second_job(outcome: Outcome) -> None:
    first = outcome.jobs_asked_for("r")[0]
    outcome.all_jobs["again"] = replace(first, at=first.at + 9)


def a_missing_job(outcome: Outcome) -> None:
    lost = outcome.jobs_asked_for("r")[2]
    (uid,) = (uid for uid, job in outcome.all_jobs.items() if job is lost)
    del outcome.all_jobs[uid]


def a_plan_that_came_late(outcome: Outcome) -> None:
    uid = uid_of(outcome)
    outcome.request_statuses[uid] = [(at + 15, told) for at, told in outcome.request_statuses[uid]]


def a_job_outside_the_plan(outcome: Outcome) -> None:
    def unplan(status: Json) -> None:
        if plan := status.get("plan"):
            plan["bits"] = "fA=="  # 0b011111: the first of six is not to run
            status["total"] = 5

    tell(outcome, unplan)


def a_plan_that_changes(outcome: Outcome) -> None:
    def lose(status: Json) -> None:
        status["plan"]["bits"] = "+A=="

    tell(outcome, lose, ended=True)


def two_ends(outcome: Outcome) -> None:
    def both(status: Json) -> None:
        status["conditions"].append({"type": "Failed", "status": "True", "reason": "RunsFailed"})

    tell(outcome, both, ended=True)


def an_end_that_is_taken_back(outcome: Outcome) -> None:
    stored = outcome.request_statuses[uid_of(outcome)]
    stored.append((stored[-1][0] + 1, stored[-2][1]))


def a_wrong_count(outcome: Outcome) -> None:
    def miscount(status: Json) -> None:
        status["counts"]["succeeded"] -= 1
        status["done"] -= 1

    tell(outcome, miscount, ended=True)


def a_run_that_is_nowhere(outcome: Outcome) -> None:
    tell(outcome, lambda status: status.pop("active", None), ended=False)


def no_end(outcome: Outcome) -> None:
    stored = outcome.request_statuses[uid_of(outcome)]
    del stored[-1:]


def more_at_once(outcome: Outcome) -> None:
    for spec in outcome.specs[uid_of(outcome)]:
        spec["spec"]["maxActive"] = 1


def begun_while_suspended(outcome: Outcome) -> None:
    uid = uid_of(outcome)
    (item,) = outcome.specs[uid]
    outcome.specs[uid] = [{**item, "spec": {**item["spec"], "suspend": True}}]


def begun_while_its_schedule_was_suspended(outcome: Outcome) -> None:
    uid = outcome.schedule("a")["metadata"]["uid"]
    (item,) = outcome.specs[uid]
    outcome.specs[uid] = [{**item, "spec": {**item["spec"], "suspend": True}}]


def deleted_without_a_ttl(outcome: Outcome) -> None:
    outcome.requests_deleted[uid_of(outcome)] = (outcome.now - 5, "")


def begun_once_deleted(outcome: Outcome) -> None:
    outcome.requests_deleted[uid_of(outcome)] = (NEW_YEAR + 70.1, "user")


def a_ttl_that_passed(outcome: Outcome) -> None:
    outcome.request("r")["spec"]["ttlSecondsAfterFinished"] = 1


def a_success_that_runs_again(outcome: Outcome) -> None:
    outcome.request("r")["spec"]["include"] = "NotSucceeded"


def a_run_that_runs_again(outcome: Outcome) -> None:
    outcome.request("r")["spec"]["include"] = "NotRun"


def another_row(outcome: Outcome) -> None:
    run = outcome.jobs_asked_for("r")[0].run
    cold = outcome.vault.tables.runs[run]
    row: RunRow = replace(cold.row, state=RunState.FAILED)
    outcome.vault.tables.runs[run] = replace(cold, row=row)


def no_row(outcome: Outcome) -> None:
    del outcome.vault.tables.runs[outcome.jobs_asked_for("r")[0].run]


def a_trigger_that_works_twice(outcome: Outcome) -> None:
    requests = outcome.server.requests
    (made,) = (
        one for one in requests if one.created and "/runrequests" in one.path and one.who != "user"
    )
    requests.append(made)


def a_trigger_that_is_ignored(outcome: Outcome) -> None:
    outcome.schedule("b")["status"]["internal"].pop("trigger")


def kept_by_the_schedule(outcome: Outcome) -> None:
    uid = outcome.schedule("a")["metadata"]["uid"]
    told = copy.deepcopy(outcome.statuses[uid][-1])
    told[1]["internal"]["waiting"] = [{"due": RANGE["from"], "kind": "q0abcdef"}]
    outcome.statuses[uid].append(told)


PLANTS = {
    a_second_job: "not one Job each",
    a_missing_job: "has succeeded, and 1 had no Job",
    a_plan_that_came_late: "no status had the plan",
    a_job_outside_the_plan: "and it is not in the plan",
    a_plan_that_changes: "its plan has changed",
    two_ends: "is both Complete and Failed",
    an_end_that_is_taken_back: "its state was Succeeded, and is Running",
    a_wrong_count: "5 of 6 are done",
    a_run_that_is_nowhere: "active of",
    no_end: "nothing has happened for",
    more_at_once: "2 are active",
    begun_while_suspended: "although the request was suspended",
    begun_while_its_schedule_was_suspended: "although its schedule was suspended",
    deleted_without_a_ttl: "was deleted by the operator",
    begun_once_deleted: "s after the request was deleted",
    a_ttl_that_passed: "s after its ttl",
    a_success_that_runs_again: "NotSucceeded plans 20",
    a_run_that_runs_again: "NotRun plans 20",
    another_row: "failed, and its status says succeeded",
    no_row: "no row, and its status says succeeded",
    a_trigger_that_works_twice: "was made 2 times",
    a_trigger_that_is_ignored: "was triggered by now, and its status says None",
    kept_by_the_schedule: "its status keeps a requested run",
}


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.__name__ for plant in PLANTS])
def test_what_is_planted_is_found(plant: Callable[[Outcome], None], outcome: Outcome) -> None:
    plant(outcome)

    assert any(PLANTS[plant] in wrong for wrong in violations(outcome))


def test_a_run_by_schedule_that_requests_cost_is_found(outcome: Outcome) -> None:
    alone = play(without_requests(STORY))
    assert [*differences_of(outcome, alone)] == []

    run = outcome.jobs_of("a")[0].run
    cold = outcome.vault.tables.runs[run]
    row: RunRow = replace(cold.row, state=RunState.SKIPPED)
    outcome.vault.tables.runs[run] = replace(cold, row=row)

    (found,) = differences_of(outcome, alone)
    assert "skipped with 1 Jobs, and without requests succeeded with 1 Jobs" in found
