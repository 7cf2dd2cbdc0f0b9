"""Rows of this store's tables as nouns, and back. Pure."""

from collections.abc import Sequence
from typing import Any

import orjson

from evenkeel.ledger.exports import (
    attempts_of,
    attempts_text,
    counts_of,
    counts_text,
    lateness_of,
    lateness_text,
)
from evenkeel.ledger.merge import Hot
from evenkeel.ledger.ranges import OPEN_LAST
from evenkeel.ledger.rows import Deferred, Holder, Minute, Range, RunRow, ScheduleRow, SpanRow
from evenkeel.model import Instant, RunId, RunState

Row = Sequence[Any]


def run_values(row: RunRow) -> tuple[object, ...]:
    """From `state` to `attempts`, in the order of the statements in write.sql."""
    return (
        row.state.value,
        row.reason,
        row.attempt,
        row.job,
        row.taken_up,
        row.created,
        row.started,
        row.finished,
        row.exit_code,
        row.exit_reason,
        row.container,
        row.message,
        row.generation,
        row.template_hash,
        row.request,
        row.requested_by,
        attempts_text(row.attempts),
    )


def run_of(run: RunId, key: str, values: Row) -> RunRow:
    """The reverse of `run_values`."""
    state, *others, attempts = values
    own = (*others, attempts_of(attempts))
    return RunRow(run, key, RunState(state), *own)


def hot_values(hot: Hot) -> tuple[object, ...]:
    """From `due_at` to `process`."""
    row, holder = hot.row, hot.holder
    return (
        row.due_at,
        row.priority,
        row.state.value,
        row.attempt,
        row.request,
        holder.term if holder else None,
        holder.process if holder else None,
    )


def hot_of(run: RunId, key: str, values: Row) -> Hot:
    """The reverse of `hot_values`."""
    *own, term, process = values
    holder = None if term is None else Holder(term, process)
    return Hot(deferred_of(run, key, own), holder)


def deferred_of(run: RunId, key: str, values: Row) -> Deferred:
    """Of a row from `due_at` to `request`."""
    due_at, priority, state, attempt, request = values
    return Deferred(run, key, due_at, priority, RunState(state), attempt, request)


def span_of(
    uid: str, key: str, kind: str, first: Instant, reason: str, last: Instant, counts: str
) -> SpanRow:
    end = None if last == OPEN_LAST else last + 1
    return SpanRow(uid, key, first, end, counts_of(counts), reason, Range(kind))


def span_values(row: SpanRow) -> dict[str, object]:
    """By name, without the schedule and the time of recording."""
    return {
        "kind": row.kind.value,
        "first": row.first,
        "reason": row.reason,
        "last": OPEN_LAST if row.end is None else row.end - 1,
        "counts": counts_text(row.counts),
    }


def schedule_of(values: Row) -> ScheduleRow:
    return ScheduleRow(*values)


def minute_of(values: Row) -> Minute:
    at, span_s, ended, lateness, load, score, active, index_runs = values
    return Minute(
        at,
        counts_of(ended),
        lateness_of(lateness),
        load,
        score,
        active,
        index_runs,
        span_s,
    )


def minute_values(minute: Minute) -> dict[str, object]:
    """By name."""
    return {
        "at": minute.at,
        "span_s": minute.span_s,
        "ended": counts_text(minute.ended),
        "lateness": lateness_text(minute.lateness),
        "load": minute.load,
        "score": minute.score,
        "active": minute.active,
        "index_runs": minute.index_runs,
    }


def texts(values: object) -> str | None:
    """A set of texts as JSON, for `json_each`; None: any will do."""
    chosen = list(values) if values else []  # type: ignore[call-overload]
    return orjson.dumps(chosen).decode() if chosen else None
