"""Rows for the tests of stores, and short ways to write and read them.

The schedule `a` is `default/a`. Due times are instants of Monday, as `tests.builders.instant` reads
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import instant

from evenkeel.ledger.rows import (
    Batch,
    Minute,
    Range,
    RunQuery,
    RunRow,
    SpanRow,
    TimingRow,
    Write,
    Written,
)
from evenkeel.ledger.store import RunStore
from evenkeel.model import Instant, RunId, RunState

TERM = 1
DAY_S = 86_400.0


def key_of(uid: str) -> str:
    return f"default/{uid}"


def run_id(due: str | float, uid: str = "a", kind: str = "s") -> RunId:
    return RunId(uid, instant(due), kind)


def run(
    due: str | float, state: RunState, uid: str = "a", *, kind: str = "s", **fields: Any
) -> RunRow:
    return RunRow(run_id(due, uid, kind), fields.pop("key", key_of(uid)), state, **fields)


def later(due: str | float, due_at: str | float, uid: str = "a", **fields: Any) -> RunRow:
    """A run that starts later: a row of the hot table."""
    attempt = fields.get("attempt", 1)
    state = RunState.RETRYING if attempt > 1 else RunState.SCHEDULED
    return run(due, state, uid, due_at=float(instant(due_at)), **fields)


def verdict(
    first: str | float,
    end: str | float,
    uid: str = "a",
    *,
    counts: Mapping[str, int] | None = None,
    reason: str = "suspended",
) -> SpanRow:
    told = {"skipped": 2} if counts is None else counts
    return SpanRow(uid, key_of(uid), instant(first), instant(end), told, reason)


def opened(first: str | float, uid: str = "a", *, reason: str = "suspended") -> SpanRow:
    return SpanRow(uid, key_of(uid), instant(first), None, {}, reason, Range.OPEN)


def timing(
    after: str | float, fields: str = '{"hourly":{"minute":0}}', uid: str = "a"
) -> TimingRow:
    return TimingRow(uid, key_of(uid), instant(after), fields)


async def write(
    store: RunStore, *writes: Write, at: str | float = "00:00", term: int = TERM
) -> Written:
    return await store.write(Batch(float(instant(at)), writes), term=term)


async def write_minutes(store: RunStore, *minutes: Minute) -> None:
    await store.write(Batch(0.0, minutes=minutes), term=TERM)


async def all_rows(store: RunStore, **query: Any) -> list[RunRow | SpanRow]:
    """All pages."""
    rows: list[RunRow | SpanRow] = []
    page = await store.runs(RunQuery(**query))
    rows += page.items
    while page.next:
        page = await store.runs(RunQuery(**query, cursor=page.next))
        rows += page.items
    return rows


async def the_run(store: RunStore, run: RunId) -> RunRow:
    """The row of a run that there is."""
    found = [
        row
        for row in await all_rows(store, ranges=False)
        if isinstance(row, RunRow) and row.run == run
    ]
    assert len(found) == 1, found
    return found[0]


async def spans(store: RunStore, **query: Any) -> list[SpanRow]:
    """Range rows, the newest first."""
    return [row for row in await all_rows(store, **query) if isinstance(row, SpanRow)]


def dues(rows: list[RunRow | SpanRow]) -> list[tuple[str, Instant]]:
    """Where runs stand, by schedule and due time."""
    return [(row.run.uid, row.run.due) for row in rows if isinstance(row, RunRow)]


async def exported(store: RunStore) -> dict[str, list[Mapping[str, object]]]:
    """All there is, in an order that does not depend on the store."""
    tables: dict[str, list[Mapping[str, object]]] = {}
    async for chunk in store.export():
        tables.setdefault(chunk.table, []).extend(chunk.rows)
    return {
        table: sorted(rows, key=lambda row: sorted((name, str(row[name])) for name in row))
        for table, rows in tables.items()
        if rows
    }
