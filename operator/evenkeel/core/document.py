"""The status document of a schedule: what kubectl shows, and what a restart needs. Pure."""

import itertools
from typing import Any

from evenkeel.core.entry import Entry, Run
from evenkeel.model import BY_SCHEDULE, Instant, RunState
from evenkeel.resource import rfc3339
from evenkeel.resource.job import job_name
from evenkeel.resource.status import (
    ACTIVE_COUNT,
    COUNTED,
    WAITING_COUNT,
    Condition,
    RecentRun,
    show_clock,
    show_slot,
    timing_fields,
    timing_hash,
)

UPCOMING_COUNT = 5

TIMING_FIELDS = ("schedule", "dayMatch", "hourly", "interval", "at", "startTime", "endTime")


def next_dues(entry: Entry, *, now: float, count: int) -> list[Instant]:
    """The next due times; none while nothing may start."""
    if entry.dues is None or entry.halted:
        return []
    found: list[Instant] = []
    after: Instant | None = int(now)
    while len(found) < count and after is not None:
        after = entry.dues.next_after(after)
        if after is not None:
            found.append(after)
    return found


def status_document(entry: Entry, *, now: float) -> dict[str, Any]:
    """The whole status; a field that has no value is null, so that a merge patch removes it."""
    upcoming = next_dues(entry, now=now, count=UPCOMING_COUNT)
    active = sorted((run for run in entry.runs.values() if run.has_job), key=_has_proof)
    return {
        "observedGeneration": entry.generation,
        "scheduleText": _schedule_text(entry),
        "timeZone": entry.timing.zone if entry.timing else None,
        "nextRunTime": rfc3339.show(upcoming[0]) if upcoming else None,
        "upcoming": [rfc3339.show(due) for due in upcoming],
        "lastScheduleTime": _moment(entry.last_schedule),
        "lastSuccessfulTime": _moment(entry.last_success),
        "lastFailureTime": _moment(entry.last_failure),
        "lastResult": entry.last_result or None,
        "active": [_reference(run, entry) for run in itertools.islice(active, ACTIVE_COUNT)],
        "activeCount": len(active),
        "recent": [_row(row) for row in entry.recent],
        "consecutiveFailures": entry.consecutive_failures,
        "counts": {name: entry.counts.get(name, 0) for name in COUNTED},
        "countsSince": _moment(entry.counts_since),
        "mark": _moment(entry.reach_mark(now)),
        "timing": _timing(entry),
        "suspendedSince": _moment(entry.suspended_since),
        "resumedAt": _moment(entry.resumed_at),
        "pause": _pause(entry),
        "waiting": [rfc3339.show(due) for due in entry.waiting[:WAITING_COUNT]],
        "placement": _placement(entry),
        "templateHash": entry.template_hash or None,
        "conditions": [
            {
                "type": kind,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": rfc3339.show(condition.since),
                "observedGeneration": condition.generation,
            }
            for kind, condition in sorted(entry.conditions.items())
        ],
    }


def say_whether_active(entry: Entry, *, now: float) -> None:
    """A schedule that is never due again says so. Asked before the document is written: that a
    last due time has passed is no event that anybody tells of."""
    if entry.halted:
        return
    ended = not next_dues(entry, now=now, count=1)
    old = entry.conditions.get("Active")
    status, reason = ("False", "Ended") if ended else ("True", "Scheduled")
    if old is None or (old.status, old.reason) != (status, reason):
        since = old.since if old and old.status == status else int(now)
        entry.conditions["Active"] = Condition(status, reason, "", since, entry.generation)


def _schedule_text(entry: Entry) -> str | None:
    if entry.rejection is not None:  # the timing kept beside it is one that the user has replaced
        return f"refused: {entry.rejection.reason}"
    return entry.dues.text if entry.dues else None


def _has_proof(run: Run) -> bool:
    """The Job of a run whose create is under way is not there to speak for it: named first."""
    return run.state is RunState.RUNNING


def _reference(run: Run, entry: Entry) -> dict[str, str]:
    # While a retry is being created, its ref is still that of the attempt that failed.
    ref = run.ref if run.state is RunState.RUNNING else None
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": entry.ns,
        "name": ref.name if ref else job_name(entry.name, run.id, run.attempt),
    }
    if ref and ref.uid:
        reference["uid"] = ref.uid
    assert run.id.kind == BY_SCHEDULE
    return reference


def _row(row: RecentRun) -> dict[str, Any]:
    fields = {
        "due": rfc3339.show(row.due),
        "state": row.state.value,
        "started": _moment(row.started),
        "finished": _moment(row.finished),
        "reason": row.reason or None,
        "attempt": row.attempt,
        "job": row.job or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _timing(entry: Entry) -> dict[str, Any] | None:
    if entry.timing is None:
        return None
    # A merge patch keeps what it does not name: the old timing's fields must be named to go.
    fields = dict.fromkeys(TIMING_FIELDS) | timing_fields(entry.timing)
    if fields["interval"]:
        fields["interval"] = dict.fromkeys(("offset", "anchor")) | fields["interval"]
    return {
        "hash": timing_hash(entry.timing),
        "since": rfc3339.show(entry.since),
        "fields": fields,
    }


def _placement(entry: Entry) -> dict[str, Any] | None:
    placed = entry.placed
    if placed is None:
        return None
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
    }


def _pause(entry: Entry) -> dict[str, str] | None:
    if entry.pause is None:
        return None
    return {
        "since": rfc3339.show(entry.pause.since),
        "by": entry.pause.by,
        "reason": entry.pause.reason,
    }


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339.show(instant)
