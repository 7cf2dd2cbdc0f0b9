"""Finished Jobs: kept as far as the limits say, and deleted only when nothing needs them any more.

A Job is the proof of its run until the schedule's stored status tells of it: deleted earlier, the
process after a crash would find neither and launch the run again.
"""

from evenkeel.core.effects import DeleteJob, WriteStatus
from evenkeel.core.messages import StatusWritten
from evenkeel.core.schedule import account
from evenkeel.core.schedule.entry import Entry, FinishedJob, ToDelete, Unwanted
from evenkeel.core.schedule.progress import Storing
from evenkeel.core.schedule.run import Run
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import BY_SCHEDULE, Instant, JobFact, JobRef, JobState, RunState
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


def keep_those_of(
    entry: Entry, run: Run, state: RunState, finished: Instant, storing: Storing
) -> None:
    """From now on only history keeps the run's Jobs, and only once this end is stored."""
    failed = list(run.failed_jobs)
    if run.ref and run.ref not in failed and state is RunState.FAILED and run.ref.uid:
        failed.append(run.ref)
    jobs = [(ref, False) for ref in failed]
    if run.ref and state is RunState.SUCCEEDED:
        jobs.append((run.ref, True))
    keep_until_m = 0.0 if run.unanswered_m is None else run.unanswered_m + LATE_CREATE_S
    entry.finished_jobs += [
        FinishedJob(finished, run.id, ref, ok, storing, storing.revision, keep_until_m)
        for ref, ok in jobs
    ]


def keep_told(entry: Entry, facts: list[JobFact]) -> None:
    """Jobs of a run whose end is already stored."""
    known = {job.ref.uid for job in entry.finished_jobs}
    for fact in [fact for fact in facts if fact.ref.uid not in known]:
        entry.finished_jobs.append(
            FinishedJob(
                fact.finished or 0,
                fact.run,
                fact.ref,
                fact.state is JobState.SUCCEEDED,
                entry.storing,
                0,
            )
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
    turn: Turn,
    entry: Entry,
    ref: JobRef,
    why: RunReason,
    *,
    storing: Storing | None = None,
    shown: int | None = None,
) -> None:
    """Delete a Job once a status of revision `shown` is stored; None: the present one. `storing`:
    of which status; None: that of the schedule."""
    storing = storing or entry.storing
    waiting = ToDelete(storing, storing.revision if shown is None else shown, ref, why)
    if waiting.is_due:
        _delete(turn, entry, ref, why)
    else:
        entry.to_delete.append(waiting)


def delete_unwanted(turn: Turn, entry: Entry, ref: JobRef, unwanted: Unwanted) -> None:
    """A Job that is not wanted exists after all."""
    storing, revision = unwanted.storing, unwanted.revision
    delete(turn, entry, ref, unwanted.reason, storing=storing, shown=revision)


def clean(turn: Turn, entry: Entry) -> None:
    """Delete what may go now that a status was stored: what was to be deleted, and what is beyond
    the limits, which count Jobs by schedule and those of each request apart."""
    for waiting in entry.to_delete:
        if waiting.is_due:
            _delete(turn, entry, waiting.ref, waiting.why)
    entry.to_delete = [waiting for waiting in entry.to_delete if not waiting.is_due]
    if entry.schedule is None or not entry.finished_jobs:
        return
    groups: dict[tuple[str, bool], list[FinishedJob]] = {}
    for job in entry.finished_jobs:
        groups.setdefault((job.run.kind, job.succeeded), []).append(job)
    for (_, succeeded), jobs in groups.items():
        schedule = entry.schedule
        keep = schedule.keep_succeeded if succeeded else schedule.keep_failed
        jobs.sort(key=lambda job: (job.finished, job.run))
        for job in jobs[: max(0, len(jobs) - keep)]:
            if _may_go(turn, entry, job):
                entry.finished_jobs.remove(job)
                _delete(turn, entry, job.ref, HISTORY)


def _may_go(turn: Turn, entry: Entry, job: FinishedJob) -> bool:
    """A stored status tells of its run's end, and no create of it can arrive any more."""
    passed = job.run.kind != BY_SCHEDULE or job.run.due <= entry.storing.stored_mark
    return job.revision <= job.storing.written and passed and job.keep_until_m <= turn.monotonic


def _delete(turn: Turn, entry: Entry, ref: JobRef, why: str) -> None:
    turn.emit(DeleteJob(ref, why))
    turn.event(entry, EventReason.SUCCESSFUL_DELETE, f"Deleted job {ref.name}: {why}")
