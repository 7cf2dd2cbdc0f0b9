"""Rows and values that the statuses of ScheduledJobs and RunRequests share, read and written.

`status` and `request_status` call them. Reading believes nothing: a status may have been edited by
hand or written by a newer version, so what does not fit is as if it were not there.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from evenkeel import rfc3339
from evenkeel.model import Instant, RunState
from evenkeel.reasons import ConditionType, Reason, RequestCondition
from evenkeel.resource.record import (
    CONDITION_COUNT,
    LARGEST_COUNT,
    MOST_ATTEMPTS,
    Condition,
    RecentRun,
)

T = TypeVar("T")

_WAITING_REASONS = frozenset(
    {
        Reason.TAKEN_UP,
        Reason.LAUNCHING,
        Reason.QUEUED,
        Reason.HELD,
        Reason.UNANNOUNCED,
        Reason.RETRYING,
    }
)

_STATES = frozenset(state.value for state in RunState)

_OURS = frozenset(ConditionType) | frozenset(RequestCondition)


# --- rows ---------------------------------------------------------------------------------------


def read_recent(row: Mapping[str, Any]) -> RecentRun | None:
    """One row of `recent`."""
    due, state = rfc3339.read(row.get("due")), read_text(row.get("state"))
    if due is None or state not in _STATES:
        return None
    return RecentRun(
        due,
        RunState(state),
        started=rfc3339.read(row.get("started")),
        finished=rfc3339.read(row.get("finished")),
        reason=read_text(row.get("reason")),
        attempt=read_attempt(row.get("attempt")),
        job=read_text(row.get("job")),
        exit_code=_exit_code(row.get("exitCode")),
        exit_reason=read_text(row.get("exitReason")),
    )


def show_recent(row: RecentRun) -> dict[str, Any]:
    """As `read_recent` reads it."""
    return without_empty(
        due=rfc3339.show(row.due),
        state=row.state.value,
        started=show_instant(row.started),
        finished=show_instant(row.finished),
        reason=row.reason or None,
        attempt=row.attempt,
        job=row.job or None,
        exitCode=row.exit_code,
        exitReason=row.exit_reason or None,
    )


def read_condition(row: Mapping[str, Any]) -> tuple[str, Condition] | None:
    """One of `conditions`, by its type."""
    kind, since = read_text(row.get("type")), rfc3339.read(row.get("lastTransitionTime"))
    if not kind or since is None or row.get("status") not in ("True", "False", "Unknown"):
        return None
    return kind, Condition(
        str(row["status"]),
        read_text(row.get("reason")),
        read_text(row.get("message")),
        since,
        read_count(row.get("observedGeneration")),
    )


def show_conditions(conditions: Mapping[str, Condition]) -> list[dict[str, Any]]:
    """Ours first: what somebody else wrote must not keep ours out of the room there is."""
    ours = [kind for kind in conditions if kind in _OURS]
    foreign = [kind for kind in conditions if kind not in _OURS]
    return [
        {
            "type": kind,
            "status": conditions[kind].status,
            "reason": conditions[kind].reason,
            "message": conditions[kind].message,
            "lastTransitionTime": rfc3339.show(conditions[kind].since),
            "observedGeneration": conditions[kind].generation,
        }
        for kind in sorted([*ours, *foreign][:CONDITION_COUNT])
    ]


def read_waiting_reason(raw: object) -> Reason:
    """Why a run waits. A reason of a newer version is a wait all the same."""
    reason = read_text(raw)
    return Reason(reason) if reason in _WAITING_REASONS else Reason.HELD


def read_attempt(raw: object) -> int:
    """By hand it may be any number, and delays grow with a power of it."""
    return min(max(1, read_count(raw)), MOST_ATTEMPTS)


# --- values ---------------------------------------------------------------------------------------


def read_rows(raw: object, read: Callable[[Mapping[str, Any]], T | None], most: int) -> list[T]:
    """The rows of a list that can be read."""
    rows = raw[:most] if isinstance(raw, list) else []
    return [found for row in rows if (found := read(read_mapping(row))) is not None]


def read_mapping(raw: object) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return raw if isinstance(raw, Mapping) else {}


def read_text(raw: object) -> str:
    """A text; an empty one for anything else."""
    return raw if isinstance(raw, str) else ""


def read_count(raw: object) -> int:
    """A number from 0; 0 for anything else."""
    if not isinstance(raw, int) or isinstance(raw, bool) or raw < 0:
        return 0
    return min(raw, LARGEST_COUNT)


def _exit_code(raw: object) -> int | None:
    if not isinstance(raw, int) or isinstance(raw, bool) or abs(raw) > LARGEST_COUNT:
        return None
    return raw


def show_instant(instant: Instant | None) -> str | None:
    """As RFC 3339; None, which removes the field, where there is none."""
    return None if instant is None else rfc3339.show(instant)


def read_counts(raw: object, names: Iterable[str]) -> dict[str, int]:
    """Those of the named counts that are not 0."""
    found = read_mapping(raw)
    return {name: count for name in names if (count := read_count(found.get(name)))}


def without_empty(**fields: Any) -> dict[str, Any]:
    """The fields that have a value, for a row of a list: a merge patch replaces lists whole."""
    return {name: value for name, value in fields.items() if value is not None}
