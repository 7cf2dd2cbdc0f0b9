"""Creates that got no answer: whether their Jobs exist is found out later, one by one."""

import pytest
from tests.builders import every, instant
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.model import JobRef, MissedRuns, RunId, Verdict


@pytest.mark.parametrize(
    ("policy", "started"), [(MissedRuns.LATEST, ["10:30:00"]), (MissedRuns.SKIP, [])]
)
def test_creates_without_an_answer_for_longer_than_grace_are_one_set(policy, started):
    """The network swallowed all for half an hour; then the Jobs are found not to exist."""
    seen = every(60, missed_runs=policy)
    world = World(answering=lambda _: None).see(seen).run_until("10:30:40")
    world.answering = lambda _: Verdict.CREATED
    for launch in list(world.in_flight):
        world.in_flight.remove(launch)
        sent_at = float(launch.run.due)
        ref = JobRef("shop", "x")
        world.tell(
            messages.CreateResult(launch.run, 1, Verdict.HELD, ref, sent_at, "", "NotCreated")
        )
    world.run_until("10:30:55")
    assert world.started() == started
    assert world.verdicts() == 30 - len(started)


def unanswered(world: World, due: str) -> None:
    """The launcher says that it asks by name, and then that there is no such Job."""
    world.tell(messages.Unanswered(RunId("uid-report", instant(due)), 1))


def came_to_nothing(world: World, due: str) -> None:
    (launch,) = [one for one in world.in_flight if one.run.due == instant(due)]
    world.in_flight.remove(launch)
    sent_at = float(launch.run.due)
    ref = JobRef("shop", "x")
    world.tell(messages.CreateResult(launch.run, 1, Verdict.HELD, ref, sent_at, "", "NotCreated"))


def test_creates_that_are_found_out_one_by_one_are_one_set_all_the_same():
    world = World(answering=lambda _: None).see(every(60)).run_until("10:05:40")
    dues = [f"10:0{minute}" for minute in range(1, 6)]
    for due in dues:
        unanswered(world, due)
    world.answering = lambda _: Verdict.CREATED
    for number, due in enumerate(dues):
        came_to_nothing(world, due)
        world.run_until(f"10:05:4{2 + number}")
    world.run_until("10:05:50")
    assert world.started() == ["10:05:00"]
    assert world.ends() == [(f"{due}:00", "missed", "superseded") for due in dues[:-1]]


def test_the_set_does_not_wait_for_ever_for_word_of_a_create():
    world = World(answering=lambda _: None).see(every(60)).run_until("10:02:40")
    unanswered(world, "10:01")
    unanswered(world, "10:02")
    world.answering = lambda _: Verdict.CREATED
    came_to_nothing(world, "10:01")
    world.run_until("10:02:41")
    assert world.started() == []
    world.run_until("10:03:50")
    assert "10:01:00" in world.started()
