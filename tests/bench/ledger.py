"""The ledger's two stores beside millions of rows: batches of 500, promotion, and a long query.

The disk is the one that temporary files are on, with fsync as the stores ask for it; the kind of
its file system stands beside each figure. Bare inserts go in the same batches into a table with the
same rows and indexes, in the same rounds: executemany for SQLite, COPY for PostgreSQL. There are a
million rows, with --long ten million.
"""

import asyncio
import itertools
import os
import shutil
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import asyncpg
import uvloop
from tests.bench._measure import long_form, percentile, say
from tests.contract.ledger.test_promotion_by_processes import Parent, deferred_rows, promote_all
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, Holder, RunRow
from evenkeel.ledger.sqlite.mounts import mount_of, parse
from evenkeel.ledger.store import RunStore
from evenkeel.model import RunId, RunState

SCHEDULES = 1_000
EVERY_S = 600
BATCH = 500
ROUNDS = 9
BATCHES = 20
"""Of each kind a round."""
SEED_TIMES = 100
"""Due times of each schedule that go through the store; SQL repeats them."""
DUE = 10_000
BEGIN = 1_600_000_000 // EVERY_S * EVERY_S
HOLDER = Holder(term=1, process="bench")
SNAPSHOT_S, BEFORE_S = 60.0, 20.0
CALL_WITHIN_S = 60.0


def rows() -> Iterator[dict[str, Any]]:
    count = 10_000_000 if long_form() else 1_000_000
    with TemporaryDirectory(prefix="evenkeel-bench-") as directory:
        beside = {"rows": count, "file_system": file_system(directory)}
        yield from ran(measured("SQLite", SQLiteRig(Path(directory)), count, beside))
        yield from ran(by_processes("SQLite", f"sqlite://{directory}/promoted.db"))
    server = PostgresServer(durable=True)
    try:
        server.start()
        beside = {"rows": count, "file_system": file_system(str(server.home))}
        rig = PostgresRig(server.url(server.new_database()))
        yield from ran(measured("PostgreSQL", rig, count, beside))
        yield from ran(by_processes("PostgreSQL", server.url(server.new_database())))
        yield from ran(beside_a_query(server.url(server.new_database())))
    finally:
        server.remove()


