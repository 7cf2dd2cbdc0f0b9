"""The name is the lock, each create verdict has its path, and cancelling at any time."""

import pytest
from tests.builders import edited, every, instant, job
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.messages import CreateResult
from evenkeel.model import Concurrency, Cron, JobRef, JobState, Retry, RunId, RunState, Verdict
from evenkeel.reasons import ConditionReason
from evenkeel.resource.job import OWNER, job_name

TEN_MINUTES = 600


def test_created_runs_and_its_lateness_is_observed():
    world = World().see(every(TEN_MINUTES)).run_until("10:10")
    assert world.alive() == {"10:10:00": "running"}
    assert world.lateness() == [0.0]
    assert world.said("SuccessfulCreate") == [f"Created job {world.names_created()[0]}"]
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_adopted_runs_as_if_created_but_says_nothing_of_lateness():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.observed.clear()
    world.answering = lambda _: Verdict.CREATED
    world.crash()
    assert world.alive() == {"10:10:00": "running"}
    assert len(world.creations) == 1
    assert world.lateness() == []


def test_an_adopted_job_that_has_ended_ends_its_run():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    launch = world.in_flight[0]
    name = job_name(seen.name, launch.run)
    world.jobs[name] = job(seen, "10:10", JobState.SUCCEEDED)  # by another process of ours
    world.answer(launch, Verdict.CREATED)
    assert world.counts() == {"succeeded": 1}


@pytest.mark.parametrize("lost", [(OWNER,), ("label x",), (OWNER, "label x")])
def test_a_job_that_was_altered_as_it_was_stored_is_said_and_asked_for_by_name(lost):
    seen = every(TEN_MINUTES, concurrency=Concurrency.FORBID)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answer(world.in_flight[0], Verdict.CREATED, marks_lost=lost)
    assert world.alive() == {"10:10:00": "running"}
    assert world.condition("Degraded") == ("True", "JobAltered")
    (sentence,) = world.said("JobAltered")
    assert f"was stored without its {' and its '.join(lost)}" in sentence
    name = job_name(seen.name, RunId(seen.uid, instant("10:10")))
    assert [(each.ref.name, each.disowned) for each in world.asked_for] == [(name, OWNER in lost)]

    world.jobs_listed()  # a list that does not show it either
    world.scheduler.inbox.hint(("jobs", ""), messages.JobsListed((), int(world.now)))
    world.settle()
    assert [each.disowned for each in world.asked_for] == 2 * [OWNER in lost]

    world.answering = lambda _: Verdict.CREATED
    world.succeed(seen, "10:10")
    world.run_until("10:20")
    assert world.alive() == {"10:20:00": "running"}
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_taken_fails_the_run_names_the_condition_and_deletes_nothing():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answer(world.in_flight[0], Verdict.TAKEN, message="a Job of that name is another's")
    assert world.ends() == [("10:10:00", "failed", "name_taken")]
    assert world.condition("Degraded") == ("True", "NameTaken")
    assert world.deleted == []


def test_taken_by_a_cronjob_of_the_name_the_run_is_skipped_and_nothing_is_wrong():
    seen = every(TEN_MINUTES, retry=Retry(limit=3, delay_s=1), pause_after_failures=1)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    message = "the CronJob of the same name has created the Job"
    world.answer(world.in_flight[0], Verdict.TAKEN, reason=ConditionReason.CRONJOB, message=message)
    assert world.ends() == [("10:10:00", "skipped", "cronjob")]
    assert world.counts() == {"skipped": 1}
    assert world.condition("Degraded") == ("False", "AsExpected")
    due = "2026-03-02T10:10:00Z"
    assert world.said("RunSkipped") == [f"The run due {due} was skipped: cronjob: {message}"]
    assert world.deleted == []
    world.answering = lambda _: Verdict.CREATED
    assert world.run_until("10:20").alive() == {"10:20:00": "running"}


def test_refused_fails_without_a_retry_before_the_next_due_time():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: Verdict.REFUSED).see(seen).run_until("10:19:59")
    assert world.ends() == [("10:10:00", "failed", "refused")]
    assert len(world.launches) == 1
    world.run_until("10:20")
    assert len(world.launches) == 2


