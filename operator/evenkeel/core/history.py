"""Finished Jobs: kept as far as the limits say, and deleted only when nothing needs them any more.

A Job is the proof of its run until the schedule's stored status tells of it: deleted earlier, the
process after a crash would find neither and launch the run again.
"""

from evenkeel.core.effects import DeleteJob
from evenkeel.core.entry import Entry, FinishedJob, Run
from evenkeel.model import Instant, JobFact, JobPhase, JobRef, RunState

LATE_CREATE_S = 75.0
"""A request that we gave up lives no longer in an API server: it allows 60 s, and we gave up 10."""


def keep_those_of(entry: Entry, run: Run, state: RunState, finished: Instant) -> None:
    """From now on only history keeps the run's Jobs, and only once this end is stored."""
    failed = list(run.failed_jobs)
    if run.ref and run.ref not in failed and state is RunState.FAILED and run.ref.uid:
        failed.append(run.ref)
    jobs = [(ref, False) for ref in failed]
    if run.ref and state is RunState.SUCCEEDED:
        jobs.append((run.ref, True))
    revision = entry.revision + 1
    keep_until = 0.0 if run.unanswered_at is None else run.unanswered_at + LATE_CREATE_S
    entry.finished_jobs += [
        FinishedJob(finished, run.id.due, ref, ok, revision, keep_until) for ref, ok in jobs
    ]


def keep_told(entry: Entry, facts: list[JobFact]) -> None:
    """Jobs of a run whose end is already stored."""
    for fact in facts:
        entry.finished_jobs.append(
            FinishedJob(
                fact.finished or 0, fact.run.due, fact.ref, fact.phase is JobPhase.SUCCEEDED, 0
            )
        )


def forget(entry: Entry, ref: JobRef) -> None:
    """It is gone, by whoever's hand."""
    entry.finished_jobs = [job for job in entry.finished_jobs if job.ref.uid != ref.uid]


def delete(entry: Entry, ref: JobRef, why: str, *, told: int | None = None) -> list[DeleteJob]:
    """Delete it once the status of revision `told` is stored; None: the next one."""
    revision = entry.revision if told is None else told
    if revision <= entry.written:
        return [DeleteJob(ref, why)]
    entry.to_delete.append((revision, ref, why))
    return []


def clean(entry: Entry, now: float) -> list[DeleteJob]:
    """What may go now that a status was stored: what was to be deleted, and beyond the limits."""
    gone = [
        DeleteJob(ref, why) for revision, ref, why in entry.to_delete if revision <= entry.written
    ]
    entry.to_delete = [waiting for waiting in entry.to_delete if waiting[0] > entry.written]
    schedule = entry.schedule
    if schedule is None or not entry.finished_jobs:
        return gone
    for succeeded, keep in ((True, schedule.keep_succeeded), (False, schedule.keep_failed)):
        jobs = sorted(
            (job for job in entry.finished_jobs if job.succeeded is succeeded),
            key=lambda job: (job.finished, job.due),
        )
        for job in jobs[: max(0, len(jobs) - keep)]:
            stored = job.revision <= entry.written and job.due <= entry.stored_mark
            if stored and job.keep_until <= now:
                entry.finished_jobs.remove(job)
                gone.append(DeleteJob(job.ref, "history"))
    return gone
