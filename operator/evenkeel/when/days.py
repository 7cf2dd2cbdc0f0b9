"""Which days match the three day fields of a cron text, by bit masks over the calendar.

A day is a number of local days since 1970-01-01. Each day has three words (month, day of month, day
of week), and a cron text has three masks. A day matches if each word shares a bit with its mask,
but for the rule of day of month OR day of week. There are only fourteen kinds of years (leap or
not, times seven weekdays for 1 January), so matching days are listed once for each kind, and far
searches skip whole years.

`compile` and `wall` use `DaySet` for one schedule, `expand` uses `words_of_day` for many. This
module knows no hours and no zones.
"""

import functools
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

ANY_DAY_OF_MONTH = 0xFFFF_FFFE
LAST_DAY_OF_MONTH = 1
"""Bit 0 of a day-of-month word; bits 1 to 31 are the days."""

_IN_EVERY_MONTH = 0x1FFF_FFFE  # the days 1 to 28

ANY_DAY_OF_WEEK = 0x7F
"""Bits 0 (Sunday) to 6 of a day-of-week word."""

ANY_MONTH = 0x1FFE

_FIRST_YEAR = 1969  # local days west of Greenwich begin before the epoch
_LAST_YEAR = 10_000
_SEARCH_YEARS = 48
"""29 February on a given weekday comes again within 40 years, and no possible day is rarer."""


def nth_day_of_week(day_of_week: int, nth: int) -> int:
    """The bit of `5#2`: the second Friday of the month."""
    return 1 << (7 + 5 * day_of_week + nth - 1)


def last_day_of_week(day_of_week: int) -> int:
    """The bit of `5L`: the last Friday of the month."""
    return 1 << (42 + day_of_week)


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _year_starts() -> list[int]:
    starts = [-365]
    for year in range(_FIRST_YEAR, _LAST_YEAR + 1):
        starts.append(starts[-1] + (366 if _is_leap(year) else 365))
    return starts


_YEAR_STARTS = _year_starts()
_KINDS = [
    2 * ((start + 4) % 7) + (end - start - 365)  # 1970-01-01 was a Thursday
    for start, end in itertools.pairwise(_YEAR_STARTS)
]

Words = tuple[NDArray[np.uint16], NDArray[np.uint32], NDArray[np.uint64]]


def _words_of_kind(kind: int) -> Words:
    leap, day_of_week = kind & 1, kind >> 1
    months, days_of_month, days_of_week = [], [], []
    for month, length in enumerate((31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), 1):
        for day in range(1, length + 1):
            months.append(1 << month)
            days_of_month.append(1 << day | (LAST_DAY_OF_MONTH if day == length else 0))
            days_of_week.append(
                1 << day_of_week
                | nth_day_of_week(day_of_week, (day + 6) // 7)
                | (last_day_of_week(day_of_week) if day + 7 > length else 0)
            )
            day_of_week = (day_of_week + 1) % 7
    return (
        np.array(months, np.uint16),
        np.array(days_of_month, np.uint32),
        np.array(days_of_week, np.uint64),
    )


_WORDS = [_words_of_kind(kind) for kind in range(14)]


def words_of_day(day: int) -> tuple[int, int, int]:
    """The month, day-of-month and day-of-week words of one day."""
    year = bisect_right(_YEAR_STARTS, day) - 1
    months, days_of_month, days_of_week = _WORDS[_KINDS[year]]
    day_of_year = day - _YEAR_STARTS[year]
    return int(months[day_of_year]), int(days_of_month[day_of_year]), int(days_of_week[day_of_year])


class DaySet:
    """The days that match. With `either` a match of one of the two day fields is enough (cron's
    OR)."""

    __slots__ = ("_by_kind", "_dom", "_dow", "_either", "_month")

    def __init__(self, *, dom: int, month: int, dow: int, either: bool) -> None:
        self._dom = dom
        self._month = month
        self._dow = dow
        self._either = either
        self._by_kind: list[list[int] | None] = [None] * 14

    def possible(self) -> bool:
        """Whether any day of any year matches."""
        dom = self._dom & _IN_EVERY_MONTH
        dow = self._dow & ANY_DAY_OF_WEEK
        if self._either and (dom or dow):
            return True
        if (dow and self._dom == ANY_DAY_OF_MONTH) or (dom and self._dow == ANY_DAY_OF_WEEK):
            return True
        return any(self._of_kind(kind) for kind in range(14))

    def first(self, day: int) -> int | None:
        """The first matching day from `day` on; None if none comes within 48 years."""
        day = max(day, _YEAR_STARTS[0])
        year = bisect_right(_YEAR_STARTS, day) - 1
        for place in range(year, min(year + _SEARCH_YEARS, len(_KINDS))):
            days = self._of_kind(_KINDS[place])
            found = bisect_left(days, day - _YEAR_STARTS[place])
            if found < len(days):
                return _YEAR_STARTS[place] + days[found]
        return None

    def count(self, low: int, high: int) -> int:
        """The number of matching days in [low, high)."""
        return sum(end - begin for _, _, begin, end in self._years(low, high))

    def ascending(self, low: int, high: int) -> Iterator[int]:
        """The matching days in [low, high)."""
        for start, days, begin, end in self._years(low, high):
            for place in range(begin, end):
                yield start + days[place]

    def descending(self, low: int, high: int) -> Iterator[int]:
        """The matching days in [low, high), the latest first."""
        for start, days, begin, end in reversed(list(self._years(low, high))):
            for place in range(end - 1, begin - 1, -1):
                yield start + days[place]

    def _years(self, low: int, high: int) -> Iterator[tuple[int, list[int], int, int]]:
        low = max(low, _YEAR_STARTS[0])
        high = min(high, _YEAR_STARTS[-1])
        if low >= high:
            return
        place = bisect_right(_YEAR_STARTS, low) - 1
        while _YEAR_STARTS[place] < high:
            start = _YEAR_STARTS[place]
            days = self._of_kind(_KINDS[place])
            yield start, days, bisect_left(days, low - start), bisect_left(days, high - start)
            place += 1
            if place == len(_KINDS):
                return

    def _of_kind(self, kind: int) -> list[int]:
        days = self._by_kind[kind]
        if days is None:
            months, days_of_month, days_of_week = _WORDS[kind]
            by_month = (months & np.uint16(self._month)) != 0
            by_dom = (days_of_month & np.uint32(self._dom)) != 0
            by_dow = (days_of_week & np.uint64(self._dow)) != 0
            hit = by_month & ((by_dom | by_dow) if self._either else (by_dom & by_dow))
            days = np.flatnonzero(hit).tolist()
            self._by_kind[kind] = days
        return days


@functools.lru_cache(maxsize=2048)
def day_set(*, dom: int, month: int, dow: int, either: bool) -> DaySet:
    """The set for these masks, cached: 10,000 daily schedules share one list of days."""
    return DaySet(dom=dom, month=month, dow=dow, either=either)
