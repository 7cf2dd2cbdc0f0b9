"""One page of runs and ranges, read along the index that fits the query, so that no page takes
longer because there is more history.

Where no index fits (a namespace of very many schedules that hardly ran, reasons that hardly occur),
it reads on through the history until the page is full, or the call's time is over.
"""

import heapq
import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from evenkeel.ledger.cleaning import clean_text
from evenkeel.ledger.pages import (
    Place,
    Placed,
    page,
    read_cursor,
    run_place,
    span_place,
    wants_span,
    wants_spans,
)
from evenkeel.ledger.ranges import OPEN_LAST
from evenkeel.ledger.rows import Page, RunQuery, SpanRow
from evenkeel.ledger.sqlite.columns import run_of, span_of, texts
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.model import BY_SCHEDULE, ENDED, RunId, RunState

INDEXES = {
    "run_due": "true",
    "run_notable": "(r.state <> 'succeeded' OR r.reason <> '')",
    "run_unfinished": "r.state IN ('scheduled', 'pending', 'running', 'retrying')",
    "run_requested": "r.kind <> 's'",
    "span_last": "true",
    "span_notable": "(instr(p.counts, ',') OR NOT instr(p.counts, '\"succeeded\"'))",
}
"""What must be said of a row for SQLite to find it in the index."""

MANY_SCHEDULES = 200
"""Up to so many schedules are read one by one and merged."""
_START = -(1 << 62)
_NEWEST = Place(1 << 62, 1 << 62, 1, "")
_UNFINISHED = frozenset(RunState) - ENDED


def runs(connection: sqlite3.Connection, query: RunQuery) -> Page:
    """Rows of runs and ranges, newest due time first. BadCursor."""
    after = read_cursor(query.cursor) or _NEWEST
    schedules = _schedules(connection, query)
    if schedules == []:
        return Page(())
    spans = _spans(connection, query, after, schedules) if wants_spans(query) else iter(())
    return page(query, _runs(connection, query, after, schedules), spans)


def _schedules(connection: sqlite3.Connection, query: RunQuery) -> list[int] | None:
    """Numbers of the schedules that are asked for; None: all."""
    if query.namespace and query.name:
        asked = {"key": f"{query.namespace}/{query.name}"}
        found = connection.execute(SQL["schedule_of_key"], asked)
    elif query.namespace:
        found = connection.execute(SQL["schedules_of_namespace"], {"namespace": query.namespace})
    elif query.name:
        found = connection.execute(SQL["schedules_of_name"], {"name": query.name})
    else:
        return None
    return [number for (number,) in found]


def _runs(
    connection: sqlite3.Connection, query: RunQuery, after: Place, schedules: list[int] | None
) -> Iterator[Placed]:
    # A run stands before the ranges of its instant: a cursor at a range has passed the run.
    bound = (after.at, after.schedule, after.name if after.is_run else "")
    if query.until is not None:
        bound = min(bound, (query.until, _START, ""))
    at, number, name = bound
    values = {
        "at": at,
        "number": number,
        "name": name,
        "since": _START if query.since is None else query.since,
        "states": texts(query.states),
        "reasons": texts(query.reasons),
        "kinds": texts(query.kinds),
        "request": clean_text(query.request),
    }
    if schedules is not None and len(schedules) <= MANY_SCHEDULES:
        streams = [
            _stream(connection, SQL["runs_of_schedule"], _of_schedule(values, each, "name"))
            for each in schedules
        ]
    else:
        values["schedules"] = None if schedules is None else texts(schedules)
        streams = [
            _stream(connection, statement(index), values | states)
            for index, states in _indexes(query)
        ]
    return heapq.merge(*streams, key=lambda placed: placed[0], reverse=True)


def _of_schedule(values: dict[str, object], schedule: int, name: str) -> dict[str, object]:
    """The bound for one schedule. At the bound's instant, schedules of a greater number were
    passed, and those of a smaller one were not reached."""
    at, number = values["at"], values["number"]
    assert isinstance(at, int)
    assert isinstance(number, int)
    if schedule == number:
        return values | {"schedule": schedule}
    # Nothing is less than an empty name.
    return values | {"schedule": schedule, "at": at + (schedule < number), name: ""}


def _indexes(query: RunQuery) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The indexes in which all that is wanted stands, each row in one of them."""
    if query.request or (query.kinds and BY_SCHEDULE not in query.kinds):
        yield "run_requested", {}
        return
    states = query.states & frozenset(RunState)
    if not query.states:
        yield ("run_notable" if query.reasons and "" not in query.reasons else "run_due"), {}
        return
    if unfinished := states & _UNFINISHED:
        yield "run_unfinished", {"states": texts(unfinished)}
    if ended := states - _UNFINISHED:
        index = "run_due" if RunState.SUCCEEDED in ended else "run_notable"
        yield index, {"states": texts(ended)}


def statement(index: str) -> str:
    """Reads runs or range rows along an index."""
    text = SQL["runs" if index.startswith("run") else "spans"]
    return text.format(index=index, of_index=INDEXES[index])


def _stream(
    connection: sqlite3.Connection, text: str, values: dict[str, object]
) -> Iterator[Placed]:
    for schedule, uid, key, due, kind, *own, due_at, priority in connection.execute(text, values):
        row = run_of(RunId(uid, due, kind), key, own)
        if due_at is not None:
            row = replace(row, due_at=due_at, priority=priority)
        yield run_place(row, schedule), row


def _spans(
    connection: sqlite3.Connection, query: RunQuery, after: Place, schedules: list[int] | None
) -> Iterator[Placed]:
    if after.is_run:
        # All ranges of the schedule at this instant follow the run.
        after = Place(after.at, after.schedule + 1, 0, "", _START)
    bounds = [(after, _START if query.since is None else query.since)]
    if query.until is not None:
        # Open rows stand before the time that is asked for.
        rest = min(after, Place(query.until, _START, 0, ""))
        bounds = [(after, OPEN_LAST), (rest, bounds[0][1])]
    for bound, since in bounds:
        for place, row in _spans_between(connection, bound, since, query, schedules):
            if wants_span(query, row):
                yield place, row


def _spans_between(
    connection: sqlite3.Connection,
    bound: Place,
    since: int,
    query: RunQuery,
    schedules: list[int] | None,
) -> Iterator[tuple[Place, SpanRow]]:
    kind, _, reason = bound.name.partition("/")
    values: dict[str, object] = {
        "at": bound.at,
        "number": bound.schedule,
        "kind": kind,
        "reason": reason,
        "first": bound.first,
        "since": since,
        "states": texts(query.states),
    }
    if schedules is not None and len(schedules) <= MANY_SCHEDULES:
        streams = [
            _span_stream(connection, SQL["spans_of_schedule"], _of_schedule(values, each, "kind"))
            for each in schedules
        ]
    else:
        values["schedules"] = None if schedules is None else texts(schedules)
        rare = bool(query.states) and RunState.SUCCEEDED not in query.states
        index = "span_notable" if rare else "span_last"
        streams = [_span_stream(connection, statement(index), values)]
    return heapq.merge(*streams, key=lambda placed: placed[0], reverse=True)


def _span_stream(
    connection: sqlite3.Connection, text: str, values: dict[str, object]
) -> Iterator[tuple[Place, SpanRow]]:
    for schedule, uid, key, *own in connection.execute(text, values):
        row = span_of(uid, key, *own)
        yield span_place(row, schedule), row
