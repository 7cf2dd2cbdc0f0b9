"""The watch may tell of a Job before its create is answered; then the watch is right."""

import pytest
from tests.builders import every, job
from tests.unit.core.world import World

from evenkeel.model import JobState, Verdict
from evenkeel.resource.job import job_name

TEN_MINUTES = 600


@pytest.mark.parametrize("verdict", [Verdict.HELD, Verdict.UNKNOWN, Verdict.REFUSED, Verdict.TAKEN])
def test_a_job_that_was_seen_runs_whatever_its_create_was_told(verdict):
    """A slow server may say that there is no such Job and create it a moment later."""
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    launch = world.in_flight[0]
    fact = job(seen, "10:10", JobState.STARTED)
    world.jobs[job_name(seen.name, launch.run)] = fact
    world.change(fact)

    world.answer(launch, verdict)
    world.run_until("10:11:30")  # longer than grace: what is held would be missed by now

    assert world.alive() == {"10:10:00": "running"}
    assert len(world.creations) <= 1
    assert world.ends() == []


def test_its_owner_is_told_that_it_was_created() -> None:
    seen = every(TEN_MINUTES)
    world = World(answering=lambda _: None).see(seen).run_until("10:10")
    launch = world.in_flight[0]
    fact = job(seen, "10:10", JobState.STARTED)
    world.jobs[job_name(seen.name, launch.run)] = fact
    world.change(fact)

    world.answer(launch, Verdict.CREATED)

    assert world.said("SuccessfulCreate") == [f"Created job {fact.ref.name}"]
