"""The due times of one schedule: next, between, newest, count.

The core, `plan` and `balance` get these objects from `compile_timing`. `expand` computes the same
due times for thousands of schedules at once, from the `row` of each object; tests compare the two.
startTime and endTime are applied here. That a new schedule does not run for times before its
creation is a rule of the core, not of this module.

Nothing is due before 1970 or after 9999. A due time more than 48 years ahead counts as none.
"""

import itertools
from collections.abc import Iterator
from typing import Protocol

from evenkeel.model import Instant, Timing
from evenkeel.when.dst import Part, parts
from evenkeel.when.row import pack_every_row
from evenkeel.when.wall import EveryWall, Wall
from evenkeel.when.zone import MAX_INSTANT, Zone

_SEARCH_S = 48 * 366 * 86_400


class DueTimes(Protocol):
    """When one schedule is due."""

    @property
    def timing(self) -> Timing:
        """What this was compiled from."""

    @property
    def text(self) -> str:
        """The timing in words, for status.scheduleText."""

    @property
    def row(self) -> bytes:
        """The same timing, packed for `expand`."""

    def next_after(self, t: Instant) -> Instant | None:
        """The first due time later than t; None if there is none."""

    def between(self, a: Instant, b: Instant, *, limit: int | None = None) -> list[Instant]:
        """The first `limit` due times in [a, b), ascending."""

    def newest(self, a: Instant, b: Instant, *, limit: int) -> list[Instant]:
        """The last `limit` due times in [a, b), ascending."""

    def count(self, a: Instant, b: Instant) -> int:
        """The number of due times in [a, b). A long span takes hardly longer than a short one."""


class _Bounds:
    """The fields that all kinds of due times have: timing, text, row, and start <= due < end."""

    __slots__ = ("_end", "_start", "row", "text", "timing")

    def __init__(self, timing: Timing, text: str, row: bytes) -> None:
        self.timing = timing
        self.text = text
        self.row = row
        self._start, self._end = span_of(timing)


def span_of(timing: Timing) -> tuple[Instant, Instant]:
    """startTime and endTime, limited to the years 1970 to 9999."""
    start = 0 if timing.start is None else max(0, timing.start)
    end = MAX_INSTANT if timing.end is None else min(MAX_INSTANT, timing.end)
    return start, end


class WallDueTimes(_Bounds):
    """Cron, hourly, and intervals of whole days in a zone: due at certain local times."""

    __slots__ = ("_policy", "_wall", "_zone")

    def __init__(
        self, timing: Timing, text: str, row: bytes, *, wall: Wall, zone: Zone, policy: int
    ) -> None:
        super().__init__(timing, text, row)
        self._wall = wall
        self._zone = zone
        self._policy = policy

    def next_after(self, t: Instant) -> Instant | None:
        a = max(t + 1, self._start)
        free_from = free_to = 0  # no local time in [free_from, free_to) is due
        for part in parts(self._zone, self._policy, a, min(self._end, a + _SEARCH_S)):
            if part.gap_at is not None:
                if self._in_gap(part):
                    return part.gap_at
            elif not (free_from <= part.low and part.high <= free_to):
                found = self._wall.first(part.low)
                if found is None:
                    return None
                if found < part.high:
                    return found - part.offset
                free_from, free_to = part.low, found
        return None

    def between(self, a: Instant, b: Instant, *, limit: int | None = None) -> list[Instant]:
        return list(itertools.islice(self._ascending(a, b), limit))

    def newest(self, a: Instant, b: Instant, *, limit: int) -> list[Instant]:
        found = list(itertools.islice(self._descending(a, b), limit))
        found.reverse()
        return found

    def count(self, a: Instant, b: Instant) -> int:
        total = 0
        for part in self._parts(a, b):
            if part.gap_at is None:
                total += self._wall.count(part.low, part.high)
            else:
                total += self._in_gap(part)
        return total

    def _parts(self, a: Instant, b: Instant) -> Iterator[Part]:
        return parts(self._zone, self._policy, max(a, self._start), min(b, self._end))

    def _in_gap(self, part: Part) -> bool:
        """Whether a gap holds a due time, and its end is not a due time itself."""
        return (
            self._wall.count(part.low, part.high) > 0
            and self._wall.count(part.high, part.high + 1) == 0
        )

    def _ascending(self, a: Instant, b: Instant) -> Iterator[Instant]:
        for part in self._parts(a, b):
            if part.gap_at is None:
                for reading in self._wall.ascending(part.low, part.high):
                    yield reading - part.offset
            elif self._in_gap(part):
                yield part.gap_at

    def _descending(self, a: Instant, b: Instant) -> Iterator[Instant]:
        for part in reversed(list(self._parts(a, b))):
            if part.gap_at is None:
                for reading in self._wall.descending(part.low, part.high):
                    yield reading - part.offset
            elif self._in_gap(part):
                yield part.gap_at


class EveryDueTimes(_Bounds):
    """base + k * every in elapsed time, k = 1, 2, ...; the zone makes no difference."""

    __slots__ = ("_pattern",)

    def __init__(self, timing: Timing, text: str, *, base: int, every_s: int) -> None:
        start, end = span_of(timing)
        row = pack_every_row(base=base, every_s=every_s, start=start, end=end)
        super().__init__(timing, text, row)
        self._pattern = EveryWall(base=base, every_s=every_s)

    def next_after(self, t: Instant) -> Instant | None:
        found = self._pattern.first(max(t + 1, self._start))
        return found if found is not None and found < self._end else None

    def between(self, a: Instant, b: Instant, *, limit: int | None = None) -> list[Instant]:
        return list(itertools.islice(self._pattern.ascending(*self._span(a, b)), limit))

    def newest(self, a: Instant, b: Instant, *, limit: int) -> list[Instant]:
        found = list(itertools.islice(self._pattern.descending(*self._span(a, b)), limit))
        found.reverse()
        return found

    def count(self, a: Instant, b: Instant) -> int:
        return self._pattern.count(*self._span(a, b))

    def _span(self, a: Instant, b: Instant) -> tuple[Instant, Instant]:
        return max(a, self._start), min(b, self._end)


class OnceDueTimes(_Bounds):
    """One due time."""

    __slots__ = ("_due",)

    def __init__(self, timing: Timing, text: str, *, instant: Instant) -> None:
        start, end = span_of(timing)
        self._due = [instant] if start <= instant < end else []
        high = instant + 1 if self._due else instant
        # An interval so long that only its first run lies in the years 1970 to 9999.
        row = pack_every_row(
            base=instant - MAX_INSTANT, every_s=MAX_INSTANT, start=instant, end=high
        )
        super().__init__(timing, text, row)

    def next_after(self, t: Instant) -> Instant | None:
        return next((due for due in self._due if due > t), None)

    def between(self, a: Instant, b: Instant, *, limit: int | None = None) -> list[Instant]:
        return [due for due in self._due if a <= due < b][:limit]

    def newest(self, a: Instant, b: Instant, *, limit: int) -> list[Instant]:
        return self.between(a, b, limit=limit)

    def count(self, a: Instant, b: Instant) -> int:
        return len(self.between(a, b))