def ran(measuring: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    async def run() -> list[dict[str, Any]]:
        return [row async for row in measuring]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def file_system(directory: str) -> str:
    mounts = parse(Path("/proc/self/mountinfo").read_text())
    found = mount_of(os.path.realpath(directory), mounts)
    return found.kind if found else "unknown"


# --- rows -----------------------------------------------------------------------------------------


def uid(schedule: int) -> str:
    return f"00000000-0000-4000-8000-{schedule:012}"


def key(schedule: int) -> str:
    return f"team-{schedule % 40}/schedule-{schedule}"


def began(schedule: int, due: int) -> RunRow:
    return RunRow(
        RunId(uid(schedule), due),
        key(schedule),
        RunState.RUNNING,
        job=f"schedule-{schedule}-{due // 60}",
        taken_up=due - 10.0,
        created=due + 0.004,
        generation=3,
        template_hash="b7c1d0e2f3a4",
    )


def ended(schedule: int, due: int) -> RunRow:
    return RunRow(
        RunId(uid(schedule), due),
        key(schedule),
        RunState.SUCCEEDED,
        job=f"schedule-{schedule}-{due // 60}",
        taken_up=due - 10.0,
        created=due + 0.004,
        started=due + 1,
        finished=due + 42,
        generation=3,
        template_hash="b7c1d0e2f3a4",
    )


def waiting(schedule: int, due: int) -> RunRow:
    return RunRow(RunId(uid(schedule), due), key(schedule), RunState.SCHEDULED, due_at=float(due))


Row = Callable[[int, int], RunRow]


def batches(row: Row, first: int, count: int) -> Iterator[Batch]:
    """So many rows in batches, in the order in which they would come: all schedules are due, and
    then all again."""
    every = (
        (schedule, first + EVERY_S * turn)
        for turn in itertools.count()
        for schedule in range(SCHEDULES)
    )
    wanted = itertools.islice(every, count)
    while some := list(itertools.islice(wanted, BATCH)):
        yield Batch(at=some[-1][1] + 60.0, writes=tuple(row(*each) for each in some))


# --- one store ------------------------------------------------------------------------------------


class Rig(Protocol):
    """A store, and a bare table beside it."""

    async def open(self) -> RunStore: ...

    async def multiply(self, times: int) -> None:
        """Every row of `run` so many times, each time later."""
        ...

    async def lay_bare(self) -> None:
        """A table of the same rows and indexes."""
        ...

    async def newest(self, first: int) -> list[tuple[Any, ...]]:
        """Rows of `run` from this due time on, as they are stored."""
        ...

    async def insert_bare(self, some: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        """Each batch in a transaction of its own."""
        ...

    async def close(self) -> None: ...


async def measured(
    name: str, rig: Rig, count: int, beside: dict[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    began_s = time.perf_counter()
    store = await rig.open()
    for batch in batches(ended, BEGIN, SCHEDULES * SEED_TIMES):
        await store.write(batch, term=1)
    await store.close()
    await rig.multiply(count // (SCHEDULES * SEED_TIMES))
    await rig.lay_bare()
    say(f"       ledger: {name}: {count:,} rows after {time.perf_counter() - began_s:.0f} s")

    store = await rig.open()
    try:
        taken = await upsert_rounds(store, rig, BEGIN + EVERY_S * (count // SCHEDULES))
        size = BATCH * BATCHES
        yield {
            "name": f"{name}: upserts in batches of 500, rows/s",
            "value": size / taken.median("insert"),
            "unit": "rows/s",
            "beside": beside
            | {
                "batch_p99_ms": taken.batch_p99_ms,
                "ends_rows_s": size / taken.median("update"),
                "the_same_again_rows_s": size / taken.median("again"),
                "bare_rows_s": size / taken.median("bare"),
            },
        }
        yield {
            "name": f"{name}: upserts in batches of 500 to bare inserts",
            "value": taken.median("bare") / taken.median("insert"),
            "unit": "x",
            "beside": beside,
        }
        yield {
            "name": f"{name}: promote 10,000 due",
            "value": await promotion_ms(store),
            "unit": "ms",
            "beside": beside,
        }
    finally:
        await store.close()
        await rig.close()


@dataclass
class Taken:
    """Seconds of each round, by what was done."""

    rounds: dict[str, list[float]] = field(default_factory=dict)
    calls_s: list[float] = field(default_factory=list)

    def add(self, what: str, took_s: float) -> None:
        self.rounds.setdefault(what, []).append(took_s)

    def median(self, what: str) -> float:
        return statistics.median(self.rounds[what])

    @property
    def batch_p99_ms(self) -> float:
        return percentile(sorted(self.calls_s), 99) * 1e3


async def upsert_rounds(store: RunStore, rig: Rig, first: int) -> Taken:
    """Runs begin (new rows), end (the same rows), and end once more (nothing changes). Then their
    rows are inserted into the bare table."""
    taken, size = Taken(), BATCH * BATCHES
    for number in range(ROUNDS + 1):
        begin_s = {}
        for what, row in (("insert", began), ("update", ended), ("again", ended)):
            made = list(batches(row, first, size))
            calls_s = [await timed(store.write(batch, term=1)) for batch in made]
            begin_s[what] = sum(calls_s)
            if number and what == "insert":
                taken.calls_s += calls_s
        stored = await rig.newest(first)
        assert len(stored) == size
        begin_s["bare"] = await timed(
            rig.insert_bare([stored[low : low + BATCH] for low in range(0, size, BATCH)])
        )
        first += EVERY_S * size // SCHEDULES
        if number:  # nobody counts the first
            for what, took_s in begin_s.items():
                taken.add(what, took_s)
    return taken


async def promotion_ms(store: RunStore) -> float:
    """Ten thousand that are due go to one caller."""
    begin = BEGIN + 50_000 * EVERY_S
    for batch in batches(waiting, begin, DUE):
        await store.write(batch, term=1)
    rounds_s = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        found = await store.promote_due(float(begin + DUE * EVERY_S), DUE, HOLDER)
        rounds_s.append(time.perf_counter() - began_s)
        assert len(found.rows) == DUE
        assert await store.requeue(process=HOLDER.process) == DUE
    return statistics.median(rounds_s) * 1e3


async def timed(call: Coroutine[Any, Any, Any]) -> float:
    began_s = time.perf_counter()
    await call
    return time.perf_counter() - began_s


@dataclass
class SQLiteRig:
    """Two files of the same content."""

    directory: Path
    _bare: sqlite3.Connection | None = None

    async def open(self) -> RunStore:
        return await open_store(f"sqlite://{self._file}", within_s=CALL_WITHIN_S)

    @property
    def _file(self) -> Path:
        return self.directory / "evenkeel.db"

    async def multiply(self, times: int) -> None:
        with closing(self._connect(self._file)) as connection:
            columns = _columns(connection)
            for turn in range(1, times):
                connection.execute("BEGIN")
                connection.execute(repeated(columns, "run", turn))
                connection.execute("COMMIT")

    async def lay_bare(self) -> None:
        copied = self.directory / "bare.db"
        shutil.copy(self._file, copied)
        self._bare = self._connect(copied)

    async def newest(self, first: int) -> list[tuple[Any, ...]]:
        with closing(self._connect(self._file)) as connection:
            asked = "SELECT * FROM run WHERE due >= ? ORDER BY due, schedule"
            return connection.execute(asked, (first,)).fetchall()

    async def insert_bare(self, some: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        assert self._bare is not None
        places = ", ".join("?" * len(some[0][0]))
        for rows in some:
            self._bare.execute("BEGIN IMMEDIATE")
            self._bare.executemany(f"INSERT INTO run VALUES ({places})", rows)
            self._bare.execute("COMMIT")

    async def close(self) -> None:
        if self._bare is not None:
            self._bare.close()

    @staticmethod
    def _connect(file: Path) -> sqlite3.Connection:
        """As the store connects."""
        connection = sqlite3.connect(file, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -32768"):
            connection.execute(f"PRAGMA {pragma}")
        return connection


@dataclass
class PostgresRig:
    """Two tables of the same content, in one database."""

    url: str
    _connection: asyncpg.Connection | None = None

    async def open(self) -> RunStore:
        return await open_store(self.url, within_s=CALL_WITHIN_S)

    async def multiply(self, times: int) -> None:
        self._connection = connection = await asyncpg.connect(self.url, timeout=60)
        asked = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'evenkeel'"
            " AND table_name = 'run' ORDER BY ordinal_position"
        )
        columns = [name for (name,) in await connection.fetch(asked)]
        for turn in range(1, times):
            await connection.execute(repeated(columns, "evenkeel.run", turn), timeout=600)

    async def lay_bare(self) -> None:
        assert self._connection is not None
        for statement in (
            "CREATE SCHEMA bare",
            "CREATE TABLE bare.run (LIKE evenkeel.run INCLUDING ALL)",
            "INSERT INTO bare.run SELECT * FROM evenkeel.run",
            "VACUUM ANALYZE",
            "CHECKPOINT",
        ):
            await self._connection.execute(statement, timeout=600)

    async def newest(self, first: int) -> list[tuple[Any, ...]]:
        assert self._connection is not None
        asked = "SELECT * FROM evenkeel.run WHERE due >= $1 ORDER BY due, schedule"
        return [tuple(row) for row in await self._connection.fetch(asked, first)]

    async def insert_bare(self, some: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        assert self._connection is not None
        for rows in some:
            await self._connection.copy_records_to_table("run", schema_name="bare", records=rows)

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


def _columns(connection: sqlite3.Connection) -> list[str]:
    return [row[1] for row in connection.execute("PRAGMA table_info(run)")]


def repeated(columns: Iterable[str], table: str, turn: int) -> str:
    """SQL: the first rows once more, later by so many times their length."""
    length_s = SEED_TIMES * EVERY_S
    wanted = [f"due + {turn * length_s}" if name == "due" else name for name in columns]
    return (
        f"INSERT INTO {table} SELECT {', '.join(wanted)} FROM {table}"
        f" WHERE due < {BEGIN + length_s}"
    )


# --- promotion by processes that are killed -------------------------------------------------------


async def by_processes(name: str, url: str) -> AsyncIterator[dict[str, Any]]:
    """Two processes of eight callers, one after the other killed and begun again."""
    count, kills = (100_000, 20) if long_form() else (20_000, 6)
    store = await open_store(url, within_s=CALL_WITHIN_S)
    try:
        term = await store.take_term()
        for batch in deferred_rows(count):
            await store.write(batch, term=term)
        with TemporaryDirectory(prefix="evenkeel-bench-") as directory:
            parent = Parent(url, Path(directory), store, term)
            took_s = await timed(promote_all(parent, count, kills))
            reported = parent.reported()
    finally:
        await store.close()
    yield {
        "name": f"{name}: runs that reach more or less than one of 16 callers",
        "value": sum(times != 1 for times in reported.values()) + abs(count - len(reported)),
        "unit": "runs",
        "beside": {
            "runs": count,
            "kills": kills,
            "runs_s": count / took_s,
            "put_back": parent.put_back,
        },
    }


# --- promotion beside a long query ----------------------------------------------------------------


async def beside_a_query(url: str) -> AsyncIterator[dict[str, Any]]:
    """Rows are deferred, promoted and begun all the while; then a query of history holds its view
    of the database for a minute, and dead rows cannot be removed."""
    store = await open_store(url, within_s=CALL_WITHIN_S)
    analyst = await asyncpg.connect(url, timeout=60)
    try:
        for batch in batches(ended, BEGIN, SCHEDULES * SEED_TIMES):
            await store.write(batch, term=1)
        place = Places()
        before_s = await promoted_for(store, place, BEFORE_S)
        view = analyst.transaction(isolation="repeatable_read", readonly=True)
        await view.start()
        await analyst.fetch("SELECT state, count(*) FROM evenkeel.run GROUP BY state")
        during_s = await promoted_for(store, place, SNAPSHOT_S)
        await view.rollback()
    finally:
        await analyst.close()
        await store.close()
    before, during = len(before_s) / BEFORE_S, len(during_s) / SNAPSHOT_S
    last_s = during_s[-len(during_s) // 3 :]
    yield {
        "name": "PostgreSQL: promotion beside a query of 60 s to that before it",
        "value": during / before,
        "unit": "x",
        "beside": {
            "before_rows_s": BATCH * before,
            "during_rows_s": BATCH * during,
            "before_ms": statistics.median(before_s) * 1e3,
            "last_third_ms": statistics.median(last_s) * 1e3,
            "last_third_max_ms": max(last_s) * 1e3,
        },
    }


class Places:
    """Due times that were not used yet."""

    def __init__(self) -> None:
        self._next = BEGIN + 50_000 * EVERY_S

    def take(self) -> int:
        self._next += EVERY_S
        return self._next


async def promoted_for(store: RunStore, places: Places, duration_s: float) -> list[float]:
    """How long each promotion of 500 took."""
    found, until = [], time.perf_counter() + duration_s
    while time.perf_counter() < until:
        due = places.take()
        (deferred,) = batches(waiting, due, BATCH)
        await store.write(deferred, term=1)
        began_s = time.perf_counter()
        promoted = await store.promote_due(float(due), BATCH, HOLDER)
        found.append(time.perf_counter() - began_s)
        assert len(promoted.rows) == BATCH
        (running,) = batches(began, due, BATCH)
        await store.write(running, term=1)
    return found
