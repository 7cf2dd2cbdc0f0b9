"""A request from its first sight to its end, in a small world: single runs, ranges, restarts."""

from dataclasses import replace

import pytest
from tests.builders import clock, cron, every, instant, once, rejection, request, schedule
from tests.unit.core.world import World

from evenkeel import rfc3339
from evenkeel.core import effects, messages
from evenkeel.core.messages import Document
from evenkeel.core.schedule import phase
from evenkeel.core.schedule.entry import Entry
from evenkeel.model import (
    DAY_S,
    Concurrency,
    DueRange,
    Fold,
    Hourly,
    Include,
    Interval,
    Meeting,
    Order,
    Parameter,
    Rejection,
    Request,
    Retry,
    RunId,
    Timing,
    Verdict,
    kind_of_request,
)
from evenkeel.reasons import ConditionReason
from evenkeel.resource.record import Placed
from evenkeel.when import compile_timing
from evenkeel.when.zone import load_zone

SEEN = cron("* * * * *")


def hour(**changes: object) -> Request:
    """A backfill of the due times 09:01 to 09:05, which were never due: the schedule is younger."""
    return request(span=("09:01", "09:06"), include=Include.ALL, **changes)


def world_with(seen=SEEN, **changes: object) -> World:  # type: ignore[no-untyped-def]
    return World(**changes).see(seen).run_until("10:00:10")


# --- single runs ----------------------------------------------------------------------------------


def test_a_request_without_a_time_runs_once_now() -> None:
    world, now = world_with(), request(created="10:00:10")
    world.want(now)
    assert world.requested(now) == ["10:00:10"]
    assert world.request_state(now) == ("Running", "Accepted")
    world.end_requested(now, "10:00:10")
    assert world.request_state(now) == ("Succeeded", "Succeeded")
    status = world.request_status(now)
    assert (status["done"], status["total"], status["counts"]["succeeded"]) == (1, 1, 1)
    assert status["finishedAt"] == "2026-03-02T10:00:10Z"
    assert "active" not in status
    assert status["scheduleUid"] == SEEN.uid


def test_a_request_for_later_waits_for_its_due_time() -> None:
    world, later = world_with(), request(at="10:07:30")
    world.want(later).run_until("10:07:29")
    assert world.requested(later) == []
    assert world.request_state(later) == ("Pending", "Accepted")
    world.run_until("10:07:31")
    assert world.requested(later) == ["10:07:30"]


def test_a_request_for_a_time_that_is_over_runs_now_with_that_due_time() -> None:
    world, past = world_with(), request(at="09:30")
    world.want(past)
    assert world.requested(past) == ["09:30:00"]


def test_a_run_that_fails_ends_the_request_as_failed() -> None:
    world, now = world_with(), request(at="09:30")
    world.want(now)
    world.end_requested(now, "09:30", ok=False)
    assert world.request_state(now) == ("Failed", "RunsFailed")
    assert world.request_status(now)["recent"][0]["state"] == "failed"
    assert any("failed" in said for said in world.said("RunFailed"))


def test_a_failed_job_is_tried_again_as_the_schedule_says() -> None:
    world = world_with(every(60, retry=Retry(limit=1, delay_s=5)))
    now = request(at="09:30")
    world.want(now)
    world.end_requested(now, "09:30", ok=False)
    assert world.request_status(now)["active"][0]["reason"] == "retrying"
    assert world.status(SEEN)["activeCount"] == 0, "of a run that has no Job now"
    world.run_until("10:00:16")
    assert world.requested(now, attempt=2) == ["09:30:00"]


def test_a_requested_run_changes_nothing_that_is_told_of_the_schedule_itself() -> None:
    world, now = world_with(), request(at="09:30")
    before = world.status()["internal"]["mark"], world.status().get("recent"), world.counts()
    world.want(now)
    world.write(SEEN.uid)
    assert world.status()["activeCount"] == 1
    world.end_requested(now, "09:30")
    world.write(SEEN.uid)
    status = world.status()
    assert (status.get("recent"), world.counts()) == before[1:]
    assert status["lastSuccessfulTime"] == "2026-03-02T10:00:10Z"
    assert status["consecutiveFailures"] == 0


def test_the_same_due_time_runs_by_schedule_and_by_request() -> None:
    world, same = world_with(), request(at="10:02")
    world.want(same).run_until("10:02:10")
    assert world.started() == ["10:01:00", "10:02:00", "10:02:00"]
    assert world.requested(same) == ["10:02:00"]


# --- ranges ---------------------------------------------------------------------------------------


def test_a_range_runs_one_after_the_other() -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    assert world.requested(asked) == ["09:01:00"]
    for minute in (1, 2, 3, 4, 5):
        world.end_requested(asked, f"09:0{minute}")
    assert world.requested(asked) == [f"09:0{minute}:00" for minute in (1, 2, 3, 4, 5)]
    assert world.request_state(asked) == ("Succeeded", "Succeeded")
    assert world.request_status(asked)["dues"]["count"] == 5


