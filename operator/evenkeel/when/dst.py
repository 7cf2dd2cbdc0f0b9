"""What clock changes do to a schedule: real time cut into stretches of wall clock.

A schedule is written for a wall clock; instants are real. Between two clock changes both run
alike, so a window [a, b) of real time becomes a few parts of wall time, each with its offset:

    wall clock   00 --- 01 --- 02 | 03 --- 04       spring: 02-03 is a gap. Skip: nobody looks at
    real time    ==============|T|===========       it. Shift: what it holds runs once, at T.

    wall clock   00 --- 01 --- 02 --- 03
                               02 --- 03 --- 04     autumn: 02-03 comes twice. Both: each counts.
    real time    =====================|T|=======    First: the second is left out.

Schedules that go by real minutes (a star in minute or hour, `hourly`) and those with {Skip, Both}
take every real minute whose wall clock matches, as CronJob does: policy 0.

The rule is the same for every change of the clock, whatever its size or reason: summer time, half
an hour on Lord Howe, a zone that moves for good, and the day that Apia left out (2011-12-30).
Debian's cron gives up at three hours and would lose that day's runs; here a run of the missing day
is shifted to the first instant after it, since a yearly run lost is worse than one at midnight.

Called by `due` and `expand`. Holds as long as two changes of a zone are farther apart than either
moves the clock; a test checks that of the whole wheel since 1970.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from evenkeel.model import Fold, Gap, Instant
from evenkeel.when.zone import Zone

SHIFT = 1
FIRST = 2
BY_REAL_MINUTES = 0


class Part(NamedTuple):
    """Wall times [low, high). Usually each happens at wall - offset; in a gap, all at `gap_at`."""

    low: int
    high: int
    offset: int
    gap_at: Instant | None


def policy_of(*, gap: Gap, fold: Fold, by_real_minutes: bool) -> int:
    """The two choices as bits; 0 means that every real minute counts by itself."""
    if by_real_minutes:
        return BY_REAL_MINUTES
    return (SHIFT if gap is Gap.SHIFT else 0) | (FIRST if fold is Fold.FIRST else 0)


def parts(zone: Zone, policy: int, a: Instant, b: Instant) -> Iterator[Part]:
    """The wall time of [a, b), in the order of real time."""
    if a >= b:
        return
    instants, offsets = zone.spans(a)
    place = bisect_right(instants, a)
    while True:
        offset = offsets[place]
        low = a + offset
        if place:
            change, before = instants[place - 1], offsets[place - 1]
            if change >= a:
                low = change + offset
                if offset > before and policy & SHIFT:
                    yield Part(change + before, low, offset, change)
            if policy & FIRST:
                low = max(low, change + before)
        if place == len(instants):
            instants, offsets = zone.spans(b)
        last = place == len(instants) or instants[place] >= b
        high = (b if last else instants[place]) + offset
        if low < high:
            yield Part(low, high, offset, None)
        if last:
            return
        place += 1