NO_RETRY_HEALS = {"refused": Verdict.REFUSED, "name_taken": Verdict.TAKEN}


@pytest.mark.parametrize(("reason", "verdict"), NO_RETRY_HEALS.items(), ids=NO_RETRY_HEALS)
def test_what_no_retry_heals_is_not_tried_again(reason, verdict):
    seen = every(TEN_MINUTES, retry=Retry(limit=3, delay_s=1))
    world = World(answering=lambda _: verdict).see(seen).run_until("10:19")
    assert [launch.attempt for launch in world.launches] == [1]
    assert world.ends() == [("10:10:00", "failed", reason)]
    assert world.counts() == {"failed": 1}


@pytest.mark.parametrize(("reason", "verdict"), NO_RETRY_HEALS.items(), ids=NO_RETRY_HEALS)
def test_and_as_a_second_attempt_it_is_the_end_of_its_run(reason, verdict):
    seen = every(TEN_MINUTES, retry=Retry(limit=3, delay_s=1))
    world = World().see(seen).run_until("10:10:30")
    world.answering = lambda _: verdict
    world.fail(seen, "10:10")
    world.run_until("10:19")
    assert [launch.attempt for launch in world.launches] == [1, 2]
    assert world.ends() == [("10:10:00", "failed", reason)]
    assert world.counts() == {"failed": 1}


def test_held_waits_degraded_and_recovers():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answering = lambda _: Verdict.CREATED
    world.answer(
        world.in_flight[0],
        Verdict.HELD,
        reason=ConditionReason.QUOTA_EXCEEDED,
        message="exceeded quota",
    )
    assert world.condition("Degraded") == ("True", "QuotaExceeded")
    assert world.alive() == {"10:10:00": "held"}
    world.run_until("10:10:02")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_unknown_for_ever_is_lost():
    world = World(answering=lambda _: Verdict.UNKNOWN).see(every(TEN_MINUTES)).run_until("10:10")
    assert world.ends() == [("10:10:00", "lost", "outcome_unknown")]
    assert len(world.launches) == 1


def test_an_answer_to_an_attempt_of_the_past_changes_nothing():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    run = RunId(seen.uid, instant("10:10"))
    world.tell(CreateResult(run, 7, Verdict.REFUSED, JobRef("shop", "x"), world.now))
    world.tell(
        CreateResult(RunId("nobody", run.due), 1, Verdict.CREATED, JobRef("shop", "x"), world.now)
    )
    assert world.alive() == {"10:10:00": "running"}


# --- ttlSecondsAfterFinished ------------------------------------------------------------------


LAUNCHING = {"due": "2026-03-02T10:10:00Z", "attempt": 1, "reason": "launching"}


@pytest.mark.parametrize("ttl_s", [0, 60, 300, 86_400])
def test_a_job_with_a_ttl_is_announced_in_the_seconds_before_its_create(ttl_s):
    stored = []
    world = World().see(every(TEN_MINUTES, ttl_s=ttl_s))

    def create(launch):
        assert 0 < launch.announced <= world.stored[launch.run.uid], "it is stored already"
        stored.append(world.status()["internal"])
        return Verdict.CREATED

    world.answering = create
    world.run_until("10:10")
    assert [(one["mark"], one.get("waiting", [])) for one in stored] == [
        ("2026-03-02T10:10:00Z", [LAUNCHING])
    ]
    assert world.alive() == {"10:10:00": "running"}


def test_a_job_without_a_ttl_is_not_announced():
    world = World(answering=lambda _: None).see(every(TEN_MINUTES)).run_until("10:10")
    world.write("uid-report")
    assert world.launches[0].announced == 0
    assert "waiting" not in world.status()["internal"]


def test_a_run_that_comes_late_is_announced_at_once_and_its_create_waits_for_that():
    seen = every(TEN_MINUTES, ttl_s=60)
    world = World().see(seen).crash(for_s=1200)
    (launch,) = world.launches
    assert launch.announced > 0
    assert world.started() == ["10:20:00"]


