"""The status of a RunRequest: how it is read, and how it is written, side by side.

A new status field is a field of a class in `request_record`, a line in `parse_request`, a line in
`render_request`, and a field of the CRD's model (`request_v1alpha1_status`). `parse_request`
believes nothing: a status may have been edited by hand or written by a newer version, so what does
not fit is as if it were not there. `render_request` is pure.

Not guaranteed: that a plan which can be read is the one that was made. Edited by hand, it may name
other due times; the scheduler compares their number with the timing's.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, TypeGuard

from evenkeel import rfc3339
from evenkeel.model import RequestState, Timing
from evenkeel.resource.record import CONDITION_COUNT
from evenkeel.resource.request_record import (
    DUES_SHOWN_COUNT,
    MOST_DUES,
    REQUEST_ACTIVE_COUNT,
    REQUEST_COUNTED,
    REQUEST_RECENT_COUNT,
    ActiveRun,
    Plan,
    RequestMemory,
    RequestRecord,
    RequestShown,
)
from evenkeel.resource.status_parts import (
    read_attempt,
    read_condition,
    read_count,
    read_counts,
    read_mapping,
    read_recent,
    read_rows,
    read_text,
    read_waiting_reason,
    show_conditions,
    show_instant,
    show_recent,
    without_empty,
)
from evenkeel.resource.timing import timing_from_fields, timing_patch

_STATES = frozenset(state.value for state in RequestState)


# --- read ---------------------------------------------------------------------------------------


def parse_request(raw: object, *, version: str = "") -> RequestMemory:
    """A status as the API server gave it; whatever does not fit is left out."""
    status = read_mapping(raw)
    state = read_text(status.get("state"))
    plan = _plan(status.get("plan"))
    return RequestMemory(
        generation=read_count(status.get("observedGeneration")),
        state=RequestState(state) if state in _STATES else RequestState.PENDING,
        schedule_uid=read_text(status.get("scheduleUid")),
        plan=plan,
        mark=rfc3339.read(read_mapping(status.get("plan")).get("mark")) if plan else None,
        active=_active_runs(status.get("active")),
        record=RequestRecord(
            counts=read_counts(status.get("counts"), REQUEST_COUNTED),
            recent=read_rows(status.get("recent"), read_recent, REQUEST_RECENT_COUNT),
            consecutive_failures=read_count(status.get("consecutiveFailures")),
        ),
        started=rfc3339.read(status.get("startedAt")),
        finished=rfc3339.read(status.get("finishedAt")),
        conditions=dict(read_rows(status.get("conditions"), read_condition, 2 * CONDITION_COUNT)),
        version=version,
    )


# --- write --------------------------------------------------------------------------------------


def render_request(memory: RequestMemory, shown: RequestShown) -> dict[str, Any]:
    """The whole status; a field that has no value is null, so that a merge patch removes it."""
    record = memory.record
    return {
        "observedGeneration": memory.generation,
        "state": memory.state.value,
        "scheduleUid": memory.schedule_uid or None,
        "done": record.done,
        "total": shown.total,
        "counts": {name: record.counts.get(name, 0) for name in REQUEST_COUNTED},
        "dues": _show_dues(shown),
        "recent": [show_recent(row) for row in record.recent] or None,
        "active": [_show_active(row) for row in memory.active[:REQUEST_ACTIVE_COUNT]] or None,
        "consecutiveFailures": record.consecutive_failures,
        "startedAt": show_instant(memory.started),
        "finishedAt": show_instant(memory.finished),
        "plan": memory.plan and _show_plan(memory.plan, memory),
        "conditions": show_conditions(memory.conditions),
    }


# --- parts, each read and written -----------------------------------------------------------------


def _plan(raw: object) -> Plan | None:
    row = read_mapping(raw)
    timing = timing_from_fields(read_mapping(row.get("timing")).get("fields"))
    if timing is None and row.get("timing") is not None:
        return None  # by the count alone it would pass for a single run
    count, text = row.get("count"), row.get("bits")
    if not _is_count(count, timing) or not isinstance(text, str):
        return None
    try:
        bits = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(bits) != (count + 7) // 8:
        return None
    return Plan(count, _within(bits, count), timing)


def _show_plan(plan: Plan, memory: RequestMemory) -> dict[str, Any]:
    return {
        "count": plan.count,
        "bits": base64.b64encode(plan.bits).decode(),
        "mark": show_instant(memory.mark),
        "timing": plan.timing and timing_patch(plan.timing),
    }


def _is_count(count: object, timing: Timing | None) -> TypeGuard[int]:
    """A range may have no due time at all, and what is no range has one."""
    if type(count) is not int:
        return False
    return count == 1 if timing is None else 0 <= count <= MOST_DUES


def _within(bits: bytes, count: int) -> bytes:
    """Without the bits behind the last due time: they would be counted as runs that never come."""
    spare = -count % 8
    return bits if spare == 0 else bits[:-1] + bytes([bits[-1] >> spare << spare])


def _active_runs(raw: object) -> tuple[ActiveRun, ...]:
    """One row of each due time: two would be two runs with one Job."""
    rows = read_rows(raw, _active, REQUEST_ACTIVE_COUNT)
    return tuple({row.due: row for row in reversed(rows)}.values())[::-1]


def _active(row: Mapping[str, Any]) -> ActiveRun | None:
    due = rfc3339.read(row.get("due"))
    if due is None:
        return None
    reason = row.get("reason")
    return ActiveRun(
        due,
        read_attempt(row.get("attempt")),
        None if reason is None else read_waiting_reason(reason),
        read_text(row.get("job")),
        read_text(row.get("jobUid")),
        rfc3339.read(row.get("retryAt")),
    )


def _show_active(row: ActiveRun) -> dict[str, Any]:
    return without_empty(
        due=rfc3339.show(row.due),
        attempt=row.attempt,
        reason=row.reason and row.reason.value,
        job=row.job or None,
        jobUid=row.job_uid or None,
        retryAt=show_instant(row.retry_at),
    )


def _show_dues(shown: RequestShown) -> dict[str, Any] | None:
    if shown.total is None:
        return None
    first = [rfc3339.show(due) for due in shown.dues[:DUES_SHOWN_COUNT]]
    return {"count": shown.total, "first": first or None}
