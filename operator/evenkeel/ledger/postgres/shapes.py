"""Rows as PostgreSQL's tables have them, from and to the nouns of the ledger. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenkeel.ledger.exports import (
    COLUMNS,
    attempts_of,
    attempts_text,
    counts_of,
    counts_text,
    lateness_of,
    lateness_text,
)
from evenkeel.ledger.merge import Hot
from evenkeel.ledger.ranges import OPEN_LAST, last_of
from evenkeel.ledger.rows import Deferred, Holder, Minute, Range, RunRow, ScheduleRow, SpanRow
from evenkeel.model import RunId, RunState

Record = Mapping[str, Any]
Columns = Sequence[Sequence[object]]
"""The columns of some rows, as `unnest` takes them."""

RUN_COLUMNS = ("schedule", "due", "kind", *COLUMNS["run"][3:])
"""As the table has them."""
_PLAIN = [name for name in COLUMNS["run"][5:] if name not in ("attempts", "recorded")]


def run_of(record: Record, uid: str, key: str) -> RunRow:
    return RunRow(
        RunId(uid, record["due"], record["kind"]),
        key,
        RunState(record["state"]),
        record["reason"],
        record["attempt"],
        record["job"],
        record["taken_up"],
        record["created"],
        record["started"],
        record["finished"],
        record["exit_code"],
        record["exit_reason"],
        record["container"],
        record["message"],
        record["generation"],
        record["template_hash"],
        record["request"],
        record["requested_by"],
        attempts_of(record["attempts"]),
    )


def run_columns(rows: Sequence[RunRow], ids: Sequence[int], recorded: float) -> Columns:
    """In the order of RUN_COLUMNS."""
    return [
        ids,
        [row.run.due for row in rows],
        [row.run.kind for row in rows],
        [row.state.value for row in rows],
        [str(row.reason) for row in rows],
        *([getattr(row, name) for row in rows] for name in _PLAIN),
        [attempts_text(row.attempts) for row in rows],
        [recorded] * len(rows),
    ]


def run_keys(runs: Iterable[RunId], ids: Sequence[int]) -> Columns:
    """What names a run: schedule, due and kind."""
    runs = tuple(runs)
    return [ids, [run.due for run in runs], [run.kind for run in runs]]


def hot_of(record: Record, uid: str, key: str) -> Hot:
    holder = None if record["term"] is None else Holder(record["term"], record["process"] or "")
    return Hot(deferred_of(record, uid, key, RunState(record["state"])), holder)


def deferred_of(record: Record, uid: str, key: str, state: RunState) -> Deferred:
    return Deferred(
        RunId(uid, record["due"], record["kind"]),
        key,
        record["due_at"],
        record["priority"],
        state,
        record["attempt"],
        record["request"],
    )


def hot_columns(rows: Sequence[Hot], ids: Sequence[int]) -> Columns:
    return [
        *run_keys((hot.row.run for hot in rows), ids),
        [hot.row.due_at for hot in rows],
        [hot.row.priority for hot in rows],
        [hot.row.state.value for hot in rows],
        [hot.row.attempt for hot in rows],
        [hot.row.request for hot in rows],
        [hot.holder.term if hot.holder else None for hot in rows],
        [hot.holder.process if hot.holder else None for hot in rows],
    ]


def span_of(record: Record, uid: str, key: str) -> SpanRow:
    last = record["last"]
    return SpanRow(
        uid,
        key,
        record["first"],
        None if last == OPEN_LAST else last + 1,
        counts_of(record["counts"]),
        record["reason"],
        Range(record["kind"]),
    )


def span_columns(rows: Sequence[SpanRow], ids: Sequence[int], recorded: Sequence[float]) -> Columns:
    return [
        ids,
        [str(row.kind) for row in rows],
        [row.first for row in rows],
        [str(row.reason) for row in rows],
        [last_of(row) for row in rows],
        [counts_text(row.counts) for row in rows],
        recorded,
    ]


def schedule_of(record: Record) -> ScheduleRow:
    return ScheduleRow(
        record["uid"],
        record["key"],
        record["since"],
        record["mark"],
        record["ended_at"],
        record["until"],
        record["phase"],
    )


def minute_of(record: Record) -> Minute:
    return Minute(
        at=record["at"],
        ended=counts_of(record["ended"]),
        lateness=lateness_of(record["lateness"]),
        load=record["load"],
        score=record["score"],
        active=record["active"],
        index_runs=record["index_runs"],
        span_s=record["span_s"],
    )


def minute_columns(rows: Sequence[Minute]) -> Columns:
    return [
        [row.at for row in rows],
        [row.span_s for row in rows],
        [counts_text(row.ended) for row in rows],
        [lateness_text(row.lateness) for row in rows],
        [row.load for row in rows],
        [row.score for row in rows],
        [row.active for row in rows],
        [row.index_runs for row in rows],
    ]