@pytest.mark.parametrize(
    ("ttl_s", "away_s", "end"),
    [
        (60, 10, None),
        (60, 54, None),
        (60, 56, ("10:10:00", "lost", "outcome_unknown")),
        (60, 61, ("10:10:00", "lost", "outcome_unknown")),
        (3600, 300, None),
        (3600, 3601, ("10:10:00", "lost", "outcome_unknown")),
    ],
)
def test_an_announced_run_without_a_job_is_launched_unless_its_ttl_can_have_passed(
    ttl_s, away_s, end
):
    seen = every(86_400, anchor="2026-03-01T10:10:00Z", ttl_s=ttl_s)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=away_s)
    assert world.ends() == ([end] if end else [])
    assert len(world.creations) == (0 if end else 1)


def test_an_announced_run_whose_template_was_edited_meanwhile_is_lost():
    """The ttl of the template that it was created from is not known any more."""
    seen = every(TEN_MINUTES, ttl_s=3600)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.schedules[seen.uid] = edited(seen, template_hash="second")
    world.answering = lambda _: Verdict.CREATED
    world.crash()
    assert world.ends() == [("10:10:00", "lost", "outcome_unknown")]


@pytest.mark.parametrize("edit", [{"suspend": True}, {"rule": Cron("5 10 * * *")}])
def test_an_edit_takes_the_mark_back_and_withdraws_what_was_announced(edit):
    seen = every(TEN_MINUTES, ttl_s=60)
    world = World().see(seen).run_until("10:09:55")
    assert world.status()["internal"]["mark"] == "2026-03-02T10:10:00Z"
    world.see(edited(seen, **edit)).run_until("10:09:57")
    assert world.status()["internal"]["mark"] <= "2026-03-02T10:09:57Z"
    assert "waiting" not in world.status()["internal"]
    assert world.run_until("10:11").launches == []


def test_an_announced_run_is_taken_up_again_after_a_crash_before_its_due_time():
    world = World().see(every(TEN_MINUTES, ttl_s=60)).run_until("10:09:52")
    assert world.status()["internal"]["waiting"] == [LAUNCHING]
    world.crash(for_s=2).run_until("10:10:30")
    assert world.started() == ["10:10:00"]
    assert world.ends() == []


def test_a_create_without_an_answer_that_may_arrive_yet_is_launching_still():
    """It arrives, the process dies, and the ttl takes the Job: nobody may create it once more."""
    world = World(answering=lambda _: None).see(every(TEN_MINUTES, ttl_s=60)).run_until("10:10")
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    assert world.status()["internal"]["waiting"] == [
        LAUNCHING | {"retryAt": "2026-03-02T10:10:00Z"}
    ]
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=60)
    assert world.ends() == [("10:10:00", "lost", "outcome_unknown")]
    assert world.creations == []


@pytest.mark.parametrize(("ttl_s", "created"), [(0, 0), (20, 0), (60, 1), (None, 1)])
def test_without_an_answer_and_without_a_job_it_is_tried_again_unless_the_ttl_can_have_passed(
    ttl_s, created
):
    """With a ttl of 0 the Job may have run and vanished before it was looked for by its name."""
    seen = every(TEN_MINUTES, ttl_s=ttl_s)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    (launch,) = world.in_flight
    world.run_until("10:10:20")
    world.answering = lambda _: Verdict.CREATED
    sent_at = instant("10:10")
    reason = ConditionReason.NOT_CREATED
    world.in_flight.remove(launch)
    ref = JobRef(seen.ns, job_name(seen.name, launch.run))
    world.tell(messages.CreateResult(launch.run, 1, Verdict.HELD, ref, sent_at, "", reason))
    world.run_until("10:10:30")
    assert len(world.creations) == created
    assert world.ends() == ([] if created else [("10:10:00", "lost", "outcome_unknown")])


def test_a_run_that_was_put_back_is_announced_no_more():
    seen = every(TEN_MINUTES, ttl_s=0)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    launch = world.in_flight[0]
    world.tell(messages.Shutdown()).tell(messages.PutBack(launch.run, 1))
    assert [row["reason"] for row in world.status()["internal"]["waiting"]] == ["taken_up"]


