"""Folds old rows into rows of days, months and hours, in bites, each a transaction.

A pass goes through the schedules by number, some in a bite; its last bite folds ranges and minutes
too. Whoever writes waits for a bite to end.

Not guaranteed: that the database becomes smaller. PostgreSQL gives back no disk by itself, so
`max_bytes` is compared with the room that the stored runs need. They are counted once a pass, and
only if all tables together take more.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evenkeel.ledger import fold
from evenkeel.ledger.postgres import shapes
from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.shapes import Record
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.rows import Folded, Minute, Retention, SpanRow
from evenkeel.model import RunId, RunState

SCHEDULES = 200
"""In one bite."""
ROWS = 5_000
"""Of each kind, in one bite."""
MINUTES = 6_000
RUN_BYTES = 300
"""Of a run and its places in the indexes."""

Numbers = Mapping[int, tuple[str, str]]
"""Uid and key of schedules, by number."""


@dataclass(frozen=True, slots=True)
class Retaining:
    """Where the pass through the schedules stands."""

    after: int = 0
    spare: int | None = None
    """Runs that are too many for the size; None: they are to be counted."""

    async def bite(
        self,
        connection: Connection,
        sql: Statements,
        schema: str,
        now: float,
        retention: Retention,
    ) -> "tuple[Retaining, Folded]":
        """Where the pass then stands, and what was folded."""
        await connection.execute(sql["write_alone"])
        numbers = _numbers(await connection.fetch(sql["some_schedules"], self.after, SCHEDULES))
        before, days_before = now - retention.keep_s, now - retention.days_s
        dropped = await connection.fetch(
            sql["drop_old_runs"], list(numbers), max(0, retention.keep_runs), before, ROWS
        )
        runs = await _fold_runs(connection, sql, numbers, dropped)
        if runs == ROWS:
            return self, Folded(runs=runs, more=True)
        if len(numbers) == SCHEDULES:
            return replace(self, after=max(numbers)), Folded(runs=runs, more=True)
        spans = await _fold_spans(connection, sql, before, days_before)
        minutes = await _fold_minutes(connection, sql, now - retention.minutes_s)
        spare = self.spare
        if spare is None:
            spare = await _spare(connection, sql, schema, retention.max_bytes)
        too_many = await _fold_oldest(connection, sql, min(spare, ROWS))
        forgotten = await _forget(connection, sql, days_before)
        spans_left, minutes_left = spans >= ROWS, minutes >= MINUTES - 60
        folded = Folded(runs + too_many, spans, minutes)
        if spans_left or minutes_left or too_many == ROWS or forgotten == SCHEDULES:
            left = spare - too_many
            return replace(self, spare=left or None), replace(folded, more=True)
        return Retaining(), folded


# --- runs -----------------------------------------------------------------------------------------


async def _spare(connection: Connection, sql: Statements, schema: str, max_bytes: int) -> int:
    """How many runs are too many, as far as one pass looks."""
    if await connection.fetchval(sql["size"], schema) <= max_bytes:
        return 0
    most = max_bytes // RUN_BYTES
    counted: int = await connection.fetchval(sql["count_runs"], most + 100 * ROWS)
    return max(0, counted - most)


async def _fold_oldest(connection: Connection, sql: Statements, count: int) -> int:
    if not count:
        return 0
    oldest = await connection.fetch(sql["oldest_runs"], count)
    ids = sorted({record["schedule"] for record in oldest})
    numbers = _numbers(await connection.fetch(sql["schedules_numbered"], ids))
    keys = [[record[name] for record in oldest] for name in ("schedule", "due", "kind")]
    dropped = await connection.fetch(sql["drop_runs"], *keys)
    return await _fold_runs(connection, sql, numbers, dropped)


def _numbers(records: Iterable[Record]) -> Numbers:
    return {record["id"]: (record["uid"], record["key"]) for record in records}


async def _fold_runs(
    connection: Connection, sql: Statements, numbers: Numbers, dropped: Sequence[Record]
) -> int:
    of_each: dict[int, list[tuple[int, str, RunState]]] = {}
    for record in dropped:
        row = record["due"], record["kind"], RunState(record["state"])
        of_each.setdefault(record["schedule"], []).append(row)
    folded = [
        (number, day)
        for number, runs in of_each.items()
        for day in fold.day_rows(*numbers[number], runs)
    ]
    await _add(connection, sql, folded)
    if dropped:
        runs_of = (RunId("", record["due"], record["kind"]) for record in dropped)
        ids = [record["schedule"] for record in dropped]
        await connection.execute(sql["drop_hot"], *shapes.run_keys(runs_of, ids))
    return len(dropped)


# --- ranges ---------------------------------------------------------------------------------------


async def _fold_spans(
    connection: Connection, sql: Statements, before: float, days_before: float
) -> int:
    verdicts = await connection.fetch(sql["old_verdicts"], before, ROWS)
    await _drop(connection, sql, verdicts)
    await _add(connection, sql, _folded(verdicts, fold.day_row))
    days = await connection.fetch(sql["old_days"], math.ceil(days_before), ROWS)
    await _drop(connection, sql, days)
    await _add(connection, sql, _folded(days, fold.month_row))
    return len(verdicts) + len(days)


def _folded(
    records: Iterable[Record], how: Callable[[SpanRow], SpanRow]
) -> list[tuple[int, SpanRow]]:
    return [
        (record["schedule"], how(shapes.span_of(record, record["uid"], record["key"])))
        for record in records
    ]


async def _drop(connection: Connection, sql: Statements, records: Sequence[Record]) -> None:
    names = ("schedule", "kind", "first", "reason")
    columns = [[record[name] for record in records] for name in names]
    await connection.execute(sql["drop_spans"], *columns)


async def _add(
    connection: Connection, sql: Statements, folded: Sequence[tuple[int, SpanRow]]
) -> None:
    """Add rows of days or months to those that are stored."""
    if not folded:
        return
    sums: dict[tuple[int, str, int], SpanRow] = {}
    for number, row in folded:
        place = number, str(row.kind), row.first
        sums[place] = fold.add(sums.get(place), row)
    keys = [[place[column] for place in sums] for column in range(3)]
    for record in await connection.fetch(sql["folded_spans"], *keys):
        place = record["schedule"], record["kind"], record["first"]
        new = sums[place]
        sums[place] = fold.add(shapes.span_of(record, new.uid, new.key), new)
    ids = [number for number, *_ in sums]
    rows = list(sums.values())
    recorded = [float(row.first) for row in rows]
    await connection.execute(sql["put_spans"], *shapes.span_columns(rows, ids, recorded))


# --- minutes and schedules ------------------------------------------------------------------------


async def _fold_minutes(connection: Connection, sql: Statements, before: float) -> int:
    records = await connection.fetch(sql["old_minutes"], fold.hour_of(math.floor(before)), MINUTES)
    hours: dict[int, list[Minute]] = {}
    for record in records:
        minute = shapes.minute_of(record)
        hours.setdefault(fold.hour_of(minute.at), []).append(minute)
    if len(records) == MINUTES:
        hours.popitem()  # some of its minutes may be left
    folded = [minute.at for minutes in hours.values() for minute in minutes]
    if folded:
        await connection.execute(sql["drop_minutes"], folded)
        rows = [fold.hour(minutes) for minutes in hours.values()]
        await connection.execute(sql["restore_minute"], *shapes.minute_columns(rows))
    return len(folded)


async def _forget(connection: Connection, sql: Statements, before: float) -> int:
    found = await connection.fetch(sql["forgettable"], math.ceil(before), SCHEDULES)
    ids = [record["id"] for record in found]
    if ids:
        await connection.execute(sql["forget"], ids)
    return len(ids)
