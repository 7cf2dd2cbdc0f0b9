"""Terms, and who gets which deferred run. Each function is one transaction's work."""

import sqlite3
from collections.abc import Collection
from dataclasses import replace

from evenkeel.ledger.merge import put_back
from evenkeel.ledger.rows import Deferred, Holder, Promoted
from evenkeel.ledger.sqlite.columns import deferred_of
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.ledger.sqlite.writing import guard
from evenkeel.model import RunId, RunState


def take_term(connection: sqlite3.Connection, at_least: int) -> int:
    (term,) = connection.execute(SQL["next_term"], {"at_least": at_least}).fetchone()
    return int(term)


def promote_due(
    connection: sqlite3.Connection, before: float, limit: int, holder: Holder
) -> Promoted:
    guard(connection, holder.term)
    # All are collected before one is changed: SQLite may show a row of an index again, or leave out
    # the next, when rows change under it.
    found = connection.execute(SQL["due"], {"before": before, "limit": limit}).fetchall()
    rows, promoted, stale = [], [], []
    for schedule, due, kind, *values, uid, key, is_stale in found:
        place = (schedule, due, kind)
        if is_stale:
            stale.append(place)
            continue
        row = deferred_of(RunId(uid, due, kind), key, values)
        rows.append(replace(row, state=RunState.PENDING))
        promoted.append((holder.term, holder.process, *place))
    connection.executemany(SQL["drop_hot"], stale)
    connection.executemany(SQL["promote"], promoted)
    return Promoted(tuple(rows), len(stale))


def requeue(
    connection: sqlite3.Connection,
    *,
    below_term: int,
    process: str,
    launched: Collection[tuple[RunId, int]],
) -> int:
    found = connection.execute(
        SQL["promoted"], {"below_term": below_term, "process": process}
    ).fetchall()
    back = []
    for schedule, due, kind, attempt, uid in found:
        run = RunId(uid, due, kind)
        if (run, attempt) in launched:
            continue
        row = put_back(Deferred(run, "", 0.0, 0, RunState.PENDING, attempt))
        back.append((row.state.value, schedule, due, kind))
    connection.executemany(SQL["put_back"], back)
    return len(back)
