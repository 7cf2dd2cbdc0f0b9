"""Finished Jobs: kept as far as the limits say, and deleted only when nothing needs them any more.

A Job is the proof of its run until the schedule's stored status tells of it: deleted earlier, the
process after a crash would find neither and launch the run again.
"""

from evenkeel.core.effects import DeleteJob, WriteStatus
from evenkeel.core.messages import StatusWritten
from evenkeel.core.schedule import account
from evenkeel.core.schedule.entry import Entry, FinishedJob
from evenkeel.core.schedule.run import Run
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, JobFact, JobRef, JobState, RunState
from evenkeel.reasons import EventReason, RunReason

LATE_CREATE_S = 75.0
"""A request that we gave up lives no longer in an API server: it allows 60 s, and we gave up 10."""

HISTORY = "history"
"""Why a Job beyond the limits is deleted."""


def status_written(turn: Turn, entry: Entry, message: StatusWritten) -> None:
    """The status of this revision is stored: what waited for that may be deleted."""
    entry.storing.written = max(entry.storing.written, message.revision)
    revision, mark, told_mark = entry.storing.sent
    if message.revision >= revision:
        entry.storing.stored_mark, entry.storing.told_mark = mark, told_mark
        entry.storing.tells_timing = entry.timing is not None
    account.status_stored(turn, entry, message.revision)
    if entry.storing.revision > entry.storing.written:
        turn.emit(WriteStatus(entry.uid))
    if entry.to_delete or entry.finished_jobs:
        clean(turn, entry)


def keep_those_of(entry: Entry, run: Run, state: RunState, finished: Instant) -> None:
    """From now on only history keeps the run's Jobs, and only once this end is stored."""
    failed = list(run.failed_jobs)
    if run.ref and run.ref not in failed and state is RunState.FAILED and run.ref.uid:
        failed.append(run.ref)
    jobs = [(ref, False) for ref in failed]
    if run.ref and state is RunState.SUCCEEDED:
        jobs.append((run.ref, True))
    keep_until_m = 0.0 if run.unanswered_m is None else run.unanswered_m + LATE_CREATE_S
    entry.finished_jobs += [
        FinishedJob(finished, run.id, ref, ok, entry.storing.revision, keep_until_m)
        for ref, ok in jobs
    ]


def keep_told(entry: Entry, facts: list[JobFact]) -> None:
    """Jobs of a run whose end is already stored."""
    for fact in facts:
        entry.finished_jobs.append(
            FinishedJob(fact.finished or 0, fact.run, fact.ref, fact.state is JobState.SUCCEEDED, 0)
        )


def forget(entry: Entry, ref: JobRef) -> None:
    """It is gone, by whoever's hand."""
    entry.finished_jobs = [job for job in entry.finished_jobs if job.ref.uid != ref.uid]


def keep_listed(entry: Entry, listed: set[tuple[str, str]], listed_at: Instant) -> None:
    """A list of all Jobs does not show some: history must not keep a place for what is gone."""
    entry.finished_jobs = [
        job
        for job in entry.finished_jobs
        if (job.ref.ns, job.ref.name) in listed or job.finished >= listed_at
    ]


def delete(
    turn: Turn, entry: Entry, ref: JobRef, why: RunReason, *, shown: int | None = None
) -> None:
    """Delete a Job once the status of revision `shown` is stored; None: the present one."""
    revision = entry.storing.revision if shown is None else shown
    if revision <= entry.storing.written:
        _delete(turn, entry, ref, why)
    else:
        entry.to_delete.append((revision, ref, why))


def clean(turn: Turn, entry: Entry) -> None:
    """Delete what may go now that a status was stored: what was to be deleted, and what is beyond
    the limits."""
    for revision, ref, why in entry.to_delete:
        if revision <= entry.storing.written:
            _delete(turn, entry, ref, why)
    entry.to_delete = [waiting for waiting in entry.to_delete if waiting[0] > entry.storing.written]
    schedule = entry.schedule
    if schedule is None or not entry.finished_jobs:
        return
    for succeeded, keep in ((True, schedule.keep_succeeded), (False, schedule.keep_failed)):
        jobs = sorted(
            (job for job in entry.finished_jobs if job.succeeded is succeeded),
            key=lambda job: (job.finished, job.run),
        )
        for job in jobs[: max(0, len(jobs) - keep)]:
            stored = (
                job.revision <= entry.storing.written and job.run.due <= entry.storing.stored_mark
            )
            if stored and job.keep_until_m <= turn.monotonic:
                entry.finished_jobs.remove(job)
                _delete(turn, entry, job.ref, HISTORY)


def _delete(turn: Turn, entry: Entry, ref: JobRef, why: str) -> None:
    turn.emit(DeleteJob(ref, why))
    turn.event(entry, EventReason.SUCCESSFUL_DELETE, f"Deleted job {ref.name}: {why}")
