"""What the ledger is told, and that it is told nothing before a stored status tells it."""

from typing import Any

import pytest
from tests.builders import clock, cron, edited, every, instant, once, rejection
from tests.unit.core.world import World

from evenkeel.core import effects, messages
from evenkeel.model import At, Cause, Cron, Retry, RunId, RunState, Verdict
from evenkeel.reasons import Reason
from evenkeel.resource.record import Placed

EVERY_MINUTE = "* * * * *"


def told(world: World, kind: type) -> list[Any]:
    """All effects of this kind."""
    return [each for each in world.accounts if isinstance(each, kind)]


def mark(world: World) -> str:
    """How far the ledger is told that all is told."""
    return clock(told(world, effects.StatusTold)[-1].mark)


# --- runs -----------------------------------------------------------------------------------------


def test_a_run_begins_and_ends_with_all_that_is_known_of_it():
    seen = every(3600)
    world = World().see(seen).run_until("11:00:05")
    began = world.began[-1]
    assert (began.sent_at, began.generation, began.template_hash) == (
        instant("11:00"),
        seen.generation,
        seen.template_hash,
    )
    assert instant("10:59") < began.taken_at < instant("11:00")
    world.succeed(seen, "11:00")
    (attempt,) = world.rows[-1].attempts
    assert (attempt.number, attempt.job, attempt.created, attempt.finished) == (
        1,
        "report-29540820",
        instant("11:00"),
        instant("11:00:05"),
    )


def test_each_failed_attempt_is_told_with_its_own_cause():
    seen = every(3600, retry=Retry(limit=1, delay_s=10))
    world = World(cause=Cause("OOMKilled", "main", 137)).see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    (waits,) = told(world, effects.RunWaits)
    assert (waits.state, waits.attempt, waits.due_at) == (
        RunState.RETRYING,
        2,
        instant("11:00:10"),
    )
    assert [(one.number, one.exit_code, one.reason) for one in waits.attempts] == [
        (1, 137, "OOMKilled")
    ]
    world.run_until("11:00:20")
    world.succeed(seen, "11:00", 2)
    ended = world.rows[-1]
    assert [(one.number, one.exit_code) for one in ended.attempts] == [(1, 137), (2, None)]
    assert ended.attempts[1].created == instant("11:00:10")


def test_a_run_cancelled_between_two_attempts_tells_of_no_job_it_never_had():
    seen = every(3600, retry=Retry(limit=1, delay_s=60))
    world = World().see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    world.cancel(seen, "11:00")
    assert [one.number for one in world.rows[-1].attempts] == [1]


def test_earlier_attempts_are_told_again_after_a_restart():
    seen = every(3600, retry=Retry(limit=1, delay_s=10))
    world = World().see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    world.crash(for_s=60).run_until("11:02")
    world.succeed(seen, "11:00", 2)
    assert [(one.number, one.job) for one in world.rows[-1].attempts] == [
        (1, "report-29540820"),
        (2, "report-retry1-29540820"),
    ]


def test_a_held_run_is_told_once_however_often_it_is_tried():
    world = World(answering=lambda _: Verdict.HELD).see(every(3600)).run_until("11:00:20")
    assert len(world.launches) > 2
    assert [waits.reason for waits in told(world, effects.RunWaits)] == [Reason.HELD]


