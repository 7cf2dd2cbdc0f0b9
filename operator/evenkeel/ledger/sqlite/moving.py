"""Exports and restores rows in chunks, as they are."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.ledger.exports import COLUMNS
from evenkeel.ledger.ranges import OPEN_LAST
from evenkeel.ledger.rows import Exported
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.ledger.sqlite.schedules import Schedules

CHUNK = 1_000
_START = -(1 << 62)


@dataclass(frozen=True, slots=True)
class _Table:
    """How a table is walked: by these columns, from these values on."""

    by: tuple[str, ...]
    start: tuple[object, ...]


_TABLES = {
    "schedule": _Table(("id",), (0,)),
    "timing": _Table(("id", "after"), (0, _START)),
    "run": _Table(("id", "due", "kind"), (0, _START, "")),
    "span": _Table(("id", "span_kind", "first", "reason"), (0, "", _START, "")),
    "deferred": _Table(("id", "due", "kind"), (0, _START, "")),
    "minute": _Table(("at",), (_START,)),
}
assert _TABLES.keys() == COLUMNS.keys()


class Exporting:
    """Walks one table, a chunk at a time."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._at = _TABLES[table].start
        self._total: int | None = None
        self.done = False

    def chunk(self, connection: sqlite3.Connection) -> Exported:
        """The next rows."""
        if self._total is None:
            (self._total,) = connection.execute(SQL[f"count_{self._table}"]).fetchone()
        by = _TABLES[self._table].by
        asked = {f"after_{name}": value for name, value in zip(by, self._at, strict=True)}
        cursor = connection.execute(SQL[f"export_{self._table}"], asked | {"limit": CHUNK})
        names = [column[0] for column in cursor.description]
        found = [dict(zip(names, values, strict=True)) for values in cursor]
        self.done = len(found) < CHUNK
        if found:
            self._at = tuple(found[-1][name] for name in by)
        rows = tuple({name: row[name] for name in COLUMNS[self._table]} for row in found)
        return Exported(self._table, self._total, rows)


def restore(connection: sqlite3.Connection, schedules: Schedules, chunk: Exported) -> int:
    """How many rows were not there."""
    return sum(_restore(connection, schedules, chunk.table, row) for row in chunk.rows)


def _restore(
    connection: sqlite3.Connection,
    schedules: Schedules,
    table: str,
    row: Mapping[str, Any],
) -> int:
    values = dict(row)
    if table not in ("schedule", "minute"):
        found = schedules.find(connection, values["uid"])
        if found is None:
            return 0  # it was forgotten meanwhile
        values["schedule"] = found[0]
    if table == "span":
        values["last"] = OPEN_LAST if values["end"] is None else values["end"] - 1
    return connection.execute(SQL[f"restore_{table}"], values).rowcount
