"""The runs of members in a stretch of time, as numpy arrays of seconds from its start.

Called all over the room. Intervals are arithmetic; all else is asked of `when`.
Holds for stretches of at most seven days, which is what `when.expand` takes.

One thing is counted that is no run: a schedule that was moved and waits longer than an interval
for its first run (at most one and a half) has its anchor still ahead. Its place in the rhythm is
taken, so the anchor counts; else every rebalance of long intervals would seem to lose load.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import Member
from evenkeel.model import DAY_S, Cron, Hourly, Instant, Interval, Timing
from evenkeel.when import DueTimes, compile_timing, expand
from evenkeel.when.zone import MAX_INSTANT, load_zone

Ints = npt.NDArray[np.int64]

MEMBERS_AT_ONCE = 500
"""Bounds the memory of a batch: 500 minutely schedules have 720,000 runs a day, about 12 MB."""


class Runs(NamedTuple):
    """Many members' runs, in no particular order; `ordinal` is the member's place in its crowd."""

    second: Ints
    ordinal: Ints


class Progression(NamedTuple):
    """An interval as numbers: base + k * every_s, from `low` until before `end`."""

    base: Instant
    low: Instant
    end: Instant
    every_s: int


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


def beat_of(member: Member) -> Progression | None:
    """The member as numbers, or None if `when` must be asked."""
    timing = member.timing
    if not is_arithmetic(timing):
        return None
    base = base_of(timing)
    low = base if member.placed_at is not None and base > member.placed_at else base + 1
    if timing.start is not None:
        low = max(low, timing.start)
    end = MAX_INSTANT if timing.end is None else timing.end
    return Progression(base, low, end, member.interval.every_s)


def runs_of(member: Member, beat: Progression | None, a: Instant, b: Instant) -> Ints:
    """One member's runs in [a, b), ascending, as seconds after a."""
    if beat is not None:
        base, low, end, every_s = beat
        first = base - (base - max(a, low)) // every_s * every_s
        return np.arange(first - a, min(b, end) - a, every_s)
    if isinstance(member.timing.rule, Cron | Hourly):
        return expand([dues_of(member)], a, b).second.astype(np.int64)
    counted = _anchors_ahead(member, a, b) + dues_of(member).between(a, b)
    return np.array(counted, np.int64) - a


class Members:
    """Many members, prepared to be asked for their runs again and again."""

    def __init__(
        self, members: Sequence[Member], beats: Sequence[Progression | None] | None = None
    ) -> None:
        """`beats` are those of the members, where the caller has kept them."""
        if beats is None:
            beats = [beat_of(member) for member in members]
        self.members = members
        self.weight: Ints = np.array([member.weight for member in members], np.int64)
        plain = [n for n, beat in enumerate(beats) if beat is not None]
        self._plain = np.array(plain, np.int64)
        self._beats = np.array([beats[n] for n in plain], np.int64).reshape(-1, 4)
        self._asked = [n for n, beat in enumerate(beats) if beat is None]

    def runs(self, a: Instant, b: Instant) -> Iterator[Runs]:
        """All runs in [a, b), as seconds after a, in batches of bounded memory."""
        for at in range(0, len(self._plain), MEMBERS_AT_ONCE):
            batch = slice(at, at + MEMBERS_AT_ONCE)
            yield _beaten(self._beats[batch], self._plain[batch], a, b)
        for at in range(0, len(self._asked), MEMBERS_AT_ONCE):
            yield self._expanded(self._asked[at : at + MEMBERS_AT_ONCE], a, b)

    def _expanded(self, asked: list[int], a: Instant, b: Instant) -> Runs:
        members = [self.members[n] for n in asked]
        expansion = expand([dues_of(member) for member in members], a, b)
        ordinal = np.array(asked, np.int64)
        ahead = [
            (anchor - a, n)
            for n, member in zip(asked, members, strict=True)
            for anchor in _anchors_ahead(member, a, b)
        ]
        extra = np.array(ahead, np.int64).reshape(-1, 2).T
        return Runs(
            np.concatenate((expansion.second.astype(np.int64), extra[0])),
            np.concatenate((ordinal[expansion.ordinal], extra[1])),
        )


def _beaten(beats: Ints, ordinals: Ints, a: Instant, b: Instant) -> Runs:
    base, low, end, every_s = beats.T
    first = base - (base - np.maximum(low, a)) // every_s * every_s
    count = np.maximum(0, -((first - np.minimum(end, b)) // every_s))
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) - np.repeat(begin, count)
    second = np.repeat(first - a, count) + place * np.repeat(every_s, count)
    return Runs(second, np.repeat(ordinals, count))


def _anchors_ahead(member: Member, a: Instant, b: Instant) -> list[Instant]:
    """The anchor in [a, b) that counts although it is no run; usually none."""
    if member.placed_at is None or not waits_longer(member):
        return []
    base = base_of(member.timing)
    return [base] if a <= base < b else []
