"""Requests in random worlds: what people ask of the schedules of a world, by seed.

The world without them is the same, so that both can be compared. A request may be for a schedule
that comes later, never comes, or is suspended, edited, deleted and made again meanwhile: the
world's own deeds do that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tests.sim.world import NO_LEDGER, Deed, World, delete_request, patch_request, request, trigger

from evenkeel import rfc3339

CALM_S = 240.0
"""So long after the storm a world with requests goes on at least: they take turns with the runs by
schedule."""

PARAMETER = "DAY"
"""Of some schedules. It may have one of VALUES."""

VALUES = ("today", "monday", "$(HOME)", "")


def with_requests(seed: int, world: World) -> World:
    """The same world, and in it people who ask for runs."""
    rng = Random(f"requests {seed}")
    made = [deed for deed in world.deeds if deed.what == "create"]
    given = {(deed.ns, deed.name) for deed in made if rng.random() < 0.3}
    deeds = [_with_parameters(deed, given) for deed in world.deeds]
    for number in range(rng.randint(1, 4)):
        deeds += _asks(rng, f"ask-{number}", rng.choice(made), given, world)
    deeds += _triggers(rng, made, world)
    return replace(
        world,
        name=f"{world.name} with requests",
        deeds=tuple(sorted(deeds, key=lambda deed: deed.at_s)),
        lasts_s=world.calm_from_s + CALM_S,
        tags=world.tags | ({NO_LEDGER} if rng.random() < 0.15 else set()),
    )


def without_requests(world: World) -> World:
    """Nobody asks for anything."""
    return replace(world, deeds=tuple(deed for deed in world.deeds if not is_asked(deed)))


def is_asked(deed: Deed) -> bool:
    """Whether the deed is about a request."""
    return "request" in deed.what or (deed.what == "patch" and "metadata" in deed.body)


def _with_parameters(deed: Deed, given: set[tuple[str, str]]) -> Deed:
    if deed.what != "create" or (deed.ns, deed.name) not in given:
        return deed
    parameters = [{"name": PARAMETER, "value": VALUES[0], "enum": list(VALUES)}]
    return replace(deed, body={**deed.body, "parameters": parameters})


def _asks(
    rng: Random, name: str, made: Deed, given: set[tuple[str, str]], world: World
) -> Iterator[Deed]:
    """One request, and what is done to it."""
    at_s = rng.choice(
        (rng.uniform(0, world.calm_from_s), rng.uniform(made.at_s, world.calm_from_s))
    )
    now = world.base + int(at_s)
    spec = _range(rng, now) if rng.random() < 0.6 else _single(rng, now)
    spec["overlap"] = rng.choice(("Wait", "Wait", "Allow", "Policy"))
    spec["force"] = rng.random() < 0.2
    spec["dryRun"] = rng.random() < 0.1
    if (made.ns, made.name) in given and rng.random() < 0.7:
        value = rng.choice((*VALUES, "nonsense"))
        spec["parameters"] = [{"name": PARAMETER, "value": value}]
    if rng.random() < 0.25:
        spec["ttlSecondsAfterFinished"] = rng.choice((0, 5, 40))
    schedule = made.name if rng.random() < 0.93 else "nobody"
    later = rng.uniform(at_s, world.calm_from_s)
    if rng.random() < 0.2:
        spec["suspend"] = True
        yield patch_request(later, name, ns=made.ns, suspend=False)
    elif rng.random() < 0.15:
        yield patch_request(later, name, ns=made.ns, suspend=True)
        if rng.random() < 0.7:
            again = rng.uniform(later, world.calm_from_s)
            yield patch_request(again, name, ns=made.ns, suspend=False)
    if "range" in spec and rng.random() < 0.2:
        wider = rng.choice((1, 3, 100))
        yield patch_request(rng.uniform(at_s, world.calm_from_s), name, ns=made.ns, maxActive=wider)
    yield request(at_s, name, schedule, ns=made.ns, **spec)
    if rng.random() < 0.15:
        gone_s = rng.choice((at_s, rng.uniform(at_s, world.calm_from_s)))
        yield delete_request(gone_s + 0.01, name, ns=made.ns)
        if rng.random() < 0.5:  # as a tool does that applies what Git carries
            yield request(gone_s + rng.choice((0.02, 5)), name, schedule, ns=made.ns, **spec)


def _single(rng: Random, now: int) -> dict[str, Any]:
    when = rng.choice(("now", "now", "past", "later"))
    if when == "now":
        return {}
    ahead_s = rng.randint(1, 90) if when == "later" else -rng.choice((1, 20, 60, 3_600))
    return {"at": rfc3339.show(now + ahead_s)}


def _range(rng: Random, now: int) -> dict[str, Any]:
    """Over what was due already; sometimes beyond, which is refused."""
    end = now - rng.choice((1, 1, 10, 30)) if rng.random() < 0.95 else now + 100
    first = end - rng.choice((15, 40, 90, 200))
    return {
        "range": {"from": rfc3339.show(first), "to": rfc3339.show(end)},
        "include": rng.choice(("NotSucceeded", "NotRun", "All")),
        "order": rng.choice(("OldestFirst", "NewestFirst")),
        "maxActive": rng.choice((1, 1, 2, 5, 100)),
        "stopAfterFailures": rng.choice((0, 1, 3)),
    }


def _triggers(rng: Random, made: list[Deed], world: World) -> Iterator[Deed]:
    """The same annotation on some schedules at once; on some of them set again."""
    if rng.random() < 0.6:
        return
    at_s = rng.uniform(0, world.calm_from_s)
    for deed in made:
        if rng.random() < 0.3:
            continue
        yield trigger(max(at_s, deed.at_s), deed.name, "once", ns=deed.ns)
        if rng.random() < 0.3:
            later = rng.uniform(max(at_s, deed.at_s), world.calm_from_s)
            yield trigger(later, deed.name, rng.choice(("once", "again")), ns=deed.ns)