def test_while_the_announcement_cannot_be_stored_the_run_is_held():
    world = World(answering=lambda _: None).see(every(TEN_MINUTES, ttl_s=60)).run_until("10:10")
    reason = ConditionReason.STATUS_NOT_WRITTEN
    world.answer(world.in_flight[0], Verdict.HELD, reason=reason, message="403")
    assert world.condition("Degraded") == ("True", "StatusNotWritten")
    assert [row["reason"] for row in world.status()["internal"]["waiting"]] == ["unannounced"]
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:10:05")
    assert world.alive() == {"10:10:00": "running"}


def test_a_marked_run_whose_job_is_not_found_after_a_crash_is_lost_and_never_launched_again():
    world = World(answering=lambda _: None).see(every(TEN_MINUTES, ttl_s=0)).run_until("10:10")
    world.answering = lambda _: Verdict.CREATED
    world.crash().run_until("10:19")
    assert world.ends() == [("10:10:00", "lost", "outcome_unknown")]
    assert world.creations == []


def test_a_marked_run_whose_job_is_there_after_a_crash_is_followed():
    seen = every(TEN_MINUTES, ttl_s=0)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.writes = False
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.writes = True
    world.crash()
    world.succeed(seen, "10:10")
    assert world.counts() == {"succeeded": 1}


def test_a_marked_second_attempt_whose_job_is_not_found_after_a_crash_is_lost_too():
    seen = every(3600, ttl_s=200, retry=Retry(limit=1, delay_s=10))
    world = World().see(seen).run_until("11:00:10")
    world.answering = lambda _: None
    world.fail(seen, "11:00")
    world.run_until("11:00:21")
    (launch,) = world.in_flight
    (row,) = world.status()["internal"]["waiting"]
    assert (row["attempt"], row["reason"], row["retryAt"]) == (
        2,
        "launching",
        "2026-03-02T11:00:20Z",
    )
    assert launch.attempt == 2
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=201).run_until("11:05")
    assert world.ends() == [("11:00:00", "lost", "outcome_unknown")]
    assert [attempt for _, attempt, _ in world.creations] == [1]


# --- cancelling -------------------------------------------------------------------------------


def test_cancelled_before_its_instant_it_never_starts():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:09:55")
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    world.run_until("10:15")
    assert world.launches == []
    assert [each.run.due for each in world.withdraw] == [instant("10:10")]
    assert world.ends() == [("10:10:00", "cancelled", "cancelled")]


def test_cancelled_before_its_instant_it_does_not_come_back_by_a_crash():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:09:55")
    world.cancel(seen, "10:10")
    world.crash().run_until("10:15")
    assert world.launches == []
    assert world.verdicts() == 1


def test_cancelled_before_its_instant_it_does_not_come_back_by_an_edit():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:09:52")
    world.cancel(seen, "10:10")
    world.see(edited(seen, rule=every(60).timing.rule)).run_until("10:10:30")
    assert world.started() == []
    world.run_until("10:11")
    assert world.started() == ["10:11:00"]


def test_cancelled_during_its_create_its_job_is_deleted_once_it_exists():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    world.answer(world.in_flight[0], Verdict.CREATED)
    assert world.jobs == {}
    assert world.counts() == {"cancelled": 1}


@pytest.mark.parametrize("verdict", [Verdict.HELD, Verdict.REFUSED, Verdict.TAKEN, Verdict.UNKNOWN])
def test_cancelled_during_a_create_that_came_to_nothing_it_is_only_cancelled(verdict):
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    world.answer(world.in_flight[0], verdict)
    world.run_until("10:19")
    assert world.counts() == {"cancelled": 1}
    assert world.deleted == []
    assert len(world.launches) == 1


def test_cancelled_during_a_create_that_arrives_after_it_was_given_up_its_job_is_deleted():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    world.run_until("10:10:20")
    late = job(seen, "10:10")
    world.jobs[late.ref.name] = late
    world.change(late)
    assert world.jobs == {}
    assert world.counts() == {"cancelled": 1}


GIVEN_UP = {
    "cancelled": {},
    "missed": {"starting_deadline_s": 5},
    "replaced": {"concurrency": Concurrency.REPLACE},
}


