"""Worlds whose statuses cannot be stored for longer than a Job lives, and whose operator is killed.

The right to patch statuses is taken away for 390 s, or an admission webhook hangs for one
namespace. Jobs end after a few seconds and are deleted ttlSecondsAfterFinished later. Whatever the
operator forgets by a kill in that time, no run may be created twice.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted
from tests.sim.play import Trouble
from tests.sim.server import Json
from tests.sim.world import NEW_YEAR, Deed, World, create, template

from evenkeel import rfc3339

UNSTORED_S = 390.0
"""As long as in the attack on a real API server: longer than the default 5 min of a ttl."""

TTLS = (0, 1, 60, 300, 3_600)

FORBIDDEN = (
    'refuse:403|Forbidden|scheduledjobs.evenkeel.dev "a" is forbidden: User "evenkeel" cannot '
    'patch resource "scheduledjobs/status" in API group "evenkeel.dev"'
)


def from_seed(seed: int) -> tuple[World, Trouble, tuple[Rule, ...]]:
    """A world, when its operator is killed, and what befalls its statuses."""
    rng = Random(f"unstored {seed}")
    begin_s = rng.uniform(15, 40)
    end_s = begin_s + UNSTORED_S
    deeds: list[Deed] = []
    for number in range(rng.randint(1, 3)):
        ns = rng.choice(("default", "other"))
        spec = _spec(rng, begin_s=begin_s, end_s=end_s)
        deeds.append(replace(create(1 + number, f"job-{number}", spec), ns=ns))
    run_s = rng.choice((0.5, 5.0, 20.0))
    fails = rng.choice((0.0, 0.0, 0.5))

    def fate(job: Json) -> Fate:
        dice = Random(f"{seed} {job['metadata']['name']}")
        return Fate(0.3, run_s * dice.uniform(0.5, 1.5), dice.random() >= fails)

    kills = sorted(
        (rng.choice((rng.uniform(begin_s, end_s), rng.uniform(end_s - 30, end_s + 5))), down_s)
        for down_s in rng.choices((0.1, 5.0, 40.0), k=rng.choice((1, 2, 4)))
    )
    if rng.random() < 0.5:
        rule = Rule("PATCH", "scheduledjobs/", FORBIDDEN, from_s=begin_s, until_s=end_s)
    else:
        path = "namespaces/other/scheduledjobs/"
        rule = Rule("PATCH", path, "lost request", from_s=begin_s, until_s=end_s)
    world = World(
        name=f"unstored {seed}",
        deeds=tuple(deeds),
        lasts_s=end_s + 140,
        fate=fate,
        settings={"prune_s": 60},
        calm_from_s=end_s,
    )
    return world, Trouble(kills=tuple(kills), down_s=1.0), (rule,)


def weather(rules: tuple[Rule, ...]) -> Scripted:
    """The same for each process."""
    return Scripted(*rules)


def _spec(rng: Random, *, begin_s: float, end_s: float) -> Json:
    spec: dict[str, Any] = {
        "jobTemplate": template(ttlSecondsAfterFinished=rng.choice(TTLS)),
        "missedRuns": rng.choice(("All", "All", "Latest", "Skip")),
        "concurrencyPolicy": rng.choice(("Allow", "Allow", "Forbid", "Queue", "Replace")),
        "successfulJobsHistoryLimit": rng.choice((0, 3, 100)),
    }
    if rng.random() < 0.3:
        spec["at"] = rfc3339.show(NEW_YEAR + int(rng.uniform(5, end_s)))
        return spec
    period = rng.choice((10, 20, 30, 60))
    spec["interval"] = {"every": f"{period}s", "offset": f"{rng.randrange(period)}s"}
    spec["endTime"] = rfc3339.show(NEW_YEAR + int(end_s) + 60)
    if rng.random() < 0.3:
        spec["retry"] = {"limit": 1, "delaySeconds": rng.choice((0, 5, 60))}
    if rng.random() < 0.2:
        spec["startingDeadlineSeconds"] = rng.choice((10, 3_600))
    return spec
