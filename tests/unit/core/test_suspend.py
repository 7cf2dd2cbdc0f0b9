"""Suspended, nothing runs; resumed, nothing of what passed meanwhile runs."""

import pytest
from tests.builders import clock, cron, edited, every, once
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.model import Concurrency, Cron, MissedRuns, Retry, Verdict

EVERY_MINUTE = "* * * * *"


@pytest.mark.parametrize("policy", MissedRuns)
def test_a_suspended_span_is_one_row_and_never_runs(policy):
    seen = cron(EVERY_MINUTE, missed_runs=policy)
    world = World().see(seen).run_until("10:01:30")
    world.see(edited(seen, suspend=True)).run_until("10:10:30")
    world.see(edited(edited(seen))).run_until("10:12:30")
    assert world.started() == ["10:01:00", "10:11:00", "10:12:00"]
    assert world.ends() == [("10:02:00..10:10:00 x9", "skipped", "suspended")]
    assert world.said("RunSkipped") == [
        "9 runs due 2026-03-02T10:02:00Z..2026-03-02T10:10:00Z were skipped: suspended"
    ]
    assert world.status()["internal"]["resumedAt"] == "2026-03-02T10:10:30Z"


def test_suspended_says_so_and_has_no_next_run():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).see(edited(seen, suspend=True))
    assert world.condition("Active") == ("False", "Suspended")
    assert "nextRunTime" not in world.status()
    assert "upcoming" not in world.status()
    assert world.status()["internal"]["suspendedSince"] == "2026-03-02T10:00:00Z"


def test_suspended_from_its_creation_and_resumed():
    seen = cron(EVERY_MINUTE, suspend=True)
    world = World().see(seen).run_until("10:05:30")
    world.see(edited(seen, suspend=False)).run_until("10:06")
    assert world.started() == ["10:06:00"]
    assert world.ends() == [("10:01:00..10:05:00 x5", "skipped", "suspended")]


def test_resumed_while_the_operator_was_away():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30").see(edited(seen, suspend=True))
    world.schedules[seen.uid] = edited(edited(seen))
    world.crash(for_s=600).run_until("10:12")
    assert world.started() == ["10:01:00", "10:12:00"]
    assert world.ends() == [("10:02:00..10:11:00 x10", "skipped", "suspended")]


def test_resumed_by_the_same_edit_that_changes_the_timing():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30").see(edited(seen, suspend=True))
    world.run_until("10:10:30")
    world.see(edited(edited(seen), rule=Cron("*/5 * * * *"))).run_until("10:15")
    assert world.started() == ["10:01:00", "10:15:00"]
    assert world.ends() == [("10:02:00..10:10:00 x9", "skipped", "suspended")]


def test_a_timing_edited_while_suspended_is_counted_by_each_timing_for_its_time():
    seen = cron(EVERY_MINUTE, suspend=True)
    world = World().see(seen).run_until("10:10:30")
    slower = edited(seen, rule=Cron("*/5 * * * *"))
    world.see(slower).run_until("10:30:30")
    world.see(edited(slower, suspend=False))
    assert world.ends() == [
        ("10:01:00..10:10:00 x10", "skipped", "suspended"),
        ("10:15:00..10:30:00 x4", "skipped", "suspended"),
    ]


def test_a_run_that_was_prepared_is_let_go():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:00:55")
    world.see(edited(seen, suspend=True))
    assert len(world.withdraw) == 1
    world.run_until("10:01:30").see(edited(edited(seen)))
    assert world.ends() == [("10:01:00", "skipped", "suspended")]


def test_a_run_that_was_prepared_starts_when_resumed_in_time():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:00:55").see(edited(seen, suspend=True))
    world.see(edited(edited(seen))).run_until("10:01")
    assert world.started() == ["10:01:00"]


def test_running_jobs_go_on():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01").see(edited(seen, suspend=True))
    world.succeed(seen, "10:01")
    assert world.counts() == {"succeeded": 1}