def test_newest_first_begins_with_the_last_due_time() -> None:
    world, asked = world_with(), hour(order=Order.NEWEST_FIRST)
    world.want(asked)
    for minute in (5, 4, 3, 2, 1):
        world.end_requested(asked, f"09:0{minute}")
    assert world.requested(asked) == [f"09:0{minute}:00" for minute in (5, 4, 3, 2, 1)]


def test_no_more_than_max_active_run_at_once() -> None:
    world, asked = world_with(), hour(max_active=3)
    world.want(asked)
    assert world.requested(asked) == ["09:01:00", "09:02:00", "09:03:00"]
    world.end_requested(asked, "09:02")
    assert world.requested(asked)[-1] == "09:04:00"
    assert len(world.request_status(asked)["active"]) == 3


def test_max_active_can_be_raised_while_it_runs() -> None:
    world, asked = world_with(), hour()
    world.want(asked).want(replace(asked, max_active=4, generation=2))
    assert len(world.requested(asked)) == 4
    assert world.request_status(asked)["observedGeneration"] == 2


def test_a_suspended_request_begins_nothing_new() -> None:
    world, asked = world_with(), hour(suspend=True)
    world.want(asked)
    assert world.requested(asked) == []
    world.want(replace(asked, suspend=False, generation=2))
    assert world.requested(asked) == ["09:01:00"]
    world.want(replace(asked, suspend=True, generation=3))
    world.end_requested(asked, "09:01")
    assert world.requested(asked) == ["09:01:00"]


def test_a_suspended_request_begins_no_new_attempt() -> None:
    world, asked = world_with(replace(SEEN, retry=Retry(limit=1, delay_s=5))), hour()
    world.want(asked)
    world.end_requested(asked, "09:01", ok=False)
    world.want(replace(asked, suspend=True, generation=2)).run_until("10:01")
    assert world.requested(asked, attempt=2) == []
    world.want(replace(asked, suspend=False, generation=3))
    assert world.requested(asked, attempt=2) == ["09:01:00"]


@pytest.mark.parametrize("meeting", [Meeting.WAIT, Meeting.POLICY])
def test_a_suspended_request_keeps_no_place_from_the_schedule(meeting: Meeting) -> None:
    """Its run was held back, or waits for a retry: there is no Job that others would wait for."""
    seen = replace(SEEN, concurrency=Concurrency.FORBID, retry=Retry(limit=1, delay_s=5))
    world, asked = world_with(seen), request(at="09:30", meeting=meeting)
    world.want(asked)
    world.want(replace(asked, suspend=True, generation=2))
    world.end_requested(asked, "09:30", ok=False)
    world.run_until("10:01:10")
    assert "10:01:00" in world.started()
    world.want(replace(asked, generation=3)).run_until("10:01:30")
    assert world.requested(asked, attempt=2) == []
    world.succeed(seen, "10:01")
    assert world.requested(asked, attempt=2) == ["09:30:00"]


def test_failures_in_a_row_stop_a_range() -> None:
    world, asked = world_with(), hour(stop_after_failures=2)
    world.want(asked)
    world.end_requested(asked, "09:01", ok=False)
    world.end_requested(asked, "09:02", ok=False)
    assert len(world.requested(asked)) == 2
    assert world.request_state(asked) == ("Failed", "StoppedAfterFailures")


def test_a_success_between_two_failures_does_not_stop_it() -> None:
    world, asked = world_with(), hour(stop_after_failures=2)
    world.want(asked)
    for minute, ok in ((1, False), (2, True), (3, False), (4, True), (5, True)):
        world.end_requested(asked, f"09:0{minute}", ok=ok)
    assert world.request_state(asked) == ("Failed", "RunsFailed")


def test_a_dry_run_says_what_would_run_and_runs_nothing() -> None:
    world, asked = world_with(), hour(dry_run=True)
    world.want(asked).run_until("10:00:30")
    assert world.requested(asked) == []
    assert world.request_state(asked) == ("Succeeded", "DryRun")
    first = world.request_status(asked)["dues"]["first"]
    assert first[0] == "2026-03-02T09:01:00Z"
    assert len(first) == 5


BERLIN = "Europe/Berlin"
OF_EVERY_KIND = {
    "cron": cron("*/30 0-5 * * *", zone=BERLIN),
    "a cron text at a fixed time that the clock jumps over": cron("30 2 * * *", zone=BERLIN),
    "both of an hour that comes twice": cron("30 2 * * *", zone=BERLIN, fold=Fold.BOTH),
    "hourly": schedule(Hourly(17), zone=BERLIN),
    "an interval with an offset": every(5400, anchor="00:00"),
    "whole days of a zone": every(DAY_S, anchor="+-200d 01:30", zone=BERLIN),
    "an interval that was placed": every(7200, offset_s=None),
    "whole days that were placed": every(DAY_S, offset_s=None, zone=BERLIN),
    "at": once("2026-03-29T01:30:00Z", created=instant("2026-03-01T00:00:00Z")),
}


