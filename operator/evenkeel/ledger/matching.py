"""Matches the due times of one schedule with its rows, and says what is left over on either side.

`audit` counts what is left over; `reconcile` fills in the due times that are. Pure.
"""

import heapq
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from evenkeel.ledger.reckoning import Longs, Stretch, stretches
from evenkeel.ledger.rows import Book, Range, SpanRow
from evenkeel.model import Instant

FIRST_FEW = 5
"""Instants that are named of a number of them."""
_EVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Missing:
    """So many due times from `first` to `last` that no row tells of. No range row begins or ends
    between them."""

    first: Instant
    last: Instant
    count: int
    instants: tuple[Instant, ...]
    """The first few."""


@dataclass(slots=True)
class Tally:
    """So many of one kind, and the first few."""

    count: int = 0
    instants: list[Instant] = field(default_factory=list)

    def add(self, count: int, instants: tuple[Instant, ...]) -> None:
        """So many more."""
        self.count += count
        self.instants += instants[: max(0, FIRST_FEW - len(self.instants))]


@dataclass(slots=True)
class Matched:
    """What came of it."""

    count: int = 0
    """Due times that have a run, or that a range row counts."""
    not_yet: int = 0
    """Due times above the mark that nothing tells of yet."""
    missing: list[Missing] = field(default_factory=list)
    """Ascending."""
    extra: Tally = field(default_factory=Tally)
    """Runs that were never due, and what range rows count too many, by their beginnings."""
    unreadable: Tally = field(default_factory=Tally)
    """Timings by which nothing can be reckoned, by their `after`. What would be due by them is
    neither missing nor extra."""


def match(book: Book) -> Matched:
    """Match the due times of a book with its runs and range rows."""
    return _Matching(book).result()


@dataclass(slots=True, order=True)
class _Counting:
    """A range row, with how many due times it counts that were not found yet. Ordered by end."""

    end: Instant
    first: Instant
    left: int
    surplus_is_wrong: bool = field(compare=False)
    """False: some of its due times may be ones that cannot be reckoned."""


class _Matching:
    """Goes through the time of one book, from border to border.

    Between two borders the same timing is in force and the same range rows lie there. Runs are
    matched by their instants. The due times that are left are given to the rows that lie there, to
    the one that ends first before the others: no other choice matches more. So what is left over is
    wrong, and a missing one in one place never hides an extra one in another. Where rows lie over
    one that begins before the book does, another choice may leave less over.
    """

    def __init__(self, book: Book) -> None:
        schedule = book.schedule
        self._book = book
        self._since = schedule.since
        self._until = _EVER if schedule.until is None else schedule.until
        self._told = min(schedule.mark, self._until)
        self._runs: Longs = np.fromiter((due for due, _ in book.runs), np.int64, len(book.runs))
        rows = [self._counting(row) for row in book.spans if row.kind is not Range.OPEN]
        self._ahead = sorted(rows, key=lambda row: row.first, reverse=True)
        """Range rows that begin later, the next one last."""
        self._here: list[_Counting] = []
        """Range rows that lie here, as a heap."""
        # Only the end of the schedule ends an open row, and after it nothing is expected.
        opened = (row.first for row in book.spans if row.kind is Range.OPEN)
        self._open_from = min(opened, default=_EVER)
        borders = {row.first for row in rows} | {row.end for row in rows}
        borders |= {self._told + 1, self._until + 1, self._open_from}
        self._borders: Longs = np.array(sorted(borders), np.int64)
        self._matched = Matched()

    def _counting(self, row: SpanRow) -> _Counting:
        assert row.end is not None
        count = sum(row.counts.values())
        return _Counting(row.end, row.first, count, surplus_is_wrong=row.first > self._since)

    def result(self) -> Matched:
        book = self._book
        for stretch in stretches(book.timings, max(book.first, self._since + 1), book.end):
            if stretch.due is None:
                self._pass_unreadable(stretch)
            else:
                self._match(stretch, stretch.due)
        self._come_to(_EVER)
        return self._matched

    def _pass_unreadable(self, stretch: Stretch) -> None:
        self._matched.unreadable.add(1, (stretch.timing.after,))
        self._come_to(stretch.first)
        self._reach(stretch.end - 1)
        for row in self._here:
            row.surplus_is_wrong = False

    def _match(self, stretch: Stretch, due: Longs) -> None:
        first, end = stretch.first, stretch.end
        runs = self._runs[slice(*np.searchsorted(self._runs, (first, end)))]
        has_run = np.isin(due, runs, assume_unique=True)
        never_due = runs[~np.isin(runs, due, assume_unique=True)]
        self._matched.count += int(has_run.sum())
        self._matched.extra.add(len(never_due), _few(never_due))
        bare = due[~has_run]
        inside = (self._borders > first) & (self._borders < end)
        borders = [first, *self._borders[inside].tolist(), end]
        places = np.searchsorted(bare, borders).tolist()
        for low, (place, following) in zip(borders, pairwise(places), strict=False):
            self._match_bare(low, bare[place:following])

    def _match_bare(self, low: Instant, bare: Longs) -> None:
        """Due times without a run, from `low` to the next border."""
        self._come_to(low)
        place = 0
        while place < len(bare) and self._here:
            row = self._here[0]
            found = min(len(bare) - place, row.left)
            place, row.left = place + found, row.left - found
            if not row.left:
                heapq.heappop(self._here)
        self._matched.count += place
        rest = bare[place:]
        if not len(rest) or low >= self._open_from or low > self._until:
            return
        if low > self._told:
            self._matched.not_yet += len(rest)
            return
        self._matched.missing.append(Missing(int(rest[0]), int(rest[-1]), len(rest), _few(rest)))

    def _come_to(self, at: Instant) -> None:
        """Rows that begin up to here lie here from now on; of those that end, what they count and
        nobody was due for is left over."""
        self._reach(at)
        while self._here and self._here[0].end <= at:
            row = heapq.heappop(self._here)
            if row.left and row.surplus_is_wrong:
                self._matched.extra.add(row.left, (row.first,))

    def _reach(self, at: Instant) -> None:
        while self._ahead and self._ahead[-1].first <= at:
            heapq.heappush(self._here, self._ahead.pop())


def _few(instants: Longs) -> tuple[Instant, ...]:
    return tuple(instants[:FIRST_FEW].tolist())
