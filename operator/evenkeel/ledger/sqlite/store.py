"""A ledger in one file of SQLite: the `RunStore` over the modules beside this one.

One thread writes, a few read; the event loop waits for none of them longer than a call may take.
Several processes may use the file on one machine. Not guaranteed: that the last writes outlive a
power cut (the file does), and that `check` and the first chunk of an export end within a call's
time on a very large file: these two may take longer, and end when nobody waits for them.
"""

import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from evenkeel.clock import Clock
from evenkeel.ledger.exports import COLUMNS
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
from evenkeel.ledger.sqlite import (
    checking,
    moving,
    paging,
    promoting,
    reading,
    writing,
)
from evenkeel.ledger.sqlite.connections import Connections
from evenkeel.ledger.sqlite.retaining import Part, Retaining
from evenkeel.ledger.sqlite.schedules import Schedules
from evenkeel.ledger.sqlite.worker import Job, Workers
from evenkeel.ledger.store import StoreAway
from evenkeel.model import Instant, RunId, RunState

T = TypeVar("T")

READERS = 3
SCHEDULES_A_CHUNK = 500
THOROUGH_S = 3600.0
"""How long what reads every page may take."""
_CLOSE_S = 5.0


class SqliteStore:
    """A `RunStore` over one file."""

    def __init__(self, path: Path, *, readonly: bool, within_s: float, clock: Clock) -> None:
        self._path = path
        self._within_s = within_s
        self._clock = clock
        self._connections = Connections(path, readonly=readonly, within_s=within_s, clock=clock)
        self._schedules = Schedules()
        self._retaining = Retaining()
        self._opening = 0
        self._writer = Workers("ledger-writer", 1)
        self._readers = Workers("ledger-reader", READERS)

    async def open(self) -> None:
        """Open the file now. BadStore: it cannot be a store."""
        await self._writer.call(lambda job: self._connections.open(), self._within_s)

    # --- writing ----------------------------------------------------------------------------------

    async def write(self, batch: Batch, *, term: int) -> Written:
        def work(connection: sqlite3.Connection) -> Written:
            written, schedules = writing.write(connection, self._schedules, batch, term=term)
            self._retaining.unseen |= schedules
            return written

        return await self._write(work)

    async def take_term(self, at_least: int = 1) -> int:
        return await self._write(lambda connection: promoting.take_term(connection, at_least))

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        return await self._write(
            lambda connection: promoting.promote_due(connection, before, limit, holder)
        )

    async def requeue(
        self,
        *,
        below_term: int = 0,
        process: str = "",
        launched: Collection[tuple[RunId, int]] = (),
    ) -> int:
        kept = frozenset(launched)
        return await self._write(
            lambda connection: promoting.requeue(
                connection, below_term=below_term, process=process, launched=kept
            )
        )

    async def retain(self, now: float, retention: Retention) -> Folded:
        def work(job: Job) -> Folded:
            def transact(step: Callable[[sqlite3.Connection], Part]) -> Part:
                return self._transact(job, step)

            try:
                return self._retaining.bite(transact, now, retention, self._clock.monotonic)
            finally:
                self._schedules.forget()  # some of them may be gone

        return await self._writer.call(work, self._within_s)

    async def restore(self, chunk: Exported) -> int:
        def work(connection: sqlite3.Connection) -> int:
            self._retaining.look_at_all()
            return moving.restore(connection, self._schedules, chunk)

        return await self._write(work)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._writer.call(lambda job: self._transact(job, work), self._within_s)

    def _transact(self, job: Job, work: Callable[[sqlite3.Connection], T]) -> T:
        """In the thread that writes: one transaction."""

        def begun(connection: sqlite3.Connection) -> T:
            if self._connections.openings != self._opening:
                self._opening = self._connections.openings
                self._retaining.look_at_all()
            self._schedules.begin(connection, self._opening)
            return work(connection)

        try:
            return self._connections.write(job, begun)
        except BaseException:
            self._schedules.forget()
            raise

    # --- reading ----------------------------------------------------------------------------------

    async def runs(self, query: RunQuery) -> Page:
        return await self._read(lambda connection: paging.runs(connection, query))

    async def states(self, runs: Sequence[RunId]) -> dict[RunId, RunState]:
        return await self._read(lambda connection: reading.states(connection, runs))

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        return await self._read(lambda connection: reading.unfinished(connection, uid))

    async def deferred(self) -> tuple[Deferred, ...]:
        return await self._read(reading.deferred)

    async def schedules(self) -> AsyncIterator[ScheduleRow]:
        after = ("", "")
        while True:
            found = await self._schedules_after(after)
            for schedule in found:
                yield schedule
            if len(found) < SCHEDULES_A_CHUNK:
                return
            after = (found[-1].key, found[-1].uid)

    async def _schedules_after(self, after: tuple[str, str]) -> list[ScheduleRow]:
        return await self._read(
            lambda connection: reading.schedules(connection, after, SCHEDULES_A_CHUNK)
        )

    async def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        async for schedule in self._chosen(uids):
            yield await self._book(schedule, first, end)

    async def _chosen(self, uids: Sequence[str]) -> AsyncIterator[ScheduleRow]:
        if not uids:
            async for schedule in self.schedules():
                yield schedule
            return
        for schedule in await self._read(
            lambda connection: reading.schedules_by_uid(connection, uids)
        ):
            yield schedule

    async def _book(self, schedule: ScheduleRow, first: Instant, end: Instant) -> Book:
        return await self._read(lambda connection: reading.book(connection, schedule, first, end))

    async def minutes(self, first: Instant, end: Instant) -> tuple[Minute, ...]:
        return await self._read(lambda connection: reading.minutes(connection, first, end))

    async def facts(self) -> Facts:
        return await self._read(lambda connection: reading.facts(connection, self._path))

    # --- the tools --------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        return await self._read(checking.check, within_s=THOROUGH_S)

    async def export(self) -> AsyncIterator[Exported]:
        for table in COLUMNS:
            exporting = moving.Exporting(table)
            while not exporting.done:
                chunk = await self._read(exporting.chunk, within_s=THOROUGH_S)
                if chunk.rows:
                    yield chunk

    async def _read(
        self, work: Callable[[sqlite3.Connection], T], *, within_s: float | None = None
    ) -> T:
        return await self._readers.call(
            lambda job: self._connections.read(job, work),
            self._within_s if within_s is None else within_s,
        )

    async def close(self) -> None:
        try:
            await self._writer.call(lambda job: self._connections.close(), _CLOSE_S)
        except StoreAway:
            return  # the disk hangs: what is open ends with the process
        finally:
            self._writer.stop()
            self._readers.stop()
