"""The runs of members in a stretch of time, as numpy arrays of seconds from its start.

Called by `load` and `rebalance`. Intervals are arithmetic; all else is asked of `when`. Holds for
stretches of at most seven days, which is what `when.expand` takes.

One thing is counted that is no run: a schedule that was moved and waits longer than an interval
for its first run (at most one and a half) has its anchor still ahead. Its place in the rhythm is
taken, so the anchor counts; else every rebalance of long intervals would seem to lose load.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import Member
from evenkeel.model import DAY_S, Cron, Hourly, Instant, Interval, Timing
from evenkeel.when import DueTimes, compile_timing, expand
from evenkeel.when.zone import load_zone

Ints = npt.NDArray[np.int64]

MEMBERS_AT_ONCE = 500
"""Bounds the memory of a batch: 500 minutely schedules have 720,000 runs a day, about 12 MB."""


class Runs(NamedTuple):
    """Many members' runs; `ordinal` is the place in the sequence that was asked about."""

    second: Ints
    ordinal: Ints


def is_arithmetic(timing: Timing) -> bool:
    """Whether due times are anchor + k * every in real time, clock changes or not."""
    rule = timing.rule
    if not isinstance(rule, Interval):
        return False
    return timing.zone == "UTC" or rule.every_s % DAY_S != 0 or load_zone(timing.zone).unchanging


def dues_of(member: Member) -> DueTimes:
    """The compiled timing, compiled now if the caller did not bring it."""
    return member.dues or compile_timing(member.timing, seed=member.key)


def base_of(timing: Timing) -> Instant:
    """The instant that an interval counts from: never a run itself."""
    rule = timing.rule
    assert isinstance(rule, Interval)
    assert rule.offset_s is not None, "an interval without a phase"
    return (rule.anchor or 0) + rule.offset_s


def waits_longer(member: Member) -> bool:
    """Whether it was moved to a phase that begins more than an interval after the move."""
    return member.placed_at is not None and base_of(member.timing) > member.placed_at


def runs_of(member: Member, a: Instant, b: Instant) -> Ints:
    """One member's runs in [a, b), ascending, as seconds after a."""
    timing = member.timing
    if is_arithmetic(timing):
        first, end, every_s = _progression(member, a, b)
        return np.arange(first - a, end - a, every_s)
    if isinstance(timing.rule, Cron | Hourly):
        return expand([dues_of(member)], a, b).second.astype(np.int64)
    counted = _anchors_ahead(member, a, b) + dues_of(member).between(a, b)
    return np.array(counted, np.int64) - a


def runs_of_all(members: Sequence[Member], a: Instant, b: Instant) -> Runs:
    """All members' runs in [a, b), in no particular order."""
    plain = [n for n, member in enumerate(members) if is_arithmetic(member.timing)]
    asked = [n for n, member in enumerate(members) if not is_arithmetic(member.timing)]
    found = _progressions([members[n] for n in plain], np.array(plain, np.int64), a, b)
    if not asked:
        return found
    expansion = expand([dues_of(members[n]) for n in asked], a, b)
    ordinal = np.array(asked, np.int64)[expansion.ordinal]
    ahead = [(anchor - a, n) for n in asked for anchor in _anchors_ahead(members[n], a, b)]
    extra = np.array(ahead, np.int64).reshape(-1, 2).T
    return Runs(
        np.concatenate((found.second, expansion.second.astype(np.int64), extra[0])),
        np.concatenate((found.ordinal, ordinal, extra[1])),
    )


def batches(members: Iterable[Member]) -> Iterator[list[Member]]:
    """The members in lists of bounded length."""
    left = iter(members)
    while batch := list(islice(left, MEMBERS_AT_ONCE)):
        yield batch


def _anchors_ahead(member: Member, a: Instant, b: Instant) -> list[Instant]:
    """The anchor in [a, b) that counts although it is no run; usually none."""
    if not waits_longer(member):
        return []
    base = base_of(member.timing)
    return [base] if a <= base < b else []


def _progression(member: Member, a: Instant, b: Instant) -> tuple[Instant, Instant, int]:
    """(first run, end, every): the runs of an arithmetic interval in [a, b)."""
    timing = member.timing
    every_s, base = member.interval.every_s, base_of(timing)
    first_counted = base if waits_longer(member) else base + 1
    low = max(a, first_counted, a if timing.start is None else timing.start)
    end = b if timing.end is None else min(b, timing.end)
    return base - (base - low) // every_s * every_s, end, every_s


def _progressions(members: list[Member], ordinals: Ints, a: Instant, b: Instant) -> Runs:
    rows = np.array([_progression(member, a, b) for member in members], np.int64).reshape(-1, 3)
    first, end, every_s = rows.T
    count = np.maximum(0, -((first - end) // every_s))
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) - np.repeat(begin, count)
    second = np.repeat(first - a, count) + place * np.repeat(every_s, count)
    return Runs(second, np.repeat(ordinals, count))
