"""Jobs are followed to their end; what vanished unfinished is lost; history is cleaned."""

from dataclasses import replace

import pytest
from tests.builders import clock, cron, edited, every, instant, job
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.model import Concurrency, JobRef, JobState, Verdict
from evenkeel.reasons import ConditionReason
from evenkeel.resource.record import Memory
from evenkeel.resource.status import parse

TEN_MINUTES = 600


def test_a_completed_job_ends_its_run():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10:30")
    world.succeed(seen, "10:10")
    status = world.status()
    assert world.counts() == {"succeeded": 1}
    assert (status["lastResult"], status["lastSuccessfulTime"]) == (
        "succeeded",
        "2026-03-02T10:10:30Z",
    )
    assert status["activeCount"] == 0


def test_a_job_deleted_before_it_finished_is_lost():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    world.remove(world.job(seen, "10:10"))
    assert world.ends() == [("10:10:00", "lost", "job_deleted")]
    assert world.status()["consecutiveFailures"] == 1
    assert len(world.said("MissingJob")) == 1


def test_a_job_deleted_after_it_finished_ends_by_its_last_state():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    last = job(seen, "10:10", JobState.SUCCEEDED, ref=world.job(seen, "10:10").ref)
    world.scheduler.inbox.hint(last.ref.uid, messages.JobGone(last))
    world.settle()
    assert world.counts() == {"succeeded": 1}


def test_a_job_that_vanished_while_the_watch_was_broken_is_lost_by_the_list():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10:30")
    world.remove(world.job(seen, "10:10"), told=False)
    world.jobs_listed()
    world.settle()
    assert world.ends() == [("10:10:00", "lost", "job_deleted")]


def test_a_job_that_lost_its_labels_goes_on_running():
    """To a watch by labels it looks deleted; anybody who may edit Jobs can do that to it."""
    seen = every(TEN_MINUTES, concurrency=Concurrency.FORBID)
    world = World().see(seen).run_until("10:10")
    fact = world.job(seen, "10:10")
    world.scheduler.inbox.hint(fact.ref.uid, messages.JobGone(fact))
    world.settle()
    assert world.alive() == {"10:10:00": "running"}
    world.run_until("10:20:01")
    assert ("10:20:00", "skipped", "overlap") in world.ends()
    world.succeed(seen, "10:10")
    assert world.counts() == {"succeeded": 1, "skipped": 1}


def test_a_job_that_is_deleted_and_does_not_go_frees_its_place_after_a_while():
    seen = every(60, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:01:30")
    fact = world.job(seen, "10:01")
    world.change(fact, deleting=True)  # somebody's finalizer keeps it
    world.run_until("10:03:29")
    assert world.alive()["10:01:00"] == "running"
    world.change(world.job(seen, "10:01"), deleting=True, message="seen again")
    world.run_until("10:03:30")
    assert ("10:01:00", "lost", "job_deleted") in world.ends()
    assert "finalizers" in world.said("MissingJob")[0]
    assert world.started() == ["10:01:00", "10:02:00"]
    world.remove(world.job(seen, "10:01"))
    world.crash()
    assert world.started() == ["10:01:00", "10:02:00"]
    assert world.counts()["lost"] == 1


def test_a_job_that_goes_in_time_after_its_deletion_is_lost_once():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), deleting=True)
    world.run_until("10:10:30")
    world.remove(world.job(seen, "10:10"))
    world.run_until("10:15")
    assert world.ends() == [("10:10:00", "lost", "job_deleted")]


def test_more_runs_than_the_status_names_are_all_adopted_after_a_crash():
    seen = every(10)
    world = World().see(seen).run_until("10:13:25")
    alive = {due for due, state in world.alive().items() if state == "running"}
    assert len(alive) == 80 > len(world.status()["active"])
    world.crash()
    assert {due for due, state in world.alive().items() if state == "running"} == alive
    for due in sorted(alive):
        world.succeed(seen, due)
    assert world.counts() == {"succeeded": 80}
    assert len(world.started()) == len(set(world.started())) == 80