def test_queued_runs_are_skipped():
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:02:30").see(edited(seen, suspend=True))
    assert world.ends() == [("10:02:00", "skipped", "suspended")]


def test_a_suspended_single_run_is_skipped_not_run_late():
    seen = once("10:05", suspend=True)
    world = World().see(seen).run_until("10:06").see(edited(seen, suspend=False))
    assert world.started() == []
    assert world.ends() == [("10:05:00", "skipped", "suspended")]


def test_a_job_created_just_before_a_crash_is_not_also_part_of_the_suspended_span():
    seen = cron(EVERY_MINUTE)
    world = World(answering=lambda _: None).see(seen).run_until("10:01")
    world.see(edited(seen, suspend=True))
    world.writes = False
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.writes = True
    world.schedules[seen.uid] = edited(edited(seen))
    world.crash(for_s=150)  # 10:03:30
    assert world.alive() == {"10:01:00": "running"}
    assert world.ends() == [("10:02:00..10:03:00 x2", "skipped", "suspended")]


def test_resumed_exactly_at_a_due_time_that_one_is_passed_too():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01:30").see(edited(seen, suspend=True))
    world.run_until("10:05").see(edited(edited(seen))).run_until("10:06")
    assert world.started() == ["10:01:00", "10:06:00"]
    assert world.ends() == [("10:02:00..10:05:00 x4", "skipped", "suspended")]


def test_a_held_run_is_skipped_and_does_not_come_back_when_resumed():
    seen = every(600)
    world = World(answering=lambda _: Verdict.HELD).see(seen).run_until("10:10:05")
    world.see(edited(seen, suspend=True)).see(edited(edited(seen)))
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:11")
    assert world.started() == []
    assert world.ends() == [("10:10:00", "skipped", "suspended")]


def test_another_edit_while_suspended_leaves_since_when():
    seen = cron(EVERY_MINUTE, suspend=True)
    world = World().see(seen).run_until("10:05").see(edited(seen, priority=7))
    assert world.status()["internal"]["suspendedSince"] == "2026-03-02T10:00:00Z"


# --- creates that wait in their lanes -------------------------------------------------------------


def called_back(world):
    """What the launcher does with a create that is let go of while it waits in its lane."""
    for launch in list(world.in_flight):
        if any((gone.run, gone.attempt) == (launch.run, launch.attempt) for gone in world.withdraw):
            world.in_flight.remove(launch)
            world.scheduler.inbox.hint(launch, messages.PutBack(launch.run, launch.attempt))
    world.settle()


def test_a_create_that_waits_in_its_lane_is_called_back_and_skipped():
    seen = every(60)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    world.see(edited(seen, suspend=True))
    called_back(world)
    assert world.ends() == [("10:01:00", "skipped", "suspended")]


def test_a_retry_that_waits_in_its_lane_is_called_back_and_goes_on_when_resumed():
    seen = every(600, retry=Retry(limit=2, delay_s=10), concurrency=Concurrency.FORBID)
    world = World().see(seen).run_until("10:10:05")
    world.answering = lambda _: None
    world.fail(seen, "10:10")
    world.run_until("10:10:40")
    suspended = edited(seen, suspend=True)
    world.see(suspended)
    called_back(world)
    world.run_until("10:15")
    assert len(world.creations) == 1
    assert [row["due"] for row in world.status()["internal"]["waiting"]] == ["2026-03-02T10:10:00Z"]
    world.answering = lambda _: Verdict.CREATED
    world.see(edited(suspended, suspend=False)).run_until("10:20:30")
    assert [(clock(run.due), attempt) for run, attempt, _ in world.creations] == [
        ("10:10:00", 1),
        ("10:10:00", 2),
    ]
    assert world.ends() == [("10:20:00", "skipped", "overlap")]  # it held its place


def test_a_create_that_was_on_its_way_when_suspended_counts():
    seen = every(60)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:05")
    world.see(edited(seen, suspend=True))
    world.answer(world.in_flight[0], Verdict.CREATED)
    assert world.alive() == {"10:01:00": "running"}
    assert world.ends() == []