@pytest.mark.parametrize("change", ["2026-03-29", "2025-10-26"])
@pytest.mark.parametrize("kind", OF_EVERY_KIND)
def test_a_dry_run_lists_what_the_request_then_runs(kind: str, change: str) -> None:
    """Two days around a change of daylight saving time in Berlin."""
    day = instant(f"{change}T00:00:00Z")
    world = World(now=day + 10.0 * DAY_S, clock_is_confirmed=True).see(OF_EVERY_KIND[kind])
    world.run_until(world.now + 5)
    span = DueRange(day - DAY_S, day + DAY_S)
    dry = replace(request("dry", include=Include.ALL, dry_run=True), span=span)
    real = replace(request("real", include=Include.ALL, max_active=100), span=span)
    world.want(dry).want(real)
    listed = world.request_status(dry)["dues"]
    begun = sorted(
        run.due for run, _, _ in world.creations if run.kind == kind_of_request(real.uid)
    )
    assert listed["count"] == len(begun)
    assert [rfc3339.read(due) for due in listed.get("first", [])] == begun[:20]
    if begun:
        assert begun[0] >= span.first
        assert begun[-1] < span.end
    expected = {"cron": 24, "hourly": 48, "an interval with an offset": 32}
    if kind in expected and change == "2026-03-29":
        assert len(begun) == expected[kind]


def test_a_paused_schedule_is_waited_for_in_the_middle_of_a_range() -> None:
    seen = replace(SEEN, pause_after_failures=1)
    world, asked = world_with(seen), hour()
    world.want(asked).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.end_requested(asked, "09:01")
    assert world.requested(asked) == ["09:01:00"]
    ready = {row["type"]: row for row in world.request_status(asked)["conditions"]}["Ready"]
    assert "paused" in ready["message"]
    world.see(replace(seen, generation=2, template_hash="second"))
    assert world.requested(asked) == ["09:01:00", "09:02:00"]


def test_nothing_begins_before_the_plan_is_stored() -> None:
    world, asked = world_with(writes_requests=False), hour()
    world.want(asked).run_until("10:00:30")
    assert world.requested(asked) == []
    world.write_request(asked.uid)
    world.settle()
    assert world.requested(asked) == ["09:01:00"]


def test_an_edit_of_the_timing_does_not_change_a_plan() -> None:
    world, asked = world_with(), hour()
    world.want(asked).see(replace(every(420), generation=2))
    world.crash()
    for minute in (1, 2, 3, 4, 5):
        world.end_requested(asked, f"09:0{minute}")
    assert world.request_state(asked) == ("Succeeded", "Succeeded")


def test_a_phase_that_the_operator_chose_holds_before_it_was_chosen() -> None:
    placed = every(3600, offset_s=None)
    world = World().see(placed).run_until("10:00:10")
    entry = world.scheduler.state.entries[placed.uid]
    assert entry.placed is not None
    minute = entry.placed.anchor % 3600
    asked = request(span=("+-2d 10:00", "10:00"), include=Include.ALL, max_active=100)
    world.want(asked)
    dues = [fact.run.due for fact in world.jobs.values()]
    assert len(dues) == 48
    assert {due % 3600 for due in dues} == {minute}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"])
def test_a_phase_of_whole_local_days_keeps_its_time_of_day_backwards(zone: str) -> None:
    """Through changes of daylight saving time, from anchors at all times of the day."""
    for hour_of_day in range(0, 24, 5):
        timing = Timing(Interval(DAY_S), zone)
        anchor = instant("+60d 00:30") + hour_of_day * 3600
        placed = Placed(anchor, DAY_S, instant("10:00"))
        in_force = phase.in_force(timing, placed)
        assert in_force is not None
        entry = Entry("uid-report", "shop", "report", timing=timing)
        first = instant("+-200d 00:00")
        found = phase.dues_from(entry, compile_timing(in_force, seed="x"), first)
        dues = found.between(first, instant("+-1d 00:00"))
        assert abs(len(dues) - 199) <= 1
        offset_at = load_zone(zone).offset_at
        wanted = (anchor + offset_at(anchor)) % DAY_S
        of_day = [(due + offset_at(due)) % DAY_S for due in dues]
        assert sum(each != wanted for each in of_day) <= 2  # where that time did not exist


@pytest.mark.parametrize(
    ("include", "runs"),
    [
        (Include.NOT_SUCCEEDED, ["10:02:00", "10:03:00"]),
        (Include.NOT_RUN, ["10:03:00"]),
        (Include.ALL, ["10:01:00", "10:02:00", "10:03:00"]),
    ],
)
@pytest.mark.parametrize("has_ledger", [True, False])
def test_include_says_which_due_times_run(
    include: Include, runs: list[str], *, has_ledger: bool
) -> None:
    world = World(has_ledger=has_ledger).see(replace(SEEN, suspend=False))
    world.run_until("10:02:10")
    world.succeed(SEEN, "10:01")
    world.fail(SEEN, "10:02")
    world.see(replace(SEEN, suspend=True, generation=2)).run_until("10:03:30")
    world.see(replace(SEEN, generation=3))
    asked = request(span=("10:01", "10:03:30"), include=include, max_active=9)
    world.want(asked)
    assert world.requested(asked) == runs


def test_a_living_run_is_never_repeated() -> None:
    world = World().see(SEEN).run_until("10:02:10")
    world.succeed(SEEN, "10:01")
    asked = request(span=("10:01", "10:02:10"), include=Include.ALL, max_active=9)
    world.want(asked)
    assert world.requested(asked) == ["10:01:00"]


