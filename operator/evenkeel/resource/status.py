"""The status of a ScheduledJob: how it is read, and how it is written, side by side.

A new status field is a field of a class in `record`, a line in `parse`, a line in `render`, and a
field of the CRD's model (`v1alpha1_status`). `parse` believes nothing: a status may have been
edited by hand or written by a newer version, so what does not fit is as if it were not there.
`render` is pure.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from evenkeel import rfc3339
from evenkeel.model import (
    BY_SCHEDULE,
    SLOT_S,
    Instant,
    JobRef,
    RunState,
    Timing,
    Window,
)
from evenkeel.reasons import ConditionType, Reason
from evenkeel.resource.record import (
    ACTIVE_COUNT,
    CONDITION_COUNT,
    COUNTED,
    DURATIONS_COUNT,
    LARGEST_COUNT,
    LONGEST_RUN_S,
    MOST_ATTEMPTS,
    RECENT_COUNT,
    SPANS_COUNT,
    WAITING_COUNT,
    Condition,
    Memory,
    Pause,
    Placed,
    RecentRun,
    Record,
    Shown,
    ToldSpan,
    WaitingRun,
)
from evenkeel.resource.timing import (
    KINDS_OF_TIMING,
    seconds,
    timing_fields,
    timing_from_fields,
    timing_hash,
)
from evenkeel.when.compile import LONGEST_INTERVAL_S

T = TypeVar("T")

_KIND = re.compile(r"s|q0[a-z2-7]{6}", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)", re.ASCII)
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


# --- read ---------------------------------------------------------------------------------------


def parse(raw: object, *, version: str = "") -> Memory:
    """A status as the API server gave it; whatever does not fit is left out."""
    if not isinstance(raw, Mapping) or not raw:
        return Memory(version=version)
    status = raw
    internal = _mapping(status.get("internal"))
    timing = _mapping(internal.get("timing"))
    return Memory(
        generation=_count(status.get("observedGeneration")),
        mark=rfc3339.read(internal.get("mark")),
        timing=timing_from_fields(timing.get("fields")),
        timing_since=rfc3339.read(timing.get("since")),
        suspended_since=rfc3339.read(internal.get("suspendedSince")),
        resumed_at=rfc3339.read(internal.get("resumedAt")),
        pause=_pause(status.get("pause")),
        waiting=tuple(_rows(internal.get("waiting"), _waiting, WAITING_COUNT)),
        active=tuple(_rows(status.get("active"), _active, ACTIVE_COUNT)),
        unnamed_active=_count(internal.get("unnamedActive")),
        record=Record(
            recent=_rows(status.get("recent"), _recent, RECENT_COUNT),
            counts=_counts(_mapping(status.get("counts"))),
            counts_since=rfc3339.read(status.get("countsSince")) or 0,
            consecutive_failures=_count(status.get("consecutiveFailures")),
            last_schedule=rfc3339.read(status.get("lastScheduleTime")),
            last_success=rfc3339.read(status.get("lastSuccessfulTime")),
            last_failure=rfc3339.read(status.get("lastFailureTime")),
            last_result=_text(status.get("lastResult")),
            durations=_durations(internal.get("durations")),
            spans=_rows(internal.get("spans"), _span, SPANS_COUNT),
            expected_s=_seconds(_mapping(status.get("placement")).get("expectedSeconds")),
        ),
        template_hash=_text(internal.get("templateHash")),
        conditions=dict(_rows(status.get("conditions"), _condition, 2 * CONDITION_COUNT)),
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
        "nextRunTime": _show(shown.upcoming[0] if shown.upcoming else None),
        "nextLocal": shown.next_local,
        "upcoming": [rfc3339.show(due) for due in shown.upcoming] or None,
        "lastScheduleTime": _show(record.last_schedule),
        "lastSuccessfulTime": _show(record.last_success),
        "lastFailureTime": _show(record.last_failure),
        "lastResult": record.last_result or None,
        "active": [_show_active(ref, ns) for ref in memory.active] or None,
        "activeCount": shown.active_count,
        "recent": [_show_recent(row) for row in record.recent] or None,
        "consecutiveFailures": record.consecutive_failures,
        "counts": {name: record.counts.get(name, 0) for name in COUNTED},
        "countsSince": _show(record.counts_since),
        "pause": memory.pause and _show_pause(memory.pause),
        "placement": memory.placed and placed_fields(memory.placed, record.expected_s),
        "conditions": show_conditions(memory.conditions),
        "internal": _show_internal(memory),
    }


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


# --- parts, each read and written -----------------------------------------------------------------


_OURS = frozenset(ConditionType)


def _show_internal(memory: Memory) -> dict[str, Any] | None:
    internal = {
        "mark": _show(memory.mark),
        "timing": _show_timing(memory.timing, memory.timing_since),
        "suspendedSince": _show(memory.suspended_since),
        "resumedAt": _show(memory.resumed_at),
        "waiting": [_show_waiting(row) for row in memory.waiting[:WAITING_COUNT]] or None,
        "unnamedActive": memory.unnamed_active or None,
        "durations": list(memory.record.durations) or None,
        "spans": [_show_span(span) for span in memory.record.spans] or None,
        "templateHash": memory.template_hash or None,
    }
    return internal if any(value is not None for value in internal.values()) else None


def _waiting(row: Mapping[str, Any]) -> WaitingRun | None:
    due, kind = rfc3339.read(row.get("due")), _text(row.get("kind")) or BY_SCHEDULE
    reason = _text(row.get("reason"))
    if due is None or not _KIND.fullmatch(kind):
        return None
    # By hand the attempt may be any number, and delays grow with a power of it.
    attempt = min(max(1, _count(row.get("attempt"))), MOST_ATTEMPTS)
    return WaitingRun(
        due,
        kind,
        attempt,
        Reason(reason) if reason in _WAITING_REASONS else Reason.HELD,
        rfc3339.read(row.get("retryAt")),
    )


def _show_waiting(row: WaitingRun) -> dict[str, Any]:
    return _without_empty(
        due=rfc3339.show(row.due),
        kind=row.kind,
        attempt=row.attempt,
        reason=row.reason.value,
        retryAt=_show(row.retry_at),
    )


def _span(row: Mapping[str, Any]) -> ToldSpan | None:
    first, last = rfc3339.read(row.get("first")), rfc3339.read(row.get("last"))
    state, reason, count = _text(row.get("state")), _text(row.get("reason")), row.get("count")
    if first is None or last is None or last < first or state not in COUNTED:
        return None
    if reason not in _REASONS or not (number := _count(count)):
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


def _recent(row: Mapping[str, Any]) -> RecentRun | None:
    due, state = rfc3339.read(row.get("due")), _text(row.get("state"))
    if due is None or state not in _STATES:
        return None
    return RecentRun(
        due,
        RunState(state),
        started=rfc3339.read(row.get("started")),
        finished=rfc3339.read(row.get("finished")),
        reason=_text(row.get("reason")),
        attempt=min(max(1, _count(row.get("attempt"))), MOST_ATTEMPTS),
        job=_text(row.get("job")),
        exit_code=_exit_code(row.get("exitCode")),
        exit_reason=_text(row.get("exitReason")),
    )


_STATES = frozenset(state.value for state in RunState)


def _show_recent(row: RecentRun) -> dict[str, Any]:
    return _without_empty(
        due=rfc3339.show(row.due),
        state=row.state.value,
        started=_show(row.started),
        finished=_show(row.finished),
        reason=row.reason or None,
        attempt=row.attempt,
        job=row.job or None,
        exitCode=row.exit_code,
        exitReason=row.exit_reason or None,
    )


def _active(row: Mapping[str, Any]) -> JobRef | None:
    name = _text(row.get("name"))
    return JobRef(_text(row.get("namespace")), name, _text(row.get("uid"))) if name else None


def _show_active(ref: JobRef, ns: str) -> dict[str, Any]:
    return _without_empty(
        apiVersion="batch/v1", kind="Job", namespace=ns, name=ref.name, uid=ref.uid or None
    )


def _pause(raw: object) -> Pause | None:
    row = _mapping(raw)
    since = rfc3339.read(row.get("since"))
    if since is None:
        return None
    return Pause(since, _text(row.get("by")), _text(row.get("reason")))


def _show_pause(pause: Pause) -> dict[str, str]:
    return {"since": rfc3339.show(pause.since), "by": pause.by, "reason": pause.reason}


def _condition(row: Mapping[str, Any]) -> tuple[str, Condition] | None:
    kind, since = _text(row.get("type")), rfc3339.read(row.get("lastTransitionTime"))
    if not kind or since is None or row.get("status") not in ("True", "False", "Unknown"):
        return None
    return kind, Condition(
        str(row["status"]),
        _text(row.get("reason")),
        _text(row.get("message")),
        since,
        _count(row.get("observedGeneration")),
    )


def _show_timing(timing: Timing | None, since: Instant | None) -> dict[str, Any] | None:
    if timing is None:
        return None
    # A merge patch keeps what it does not name: the old timing's fields must be named to go.
    fields = dict.fromkeys(KINDS_OF_TIMING) | timing_fields(timing)
    if fields["interval"]:
        fields["interval"] = dict.fromkeys(("offset", "anchor")) | fields["interval"]
    return {"hash": timing_hash(timing), "since": _show(since), "fields": fields}


def placed_from_fields(raw: object) -> Placed | None:
    """The phase that `placed_fields` wrote; None when it was not written by it."""
    row = _mapping(raw)
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
        weight=_count(row.get("weight")) or None,
        slot=(_clock(row.get("slot")) or 0) // SLOT_S,
        window=_window(row.get("window")),
        reason=_text(row.get("reason")),
        load=_count(row.get("load")),
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
    row = _mapping(raw)
    start, end = _clock(row.get("start")), _clock(row.get("end"))
    return Window(start, end) if start is not None and end is not None else None


def show_slot(slot: int) -> str:
    """When the slot begins, UTC."""
    return show_clock(slot * SLOT_S)


def show_clock(second: int) -> str:
    """A time of day."""
    return f"{second // 3600:02}:{second // 60 % 60:02}"


def _clock(raw: object) -> int | None:
    found = _CLOCK.fullmatch(_text(raw))
    return int(found[1]) * 3600 + int(found[2]) * 60 if found else None


# --- values ---------------------------------------------------------------------------------------


def _rows(raw: object, read: Callable[[Mapping[str, Any]], T | None], most: int) -> list[T]:
    """The rows of a list that can be read."""
    rows = raw[:most] if isinstance(raw, list) else []
    return [found for row in rows if (found := read(_mapping(row))) is not None]


def _mapping(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _text(raw: object) -> str:
    return raw if isinstance(raw, str) else ""


def _count(raw: object) -> int:
    if not isinstance(raw, int) or isinstance(raw, bool) or raw < 0:
        return 0
    return min(raw, LARGEST_COUNT)


def _exit_code(raw: object) -> int | None:
    if not isinstance(raw, int) or isinstance(raw, bool) or abs(raw) > LARGEST_COUNT:
        return None
    return raw


def _seconds(raw: object) -> int:
    """How long a run lasts; 0 for what no run does."""
    seconds_s = _count(raw)
    return seconds_s if seconds_s <= LONGEST_RUN_S else 0


def _durations(raw: object) -> list[int]:
    rows = raw[-DURATIONS_COUNT:] if isinstance(raw, list) else []
    return [lasted_s for row in rows if (lasted_s := _seconds(row))]


def _show(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339.show(instant)


def _counts(raw: Mapping[str, Any]) -> dict[str, int]:
    return {name: count for name in COUNTED if (count := _count(raw.get(name)))}


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
