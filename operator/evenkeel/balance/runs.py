"""The runs of members between two instants, as numpy arrays of seconds after the first instant.

Most modules of `balance` call these functions. Intervals in elapsed time are computed here; the
due times of all other timings come from `when`, which takes at most seven days at a time.

Some instants are counted that are no runs. After a rebalance the first run by the new phase can be
up to one and a half intervals away, and the anchor then lies in the future. Such an anchor counts
as a run, and so do the instants of the phase before it, from the start of the slot in which the
schedule was moved: without them, a rebalance would seem to remove load.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import Member
from evenkeel.model import DAY_S, SLOT_S, Cron, Hourly, Instant, Interval, Timing
from evenkeel.when import DueTimes, compile_timing, expand
from evenkeel.when.zone import MAX_INSTANT, load_zone

Ints = npt.NDArray[np.int64]

MEMBERS_AT_ONCE = 500
"""Bounds the memory of a batch: 500 minutely schedules have 720,000 runs a day, about 12 MB."""


class Runs(NamedTuple):
    """Runs of many members, in no order. `ordinal` is the place of the member in the sequence."""

    second: Ints
    ordinal: Ints


class Progression(NamedTuple):
    """The due times of an interval in elapsed time: base + k * every_s, in [low, end)."""

    base: Instant
    low: Instant
    end: Instant
    every_s: int


def is_arithmetic(timing: Timing) -> bool:
    """Whether the due times are anchor + k * every in elapsed time, whatever the zone's clock
    does."""
    rule = timing.rule
    if not isinstance(rule, Interval):
        return False
    return timing.zone == "UTC" or rule.every_s % DAY_S != 0 or load_zone(timing.zone).unchanging


def dues_of(member: Member) -> DueTimes:
    """The compiled timing; compiled now if the member has none."""
    return member.dues or compile_timing(member.timing, seed=member.key)


def base_of(timing: Timing) -> Instant:
    """The instant from which an interval is counted. It is never a run."""
    rule = timing.rule
    assert isinstance(rule, Interval)
    assert rule.offset_s is not None, "an interval without a phase"
    return (rule.anchor or 0) + rule.offset_s


def has_anchor_ahead(member: Member) -> bool:
    """Whether the member was moved to a phase whose anchor lay in the future then: the first run
    was more than one interval away."""
    return member.placed_at is not None and base_of(member.timing) > member.placed_at


def counted_from(member: Member) -> Instant:
    """The first instant from which on the phase of an interval counts as runs."""
    base = base_of(member.timing)
    if member.placed_at is None or not has_anchor_ahead(member):
        return base + 1
    if not is_arithmetic(member.timing):
        return base
    return member.placed_at // SLOT_S * SLOT_S


def progression_of(member: Member) -> Progression | None:
    """The member's due times as a progression; None if only `when` can compute them."""
    timing = member.timing
    if not is_arithmetic(timing):
        return None
    base, low = base_of(timing), counted_from(member)
    if timing.start is not None:
        low = max(low, timing.start)
    end = MAX_INSTANT if timing.end is None else timing.end
    return Progression(base, low, end, member.interval.every_s)


def runs_of(member: Member, progression: Progression | None, a: Instant, b: Instant) -> Ints:
    """The runs of one member in [a, b), ascending, as seconds after a."""
    if progression is not None:
        base, low, end, every_s = progression
        first = base - (base - max(a, low)) // every_s * every_s
        return np.arange(first - a, min(b, end) - a, every_s)
    if isinstance(member.timing.rule, Cron | Hourly):
        return expand([dues_of(member)], a, b).second.astype(np.int64)
    counted = _anchors_ahead(member, a, b) + dues_of(member).between(a, b)
    return np.array(counted, np.int64) - a


class Members:
    """A sequence of members, prepared so that their runs can be computed many times."""

    def __init__(
        self, members: Sequence[Member], progressions: Sequence[Progression | None] | None = None
    ) -> None:
        """`progressions` has one entry for each member, if the caller has computed them before."""
        if progressions is None:
            progressions = [progression_of(member) for member in members]
        self.members = members
        self.weight: Ints = np.array([member.weight for member in members], np.int64)
        self.lasts_s: Ints = np.array([member.lasts_s for member in members], np.int64)
        self.fixed = np.array([member.placed_at is None for member in members], np.bool_)
        """Their owners chose their times."""
        with_progression = [
            n for n, progression in enumerate(progressions) if progression is not None
        ]
        self._with_progression = np.array(with_progression, np.int64)
        self._progressions = np.array(
            [progressions[n] for n in with_progression], np.int64
        ).reshape(-1, 4)
        self._others = [n for n, progression in enumerate(progressions) if progression is None]

    def runs(self, a: Instant, b: Instant) -> Iterator[Runs]:
        """All runs in [a, b), as seconds after a, in batches of bounded memory."""
        for at in range(0, len(self._with_progression), MEMBERS_AT_ONCE):
            batch = slice(at, at + MEMBERS_AT_ONCE)
            yield _runs_of_progressions(
                self._progressions[batch], self._with_progression[batch], a, b
            )
        for at in range(0, len(self._others), MEMBERS_AT_ONCE):
            yield self._expanded(self._others[at : at + MEMBERS_AT_ONCE], a, b)

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


def _runs_of_progressions(progressions: Ints, ordinals: Ints, a: Instant, b: Instant) -> Runs:
    base, low, end, every_s = progressions.T
    first = base - (base - np.maximum(low, a)) // every_s * every_s
    count = np.maximum(0, -((first - np.minimum(end, b)) // every_s))
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) - np.repeat(begin, count)
    second = np.repeat(first - a, count) + place * np.repeat(every_s, count)
    return Runs(second, np.repeat(ordinals, count))


def _anchors_ahead(member: Member, a: Instant, b: Instant) -> list[Instant]:
    """The anchor in [a, b) that counts although it is no run (see above); usually there is none."""
    if member.placed_at is None or not has_anchor_ahead(member):
        return []
    base = base_of(member.timing)
    return [base] if a <= base < b else []
