"""Clock changes: cuts a window of real time into parts in which local time has one UTC offset.

A schedule is written in local time (the wall clock of a zone); instants are real time. Between two
clock changes local time is real time plus an offset. So a window [a, b) of real time becomes a few
parts of local time, each with its offset:

    local time   00 --- 01 --- 02 | 03 --- 04       spring: 02-03 is a gap. Skip: no run for it.
    real time    ==============|T|===========       Shift: the runs of the gap become one run at T.

    local time   00 --- 01 --- 02 --- 03
                               02 --- 03 --- 04     autumn: 02-03 comes twice. Both: both count.
    real time    =====================|T|=======    First: the second one does not count.

Schedules with a star in minute or hour, `hourly`, and those with {Skip, Both} are due at every real
minute whose local time matches, as in CronJob: policy 0.

The rule is the same for all clock changes, whatever their size and reason: summer time, half an
hour on Lord Howe, a zone that changes for good, and the day that Apia left out (2011-12-30).
Debian's cron ignores changes of more than three hours and would lose the runs of that day. Here a
run of the missing day is shifted to the first instant after it, because a lost yearly run is worse
than one at midnight.

`due` and `expand` call `parts`. It is correct only if two changes of a zone are farther apart than
either change moves the clock; a test checks this for all zones since 1970.
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
    """Local times [low, high). Each is the instant `local time - offset`; but all local times of a
    gap become the instant `gap_at`."""

    low: int
    high: int
    offset: int
    gap_at: Instant | None


def policy_of(*, gap: Gap, fold: Fold, by_real_minutes: bool) -> int:
    """The two choices as bits; 0: due at every real minute whose local time matches."""
    if by_real_minutes:
        return BY_REAL_MINUTES
    return (SHIFT if gap is Gap.SHIFT else 0) | (FIRST if fold is Fold.FIRST else 0)


def parts(zone: Zone, policy: int, a: Instant, b: Instant) -> Iterator[Part]:
    """The parts of the instants [a, b), in the order of real time."""
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