def test_nothing_to_do_is_complete() -> None:
    world = World().see(SEEN).run_until("10:01:10")
    world.succeed(SEEN, "10:01")
    asked = request(span=("10:01", "10:01:10"))
    world.want(asked)
    assert world.request_state(asked) == ("Succeeded", "NothingToDo")


def test_a_ledger_that_is_away_is_waited_for() -> None:
    world = world_with(ledger_answers=False)
    past = request(span=("09:30", "09:35"))
    world.want(past)
    world.tell(messages.RunsTold(past.uid, away=True))
    assert world.request_state(past) == ("Pending", "LedgerAway")
    world.ledger_answers = True
    world.run_until("10:00:20")
    assert world.requested(past) == ["09:30:00"]


# --- refused --------------------------------------------------------------------------------------


def refused(world: World, asked: Request) -> tuple[str, str]:
    world.want(asked).run_until(world.now + 5)
    status = world.request_status(asked)
    rows = {row["type"]: row for row in status["conditions"]}
    assert status["state"] == "Refused"
    assert rows["Failed"]["status"] == rows["Stalled"]["status"] == "True"
    assert rows["Ready"]["status"] == "False"
    assert world.requested(asked) == []
    return rows["Stalled"]["reason"], rows["Stalled"]["message"]


def test_a_range_that_is_not_over_is_refused() -> None:
    why, sentence = refused(world_with(), request(span=("09:00", "10:10")))
    assert why == "RangeNotOver"
    assert "spec.range.to" in sentence


def test_a_range_with_too_many_due_times_is_refused() -> None:
    asked = request(span=("2025-01-01T00:00:00Z", "09:00"), include=Include.ALL)
    why, sentence = refused(world_with(), asked)
    assert why == "TooManyDueTimes"
    assert "10000" in sentence


def test_an_unknown_parameter_is_refused() -> None:
    seen = replace(SEEN, parameters=(Parameter("DAY", "today"), Parameter("SIZE", "s", ("s", "m"))))
    why, sentence = refused(world_with(seen), request(parameters=(("DAYS", "x"),)))
    assert (why, sentence) == (
        "UnknownParameter",
        "spec.parameters[0].name: DAYS is no parameter of report, which has DAY, SIZE",
    )


def test_a_value_outside_its_enum_is_refused() -> None:
    seen = replace(SEEN, parameters=(Parameter("DAY", "today"), Parameter("SIZE", "s", ("s", "m"))))
    asked = request(parameters=(("DAY", "x"), ("SIZE", "xl")))
    why, sentence = refused(world_with(seen), asked)
    assert (why, sentence) == (
        "ValueNotAllowed",
        "spec.parameters[1].value: SIZE may be one of s, m",
    )


@pytest.mark.parametrize("has_ledger", [True, False])
def test_a_past_that_nobody_knows_is_refused_unless_all_is_wanted(*, has_ledger: bool) -> None:
    world = world_with(has_ledger=has_ledger, ledger_since=instant("09:30"))
    why, sentence = refused(world, request("some", span=("09:10", "09:40")))
    assert why == "PastUnknown"
    assert "include: All" in sentence
    everything = request("everything", span=("09:10", "09:40"), include=Include.ALL)
    world.want(everything)
    assert world.requested(everything) == ["09:10:00"]


def test_a_span_of_which_nothing_is_recorded_is_refused() -> None:
    world = world_with(ledger_unknown=((instant("09:20"), instant("09:22")),))
    assert refused(world, request(span=("09:10", "09:40")))[0] == "PastUnknown"


def test_a_run_that_has_a_row_is_known_although_it_lies_in_such_a_span() -> None:
    world = World(ledger_unknown=((instant("10:00"), instant("10:03")),))
    world.see(SEEN).run_until("10:02:10")
    world.succeed(SEEN, "10:01")
    world.fail(SEEN, "10:02")
    asked = request(span=("10:01", "10:02:10"))
    world.want(asked)
    assert world.requested(asked) == ["10:02:00"]


def test_a_rejected_spec_is_refused() -> None:
    world = world_with()
    wrong = Rejection("uid-again", "shop", "again", 1, "spec.at", "is not a time")
    world.want(wrong)
    status = world.request_statuses[wrong.uid]
    assert status["state"] == "Refused"
    assert ready(status) == ("False", "Invalid")


def test_an_object_that_cannot_be_read_is_refused() -> None:
    world = world_with()
    reason = ConditionReason.UNREADABLE
    world.want(Rejection("uid-again", "shop", "again", 1, "", "it could not be read", reason))
    assert ready(world.request_statuses["uid-again"]) == ("False", "Unreadable")


