"""The Kubernetes Events of a run's or a span's end: one place, one sentence for each end.

CronJob's reasons and words where CronJob has an Event of that meaning, ours where it has none.
"""

from functools import partial
from typing import Any

from evenkeel import rfc3339
from evenkeel.core.effects import RunEnded, SpanEnded
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.missed import Span
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Cause, RunState
from evenkeel.reasons import EventReason, JobReason, Reason


def run_ended(turn: Turn, entry: Entry, ended: RunEnded) -> None:
    """What the owner, or whoever asked for the run, should know of its end."""
    due, why_ = rfc3339.show(ended.run.due), why(ended.reason, ended.message, ended.cause)
    say = partial(turn.event, entry, run=ended.run)
    match ended.state:
        case RunState.SUCCEEDED:
            done = f"Saw completed job: {ended.job}, condition: Complete"
            say(EventReason.SAW_COMPLETED_JOB, done)
        case RunState.FAILED if ended.reason in (Reason.NAME_TAKEN, Reason.REFUSED):
            error = f"Error creating job for the run due {due}: {ended.message}"
            say(EventReason.FAILED_CREATE, error, warning=True)
        case RunState.FAILED:
            if ended.reason is Reason.JOB_FAILED or isinstance(ended.reason, JobReason):
                done = f"Saw completed job: {ended.job}, condition: Failed"
                say(EventReason.SAW_COMPLETED_JOB, done)
            say(EventReason.RUN_FAILED, f"The run due {due} failed: {why_}", warning=True)
        case RunState.MISSED:
            missed = f"Missed scheduled time to start a job: {due}: {why_}"
            say(EventReason.MISS_SCHEDULE, missed, warning=True)
        case RunState.SKIPPED if ended.reason is Reason.OVERLAP:
            cause = ended.message or (
                "a run of this schedule is still active and concurrencyPolicy is Forbid"
            )
            say(EventReason.JOB_ALREADY_ACTIVE, f"The run due {due} was skipped: {cause}")
        case RunState.SKIPPED:
            full = ended.reason is Reason.QUEUE_FULL
            say(EventReason.RUN_SKIPPED, f"The run due {due} was skipped: {why_}", warning=full)
        case RunState.LOST if ended.reason is Reason.JOB_DELETED:
            say(
                EventReason.MISSING_JOB,
                f"Active job went missing: {ended.job}: the run due {due} is lost: {ended.message}",
            )
        case RunState.LOST:
            say(EventReason.RUN_LOST, f"The run due {due} is lost: {why_}", warning=True)


def span_ended(turn: Turn, entry: Entry, ended: SpanEnded) -> None:
    """What the owner should know of a span that got one verdict."""
    span = Span(ended.first, ended.last, ended.count)
    match ended.state:
        case RunState.MISSED:
            turn.event(
                entry,
                EventReason.MISS_SCHEDULE,
                f"Missed scheduled time to start a job: {span.times}: {ended.reason}",
                warning=True,
            )
        case RunState.SKIPPED:
            turn.event(entry, EventReason.RUN_SKIPPED, f"{span} skipped: {ended.reason}")
        case RunState.LOST:
            turn.event(entry, EventReason.RUN_LOST, f"{span} lost: {ended.reason}", warning=True)


def why(reason: str | None, message: str, cause: Cause | None = None) -> str:
    """The reason of an end, what Kubernetes says of it, and how the container ended that failed."""
    said = ": ".join(part for part in (reason or "", message) if part)
    return f"{said}; {_how_it_ended(cause)}" if cause else said


def _how_it_ended(cause: Cause) -> str:
    subject = f"container {cause.container}" if cause.container else "its Pod"
    code = "failed" if cause.exit_code is None else f"exited with code {cause.exit_code}"
    return f"{subject} {code} ({cause.reason})" + (f": {cause.message}" if cause.message else "")


def fields(cause: Cause | None) -> dict[str, Any]:
    """For a log line: never the message, which is a tenant's text."""
    if cause is None:
        return {}
    code = {} if cause.exit_code is None else {"exit_code": cause.exit_code}
    return {**code, "exit_reason": cause.reason}
