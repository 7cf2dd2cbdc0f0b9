"""The ways to disturb an operator: functions that return what the oracles found wrong.

Called by the tests in this directory and by `python -m tests.sim`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

from tests.sim import unstored
from tests.sim.differences import differences
from tests.sim.network import CrashPoint
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.requested import with_requests
from tests.sim.store import StoreCrash, StoreTrouble
from tests.sim.world import REQUESTS_FROM, UNSTORED_FROM, World, from_seed
from tests.sim.worlds import WORLDS

STEPS = (1, 2, 3, 5, 7, 11)


@cache
def faultless(number: int) -> Outcome:
    """The small world of that number, undisturbed."""
    return play(WORLDS[number])


def crash_points(number: int) -> list[CrashPoint]:
    """Before and after every call of an operator that nothing disturbs."""
    calls = faultless(number).processes[0].connection.calls
    return [CrashPoint(call, after) for call in range(calls) for after in (False, True)]


def store_crash_points(number: int) -> list[StoreCrash]:
    """Before and after every call of its store, of an operator that nothing disturbs."""
    store = faultless(number).processes[0].store
    assert store is not None
    return [StoreCrash(call, after) for call in range(store.calls) for after in (False, True)]


def crash_at(number: int, point: CrashPoint | StoreCrash) -> tuple[list[str], Counter[str]]:
    """Crash there, start anew, and compare the ends. What is wrong, and what was forgiven."""
    outcome = play(WORLDS[number], Trouble(crash_point=point))
    found = violations(outcome) + differences(outcome, faultless(number))
    return found, outcome.forgiven


def restart_every(number: int, steps: int) -> list[str]:
    """Kill each process so many steps after it was ready, until the play ends."""
    # A status is written at most once a second: of a process that never lives for one, nothing is
    # told but what it finds at its start, and no decision of it would last.
    after_step_s = 0.05 if steps >= 5 else 1.1
    trouble = Trouble(every_steps=steps, after_step_s=after_step_s, down_s=0.1)
    outcome = play(WORLDS[number], trouble)
    return violations(outcome) + differences(outcome, faultless(number))


def storm(seed: int, *, verbose: bool = False) -> tuple[list[str], Outcome]:
    """A world, a weather and crashes by seed; then calm, in which all must come right."""
    if UNSTORED_FROM <= seed < REQUESTS_FROM:
        return _unstored(seed, verbose=verbose)
    world = world_of(seed)
    store = StoreTrouble.from_seed(seed, until_s=world.calm_from_s)
    outcome = play(world, trouble_from_seed(seed, world), store=store, verbose=verbose)
    return violations(outcome), outcome


def world_of(seed: int) -> World:
    """With requests, where the seed has some."""
    world = from_seed(seed)
    return with_requests(seed, world) if seed >= REQUESTS_FROM else world


def _unstored(seed: int, *, verbose: bool) -> tuple[list[str], Outcome]:
    """Statuses cannot be stored for longer than Jobs live, and the operator is killed."""
    world, trouble, rules = unstored.from_seed(seed)
    store = StoreTrouble.from_seed(seed, until_s=world.calm_from_s)
    outcome = play(
        world,
        trouble,
        weather=lambda _: unstored.weather(rules),
        store=store,
        verbose=verbose,
    )
    return violations(outcome), outcome


def trouble_from_seed(seed: int, world: World) -> Trouble:
    """One seed in ten has no weather, so that crashes alone are seen as well."""
    rng = Random(f"trouble {seed}")
    kills = tuple(
        sorted(
            (rng.uniform(1, world.calm_from_s), rng.choice((0.1, 1.0, 10.0, 70.0)))
            for _ in range(rng.choice((0, 1, 2, 5)))
        )
    )
    stops = tuple((at + 0.5, down_s) for at, down_s in kills) if rng.random() < 0.2 else ()
    return Trouble(
        kills=() if stops else kills,
        stops=stops,
        every_steps=rng.choice((0, 0, 0, 0, 0, 0, 7, 25)),
        down_s=rng.choice((0.1, 1.0, 4.0)),
        storm=None if rng.random() < 0.1 else seed,
        twins=rng.random() < 0.1,
    )


def replay(seed: int) -> tuple[list[str], list[str]]:
    """What is wrong with a seed, and its history."""
    found, outcome = storm(seed, verbose=True)
    play_ = outcome.processes[0].play
    head = [f"{outcome.world.name}: {play_.trouble}", f"weather: {play_.weather}"]
    return found, [*head, *outcome.history, *(found or ["nothing wrong"])]
