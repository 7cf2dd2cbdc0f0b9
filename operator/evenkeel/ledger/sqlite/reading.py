"""What a reader asks, on one view of the file. Pages are in `paging`."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import orjson

from evenkeel.ledger.ranges import widen
from evenkeel.ledger.rows import Book, Deferred, Facts, Minute, ScheduleRow, SpanRow, TimingRow
from evenkeel.ledger.sqlite.columns import deferred_of, minute_of, schedule_of, span_of
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.model import Instant, RunId, RunState


def states(connection: sqlite3.Connection, runs: Sequence[RunId]) -> dict[RunId, RunState]:
    found = {}
    for run in runs:
        row = connection.execute(SQL["state"], (run.uid, run.due, run.kind)).fetchone()
        if row is not None:
            found[run] = RunState(row[0])
    return found


def unfinished(connection: sqlite3.Connection, uid: str) -> tuple[RunId, ...]:
    found = connection.execute(SQL["unfinished"], {"uid": uid})
    return tuple(RunId(uid, due, kind) for due, kind in found)


def deferred(connection: sqlite3.Connection) -> tuple[Deferred, ...]:
    return tuple(
        deferred_of(RunId(uid, due, kind), key, values)
        for uid, key, due, kind, *values in connection.execute(SQL["deferred"])
    )


def schedules(
    connection: sqlite3.Connection, after: tuple[str, str], limit: int
) -> list[ScheduleRow]:
    """Those that follow this key and uid."""
    key, uid = after
    values = {"key": key, "uid": uid, "limit": limit}
    return [schedule_of(row) for row in connection.execute(SQL["schedules"], values)]


def schedules_by_uid(connection: sqlite3.Connection, uids: Sequence[str]) -> list[ScheduleRow]:
    values = {"uids": orjson.dumps(list(uids)).decode()}
    return [schedule_of(row) for row in connection.execute(SQL["schedules_by_uid"], values)]


def book(
    connection: sqlite3.Connection, schedule: ScheduleRow, first: Instant, end: Instant
) -> Book:
    """What an audit needs of one schedule, widened until it cuts no range row."""
    spans = _spans(connection, schedule, first, end)
    while (wider := widen(first, end, spans)) != (first, end):
        first, end = wider
        spans = _spans(connection, schedule, first, end)
    asked = {"uid": schedule.uid, "first": first, "end": end}
    timings = connection.execute(SQL["timings"], {"uid": schedule.uid})
    return Book(
        schedule=schedule,
        timings=tuple(
            TimingRow(schedule.uid, schedule.key, after, fields) for after, fields in timings
        ),
        spans=tuple(spans),
        runs=tuple(
            (due, RunState(state)) for due, state in connection.execute(SQL["book_runs"], asked)
        ),
        first=first,
        end=end,
    )


def _spans(
    connection: sqlite3.Connection, schedule: ScheduleRow, first: Instant, end: Instant
) -> list[SpanRow]:
    asked = {"uid": schedule.uid, "first": first, "end": end}
    found = connection.execute(SQL["book_spans"], asked)
    return [span_of(schedule.uid, schedule.key, *row) for row in found]


def minutes(connection: sqlite3.Connection, first: Instant, end: Instant) -> tuple[Minute, ...]:
    found = connection.execute(SQL["minutes"], {"first": first, "end": end})
    return tuple(minute_of(row) for row in found)


def facts(connection: sqlite3.Connection, file: Path) -> Facts:
    born, since, written_at, term, migration, size = connection.execute(SQL["facts"]).fetchone()
    return Facts("sqlite", str(file), born, since, written_at, term, migration, size)
