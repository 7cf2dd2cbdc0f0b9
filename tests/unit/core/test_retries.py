"""A failed Job becomes a new attempt of the same run."""

import pytest
from tests.builders import clock, edited, every, instant, job, rejection
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.model import Concurrency, JobState, MissedRuns, Retry, Verdict
from evenkeel.resource.job import job_name


def test_attempts_are_jobs_of_their_own_after_growing_delays():
    seen = every(3600, retry=Retry(limit=4, delay_s=10, factor=3, max_delay_s=60))
    world = World().see(seen).run_until("11:00")
    for attempt in range(1, 5):
        world.fail(seen, "11:00", attempt)
        world.run_until(world.now + 61)
    began = [at for _, _, at in world.creations]
    failed = [began[0], *(began[0] + 61 * k for k in range(1, 4))]
    assert [round(at - f) for at, f in zip(began[1:], failed, strict=True)] == [10, 30, 60, 60]
    names = world.names_created()
    assert names == [
        "report-29540820",
        "report-retry1-29540820",
        "report-retry2-29540820",
        "report-retry3-29540820",
        "report-retry4-29540820",
    ]
    assert world.said("Retrying")[1] == (
        f"Job {names[1]} failed: BackoffLimitExceeded; attempt 3 of at most 5 begins 30 s later"
    )


def test_the_event_of_a_retry_quotes_the_words_of_the_job():
    seen = every(3600, retry=Retry(limit=1, delay_s=10))
    world = World().see(seen).run_until("11:00")
    world.change(
        world.job(seen, "11:00"),
        state=JobState.FAILED,
        reason="DeadlineExceeded",
        message="Job was active longer than specified deadline",
        finished=int(world.now),
    )
    assert world.said("Retrying") == [
        "Job report-29540820 failed: DeadlineExceeded: Job was active longer than specified "
        "deadline; attempt 2 of at most 2 begins 10 s later"
    ]


def test_counters_count_runs_not_attempts():
    seen = every(3600, retry=Retry(limit=1, delay_s=1))
    world = World().see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    assert world.counts() == {}
    world.run_until("11:00:05")
    world.fail(seen, "11:00", 2)
    assert world.counts() == {"failed": 1}
    assert world.ends() == [("11:00:00", "failed", "BackoffLimitExceeded")]


def test_a_run_that_succeeds_at_its_second_attempt_has_succeeded():
    seen = every(3600, retry=Retry(limit=1, delay_s=1))
    world = World().see(seen).run_until("11:00")
    world.fail(seen, "11:00")
    world.run_until("11:00:05")
    world.succeed(seen, "11:00", 2)
    assert world.counts() == {"succeeded": 1}
    assert world.status()["consecutiveFailures"] == 0


def test_end_time_and_starting_deadline_bound_only_the_first_attempt():
    seen = every(
        3600, retry=Retry(limit=1, delay_s=600), end=instant("11:01"), starting_deadline_s=60
    )
    world = World().see(seen).run_until("11:00:30")
    world.fail(seen, "11:00")
    world.run_until("11:11")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_no_new_attempt_while_suspended_and_one_after():
    seen = every(3600, retry=Retry(limit=1, delay_s=60))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.see(edited(seen, suspend=True)).run_until("11:10")
    assert len(world.creations) == 1
    world.see(edited(edited(seen))).run_until("11:10:05")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_a_held_second_attempt_is_not_skipped_by_a_suspension_and_goes_on_after_it():
    seen = every(3600, retry=Retry(limit=1, delay_s=10))
    world = World().see(seen).run_until("11:00:10")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "11:00")
    world.run_until("11:00:25")
    assert world.alive() == {"11:00:00": "held"}
    world.answering = lambda _: Verdict.CREATED
    world.see(edited(seen, suspend=True)).run_until("11:05")
    assert (world.ends(), len(world.creations)) == ([], 1)
    world.see(edited(edited(seen))).run_until("11:06")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_no_new_attempt_after_deletion():
    seen = every(3600, retry=Retry(limit=1, delay_s=60))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.gone(seen)
    assert len(world.run_until("11:10").creations) == 1