def test_each_effect_names_a_status_that_tells_of_it():
    seen = every(60, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("10:01:30")
    world.fail(seen, "10:01")
    world.run_until("10:02:10")
    world.see(edited(seen, suspend=True))
    stored = world.stored[seen.uid]
    named = [
        each.revision
        for each in [*world.accounts, *world.began, *world.rows]
        if not isinstance(each, effects.ScheduleKnown | effects.StatusTold)
    ]
    assert named
    assert all(0 < revision <= stored for revision in named)


# --- how far all is told --------------------------------------------------------------------------


def test_the_mark_waits_for_a_run_of_which_nothing_is_told():
    seen = every(60, ttl_s=3600)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    status_mark = world.status()["internal"]["mark"]
    assert status_mark >= "2026-03-02T10:01:00Z", "it is announced"
    assert mark(world) == "10:00:59"
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.run_until("10:01:10")
    assert mark(world) >= "10:01:00"


def test_nothing_is_told_as_stored_while_no_status_is():
    world = World(writes=False).see(every(60)).run_until("10:03")
    assert not told(world, effects.StatusTold)


# --- timings and spans ----------------------------------------------------------------------------


def test_each_timing_counts_from_where_the_one_before_ends():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:02:30")
    world.see(edited(seen, rule=Cron("*/5 * * * *"))).run_until("10:06")
    (known,) = told(world, effects.ScheduleKnown)
    first, began = told(world, effects.TimingBegan)
    assert not known.told
    assert clock(first.after) == "10:00:00"
    assert first.timing.rule == Cron(EVERY_MINUTE)
    assert (clock(began.after), began.timing.rule) == ("10:02:30", Cron("*/5 * * * *"))


def test_a_timing_that_no_status_tells_of_yet_is_told_by_the_first():
    """The process may end before: the next one may reckon from later on."""
    world = World(writes=False).see(every(60)).run_until("10:03")
    (began,) = told(world, effects.TimingBegan)
    assert began.revision > 0
    assert not told(world, effects.StatusTold)


def test_a_timing_that_a_status_told_of_is_known_after_a_crash():
    world = World().see(every(60)).run_until("10:03")
    world.crash()
    known = told(world, effects.ScheduleKnown)[-1]
    assert known.told
    assert known.timing == every(60).timing
    assert clock(known.timing_since) == "10:00:00"


def test_a_chosen_phase_is_told_as_an_anchor():
    world = World().see(every(3600, offset_s=None))
    (began,) = told(world, effects.TimingBegan)
    assert began.timing.rule.anchor == world.scheduler.state.entries[began.uid].placed.anchor


def test_a_suspension_is_open_from_its_first_second_and_closed_at_its_last():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30")
    world.see(edited(seen, suspend=True)).run_until("10:04:30")
    (opened,) = told(world, effects.SpanOpened)
    assert (clock(opened.first), opened.reason) == ("10:01:01", Reason.SUSPENDED)
    world.see(edited(edited(seen)))
    (closed,) = told(world, effects.SpanClosed)
    assert (clock(closed.last), closed.reason) == ("10:04:30", Reason.SUSPENDED)


def test_what_is_suspended_is_open_again_after_its_timing_was_edited():
    seen = cron(EVERY_MINUTE, suspend=True)
    world = World().see(seen).run_until("10:10:30")
    world.see(edited(seen, rule=Cron("*/5 * * * *")))
    opened = told(world, effects.SpanOpened)
    assert [clock(each.first) for each in opened] == ["10:00:01", "10:10:31"]
    assert [clock(each.last) for each in told(world, effects.SpanClosed)] == ["10:10:30"]


def test_a_rejected_schedule_is_open_until_it_is_mended():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30")
    world.see(rejection(seen)).run_until("10:03:30")
    assert [each.reason for each in told(world, effects.SpanOpened)] == [Reason.REJECTED]
    world.see(edited(edited(seen)))
    assert [each.reason for each in told(world, effects.SpanClosed)] == [Reason.REJECTED]


def test_a_restart_opens_again_what_is_suspended():
    seen = cron(EVERY_MINUTE, suspend=True)
    world = World().see(seen).crash(for_s=60).run_until("10:02")
    assert [clock(each.first) for each in told(world, effects.SpanOpened)] == [
        "10:00:01",
        "10:00:01",
    ]


def test_the_status_keeps_the_last_spans_for_the_ledger():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30").crash(for_s=600)
    world.run_until("10:12")
    (span,) = world.status()["internal"]["spans"]
    assert span == {
        "first": "2026-03-02T10:02:00Z",
        "last": "2026-03-02T10:10:00Z",
        "count": 9,
        "state": "missed",
        "reason": "superseded",
    }
    world.crash(for_s=1).run_until("10:12:30")
    assert clock(told(world, effects.ScheduleKnown)[-1].spans[0].last) == "10:10:00"


# --- first sight and end --------------------------------------------------------------------------


def test_after_a_restart_the_status_is_told_with_what_is_alive():
    seen = every(60)
    world = World().see(seen).run_until("10:02:30")
    world.succeed(seen, "10:01")
    world.crash(for_s=1).run_until("10:02:40")
    known = told(world, effects.ScheduleKnown)[-1]
    assert [clock(row.due) for row in known.recent] == ["10:01:00", "10:02:00"]
    assert [clock(run.due) for run in known.alive] == ["10:02:00"]
    assert clock(known.mark) >= "10:02:00"


def test_a_schedule_that_is_deleted_ends_and_nothing_later_is_expected():
    seen = every(60)
    world = World().see(seen).run_until("10:02:30")
    world.gone(seen)
    (ended,) = told(world, effects.ScheduleEnded)
    assert (clock(ended.at), clock(ended.until)) == ("10:02:30", "10:02:00")


def test_a_schedule_that_is_deleted_before_its_create_was_answered_leaves_no_hole():
    seen = every(60)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    world.gone(seen)
    (ended,) = told(world, effects.ScheduleEnded)
    assert clock(ended.until) == "10:00:59"


def test_a_name_gets_the_phase_back_that_the_ledger_has_kept():
    seen = every(3600, offset_s=None)
    kept = Placed(anchor=instant("09:12:34"), every_s=3600, placed_at=instant("09:00"))
    world = World().tell(messages.PhasesRead(((seen.key, kept, instant("09:30")),)))
    world.see(seen)
    assert world.status()["placement"]["anchor"] == "2026-03-02T09:12:34Z"


def test_a_phase_older_than_a_day_is_not_given_back():
    seen = every(3600, offset_s=None)
    kept = Placed(anchor=instant("09:12:34"), every_s=3600, placed_at=instant("09:00"))
    world = World().tell(messages.PhasesRead(((seen.key, kept, instant("09:00") - 86_400),)))
    world.see(seen)
    assert world.status()["placement"]["anchor"] != "2026-03-02T09:12:34Z"


# --- an instant that is over ----------------------------------------------------------------------


def moved_back(world: World, to: str = "10:05") -> World:
    """A schedule that ran every minute is to run once, at an instant that is over."""
    seen = cron(EVERY_MINUTE)
    world.see(seen).run_until("10:05:30")
    world.succeed(seen, "10:05")
    world.run_until("10:20:30")
    rarely = edited(seen, rule=Cron("30 * * * *"))
    world.see(rarely).run_until("10:21:30")
    return world.see(edited(rarely, rule=At(instant(to)))).run_until("10:22")


def missed(world: World) -> list[Any]:
    return [row for row in world.rows if row.state is RunState.MISSED]


def test_an_instant_that_ran_long_ago_gets_no_second_verdict():
    world = World()
    world.ledger[RunId("uid-report", instant("10:05"))] = RunState.SUCCEEDED
    assert not missed(moved_back(world))


def test_an_instant_that_never_ran_is_missed():
    (row,) = missed(moved_back(World(), "10:05:30"))
    assert row.reason is Reason.PAST


@pytest.mark.parametrize("answers", [True, False])
def test_without_a_ledger_it_is_missed_as_far_as_anybody_knows(answers):
    world = moved_back(World(has_ledger=False, ledger_answers=answers))
    assert [row.reason for row in missed(world)] == [Reason.PAST]


def test_who_ended_while_asking_asks_again():
    world = World(ledger_answers=False)
    seen = cron(EVERY_MINUTE)
    world.see(seen).run_until("10:20:30")
    rarely = edited(seen, rule=Cron("30 * * * *"))
    world.see(rarely).run_until("10:21:30")
    world.see(edited(rarely, rule=At(instant("10:05:30"))))
    assert not missed(world)
    world.ledger_answers = True
    world.crash(for_s=1).run_until("10:23")
    assert [row.reason for row in missed(world)] == [Reason.PAST]


def test_after_a_restart_nothing_is_missed_on_the_word_of_nobody():
    world = moved_back(World())
    before = len(missed(world))
    world.has_ledger = False
    world.crash(for_s=1).run_until("10:23")
    assert len(missed(world)) == before


def test_a_first_sight_does_not_ask():
    world = World(ledger_answers=False)
    world.see(once("09:00"))
    assert [row.reason for row in missed(world)] == [Reason.PAST]
