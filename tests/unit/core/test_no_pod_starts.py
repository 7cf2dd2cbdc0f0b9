"""A Job of which no Pod has started for two minutes: Degraded says why, until one starts."""

from tests.builders import every
from tests.unit.core.world import World

from evenkeel.core.messages import PodsLookedAt
from evenkeel.model import Concurrency, JobState, Retry
from evenkeel.settings import Settings

NOT_FOUND = {"reason": "image", "message": "image busybox:9.99 not found"}
STUCK = "the run due 2026-03-02T10:10:00Z: its Pod cannot start: image busybox:9.99 not found"


def waiting(world: World | None = None, **spec) -> tuple[World, object]:
    """The Job of the run at 10:10 has waited for two minutes."""
    seen = every(600, **spec)
    world = (world or World()).see(seen).run_until("10:10")
    world.change(world.job(seen, "10:10"), state=JobState.WAITING)
    return world.run_until("10:12:01"), seen


def looked(world: World, **found) -> None:
    look = world.looked_at[-1]
    found = {"started": False} | NOT_FOUND | found
    world.tell(PodsLookedAt(look.run, look.attempt, **found))


def message(world: World) -> str:
    rows = {row["type"]: row for row in world.status()["conditions"]}
    return str(rows["Degraded"]["message"])


def test_after_two_minutes_degraded_and_an_event_say_why():
    world, _ = waiting()
    assert len(world.looked_at) == 1
    looked(world)
    assert world.condition("Degraded") == ("True", "ImageNotPulled")
    assert world.condition("Ready") == ("True", "Scheduled")
    assert message(world) == STUCK
    assert world.said("PodNotStarted") == [STUCK]
    assert world.status()["state"] == "Degraded"
    assert "busybox" not in str(world.logged)


def test_it_is_lifted_when_a_pod_starts():
    world, seen = waiting()
    looked(world)
    world.change(world.job(seen, "10:10"), state=JobState.STARTED)
    assert world.condition("Degraded") == ("False", "AsExpected")
    world.run_until("10:50")
    assert len(world.looked_at) == 1


def test_it_is_lifted_when_the_run_ends():
    world, seen = waiting()
    looked(world)
    world.cancel(seen, "10:10")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_it_is_lifted_when_another_attempt_begins():
    world, seen = waiting(retry=Retry(limit=1, delay_s=60))
    looked(world)
    world.fail(seen, "10:10")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_create_does_not_lift_it():
    world, _ = waiting()
    looked(world)
    world.run_until("10:20:01")
    assert len(world.creations) == 2
    assert world.condition("Degraded") == ("True", "ImageNotPulled")


def test_it_is_looked_at_less_and_less_often_and_told_once():
    world, _ = waiting()
    for _ in range(30):
        looked(world)
        world.run_until(world.now + 60)
    # two minutes after the first look, then four, eight, ten and ten
    assert [look.run.due for look in world.looked_at] == [world.looked_at[0].run.due] * 5
    assert len(world.said("PodNotStarted")) == 1


def test_one_job_of_a_schedule_is_looked_at_however_many_wait():
    seen = every(10)
    world = World().see(seen)
    for step in range(60):
        world.run_until(world.now + 10)
        for fact in list(world.jobs.values()):
            if fact.state is not JobState.WAITING:
                world.change(fact, state=JobState.WAITING)
        if world.looked_at and step % 2:
            looked(world)
    assert len(world.jobs) == 60
    assert len(world.looked_at) <= 3


def test_a_pod_that_runs_and_is_not_ready_is_left_alone():
    world, _ = waiting()
    looked(world, started=True, reason=None)
    world.run_until("10:50")
    assert len(world.looked_at) == 1
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_what_is_skipped_because_of_it_says_so():
    world, _ = waiting(concurrency=Concurrency.FORBID)
    looked(world)
    world.run_until("10:20:01")
    assert world.ends() == [("10:20:00", "skipped", "overlap")]
    assert world.said("JobAlreadyActive") == [
        "The run due 2026-03-02T10:20:00Z was skipped: the run due 2026-03-02T10:10:00Z is still "
        "there; its Pod cannot start: image busybox:9.99 not found"
    ]


def test_after_a_restart_it_stays_until_it_is_looked_at():
    world, seen = waiting()
    looked(world)
    world.crash(for_s=5)
    assert world.condition("Degraded") == ("True", "ImageNotPulled")
    world.run_until(world.now + 1)
    assert len(world.looked_at) == 2
    world.change(world.job(seen, "10:10"), state=JobState.STARTED)
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_restart_after_its_end_lifts_it():
    world, seen = waiting()
    looked(world)
    world.writes = False
    world.succeed(seen, "10:10")
    world.writes = True
    world.crash(for_s=5).run_until("10:13")
    assert world.condition("Degraded") == ("False", "AsExpected")


def test_a_suspended_job_is_not_waited_for():
    world, seen = waiting()
    looked(world)
    world.change(world.job(seen, "10:10"), state=JobState.SUSPENDED)
    assert world.condition("Degraded") == ("False", "AsExpected")
    world.run_until("10:40")
    assert len(world.looked_at) == 1


def test_with_a_warning_of_zero_nobody_looks():
    world, _ = waiting(World(Settings(pod_start_warning_s=0)))
    assert world.run_until("10:40").looked_at == []


def test_pods_that_may_not_be_read_are_said_and_nothing_else():
    world, _ = waiting()
    looked(world, reason=None, message="may not list Pods")
    assert world.condition("Degraded") == ("True", "PodsUnreadable")
    assert world.said("PodNotStarted") == []


def test_a_deadline_that_comes_after_the_warning_still_ends_the_attempt():
    world, _ = waiting(pending_deadline_s=300)
    looked(world)
    assert world.alive() == {"10:10:00": "running"}
    world.run_until("10:15:01")
    looked(world)
    assert world.ends() == [("10:10:00", "failed", "image")]
    assert world.condition("Degraded") == ("False", "AsExpected")
