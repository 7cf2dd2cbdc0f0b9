"""What PostgreSQL does for each statement of the store beside 1,000,000 rows of history.

Every statement is run by `EXPLAIN ANALYZE` before it is run in earnest, with the store's own values
and settings. No node of its plan may read or sort more rows than the call is about, however many
there are: that holds where no plan scans a table of history.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.ledger.postgres import NOON, opened
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger.postgres import hot, moving, reading
from evenkeel.ledger.postgres.retaining import Retaining
from evenkeel.ledger.postgres.store import PostgresStore
from evenkeel.ledger.postgres.writing import Writing
from evenkeel.ledger.rows import (
    Batch,
    Holder,
    MarkRow,
    Minute,
    Retention,
    RunQuery,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import RunId, RunState

SCHEDULES, EACH = 2_000, 500
EVERY_S = 3600
BEGAN = NOON - EACH * EVERY_S
HISTORY = ("run", "span", "minute", "timing")

# A schedule's runs stand together in the table, as they would after a copy; those of all schedules
# at one time do not.
FILL = """
INSERT INTO evenkeel.schedule (uid, key, mark)
SELECT 'u' || n, 'ns' || n % 20 || '/s' || n, {NOON} FROM generate_series(1, {schedules}) AS n;

INSERT INTO evenkeel.run
SELECT s.id, {BEGAN} + k * {EVERY_S} + s.id, 's',
  CASE WHEN k = {LAST} THEN 'running' WHEN (s.id + k) % 100 = 0 THEN 'failed'
       ELSE 'succeeded' END,
  '', 1, 'job', {BEGAN} + k * {EVERY_S}, {BEGAN} + k * {EVERY_S}, NULL, NULL, NULL, '', '', '', 1,
  'abcdefgh', '', '', {BEGAN} + k * {EVERY_S}
FROM generate_series(0, {LAST}) AS k, evenkeel.schedule s;

INSERT INTO evenkeel.span
SELECT s.id, 'verdict', {BEGAN} + k * 7200 + 10, 'suspended', {BEGAN} + k * 7200 + 60,
  '{{"skipped":1}}', {BEGAN} + k * 7200
FROM generate_series(0, 49) AS k, evenkeel.schedule s;

INSERT INTO evenkeel.timing
SELECT s.id, {BEGAN} + k, '{{}}' FROM generate_series(0, 49) AS k, evenkeel.schedule s;

INSERT INTO evenkeel.deferred
SELECT s.id, {NOON} + k, 'q0aaaaaa', {NOON} + k, k % 3, 'scheduled', 1, 'r', NULL, NULL
FROM generate_series(0, 49) AS k, evenkeel.schedule s;

INSERT INTO evenkeel.minute
SELECT {NOON} - 60 * n, 60, '{{}}', '[]', 0, NULL, 0, 0 FROM generate_series(1, 50000) AS n;

"""


def fill(schedules: int) -> str:
    """Tables as they are after a copy: nobody has looked at them yet."""
    return FILL.format(schedules=schedules, LAST=EACH - 1, NOON=NOON, BEGAN=BEGAN, EVERY_S=EVERY_S)


class Explaining:
    """A connection that explains each statement before it runs it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.plans: list[tuple[str, dict[str, Any]]] = []

    async def _explain(self, statement: str, values: tuple[object, ...]) -> None:
        await self._connection.execute("SAVEPOINT before")
        answer = await self._connection.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *values
        )
        await self._connection.execute("ROLLBACK TO SAVEPOINT before")
        self.plans.append((statement, json.loads(answer)[0]["Plan"]))

    async def fetch(self, statement: str, *values: object) -> Any:
        await self._explain(statement, values)
        return await self._connection.fetch(statement, *values)

    async def fetchrow(self, statement: str, *values: object) -> Any:
        await self._explain(statement, values)
        return await self._connection.fetchrow(statement, *values)

    async def fetchval(self, statement: str, *values: object) -> Any:
        await self._explain(statement, values)
        return await self._connection.fetchval(statement, *values)

    async def execute(self, statement: str, *values: object) -> Any:
        await self._explain(statement, values)
        return await self._connection.execute(statement, *values)