def test_more_runs_than_the_status_names_that_end_while_nobody_is_there_are_all_counted():
    seen = every(10, keep_succeeded=100)
    world = World().see(seen).run_until("10:13:15")
    world.succeed(seen, "10:00:10")
    world.run_until("10:13:25")
    for fact in list(world.jobs.values()):
        if fact.state is JobState.STARTED:
            done = {"state": JobState.SUCCEEDED, "finished": int(world.now) + 1}
            world.jobs[fact.ref.name] = replace(fact, **done)
    world.crash(for_s=3)
    assert world.counts() == {"succeeded": 80}
    world.crash()
    assert world.counts() == {"succeeded": 80}


def test_a_list_asked_for_before_the_create_proves_nothing():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    world.tell(messages.JobsListed((), instant("10:09:59")))
    assert world.alive() == {"10:10:00": "running"}


def test_a_list_of_another_namespace_proves_nothing():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10:30")
    world.tell(messages.JobsListed((), instant("10:10:30"), ns="other"))
    world.tell(messages.JobsListed((), instant("10:10:30"), ns="other"))
    assert world.alive() == {"10:10:00": "running"}


def test_a_job_deleted_before_its_create_was_answered_is_lost_not_running_for_ever():
    seen = every(TEN_MINUTES, concurrency=Concurrency.FORBID)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.scheduler.inbox.hint("job", messages.JobGone(job(seen, "10:10")))
    world.settle()
    assert world.ends() == [("10:10:00", "lost", "job_deleted")]
    world.jobs.clear()
    launched = messages.CreateResult(
        world.launches[0].run, 1, Verdict.CREATED, job(seen, "10:10").ref, world.now
    )
    world.tell(launched)
    assert world.alive() == {}


def test_the_watch_may_tell_of_a_job_before_its_create_is_answered():
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    fact = job(seen, "10:10")
    world.jobs[fact.ref.name] = fact
    world.change(fact)
    assert world.alive() == {"10:10:00": "running"}
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    assert world.counts() == {"succeeded": 1}


def test_a_job_of_a_run_with_a_verdict_is_left_alone():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:30")
    stray = job(seen, "09:50")
    world.jobs[stray.ref.name] = stray
    world.change(stray)
    assert "09:50:00" not in world.alive()
    assert world.deleted == []


def test_a_job_that_another_process_of_ours_made_first_is_followed():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:09")
    made = job(seen, "10:10")
    world.jobs[made.ref.name] = made
    world.change(made)
    world.run_until("10:10:30")
    assert world.launches == []
    world.succeed(seen, "10:10")
    assert world.counts() == {"succeeded": 1}


def test_jobs_that_ended_while_nobody_watched_are_counted_once():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    name = world.job(seen, "10:10").ref.name
    world.jobs[name] = job(seen, "10:10", JobState.FAILED, ref=world.jobs[name].ref)
    world.crash().crash()
    assert world.ends() == [("10:10:00", "failed", "BackoffLimitExceeded")]
    assert world.counts() == {"failed": 1}


FORGED = {
    "in another namespace": {"ns": "elsewhere"},
    "under another name": {"name": "forged"},
}
"""Anybody who may create Jobs can write an owner's uid and a due time on one of his own."""


@pytest.mark.parametrize("where", FORGED.values(), ids=FORGED)
@pytest.mark.parametrize("known", ["from the watch", "at the start"])
def test_a_job_that_only_claims_to_be_a_runs_is_not_believed(where, known):
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:09")
    true = job(seen, "10:10", JobState.SUCCEEDED)
    forged = replace(true, ref=replace(true.ref, uid="uid-forged", **where))
    if known == "at the start":
        world.jobs["forged"] = forged
        world.crash()
        del world.jobs["forged"]
    else:
        world.scheduler.inbox.hint("forged", messages.JobSeen(forged))
    world.run_until("10:10:30")
    assert world.started() == ["10:10:00"]
    assert world.alive() == {"10:10:00": "running"}
    world.scheduler.inbox.hint("forged", messages.JobGone(forged, proven=True))
    world.settle()
    assert world.alive() == {"10:10:00": "running"}


