"""Why a run failed: its Job's Pods are asked once, and the run's end waits for the answer."""

from tests.builders import edited, every, instant, rejection
from tests.unit.core.world import World

from evenkeel.core.messages import PodsLookedAt
from evenkeel.model import Cause, Concurrency, JobState, Retry
from evenkeel.resource.job import job_name

CAUSE = Cause("OOMKilled", "work", 137, "no room")


def failed(world: World | None = None, **spec) -> tuple[World, object]:
    """A run at 10:10 whose Job has failed, and nobody has told why yet."""
    seen = every(600, **spec)
    world = (world or World(explains=False, cause=CAUSE)).see(seen).run_until("10:10")
    world.fail(seen, "10:10")
    return world, seen


def answer(world: World, look=None) -> None:
    world.tell(world.explained(look or world.asked_why[-1]))


def unreadable(world: World) -> None:
    look = world.asked_why[-1]
    world.tell(PodsLookedAt(look.run, look.attempt, False, None, "may not list Pods"))


def row(world: World) -> dict:
    return world.status()["recent"][0]


def test_a_run_ends_with_the_cause_that_its_pods_tell():
    world, _ = failed()
    assert world.alive() == {"10:10:00": "running"}
    answer(world)
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert (row(world)["exitCode"], row(world)["exitReason"]) == (137, "OOMKilled")
    assert world.rows[0].cause == CAUSE
    assert world.said("RunFailed") == [
        "The run due 2026-03-02T10:10:00Z failed: BackoffLimitExceeded; container work exited with "
        "code 137 (OOMKilled): no room"
    ]
    assert len(world.asked_why) == 1


def test_no_log_line_holds_the_last_words_of_a_container():
    world, _ = failed(retry=Retry(limit=1))
    answer(world)
    (line,) = [line for line in world.logged if line.event == "run retries"]
    assert (line.fields["exit_code"], line.fields["exit_reason"]) == (137, "OOMKilled")
    assert "no room" not in str(world.logged)


def test_without_an_answer_the_run_ends_after_ten_seconds_and_an_answer_later_changes_nothing():
    world, _ = failed()
    world.run_until("10:10:09")
    assert world.alive() == {"10:10:00": "running"}
    world.run_until("10:10:11")
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert "exitCode" not in row(world)
    assert row(world)["finished"] == "2026-03-02T10:10:00Z"
    answer(world)
    assert world.counts() == {"failed": 1}
    assert "exitCode" not in row(world)


def test_pods_that_are_gone_leave_the_reason_of_the_job():
    world, _ = failed(World(explains=False))
    answer(world)
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert "exitReason" not in row(world)


def test_without_the_right_to_list_pods_the_run_ends_at_once_and_degraded_says_what_is_missing():
    world, seen = failed()
    unreadable(world)
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert world.condition("Degraded") == ("True", "PodsUnreadable")
    world.run_until("10:20")
    assert world.condition("Degraded") == ("True", "PodsUnreadable"), "a create changes no right"
    world.fail(seen, "10:20")
    answer(world)
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_the_delay_of_a_retry_counts_from_the_failure():
    world, _ = failed(retry=Retry(limit=1, delay_s=20))
    world.run_until("10:10:08")
    answer(world)
    world.run_until("10:10:19")
    assert len(world.creations) == 1
    assert row(world)["exitCode"] == 137
    world.run_until("10:10:20")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
    assert "exitCode" not in row(world)


def test_each_attempt_has_a_cause_of_its_own():
    world, seen = failed(retry=Retry(limit=1, delay_s=1))
    answer(world)
    world.run_until("10:10:02")
    world.cause = Cause("Error", "work", 3)
    world.fail(seen, "10:10", 2)
    assert len(world.asked_why) == 2
    answer(world, world.asked_why[0])  # the first attempt's, once more
    assert world.alive() == {"10:10:00": "running"}
    answer(world)
    assert world.rows[-1].cause == Cause("Error", "work", 3)


# --- its Pods may go before it has failed ---------------------------------------------------------


def failing(world: World, seen) -> None:
    world.change(world.job(seen, "10:10"), state=JobState.FAILING)


def test_a_job_that_is_ending_its_pods_is_asked_before_they_go():
    seen = every(600)
    world = World(explains=False, cause=CAUSE).see(seen).run_until("10:10")
    failing(world, seen)
    answer(world)
    assert world.alive() == {"10:10:00": "running"}
    world.run_until("10:10:30").fail(seen, "10:10")
    assert len(world.asked_why) == 1
    assert world.rows[-1].cause == CAUSE


def test_where_no_container_had_failed_by_then_its_pods_are_asked_once_more():
    seen = every(600)
    world = World(explains=False).see(seen).run_until("10:10")
    failing(world, seen)
    answer(world)
    world.cause = CAUSE
    world.fail(seen, "10:10")
    answer(world)
    assert len(world.asked_why) == 2
    assert world.rows[-1].cause == CAUSE


def test_one_look_serves_both_sights():
    seen = every(600)
    world = World(explains=False, cause=CAUSE).see(seen).run_until("10:10")
    failing(world, seen)
    world.fail(seen, "10:10")
    assert len(world.asked_why) == 1
    answer(world)
    assert world.counts() == {"failed": 1}


# --- what happens while the answer is awaited -----------------------------------------------------


def test_a_crash_while_the_answer_is_awaited_asks_again_and_tells_it_once():
    world, _ = failed()
    world.crash(for_s=3)
    assert len(world.asked_why) == 2
    answer(world)
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    world.crash()
    assert world.counts() == {"failed": 1}
    assert row(world)["exitCode"] == 137


def test_a_job_deleted_while_the_answer_is_awaited_has_failed_and_history_forgets_it():
    world, seen = failed()
    world.remove(world.job(seen, "10:10"))
    assert world.alive() == {"10:10:00": "running"}
    answer(world)
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert row(world)["job"] == job_name(seen.name, world.rows[0].run)
    assert world.scheduler.state.entries[seen.uid].finished_jobs == []


def test_a_job_that_failed_keeps_no_place_from_a_run_that_is_due():
    seen = every(10, concurrency=Concurrency.FORBID)
    world = World(explains=False).see(seen).run_until("10:00:18")
    assert world.started() == ["10:00:10"]
    world.fail(seen, "10:00:10")
    world.run_until("10:00:20")
    assert world.started() == ["10:00:10", "10:00:20"]
    assert world.ends() == [("10:00:10", "failed", "BackoffLimitExceeded")]


def test_a_rejected_schedule_whose_job_failed_is_judged_when_it_is_mended():
    seen = every(600)
    world = World(explains=False, cause=CAUSE).see(seen).run_until("10:10")
    world.see(rejection(seen)).crash()
    world.change(
        world.job(seen, "10:10"), state=JobState.FAILED, finished=instant("10:10"), reason="X"
    )
    answer(world)
    assert world.ends() == []
    world.see(edited(edited(seen)))
    assert world.ends() == [("10:10:00", "failed", "X")]
    assert world.rows[-1].cause == CAUSE
