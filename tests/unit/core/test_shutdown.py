"""A shutdown: what has not begun is put back, what runs goes on, the next process finds both."""

import pytest
from tests.builders import cron
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.model import Concurrency, RunState, Verdict

EVERY_MINUTE = "* * * * *"


def test_a_shutdown_puts_back_what_has_not_begun():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:00:55").tell(messages.Shutdown())
    assert world.stopped
    assert len(world.withdraw) == 1
    assert world.run_until("10:02").launches == []
    world.crash()
    assert world.ends() == [("10:01:00", "missed", "superseded")]  # a minute is beyond grace
    assert world.started() == ["10:02:00"]


def test_a_run_put_back_is_launched_late_by_a_process_that_comes_within_grace():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:00:55").tell(messages.Shutdown())
    assert world.run_until("10:01:10").launches == []
    assert world.crash().started() == ["10:01:00"]
    assert world.ends() == []


def test_a_run_put_back_from_its_lane_is_launched_by_the_next_process():
    world = World(answering=lambda _: None).see(cron(EVERY_MINUTE)).run_until("10:01")
    world.tell(messages.Shutdown())
    run = world.launches[0].run
    world.tell(messages.PutBack(run, 1))
    assert world.ask(lambda asked: messages.GetRun(asked, run)) is RunState.SCHEDULED
    world.answering = lambda _: Verdict.CREATED
    assert world.crash(for_s=5).started() == ["10:01:00"]


@pytest.mark.parametrize(
    "spec",
    [{"ttl_s": 0}, {"concurrency": Concurrency.QUEUE}],
    ids=["marked first", "out of the queue"],
)
def test_a_run_that_the_mark_has_passed_is_not_lost_when_it_is_put_back(spec):
    seen = cron(EVERY_MINUTE, **spec)
    world = World().see(seen)
    if "ttl_s" not in spec:
        world.run_until("10:02:30")
        world.answering = lambda _: None
        world.succeed(seen, "10:01")
    else:
        world.answering = lambda _: None
        world.run_until("10:01")
    launch = world.in_flight[0]
    world.tell(messages.Shutdown()).tell(messages.PutBack(launch.run, 1))
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=5)
    assert launch.run in {run for run, _, _ in world.creations}
    assert not world.counts().get("lost")


def test_running_jobs_go_on_and_are_adopted_by_the_next_process():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01").tell(messages.Shutdown()).crash()
    assert world.alive() == {"10:01:00": "running"}
    world.succeed(seen, "10:01")
    assert world.counts() == {"succeeded": 1}
