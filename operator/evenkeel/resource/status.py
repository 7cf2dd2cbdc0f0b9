"""The status of a ScheduledJob: how it is read, and how it is written, side by side.

A new status field is a field of a class in `record`, a line in `parse`, a line in `render`, and a
field of the CRD's model (`v1alpha1_status`). `parse` believes nothing: a status may have been
edited by hand or written by a newer version, so what does not fit is as if it were not there.
`render` is pure.
"""

import re
from collections.abc import Mapping
from typing import Any

from evenkeel import rfc3339
from evenkeel.model import (
    SLOT_S,
    Instant,
    JobRef,
    RunState,
    Timing,
    Window,
)
from evenkeel.reasons import Reason
from evenkeel.resource.record import (
    ACTIVE_COUNT,
    CONDITION_COUNT,
    COUNTED,
    DURATIONS_COUNT,
    LONGEST_RUN_S,
    RECENT_COUNT,
    SPANS_COUNT,
    WAITING_COUNT,
    Memory,
    Pause,
    Placed,
    Record,
    Shown,
    ToldSpan,
    WaitingRun,
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
from evenkeel.resource.timing import (
    seconds,
    timing_from_fields,
    timing_patch,
)
from evenkeel.when.compile import LONGEST_INTERVAL_S

_CLOCK = re.compile(r"(\d\d):(\d\d)", re.ASCII)


# --- read ---------------------------------------------------------------------------------------


def parse(raw: object, *, version: str = "") -> Memory:
    """A status as the API server gave it; whatever does not fit is left out."""
    if not isinstance(raw, Mapping) or not raw:
        return Memory(version=version)
    status = raw
    internal = read_mapping(status.get("internal"))
    timing = read_mapping(internal.get("timing"))
    return Memory(
        generation=read_count(status.get("observedGeneration")),
        mark=rfc3339.read(internal.get("mark")),
        timing=timing_from_fields(timing.get("fields")),
        timing_since=rfc3339.read(timing.get("since")),
        suspended_since=rfc3339.read(internal.get("suspendedSince")),
        resumed_at=rfc3339.read(internal.get("resumedAt")),
        pause=_pause(status.get("pause")),
        waiting=tuple(read_rows(internal.get("waiting"), _waiting, WAITING_COUNT)),
        active=tuple(read_rows(status.get("active"), _active, ACTIVE_COUNT)),
        unnamed_active=read_count(internal.get("unnamedActive")),
        record=Record(
            recent=read_rows(status.get("recent"), read_recent, RECENT_COUNT),
            counts=read_counts(status.get("counts"), COUNTED),
            counts_since=rfc3339.read(status.get("countsSince")) or 0,
            consecutive_failures=read_count(status.get("consecutiveFailures")),
            last_schedule=rfc3339.read(status.get("lastScheduleTime")),
            last_success=rfc3339.read(status.get("lastSuccessfulTime")),
            last_failure=rfc3339.read(status.get("lastFailureTime")),
            last_result=read_text(status.get("lastResult")),
            durations=_durations(internal.get("durations")),
            spans=read_rows(internal.get("spans"), _span, SPANS_COUNT),
            expected_s=_seconds(read_mapping(status.get("placement")).get("expectedSeconds")),
        ),
        trigger=read_text(internal.get("trigger")),
        template_hash=read_text(internal.get("templateHash")),
        conditions=dict(read_rows(status.get("conditions"), read_condition, 2 * CONDITION_COUNT)),
        placed=placed_from_fields(status.get("placement")),
        version=version,
    )


# --- write --------------------------------------------------------------------------------------


def render(memory: Memory, shown: Shown, *, ns: str) -> dict[str, Any]:
    """The whole status; a field that has no value is null, so that a merge patch removes it."""
    record = memory.record
    return {
        "observedGeneration": memory.generation,
        "state": shown.state,
        "scheduleText": shown.schedule_text,
        "images": shown.images,
        "nextRunTime": show_instant(shown.upcoming[0] if shown.upcoming else None),
        "nextLocal": shown.next_local,
        "upcoming": [rfc3339.show(due) for due in shown.upcoming] or None,
        "lastScheduleTime": show_instant(record.last_schedule),
        "lastSuccessfulTime": show_instant(record.last_success),
        "lastFailureTime": show_instant(record.last_failure),
        "lastResult": record.last_result or None,
        "active": [_show_active(ref, ns) for ref in memory.active] or None,
        "activeCount": shown.active_count,
        "recent": [show_recent(row) for row in record.recent] or None,
        "consecutiveFailures": record.consecutive_failures,
        "counts": {name: record.counts.get(name, 0) for name in COUNTED},
        "countsSince": show_instant(record.counts_since),
        "pause": memory.pause and _show_pause(memory.pause),
        "placement": memory.placed and placed_fields(memory.placed, record.expected_s),
        "conditions": show_conditions(memory.conditions),
        "internal": _show_internal(memory),
    }


# --- parts, each read and written -----------------------------------------------------------------


def _show_internal(memory: Memory) -> dict[str, Any] | None:
    internal = {
        "mark": show_instant(memory.mark),
        "timing": _show_timing(memory.timing, memory.timing_since),
        "suspendedSince": show_instant(memory.suspended_since),
        "resumedAt": show_instant(memory.resumed_at),
        "waiting": [_show_waiting(row) for row in memory.waiting[:WAITING_COUNT]] or None,
        "unnamedActive": memory.unnamed_active or None,
        "durations": list(memory.record.durations) or None,
        "spans": [_show_span(span) for span in memory.record.spans] or None,
        "templateHash": memory.template_hash or None,
        "trigger": memory.trigger or None,
    }
    return internal if any(value is not None for value in internal.values()) else None


def _waiting(row: Mapping[str, Any]) -> WaitingRun | None:
    due = rfc3339.read(row.get("due"))
    if due is None:
        return None
    return WaitingRun(
        due,
        read_attempt(row.get("attempt")),
        read_waiting_reason(row.get("reason")),
        rfc3339.read(row.get("retryAt")),
    )


def _show_waiting(row: WaitingRun) -> dict[str, Any]:
    return without_empty(
        due=rfc3339.show(row.due),
        attempt=row.attempt,
        reason=row.reason.value,
        retryAt=show_instant(row.retry_at),
    )


def _span(row: Mapping[str, Any]) -> ToldSpan | None:
    first, last = rfc3339.read(row.get("first")), rfc3339.read(row.get("last"))
    state, reason, count = (
        read_text(row.get("state")),
        read_text(row.get("reason")),
        row.get("count"),
    )
    if first is None or last is None or last < first or state not in COUNTED:
        return None
    if reason not in _REASONS or not (number := read_count(count)):
        return None
    return ToldSpan(first, last, number, RunState(state), Reason(reason))


_REASONS = frozenset(Reason)


def _show_span(span: ToldSpan) -> dict[str, Any]:
    return {
        "first": rfc3339.show(span.first),
        "last": rfc3339.show(span.last),
        "count": span.count,
        "state": span.state.value,
        "reason": span.reason.value,
    }


def _active(row: Mapping[str, Any]) -> JobRef | None:
    name = read_text(row.get("name"))
    return (
        JobRef(read_text(row.get("namespace")), name, read_text(row.get("uid"))) if name else None
    )


def _show_active(ref: JobRef, ns: str) -> dict[str, Any]:
    return without_empty(
        apiVersion="batch/v1", kind="Job", namespace=ns, name=ref.name, uid=ref.uid or None
    )


def _pause(raw: object) -> Pause | None:
    row = read_mapping(raw)
    since = rfc3339.read(row.get("since"))
    if since is None:
        return None
    return Pause(since, read_text(row.get("by")), read_text(row.get("reason")))


def _show_pause(pause: Pause) -> dict[str, str]:
    return {"since": rfc3339.show(pause.since), "by": pause.by, "reason": pause.reason}


def _show_timing(timing: Timing | None, since: Instant | None) -> dict[str, Any] | None:
    if timing is None:
        return None
    return {**timing_patch(timing), "since": show_instant(since)}


def placed_from_fields(raw: object) -> Placed | None:
    """The phase that `placed_fields` wrote; None when it was not written by it."""
    row = read_mapping(raw)
    anchor = rfc3339.read(row.get("anchor"))
    placed_at = rfc3339.read(row.get("placedAt"))
    try:
        every_s = seconds(row.get("every"))
    except ValueError:
        return None
    if anchor is None or placed_at is None or not 0 < every_s <= LONGEST_INTERVAL_S:
        return None
    return Placed(
        anchor,
        every_s,
        placed_at,
        weight=read_count(row.get("weight")) or None,
        slot=(_clock(row.get("slot")) or 0) // SLOT_S,
        window=_window(row.get("window")),
        reason=read_text(row.get("reason")),
        load=read_count(row.get("load")),
    )


def placed_fields(placed: Placed, expected_s: int = 0) -> dict[str, Any]:
    """As `status.placement` shows a phase."""
    window = placed.window
    return {
        "anchor": rfc3339.show(placed.anchor),
        "slot": show_slot(placed.slot),
        "every": f"{placed.every_s}s",
        "window": {"start": show_clock(window.start_s), "end": show_clock(window.end_s)}
        if window
        else None,
        "weight": placed.weight,
        "placedAt": rfc3339.show(placed.placed_at),
        "reason": placed.reason,
        "load": placed.load,
        "expectedSeconds": expected_s or None,
    }


def _window(raw: object) -> Window | None:
    row = read_mapping(raw)
    start, end = _clock(row.get("start")), _clock(row.get("end"))
    return Window(start, end) if start is not None and end is not None else None


def show_slot(slot: int) -> str:
    """When the slot begins, UTC."""
    return show_clock(slot * SLOT_S)


def show_clock(second: int) -> str:
    """A time of day."""
    return f"{second // 3600:02}:{second // 60 % 60:02}"


def _clock(raw: object) -> int | None:
    found = _CLOCK.fullmatch(read_text(raw))
    return int(found[1]) * 3600 + int(found[2]) * 60 if found else None


# --- values ---------------------------------------------------------------------------------------


def _seconds(raw: object) -> int:
    """How long a run lasts; 0 for what no run does."""
    seconds_s = read_count(raw)
    return seconds_s if seconds_s <= LONGEST_RUN_S else 0


def _durations(raw: object) -> list[int]:
    rows = raw[-DURATIONS_COUNT:] if isinstance(raw, list) else []
    return [lasted_s for row in rows if (lasted_s := _seconds(row))]