def test_a_retry_waits_while_the_schedule_is_rejected():
    seen = every(3600, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.see(rejection(seen)).run_until("11:05")
    assert len(world.creations) == 1
    world.see(edited(edited(seen))).run_until("11:06")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_a_job_that_fails_while_its_schedule_is_rejected_keeps_its_attempts():
    seen = every(3600, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("11:00:10").see(rejection(seen))
    world.fail(seen, "11:00")
    assert world.alive() == {"11:00:00": "retrying"}
    world.see(edited(edited(seen))).run_until("11:01")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


@pytest.mark.parametrize("with_job", [True, False], ids=["its Job is left", "its Job is gone"])
def test_a_crash_between_two_attempts_neither_skips_nor_adds_one(with_job):
    seen = every(3600, retry=Retry(limit=1, delay_s=60))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    if not with_job:
        world.remove(world.job(seen, "11:00"))
    world.crash().run_until("11:02")
    world.fail(seen, "11:00", 2)
    world.run_until("11:20")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
    assert world.counts() == {"failed": 1}


def test_a_retry_waits_for_its_delay_across_a_crash_that_finds_its_failed_job_gone():
    seen = every(3600, retry=Retry(limit=2, delay_s=100, factor=3))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:02")
    world.fail(seen, "11:00", 2)
    for attempt in (1, 2):
        world.remove(world.job(seen, "11:00", attempt))  # ttlSecondsAfterFinished
    world.crash(for_s=10).run_until("11:20")
    assert [clock(at) for _, _, at in world.creations] == ["11:00:00", "11:01:50", "11:07:00"]


def test_a_held_second_attempt_is_the_second_attempt_after_a_crash_too():
    seen = every(3600, retry=Retry(limit=2, delay_s=5))
    world = World().see(seen).run_until("11:00:10")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    assert world.alive() == {"11:00:00": "held"}
    world.remove(world.job(seen, "11:00"))  # ttlSecondsAfterFinished
    world.answering = lambda _: Verdict.CREATED
    world.crash().run_until("11:01")
    assert world.names_created()[-1] == "report-retry1-29540820"


def test_a_held_second_attempt_is_tried_again_when_another_held_run_is_given_up():
    retry = Retry(limit=1, delay_s=10)
    seen = every(600, missed_runs=MissedRuns.SKIP, retry=retry, end=instant("10:25"))
    world = World().see(seen).run_until("10:19:51")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "10:10")  # its second attempt is due beside the run of 10:20
    world.run_until("10:22")
    assert world.alive() == {"10:10:00": "held"}
    assert world.ends() == [("10:20:00", "missed", "not_in_time")]
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:23")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_a_second_attempt_whose_job_vanished_while_nobody_watched_is_lost():
    seen = every(3600, retry=Retry(limit=3, delay_s=1))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    world.remove(world.job(seen, "11:00", 2), told=False)  # the first attempt's Job is still there
    world.crash().run_until("11:05")
    assert world.ends() == [("11:00:00", "lost", "outcome_unknown")]
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_a_second_attempt_that_vanished_with_no_retry_left_gives_its_run_one_verdict():
    seen = every(3600, retry=Retry(limit=3, delay_s=1))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    world.remove(world.job(seen, "11:00", 2), told=False)
    world.schedules[seen.uid] = edited(seen, retry=Retry(limit=0))
    world.crash().run_until("11:05")
    assert world.verdicts() == 1


def test_an_older_attempts_job_changes_nothing():
    seen = every(3600, retry=Retry(limit=1, delay_s=1))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    world.remove(world.job(seen, "11:00"))
    assert world.alive() == {"11:00:00": "running"}


def test_a_retry_that_is_held_longer_than_grace_is_not_missed():
    seen = every(3600, missed_runs=MissedRuns.SKIP, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("11:00:10")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "11:00")
    world.run_until("11:03")
    assert world.ends() == []
    world.answering = lambda _: Verdict.CREATED
    world.run_until("11:04")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]


def test_a_held_first_attempt_is_missed_and_the_held_retry_beside_it_is_not():
    seen = every(60, missed_runs=MissedRuns.SKIP, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("10:01:50")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "10:01")
    world.run_until("10:02:59")
    assert world.ends() == [("10:02:00", "missed", "not_in_time")]
    assert world.alive()["10:01:00"] == "held"


