"""Writes a batch in one transaction: reads the rows it concerns, changes them (`changes`), and
writes them with one statement a table.

Batches are written one after the other, whoever writes them: a row of `meta` is the lock. Only its
holder changes runs, ranges and schedules. Promotion does not wait for it. A batch that the server
refuses for a row's sake is done again part by part.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from evenkeel.ledger.cleaning import clean, storable
from evenkeel.ledger.halving import Halving
from evenkeel.ledger.postgres import shapes
from evenkeel.ledger.postgres.changes import Changes, Known, Needs, span_id
from evenkeel.ledger.postgres.connections import Connection, savepoint
from evenkeel.ledger.postgres.faults import REFUSED_ROW
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.ledger.rows import Batch, Minute, Write, Written
from evenkeel.ledger.store import OlderTerm
from evenkeel.model import Instant, RunId

_PLACE = attrgetter("uid", "due", "kind")
"""The order of runs, faster than they compare themselves."""


async def require_term(connection: Connection, sql: Statements, term: int) -> None:
    """OlderTerm. Until this transaction ends, no newer term is taken: an old writer's batch could
    be committed after it otherwise."""
    await _compare(connection, sql, await connection.fetchval(sql["guard"]), term)


async def _compare(connection: Connection, sql: Statements, stored: int, term: int) -> None:
    if stored > term:
        raise OlderTerm(f"term {stored} has been taken since term {term}")
    if stored < term:
        await connection.execute(sql["raise_term"], term)


class Writing:
    """Writes cleaned writes; the same object may be asked again."""

    def __init__(self, sql: Statements, batch: Batch, *, term: int) -> None:
        self._sql = sql
        self._at = batch.at
        self._term = term
        cleaned = [clean(write) for write in batch.writes]
        self._writes = [write for write in cleaned if storable(write)]
        minutes = {one.at: one for one in map(clean, batch.minutes) if storable(one)}
        self._minutes = list(minutes.values())
        self._bad = len(cleaned) - len(self._writes)

    async def at_once(self, connection: Connection) -> Written:
        """REFUSED_ROW: the server refused it, and the transaction is of no use any more."""
        await self._begin(connection)
        counts = await self._write(connection, self._writes)
        await self._write_minutes(connection, self._minutes)
        return Written(counts[True], counts[False], self._bad)

    async def in_parts(self, connection: Connection) -> Written:
        """The same without the rows that the server refuses."""
        await self._begin(connection)
        counts: Counter[bool] = Counter()
        parts = Halving(self._writes)
        for part in parts:
            try:
                async with savepoint(connection):
                    counts += await self._write(connection, part)
            except REFUSED_ROW:
                parts.refused(part)
        minutes = Halving(self._minutes)
        for some in minutes:
            try:
                async with savepoint(connection):
                    await self._write_minutes(connection, some)
            except REFUSED_ROW:
                minutes.refused(some)
        return Written(counts[True], counts[False], self._bad + len(parts.bad))

    async def _begin(self, connection: Connection) -> None:
        stored = await connection.fetchval(self._sql["begin_batch"], repr(self._at))
        await _compare(connection, self._sql, stored, self._term)

    async def _write(self, connection: Connection, writes: Sequence[Write]) -> Counter[bool]:
        if not writes:
            return Counter()
        needs = Needs()
        for write in writes:
            needs.add(write)
        changes = await read(connection, self._sql, needs)
        counts = Counter(changes.apply(write, term=self._term) for write in writes)
        await put(connection, self._sql, changes, self._at)
        return counts

    async def _write_minutes(self, connection: Connection, minutes: Sequence[Minute]) -> None:
        if minutes:
            await connection.execute(self._sql["put_minutes"], *shapes.minute_columns(minutes))


async def read(connection: Connection, sql: Statements, needs: Needs) -> Changes:
    """Read what the batch concerns."""
    schedules, folded_until = await _read_schedules(connection, sql, needs)
    known = {one.id: (uid, one.key) for uid, one in schedules.items()}
    ended = [schedules[uid].id for uid in needs.ended]
    records = []
    hot_records = []
    if needs.runs:
        # In one order: two callers that lock the same rows would wait for each other otherwise.
        ordered = sorted(needs.runs, key=_PLACE)
        keys = shapes.run_keys(ordered, [schedules[run.uid].id for run in ordered])
        records += await connection.fetch(sql["stored_runs"], *keys)
        hot_records += await connection.fetch(sql["lock_hot"], *keys)
    if ended:
        records += await connection.fetch(sql["unfinished_runs"], ended)
        hot_records += await connection.fetch(sql["lock_hot_of"], ended)
    runs = (shapes.run_of(record, *known[record["schedule"]]) for record in records)
    hot = (shapes.hot_of(record, *known[record["schedule"]]) for record in hot_records)
    spans = (
        shapes.span_of(record, *known[record["schedule"]])
        for record in await _read_spans(connection, sql, needs, schedules, folded_until)
    )
    return Changes(
        schedules=schedules,
        runs={row.run: row for row in runs},
        hot={each.row.run: each for each in hot},
        spans={span_id(row): row for row in spans},
    )


async def _read_schedules(
    connection: Connection, sql: Statements, needs: Needs
) -> tuple[dict[str, Known], Instant | None]:
    """The schedules of a batch, numbered, and the last instant in a row that is folded."""
    uids = list(needs.keys)
    found = await connection.fetch(sql["schedules_named"], uids)
    if len(found) < len(uids):
        there = {record["uid"] for record in found}
        new = [uid for uid in uids if uid not in there]
        await connection.execute(sql["add_schedules"], new, [needs.keys[uid] for uid in new])
        found += await connection.fetch(sql["schedules_named"], new)
    schedules = {
        record["uid"]: Known(
            record["id"],
            record["key"],
            record["mark"],
            record["ended_at"],
            record["until"],
            record["phase"],
        )
        for record in found
    }
    return schedules, found[0]["folded_until"]


async def _read_spans(
    connection: Connection,
    sql: Statements,
    needs: Needs,
    schedules: dict[str, Known],
    folded_until: Instant | None,
) -> list[shapes.Record]:
    # Runs concern folded rows only, and mostly they are newer than all of these.
    asked = {
        schedules[uid].id: stretch
        for uid, stretch in needs.stretches.items()
        if stretch.all_kinds or (folded_until is not None and stretch.first <= folded_until)
    }
    if not asked:
        return []
    found: list[shapes.Record] = await connection.fetch(
        sql["touched_spans"],
        list(asked),
        [one.first for one in asked.values()],
        [one.last for one in asked.values()],
        [one.all_kinds for one in asked.values()],
    )
    return found


async def put(connection: Connection, sql: Statements, changes: Changes, at: float) -> None:
    """Write what was changed."""
    await _put_schedules(connection, sql, changes)
    await _put_runs(connection, sql, changes, at)
    await _put_hot(connection, sql, changes)
    await _put_spans(connection, sql, changes, at)


async def _put_schedules(connection: Connection, sql: Statements, changes: Changes) -> None:
    schedules = changes.schedules
    if changed := [schedules[uid] for uid in sorted(changes.changed_schedules)]:
        await connection.execute(
            sql["update_schedules"],
            [one.id for one in changed],
            [one.mark for one in changed],
            [one.ended_at for one in changed],
            [one.until for one in changed],
            [one.phase for one in changed],
        )
    if changes.timings:
        await connection.execute(
            sql["put_timings"],
            [schedules[uid].id for uid, _ in changes.timings],
            [after for _, after in changes.timings],
            list(changes.timings.values()),
        )


async def _put_runs(connection: Connection, sql: Statements, changes: Changes, at: float) -> None:
    for statement, runs in (("add_runs", changes.new_runs), ("update_runs", changes.changed_runs)):
        if rows := [changes.runs[run] for run in sorted(runs, key=_PLACE)]:
            columns = shapes.run_columns(rows, _ids(changes, (row.run for row in rows)), at)
            await connection.execute(sql[statement], *columns)


async def _put_hot(connection: Connection, sql: Statements, changes: Changes) -> None:
    if dropped := sorted(changes.dropped_hot):
        await connection.execute(sql["drop_hot"], *shapes.run_keys(dropped, _ids(changes, dropped)))
    if rows := [changes.hot[run] for run in sorted(changes.changed_hot)]:
        columns = shapes.hot_columns(rows, _ids(changes, (hot.row.run for hot in rows)))
        await connection.execute(sql["put_hot"], *columns)


async def _put_spans(connection: Connection, sql: Statements, changes: Changes, at: float) -> None:
    if dropped := sorted(changes.dropped_spans):
        await connection.execute(
            sql["drop_spans"],
            [changes.schedules[uid].id for uid, *_ in dropped],
            [kind for _, kind, _, _ in dropped],
            [first for *_, first, _ in dropped],
            [reason for *_, reason in dropped],
        )
    if put := sorted(changes.changed_spans):
        rows = [changes.spans[known] for known in put]
        ids = [changes.schedules[row.uid].id for row in rows]
        columns = shapes.span_columns(rows, ids, [at] * len(rows))
        await connection.execute(sql["put_spans"], *columns)


def _ids(changes: Changes, runs: Iterable[RunId]) -> list[int]:
    return [changes.schedules[run.uid].id for run in runs]