def test_the_end_of_an_older_job_of_that_name_is_not_this_ones():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    older = job(seen, "10:10", JobState.SUCCEEDED, ref=world.job(seen, "10:10").ref)
    older = replace(older, ref=replace(older.ref, uid="uid-older"))
    world.scheduler.inbox.hint("older", messages.JobGone(older))
    world.settle()
    assert world.alive() == {"10:10:00": "running"}


def test_what_an_older_list_said_is_outdated_by_a_newer_one():
    """Both before the schedule is shown: its Job ran at the first and was gone at the second."""
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10:30")
    memory = parse(world.status())
    world.scheduler = type(world.scheduler)(world.settings)
    world.jobs_listed()
    world.settle()
    world.remove(world.job(seen, "10:10"), told=False)
    world.jobs_listed()
    world.settle()
    world.see(seen, memory)
    assert world.ends() == [("10:10:00", "lost", "outcome_unknown")]


def test_a_cancelled_run_whose_job_outlived_its_process_is_deleted_by_the_next():
    seen = every(TEN_MINUTES)
    world = World().see(seen).run_until("10:10")
    fact = world.job(seen, "10:10")
    world.cancel(seen, "10:10")
    world.jobs[fact.ref.name] = fact  # the deletion was stored as decided, and never sent
    world.crash()
    assert world.jobs == {}
    assert world.counts() == {"cancelled": 1}


def test_a_job_that_a_status_names_and_that_is_none_of_this_schedule_is_nobodys_loss():
    ref = JobRef("shop", "somebody-29540750", "uid-other")
    seen = every(TEN_MINUTES)
    memory = Memory(mark=instant("10:00"), timing=seen.timing, timing_since=0, active=(ref,))
    assert World().see(seen, memory).ends() == []


# --- deletion and re-creation -----------------------------------------------------------------


def test_nothing_is_launched_after_a_deletion():
    seen = cron("* * * * *")
    world = World().see(seen).run_until("10:01:55")
    world.gone(seen)
    assert world.run_until("10:05").started() == ["10:01:00"]
    assert [each.run.due for each in world.withdraw] == [instant("10:02")]


def test_created_again_under_its_name_it_never_adopts_the_old_ones_jobs():
    old = cron("* * * * *", concurrency=Concurrency.FORBID)
    world = World().see(old).run_until("10:01:30")
    fact = world.job(old, "10:01")
    new = cron("* * * * *", uid="uid-second", created=instant("10:01:30"))
    world.see(new)  # its deletion was not even seen
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    assert "uid-second" in world.statuses
    assert not any(world.statuses["uid-second"]["counts"].values())
    assert world.scheduler.state.entries.keys() == {"uid-second"}
    world.run_until("10:02")
    assert [(run.uid, clock(run.due)) for run, _, _ in world.creations] == [
        ("uid-report", "10:01:00"),
        ("uid-second", "10:02:00"),
    ]


def test_no_due_time_is_both_an_old_schedules_and_its_successors():
    """The names of their Jobs would meet. A due time counts if it lies after the creation."""
    old = cron("* * * * *")
    world = World().see(old).run_until("10:01:00")
    world.gone(old)
    world.see(cron("* * * * *", uid="uid-second", created=instant("10:01:00")))
    world.run_until("10:02")
    created = [(run.uid, clock(run.due)) for run, _, _ in world.creations]
    assert created == [("uid-report", "10:01:00"), ("uid-second", "10:02:00")]


def test_a_deletion_that_no_watch_reported_is_found_by_the_list():
    seen = cron("* * * * *")
    world = World().see(seen).run_until("10:01:30")
    del world.schedules[seen.uid]
    world.schedules_listed()
    assert world.run_until("10:05").started() == ["10:01:00"]


