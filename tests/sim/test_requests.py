"""Requests, on the simulated cluster: what people ask for, and what they get."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim import modes
from tests.sim.controllers import Fate, kind_of, run_of
from tests.sim.network import Rule
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.reading import condition_of
from tests.sim.request_differences import request_differences
from tests.sim.request_reading import why_ended
from tests.sim.requested import with_requests
from tests.sim.scenario import TWENTY, dues, right, with_faults, world
from tests.sim.server import Json
from tests.sim.world import (
    NEW_YEAR,
    REQUESTS_FROM,
    create,
    delete,
    delete_request,
    every,
    from_seed,
    patch,
    patch_request,
    request,
    trigger,
)

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE

NOW = 90.0
"""When people ask, in most stories: four runs of TWENTY are over."""


def at(second: float) -> str:
    return rfc3339.show(NEW_YEAR + int(second))


def past(first: float, end: float, **more: Any) -> Json:
    """The spec of a range."""
    return {"range": {"from": at(first), "to": at(end)}, **more}


def asked_dues(outcome: Outcome, name: str = "r") -> list[int]:
    """The due times of its Jobs, in the order of their creation."""
    return [job.due - NEW_YEAR for job in outcome.jobs_asked_for(name)]


def end_of(outcome: Outcome, name: str = "r") -> tuple[str, str, dict[str, int]]:
    """How it ended, why, and the counts."""
    status = outcome.request(name)["status"]
    counts = {state: count for state, count in (status.get("counts") or {}).items() if count}
    return status["state"], why_ended(status), counts


def fails_by_schedule(*seconds: int):
    """These runs by schedule fail; whoever is asked for succeeds."""

    def fate(job: Json) -> Fate:
        run = run_of(job)
        fails = kind_of(job) == BY_SCHEDULE and run is not None and run[1] - NEW_YEAR in seconds
        return Fate(0.5, 3, succeeds=not fails)

    return fate


FAILS = Fate(0.5, 3, succeeds=False)


# --- one run --------------------------------------------------------------------------------------


def test_who_asks_for_a_run_gets_it_at_once() -> None:
    outcome = right(play(world(create(1, "a", every(3_600)), request(10, "r", "a"))))

    assert asked_dues(outcome) == [10]
    assert end_of(outcome) == ("Succeeded", "Succeeded", {"succeeded": 1})
    assert dues(outcome) == []


def test_a_run_for_later_waits_for_its_time() -> None:
    outcome = right(play(world(create(1, "a", every(3_600)), request(10, "r", "a", at=at(50)))))

    (job,) = outcome.jobs_asked_for("r")
    assert 50 <= job.at - NEW_YEAR < 51
    assert end_of(outcome)[0] == "Succeeded"


def test_a_run_for_a_time_that_has_passed_begins_at_once() -> None:
    story = world(create(1, "a", every(3_600)), request(10, "r", "a", at="2026-12-24T18:00:00Z"))
    outcome = right(play(story))

    (job,) = outcome.jobs_asked_for("r")
    assert job.at - NEW_YEAR < 12
    assert rfc3339.show(job.due) == "2026-12-24T18:00:00Z"


def test_a_run_of_the_same_due_time_hides_no_run_by_schedule() -> None:
    outcome = right(play(world(create(1, "a", TWENTY), request(10, "r", "a", at=at(40)))))

    assert asked_dues(outcome) == [40]
    assert dues(outcome) == [20, 40, 60, 80]


def test_a_requested_run_that_fails_is_tried_again_as_the_schedule_says() -> None:
    spec = every(3_600, retry={"limit": 1, "delaySeconds": 5})
    outcome = right(
        play(world(create(1, "a", spec), request(10, "r", "a"), fate=lambda job: FAILS))
    )

    assert [job.attempt for job in outcome.jobs_asked_for("r")] == [1, 2]
    assert end_of(outcome) == ("Failed", "RunsFailed", {"failed": 1})


def test_requested_failures_pause_no_schedule() -> None:
    story = world(
        create(1, "a", {**TWENTY, "pauseAfterFailures": 1}),
        request(10, "r", "a"),
        fate=lambda job: FAILS if kind_of(job) != BY_SCHEDULE else Fate(0.5, 3),
    )
    outcome = right(play(story))

    assert end_of(outcome)[1] == "RunsFailed"
    assert dues(outcome) == [20, 40, 60, 80]
    assert outcome.status("a")["consecutiveFailures"] == 0


def test_the_requested_value_of_a_parameter_is_what_its_containers_get() -> None:
    spec = every(3_600, parameters=[{"name": "DAY", "value": "today"}])
    given = [{"name": "DAY", "value": "$(HOME)"}]
    right(play(world(create(1, "a", spec), request(10, "r", "a", parameters=given))))


# --- a range --------------------------------------------------------------------------------------


def test_what_failed_runs_again() -> None:
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **past(20, 81)),
        lasts_s=150,
        fate=fails_by_schedule(20, 60),
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == [20, 60]
    assert end_of(outcome) == ("Succeeded", "Succeeded", {"succeeded": 2})


def test_what_never_ran_runs() -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(30, "a", suspend=True),
        patch(70, "a", suspend=False),
        request(NOW, "r", "a", **past(20, 81, include="NotRun")),
        lasts_s=150,
        fate=fails_by_schedule(20),
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == [40, 60]


def test_all_run_the_newest_first() -> None:
    wish = past(20, 81, include="All", order="NewestFirst", maxActive=1)
    story = world(create(1, "a", TWENTY), request(NOW, "r", "a", **wish), lasts_s=150)

    assert asked_dues(right(play(story))) == [80, 60, 40, 20]


def test_a_range_in_which_all_succeeded_has_nothing_to_do() -> None:
    story = world(create(1, "a", TWENTY), request(NOW, "r", "a", **past(20, 81)), lasts_s=150)
    outcome = right(play(story))

    assert asked_dues(outcome) == []
    assert end_of(outcome) == ("Succeeded", "NothingToDo", {})


def test_no_more_run_at_once_than_max_active() -> None:
    wish = past(20, 81, include="All", maxActive=2)
    story = world(create(1, "a", TWENTY), request(NOW, "r", "a", **wish), lasts_s=150)
    outcome = right(play(story))

    jobs = outcome.jobs_asked_for("r")
    assert jobs[1].at < jobs[0].ended_at <= jobs[2].at


def test_after_three_failures_in_a_row_no_more_begin() -> None:
    wish = past(20, 101, include="All", stopAfterFailures=2)
    story = world(
        create(1, "a", TWENTY), request(110, "r", "a", **wish), lasts_s=180, fate=lambda job: FAILS
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == [20, 40]
    assert end_of(outcome) == ("Failed", "StoppedAfterFailures", {"failed": 2})


def test_a_dry_run_says_what_would_run_and_runs_nothing() -> None:
    wish = past(20, 81, dryRun=True)
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **wish),
        lasts_s=150,
        fate=fails_by_schedule(20, 60),
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == []
    assert outcome.request("r")["status"]["dues"] == {"count": 2, "first": [at(20), at(60)]}
    assert end_of(outcome) == ("Succeeded", "DryRun", {})


def test_an_edit_of_the_timing_does_not_change_what_is_planned() -> None:
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **past(20, 81, include="All")),
        patch(NOW + 2, "a", interval={"every": "25s", "offset": "0s"}),
        lasts_s=150,
    )

    assert asked_dues(right(play(story))) == [20, 40, 60, 80]


# --- halts ----------------------------------------------------------------------------------------


def test_a_suspended_request_begins_nothing_until_it_is_resumed() -> None:
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **past(20, 81, include="All"), suspend=True),
        patch_request(NOW + 30, "r", suspend=False),
        lasts_s=200,
    )
    outcome = right(play(story))

    assert outcome.jobs_asked_for("r")[0].at >= NEW_YEAR + NOW + 30
    assert end_of(outcome)[0] == "Succeeded"


def test_a_request_suspended_in_its_middle_goes_on_where_it_was() -> None:
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **past(20, 81, include="All")),
        patch_request(NOW + 5, "r", suspend=True),
        patch_request(NOW + 40, "r", suspend=False),
        lasts_s=200,
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == [20, 40, 60, 80]
    assert end_of(outcome)[2] == {"succeeded": 4}


def test_a_suspended_schedule_runs_what_is_asked_for_by_force_alone() -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(50, "a", suspend=True),
        request(60, "r", "a"),
        request(60, "forced", "a", force=True),
        lasts_s=120,
    )
    outcome = right(play(story))

    assert asked_dues(outcome) == []
    assert asked_dues(outcome, "forced") == [60]
    assert condition_of(outcome.request("r")["status"], "Ready")["message"]


def test_a_request_for_a_schedule_that_never_comes_is_refused_after_a_minute() -> None:
    outcome = right(play(world(request(5, "r", "nobody"), lasts_s=120)))

    assert end_of(outcome) == ("Refused", "ScheduleNotFound", {})


def test_a_request_that_comes_before_its_schedule_waits_for_it() -> None:
    outcome = right(play(world(request(5, "r", "a"), create(30, "a", every(3_600)))))

    assert end_of(outcome)[0] == "Succeeded"


def test_a_schedule_that_is_deleted_ends_its_requests() -> None:
    story = world(
        create(1, "a", TWENTY),
        request(NOW, "r", "a", **past(20, 81, include="All")),
        delete(NOW + 5, "a"),
        create(NOW + 7, "a", TWENTY),
        lasts_s=200,
    )
    outcome = right(play(story))

    assert end_of(outcome)[:2] == ("Failed", "ScheduleGone")
    assert len(asked_dues(outcome)) <= 2


def test_a_request_that_is_deleted_begins_nothing_more_and_its_job_runs_on() -> None:
    story = world(
        create(1, "a", every(3_600, offset=1)),
        request(10, "r", "a", **past(-7_200, 0, include="All")),
        delete_request(12, "r"),
        fate=lambda job: Fate(0.5, 20),
    )
    outcome = right(play(story))

    (job,) = outcome.jobs_asked_for("r")
    assert job.ended == "succeeded"


def test_a_finished_request_is_deleted_when_its_ttl_has_passed() -> None:
    story = world(create(1, "a", every(3_600)), request(10, "r", "a", ttlSecondsAfterFinished=20))
    outcome = right(play(story))

    (deleted,) = outcome.requests_deleted.values()
    assert 33 <= deleted[0] - NEW_YEAR <= 40


# --- triggers -------------------------------------------------------------------------------------


def test_one_annotation_on_several_schedules_makes_one_request_each() -> None:
    names = ("a", "b", "c")
    story = world(
        *(create(1, name, every(3_600)) for name in names),
        *(trigger(10, name, "now") for name in names),
    )
    outcome = right(play(story, Trouble(kills=((12, 1.0), (40, 5.0)))))

    assert len(outcome.requests) == len(names)
    assert {end_of(outcome, item["metadata"]["name"])[0] for item in outcome.requests.values()} == {
        "Succeeded"
    }


def test_the_same_annotation_again_asks_for_nothing() -> None:
    story = world(
        create(1, "a", every(3_600)),
        trigger(10, "a", "now"),
        trigger(30, "a", "now"),
        trigger(50, "a", "again"),
    )
    outcome = right(play(story))

    assert len(outcome.requests) == 2


# --- meetings -------------------------------------------------------------------------------------


LONG = Fate(0.5, 30)


@pytest.mark.parametrize("policy", ["Forbid", "Replace", "Queue"])
def test_a_run_by_schedule_that_meets_a_waiting_kind_of_run_waits_for_it(policy: str) -> None:
    story = world(
        create(1, "a", every(60, concurrencyPolicy=policy)),
        request(50, "r", "a"),
        lasts_s=115,
        fate=lambda job: LONG if kind_of(job) != BY_SCHEDULE else Fate(0.5, 5),
    )
    outcome = right(play(story))

    (asked,), (job,) = outcome.jobs_asked_for("r"), outcome.jobs_of("a")
    assert (asked.ended, job.ended) == ("succeeded", "succeeded")
    assert job.at >= asked.ended_at


@pytest.mark.parametrize("policy", ["Forbid", "Replace", "Queue"])
def test_a_run_that_is_asked_for_waits_for_the_place(policy: str) -> None:
    story = world(
        create(1, "a", every(60, concurrencyPolicy=policy)),
        request(65, "r", "a"),
        lasts_s=115,
        fate=lambda job: LONG if kind_of(job) == BY_SCHEDULE else Fate(0.5, 5),
    )
    outcome = right(play(story))

    (asked,), (job,) = outcome.jobs_asked_for("r"), outcome.jobs_of("a")
    assert (asked.ended, job.ended) == ("succeeded", "succeeded")
    assert asked.at >= job.ended_at


@pytest.mark.parametrize("policy", ["Forbid", "Replace", "Queue"])
def test_a_run_that_may_overlap_holds_no_place(policy: str) -> None:
    story = world(
        create(1, "a", every(60, concurrencyPolicy=policy)),
        request(50, "r", "a", overlap="Allow"),
        lasts_s=115,
        fate=lambda job: LONG,
    )
    outcome = right(play(story))

    (asked,), (job,) = outcome.jobs_asked_for("r"), outcome.jobs_of("a")
    assert (asked.ended, job.ended) == ("succeeded", "succeeded")
    assert job.at - NEW_YEAR < 61


# --- faults ---------------------------------------------------------------------------------------


BACKFILL = world(
    create(1, "a", TWENTY),
    request(NOW, "r", "a", **past(-200, 81, include="All", maxActive=3)),
    lasts_s=260,
)


@pytest.mark.parametrize("down_s", [0.1, 5.0, 40.0])
def test_a_backfill_survives_kills(down_s: float) -> None:
    kills = tuple((NOW + second, down_s) for second in (0.02, 0.5, 3, 8, 50))
    outcome = right(play(BACKFILL, Trouble(kills=kills)))

    assert sorted(asked_dues(outcome)) == list(range(-200, 81, 20))
    assert end_of(outcome) == ("Succeeded", "Succeeded", {"succeeded": 15})


def test_a_backfill_whose_statuses_cannot_be_stored_goes_on_when_they_can() -> None:
    outcome = with_faults(
        BACKFILL, Rule("PATCH", "runrequests/", "500", from_s=NOW + 3, until_s=NOW + 40)
    )

    assert end_of(outcome)[2] == {"succeeded": 15}


# --- seeds ----------------------------------------------------------------------------------------


def wrong_seeds(first: int, count: int) -> dict[int, list[str]]:
    seeds = range(REQUESTS_FROM + first, REQUESTS_FROM + first + count)
    return {seed: found for seed in seeds if (found := modes.storm(seed)[0])}


def changed_by_requests(first: int, count: int) -> dict[int, list[str]]:
    """Runs by schedule that are not what they would be without requests, by seed."""
    seeds = range(REQUESTS_FROM + first, REQUESTS_FROM + first + count)
    worlds = {seed: with_requests(seed, from_seed(seed)) for seed in seeds}
    found = {seed: request_differences(world)[0] for seed, world in worlds.items()}
    return {seed: differences for seed, differences in found.items() if differences}


@pytest.mark.parametrize("first", [0, 20])
def test_after_every_storm_all_that_was_asked_for_comes_right(first: int) -> None:
    assert wrong_seeds(first, 20) == {}


@pytest.mark.parametrize("first", [20, 30])
def test_runs_by_schedule_are_what_they_would_be_without_requests(first: int) -> None:
    assert changed_by_requests(first, 10) == {}


@pytest.mark.long
@pytest.mark.parametrize("first", range(40, 400, 40))
def test_and_in_many_worlds(first: int) -> None:
    assert wrong_seeds(first, 40) == {}
    assert changed_by_requests(first, 10) == {}
