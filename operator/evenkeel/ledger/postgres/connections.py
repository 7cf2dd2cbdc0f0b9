"""Connections to PostgreSQL: a small pool, and transactions that end in time.

Correct behind a pooler in transaction mode: no statement is prepared beyond its transaction, and
all settings are SET LOCAL. Called by the modules beside this one, from one event loop.

Not guaranteed: that a transaction whose COMMIT got no answer was not committed. Nor that a server
older than PostgreSQL 17 ends the transaction of a process that is frozen, its network alive, while
it sends a statement: until that process goes on or ends, the server waits for the rest.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import asyncpg

from evenkeel import clock
from evenkeel.errors import EvenkeelError
from evenkeel.ledger.postgres.address import Address
from evenkeel.ledger.postgres.faults import (
    ANY_ERROR,
    CONNECTION_LOST,
    OTHER_SERVER,
    TRY_AGAIN,
    meaning,
)
from evenkeel.ledger.store import StoreAway

POOL = 4
"""More callers at once gain nothing: batches of one writer, two readers, a promotion."""

TRIES = 5
"""Of a transaction that another one got in the way of."""

CLOSE_WITHIN_S = 2.0

Connection = Any
"""A connection of the pool; asyncpg's stubs call it by several names."""
T = TypeVar("T")
Work = Callable[[Connection], Awaitable[T]]


class NotBegun(Exception):
    """A connection was lost before anything was asked of it: another one may serve."""


class Connections:
    def __init__(self, address: Address, *, within_s: float) -> None:
        self._address = address
        self._within_s = within_s
        self._milliseconds = milliseconds = max(1, round(within_s * 1000))
        limits = (
            f"SET LOCAL statement_timeout = {milliseconds};"
            f"SET LOCAL lock_timeout = {milliseconds};"
            # A writer that is stopped in the middle must not lock its successor out for long.
            f"SET LOCAL idle_in_transaction_session_timeout = {max(1, milliseconds // 2)};"
            # Nobody puts a function or an operator of the same name before the system's.
            "SET LOCAL search_path = pg_catalog;"
            # Compiling takes longer than any statement of ours.
            "SET LOCAL jit = off;"
            # Each statement has an index. By the statistics of a table that was just filled, the
            # planner would rather read all of it.
            "SET LOCAL enable_seqscan = off;"
            "SET LOCAL enable_bitmapscan = off;"
            # Nor must one whose network is gone: a server hears of that by itself after two hours.
            "SET LOCAL tcp_keepalives_idle = 10;"
            "SET LOCAL tcp_keepalives_interval = 5;"
            "SET LOCAL tcp_keepalives_count = 3"
        )
        self._begin = {
            False: f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {limits}",
            True: f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {limits}",
        }
        self._pool: asyncpg.Pool[Any] | None = None

    async def run(
        self,
        work: Work[T],
        *,
        reading: bool = False,
        opening: bool = False,
        passing: tuple[type[Exception], ...] = (),
    ) -> T:
        """Do `work` in a transaction. It may be called several times: it must change nothing but
        the database. StoreAway: it was not done, or nobody knows. Errors in `passing` are raised as
        they are."""
        try:
            async with asyncio.timeout(self._within_s):
                return await self._tried(work, reading=reading)
        except EvenkeelError:
            raise
        except TimeoutError as error:
            await self._renew()
            raise StoreAway(
                f"{self._address.where}: no answer within {self._within_s:g} s"
            ) from error
        except (*ANY_ERROR, NotBegun) as error:
            if isinstance(error, passing):
                raise
            cause = error.__cause__ if isinstance(error, NotBegun) and error.__cause__ else error
            if isinstance(cause, OTHER_SERVER):
                await self._renew()
            raise meaning(cause, self._address, opening=opening) from cause

    async def _tried(self, work: Work[T], *, reading: bool) -> T:
        failed: Exception | None = None
        async for _ in clock.tries(0.01, 0.2, count=TRIES):
            try:
                return await self._once(work, reading=reading)
            except (*TRY_AGAIN, NotBegun) as error:
                failed = error
                if isinstance(error, NotBegun):
                    await self._renew()
        assert failed is not None
        raise failed

    async def _once(self, work: Work[T], *, reading: bool) -> T:
        pool = await self._ready()
        connection = await pool.acquire()
        try:
            try:
                await connection.execute(self._begin[reading] + self._since(connection))
            except CONNECTION_LOST as error:
                raise NotBegun from error
            done = await work(connection)
            # A transaction that met an error answers ROLLBACK to its COMMIT, without an error.
            if (answer := await connection.execute("COMMIT")) != "COMMIT":
                raise asyncpg.InterfaceError(f"the transaction ended in {answer}")
            return done
        except BaseException as error:
            await _give_up(connection, error)
            raise
        finally:
            await pool.release(connection)

    def _since(self, connection: Connection) -> str:
        """What newer servers know."""
        if connection.get_server_version().major < 17:
            return ""
        return f"; SET LOCAL transaction_timeout = {self._milliseconds}"

    async def _ready(self) -> "asyncpg.Pool[Any]":
        if self._pool is None:
            # With no connection to begin with it asks the server nothing yet.
            self._pool = await asyncpg.create_pool(
                self._address.dsn,
                min_size=0,
                max_size=POOL,
                max_inactive_connection_lifetime=60,
                statement_cache_size=0,
                # A connection that is closed asks the server, which may be silent.
                command_timeout=self._within_s,
                connection_class=_Connection,
                server_settings={"application_name": "evenkeel"},
            )
        return self._pool

    async def _renew(self) -> None:
        """The connections there are now serve no other call."""
        if self._pool is not None:
            await self._pool.expire_connections()

    async def close(self) -> None:
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_WITHIN_S):
                await self._pool.close()
        except ANY_ERROR:
            self._pool.terminate()


async def _give_up(connection: Connection, error: BaseException) -> None:
    """End the transaction, and the connection too if nobody knows how it stands."""
    known = isinstance(error, asyncpg.PostgresError | EvenkeelError)
    if known and not isinstance(error, CONNECTION_LOST):
        try:
            await connection.execute("ROLLBACK")
            return
        except ANY_ERROR:
            pass  # it is lost now
    # One that was lost has left the pool already, and takes no call any more.
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


@asynccontextmanager
async def savepoint(connection: Connection) -> AsyncIterator[None]:
    """What is done inside is undone if the server refuses it; the transaction goes on."""
    await connection.execute("SAVEPOINT part")
    try:
        yield
    except asyncpg.PostgresError:
        await connection.execute("ROLLBACK TO SAVEPOINT part")
        raise
    await connection.execute("RELEASE SAVEPOINT part")


class _Connection(asyncpg.Connection):  # type: ignore[misc]
    def get_reset_query(self) -> str:
        """Nothing to reset: all that a transaction set was local to it."""
        return ""
