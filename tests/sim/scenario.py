"""Faults by name: a small world, played with the faults that a test names, and looked at.

A number in a test's name is that of the list of faults that the product must survive; what is at
stake stands in the sentence. Every outcome must also pass all oracles.
"""

from __future__ import annotations

from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import CALM, Trouble, play
from tests.sim.world import Deed, World, every

DAY_S = 86_400
YEAR_S = 365 * DAY_S
JOBS = "/jobs"
TWENTY = every(20)


def world(*deeds: Deed, lasts_s: float = 95, **more: object) -> World:
    fate = Fate(0.5, 3)
    return World("scenario", deeds, lasts_s, **{"fate": lambda job: fate, **more})  # type: ignore[arg-type]


def right(outcome: Outcome) -> Outcome:
    assert violations(outcome) == []
    return outcome


def with_faults(story: World, *rules: Rule, trouble: Trouble = CALM) -> Outcome:
    return right(play(story, trouble, weather=lambda number: Scripted(*rules)))


def dues(outcome: Outcome, name: str = "a") -> list[int]:
    return [job.due - outcome.world.base for job in outcome.jobs_of(name)]


def counts(outcome: Outcome, name: str = "a") -> dict[str, int]:
    return {key: value for key, value in outcome.status(name)["counts"].items() if value}


def calls(outcome: Outcome, verb: str, part: str) -> list[float]:
    return [
        request.at - outcome.world.base
        for request in outcome.server.requests
        if request.who.startswith("operator") and request.verb == verb and part in request.path
    ]
