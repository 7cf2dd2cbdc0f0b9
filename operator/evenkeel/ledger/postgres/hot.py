"""Deferred runs: promoted when they are due, put back when their holder is dead."""

from collections.abc import Collection

from evenkeel.ledger.cleaning import clean_text
from evenkeel.ledger.postgres import shapes
from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.postgres.writing import require_term
from evenkeel.ledger.rows import Deferred, Holder, Promoted
from evenkeel.model import RunId, RunState


async def promote(
    connection: Connection, sql: Statements, before: float, limit: int, holder: Holder
) -> Promoted:
    await require_term(connection, sql, holder.term)
    records = await connection.fetch(
        sql["promote_due"], before, max(0, limit), holder.term, clean_text(holder.process)
    )
    promoted = [record for record in records if not record["stale"]]
    promoted.sort(key=_order)
    rows = tuple(
        shapes.deferred_of(record, record["uid"], record["key"], RunState.PENDING)
        for record in promoted
    )
    return Promoted(rows, len(records) - len(promoted))


def _order(record: shapes.Record) -> tuple[float, int, int, int, str]:
    # Rows come back in the order in which they were changed.
    return (
        record["due_at"],
        -record["priority"],
        record["schedule"],
        record["due"],
        record["kind"],
    )


async def put_back(
    connection: Connection,
    sql: Statements,
    below_term: int,
    process: str,
    launched: Collection[tuple[RunId, int]],
) -> int:
    answer: str = await connection.execute(
        sql["requeue"],
        below_term,
        clean_text(process),
        [clean_text(run.uid) for run, _ in launched],
        [run.due for run, _ in launched],
        [clean_text(run.kind) for run, _ in launched],
        [attempt for _, attempt in launched],
    )
    return int(answer.rpartition(" ")[2])


async def read_deferred(connection: Connection, sql: Statements) -> tuple[Deferred, ...]:
    records = await connection.fetch(sql["deferred"])
    return tuple(
        shapes.deferred_of(record, record["uid"], record["key"], RunState(record["state"]))
        for record in records
    )
