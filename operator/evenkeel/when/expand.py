"""Computes the due times of thousands of schedules in one window, with numpy.

The core calls `expand` for each rebuild of the run index, and `balance` for the load of a day.
Schedules whose zones have the same UTC offset during the window are computed together: each local
hour of the window is one 64-bit word for each schedule (the bits of its minutes, if hour and day
match), and the set bits of all words are the due times. A window with a clock change is cut into
the same parts as in `due`.

For every schedule the result equals `DueTimes.between`. It is not sorted by time (the index sorts).
The number of due times has no limit here: the window of at most 7 days and the setting minInterval
limit it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenkeel.model import DAY_S, Instant
from evenkeel.when.columns import Columns, CronColumns, EveryColumns, Longs
from evenkeel.when.days import words_of_day
from evenkeel.when.dst import Part, parts
from evenkeel.when.due import DueTimes
from evenkeel.when.wall import HOUR_S
from evenkeel.when.zone import MAX_INSTANT, zone_by_number

LONGEST_WINDOW_S = 7 * DAY_S
_CHUNK_WORDS = 1 << 17  # 8 MiB of unpacked bits at a time
_HOURS_A_DAY = 24

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Due times as (second after the start of the window, place of the schedule in the sequence).

    They are grouped by schedule, and ascend inside each group.
    """

    second: NDArray[np.uint32]
    ordinal: NDArray[np.int32]


def expand(dues: Sequence[DueTimes] | Columns, a: Instant, b: Instant) -> Expansion:
    """All due times in [a, b); at most 7 days."""
    if b - a > LONGEST_WINDOW_S:
        raise ValueError(f"a window of {b - a} s is longer than {LONGEST_WINDOW_S} s")
    table = dues if isinstance(dues, Columns) else Columns(dues)
    found = _Found(a)
    low, high = max(a, 0), min(b, MAX_INSTANT)
    if low < high:
        _expand_cron(table.cron, low, high, found)
        _expand_days(table.days, low, high, found)
        every = table.every
        _expand_every(every, slice(None), every.base, low, high, found)
    return found.grouped()


class _Found:
    """Collects due times. Those of one schedule must be added in order of time."""

    def __init__(self, begin: Instant) -> None:
        self.begin = begin
        self._instants: list[Longs] = []
        self._ordinals: list[NDArray[np.intp]] = []

    def add(self, instants: Longs, ordinals: NDArray[np.intp]) -> None:
        if len(instants):
            self._instants.append(instants)
            self._ordinals.append(ordinals)

    def grouped(self) -> Expansion:
        if not self._instants:
            return Expansion(np.zeros(0, np.uint32), np.zeros(0, np.int32))
        if len(self._instants) == 1:
            instants, ordinals = self._instants[0], self._ordinals[0].astype(np.int32)
        else:
            instants = np.concatenate(self._instants)
            ordinals = np.concatenate(self._ordinals).astype(np.int32)
            if len(ordinals) and int(ordinals.max()) < 1 << 16:
                order = np.argsort(ordinals.astype(np.uint16), kind="stable")  # a radix sort
            else:
                order = np.argsort(ordinals, kind="stable")
            instants, ordinals = instants[order], ordinals[order]
        return Expansion((instants - self.begin).astype(np.uint32), ordinals)


# --- cron and hourly --------------------------------------------------------------------------


def _expand_cron(table: CronColumns, a: Instant, b: Instant, found: _Found) -> None:
    for offset, rows in _rows_by_offset(table.zones, table.zone, a, b):
        if offset is not None:
            _expand_rows(table, rows, [Part(a + offset, b + offset, offset, None)], a, b, found)
            continue
        for place in np.unique(table.zone[rows]).tolist():
            of_zone = rows[table.zone[rows] == place]
            for policy in np.unique(table.policy[of_zone]).tolist():
                alike = of_zone[table.policy[of_zone] == policy]
                zone = zone_by_number(table.zones[place])
                _expand_rows(table, alike, list(parts(zone, policy, a, b)), a, b, found)