def ready(status: Document) -> tuple[str, str]:
    (found,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    return found["status"], found["reason"]


# --- its schedule ---------------------------------------------------------------------------------


def test_a_schedule_that_never_comes_is_refused_after_a_minute() -> None:
    world, asked = World(), request(schedule="nobody")
    world.want(asked).run_until("10:00:59")
    assert world.request_state(asked) == ("Pending", "ScheduleNotSeen")
    world.run_until("10:01:01")
    assert world.request_state(asked) == ("Refused", "ScheduleNotFound")


def test_a_schedule_that_comes_later_is_found() -> None:
    world, asked = World(), request(at="09:30")
    world.want(asked).run_until("10:00:30")
    world.see(SEEN)
    assert world.requested(asked) == ["09:30:00"]


def test_a_schedule_that_is_deleted_ends_its_requests() -> None:
    world, asked = world_with(), hour(max_active=2)
    world.want(asked)
    world.end_requested(asked, "09:01")
    world.gone(SEEN)
    assert world.request_state(asked) == ("Failed", "ScheduleGone")
    counts = world.request_status(asked)["counts"]
    assert (counts["succeeded"], counts["cancelled"]) == (1, 2)
    rows = world.request_status(asked)["recent"]
    assert {row["state"] for row in rows} == {"succeeded", "cancelled"}


def test_a_schedule_that_is_created_again_is_another_one() -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    world.schedules.clear()
    world.jobs.clear()
    world.statuses.clear()
    world.schedules["uid-new"] = replace(SEEN, uid="uid-new")
    world.crash()
    assert world.request_state(asked) == ("Failed", "ScheduleGone")


def test_a_rejected_schedule_is_waited_for() -> None:
    world, asked = World(), request(at="09:30")
    world.see(replace(rejection(SEEN), generation=1)).want(asked)
    assert world.request_state(asked) == ("Pending", "ScheduleNotReady")
    world.see(replace(SEEN, generation=2))
    assert world.requested(asked) == ["09:30:00"]


def test_a_suspended_schedule_is_waited_for_unless_forced() -> None:
    world = world_with(replace(SEEN, suspend=True))
    patient, urgent = request("patient", at="09:30"), request("urgent", at="09:31", force=True)
    world.want(patient).want(urgent)
    assert world.requested(patient) == []
    assert world.requested(urgent) == ["09:31:00"]
    world.see(replace(SEEN, generation=2))
    assert world.requested(patient) == ["09:30:00"]


def test_a_forced_run_does_not_wait_for_those_that_are_queued_while_the_schedule_is_paused() -> (
    None
):
    seen = replace(SEEN, concurrency=Concurrency.QUEUE, pause_after_failures=1)
    world = World().see(seen).run_until("10:02:10")
    assert world.alive()["10:02:00"] == "queued"
    world.fail(seen, "10:01")
    asked = request(at="09:30", force=True)
    world.want(asked)
    assert world.requested(asked) == ["09:30:00"]


def test_a_schedule_that_has_ended_can_be_requested() -> None:
    world = World().see(once("10:00:05")).run_until("10:01")
    now = request(created="10:01")
    world.want(now)
    assert world.requested(now) == ["10:01:00"]


# --- deletion, limits, ttl ------------------------------------------------------------------------


def test_a_deleted_request_begins_nothing_and_its_jobs_go_on() -> None:
    world, asked = world_with(), hour(max_active=2)
    world.want(asked)
    jobs = [world.requested_job(asked, f"09:0{minute}") for minute in (1, 2)]
    world.request_gone(asked)
    assert not world.deleted
    for job in jobs:
        world.change(job, state=type(job.state).SUCCEEDED, finished=int(world.now))
    ended = [row for row in world.ends() if row[0].startswith("09:")]
    assert ended == [("09:01:00", "succeeded", ""), ("09:02:00", "succeeded", "")]
    assert len(world.requested(asked)) == 2
    assert world.alive() == {}


def test_a_deleted_request_cancels_what_waits() -> None:
    world, asked = world_with(answering=lambda _: Verdict.HELD), hour()
    world.want(asked)
    world.request_gone(asked)
    assert world.ends()[-1] == ("09:01:00", "cancelled", "request_deleted")
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:00:50")
    assert world.requested(asked) == []


def test_jobs_of_a_request_that_was_deleted_while_nobody_watched_are_followed() -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    del world.requests[asked.uid]
    world.crash(for_s=2)
    job = world.requested_job(asked, "09:01")
    world.change(job, state=type(job.state).SUCCEEDED, finished=int(world.now))
    assert world.ends()[-1] == ("09:01:00", "succeeded", "")
    assert world.scheduler.sizes()["unclaimed Jobs"] == 0


def test_only_so_many_of_a_namespace_are_under_way() -> None:
    world = world_with(settings=World().settings.model_copy(update={"requests_max_unfinished": 2}))
    asked = [request(f"r{number}", at=f"09:3{number}") for number in range(4)]
    for each in asked:
        world.want(each)
    assert world.request_state(asked[2]) == ("Pending", "TooManyRequests")
    world.end_requested(asked[1], "09:31")
    assert world.requested(asked[2]) == ["09:32:00"]
    assert world.requested(asked[3]) == []
    world.request_gone(asked[0])
    assert world.requested(asked[3]) == ["09:33:00"]


def test_a_ttl_deletes_the_request_after_its_end() -> None:
    world, now = world_with(), request(at="09:30", ttl_s=30)
    world.want(now)
    world.end_requested(now, "09:30")
    world.run_until("10:00:30")
    world.crash()
    assert not world.requests_deleted
    world.run_until("10:00:41")
    assert [each.name for each in world.requests_deleted] == ["again"]


def test_a_request_that_has_ended_runs_nothing_again() -> None:
    world, now = world_with(), request(at="09:30")
    world.want(now)
    world.end_requested(now, "09:30")
    for _ in range(3):
        world.want(now).crash(for_s=20)
        world.want(replace(now, generation=2))
    assert world.requested(now) == ["09:30:00"]
    status = world.request_status(now)
    assert status["observedGeneration"] == 2
    assert {row["observedGeneration"] for row in status["conditions"]} == {2}
    assert status["total"] == 1


# --- history --------------------------------------------------------------------------------------


def test_history_counts_the_jobs_of_each_request_apart() -> None:
    world = World().see(replace(SEEN, keep_succeeded=2)).run_until("10:03:10")
    for minute in (1, 2, 3):
        world.succeed(SEEN, f"10:0{minute}")
    asked = hour()
    world.want(asked)
    for minute in (1, 2, 3, 4, 5):
        world.end_requested(asked, f"09:0{minute}")
    world.write(SEEN.uid)
    world.settle()
    left = sorted(clock(fact.run.due) for fact in world.jobs.values())
    assert left == ["09:04:00", "09:05:00", "10:02:00", "10:03:00"]


def test_no_job_goes_before_its_end_is_stored() -> None:
    world = world_with(replace(SEEN, keep_succeeded=0))
    now = request(at="09:30")
    world.want(now)
    world.writes_requests = False
    world.end_requested(now, "09:30")
    world.write(SEEN.uid)
    assert not world.deleted
    world.write_request(now.uid)
    world.settle()
    assert [each.ref.name for each in world.deleted] == [
        name for name in world.names_created() if "q0" in name
    ]


# --- restarts -------------------------------------------------------------------------------------


def test_a_restart_in_the_middle_of_a_range_repeats_and_loses_nothing() -> None:
    world, asked = world_with(), hour(max_active=2)
    world.want(asked)
    for minute in (1, 2, 3, 4, 5):
        world.crash(for_s=1)
        world.end_requested(asked, f"09:0{minute}")
    world.crash()
    assert sorted(world.requested(asked)) == [f"09:0{minute}:00" for minute in (1, 2, 3, 4, 5)]
    assert world.request_state(asked) == ("Succeeded", "Succeeded")
    assert world.request_status(asked)["counts"]["succeeded"] == 5


@pytest.mark.parametrize(
    "forged",
    [
        {"mark": "2026-03-02T09:01:30Z"},
        {"timing": {"fields": {"schedule": "* * * * *", "timeZone": "Mars/Phobos"}}},
        {"timing": {"fields": {"schedule": "*/2 * * * *", "timeZone": "UTC"}}},
        {"bits": "no bits"},
    ],
)
def test_a_plan_that_was_edited_by_hand_ends_the_request(forged: dict[str, object]) -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    plan = world.request_status(asked)["plan"]
    plan |= forged
    world.crash(for_s=1)
    assert world.request_state(asked) == ("Failed", "PlanLost")
    world.end_requested(asked, "09:01")
    assert ("09:01:00", "succeeded", "") in world.ends()


def test_an_edit_while_no_process_ran_is_shown_in_the_status() -> None:
    world, later = world_with(), request(at="10:30")
    world.want(later)
    world.requests[later.uid] = replace(later, generation=3)  # suspended, and taken back
    world.crash(for_s=1)
    assert world.request_status(later)["observedGeneration"] == 3


def test_only_a_restart_tells_the_ledger_what_an_earlier_process_left() -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    world.end_requested(asked, "09:01")
    known = [told for told in world.accounts if isinstance(told, effects.RequestKnown)]
    assert known == []
    world.crash(for_s=1)
    known = [told for told in world.accounts if isinstance(told, effects.RequestKnown)]
    assert [clock(run.due) for told in known for run in told.alive] == ["09:02:00"]


def test_what_began_and_was_not_told_is_known_by_its_job() -> None:
    world, asked = world_with(), hour(max_active=2)
    world.want(asked)
    world.writes_requests = False
    world.end_requested(asked, "09:01")
    world.end_requested(asked, "09:02")
    world.writes_requests = True
    world.crash(for_s=3)
    assert sorted(world.requested(asked)) == ["09:01:00", "09:02:00", "09:03:00", "09:04:00"]
    assert world.request_status(asked)["counts"]["succeeded"] == 2


def test_a_job_that_vanished_while_nobody_watched_is_lost() -> None:
    world, asked = world_with(), hour()
    world.want(asked)
    world.remove(world.requested_job(asked, "09:01"), told=False)
    world.crash(for_s=3)
    assert world.request_status(asked)["counts"]["lost"] == 1
    assert world.requested(asked) == ["09:01:00", "09:02:00"]


def test_a_template_with_a_ttl_is_announced_in_the_status_of_the_request() -> None:
    world = world_with(replace(SEEN, ttl_s=0))
    now = request(at="09:30")
    world.answering = lambda _: None
    world.want(now)
    (launch,) = world.in_flight
    assert launch.announced == world.requests_stored[now.uid]
    assert world.request_status(now)["active"][0]["reason"] == "launching"
    # The create arrives, its Job ends and vanishes, and the process dies.
    world.crash(for_s=30)
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:01:30")
    assert world.requested(now) == []
    assert world.request_status(now)["counts"]["lost"] == 1


def test_the_requests_of_a_schedule_whose_handler_raised_are_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, asked = world_with(surprises=True), hour()
    world.want(asked)
    entry = world.scheduler.state.entries[SEEN.uid]
    monkeypatch.setattr(type(entry), "waiting_room", property(lambda self: 1 / 0))
    world.tell(messages.CancelRun(object(), RunId(SEEN.uid, instant("10:01"))))
    world.run_until("10:01:05")
    monkeypatch.undo()
    world.run_until("10:03")
    assert SEEN.uid in world.scheduler.state.entries
    world.end_requested(asked, "09:01")
    assert world.requested(asked) == ["09:01:00", "09:02:00"]


# --- the trigger ----------------------------------------------------------------------------------


def test_an_annotation_makes_one_request_for_each_id() -> None:
    world = world_with(replace(SEEN, trigger="monday"))
    assert len(world.requests_made) == 1
    made = world.requests_made[0]
    assert (made.schedule, made.name[:7], len(made.name)) == ("report", "report-", 15)
    world.write(SEEN.uid)
    assert world.status()["internal"]["trigger"] == "monday"
    world.crash(for_s=5)
    world.see(replace(SEEN, trigger="monday", generation=2))
    assert len(world.requests_made) == 1
    world.see(replace(SEEN, trigger="tuesday", generation=2))
    assert len(world.requests_made) == 2


def test_a_process_that_dies_before_it_tells_makes_the_same_request() -> None:
    world = world_with(replace(SEEN, trigger="monday"), makes_requests=None)
    world.crash(for_s=5)
    assert len({made.name for made in world.requests_made}) == 1
    assert len(world.requests_made) == 2


def test_a_request_that_may_not_be_made_is_told_once() -> None:
    world = world_with(replace(SEEN, trigger="monday"), makes_requests=False)
    world.see(replace(SEEN, trigger="monday", generation=2)).run_until("10:02")
    assert len(world.said("FailedCreate")) == 1
    assert len(world.requests_made) == 1


# --- the overlap table ----------------------------------------------------------------------------

MEETINGS = [Meeting.WAIT, Meeting.ALLOW, Meeting.POLICY]
POLICIES = [Concurrency.ALLOW, Concurrency.FORBID, Concurrency.REPLACE, Concurrency.QUEUE]

REQUESTED_MEETS_SCHEDULED = {
    (Meeting.WAIT, Concurrency.ALLOW): "runs",
    (Meeting.WAIT, Concurrency.FORBID): "waits",
    (Meeting.WAIT, Concurrency.REPLACE): "waits",
    (Meeting.WAIT, Concurrency.QUEUE): "waits",
    (Meeting.ALLOW, Concurrency.ALLOW): "runs",
    (Meeting.ALLOW, Concurrency.FORBID): "runs",
    (Meeting.ALLOW, Concurrency.REPLACE): "runs",
    (Meeting.ALLOW, Concurrency.QUEUE): "runs",
    (Meeting.POLICY, Concurrency.ALLOW): "runs",
    (Meeting.POLICY, Concurrency.FORBID): "is skipped",
    (Meeting.POLICY, Concurrency.REPLACE): "replaces",
    (Meeting.POLICY, Concurrency.QUEUE): "waits",
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_requested_run_meets_a_scheduled_one(meeting: Meeting, policy: Concurrency) -> None:
    seen = replace(SEEN, concurrency=policy)
    world = World().see(seen).run_until("10:01:10")
    asked = request(at="09:30", meeting=meeting)
    world.want(asked)
    what = REQUESTED_MEETS_SCHEDULED[meeting, policy]
    replaced = ("10:01:00", "cancelled", "replaced") in world.ends()
    assert replaced is (what == "replaces")
    assert (world.requested(asked) == ["09:30:00"]) is (what in ("runs", "replaces"))
    skipped = ("09:30:00", "skipped", "overlap") in world.ends()
    assert skipped is (what == "is skipped")
    if what == "is skipped":
        assert world.request_state(asked) == ("Failed", "RunsSkipped")
    if what == "waits":
        world.succeed(seen, "10:01")
        assert world.requested(asked) == ["09:30:00"]


SCHEDULED_MEETS_REQUESTED = {
    (Meeting.WAIT, Concurrency.ALLOW): "runs",
    (Meeting.WAIT, Concurrency.FORBID): "waits",
    (Meeting.WAIT, Concurrency.REPLACE): "waits",
    (Meeting.WAIT, Concurrency.QUEUE): "waits",
    (Meeting.ALLOW, Concurrency.ALLOW): "runs",
    (Meeting.ALLOW, Concurrency.FORBID): "runs",
    (Meeting.ALLOW, Concurrency.REPLACE): "runs",
    (Meeting.ALLOW, Concurrency.QUEUE): "runs",
    (Meeting.POLICY, Concurrency.ALLOW): "runs",
    (Meeting.POLICY, Concurrency.FORBID): "is skipped",
    (Meeting.POLICY, Concurrency.REPLACE): "replaces",
    (Meeting.POLICY, Concurrency.QUEUE): "waits",
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_scheduled_run_meets_a_requested_one(meeting: Meeting, policy: Concurrency) -> None:
    seen = replace(SEEN, concurrency=policy)
    world = World().see(seen).run_until("10:00:30")
    asked = request(at="09:30", meeting=meeting)
    world.want(asked).run_until("10:01:10")
    what = SCHEDULED_MEETS_REQUESTED[meeting, policy]
    started = "10:01:00" in world.started()
    assert started is (what in ("runs", "replaces"))
    assert (("09:30:00", "cancelled", "replaced") in world.ends()) is (what == "replaces")
    assert (("10:01:00", "skipped", "overlap") in world.ends()) is (what == "is skipped")
    if what == "waits":
        assert world.alive()["10:01:00"] == "queued"
        world.end_requested(asked, "09:30")
        assert "10:01:00" in world.started()


@pytest.mark.parametrize(
    ("policy", "first", "second"),
    [
        (Concurrency.FORBID, "started", ("skipped", "overlap")),
        (Concurrency.REPLACE, ("cancelled", "replaced"), "started"),
        (Concurrency.QUEUE, "started", "queued"),
    ],
)
def test_later_due_times_meet_the_one_that_waits_by_the_policy(
    policy: Concurrency, first: object, second: object
) -> None:
    seen = replace(SEEN, concurrency=policy)
    world = World().see(seen).run_until("10:00:30")
    asked = request(at="09:30")
    world.want(asked).run_until("10:02:10")
    world.end_requested(asked, "09:30")
    ends = {due: (state, reason) for due, state, reason in world.ends()}
    for due, expected in (("10:01:00", first), ("10:02:00", second)):
        if expected == "started":
            assert due in world.started()
        elif expected == "queued":
            assert world.alive()[due] == "queued"
        else:
            assert ends[due] == expected


def test_a_range_begins_nothing_while_a_scheduled_run_waits() -> None:
    seen = replace(SEEN, concurrency=Concurrency.FORBID)
    world = World().see(seen).run_until("10:00:30")
    asked = hour()
    world.want(asked).run_until("10:01:10")
    world.end_requested(asked, "09:01")
    assert world.requested(asked) == ["09:01:00"]
    assert "10:01:00" in world.started()
    world.succeed(seen, "10:01")
    assert world.requested(asked) == ["09:01:00", "09:02:00"]


def test_a_queued_run_that_was_requested_has_no_deadline() -> None:
    """startingDeadlineSeconds is of due times of the schedule: that of a backfill is over."""
    seen = replace(SEEN, concurrency=Concurrency.QUEUE, starting_deadline_s=60)
    world = World().see(seen).run_until("10:01:10")
    asked = request(at="09:30", meeting=Meeting.POLICY)
    world.want(asked)
    world.succeed(seen, "10:01")
    assert world.requested(asked) == ["09:30:00"]
    assert [end for end in world.ends() if end[1] == "missed"] == []


def test_a_queued_run_of_a_suspended_request_takes_no_place() -> None:
    seen = replace(SEEN, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:01:10")
    asked = request(at="09:30", meeting=Meeting.POLICY)
    world.want(asked)
    world.want(replace(asked, suspend=True, generation=2))
    world.succeed(seen, "10:01")
    assert world.requested(asked) == []
    world.run_until("10:02:10")
    assert len(world.names_created()) == 2, "it keeps no place from those by schedule"
    world.want(replace(asked, suspend=False, generation=3))
    world.succeed(seen, "10:02")
    assert world.requested(asked) == ["09:30:00"]


def test_a_queued_run_that_is_forced_goes_on_although_the_schedule_is_suspended() -> None:
    seen = replace(SEEN, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:01:10")
    asked = request(at="09:30", meeting=Meeting.POLICY, force=True)
    world.want(asked)
    world.see(replace(seen, suspend=True, generation=2))
    world.succeed(seen, "10:01")
    assert world.requested(asked) == ["09:30:00"]


@pytest.mark.parametrize("policy", [Concurrency.FORBID, Concurrency.REPLACE, Concurrency.QUEUE])
def test_a_create_that_is_held_keeps_no_place_from_the_schedule(policy: Concurrency) -> None:
    kind = kind_of_request("uid-again")
    answers = {"requested": Verdict.HELD}
    world = World(
        answering=lambda launch: (
            answers["requested"] if launch.run.kind == kind else Verdict.CREATED
        )
    )
    seen = replace(SEEN, concurrency=policy)
    world.see(seen).run_until("10:00:10").want(request(at="09:30")).run_until("10:01:10")
    assert world.started() == ["10:01:00"]
    answers["requested"] = Verdict.CREATED
    world.run_until("10:01:50")
    assert world.started() == ["10:01:00"]
    world.succeed(seen, "10:01")
    assert world.started() == ["10:01:00", "09:30:00"]


def test_a_create_that_is_held_delays_no_scheduled_run() -> None:
    kind = kind_of_request("uid-again")
    held = Verdict.HELD
    world = world_with(
        answering=lambda launch: held if launch.run.kind == kind else Verdict.CREATED
    )
    world.want(hour()).run_until("10:01:10")
    assert "10:01:00" in world.started()
    assert world.condition("Degraded") == ("False", "AsExpected")
