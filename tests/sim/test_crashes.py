"""Modes 1 and 2: crashes at every call of small worlds, and restarts every few steps."""

from collections import Counter
from dataclasses import replace

import pytest
from tests.sim import modes
from tests.sim.oracles import violations
from tests.sim.play import play
from tests.sim.scenario import counts
from tests.sim.test_metrics import SCRAPE
from tests.sim.worlds import ENDS, WORLDS

NUMBERS = range(len(WORLDS))
NAMES = [world.name for world in WORLDS]

FORGIVEN = {"Jobs that vanish soon are marked first": {"lost_between_mark_and_create": 4}}
"""At most, at all crash points of a world together; every other world needs nothing."""

MEANT_TO_WAIT = {
    "Queue keeps the order and drops what is too much",
    "a quota is full, and has room again within grace",
    "All runs the newest of what was missed, and none beyond its deadline",
}


@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_undisturbed_nothing_is_wrong(number: int) -> None:
    assert violations(modes.faultless(number)) == []


@pytest.mark.parametrize("name", ENDS)
def test_undisturbed_it_ends_as_its_rule_says(name: str) -> None:
    story = WORLDS[NAMES.index(name)]
    outcome = play(replace(story, deeds=(*story.deeds, SCRAPE)))
    found = counts(outcome)
    if found.pop("missed", 0):
        counts_of = outcome.processes[0].operator.metrics.counts
        for why in counts_of.keys("missed"):
            found[f"missed: {why[1]}"] = int(counts_of.shown(why))
    assert found == ENDS[name]


ON_TIME_S = 0.1
"""On the simulator's clock: a mark that goes first and a create on a network that is well."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in MEANT_TO_WAIT])
def test_undisturbed_every_run_is_created_at_its_due_time(name: str) -> None:
    late = {
        job.name: job.at - job.due
        for job in modes.faultless(NAMES.index(name)).jobs.values()
        if job.attempt == 1 and job.at - job.due > ON_TIME_S
    }
    assert late == {}


@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_wherever_it_crashes_the_end_is_the_same(number: int) -> None:
    """Before and after every single API call, exhaustively."""
    wrong: dict[str, list[str]] = {}
    forgiven: Counter[str] = Counter()
    for point in modes.crash_points(number):
        found, uses = modes.crash_at(number, point)
        forgiven += uses
        if found:
            wrong[f"call {point.call} {'after' if point.after else 'before'}"] = found
    assert wrong == {}
    assert forgiven <= Counter(FORGIVEN.get(NAMES[number], {}))


@pytest.mark.parametrize("steps", modes.STEPS)
@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_restarted_every_few_steps_it_comes_to_the_same_end(number: int, steps: int) -> None:
    assert modes.restart_every(number, steps) == []