def _rows_by_offset(
    zones: list[int], zone: NDArray[np.intp], a: Instant, b: Instant
) -> list[tuple[int | None, NDArray[np.intp]]]:
    """Rows grouped by the UTC offset of their zones in the window; None for zones whose clocks
    change in it."""
    by_zone = [zone_by_number(number).quiet_offset(a, b) for number in zones]
    distinct = list(dict.fromkeys(by_zone))
    if len(distinct) == 1:
        return [(distinct[0], np.arange(len(zone)))]
    group = np.array([distinct.index(offset) for offset in by_zone], np.intp)[zone]
    return [(offset, np.flatnonzero(group == n)) for n, offset in enumerate(distinct)]


def _expand_rows(
    table: CronColumns,
    rows: NDArray[np.intp],
    wall: list[Part],
    a: Instant,
    b: Instant,
    found: _Found,
) -> None:
    if not wall:
        return  # the second pass of a repeated hour: fixed times ran in the first
    words_a_row = sum(_hour_count(part) for part in wall)
    chunk = max(1, _CHUNK_WORDS // max(1, words_a_row))
    for begin in range(0, len(rows), chunk):
        minutes = _Minutes(table, rows[begin : begin + chunk])
        words, bases = minutes.words(wall)
        instants, row = _set_bits(words, bases)
        ordinal = minutes.pick(table.ordinal)
        if int(minutes.start.max()) > a or int(minutes.end.min()) < b:
            inside = (instants >= minutes.start[row]) & (instants < minutes.end[row])
            instants, row = instants[inside], row[inside]
        found.add(instants, ordinal[row])


def _hour_count(part: Part) -> int:
    return 1 if part.gap_at is not None else -(-part.high // HOUR_S) - part.low // HOUR_S


class _Minutes:
    """Some rows of the table, and the minutes of a local hour at which each of them is due."""

    def __init__(self, table: CronColumns, rows: NDArray[np.intp]) -> None:
        self._all = len(rows) == len(table.ordinal)
        self._rows = rows
        self._table = table
        self._minute = self.pick(table.minute)
        self._hour = self.pick(table.hour)
        self.start = self.pick(table.start)
        self.end = self.pick(table.end)
        self._days: dict[int, NDArray[np.bool_]] = {}

    def pick(self, column: NDArray[_T]) -> NDArray[_T]:
        """The chosen rows of a column."""
        return column if self._all else column[self._rows]

    def words(self, wall: list[Part]) -> tuple[NDArray[np.uint64], Longs]:
        """One column of words for each local hour and gap, and the instant of bit 0 of each
        column."""
        made: list[NDArray[np.uint64]] = []
        bases: list[int] = []
        for part in wall:
            if part.gap_at is not None:
                made.append(self._in_gap(part).astype(np.uint64))
                bases.append(part.gap_at)
                continue
            for hour in range(part.low // HOUR_S, -(-part.high // HOUR_S)):
                made.append(self._of_hour(hour, part.low, part.high))
                bases.append(hour * HOUR_S - part.offset)
        return np.stack(made, axis=1), np.array(bases, np.int64)

    def _of_hour(self, hour: int, low: int, high: int) -> NDArray[np.uint64]:
        """The minutes of one local hour (counted from 1970) that lie in [low, high)."""
        day, hour_of_day = divmod(hour, _HOURS_A_DAY)
        begin = max(0, -((hour * HOUR_S - low) // 60))
        end = min(60, -((hour * HOUR_S - high) // 60))
        window = (1 << end) - (1 << begin) if begin < end else 0
        matches = self._day(day) & ((self._hour >> np.uint32(hour_of_day)) & np.uint32(1) != 0)
        return np.where(matches, self._minute & np.uint64(window), np.uint64(0))

    def _in_gap(self, gap: Part) -> NDArray[np.bool_]:
        """Which rows have a due time in the gap, and none at its end."""
        lost = np.zeros(len(self._minute), np.bool_)
        for hour in range(gap.low // HOUR_S, -(-gap.high // HOUR_S)):
            lost |= self._of_hour(hour, gap.low, gap.high) != 0
        shown: NDArray[np.bool_] = self._of_hour(gap.high // HOUR_S, gap.high, gap.high + 1) != 0
        return lost & ~shown

    def _day(self, day: int) -> NDArray[np.bool_]:
        matches = self._days.get(day)
        if matches is None:
            table = self._table
            month, dom, dow = words_of_day(day)
            by_dom = (self.pick(table.dom) & np.uint32(dom)) != 0
            by_dow = (self.pick(table.dow) & np.uint64(dow)) != 0
            by_month = (self.pick(table.month) & np.uint16(month)) != 0
            both = by_dom & by_dow
            one = (by_dom | by_dow) & self.pick(table.either)
            matches = by_month & (both | one)
            self._days[day] = matches
        return matches


def _set_bits(words: NDArray[np.uint64], bases: Longs) -> tuple[Longs, NDArray[np.intp]]:
    """The instants of all set bits, with their rows: row by row, ascending inside a row."""
    flat = words.ravel()
    held = np.flatnonzero(flat)
    bits = np.unpackbits(flat[held].astype("<u8", copy=False).view(np.uint8), bitorder="little")
    place = np.flatnonzero(bits.view(np.bool_))
    word = held[place >> 6]
    row, column = np.divmod(word, len(bases)) if len(bases) > 1 else (word, 0)
    return bases[column] + (place & 63) * 60, row


# --- intervals --------------------------------------------------------------------------------


def _expand_days(table: EveryColumns, a: Instant, b: Instant, found: _Found) -> None:
    """Intervals of whole days: arithmetic on local times, part by part."""
    for offset, rows in _rows_by_offset(table.zones, table.zone, a, b):
        if offset is not None:
            _expand_every(table, rows, table.base[rows] - offset, a, b, found)
            continue
        for place in np.unique(table.zone[rows]).tolist():
            of_zone = rows[table.zone[rows] == place]
            for policy in np.unique(table.policy[of_zone]).tolist():
                alike = of_zone[table.policy[of_zone] == policy]
                zone = zone_by_number(table.zones[place])
                for part in parts(zone, policy, a, b):
                    _expand_days_part(table, alike, part, found)


def _expand_days_part(
    table: EveryColumns, rows: NDArray[np.intp], part: Part, found: _Found
) -> None:
    base, every = table.base[rows], table.every[rows]
    if part.gap_at is None:
        low, high = part.low - part.offset, part.high - part.offset
        _expand_every(table, rows, base - part.offset, low, high, found)
        return
    after = _number_from(base, every, part.high)
    lost = (after > _number_from(base, every, part.low)) & (base + after * every != part.high)
    lost &= (table.start[rows] <= part.gap_at) & (part.gap_at < table.end[rows])
    rows = rows[lost]
    found.add(np.full(len(rows), part.gap_at, np.int64), table.ordinal[rows])


def _expand_every(
    table: EveryColumns,
    rows: NDArray[np.intp] | slice,
    base: Longs,
    a: Instant,
    b: Instant,
    found: _Found,
) -> None:
    """base + k * every, k = 1, 2, ..., of all rows at once."""
    every = table.every[rows]
    low = np.maximum(table.start[rows], a)
    high = np.maximum(np.minimum(table.end[rows], b), low)
    number = _number_from(base, every, low)
    count = _number_from(base, every, high) - number
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    first = base + number * every
    step = np.arange(total) - np.repeat(ends - count, count)
    instants = np.repeat(first, count) + step * np.repeat(every, count)
    found.add(instants, np.repeat(table.ordinal[rows], count))


def _number_from(base: Longs, every: Longs, low: Longs | int) -> Longs:
    """The least k >= 1 whose time is not before `low`."""
    number: Longs = np.maximum(1, -((base - low) // every))
    return number
