"""pendingDeadlineSeconds: a Job of which no Pod starts fails in time, and says why."""

from tests.builders import edited, every, instant, job
from tests.unit.core.world import World

from evenkeel.core.messages import PodsLookedAt
from evenkeel.model import Concurrency, JobState, Retry, RunState
from evenkeel.resource.job import job_name


def pending(world: World, seen) -> None:
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=instant("10:10"))


def looked(world: World, **found):
    look = world.looked_at[-1]
    found = {"started": False, "reason": "unschedulable", "message": "0/3 nodes"} | found
    world.tell(PodsLookedAt(look.run, look.attempt, **found))


def test_a_job_without_a_started_pod_fails_by_its_deadline_and_is_deleted():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    assert world.run_until("10:10:59").looked_at == []
    world.run_until("10:11")
    looked(world)
    assert world.ends() == [("10:10:00", "failed", "unschedulable")]
    assert "0/3 nodes" in world.said("RunFailed")[0]
    assert world.jobs == {}


def test_a_pod_that_started_after_all_is_left_alone():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.run_until("10:11")
    looked(world, started=True)
    assert world.alive() == {"10:10:00": "running"}


def test_a_pod_that_never_started_is_retried_as_any_failure():
    seen = every(600, pending_deadline_s=60, retry=Retry(limit=1, delay_s=5))
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.run_until("10:11")
    looked(world)
    world.run_until("10:11:10")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2]
    assert list(world.jobs) == [job_name("report", job(seen, "10:10").run, 2)]


def test_the_clock_of_a_job_suspended_by_others_stands_still():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), state=JobState.SUSPENDED, started=None)
    world.run_until("10:15")
    assert world.looked_at == []
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=instant("10:15"))
    assert world.run_until("10:15:59").looked_at == []
    assert len(world.run_until("10:16").looked_at) == 1


def test_the_deadline_is_kept_across_a_crash():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.crash(for_s=20).run_until("10:11")
    assert len(world.looked_at) == 1


def test_a_job_of_ours_has_its_whole_time_where_our_clock_is_ahead():
    """Also of a run that was caught up: its Job was created a moment ago."""
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:05")
    world.set_clock("12:05").run_until("12:05:01")
    assert world.started() == ["12:00:00"]
    started = instant("10:05")  # by the API server's clock
    world.change(world.job(seen, "12:00"), state=JobState.WAITING, started=started)
    assert world.run_until("12:05:58").looked_at == []
    assert len(world.run_until("12:06:02").looked_at) == 1


def test_a_run_cancelled_while_its_pods_are_looked_at_stays_cancelled():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.run_until("10:11")
    assert world.cancel(seen, "10:10") is RunState.CANCELLED
    looked(world)
    assert world.counts() == {"cancelled": 1}


def test_pods_that_may_not_be_read_end_nothing_and_the_owner_is_told():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.run_until("10:11")
    looked(world, reason=None, message="may not list Pods")
    assert world.alive() == {"10:10:00": "running"}
    assert world.condition("Degraded") == ("True", "PodsUnreadable")


def test_a_job_that_did_not_start_frees_its_place():
    seen = every(600, pending_deadline_s=660, concurrency=Concurrency.QUEUE)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.run_until("10:21")
    assert world.alive() == {"10:10:00": "running", "10:20:00": "queued"}
    looked(world)
    assert world.alive() == {"10:20:00": "running"}


def test_a_job_that_started_in_time_is_not_looked_at():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    pending(world, seen)
    world.change(world.job(seen, "10:10"), state=JobState.STARTED)
    assert world.run_until("10:15").looked_at == []


def test_a_job_that_waits_is_on_the_agenda_once_however_often_it_is_seen():
    seen = every(3600, pending_deadline_s=120)
    world = World().see(seen).run_until("11:00:01")
    fact = world.job(seen, "11:00")
    for _ in range(5):
        world.change(fact, state=JobState.WAITING)
    world.run_until("11:02:01")
    assert len(world.looked_at) == 1


def test_a_retry_that_begins_in_the_second_of_the_attempt_before_it_has_a_deadline_too():
    seen = every(3600, pending_deadline_s=120, retry=Retry(limit=1, delay_s=0))
    world = World().see(seen).run_until("11:00")
    world.change(world.job(seen, "11:00"), state=JobState.WAITING)
    world.fail(seen, "11:00")
    again = world.job(seen, "11:00", 2)
    assert again.started == instant("11:00")
    world.change(again, state=JobState.WAITING)
    world.run_until("11:02:01")
    assert [look.attempt for look in world.looked_at] == [2]


def test_a_pending_deadline_set_by_an_edit_holds_for_the_job_that_waits_already():
    seen = every(600)
    world = World().see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=instant("10:10"))
    world.see(edited(seen, pending_deadline_s=60)).run_until("10:12")
    assert len(world.looked_at) == 1


def test_a_job_that_nobody_minds_does_not_keep_its_place_for_ever():
    """No Job controller, or another one by managedBy: its status stays empty, without startTime."""
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), state=JobState.WAITING, started=None)
    world.run_until("10:10:59")
    assert world.looked_at == []
    world.run_until("10:11:01")
    assert len(world.looked_at) == 1


def test_a_job_that_is_suspended_after_it_began_to_wait_gets_its_whole_time_when_it_goes_on():
    seen = every(600, pending_deadline_s=60)
    world = World().see(seen).run_until("10:10")
    fact = world.job(seen, "10:10")
    world.change(fact, state=JobState.WAITING, started=int(world.now))
    world.run_until("10:10:30")
    world.change(fact, state=JobState.SUSPENDED, started=None)
    world.run_until("10:15")
    world.change(fact, state=JobState.WAITING, started=None)
    world.run_until("10:15:59")
    assert world.looked_at == []
    world.run_until("10:16:01")
    assert len(world.looked_at) == 1


def test_the_attempt_after_one_whose_job_was_deleted_is_the_next_one_after_a_crash_too():
    seen = every(600, pending_deadline_s=60, retry=Retry(limit=5, delay_s=10))
    world = World().see(seen).run_until("10:10")
    world.fail(seen, "10:10")
    world.run_until("10:10:11")
    started = int(world.now)
    world.change(world.job(seen, "10:10", 2), state=JobState.WAITING, started=started)
    world.run_until("10:11:12")
    (look,) = world.looked_at
    world.tell(PodsLookedAt(look.run, 2, False, "pod_refused", "no"))
    assert len(world.jobs) == 1  # the first attempt's; the second's was deleted
    world.crash(for_s=1).run_until("10:12")
    assert [attempt for _, attempt, _ in world.creations] == [1, 2, 3]