def test_starting_deadline_does_not_bound_a_held_retry():
    seen = every(3600, starting_deadline_s=30, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("11:00:10")
    world.answering = lambda _: Verdict.HELD
    world.fail(seen, "11:00")
    world.run_until("11:02")
    assert world.alive() == {"11:00:00": "held"}


def test_a_retry_tells_nothing_of_our_precision():
    seen = every(3600, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
    assert world.lateness() == [0.0]


def test_a_failed_attempts_job_that_changes_again_does_not_touch_the_next_attempt():
    seen = every(3600, retry=Retry(limit=2, delay_s=1))
    world = World().see(seen).run_until("11:00:10")
    world.fail(seen, "11:00")
    world.run_until("11:00:20")
    world.change(world.job(seen, "11:00"), message="its finalizer is gone")
    assert world.run_until("11:01").alive() == {"11:00:00": "running"}
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
    world.succeed(seen, "11:00", 2)
    assert world.counts() == {"succeeded": 1}


def test_the_delay_counts_from_the_end_of_the_job_however_late_it_is_seen():
    seen = every(3600, retry=Retry(limit=1, delay_s=60))
    world = World().see(seen).run_until("11:01")
    failed = {"state": JobState.FAILED, "finished": instant("11:00:20")}
    world.change(world.job(seen, "11:00"), **failed)
    world.run_until("11:03")
    assert [at for _, attempt, at in world.creations if attempt == 2] == [instant("11:01:20")]


@pytest.mark.parametrize("crash", [False, True], ids=["in one process", "over a restart"])
def test_history_deletes_the_jobs_of_all_attempts(crash):
    seen = every(3600, retry=Retry(limit=2, delay_s=1), keep_failed=0)
    world = World().see(seen).run_until("11:00")
    for attempt in (1, 2):
        world.fail(seen, "11:00", attempt)
        world.run_until(world.now + 5)
        if crash:
            world.crash()
    world.succeed(seen, "11:00", 3)
    assert list(world.jobs) == [job_name("report", job(seen, "11:00").run, 3)]


def test_a_second_attempt_whose_deletion_does_not_go_frees_its_place_too():
    seen = every(3600, retry=Retry(limit=1, delay_s=1))
    world = World().see(seen).run_until("11:00")
    world.change(world.job(seen, "11:00"), deleting=True)
    world.fail(seen, "11:00")
    world.run_until("11:00:10")
    world.change(world.job(seen, "11:00", 2), deleting=True)
    world.run_until("11:02:11")
    assert world.ends() == [("11:00:00", "lost", "job_deleted")]


def test_a_retry_keeps_its_row_among_newer_runs_or_a_crash_would_begin_it_again():
    seen = every(10, retry=Retry(limit=1, delay_s=3000))
    world = World().see(seen).run_until("10:00:15")
    world.fail(seen, "10:00:10")
    world.remove(world.job(seen, "10:00:10"))  # as a ttl does
    for second in range(20, 60, 10):
        for minute in range(4):
            due = f"10:0{minute}:{second}"
            world.run_until(f"10:04:{second}")
            if clock(instant(due)) in world.started():
                world.succeed(seen, due)
    (row,) = world.status()["internal"]["waiting"]
    assert (row["due"], row["attempt"], row["reason"]) == ("2026-03-02T10:00:10Z", 2, "retrying")
    world.crash().run_until(world.now + 60)
    assert [attempt for run, attempt, _ in world.creations if clock(run.due) == "10:00:10"] == [1]


def test_a_held_second_attempt_keeps_its_row_among_newer_runs():
    """Without it a crash that finds the first Job gone would begin again with the first attempt."""
    seen = every(60, retry=Retry(limit=2, delay_s=5))
    world = World().see(seen).run_until("10:01:05")
    world.fail(seen, "10:01")
    world.answering = lambda launch: Verdict.HELD if launch.attempt == 2 else Verdict.CREATED
    world.run_until("10:16:30")
    world.remove(world.job(seen, "10:01"))
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=5).run_until("10:16:50")
    created = [attempt for run, attempt, _ in world.creations if clock(run.due) == "10:01:00"]
    assert created == [1, 2]


def test_what_a_first_attempt_told_is_not_taken_for_the_second():
    seen = every(3600, retry=Retry(limit=3, delay_s=600), pending_deadline_s=300)
    world = World().see(seen).run_until("11:00:05")
    world.fail(seen, "11:00")
    world.answering = lambda _: None
    world.run_until("11:10:06")
    begun = job(seen, "11:00", JobState.WAITING, attempt=2, started=None)
    world.jobs[begun.ref.name] = begun
    world.tell(messages.JobSeen(begun))
    world.see(edited(seen, priority=3)).run_until("11:10:10")
    assert world.looked_at == []


def test_a_retry_whose_row_says_that_it_failed_in_9999_waits_for_its_delay_only():
    seen = every(60, concurrency=Concurrency.FORBID, retry=Retry(limit=2, delay_s=10))
    world = World().see(seen).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.remove(world.job(seen, "10:01"))
    world.statuses[seen.uid]["internal"]["waiting"][0]["retryAt"] = "9999-01-01T00:00:00Z"
    world.crash().run_until("10:01:25")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
