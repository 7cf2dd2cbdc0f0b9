"""The `RunStore` over PostgreSQL: what each call does in a transaction of its own.

It asks the server at every call, and remembers nothing of it but where the pass of `retain` stands.
So a fail-over loses nothing here: where the tables are gone, they are made again, and
`Facts.born` tells that the store was begun anew.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import TypeVar

from evenkeel.ledger.postgres import checking, hot, moving, preparing, reading
from evenkeel.ledger.postgres.address import Address
from evenkeel.ledger.postgres.connections import Connection, Connections
from evenkeel.ledger.postgres.faults import REFUSED_ROW, TABLES_GONE, meaning
from evenkeel.ledger.postgres.retaining import Retaining
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.postgres.writing import Writing
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
from evenkeel.ledger.store import BadStore, RunStore, StoreAway
from evenkeel.model import Instant, RunId, RunState

T = TypeVar("T")


class PostgresStore(RunStore):
    def __init__(self, address: Address, *, readonly: bool, within_s: float) -> None:
        self._address = address
        self._readonly = readonly
        self._sql = Statements(address.schema)
        self._connections = Connections(address, within_s=within_s)
        self._retaining = Retaining()

    async def open(self) -> None:
        """BadStore, StoreAway."""
        try:
            await self._prepare(opening=True)
        except BaseException:
            await self._connections.close()
            raise

    async def _prepare(self, *, opening: bool) -> None:
        async def prepare(connection: Connection) -> None:
            if self._readonly:
                await preparing.require_readable(connection, self._address, self._sql)
            else:
                await preparing.prepare(connection, self._address, self._sql)

        await self._connections.run(prepare, reading=self._readonly, opening=opening)

    async def _run(
        self,
        work: Callable[[Connection], Awaitable[T]],
        *,
        reading: bool = False,
        passing: tuple[type[Exception], ...] = (),
    ) -> T:
        if self._readonly and not reading:
            raise BadStore("store.url: the store was opened for reading only")
        passing = *passing, *TABLES_GONE
        try:
            return await self._connections.run(work, reading=reading, passing=passing)
        except TABLES_GONE as error:
            if self._readonly:
                raise meaning(error, self._address, opening=False) from error
        try:
            await self._prepare(opening=False)
            return await self._connections.run(work, reading=reading, passing=passing)
        except (BadStore, *TABLES_GONE) as error:
            # The settings were right once: somebody may be changing them back.
            raise StoreAway(self._address.hide(str(error))) from error

    # --- writing -------------------------------------------------------------------------------

    async def write(self, batch: Batch, *, term: int) -> Written:
        writing = Writing(self._sql, batch, term=term)
        try:
            return await self._run(writing.at_once, passing=REFUSED_ROW)
        except REFUSED_ROW:
            return await self._run(writing.in_parts)

    async def take_term(self, at_least: int = 1) -> int:
        async def take(connection: Connection) -> int:
            term: int = await connection.fetchval(self._sql["take_term"], at_least)
            return term

        return await self._run(take)

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        return await self._run(
            lambda connection: hot.promote(connection, self._sql, before, limit, holder)
        )

    async def requeue(
        self,
        *,
        below_term: int = 0,
        process: str = "",
        launched: Collection[tuple[RunId, int]] = (),
    ) -> int:
        return await self._run(
            lambda connection: hot.put_back(connection, self._sql, below_term, process, launched)
        )

    async def retain(self, now: float, retention: Retention) -> Folded:
        self._retaining, folded = await self._run(
            lambda connection: self._retaining.bite(
                connection, self._sql, self._address.schema, now, retention
            )
        )
        return folded

    # --- reading -------------------------------------------------------------------------------

    async def runs(self, query: RunQuery) -> Page:
        return await self._run(
            lambda connection: reading.read_page(connection, self._sql, query), reading=True
        )

    async def states(self, runs: Sequence[RunId]) -> dict[RunId, RunState]:
        return await self._run(
            lambda connection: reading.read_states(connection, self._sql, runs), reading=True
        )

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        return await self._run(
            lambda connection: reading.read_unfinished(connection, self._sql, uid), reading=True
        )

    async def deferred(self) -> tuple[Deferred, ...]:
        return await self._run(
            lambda connection: hot.read_deferred(connection, self._sql), reading=True
        )

    def schedules(self) -> AsyncIterator[ScheduleRow]:
        return reading.read_schedules(self._run, self._sql)

    def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        return reading.read_books(self._run, self._sql, first, end, uids)

    async def minutes(self, first: Instant, end: Instant) -> tuple[Minute, ...]:
        return await self._run(
            lambda connection: reading.read_minutes(connection, self._sql, first, end),
            reading=True,
        )

    async def facts(self) -> Facts:
        address = self._address
        return await self._run(
            lambda connection: reading.read_facts(
                connection, self._sql, address.schema, address.where
            ),
            reading=True,
        )

    # --- the tools -----------------------------------------------------------------------------

    async def check(self) -> list[str]:
        return await self._run(
            lambda connection: checking.check(connection, self._sql), reading=True
        )

    def export(self) -> AsyncIterator[Exported]:
        return moving.export(self._run, self._sql)

    async def restore(self, chunk: Exported) -> int:
        return await self._run(lambda connection: moving.restore(connection, self._sql, chunk))

    async def close(self) -> None:
        await self._connections.close()
