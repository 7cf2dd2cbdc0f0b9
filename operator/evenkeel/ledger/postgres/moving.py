"""Carries all rows out of a store and into another one, in chunks, each a transaction.

Rows of schedules that a running operator adds meanwhile are left to the next copy: a chunk never
names a schedule that was not carried before it.
"""

from collections.abc import AsyncIterator

from evenkeel.ledger.exports import COLUMNS
from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.running import Runner
from evenkeel.ledger.postgres.shapes import Record
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.rows import Exported

CHUNK = 1000

_LEAST = -(1 << 63)
_BEFORE_ALL: dict[str, dict[str, object]] = {
    "schedule": {"schedule": 0},
    "timing": {"schedule": 0, "after": _LEAST},
    "run": {"schedule": 0, "due": _LEAST, "kind": ""},
    "span": {"schedule": 0, "kind": "", "first": _LEAST, "reason": ""},
    "deferred": {"schedule": 0, "due": _LEAST, "kind": ""},
    "minute": {"at": _LEAST},
}
"""The columns that a table is read by, and where reading begins."""


async def export(run: Runner, sql: Statements) -> AsyncIterator[Exported]:
    async def newest(connection: Connection) -> int:
        found: int = await connection.fetchval(sql["newest_schedule"])
        return found

    upto = await run(newest, reading=True)
    for table in COLUMNS:
        async for chunk in _table(run, sql, table, upto):
            yield chunk


async def _table(run: Runner, sql: Statements, table: str, upto: int) -> AsyncIterator[Exported]:
    async def count(connection: Connection) -> int:
        found: int = await connection.fetchval(sql[f"count_{table}"], upto)
        return found

    total = await run(count, reading=True)
    place = _BEFORE_ALL[table]
    while True:

        async def some(connection: Connection, place: dict[str, object] = place) -> list[Record]:
            values = (*place.values(), upto, CHUNK)
            found: list[Record] = await connection.fetch(sql[f"export_{table}"], *values)
            return found

        records = await run(some, reading=True)
        rows = tuple({name: record[name] for name in COLUMNS[table]} for record in records)
        yield Exported(table, total, rows)
        if len(records) < CHUNK:
            return
        place = {name: records[-1][name] for name in place}


async def restore(connection: Connection, sql: Statements, chunk: Exported) -> int:
    await connection.execute(sql["write_alone"])
    columns = [[row[name] for row in chunk.rows] for name in COLUMNS[chunk.table]]
    answer: str = await connection.execute(sql[f"restore_{chunk.table}"], *columns)
    return int(answer.rpartition(" ")[2])
