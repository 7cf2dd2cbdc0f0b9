"""What is SQLite's own: bad rows that only the database notices, migrations, calls that end in
time, and what a call that nobody waits for leaves behind."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contract.ledger.rows import all_rows, dues, later, run, run_id, write

from evenkeel.clock import SystemClock
from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Holder, Retention, Written
from evenkeel.ledger.sqlite import connections, moving, retaining
from evenkeel.ledger.sqlite.migrate import known
from evenkeel.ledger.sqlite.store import SqliteStore
from evenkeel.ledger.store import BadStore, StoreAway
from evenkeel.model import RunState


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@asynccontextmanager
async def opened(
    file: Path, *, readonly: bool = False, within_s: float = 30.0
) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(file, readonly=readonly, within_s=within_s, clock=SystemClock())
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def sql(file: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements beside the store; the rows of the last."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    try:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows
    finally:
        connection.close()


# --- bad rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [(0,), (499,), (17, 18, 321)])
async def test_a_row_that_sqlite_refuses_costs_only_itself(
    file: Path, places: tuple[int, ...]
) -> None:
    async with opened(file) as store:
        sql(
            file,
            "CREATE TRIGGER refuse BEFORE INSERT ON run WHEN NEW.job = 'poison'"
            " BEGIN SELECT RAISE(ABORT, 'refused'); END",
        )
        rows = [
            run(number, RunState.SUCCEEDED, f"s{number}", job="poison" if number in places else "")
            for number in range(500)
        ]

        written = await write(store, *rows)

        assert written == Written(accepted=500 - len(places), bad=len(places))
        found = await all_rows(store, limit=500)
        assert len(dues(found)) == 500 - len(places)
        assert await store.check() == []
        # A schedule whose only row was refused is known all the same, or is not: never half.
        assert (await write(store, run(5000, RunState.LOST, f"s{places[0]}"))).accepted == 1


# --- migrations -----------------------------------------------------------------------------------


async def test_a_file_of_a_newer_program_is_refused_only_where_its_migration_says_so(
    file: Path,
) -> None:
    async with opened(file):
        pass
    sql(file, "INSERT INTO migration VALUES (900, 'may_write', 1, 0.0)")
    async with opened(file) as store:
        assert (await write(store, run("10:00", RunState.RUNNING))).accepted == 1

    sql(file, "INSERT INTO migration VALUES (901, 'must_not', 901, 0.0)")

    for readonly in (False, True):
        with pytest.raises(BadStore, match=r"newer program .*0901_must_not"):
            async with opened(file, readonly=readonly):
                pass
    assert sql(file, "SELECT state FROM run") == [("running",)]


async def test_a_database_of_another_program_is_left_alone(file: Path) -> None:
    sql(file, "CREATE TABLE theirs (x)")

    for readonly in (False, True):
        with pytest.raises(BadStore, match="another program"):
            async with opened(file, readonly=readonly):
                pass

    assert sql(file, "SELECT name FROM sqlite_master") == [("theirs",)]


async def test_an_older_form_is_not_changed_by_a_reader(file: Path) -> None:
    async with opened(file):
        pass
    sql(file, "DELETE FROM migration")

    with pytest.raises(BadStore, match="older form"):
        async with opened(file, readonly=True):
            pass


async def test_a_file_that_is_none_of_sqlite_is_left_alone(file: Path) -> None:
    file.write_bytes(b"a shopping list")

    for readonly in (False, True):
        with pytest.raises(BadStore, match="no database of SQLite"):
            async with opened(file, readonly=readonly):
                pass

    assert file.read_bytes() == b"a shopping list"
    assert list(file.parent.glob("*.damaged-*")) == []


async def test_reading_makes_no_file(file: Path) -> None:
    with pytest.raises(BadStore, match="no file"):
        await open_store(f"sqlite://{file}", readonly=True)

    assert not file.exists()


async def test_two_processes_begin_one_file(file: Path) -> None:
    """Openers at the same time, each with connections and threads of its own."""
    stores = [
        SqliteStore(file, readonly=False, within_s=30.0, clock=SystemClock()) for _ in range(6)
    ]
    await asyncio.gather(*(store.open() for store in stores))
    facts = [await store.facts() for store in stores]
    for store in stores:
        await store.close()

    assert len({one.born for one in facts}) == 1
    assert sql(file, "SELECT count(*) FROM migration") == [(len(known()),)]


# --- time -----------------------------------------------------------------------------------------


@asynccontextmanager
async def locked(file: Path) -> AsyncIterator[sqlite3.Connection]:
    """Another connection is in the middle of a write."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        connection.close()