@pytest.mark.parametrize("how", GIVEN_UP)
def test_a_late_create_of_a_run_that_was_given_up_while_held_is_deleted(how):
    seen = every(20, **GIVEN_UP[how])
    world = World(answering=lambda _: None).see(seen).run_until("10:00:20")
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    world.answering = lambda _: Verdict.HELD
    if how == "cancelled":
        world.cancel(seen, "10:00:20")
    world.run_until("10:00:39")
    world.answering = lambda _: Verdict.CREATED
    world.run_until("10:00:55")
    late = job(seen, "10:00:20")
    world.jobs[late.ref.name] = late
    world.change(late)
    assert [fact.run.due for fact in world.jobs.values()] == [instant("10:00:40")]
    world.run_until("10:02")
    assert not world.scheduler.state.entries[seen.uid].unwanted


def test_what_no_late_create_can_bring_any_more_is_forgotten():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    entry = world.scheduler.state.entries[seen.uid]
    assert entry.unwanted
    world.run_until("10:12")
    assert not entry.unwanted


def test_cancelled_after_its_create_its_job_is_deleted_and_its_record_stays():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    assert world.jobs == {}
    assert world.status()["recent"][0]["state"] == "cancelled"


def test_cancelled_while_held_it_is_not_tried_again():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: Verdict.HELD).see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    assert len(world.run_until("10:11").launches) == 1


def test_cancelled_runs_are_not_retried():
    seen = every(TEN_MINUTES, retry=Retry(limit=3, delay_s=1))
    world = World().see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    assert len(world.run_until("10:12").creations) == 1


def test_cancelling_what_is_not_there_answers_none():
    seen = every(TEN_MINUTES)
    assert World().see(seen).cancel(seen, "09:00") is None


def test_cancelling_twice_answers_the_same_and_counts_once():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    assert world.counts() == {"cancelled": 1}


def test_put_back_after_its_starting_deadline_it_is_missed():
    """The API server had closed the lanes for longer than it may wait."""
    seen = every(60, starting_deadline_s=20)
    world = World(answering=lambda _: None).see(seen).run_until("10:01:25")
    (launch,) = world.in_flight
    assert launch.latest == instant("10:01:20")
    world.in_flight.clear()
    world.scheduler.inbox.hint("back", messages.PutBack(launch.run, launch.attempt))
    world.settle()
    assert world.ends() == [("10:01:00", "missed", "deadline")]


def test_a_starting_deadline_bounds_the_first_attempt_alone():
    seen = every(3600, starting_deadline_s=20, retry=Retry(limit=1))
    world = World().see(seen).run_until("11:00:05")
    world.fail(seen, "11:00")
    world.run_until("11:01")
    assert [launch.latest for launch in world.launches] == [instant("11:00:20"), None]


def test_a_job_that_another_process_created_tells_nothing_of_our_precision():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    made = job(seen, "10:10")
    world.jobs[made.ref.name] = made
    world.answer(world.in_flight[0], Verdict.CREATED)  # and is told that it exists
    assert world.alive() == {"10:10:00": "running"}
    assert world.lateness() == []


def test_deleted_while_its_create_waits_in_its_lane_it_is_let_go():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None, now=instant("10:10:20")).see(seen)  # not prepared
    assert len(world.in_flight) == 1
    world.gone(seen)
    assert [each.run.due for each in world.withdraw] == [instant("10:10")]


def test_cancelled_while_its_create_waits_in_its_lane_it_is_let_go():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.cancel(seen, "10:10")
    assert [each.run.due for each in world.withdraw] == [instant("10:10")]


def test_a_run_put_back_after_its_deadline_was_taken_away_by_a_timing_edit_runs():
    seen = every(120, starting_deadline_s=10)
    world = World(answering=lambda launch: None).see(seen).run_until("10:02:05")
    (launch,) = world.in_flight
    world.see(edited(seen, rule=Cron("30 * * * *"), starting_deadline_s=None))
    world.run_until("10:02:50")
    world.in_flight.clear()
    world.answering = lambda launch: Verdict.CREATED
    world.scheduler.inbox.hint("back", messages.PutBack(launch.run, launch.attempt))
    world.run_until("10:02:55")
    assert world.started() == ["10:02:00"]
