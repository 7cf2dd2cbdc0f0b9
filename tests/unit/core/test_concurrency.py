"""Allow, Forbid, Replace, Queue; and that a run holds its place to its end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import cron, edited, every, instant, job, rejection
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.schedule.overlap import Overlap, overlap
from evenkeel.model import Concurrency, JobState, MissedRuns, Retry, RunState, Verdict

ALLOW, FORBID, REPLACE, QUEUE = Concurrency

TABLE = {
    "Allow starts beside any number": (ALLOW, 7, 0, 20, Overlap.START),
    "Forbid starts in an empty place": (FORBID, 0, 0, 20, Overlap.START),
    "Forbid skips when one holds the place": (FORBID, 1, 0, 20, Overlap.SKIP),
    "Replace starts in an empty place": (REPLACE, 0, 0, 20, Overlap.START),
    "Replace takes the place": (REPLACE, 1, 0, 20, Overlap.REPLACE),
    "Queue starts in an empty place": (QUEUE, 0, 0, 20, Overlap.START),
    "Queue waits when one holds the place": (QUEUE, 1, 0, 20, Overlap.QUEUE),
    "Queue waits behind others even when the place is free": (QUEUE, 0, 1, 20, Overlap.QUEUE),
    "Queue takes the last waiting place": (QUEUE, 1, 19, 20, Overlap.QUEUE),
    "Queue skips when maxQueued wait": (QUEUE, 1, 20, 20, Overlap.SKIP),
    "Queue of no length skips": (QUEUE, 1, 0, 0, Overlap.SKIP),
}


@pytest.mark.parametrize(
    ("policy", "occupying", "queued", "max_queued", "answer"), TABLE.values(), ids=TABLE
)
def test_overlap(policy, occupying, queued, max_queued, answer):
    assert overlap(policy, occupying=occupying, queued=queued, max_queued=max_queued) is answer


@given(st.sampled_from(Concurrency), st.integers(0), st.integers(0), st.integers(0, 100))
def test_overlap_is_total_and_never_queues_beyond_its_bound(policy, occupying, queued, max_queued):
    answer = overlap(policy, occupying=occupying, queued=queued, max_queued=max_queued)
    assert isinstance(answer, Overlap)
    assert answer is not Overlap.QUEUE or queued < max_queued


# --- a minute's schedule whose Jobs take longer -----------------------------------------------


@pytest.mark.parametrize(
    ("policy", "occupying", "queued", "answer"),
    [
        (Concurrency.ALLOW, 3, 0, Overlap.START),
        (Concurrency.FORBID, 0, 0, Overlap.QUEUE),
        (Concurrency.FORBID, 0, 1, Overlap.SKIP),
        (Concurrency.FORBID, 1, 0, Overlap.SKIP),
        (Concurrency.REPLACE, 0, 0, Overlap.QUEUE),
        (Concurrency.REPLACE, 0, 1, Overlap.REPLACE_QUEUED),
        (Concurrency.REPLACE, 1, 0, Overlap.REPLACE_QUEUED),
        (Concurrency.QUEUE, 0, 0, Overlap.QUEUE),
        (Concurrency.QUEUE, 0, 1, Overlap.QUEUE),
        (Concurrency.QUEUE, 0, 2, Overlap.SKIP),
    ],
)
def test_overlap_with_a_requested_run_in_the_place(policy, occupying, queued, answer):
    found = overlap(policy, occupying=occupying, queued=queued, max_queued=2, requested=1)
    assert found is answer


def test_allow_lets_runs_overlap():
    world = World().see(every(60)).run_until("10:03")
    assert world.alive() == dict.fromkeys(["10:01:00", "10:02:00", "10:03:00"], "running")


def test_forbid_consumes_the_due_time():
    seen = every(60, concurrency=FORBID)
    world = World().see(seen).run_until("10:02:30")
    world.succeed(seen, "10:01")
    world.run_until("10:03")
    assert world.started() == ["10:01:00", "10:03:00"]
    assert world.ends()[0] == ("10:02:00", "skipped", "overlap")
    assert len(world.said("JobAlreadyActive")) == 1


def test_replace_cancels_the_running_one_and_creates_at_once():
    seen = every(60, concurrency=REPLACE)
    world = World().see(seen).run_until("10:01:30")
    first = world.job(seen, "10:01")
    world.run_until("10:02")
    assert world.alive() == {"10:02:00": "running"}
    assert world.ends() == [("10:01:00", "cancelled", "replaced")]
    assert world.said("Replaced") == [
        "The run due 2026-03-02T10:01:00Z was cancelled: "
        "the one due 2026-03-02T10:02:00Z replaces it"
    ]
    assert [(each.ref, each.why) for each in world.deleted] == [(first.ref, "replaced")]
    assert len(world.jobs) == 1


def test_queue_runs_one_after_the_other_in_order():
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:03:30")
    assert world.alive() == {"10:01:00": "running", "10:02:00": "queued", "10:03:00": "queued"}
    world.succeed(seen, "10:01")
    world.succeed(seen, "10:02")
    assert world.started() == ["10:01:00", "10:02:00", "10:03:00"]


def test_queue_skips_beyond_max_queued():
    world = World().see(every(60, concurrency=QUEUE, max_queued=1)).run_until("10:03")
    assert world.ends() == [("10:03:00", "skipped", "queue_full")]


def test_a_queued_run_that_was_cancelled_frees_its_place_in_the_queue():
    seen = every(60, concurrency=QUEUE, max_queued=1)
    world = World().see(seen).run_until("10:02:30")
    assert world.cancel(seen, "10:02") is RunState.CANCELLED
    world.run_until("10:03")
    assert world.alive() == {"10:01:00": "running", "10:03:00": "queued"}


def test_a_queued_run_beyond_its_starting_deadline_is_missed_when_its_turn_comes():
    seen = every(60, concurrency=QUEUE, starting_deadline_s=30)
    world = World().see(seen).run_until("10:02:50")
    world.succeed(seen, "10:01")
    assert world.ends()[-1] == ("10:02:00", "missed", "deadline")
    assert world.said("MissSchedule") == [
        "Missed scheduled time to start a job: 2026-03-02T10:02:00Z: deadline"
    ]
    assert world.started() == ["10:01:00"]


def test_a_long_queue_survives_a_crash_in_order_and_one_at_a_time():
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:15:30")  # 14 wait, and recent tells of ten rows
    world.crash()
    assert list(world.alive().values()) == ["running"] + ["queued"] * 14
    for minute in range(1, 16):
        world.succeed(seen, f"10:{minute:02}")
    assert world.started() == [f"10:{minute:02}:00" for minute in range(1, 16)]


def test_a_long_queue_survives_a_rejected_edit_and_a_crash_one_at_a_time():
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:15:30").see(rejection(seen)).crash()
    world.see(edited(edited(seen))).run_until("10:16:59")
    assert [due for due, state in world.alive().items() if state == "running"] == ["10:01:00"]


def test_what_is_queued_starts_when_the_policy_becomes_allow():
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:03:30")
    assert world.alive() == {"10:01:00": "running", "10:02:00": "queued", "10:03:00": "queued"}
    world.see(edited(seen, concurrency=ALLOW))
    assert set(world.alive().values()) == {"running"}


def test_a_queue_waits_through_a_pause_and_goes_on_when_it_ends():
    seen = every(60, concurrency=QUEUE, pause_after_failures=1)
    world = World().see(seen).run_until("10:02:30")
    world.fail(seen, "10:01")
    assert world.alive() == {"10:02:00": "queued"}
    world.see(edited(seen, template_hash="second"))
    assert world.started() == ["10:01:00", "10:02:00"]


def test_replace_cancels_all_that_an_earlier_policy_let_run():
    seen = every(60)
    world = World().see(seen).run_until("10:02:30").see(edited(seen, concurrency=REPLACE))
    world.run_until("10:03")
    assert world.alive() == {"10:03:00": "running"}
    assert world.counts() == {"cancelled": 2}


@pytest.mark.parametrize(
    ("verdict", "end"),
    [(Verdict.REFUSED, "failed"), (Verdict.TAKEN, "failed"), (Verdict.UNKNOWN, "lost")],
)
def test_a_queue_goes_on_behind_a_run_whose_create_came_to_nothing(verdict, end):
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:03:30")
    second = instant("10:02")
    world.answering = lambda launch: verdict if launch.run.due == second else Verdict.CREATED
    world.succeed(seen, "10:01")
    assert [row[:2] for row in world.ends()] == [("10:01:00", "succeeded"), ("10:02:00", end)]
    assert world.alive() == {"10:03:00": "running"}


# --- the place is held through retries --------------------------------------------------------

RETRY_LATER = Retry(limit=1, delay_s=300)


def test_forbid_skips_while_a_retry_is_waited_for():
    seen = every(60, concurrency=FORBID, retry=RETRY_LATER)
    world = World().see(seen).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.run_until("10:02")
    assert world.alive() == {"10:01:00": "retrying"}
    assert world.ends() == [("10:02:00", "skipped", "overlap")]


def test_queue_waits_while_a_retry_is_waited_for():
    seen = every(60, concurrency=QUEUE, retry=RETRY_LATER)
    world = World().see(seen).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.run_until("10:02")
    assert world.alive() == {"10:01:00": "retrying", "10:02:00": "queued"}


def test_replace_cancels_the_waiting_retry():
    seen = every(60, concurrency=REPLACE, retry=RETRY_LATER)
    world = World().see(seen).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.run_until("10:10")
    assert world.ends()[0] == ("10:01:00", "cancelled", "replaced")
    assert [attempt for run, attempt, _ in world.creations if attempt > 1] == []


def test_the_failed_job_of_a_replaced_retry_is_cleaned_up_by_history():
    seen = every(60, concurrency=REPLACE, retry=RETRY_LATER, keep_failed=0)
    world = World().see(seen).run_until("10:01:10")
    world.fail(seen, "10:01")
    world.run_until("10:02:30")
    assert [fact.run.due for fact in world.jobs.values()] == [world.job(seen, "10:02").run.due]


def test_a_held_run_holds_its_place():
    world = World(answering=lambda _: Verdict.HELD)
    world.see(every(20, concurrency=FORBID)).run_until("10:00:40")
    assert world.ends() == [("10:00:40", "skipped", "overlap")]


def test_replace_deletes_a_job_whose_create_was_under_way():
    seen = every(60, concurrency=REPLACE)
    world = World(answering=lambda _: None).see(seen).run_until("10:02")
    assert world.ends() == [("10:01:00", "cancelled", "replaced")]
    world.answer(world.in_flight[0], Verdict.CREATED)
    assert world.jobs == {}
    assert world.alive() == {"10:02:00": "pending"}


# --- priorities -------------------------------------------------------------------------------


def test_runs_due_together_are_launched_with_what_orders_them():
    world = World().see(every(60, name="low", priority=-5)).see(every(60, name="high", priority=5))
    world.run_until("10:01")
    assert {launch.schedule.name: launch.schedule.priority for launch in world.launches} == {
        "low": -5,
        "high": 5,
    }


def test_a_replaced_run_whose_end_no_status_tells_is_no_failure_after_a_crash():
    seen = every(60, concurrency=Concurrency.REPLACE)
    world = World().see(seen).run_until("10:01:30")
    world.writes = False
    world.run_until("10:02:00")
    world.writes = True
    world.crash()
    assert world.ends()[-1] == ("10:01:00", "cancelled", "replaced")
    assert world.counts() == {"cancelled": 1}
    assert world.status()["consecutiveFailures"] == 0


def test_a_job_that_vanished_while_nobody_watched_is_lost_under_replace_too():
    seen = every(60, concurrency=Concurrency.REPLACE)
    world = World().see(seen).run_until("10:01:30")
    world.remove(world.job(seen, "10:01"), told=False)
    world.crash()
    assert world.ends() == [("10:01:00", "lost", "outcome_unknown")]


# --- what frees a place without a Job that tells of it ----------------------------------------


@pytest.mark.parametrize(
    "spec",
    [{"missed_runs": MissedRuns.SKIP}, {"starting_deadline_s": 45}],
    ids=["Skip", "deadline"],
)
def test_the_queue_goes_on_after_a_held_run_was_given_up(spec):
    world = World(answering=lambda _: Verdict.HELD).see(every(20, concurrency=QUEUE, **spec))
    world.run_until("10:01:30")
    assert world.ends()[0][:2] == ("10:00:20", "missed")
    world.answering = lambda _: Verdict.CREATED
    assert world.run_until("10:03").started() != []


def test_the_queue_goes_on_after_a_held_run_was_superseded_in_a_stall():
    world = World(answering=lambda _: Verdict.HELD).see(every(20, concurrency=QUEUE))
    world.run_until("10:00:45")
    assert world.alive()["10:00:40"] == "queued"
    world.answering = lambda _: Verdict.CREATED
    world.stall_until("10:02:05")
    assert world.started() == ["10:00:40"]


def test_the_queue_goes_on_after_an_adopted_job_that_has_ended_unseen():
    seen = every(60, concurrency=QUEUE)
    world = World(answering=lambda _: None).see(seen).run_until("10:02:10")
    (launch,) = world.in_flight
    done = job(seen, "10:01", JobState.SUCCEEDED)
    world.jobs[done.ref.name] = done
    world.answering = lambda _: Verdict.CREATED
    world.answer(launch, Verdict.ADOPTED)
    assert world.started() == ["10:02:00"]


def test_edited_to_replace_what_is_queued_is_replaced_too():
    seen = every(60, concurrency=QUEUE)
    world = World().see(seen).run_until("10:03:30")
    assert world.alive() == {"10:01:00": "running", "10:02:00": "queued", "10:03:00": "queued"}
    world.see(edited(seen, concurrency=REPLACE)).run_until("10:04:01")
    assert world.alive() == {"10:04:00": "running"}
    assert sorted(world.ends()) == [
        (due, "cancelled", "replaced") for due in ("10:01:00", "10:02:00", "10:03:00")
    ]


def test_what_is_queued_is_not_started_before_its_instant_by_a_clock_that_was_set_back():
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:02:30")
    world.set_clock("10:01:30")
    world.succeed(seen, "10:01")
    assert world.started() == ["10:01:00"]
    world.run_until("10:02:01")
    assert world.started() == ["10:01:00", "10:02:00"]


def test_the_queue_goes_on_after_a_job_that_was_gone_before_its_create_was_answered():
    seen = cron("0,1 11 * * *", concurrency=Concurrency.QUEUE)
    world = World(answering=lambda _: None).see(seen).run_until("11:01:05")
    (launch,) = world.in_flight
    fact = job(seen, "11:00", JobState.SUCCEEDED, finished=int(world.now))
    world.in_flight.clear()
    world.answering = lambda _: Verdict.CREATED
    world.tell(messages.JobGone(fact))
    world.tell(messages.CreateResult(launch.run, 1, Verdict.CREATED, fact.ref, world.now))
    world.run_until("11:02")
    assert world.alive() == {"11:01:00": "running"}
    assert world.scheduler.state.entries[seen.uid].finished_jobs == []
