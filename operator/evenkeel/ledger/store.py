"""The protocol of a store, and what can go wrong with one.

Two stores fulfil it, `sqlite` and `postgres`, and tests hold both to one contract beside a model in
memory. Every call ends within its time-out, with one of the errors below at the worst; none of them
leaves half of a batch behind. Callers may call from many tasks at once.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol

from evenkeel.errors import BadSetting, EvenkeelError
from evenkeel.ledger.rows import (
    Batch,
    Book,
    Deferred,
    Exported,
    Facts,
    Folded,
    Holder,
    Minute,
    Page,
    Promoted,
    Retention,
    RunQuery,
    ScheduleRow,
    Written,
)
from evenkeel.model import Instant, RunId, RunState


class StoreAway(EvenkeelError):
    """The store does not answer, is locked, is full or was damaged: the same call may succeed
    later. Its text has no password."""


class OlderTerm(EvenkeelError):
    """Another process has taken a newer term since: this one must write no more."""


class BadStore(BadSetting):
    """The URL, the file system, the schema, the owner or the program's age is wrong, or a store
    that was opened for reading is to be written. Trying again cannot help; the sentence says what
    would."""


class BadCursor(EvenkeelError):
    """The cursor of a page was not made by this store."""


class RunStore(Protocol):
    """A place that keeps rows."""

    # --- writing -------------------------------------------------------------------------------

    async def write(self, batch: Batch, *, term: int) -> Written:
        """Write a batch in one transaction; the same batch again changes nothing. OlderTerm: none
        of it was written. A store whose own term is lower was begun anew, and takes the
        writer's."""
        ...

    async def take_term(self, at_least: int = 1) -> int:
        """A new term: 1 + the highest there was, and at least this."""
        ...

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        """Up to `limit` rows due at `before` or earlier become pending: by `due_at`, then the
        higher priority, then the schedule that the store knew first, then the due time. Each goes
        to exactly one of all concurrent callers. Of those `limit` rows, stale ones are dropped: the
        run has ended, or the schedule was deleted. OlderTerm, as for a write."""
        ...

    async def requeue(
        self,
        *,
        below_term: int = 0,
        process: str = "",
        launched: Collection[tuple[RunId, int]] = (),
    ) -> int:
        """Put back what a dead holder has promoted: one of an older term, or this process. Rows
        whose run and attempt are in `launched` have a Job and stay pending. From attempt 2 on a row
        becomes retrying again, else scheduled. A row that a write made pending, and nobody has
        promoted, is of the term of that write."""
        ...

    async def retain(self, now: float, retention: Retention) -> Folded:
        """Fold and drop what is older than the retention, in one bounded bite.

        Runs that have ended go when they were due and recorded more than `keep_s` ago; runs by
        schedule also when `keep_runs` newer ones of their schedule are there; the oldest go while
        the store is larger than `max_bytes`. A schedule that was deleted `days_s` ago goes when it
        has no run left."""
        ...

    # --- reading -------------------------------------------------------------------------------

    async def runs(self, query: RunQuery) -> Page:
        """Rows of runs and ranges, in the order of `pages`: newest due time first."""
        ...

    async def states(self, runs: Sequence[RunId]) -> dict[RunId, RunState]:
        """The state of each of these runs that has a row."""
        ...

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        """Runs of a schedule whose rows have no end, by due time."""
        ...

    async def deferred(self) -> tuple[Deferred, ...]:
        """All rows of the hot table, promoted ones too, in the order of `promote_due`."""
        ...

    def schedules(self) -> AsyncIterator[ScheduleRow]:
        """Every schedule there is a row of, by key and uid, as bytes."""
        ...

    def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        """What an audit of [first, end) needs, schedule by schedule; no uids: of all."""
        ...

    async def minutes(self, first: Instant, end: Instant) -> tuple[Minute, ...]:
        """Statistics of [first, end), ascending."""
        ...

    async def facts(self) -> Facts:
        """What the store says of itself. It always asks the store: whether it answers is what a
        caller wants to know."""
        ...

    # --- the tools -----------------------------------------------------------------------------

    async def check(self) -> list[str]:
        """A sentence for each thing that is wrong with what is stored; empty: nothing is."""
        ...

    def export(self) -> AsyncIterator[Exported]:
        """All there is, in chunks, in an order in which `restore` takes it."""
        ...

    async def restore(self, chunk: Exported) -> int:
        """Put a chunk in as it is, its times of recording included; what is there already stays.
        The number of rows that were not there. `exports.COLUMNS` names the columns."""
        ...

    async def close(self) -> None:
        """Give back connections and files. No other call may follow."""
        ...


async def book_of(store: RunStore, uid: str, first: Instant, end: Instant) -> Book | None:
    """The book of one schedule; None: the store does not know it."""
    found = [book async for book in store.books(first, end, uids=(uid,))]
    return found[0] if found else None