class Explained:
    """A store whose work is explained, and undone."""

    def __init__(self, store: PostgresStore) -> None:
        self.sql = store._sql
        self._run = store._connections.run
        self.explaining: list[Explaining] = []

    async def run(self, work: Any, *, reading: bool = False) -> Any:
        async def explained(connection: Any) -> Any:
            explaining = Explaining(connection)
            self.explaining.append(explaining)
            await connection.execute("SAVEPOINT all_of_it")
            done = await work(explaining)
            await connection.execute("ROLLBACK TO SAVEPOINT all_of_it")
            return done

        return await self._run(explained, reading=reading)

    def found(self) -> list[tuple[str, dict[str, Any]]]:
        plans = [plan for each in self.explaining for plan in each.plans]
        self.explaining.clear()
        assert plans, "nothing was explained"
        return plans


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from nodes(each)


def rows_of(node: dict[str, Any]) -> int:
    """Rows that a node gave or threw away, all its loops together."""
    each = node["Actual Rows"] + sum(
        count for name, count in node.items() if name.startswith("Rows Removed by")
    )
    return round(each * node["Actual Loops"])


def too_much(plans: list[tuple[str, dict[str, Any]]], most: int) -> list[str]:
    """What reads, sorts or scans more than a call is about."""
    wrong = []
    for statement, plan in plans:
        for node in nodes(plan):
            what = f"{node['Node Type']} {node.get('Relation Name', '')}"
            if node["Node Type"] == "Seq Scan" and node["Relation Name"] in HISTORY:
                wrong.append(f"{what} in {statement}")
            elif (count := rows_of(node)) > most:
                wrong.append(f"{what}: {count} rows in {statement}")
    return wrong


