"""Describes the load of a day for people and for the HTTP API.

`LoadMap.distribution` calls `describe`, and `rebalance` calls it for the load before and after a
plan. With 10,000 schedules a call takes 10 ms, most of it to look at all runs of the day, so
callers keep the result.
"""

import numpy as np
import numpy.typing as npt

from evenkeel.balance.day_load import DayLoad, Ints, weight_by_slot
from evenkeel.balance.measures import StartCounter
from evenkeel.balance.nouns import DAY_SLOTS, Busiest, Distribution, HourLoad
from evenkeel.balance.runs import Members
from evenkeel.balance.score import distribution_score, peak_bound, peak_to_mean
from evenkeel.model import DAY_S, SLOT_S, Instant

HOUR_S = 3600
HOURS = 24

GAIN_WORTH_IT = 0.10
"""A rebalance is suggested if peak/mean falls by a tenth or more: moving schedules has a cost for
their owners."""

MINUTE_SLACK = 2
MINUTE_SLACK_SHARE = 0.2
"""A rebalance beside fixed schedules ends at most so far above the bound of the busiest minute,
whichever is more. To suggest the bound itself would be to suggest a rebalance for ever."""


def describe(
    members: Members,
    day: DayLoad,
    start: Instant,
    *,
    total_jobs: int,
    rebalanced: Distribution | None = None,
) -> Distribution:
    """The distribution of the 24 hours from `start`. `members` are those that count."""
    stays = np.array([m.placed_at is None or m.pinned for m in members.members], np.bool_)
    starts = StartCounter(members, stays, day.seconds, start)
    hourly, fixed = _by_hour(members, start, stays, starts)
    minute, second, concurrency = starts.results()
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
        busiest_minute=minute,
        busiest_second=second,
        concurrency=concurrency,
        suggestion=_suggestion(slots, fixed, bound, minute, rebalanced),
    )


def _by_hour(
    members: Members, start: Instant, stays: npt.NDArray[np.bool_], starts: StartCounter
) -> tuple[tuple[HourLoad, ...], Ints]:
    """Schedules and runs of each UTC hour, and the load by slot of schedules that never move
    (`stays`). All runs are passed to `starts`, too."""
    runs = np.zeros(HOURS, np.int64)
    fixed = np.zeros(DAY_SLOTS, np.int64)
    runs_in_hour = np.zeros((len(members.members), HOURS), np.bool_)
    weight = np.where(stays, members.weight, 0)
    for batch in members.runs(start, start + DAY_S):
        starts.add(batch)
        second, ordinal = batch
        hour = (second + start) // HOUR_S % HOURS
        runs += np.bincount(hour, minlength=HOURS)
        runs_in_hour[ordinal, hour] = True
        fixed += weight_by_slot(second // SLOT_S, weight[ordinal], DAY_SLOTS)
    pairs = zip(runs_in_hour.sum(axis=0).tolist(), runs.tolist(), strict=True)
    return tuple(HourLoad(hour, *pair) for hour, pair in enumerate(pairs)), fixed


def _suggestion(
    slots: Ints, fixed: Ints, bound: float, minute: Busiest, rebalanced: Distribution | None
) -> str:
    """Whether to rebalance: by the plan's peak/mean and busiest minute or, without a plan, by lower
    bounds of both."""
    now = peak_to_mean(slots)
    peak = int(slots.max())
    if rebalanced is not None:
        then, peak_then, how = rebalanced.peak_to_mean, rebalanced.peak, ""
        minute_then = rebalanced.busiest_minute.starts
        expected: float = minute_then
    else:
        mean = int(slots.sum()) / len(slots)
        peak_then = max(int(fixed.max()), round(bound * mean))
        then, how = (peak_then / mean if mean else 1.0), "at best "
        minute_then = minute.bound
        expected = minute.bound + max(MINUTE_SLACK, minute.bound * MINUTE_SLACK_SHARE)
    if then <= now * (1 - GAIN_WORTH_IT):
        gain = f"peak {peak} -> {how}{peak_then}"
    elif expected <= minute.starts * (1 - GAIN_WORTH_IT):
        gain = f"busiest minute {minute.starts} -> {how}{minute_then}"
    else:
        return "acceptable"
    return f"degraded, consider rebalancing: {gain}"
