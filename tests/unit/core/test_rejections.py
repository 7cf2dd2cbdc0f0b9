"""A spec that cannot be read: nothing of it runs, and mending it fires nothing of the past that the
user has replaced."""

import pytest
from tests.builders import clock, cron, edited, every, instant, rejection
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.schedule import accept
from evenkeel.model import Concurrency, Cron, Interval, JobState, MissedRuns, Retry
from evenkeel.settings import Settings

EVERY_FIVE_MINUTES = "*/5 * * * *"


def test_a_rejected_schedule_starts_nothing_and_says_why():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:20")
    assert world.started() == ["10:05:00"]
    assert world.condition("ScheduleAccepted") == ("False", "Invalid")
    assert world.condition("Ready") == ("False", "Invalid")
    assert world.said("Refused") == ["Invalid: spec.schedule: month 13 does not exist"]


def test_a_rejected_schedule_does_not_disturb_the_others():
    good, other = cron(EVERY_FIVE_MINUTES), cron(EVERY_FIVE_MINUTES, name="other")
    world = World().see(other).see(rejection(good)).run_until("10:06")
    assert world.started("other") == ["10:05:00"]


def test_rolled_back_to_the_old_spec_the_timing_never_changed():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:17")
    world.see(edited(edited(good))).run_until("10:21")
    assert world.started() == ["10:05:00", "10:15:00", "10:20:00"]
    assert world.ends() == [("10:10:00", "missed", "superseded")]
    assert world.status()["internal"]["timing"]["since"] == "2026-03-02T10:00:00Z"


def test_a_job_of_a_rejected_schedule_is_still_followed_to_its_end():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good))
    world.succeed(good, "10:05")
    assert world.counts() == {"succeeded": 1}


def test_a_schedule_rejected_at_first_sight_claims_no_mark():
    world = World().see(rejection(cron(EVERY_FIVE_MINUTES)))
    assert "mark" not in world.status()


# --- mended by another timing ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", MissedRuns)
def test_mended_by_another_timing_the_one_before_the_mistake_fires_no_more(policy):
    good = cron(EVERY_FIVE_MINUTES, missed_runs=policy)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:17")
    world.see(edited(edited(good), rule=Cron("30 * * * *"))).run_until("10:31")
    assert world.started() == ["10:05:00", "10:30:00"]
    assert world.ends() == [("10:10:00..10:15:00 x2", "skipped", "rejected")]
    assert world.said("RunSkipped") == [
        "2 runs due 2026-03-02T10:10:00Z..2026-03-02T10:15:00Z were skipped: rejected"
    ]


def test_within_grace_as_well():
    """Ten seconds late is no reason to run by a timing that the user has replaced."""
    good = every(20)
    world = World().see(good).run_until("10:01:05").see(rejection(good)).run_until("10:01:30")
    world.see(edited(edited(good), rule=Interval(60, 7, good.timing.rule.anchor)))
    world.run_until("10:02:10")
    assert world.started() == ["10:00:20", "10:00:40", "10:01:00", "10:02:07"]
    assert world.ends() == [("10:01:20", "skipped", "rejected")]


@pytest.mark.parametrize("crash_at", ["10:11", "10:16:59"])
def test_a_restart_in_between_knows_it_too(crash_at):
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until(crash_at)
    world.crash(for_s=1).run_until("10:17:30")
    world.see(edited(edited(good), rule=Cron("30 * * * *"))).run_until("10:31")
    assert world.started() == ["10:05:00", "10:30:00"]
    assert world.ends() == [("10:10:00..10:15:00 x2", "skipped", "rejected")]


def test_mended_while_nobody_ran_it_is_the_same():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:11")
    world.schedules[good.uid] = edited(edited(good), rule=Cron("30 * * * *"))
    world.crash(for_s=300).run_until("10:31")
    assert world.started() == ["10:05:00", "10:30:00"]
    assert world.ends() == [("10:10:00..10:15:00 x2", "skipped", "rejected")]


def test_a_run_that_came_back_from_its_lane_is_skipped_with_them():
    """The lanes were closed for longer than it may wait, and the mistake came with that news."""
    good = cron(EVERY_FIVE_MINUTES)
    world = World(answering=lambda launch: None).see(good).run_until("10:05:02")
    (launch,) = world.in_flight
    world.scheduler.inbox.hint("back", messages.PutBack(launch.run, launch.attempt))
    world.see(rejection(good)).run_until("10:17")
    assert world.alive() == {"10:05:00": "scheduled"}
    world.see(edited(edited(good), rule=Cron("30 * * * *"))).run_until("10:18")
    assert world.ends() == [
        ("10:05:00", "skipped", "rejected"),
        ("10:10:00..10:15:00 x2", "skipped", "rejected"),
    ]


def test_suspended_meanwhile_it_is_said_so():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).see(edited(good, suspend=True)).run_until("10:06")
    world.see(rejection(edited(good))).run_until("10:17")
    mended = edited(edited(edited(good)), rule=Cron("30 * * * *"), suspend=True)
    world.see(mended).run_until("10:31")
    assert world.started() == []
    assert world.ends()[0] == ("10:05:00..10:15:00 x3", "skipped", "suspended")


# --- what is shown meanwhile ----------------------------------------------------------------------


