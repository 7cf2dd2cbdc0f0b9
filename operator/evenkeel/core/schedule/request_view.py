"""The status of a request, from its entry: what a restart needs, and what people are shown. Pure.

A process that has not read the plan yet, because the schedule of the request is not there, leaves
what it does not know as it is stored.
"""

from evenkeel.core.messages import Document
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.run import Run
from evenkeel.reasons import Reason
from evenkeel.resource.request_record import (
    DUES_SHOWN_COUNT,
    REQUEST_ACTIVE_COUNT,
    ActiveRun,
    RequestMemory,
    RequestShown,
)
from evenkeel.resource.request_status import render_request

NOT_READ = ("plan", "dues", "total", "scheduleUid", "startedAt")


def document(request: RequestEntry, entry: Entry | None) -> Document:
    """The status as it stands."""
    rows: list[ActiveRun] = []
    if entry is not None:
        runs = sorted(entry.runs_of(request), key=lambda run: run.id)
        rows = [_row(entry, run) for run in runs]
    memory = RequestMemory(
        generation=request.generation,
        state=request.state,
        schedule_uid=request.schedule_uid,
        plan=request.plan,
        mark=request.mark,
        active=tuple(rows[:REQUEST_ACTIVE_COUNT]),
        record=request.record,
        started=request.started,
        finished=request.finished,
        conditions=request.conditions,
    )
    shown = RequestShown(request.total, tuple(request.dues[:DUES_SHOWN_COUNT]))
    found = render_request(memory, shown)
    if not request.whole:
        left = NOT_READ if request.ended else (*NOT_READ, "active")
        for field in left:
            del found[field]
    return found


def _row(entry: Entry, run: Run) -> ActiveRun:
    if run.has_job:
        job = run.ref.name if run.ref else ""
        return ActiveRun(run.id.due, run.attempt, None, job, run.ref.uid if run.ref else "")
    reason, retry_at = entry.why_waiting(run)
    assert isinstance(reason, Reason)
    return ActiveRun(run.id.due, run.attempt, reason, retry_at=retry_at)
