"""Somebody with rights on one namespace's statuses writes nonsense, and the operator starts anew.

The process lives, all others are on time, the status can be written again, and the schedule goes
on. What the forged schedule itself counts is its owner's affair.
"""

from __future__ import annotations

from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.scenario import world
from tests.sim.server import Json
from tests.sim.world import NEW_YEAR, Deed, World, create, every

from evenkeel import rfc3339

FORGED_S = 40.0

ON_TIME_S = 0.5

RESTARTS_S = 3.0
"""From the operator's end until the next one is ready."""


def victim_and_forged(status: Json | None = None, *, seed: int = 0, **spec: object) -> World:
    """`b` is a schedule of another namespace; `a` has its status forged."""
    deed = Deed(FORGED_S, "forge status", "a", status or {}, value=seed)
    other = create(1, "b", every(10), ns="other")
    return world(create(1, "a", every(10, **spec)), other, deed, lasts_s=215)


def moment(second: int) -> str:
    return rfc3339.show(NEW_YEAR + int(FORGED_S) + second)


def lateness_of_b(outcome: Outcome) -> dict[int, float]:
    """By due time; what came due while nobody ran is left out."""
    return {
        job.due - NEW_YEAR: job.at - job.due
        for job in outcome.jobs_of("b")
        if not FORGED_S <= job.due - NEW_YEAR < FORGED_S + RESTARTS_S
    }


def test_and_a_restart_goes_by_what_was_forged() -> None:
    """Or these tests would show nothing: a process that lives goes by what it knows."""
    status: Json = {"pause": {"since": moment(-5), "by": "nobody", "reason": "forged"}}

    outcome = play(victim_and_forged(status), Trouble(kills=((100.0, 1.0),)))

    assert [job.due - NEW_YEAR for job in outcome.jobs_of("a")] == [10, 20, 30]