def test_while_rejected_no_column_speaks_of_the_old_schedule():
    good = cron(EVERY_FIVE_MINUTES)
    world = World().see(good).run_until("10:06").see(rejection(good)).run_until("10:07")
    assert world.condition("Active") == ("False", "NotAccepted")
    assert world.status()["scheduleText"] == "refused: Invalid"
    assert "nextRunTime" not in world.status()
    world.see(edited(edited(good))).run_until("10:08")
    assert world.condition("Active") == ("True", "Scheduled")
    assert world.status()["scheduleText"] == EVERY_FIVE_MINUTES


def test_rejected_at_first_sight_it_shows_why_in_the_same_places():
    world = World().see(rejection(cron(EVERY_FIVE_MINUTES))).run_until("10:01")
    assert world.condition("Active") == ("False", "NotAccepted")
    assert world.status()["scheduleText"] == "refused: Invalid"


# --- what runs or waits already goes on by what was accepted last --------------------------------


def test_an_attempt_waits_through_a_rejection_and_a_restart():
    seen = cron("* * * * *", retry=Retry(limit=2, delay_s=20))
    world = World().see(seen).run_until("10:01:05").see(rejection(seen))
    world.fail(seen, "10:01")
    assert world.status()["recent"][0]["state"] == "retrying"
    world.crash(for_s=1).see(edited(edited(seen))).run_until("10:01:40")
    assert [(clock(run.due), attempt) for run, attempt, _ in world.creations] == [
        ("10:01:00", 1),
        ("10:01:00", 2),
    ]
    assert world.counts() == {}


def test_a_job_that_fails_after_a_restart_while_rejected_is_tried_again_when_mended():
    seen = cron("* * * * *", retry=Retry(limit=2, delay_s=20))
    world = World().see(seen).run_until("10:01:05").see(rejection(seen)).crash(for_s=1)
    world.fail(seen, "10:01")
    world.see(edited(edited(seen))).run_until("10:01:40")
    assert world.counts() == {}
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_failures_that_reach_the_limit_while_rejected_pause_it():
    seen = cron("* * * * *", pause_after_failures=2)
    world = World().see(seen).run_until("10:02")
    world.fail(seen, "10:01")
    world.see(rejection(seen))
    world.fail(seen, "10:02")
    world.run_until("10:02:30").see(edited(edited(seen))).run_until("10:05")
    assert world.started() == ["10:01:00", "10:02:00"]
    assert world.condition("Active") == ("False", "Paused")


def test_a_deadline_that_passes_while_the_schedule_is_rejected_is_not_forgotten():
    seen = every(600, pending_deadline_s=60, concurrency=Concurrency.QUEUE)
    world = World(Settings(pod_start_warning_s=0)).see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=instant("10:10"))
    world.see(rejection(seen)).run_until("10:12").see(edited(edited(seen)))
    world.run_until("10:20")
    assert len(world.looked_at) == 1


def test_a_run_put_back_while_rejected_is_skipped_when_suspended():
    seen = every(60, starting_deadline_s=60)
    world = World(answering=lambda launch: None).see(seen).run_until("10:01:02")
    (launch,) = world.in_flight
    world.see(rejection(seen))
    world.scheduler.inbox.hint("back", messages.PutBack(launch.run, launch.attempt))
    world.run_until("10:05:05").see(edited(edited(seen), suspend=True)).run_until("10:05:06")
    world.see(edited(edited(edited(seen)))).run_until("10:05:50")
    assert world.verdicts() == 5


def test_a_run_put_back_after_its_timing_was_edited_is_not_reckoned_by_the_new_one():
    """Lanes closed by a 429 for a minute; a mistake and its mending come in between."""
    seen = every(60, starting_deadline_s=10)
    world = World(answering=lambda launch: None).see(seen).run_until("10:01:05")
    (launch,) = world.in_flight
    other = edited(seen, rule=Cron("*/30 * * * *"))
    world.see(other).run_until("10:01:30").see(rejection(other)).run_until("10:02")
    world.scheduler.inbox.hint("back", messages.PutBack(launch.run, launch.attempt))
    world.run_until("10:02:10").see(edited(edited(other))).run_until("10:03")
    assert world.ends() == [("10:01:00", "missed", "deadline")]


def test_a_status_that_nobody_foresaw_keeps_nobody_from_readiness(monkeypatch):
    """Without an entry the operator would wait for its schedule for ever, and so would all."""
    good = cron(EVERY_FIVE_MINUTES)
    world = World(surprises=True).see(good).run_until("10:06")
    mark, begin = world.status()["internal"]["mark"], accept.begin

    def surprised(turn, seen, memory, **more):
        if memory.record.recent:
            raise OverflowError("too large")
        return begin(turn, seen, memory, **more)

    monkeypatch.setattr(accept, "begin", surprised)
    world.crash(for_s=1).run_until("10:11")
    assert world.scheduler.ready
    assert world.condition("Ready") == ("Unknown", "InternalError")
    assert world.started() == ["10:05:00"]
    assert world.status()["internal"]["mark"] == mark
    monkeypatch.undo()
    assert world.run_until("10:16").started() == ["10:05:00", "10:10:00", "10:15:00"]
