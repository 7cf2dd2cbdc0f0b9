"""How even the load becomes, and how long placing and rebalancing take.

The sets: 50, 200 and 1,000 schedules; mixed (a period of 1, 2, 3, 4, 6, 12 or 24 hours each) or
all daily; of equal weight, or weights of ten times a log-normal with sigma 1. Twenty seeds of each,
all placed at one instant, in order, as one `kubectl apply` brings them; then improved as a set. The
figure is the busiest slot in units of the mean slot (1 is perfect); beside it what others do with
the same set: by hash of the name, all at the full hour, and the bound that no arrangement passes.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests.bench._measure import percentile
from tests.people import A_FIFTH, as_a_set, one_by_one, people

from evenkeel.balance import (
    Limits,
    LoadMap,
    Member,
    confirm,
    improve_set,
    place,
    plan_rebalance,
)
from evenkeel.balance.place import at_anchor
from evenkeel.model import DAY_S, Instant, Interval, Timing

A_MORNING_IN_MARCH: Instant = 1_803_895_633  # 2027-03-01T10:07:13Z
HOUR_S = 3600
SEEDS = 20
PERIODS_H = (1, 2, 3, 4, 6, 12, 24)
"""With these the weighted set of 200, all at the full hour, has the 12.2 of the specification."""
PRE_SCHEDULE_S = 10


def members(count: int, *, daily: bool, weighted: bool, seed: int) -> list[Member]:
    """A set: intervals that wait to be placed."""
    rng = np.random.default_rng(seed)
    hours = rng.choice(PERIODS_H, count)
    weights = np.clip(np.rint(10 * rng.lognormal(0, 1, count)), 1, 1000).astype(int)
    return [
        Member(
            key=f"set-{seed}/job-{n}",
            timing=Timing(Interval(DAY_S if daily else int(hours[n]) * HOUR_S)),
            weight=int(weights[n]) if weighted else 1,
        )
        for n in range(count)
    ]


def placed(given: list[Member], now: Instant, *, observe: bool = False) -> LoadMap:
    """One after the other, each looking at those before."""
    load = LoadMap(now)
    for member in given:
        found = place(load, member, now, pre_schedule_s=PRE_SCHEDULE_S, observe=observe)
        load.put(at_anchor(member, found.anchor, now))
    return load


def at_full_hours(given: list[Member], now: Instant) -> LoadMap:
    load = LoadMap(now)
    midnight = now // DAY_S * DAY_S
    load.put_all([at_anchor(m, midnight - m.interval.every_s, now) for m in given])
    return load


def rebalanced(load: LoadMap, now: Instant) -> float:
    plan = plan_rebalance(load, now, Limits(PRE_SCHEDULE_S))
    return plan.projected.peak_to_mean


def rows() -> Iterator[dict[str, Any]]:
    yield from evenness_rows()
    yield from speed_rows()


def evenness_rows() -> Iterator[dict[str, Any]]:
    for count in (50, 200, 1000):
        for daily in (False, True):
            for weighted in (False, True):
                kind = "daily" if daily else "mixed"
                name = f"{count} {kind} {'weighted' if weighted else 'equal'}"
                yield from set_rows(name, count, daily=daily, weighted=weighted)


def set_rows(name: str, count: int, *, daily: bool, weighted: bool) -> Iterator[dict[str, Any]]:
    now = A_MORNING_IN_MARCH
    found: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        given = members(count, daily=daily, weighted=weighted, seed=seed)
        load = placed(given, now)
        shown = load.distribution(now)
        one = {
            "placed": shown.peak_to_mean,
            "as_a_set": as_a_set(given, now).distribution(now).peak_to_mean,
            "rebalanced": rebalanced(load, now),
            "rebalanced_later": rebalanced(load, now + 31 * HOUR_S),
            "hash": placed(given, now, observe=True).distribution(now).peak_to_mean,
            "full_hours": at_full_hours(given, now).distribution(now).peak_to_mean,
            "bound": shown.lower_bound,
        }
        for key, value in one.items():
            found.setdefault(key, []).append(value)
    means = {key: round(statistics.mean(values), 3) for key, values in found.items()}
    beside = {key: means[key] for key in ("hash", "full_hours", "bound")}
    beside["seeds"] = SEEDS
    for figure, text in (
        ("placed", "one by one"),
        ("as_a_set", "as a set"),
        ("rebalanced", "rebalanced"),
        ("rebalanced_later", "rebalanced in operation"),
    ):
        yield {
            "name": f"{name}, {text}",
            "value": means[figure],
            "unit": "peak/mean",
            "worst_seed": round(max(found[figure]), 3),
            **beside,
        }


def speed_rows() -> Iterator[dict[str, Any]]:
    for count in (1_000, 10_000):
        yield from place_rows(count)
    yield from arrival_rows(10_000)
    yield from rebalance_rows(10_000)
    yield from set_speed_rows(10_000)
    yield from upkeep_rows(10_000)


def place_rows(count: int) -> Iterator[dict[str, Any]]:
    now = A_MORNING_IN_MARCH
    load = placed(members(count, daily=False, weighted=True, seed=1), now)
    newcomers = members(300, daily=False, weighted=True, seed=2)
    took_ms = sorted(
        timed_ms(lambda member=member: place(load, member, now, pre_schedule_s=PRE_SCHEDULE_S))
        for member in newcomers
    )
    yield {
        "name": f"place one among {count:,}",
        "value": round(statistics.median(took_ms), 4),
        "unit": "ms",
        "p99": round(percentile(took_ms, 99), 4),
    }


def arrival_rows(count: int) -> Iterator[dict[str, Any]]:
    given = members(count, daily=False, weighted=True, seed=3)
    rounds = [timed_ms(lambda: placed(given, A_MORNING_IN_MARCH)) for _ in range(3)]
    yield {
        "name": f"{count:,} placements, one after the other",
        "value": round(statistics.median(rounds), 1),
        "unit": "ms",
        "rounds": [round(took, 1) for took in rounds],
    }


def rebalance_rows(count: int) -> Iterator[dict[str, Any]]:
    """Without any protection; and as in operation, where it holds a third of them back and the plan
    says what that costs."""
    now, later = A_MORNING_IN_MARCH, A_MORNING_IN_MARCH + 2 * DAY_S
    given = members(count, daily=False, weighted=True, seed=4)
    as_written = [each.member for each in people(count, seed=4, fixed_share=A_FIFTH)]
    by_hash = one_by_one(as_written, now, observe=True)
    free = Limits(PRE_SCHEDULE_S)
    usual = Limits(PRE_SCHEDULE_S, cooldown_s=HOUR_S, protection_window_s=HOUR_S / 2)
    for text, load, at, limits in (
        ("placed by hash", placed(given, now, observe=True), now, free),
        ("placed by load", placed(given, now), now, free),
        ("as people write them, in operation", by_hash, later, usual),
    ):

        def work(load: LoadMap = load, at: Instant = at, limits: Limits = limits) -> None:
            plan_rebalance(load, at, limits)

        rounds = [timed_ms(work) for _ in range(3)]
        yield {
            "name": f"rebalance {count:,}, {text}",
            "value": round(statistics.median(rounds), 1),
            "unit": "ms",
            "rounds": [round(took, 1) for took in rounds],
        }


def set_speed_rows(count: int) -> Iterator[dict[str, Any]]:
    """The search for a whole set that arrived together. It runs away from the loop."""
    now = A_MORNING_IN_MARCH
    for text, given in (
        ("mixed weighted", members(count, daily=False, weighted=True, seed=4)),
        ("as people write them", [each.member for each in people(count, seed=4)]),
    ):
        load = placed(given, now)
        latest = {member.key: now + member.interval.every_s for member in given}

        def improve(load: LoadMap = load, latest: dict[str, Instant] = latest) -> None:
            improve_set(load, latest, now, pre_schedule_s=PRE_SCHEDULE_S)

        rounds = [timed_ms(improve) for _ in range(3)]
        yield {
            "name": f"improve a set of {count:,}, {text}",
            "value": round(statistics.median(rounds), 1),
            "unit": "ms",
            "rounds": [round(took, 1) for took in rounds],
        }


def upkeep_rows(count: int) -> Iterator[dict[str, Any]]:
    """What the scheduler's loop pays besides placing, in the middle of everything else."""
    now = A_MORNING_IN_MARCH
    load = placed(members(count, daily=False, weighted=True, seed=5), now)
    there = list(load.members.values())
    plan = plan_rebalance(load, now, Limits(PRE_SCHEDULE_S))
    clock = iter(range(now, now + 2 * DAY_S, 900))
    works: dict[str, Callable[[], object]] = {
        "confirm a plan": lambda: confirm(plan, load, now, Limits(PRE_SCHEDULE_S)),
        "count all anew": lambda: LoadMap(now).put_all(there),
        "snapshot": load.snapshot,
        "a slot passes": lambda: load.advance(next(clock)),
        "distribution after a slot": lambda: load.distribution(next(clock)),
    }
    for name, work in works.items():
        took_ms = [timed_ms(work) for _ in range(9)]
        yield {
            "name": f"{name}, {count:,}",
            "value": round(statistics.median(took_ms), 2),
            "unit": "ms",
        }


def timed_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3
