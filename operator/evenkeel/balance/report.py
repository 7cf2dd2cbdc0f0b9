"""Describes the load of a day for people and for the HTTP API.

`LoadMap.distribution` calls `describe`, and `rebalance` calls it for the load before and after a
plan. With 10,000 schedules a call takes 10 ms, most of it to count the schedules of each hour, so
callers keep the result.
"""

import numpy as np

from evenkeel.balance.day_load import DayLoad, Ints, weight_by_slot
from evenkeel.balance.nouns import DAY_SLOTS, Distribution, HourLoad
from evenkeel.balance.runs import Members
from evenkeel.balance.score import distribution_score, peak_bound, peak_to_mean
from evenkeel.model import DAY_S, SLOT_S, Instant

HOUR_S = 3600
HOURS = 24

GAIN_WORTH_IT = 0.10
"""A rebalance is suggested if peak/mean falls by a tenth or more: moving schedules has a cost for
their owners."""


def describe(
    members: Members,
    day: DayLoad,
    start: Instant,
    *,
    total_jobs: int,
    rebalanced: Distribution | None = None,
) -> Distribution:
    """The distribution of the 24 hours from `start`. `members` are those that count."""
    hourly, fixed = _by_hour(members, start)
    slots = day.slots
    first_slot = start % DAY_S // SLOT_S
    of_day = np.roll(slots, first_slot).reshape(HOURS, -1).sum(axis=1)
    peak_hour = int(of_day.argmax())
    bound = peak_bound(DAY_SLOTS, day.runs_by_weight)
    return Distribution(
        start=start,
        slots=tuple(slots.tolist()),
        hourly=hourly,
        total_jobs=total_jobs,
        distribution_score=distribution_score(slots, day.runs_by_weight),
        peak_hour=peak_hour,
        peak_count=hourly[peak_hour].run_count,
        peak_to_mean=peak_to_mean(slots),
        lower_bound=bound,
        suggestion=_suggestion(slots, fixed, bound, rebalanced),
    )


def _by_hour(members: Members, start: Instant) -> tuple[tuple[HourLoad, ...], Ints]:
    """Schedules and runs of each UTC hour, and the load by slot of schedules that never move."""
    runs = np.zeros(HOURS, np.int64)
    fixed = np.zeros(DAY_SLOTS, np.int64)
    runs_in_hour = np.zeros((len(members.members), HOURS), np.bool_)
    stays = np.array([m.placed_at is None or m.pinned for m in members.members], np.bool_)
    weight = np.where(stays, members.weight, 0)
    for second, ordinal in members.runs(start, start + DAY_S):
        hour = (second + start) // HOUR_S % HOURS
        runs += np.bincount(hour, minlength=HOURS)
        runs_in_hour[ordinal, hour] = True
        fixed += weight_by_slot(second // SLOT_S, weight[ordinal], DAY_SLOTS)
    pairs = zip(runs_in_hour.sum(axis=0).tolist(), runs.tolist(), strict=True)
    return tuple(HourLoad(hour, *pair) for hour, pair in enumerate(pairs)), fixed


def _suggestion(slots: Ints, fixed: Ints, bound: float, rebalanced: Distribution | None) -> str:
    """Whether to rebalance: by the plan's peak/mean or, without a plan, by a lower bound of it."""
    now = peak_to_mean(slots)
    peak = int(slots.max())
    if rebalanced is not None:
        then, peak_then, how = rebalanced.peak_to_mean, rebalanced.peak, ""
    else:
        mean = int(slots.sum()) / len(slots)
        peak_then = max(int(fixed.max()), round(bound * mean))
        then, how = (peak_then / mean if mean else 1.0), "at best "
    if then > now * (1 - GAIN_WORTH_IT):
        return "acceptable"
    return f"degraded, consider rebalancing: peak {peak} -> {how}{peak_then}"