def test_a_schedule_first_seen_after_the_list_was_asked_for_is_no_ghost():
    seen = cron("* * * * *")
    world = World(now=instant("10:00:30")).see(seen)
    world.tell(messages.SchedulesListed(frozenset(), world.monotonic - 1))
    assert world.run_until("10:01").started() == ["10:01:00"]


# --- history ----------------------------------------------------------------------------------


def test_history_keeps_the_newest_of_each_kind():
    seen = cron("* * * * *", keep_succeeded=2, keep_failed=1)
    world = World().see(seen)
    for minute in range(1, 9):
        world.run_until(f"10:{minute:02}")
        (world.fail if minute % 2 else world.succeed)(seen, f"10:{minute:02}")
    world.run_until("10:08:30")
    left = sorted(fact.run.due for fact in world.jobs.values())
    assert left == [instant(due) for due in ("10:06", "10:07", "10:08")]


@pytest.mark.parametrize("limit", [0, 1])
def test_history_deletes_with_the_uid_of_what_it_means(limit):
    seen = cron("* * * * *", keep_succeeded=limit)
    world = World().see(seen)
    for minute in (1, 2):
        world.run_until(f"10:0{minute}")
        world.succeed(seen, f"10:0{minute}")
    assert len(world.jobs) == limit
    assert world.deleted
    assert all(each.ref.uid and each.why == "history" for each in world.deleted)


def test_history_waits_until_the_end_is_written():
    seen = cron("* * * * *", keep_succeeded=0)
    world = World().see(seen).run_until("10:01")
    world.writes = False
    world.succeed(seen, "10:01")
    world.run_until("10:01:30")
    assert len(world.jobs) == 1
    world.write(seen.uid)
    world.settle()
    assert world.jobs == {}


def test_history_waits_until_the_mark_is_written(monkeypatch):
    monkeypatch.setattr(
        "evenkeel.core.schedule.entry.WAITING_COUNT", 0
    )  # or the mark would pass 10:01
    seen = every(60, keep_succeeded=0)
    first = instant("10:01")
    world = World(answering=lambda launch: None if launch.run.due == first else Verdict.CREATED)
    world.see(seen).run_until("10:02")
    world.succeed(seen, "10:02")  # the mark still stands before 10:01
    assert len(world.jobs) == 1
    world.answer(world.in_flight[0], Verdict.CREATED)
    assert [fact.run.due for fact in world.jobs.values()] == [first]


def test_history_of_an_earlier_process_is_cleaned_too():
    seen = cron("* * * * *", keep_succeeded=3)
    world = World().see(seen)
    for minute in (1, 2, 3):
        world.run_until(f"10:0{minute}")
        world.succeed(seen, f"10:0{minute}")
    world.crash()
    world.see(edited(seen, keep_succeeded=1))
    world.run_until("10:03:30")
    assert [fact.run.due for fact in world.jobs.values()] == [instant("10:03")]


def test_a_job_of_history_deleted_by_somebody_else_is_not_deleted_again():
    seen = cron("* * * * *", keep_succeeded=1)
    world = World().see(seen).run_until("10:01")
    world.succeed(seen, "10:01")
    world.remove(world.job(seen, "10:01"))
    world.run_until("10:02")
    world.succeed(seen, "10:02")
    assert world.deleted == []


def test_history_keeps_no_place_for_jobs_that_vanished_while_the_watch_was_broken():
    seen = cron("* * * * *", keep_succeeded=2)
    world = World().see(seen)
    for minute in (1, 2):
        world.run_until(f"10:0{minute}")
        world.succeed(seen, f"10:0{minute}")
    world.run_until("10:02:30")
    world.remove(world.job(seen, "10:02"), told=False)
    world.jobs_listed()
    world.run_until("10:03")
    world.succeed(seen, "10:03")
    assert [fact.run.due for fact in world.jobs.values()] == [instant("10:01"), instant("10:03")]


