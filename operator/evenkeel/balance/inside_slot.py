"""Chooses the minutes and the seconds of many intervals, inside the slots chosen for them.

`arrange` calls `choose_minutes` after `search` has chosen the slots, and `choose_seconds` at the
end. All minutes of a slot meet the same load of the slot; without this step everybody would start
in its first minute, in which fixed schedules start too. The shortest interval chooses first: it
meets the most minutes and has the fewest to choose from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenkeel.balance import pattern, starts
from evenkeel.balance.day_load import MINUTE_S, SLOT_MINUTES, Ints, Rhythm, Seconds
from evenkeel.balance.daytime import inside
from evenkeel.balance.minutes import Minutes
from evenkeel.balance.move_range import MoveRange
from evenkeel.balance.nouns import DAY_SLOTS, Member
from evenkeel.balance.place import seconds_of_minute, window_of
from evenkeel.model import DAY_S, SLOT_S, Instant
from evenkeel.when.zone import load_zone

SWEEPS_MAX = 2
"""After two sweeps hardly any minute has fewer starts than before."""


@dataclass(slots=True, eq=False)
class Seat:
    """One schedule, with the slots that were chosen for it."""

    member: Member
    span: MoveRange
    choices: Ints
    """The first runs that it may have. Empty: only the present minute is possible."""
    first: Instant
    """The run chosen so far: the next one by the present phase, or one of the choices."""
    slots: int
    """Of a day or of a week."""
    among_slots: bool = False
    """The choices lie in other slots too, because each minute of the phase meets other slots."""

    @property
    def every_s(self) -> int:
        """The interval."""
        return self.member.interval.every_s

    def block(self, first: Ints | Instant, origin: Instant) -> Any:
        """The number of the slots that these first runs hit."""
        return (first - origin) % self.every_s // pattern.block_of(self.every_s)

    def work(self, first: Instant, origin: Instant) -> Ints:
        """The weight-minutes that it adds to each slot with this first run."""
        starts = self.hit_rows[self.block(first, origin)]
        return pattern.work_of_starts(starts, self.member.weight, self.member.lasts_s)

    def peaks(self, work: Ints) -> Ints:
        """For each block the busiest slot that it hits, with its own runs."""
        own = self.hit_rows * (self.member.weight * SLOT_MINUTES)
        peaks: Ints = np.where(own > 0, work + own, 0).max(axis=1)
        return peaks

    def even_work(self, work: Ints) -> int:
        """The mean of the slots with it, rounded up to whole runs."""
        unit, slots = self.member.weight * SLOT_MINUTES, len(work) - 1
        runs = pattern.runs_in(slots * SLOT_S, self.every_s)
        return -(-(int(work.sum()) + runs * unit) // (unit * slots)) * unit

    @property
    def hit_rows(self) -> Ints:
        """How often each block hits each slot."""
        return pattern.hit_rows(self.every_s, self.slots)

    @property
    def moves(self) -> bool:
        """Whether another phase than the present one is chosen."""
        return (self.first - self.span.current_time) % self.every_s != 0


def make_seat(
    member: Member, span: MoveRange, first: Instant, *, origin: Instant, slots: int
) -> Seat:
    """The seat of a schedule whose slots are those of the run `first`."""
    every_s = member.interval.every_s
    if every_s < starts.BY_SECONDS_BELOW_S:
        return Seat(member, span, np.zeros(0, np.int64), first, slots)
    window, zone = window_of(member), load_zone(member.timing.zone)
    if every_s <= slots * SLOT_S and every_s % SLOT_S:
        if not pattern.has_hit_table(every_s):
            return Seat(member, span, np.zeros(0, np.int64), first, slots)
        choices = starts.minutes(span.low, span.high, every_s, window=window, zone=zone)
        return Seat(member, span, choices, first, slots, among_slots=True)
    begin = first - (first - origin) % SLOT_S
    begin += -((begin + SLOT_S - 1 - span.low) // every_s) * every_s  # the first not all too early
    quarter = np.arange(0, SLOT_S, MINUTE_S)
    begins = np.arange(begin, span.high + 1, every_s)
    choices = (begins[:, None] + quarter).ravel()
    choices = choices[(choices >= span.low) & (choices <= span.high)]
    if window is not None:
        choices = choices[inside(window, zone, choices)]
    return Seat(member, span, choices, first, slots)


def seat_at(member: Member, span: MoveRange, first: Instant) -> Seat:
    """The seat of a schedule whose minute is chosen."""
    return Seat(member, span, np.zeros(0, np.int64), first, DAY_SLOTS)


def choose_minutes(
    others: Rhythm, work: Ints, seats: Sequence[Seat], *, origin: Instant, moves_are_free: bool
) -> None:
    """Set the first run of each seat to the minute with the fewest starts. `others` is the load of
    all that has no seat, `work` that of the slots with all seats.

    Schedules that ran already keep their minute if another one has no fewer starts, and all are
    placed anew only if that lowers the busiest minute.
    """
    horizon_s = len(others.minutes) * MINUTE_S
    more = sum(max(1, horizon_s // seat.every_s) for seat in seats)
    minutes = Minutes(others, origin, more=more)
    order = sorted(seats, key=lambda seat: (seat.every_s, seat.member.key))
    choosing = [seat for seat in order if len(seat.choices)]
    for seat in order:
        if not len(seat.choices):
            minutes.add(seat.first, seat.every_s)
    as_found, kept, fresh = [seat.first for seat in choosing], minutes.copy(), minutes
    for seat in choosing:
        kept.add(seat.first, seat.every_s)
    kept_work = work.copy()
    _sweep(kept, kept_work, choosing, origin)
    improved = [seat.first for seat in choosing]
    fresh_work = work.copy()
    for seat, first in zip(choosing, as_found, strict=True):
        seat.first = first
    for seat in choosing:
        _settle(fresh, fresh_work, seat, origin, is_there=False)
    _sweep(fresh, fresh_work, choosing, origin)
    compared = 3 if moves_are_free else 2  # a bit more even is not worth everybody's times
    if fresh.rank()[:compared] >= kept.rank()[:compared]:
        for seat, first in zip(choosing, improved, strict=True):
            seat.first = first


def share_a_second(seats: Sequence[Seat], *, origin: Instant) -> bool:
    """Whether two of them start in one second of the day."""
    seconds: Seconds = np.zeros(DAY_S, np.int32)
    for seat in seats:
        _add_seconds(seconds, seat, origin, 1)
    return int(seconds.max()) > 1


def choose_seconds_afresh(seconds: Seconds, seats: Sequence[Seat], *, origin: Instant) -> None:
    """Set the first run of each seat to the least used second of its minute, the shortest interval
    first. `seconds` has no runs of the seats."""
    for seat in sorted(seats, key=lambda seat: (seat.every_s, seat.member.key)):
        choices = _seconds_of(seat)
        if len(choices):
            met = pattern.starts_by_second(seconds, choices - origin, seat.every_s)
            seat.first = int(choices[pattern.least_loaded(met)])
        _add_seconds(seconds, seat, origin, 1)


def choose_seconds(seconds: Seconds, seats: Sequence[Seat], *, origin: Instant) -> None:
    """Set the first run of each seat to the least used second of its minute. `seconds` has no runs
    of seats that move, and those of all others."""
    even = max(1, -(-int(seconds.sum()) // DAY_S))
    for seat in sorted(seats, key=lambda seat: (seat.every_s, seat.member.key)):
        present = 0
        choices = _seconds_of(seat)
        if not seat.moves:
            at = np.array([seat.first - origin])
            present = int(pattern.starts_by_second(seconds, at, seat.every_s).peak[0])
            if present <= even or not len(choices):
                continue
            _add_seconds(seconds, seat, origin, -1)
        met = pattern.starts_by_second(seconds, choices - origin, seat.every_s)
        least = pattern.least_loaded(met)
        if seat.moves or int(met.peak[least]) < present - 1:
            seat.first = int(choices[least])
        _add_seconds(seconds, seat, origin, 1)


def _sweep(minutes: Minutes, work: Ints, seats: Sequence[Seat], origin: Instant) -> None:
    """Move one schedule at a time to a minute with fewer starts, until none has fewer."""
    for _ in range(SWEEPS_MAX):
        moved = False
        for seat in seats:
            present = np.array([seat.first])
            if minutes.met(present, seat.every_s).peak[0] > minutes.mean:
                minutes.add(seat.first, seat.every_s, -1)
                moved = _settle(minutes, work, seat, origin, is_there=True) or moved
        if not moved:
            return


def _settle(minutes: Minutes, work: Ints, seat: Seat, origin: Instant, *, is_there: bool) -> bool:
    """Choose the least used minute, and add the starts there. True if that is another minute."""
    choices, first = seat.choices, seat.first
    if seat.among_slots:
        work -= seat.work(first, origin)
        peaks = seat.peaks(work)
        allowed = max(int(peaks[seat.block(first, origin)]), seat.even_work(work))
        choices = choices[peaks[seat.block(choices, origin)] <= allowed]
    if len(choices):
        met = minutes.met(choices, seat.every_s)
        at = pattern.least_loaded(met)
        found = (int(met.peak[at]), int(met.total[at]))
        present = minutes.met(np.array([first]), seat.every_s) if is_there else None
        if present is None or found < (int(present.peak[0]), int(present.total[0])):
            seat.first = int(choices[at])
    if seat.among_slots:
        work += seat.work(seat.first, origin)
    minutes.add(seat.first, seat.every_s)
    return seat.first != first


def _seconds_of(seat: Seat) -> Ints:
    """The first runs in the minute of the seat, or for a very short interval all that are
    possible."""
    low, high, every_s = seat.span.low, seat.span.high, seat.every_s
    if every_s < starts.BY_SECONDS_BELOW_S:
        return np.arange(low, high + 1)
    minute = seat.first // MINUTE_S * MINUTE_S
    minute += (high - minute) // every_s * every_s  # the last one that begins in the range
    found = seconds_of_minute(seat.member, minute, low, high)
    window = window_of(seat.member)
    if window is None or not len(found):
        return found
    return found[inside(window, load_zone(seat.member.timing.zone), found)]


def _add_seconds(seconds: Seconds, seat: Seat, origin: Instant, sign: int) -> None:
    seconds[(seat.first - origin) % seat.every_s : DAY_S : seat.every_s] += sign