@pytest.fixture(scope="module")
def million(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of a database with a million runs."""
    name = postgres_server.new_database()
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
async def store(postgres_server: PostgresServer, million: str) -> AsyncIterator[Explained]:
    async with opened(postgres_server.url(million), within_s=120) as found:
        assert isinstance(found, PostgresStore)
        if (await found.facts()).bytes < 100 << 20:
            postgres_server.sql(fill(SCHEDULES) + "ANALYZE", million)
        yield Explained(found)


def writes() -> Iterator[Write]:
    """One of each kind for many schedules, of the present."""
    for number in range(1, 101):
        uid, key = f"u{number}", f"ns{number % 20}/s{number}"
        last = RunId(uid, BEGAN + (EACH - 1) * EVERY_S + number)
        yield RunRow(last, key, RunState.SUCCEEDED, finished=NOON)
        yield RunRow(RunId(uid, NOON + 5), key, RunState.RETRYING, attempt=2, due_at=NOON + 9.0)
        yield RunRow(RunId(uid, NOON + 2, "q0aaaaaa"), key, RunState.PENDING)
        yield SpanRow(uid, key, NOON + 60, NOON + 120, {"missed": 3}, "deadline")
        yield SpanClosed(uid, key, "suspended", NOON)
        yield MarkRow(uid, key, NOON + 120)
        yield TimingRow(uid, key, NOON, "{}")
        yield RunRow(RunId(f"new{number}", NOON), f"new/{number}", RunState.RUNNING)
    yield ScheduleEnded("u1999", "ns19/s1999", NOON, NOON)


async def test_a_batch(store: Explained) -> None:
    batch = Batch(NOON, tuple(writes()), tuple(Minute(NOON + 60 * n) for n in range(9)))
    writing = Writing(store.sql, batch, term=1)

    written = await store.run(writing.at_once)

    assert written.accepted == len(batch.writes)
    plans = store.found()
    for statement in ("add_runs", "update_runs", "put_hot", "drop_hot", "put_spans", "put_minutes"):
        assert store.sql[statement] in [each for each, _ in plans]
    assert too_much(plans, SCHEDULES + 100) == []


async def test_promotion(store: Explained) -> None:
    promoted = await store.run(
        lambda connection: hot.promote(connection, store.sql, NOON + 20, 1000, Holder(1, "me"))
    )

    assert len(promoted.rows) == 1000
    assert too_much(store.found(), SCHEDULES) == []


async def test_promotion_where_there_are_no_statistics_yet(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database), within_s=120) as found:
        assert isinstance(found, PostgresStore)
        tables = ("schedule", "run", "deferred")
        off = (f"ALTER TABLE evenkeel.{name} SET (autovacuum_enabled = off);" for name in tables)
        postgres_server.sql("".join(off) + fill(200), database)
        store = Explained(found)

        promoted = await store.run(
            lambda connection: hot.promote(connection, store.sql, NOON + 40, 1000, Holder(1, "me"))
        )

        assert len(promoted.rows) == 1000
        assert too_much(store.found(), 1_000) == []


async def test_a_bite_of_the_retention(store: Explained) -> None:
    retention = Retention(keep_s=(EACH - 4) * EVERY_S, keep_runs=460, max_bytes=290 * 1_000_000)

    async def bite(connection: Any) -> Any:
        return await Retaining(after=SCHEDULES - 100).bite(
            connection, store.sql, "evenkeel", NOON, retention
        )

    _, folded = await store.run(bite)

    assert folded.runs > 1_000
    assert folded.spans > 1_000
    # Once a pass the runs are counted, if the tables are larger than they may be.
    plans = [plan for plan in store.found() if plan[0] != store.sql["count_runs"]]
    # A hundred schedules with the runs that are kept of each, or the table of deferred runs.
    assert too_much(plans, 110_000) == []


QUERIES = [
    RunQuery(),
    RunQuery(since=NOON - 86_400, until=NOON - 3600),
    RunQuery(namespace="ns7", name="s7"),
    RunQuery(namespace="ns7", name="s7", states=frozenset({"failed"})),
    RunQuery(name="s7"),
    RunQuery(namespace="ns7", limit=20),
    RunQuery(states=frozenset({"failed", "missed"})),
    RunQuery(states=frozenset({"failed", "lost"}), until=BEGAN + 50 * EVERY_S),
    RunQuery(states=frozenset({"running", "retrying"})),
    RunQuery(kinds=frozenset({"q0aaaaaa"})),
    RunQuery(request="again"),
    RunQuery(namespace="ns7", name="s7", request="again"),
    RunQuery(reasons=frozenset({"policy", "deadline"})),
    RunQuery(reasons=frozenset({"suspended"}), states=frozenset({"skipped"})),
]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
async def test_pages(store: Explained, query: RunQuery) -> None:
    first = await store.run(
        lambda connection: reading.read_page(connection, store.sql, query), reading=True
    )
    following = RunQuery(
        **{name: getattr(query, name) for name in query.__slots__ if name != "cursor"},
        cursor=first.next,
    )
    await store.run(
        lambda connection: reading.read_page(connection, store.sql, following), reading=True
    )

    # A page of a hundred schedules reads the first rows of each; all that runs is few.
    assert too_much(store.found(), SCHEDULES + 300) == []


async def test_what_is_asked_of_some_runs(store: Explained) -> None:
    runs = [RunId(f"u{n}", BEGAN + 7 * EVERY_S + n) for n in range(1, 501)]
    states = await store.run(
        lambda connection: reading.read_states(connection, store.sql, runs), reading=True
    )
    unfinished = await store.run(
        lambda connection: reading.read_unfinished(connection, store.sql, "u17"), reading=True
    )
    minutes = await store.run(
        lambda connection: reading.read_minutes(connection, store.sql, NOON - 6000, NOON),
        reading=True,
    )

    assert len(states) == 500
    assert len(unfinished) == 1
    assert len(minutes) == 100
    assert too_much(store.found(), 2 * SCHEDULES) == []


async def test_books_of_a_day(store: Explained) -> None:
    books = [
        book async for book in reading.read_books(store.run, store.sql, NOON - 86_400, NOON, ())
    ]

    assert len(books) == SCHEDULES
    assert sum(len(book.runs) for book in books) > 20 * SCHEDULES
    # Parts of 50 schedules.
    assert too_much(store.found(), 50 * 60) == []


async def test_the_facts(store: Explained) -> None:
    await store.run(
        lambda connection: reading.read_facts(connection, store.sql, "evenkeel", ""), reading=True
    )

    assert too_much(store.found(), 1_000) == []


async def test_a_chunk_of_a_copy(store: Explained) -> None:
    chunks = moving.export(store.run, store.sql)
    async for chunk in chunks:
        if chunk.table == "run":
            break
    await chunks.aclose()
    plans = [plan for plan in store.found() if "count(*)" not in plan[0]]

    assert chunk.total == SCHEDULES * EACH
    assert too_much(plans, SCHEDULES) == []


async def test_a_scan_would_be_noticed(store: Explained) -> None:
    async def scan(connection: Any) -> None:
        await connection.fetch("SELECT * FROM evenkeel.run WHERE job = 'other'")
        await connection.fetch("SELECT * FROM evenkeel.deferred ORDER BY request LIMIT 1")

    await store.run(scan, reading=True)

    found = too_much(store.found(), 5_000)
    assert any("Scan run" in each for each in found)
    assert any("Scan deferred: 100000 rows" in each for each in found)
