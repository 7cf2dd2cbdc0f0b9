"""A million rows in SQLite: no statement's work grows with the history, and with a retention
neither the file nor the memory does.

Work is counted in steps of SQLite's machine, which are the same on every computer.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import MONDAY
from tests.ledger.million import MILLION, SCHEDULES, count_all, memory_mib, write_and_fold

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import RunQuery
from evenkeel.ledger.sqlite import paging
from evenkeel.ledger.sqlite.migrate import SQL, known
from evenkeel.ledger.sqlite.paging import INDEXES, statement

# --- plans ----------------------------------------------------------------------------------------

FILL = """
INSERT INTO run (schedule, due, kind, state, reason, attempt, job, exit_reason, container, message,
  generation, template_hash, request, attempts, recorded)
WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n + 1 < :rows)
SELECT 1 + n % 1000, :monday + 600 * (n / 1000), 's',
  CASE WHEN n % 20 THEN 'succeeded' ELSE 'failed' END,
  CASE WHEN n % 20 THEN '' ELSE 'job_failed' END,
  1, 'job', '', '', '', 1, 'hash', '', '', :monday
FROM number
"""

MAY_READ_ALL = re.compile(r"count_|export_|integrity|orphans|bad_|overlaps|stale|tables")
"""What tools ask that look at every row. They say so."""
SCANS = {
    "run_unfinished": {"r"},  # along the index of runs that have no end
    "deferred": {"d"},  # the whole hot table is what is asked for
    "promoted": {"d"},
    "schedules_of_name": {"schedule"},  # as many as there are schedules, whatever their history
    "applied": {"migration"},
    "facts": {"m", "migration"},
    "meta": {"meta"},
    "next_term": {"meta"},
    "note_written": {"meta"},
    "take_over_term": {"meta"},
}
"""Tables that a statement may walk through, none of which grows with the history."""
SORTS = {
    "deferred",
    "run_unfinished",  # of runs that have no end
    "schedules_by_uid",  # of those that are named
    "book_spans",  # of one schedule in the asked time
}


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A file with as many runs, filled by SQL."""
    connection = sqlite3.connect(
        tmp_path_factory.mktemp("million") / "ledger.db", isolation_level=None
    )
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(SQL["make_migration"])
    for migration in known():
        connection.executescript(migration.text)
    connection.execute("BEGIN")
    connection.executemany(
        SQL["add_schedule"],
        ({"uid": f"uid-{number}", "key": f"ns/{number}"} for number in range(SCHEDULES)),
    )
    connection.execute(FILL, {"rows": MILLION, "monday": MONDAY})
    connection.execute("COMMIT")
    yield connection
    connection.close()


def statements() -> Iterator[tuple[str, str]]:
    for name, text in SQL.items():
        if name not in ("runs", "spans", "make_migration") and not MAY_READ_ALL.match(name):
            yield name, text
    for index in INDEXES:
        yield index, statement(index)


@pytest.mark.parametrize(("name", "text"), [*statements()], ids=lambda value: str(value)[:24])
def test_no_plan_reads_or_sorts_the_history(
    million: sqlite3.Connection, name: str, text: str
) -> None:
    plan = [row[3] for row in million.execute(f"EXPLAIN QUERY PLAN {text}", _values(text))]

    scanned = {found[1] for line in plan if (found := re.match(r"SCAN (\w+)", line))}
    # What a statement makes for itself of its parameters is small.
    scanned -= {"json_each", "wanted", "CONSTANT"}
    scanned -= {table for table in scanned if table.startswith("pragma_")}
    assert scanned <= SCANS.get(name, set()), plan
    sorts = [line for line in plan if "TEMP B-TREE FOR" in line]
    assert not sorts or name in SORTS, plan


def _values(text: str) -> Any:
    named = dict.fromkeys(re.findall(r":(\w+)", text), 1)
    return named or [1] * text.count("?")


def test_a_plan_that_reads_the_history_is_noticed(million: sqlite3.Connection) -> None:
    with pytest.raises(AssertionError):
        test_no_plan_reads_or_sorts_the_history(million, "x", "SELECT * FROM run WHERE job = 'a'")
    with pytest.raises(AssertionError):
        test_no_plan_reads_or_sorts_the_history(
            million, "x", "SELECT * FROM run WHERE due > 5 ORDER BY job"
        )


def test_there_are_a_million_rows_and_no_statistics_that_would_change_a_plan(
    million: sqlite3.Connection,
) -> None:
    (rows,) = million.execute("SELECT count(*) FROM run").fetchone()
    tables = {name for (name,) in million.execute("SELECT name FROM sqlite_master")}

    assert rows == MILLION
    assert "sqlite_stat1" not in tables


QUERIES = {
    "newest": RunQuery(),
    "of a schedule": RunQuery(namespace="ns", name="7"),
    "failed": RunQuery(states=frozenset({"failed"})),
    "running": RunQuery(states=frozenset({"running"})),
    "requested": RunQuery(kinds=frozenset({"q0abcdef"})),
    "of a request": RunQuery(request="again"),
    "of a namespace": RunQuery(namespace="ns"),
    "long ago": RunQuery(until=MONDAY + 100_000),
}


@pytest.mark.parametrize("query", [*QUERIES.values()], ids=QUERIES)
def test_a_page_of_a_million_rows_takes_few_steps(
    million: sqlite3.Connection, query: RunQuery
) -> None:
    """About a hundred a row."""
    assert steps(million, lambda: paging.runs(million, query)) < 40_000


def steps(connection: sqlite3.Connection, work: Callable[[], object]) -> int:
    """How many steps SQLite takes for some work."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 10
        return 0

    connection.set_progress_handler(count, 10)
    work()
    connection.set_progress_handler(None, 0)
    return taken


# --- a retention ----------------------------------------------------------------------------------


@pytest.mark.timeout(900)
async def test_size_memory_and_work_are_flat_over_a_million_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ledger.db"
    store = await open_store(f"sqlite://{file}")
    reader = sqlite3.connect(file, isolation_level=None)
    part = MILLION // 10
    series = []
    lines = [f"{'rows':>9} {'used MiB':>9} {'file MiB':>9} {'memory MiB':>10} {'steps':>7}"]
    for written in range(part, MILLION + 1, part):
        await write_and_fold(store, written - part, part)
        used = (await store.facts()).bytes / 2**20
        taken = sum(
            steps(reader, lambda query=query: paging.runs(reader, query))  # type: ignore[misc]
            for query in QUERIES.values()
        )
        row = (used, file.stat().st_size / 2**20, memory_mib(), taken)
        lines.append(f"{written:>9} {row[0]:>9.1f} {row[1]:>9.1f} {row[2]:>10.1f} {row[3]:>7}")
        series.append(row)
    (kept,) = reader.execute("SELECT count(*) FROM run").fetchone()
    counted = await count_all(store)
    reader.close()
    await store.close()

    with capsys.disabled():
        print("", *lines, sep="\n")
    second, last = series[1], series[-1]
    assert kept == 100_000
    assert counted == MILLION, "what was folded is counted"
    assert last[0] <= 1.25 * second[0]
    assert last[1] <= 1.25 * second[1]
    assert last[2] <= second[2] + 64
    assert last[3] <= 1.5 * second[3]