async def test_a_locked_file_is_away_and_then_back(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SHARE", 0.01)
    async with opened(file) as store:
        await write(store, run("09:00", RunState.RUNNING))
        async with locked(file):
            with pytest.raises(StoreAway):
                await write(store, run("10:00", RunState.RUNNING))
            assert dues(await all_rows(store)) == dues([run("09:00", RunState.RUNNING)])

        assert await write(store, run("10:00", RunState.RUNNING)) == Written(accepted=1)


async def test_a_call_that_was_given_up_writes_nothing_later(file: Path) -> None:
    """Its caller has been told that it failed, and calls again: two rows would be promoted twice,
    or a row would be promoted for nobody."""
    async with opened(file) as store:
        await write(store, later("09:00", "10:00"))
        async with locked(file):
            waiting = asyncio.ensure_future(store.promote_due(1e12, 10, Holder(1, "gone")))
            behind = asyncio.ensure_future(write(store, run("11:00", RunState.RUNNING)))
            await asyncio.sleep(0.2)
            for call in (waiting, behind):
                call.cancel()
            await asyncio.gather(waiting, behind, return_exceptions=True)

        promoted = await store.promote_due(1e12, 10, Holder(1, "alive"))

        assert [row.run for row in promoted.rows] == [run_id("09:00")]
        assert await store.states([run_id("11:00")]) == {}


async def test_a_long_statement_is_interrupted(file: Path) -> None:
    def forever(connection: sqlite3.Connection) -> None:
        connection.execute(
            "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
        ).fetchone()

    async with opened(file) as store:
        for call in (store._read(forever, within_s=0.2), _impatient(store, forever)):
            with pytest.raises(StoreAway, match="no answer within"):
                await call

        assert await write(store, run("10:00", RunState.RUNNING)) == Written(accepted=1)
        assert len(await all_rows(store)) == 1


async def _impatient(store: SqliteStore, work: object) -> None:
    store._within_s, patient = 0.2, store._within_s
    try:
        await store._write(work)  # type: ignore[arg-type]
    finally:
        store._within_s = patient


async def test_closing_ends_the_threads(file: Path) -> None:
    async with opened(file) as store:
        await asyncio.gather(*(store.facts() for _ in range(10)))
        mine = [thread for thread in threading.enumerate() if thread.name.startswith("ledger-")]
        assert mine

    for thread in mine:
        await asyncio.to_thread(thread.join, 30)
    assert not any(thread.is_alive() for thread in mine)
    assert not Path(f"{file}-wal").exists(), "the last connection tidies up"


# --- parts ----------------------------------------------------------------------------------------


async def test_retention_goes_on_in_parts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is a transaction, and the calls together fold everything."""
    monkeypatch.setattr(retaining, "PART", 7)
    monkeypatch.setattr(retaining, "CALL_S", 0.0)
    async with opened(file) as store:
        await write(
            store,
            *(run(60 * number, RunState.SUCCEEDED, f"s{number % 3}") for number in range(100)),
            *(run(60 * number, RunState.RUNNING, "s0") for number in range(200, 210)),
        )
        calls = folded = 0
        while (done := await store.retain(2e9, Retention())).more:
            assert done.runs <= 7
            calls, folded = calls + 1, folded + done.runs
            assert calls < 1000

        assert folded + done.runs == 100
        assert calls > 10
        assert len(dues(await all_rows(store))) == 10


async def test_an_export_comes_in_chunks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "CHUNK", 3)
    async with opened(file) as store:
        await write(store, *(run(number, RunState.SUCCEEDED) for number in range(10)))

        chunks = [chunk async for chunk in store.export() if chunk.table == "run"]

        assert [len(chunk.rows) for chunk in chunks] == [3, 3, 3, 1]
        assert sorted(int(str(row["due"])) for chunk in chunks for row in chunk.rows) == list(
            range(10)
        )
