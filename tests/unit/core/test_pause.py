"""pauseAfterFailures: so many failures in a row pause the schedule, and what ends that."""

import pytest
from tests.builders import clock, cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel.model import Cron, Retry, RunId, Verdict


def paused_after_two() -> tuple[World, object]:
    seen = cron("* * * * *", pause_after_failures=2)
    world = World().see(seen)
    for due in ("10:01", "10:02"):
        world.run_until(due)
        world.fail(seen, due)
    return world, seen


def test_failures_in_a_row_pause_the_schedule_and_say_so():
    world, _ = paused_after_two()
    world.run_until("10:10")
    assert world.started() == ["10:01:00", "10:02:00"]
    assert world.condition("Active") == ("False", "Paused")
    assert world.status()["pause"]["by"] == "evenkeel"
    assert "2 runs in a row failed" in world.status()["pause"]["reason"]
    assert len(world.said("Paused")) == 1


def test_a_success_between_them_starts_the_count_anew():
    seen = cron("* * * * *", pause_after_failures=2)
    world = World().see(seen).run_until("10:03")
    world.fail(seen, "10:01")
    world.succeed(seen, "10:02")
    world.fail(seen, "10:03")
    assert "pause" not in world.status()


def test_a_lost_run_counts_as_a_failure():
    seen = cron("* * * * *", pause_after_failures=1)
    world = World().see(seen).run_until("10:01")
    world.remove(world.job(seen, "10:01"))
    assert world.condition("Active") == ("False", "Paused")


CLEARED_BY = {
    "a timing edit": {"rule": Cron("*/2 * * * *")},
    "a template edit": {"template_hash": "second"},
}


@pytest.mark.parametrize("change", CLEARED_BY.values(), ids=CLEARED_BY)
def test_it_is_cleared_by(change):
    world, seen = paused_after_two()
    world.run_until("10:09:30").see(edited(seen, **change)).run_until("10:10:30")
    assert "pause" not in world.status()
    assert world.condition("Active") == ("True", "Scheduled")
    assert world.started()[2:] == ["10:10:00"]
    assert ("10:03:00..10:09:00 x7", "skipped", "paused") in world.ends()


def test_it_is_cleared_by_resume():
    world, seen = paused_after_two()
    world.run_until("10:05:30").see(edited(seen, suspend=True)).run_until("10:07:30")
    world.see(edited(edited(seen))).run_until("10:08:30")
    assert "pause" not in world.status()
    assert world.started()[2:] == ["10:08:00"]
    assert world.verdicts() + len(world.alive()) == 8


def test_it_is_not_cleared_by_another_edit():
    world, seen = paused_after_two()
    world.run_until("10:05").see(edited(seen, priority=7)).run_until("10:10")
    assert world.condition("Active") == ("False", "Paused")


def test_it_survives_a_crash():
    world, _ = paused_after_two()
    world.crash(for_s=300).run_until("10:20")
    assert world.started() == ["10:01:00", "10:02:00"]


def test_no_new_attempt_while_paused_and_one_after():
    seen = every(60, retry=Retry(limit=1, delay_s=60), pause_after_failures=1)
    world = World().see(seen).run_until("10:02:10")
    world.fail(seen, "10:01")
    world.remove(world.job(seen, "10:02"))  # lost: a failure that is not retried
    world.run_until("10:06")
    assert world.alive() == {"10:01:00": "retrying"}
    world.see(edited(seen, template_hash="second")).run_until("10:06:05")
    assert (RunId(seen.uid, instant("10:01")), 2) in {(run, n) for run, n, _ in world.creations}


def test_a_held_retry_waits_through_a_pause_and_goes_on_after():
    seen = every(60, retry=Retry(limit=1, delay_s=5), pause_after_failures=1)
    world = World().see(seen).run_until("10:02:10")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "10:01")
    world.run_until("10:02:17")
    world.remove(world.job(seen, "10:02"))
    world.answering = lambda _: Verdict.CREATED
    assert world.run_until("10:06").alive() == {"10:01:00": "held"}
    world.see(edited(seen, template_hash="second")).run_until("10:06:50")
    assert (RunId(seen.uid, instant("10:01")), 2) in {(run, n) for run, n, _ in world.creations}


def test_after_a_pause_the_count_begins_anew():
    world, seen = paused_after_two()
    world.run_until("10:05:30").see(edited(seen, template_hash="second")).run_until("10:06")
    world.fail(seen, "10:06")
    assert world.condition("Active") == ("True", "Scheduled")
    assert world.status()["consecutiveFailures"] == 1


def test_a_missed_run_is_no_failure():
    seen = cron("*/10 * * * *", pause_after_failures=1, starting_deadline_s=5)
    world = World().see(seen).run_until("10:05").stall_until("10:10:06")
    assert world.counts() == {"missed": 1}
    assert world.status()["consecutiveFailures"] == 0
    assert world.condition("Active") == ("True", "Scheduled")


def test_it_is_said_once_however_many_of_its_jobs_fail_after():
    seen = every(60, pause_after_failures=1)
    world = World().see(seen).run_until("10:03")
    since = []
    for due in ("10:01", "10:02", "10:03"):
        world.fail(seen, due)
        since.append(world.status()["pause"]["since"])
        world.run_until(world.now + 10)
    assert len(set(since)) == 1
    assert len(world.said("Paused")) == 1


def test_a_create_that_waits_in_its_lane_is_called_back():
    seen = every(60, pause_after_failures=1)
    world = World().see(seen).run_until("10:01:05")
    world.answering = lambda _: None
    world.run_until("10:02:05")
    world.fail(seen, "10:01")
    assert [clock(gone.run.due) for gone in world.withdraw if gone.attempt == 1] == ["10:02:00"]
