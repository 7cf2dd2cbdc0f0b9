"""The local times at which a schedule is due, before any zone is considered.

`due` uses these classes. A local time is the number of seconds from 1970-01-01T00:00 to what a
clock in the zone shows. A local time can occur twice, or never; `dst` handles that.
"""

from collections.abc import Iterator
from typing import Protocol

from evenkeel.model import DAY_S
from evenkeel.when.days import DaySet

HOUR_S = 3_600


class Wall(Protocol):
    """A set of local times."""

    def first(self, low: int) -> int | None:
        """The first local time from `low` on; None if none comes within 48 years."""

    def count(self, low: int, high: int) -> int:
        """The number of local times in [low, high), without listing them."""

    def ascending(self, low: int, high: int) -> Iterator[int]:
        """The local times in [low, high)."""

    def descending(self, low: int, high: int) -> Iterator[int]:
        """The local times in [low, high), the latest first."""


class CronWall:
    """A cron text: all its minutes, in all its hours, on all its days."""

    __slots__ = ("_days", "_hour", "_hours", "_minute", "_minutes")

    def __init__(self, *, minute: int, hour: int, days: DaySet) -> None:
        self._minute = minute
        self._hour = hour
        self._minutes = minute.bit_count()
        self._hours = hour.bit_count()
        self._days = days

    def first(self, low: int) -> int | None:
        day, second = divmod(low, DAY_S)
        found = self._days.first(day)
        if found == day:
            reading = self._first_of_day(second)
            if reading is not None:
                return day * DAY_S + reading
            found = self._days.first(day + 1)
        if found is None:
            return None
        first = self._first_of_day(0)
        assert first is not None
        return found * DAY_S + first

    def count(self, low: int, high: int) -> int:
        if low >= high:
            return 0
        day, second = divmod(low, DAY_S)
        last_day, last_second = divmod(high, DAY_S)
        total = self._days.count(day, last_day) * self._hours * self._minutes
        if self._days.first(day) == day:
            total -= self._count_of_day(second)
        if last_second and self._days.first(last_day) == last_day:
            total += self._count_of_day(last_second)
        return total

    def ascending(self, low: int, high: int) -> Iterator[int]:
        for day in self._days.ascending(low // DAY_S, -(-high // DAY_S)):
            start = day * DAY_S
            for hour in _bits_up(self._hour):
                hour_start = start + hour * HOUR_S
                if hour_start + HOUR_S <= low:
                    continue
                if hour_start >= high:
                    return
                for minute in _bits_up(self._minute):
                    reading = hour_start + 60 * minute
                    if low <= reading < high:
                        yield reading

    def descending(self, low: int, high: int) -> Iterator[int]:
        for day in self._days.descending(low // DAY_S, -(-high // DAY_S)):
            start = day * DAY_S
            for hour in _bits_down(self._hour):
                hour_start = start + hour * HOUR_S
                if hour_start >= high:
                    continue
                if hour_start + HOUR_S <= low:
                    return
                for minute in _bits_down(self._minute):
                    reading = hour_start + 60 * minute
                    if low <= reading < high:
                        yield reading

    def _first_of_day(self, second: int) -> int | None:
        hour, rest = divmod(second, HOUR_S)
        if self._hour >> hour & 1:
            minutes = self._minute & -1 << -(-rest // 60)
            if minutes:
                return hour * HOUR_S + 60 * _lowest(minutes)
        hours = self._hour & -1 << (hour + 1)
        return _lowest(hours) * HOUR_S + 60 * _lowest(self._minute) if hours else None

    def _count_of_day(self, second: int) -> int:
        """The number of local times of a matching day that lie before its `second`."""
        hour, rest = divmod(second, HOUR_S)
        total = (self._hour & ~(-1 << hour)).bit_count() * self._minutes
        if self._hour >> hour & 1:
            total += (self._minute & ~(-1 << -(-rest // 60))).bit_count()
        return total


class EveryWall:
    """base + k * every for k = 1, 2, ...: intervals of whole days, counted on the calendar."""

    __slots__ = ("_base", "_every_s")

    def __init__(self, *, base: int, every_s: int) -> None:
        self._base = base
        self._every_s = every_s

    def first(self, low: int) -> int | None:
        return self._base + self._number_from(low) * self._every_s

    def count(self, low: int, high: int) -> int:
        return max(0, self._number_from(high) - self._number_from(low))

    def ascending(self, low: int, high: int) -> Iterator[int]:
        return iter(self._readings(low, high))

    def descending(self, low: int, high: int) -> Iterator[int]:
        return reversed(self._readings(low, high))

    def _readings(self, low: int, high: int) -> range:
        start = self._base + self._number_from(low) * self._every_s
        return range(start, max(start, high), self._every_s)

    def _number_from(self, low: int) -> int:
        """The least k >= 1 whose local time is not before `low`."""
        return max(1, -((self._base - low) // self._every_s))


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _bits_up(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _bits_down(bits: int) -> Iterator[int]:
    while bits:
        highest = bits.bit_length() - 1
        yield highest
        bits ^= 1 << highest