def test_a_list_older_than_a_jobs_end_takes_nothing_from_history():
    seen = cron("* * * * *", keep_succeeded=1)
    world = World().see(seen).run_until("10:01")
    world.succeed(seen, "10:01")
    world.tell(messages.JobsListed((), instant("10:00:59")))
    world.run_until("10:02")
    world.succeed(seen, "10:02")
    assert [fact.run.due for fact in world.jobs.values()] == [instant("10:02")]


def test_a_status_that_was_on_its_way_before_the_end_does_not_tell_of_it():
    seen = cron("* * * * *", keep_succeeded=0)
    world = World().see(seen).run_until("10:01")
    world.writes = False
    on_its_way = world.scheduler.document(seen.uid)
    world.succeed(seen, "10:01")
    world.tell(messages.StatusWritten(seen.uid, on_its_way[3]))
    assert len(world.jobs) == 1


def test_history_waits_for_the_mark_of_the_status_that_was_stored(monkeypatch):
    monkeypatch.setattr("evenkeel.core.schedule.entry.WAITING_COUNT", 0)
    seen = every(60, keep_succeeded=0)
    first = instant("10:01")
    world = World(answering=lambda launch: None if launch.run.due == first else Verdict.CREATED)
    world.see(seen).run_until("10:02")
    world.writes = False
    world.succeed(seen, "10:02")
    older = world.scheduler.document(seen.uid)
    world.answer(world.in_flight[0], Verdict.CREATED)
    newer = world.scheduler.document(seen.uid)  # the first whose mark has passed 10:02
    world.tell(messages.StatusWritten(seen.uid, older[3]))
    assert len(world.jobs) == 2
    world.tell(messages.StatusWritten(seen.uid, newer[3]))
    assert [fact.run.due for fact in world.jobs.values()] == [first]


def test_history_keeps_a_name_for_as_long_as_a_create_that_was_given_up_may_arrive():
    seen = every(600, keep_succeeded=0)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answering = lambda _: Verdict.CREATED
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    world.run_until("10:10:05")
    world.succeed(seen, "10:10")
    world.run_until("10:11:14")
    world.write(seen.uid)
    world.settle()
    assert len(world.jobs) == 1
    world.run_until("10:11:16")
    world.write(seen.uid)
    world.settle()
    assert world.jobs == {}


# --- a watch of Jobs that is silent ---------------------------------------------------------------


def silent(world: World, silent: bool, ns: str = "") -> World:
    return world.tell(messages.JobsSilent(ns, silent))


@pytest.mark.parametrize("ns", ["", "shop"])
def test_while_ends_are_not_seen_no_schedule_says_that_all_is_as_expected(ns):
    world = World().see(every(TEN_MINUTES)).run_until("10:10")
    assert world.condition("Degraded") == ("False", "AsExpected")
    silent(world, True, ns)
    assert world.condition("Degraded") == ("True", "EndsNotSeen")
    world.run_until("10:20")  # its next create succeeds
    assert world.condition("Degraded") == ("True", "EndsNotSeen")
    assert world.condition("Ready")[0] == "True"
    silent(world, False, ns)
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_schedule_without_a_job_says_so_with_its_next_create():
    world = World().see(every(TEN_MINUTES))
    silent(world, True).run_until("10:09")
    assert "Degraded" not in {row["type"] for row in world.status()["conditions"]}
    world.run_until("10:10")
    assert world.condition("Degraded") == ("True", "EndsNotSeen")


def test_the_watch_of_another_namespace_says_nothing_of_this_one():
    world = World().see(every(TEN_MINUTES)).run_until("10:10")
    silent(world, True, "bank")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_restart_that_has_listed_all_jobs_takes_it_back():
    world = World().see(every(TEN_MINUTES)).run_until("10:10")
    silent(world, True)
    world.crash()
    assert world.condition("Degraded") == ("False", "AsExpected")
