"""The Kubernetes Events of a run's or a span's end: one place, one sentence for each end.

CronJob's reasons and words where CronJob has an Event of that meaning, ours where it has none.
"""

from evenkeel import rfc3339
from evenkeel.core.effects import RunEnded, SpanEnded
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.missed import Span
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import RunState
from evenkeel.reasons import EventReason, JobReason, Reason


def run_ended(turn: Turn, entry: Entry, ended: RunEnded) -> None:
    """What the owner should know of a run's end."""
    due, why = rfc3339.show(ended.run.due), cause(ended.reason, ended.message)
    match ended.state:
        case RunState.SUCCEEDED:
            turn.event(
                entry,
                EventReason.SAW_COMPLETED_JOB,
                f"Saw completed job: {ended.job}, condition: Complete",
            )
        case RunState.FAILED if ended.reason in (Reason.NAME_TAKEN, Reason.REFUSED):
            turn.event(
                entry,
                EventReason.FAILED_CREATE,
                f"Error creating job for the run due {due}: {ended.message}",
                warning=True,
            )
        case RunState.FAILED:
            if ended.reason is Reason.JOB_FAILED or isinstance(ended.reason, JobReason):
                turn.event(
                    entry,
                    EventReason.SAW_COMPLETED_JOB,
                    f"Saw completed job: {ended.job}, condition: Failed",
                )
            turn.event(
                entry,
                EventReason.RUN_FAILED,
                f"The run due {due} failed: {why}",
                warning=True,
            )
        case RunState.MISSED:
            turn.event(
                entry,
                EventReason.MISS_SCHEDULE,
                f"Missed scheduled time to start a job: {due}: {why}",
                warning=True,
            )
        case RunState.SKIPPED if ended.reason is Reason.OVERLAP:
            turn.event(
                entry,
                EventReason.JOB_ALREADY_ACTIVE,
                f"The run due {due} was skipped: a run of this schedule is still active and "
                "concurrencyPolicy is Forbid",
            )
        case RunState.SKIPPED:
            turn.event(
                entry,
                EventReason.RUN_SKIPPED,
                f"The run due {due} was skipped: {why}",
                warning=ended.reason is Reason.QUEUE_FULL,
            )
        case RunState.LOST if ended.reason is Reason.JOB_DELETED:
            turn.event(
                entry,
                EventReason.MISSING_JOB,
                f"Active job went missing: {ended.job}: the run due {due} is lost: {ended.message}",
            )
        case RunState.LOST:
            turn.event(
                entry, EventReason.RUN_LOST, f"The run due {due} is lost: {why}", warning=True
            )


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


def cause(reason: str | None, message: str) -> str:
    """The reason of a failure, and what Kubernetes says of it."""
    return ": ".join(part for part in (reason or "", message) if part)
