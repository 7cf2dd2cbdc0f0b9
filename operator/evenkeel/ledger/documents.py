"""Rows of the ledger as JSON: each row becomes one object, with the same keys on every store.

A run's row has all keys of a run, and null or an empty text where something is not known. A range
row has `from`, `to` and `counts`, and no `due`. Times are RFC 3339 in UTC.
"""

from evenkeel import rfc3339
from evenkeel.ledger.rows import RunRow, SpanRow
from evenkeel.model import Attempt, Instant

Document = dict[str, object]


def document_of(row: RunRow | SpanRow) -> Document:
    """The object of one row."""
    return _of_run(row) if isinstance(row, RunRow) else _of_range(row)


def _of_run(row: RunRow) -> Document:
    lateness_s = row.lateness_s
    return {
        "schedule": row.key,
        "kind": row.run.kind,
        "due": rfc3339.show(row.run.due),
        "state": str(row.state),
        "reason": str(row.reason),
        "attempt": row.attempt,
        "job": row.job,
        "takenUp": _exact(row.taken_up),
        "created": _exact(row.created),
        "started": _whole(row.started),
        "finished": _whole(row.finished),
        "latenessSeconds": None if lateness_s is None else round(lateness_s, 3),
        "exitCode": row.exit_code,
        "exitReason": row.exit_reason,
        "container": row.container,
        "message": row.message,
        "generation": row.generation,
        "templateHash": row.template_hash,
        "attempts": [_of_attempt(attempt) for attempt in row.attempts],
        "request": row.request,
        "requestedBy": row.requested_by,
    }


def _of_attempt(attempt: Attempt) -> Document:
    return {
        "job": attempt.job,
        "created": _exact(attempt.created),
        "started": _whole(attempt.started),
        "finished": _whole(attempt.finished),
        "exitCode": attempt.exit_code,
        "reason": str(attempt.reason),
    }


def _of_range(row: SpanRow) -> Document:
    return {
        "schedule": row.key,
        "range": str(row.kind),
        "from": rfc3339.show(row.first),
        "to": _whole(row.end),
        "counts": {str(state): count for state, count in row.counts.items()},
        "reason": str(row.reason),
    }


def _whole(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339.show(instant)


def _exact(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339.show_exact(seconds)
