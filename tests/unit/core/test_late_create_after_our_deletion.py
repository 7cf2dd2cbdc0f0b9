"""A create that got no answer may arrive when the Job of the next try has come and gone."""

from dataclasses import replace

import pytest
from tests.builders import edited, every, instant
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.messages import PodsLookedAt
from evenkeel.model import JobState, Verdict
from evenkeel.reasons import ConditionReason


def answered_at_the_second_try(seen) -> World:
    """10:10:00: no answer, and no Job. 10:10:01: created."""
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    world.answering = lambda _: Verdict.CREATED
    world.answer(world.in_flight[0], Verdict.HELD, reason=ConditionReason.NOT_CREATED)
    return world.run_until("10:10:05")


def the_first_arrives(world: World, fact) -> None:
    late = replace(fact, ref=replace(fact.ref, uid="uid-late"), state=JobState.STARTED)
    world.jobs[late.ref.name] = late
    world.scheduler.inbox.hint("uid-late", messages.JobSeen(late))
    world.settle()


@pytest.mark.parametrize("ended_by", ["a person", "pendingDeadlineSeconds"])
def test_no_job_is_left_of_a_run_that_has_ended(ended_by):
    seen = every(600, pending_deadline_s=10)
    world = answered_at_the_second_try(seen)
    fact = world.job(seen, "10:10")
    if ended_by == "a person":
        world.cancel(seen, "10:10")
    else:
        world.change(fact, state=JobState.WAITING, started=instant("10:10:01"))
        world.run_until("10:10:16")
        look = world.looked_at[-1]
        world.tell(PodsLookedAt(look.run, look.attempt, False, "image", "no such image"))
    assert world.jobs == {}
    the_first_arrives(world, fact)
    world.run_until("10:11")
    assert world.jobs == {}


def test_the_job_goes_as_soon_as_the_end_is_stored_whatever_is_to_be_stored_since() -> None:
    """A status that cannot be stored for a while must not let it run to its end."""
    seen = every(600)
    world = answered_at_the_second_try(seen)
    fact = world.job(seen, "10:10")
    world.cancel(seen, "10:10")
    world.writes = False
    world.see(edited(seen, priority=1))
    the_first_arrives(world, fact)
    assert fact.ref.name not in world.jobs
