"""A picture of the load as people and the HTTP API see it.

Called by `LoadMap.distribution` and by `rebalance` for the two sides of a plan. Counting which
schedules run in which hour costs 10 ms at ten thousand, so callers keep the answer.
"""

import numpy as np

from evenkeel.balance.nouns import DAY_SLOTS, Distribution, HourLoad
from evenkeel.balance.picture import DayPicture, Ints, weighed
from evenkeel.balance.runs import Members
from evenkeel.balance.score import distribution_score, peak_bound, peak_to_mean
from evenkeel.model import DAY_S, SLOT_S, Instant

HOUR_S = 3600
HOURS = 24

GAIN_WORTH_IT = 0.10
"""Rebalancing moves people's schedules: below a tenth of the peak it is not worth that."""


def describe(
    crowd: Members,
    picture: DayPicture,
    start: Instant,
    *,
    total_jobs: int,
    rebalanced: Distribution | None = None,
) -> Distribution:
    """All that is shown of the 24 hours from `start`; the crowd is those that count."""
    hourly, fixed = _by_hour(crowd, start)
    slots = picture.slots
    first_slot = start % DAY_S // SLOT_S
    of_day = np.roll(slots, first_slot).reshape(HOURS, -1).sum(axis=1)
    peak_hour = int(of_day.argmax())
    bound = peak_bound(DAY_SLOTS, picture.runs_by_weight)
    return Distribution(
        start=start,
        slots=tuple(slots.tolist()),
        hourly=hourly,
        total_jobs=total_jobs,
        distribution_score=distribution_score(slots, picture.runs_by_weight),
        peak_hour=peak_hour,
        peak_count=hourly[peak_hour].run_count,
        peak_to_mean=peak_to_mean(slots),
        lower_bound=bound,
        suggestion=_suggestion(slots, fixed, bound, rebalanced),
    )


def _by_hour(crowd: Members, start: Instant) -> tuple[tuple[HourLoad, ...], Ints]:
    """Schedules and runs by UTC hour; and the slots of those that are never moved."""
    runs = np.zeros(HOURS, np.int64)
    fixed = np.zeros(DAY_SLOTS, np.int64)
    there = np.zeros((len(crowd.members), HOURS), np.bool_)
    stays = np.array([m.placed_at is None or m.pinned for m in crowd.members], np.bool_)
    weight = np.where(stays, crowd.weight, 0)
    for second, ordinal in crowd.runs(start, start + DAY_S):
        hour = (second + start) // HOUR_S % HOURS
        runs += np.bincount(hour, minlength=HOURS)
        there[ordinal, hour] = True
        fixed += weighed(second // SLOT_S, weight[ordinal], DAY_SLOTS)
    pairs = zip(there.sum(axis=0).tolist(), runs.tolist(), strict=True)
    return tuple(HourLoad(hour, *pair) for hour, pair in enumerate(pairs)), fixed


def _suggestion(slots: Ints, fixed: Ints, bound: float, rebalanced: Distribution | None) -> str:
    """Whether to rebalance, by what it would gain."""
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
