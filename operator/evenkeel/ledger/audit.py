"""Compares what was expected of the schedules with what a store has recorded of them.

What was expected is reckoned from the timings alone: every due time after `since` of its schedule,
up to the mark. It is recorded by a run of that due time, or by a range row around it that counts
one more than its other due times. `evenkeel ledger audit` and tests call `audit`; `audit_book` is
pure. Whether a state is true, an audit cannot tell.

A schedule takes 0.2 ms a week of 2,000 due times, on the caller's event loop.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from evenkeel.ledger.matching import Tally, match
from evenkeel.ledger.rows import UNRECORDED, Book
from evenkeel.ledger.store import RunStore
from evenkeel.model import Instant

MOST_DIFFERENCES = 100
"""Differences that an audit lists; the others are counted."""


class Wrong(StrEnum):
    """What an audit finds wrong with a schedule."""

    MISSING = "missing"
    """Due times that have no row."""
    EXTRA = "extra"
    """Runs that were never due, and range rows that count more due times than there were."""
    UNREADABLE = "unreadable"
    """Timings by which nothing can be reckoned. Their due times are neither missing nor extra."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is wrong with one schedule."""

    uid: str
    key: str
    wrong: Wrong
    count: int
    instants: tuple[Instant, ...]
    """The first few: due times, beginnings of range rows that count too many, or of timings."""


@dataclass(frozen=True, slots=True)
class Found:
    """What an audit finds of one schedule."""

    expected: int = 0
    """Due times up to the mark, and those above it that are recorded already. What lies in an open
    range row is not among them, but for runs."""
    recorded: int = 0
    """Due times that have a run, or that a range row counts; the unrecorded and extra ones too."""
    unrecorded: int = 0
    """Of those recorded: nobody knows any more what became of them."""
    missing: int = 0
    extra: int = 0
    not_yet: int = 0
    """Due times above the mark that nothing tells of yet."""
    differences: tuple[Difference, ...] = ()

    @property
    def balanced(self) -> bool:
        """Every due time is recorded once, and nothing else is."""
        return not self.differences


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit finds of all schedules of a store."""

    first: Instant
    """The time that was asked for. Of a schedule whose range rows it would cut, more was read."""
    end: Instant
    ledger_since: Instant | None
    """The store answers for no due time at or before this; None: it knows no schedule."""
    schedules: int
    found: Found
    """The sums. The differences are those of the first schedules that have some."""
    unlisted: int = 0
    """Differences beside those that are listed."""

    @property
    def balanced(self) -> bool:
        """Every due time is recorded once, and nothing else is."""
        return self.found.balanced


async def audit(store: RunStore, first: Instant, end: Instant) -> Audit:
    """Audit every schedule of a store for the due times in [first, end)."""
    found, unlisted, schedules = Found(), 0, 0
    since: Instant | None = None
    async for book in store.books(first, end):
        of_one = audit_book(book)
        room = MOST_DIFFERENCES - len(found.differences)
        unlisted += max(0, len(of_one.differences) - room)
        found = _sum(found, replace(of_one, differences=of_one.differences[:room]))
        schedules += 1
        since = book.schedule.since if since is None else min(since, book.schedule.since)
    return Audit(first, end, since, schedules, found, unlisted)


def audit_book(book: Book) -> Found:
    """Audit one schedule."""
    if not book.timings:
        return Found()  # runs of a schedule that began before the store did, and no more
    matched, missing = match(book), Tally()
    for each in matched.missing:
        missing.add(each.count, each.instants)
    tallies = {
        Wrong.MISSING: missing,
        Wrong.EXTRA: matched.extra,
        Wrong.UNREADABLE: matched.unreadable,
    }
    uid, key = book.schedule.uid, book.schedule.key
    return Found(
        expected=matched.count + missing.count,
        recorded=matched.count + matched.extra.count,
        unrecorded=sum(row.counts.get(UNRECORDED, 0) for row in book.spans),
        missing=missing.count,
        extra=matched.extra.count,
        not_yet=matched.not_yet,
        differences=tuple(
            Difference(uid, key, wrong, tally.count, tuple(tally.instants))
            for wrong, tally in tallies.items()
            if tally.count
        ),
    )


def _sum(one: Found, other: Found) -> Found:
    return Found(
        one.expected + other.expected,
        one.recorded + other.recorded,
        one.unrecorded + other.unrecorded,
        one.missing + other.missing,
        one.extra + other.extra,
        one.not_yet + other.not_yet,
        one.differences + other.differences,
    )
