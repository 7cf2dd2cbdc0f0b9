"""What an earlier process left is taken over: its runs, from their Jobs and its last status.

Once for each schedule, when its status, its spec and the list of Jobs are all there. First all of
it is gathered, then each run is decided. What neither shows any more, and the status knew as alive,
is lost: launched again it might run twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from evenkeel.core.effects import DeleteJob
from evenkeel.core.schedule import account, attempts, history, jobs, life, trouble
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.missed import Span
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import (
    BY_SCHEDULE,
    ENDED,
    Concurrency,
    Instant,
    JobFact,
    JobRef,
    JobState,
    Retry,
    RunId,
    RunState,
)
from evenkeel.reasons import DelayCause, Reason
from evenkeel.resource.job import read_job_name
from evenkeel.resource.record import ACTIVE_COUNT, EMPTY, Memory, RecentRun, WaitingRun
from evenkeel.resource.request_record import ActiveRun

_DELAYED_BY = {
    Reason.QUEUED: DelayCause.QUEUE,
    Reason.HELD: DelayCause.HELD,
    Reason.UNANNOUNCED: DelayCause.HELD,
}
"""By the reason for which a run waited when the earlier process told of it last."""

FINISHED = (JobState.SUCCEEDED, JobState.FAILED)


@dataclass(frozen=True, slots=True)
class _Past:
    """All that an earlier process left of a schedule: its last status, and the Jobs of each run."""

    memory: Memory
    ended: dict[RunId, RunState]
    active: dict[RunId, tuple[int, JobRef]]
    """Runs that the status calls active, with the attempt that it names."""
    waiting: dict[RunId, WaitingRun]
    jobs: dict[RunId, list[JobFact]]
    """The earliest run first; of each its last attempt last."""
    vanished: frozenset[RunId]
    """Runs whose last attempt may have run, and whose Job is not there."""

    def speaks_for(self, fact: JobFact) -> bool:
        """Whether a run's last Job tells how it stands. It does not where the Job of a later
        attempt is gone: begun again by this one, that attempt would be made a second time."""
        if fact.state is JobState.SUCCEEDED:
            return True  # one given up as too slow has succeeded after all: no other is needed
        if fact.run in self.vanished:
            return False
        row = self.waiting.get(fact.run)
        return row is None or row.attempt <= fact.attempt + (fact.state is JobState.FAILED)

    def tells_end_of(self, fact: JobFact) -> bool:
        """Whether the status has told that the run of this Job ended."""
        run = fact.run
        if run in self.active or run in self.waiting:
            return False
        if run in self.ended:
            return True
        if run.due > (self.memory.mark or 0):
            return False
        if len(self.active) < ACTIVE_COUNT:
            return True
        # One that names as many as it may leaves out others, which may have ended since.
        record, succeeded = self.memory.record, fact.state is JobState.SUCCEEDED
        last = record.last_success if succeeded else record.last_failure
        return fact.finished is not None and fact.finished <= (last or 0)


def take_over(turn: Turn, entry: Entry, facts: Iterable[JobFact]) -> None:
    """Once: take over the runs of an earlier process from its Jobs and its last status."""
    if entry.taken_over:
        return
    entry.taken_over = True
    past = _gather(turn, entry, facts)
    last = [found[-1] for found in past.jobs.values() if past.speaks_for(found[-1])]
    spoken_for = {fact.run for fact in last}
    ended = {fact.run for fact in last if past.tells_end_of(fact)}
    for fact in last:
        if fact.run in ended:
            _leave_ended(turn, entry, past, fact)
        else:
            _follow_on(turn, entry, past, fact)
    entry.open = dict(sorted(entry.open.items()))
    for run, row in past.waiting.items():
        if run not in spoken_for and run not in past.vanished:
            _wait_on(turn, entry, past, run, row)
    for run in sorted(past.vanished - spoken_for):
        _mark_lost(turn, entry, past, run)
    trouble.forget_start(turn, entry)
    if past.memory.unnamed_active and len(past.active) >= ACTIVE_COUNT:
        _count_unnamed_as_lost(turn, entry, past, spoken_for - ended)
    _tell_ledger(turn, entry, past, ended=ended, alive=spoken_for - ended)


def _tell_ledger(
    turn: Turn, entry: Entry, past: _Past, *, ended: set[RunId], alive: set[RunId]
) -> None:
    """What the stored status tells: the ledger may lack the last of it."""
    mark = entry.cursor if past.memory.mark is None else past.memory.mark
    recent = {row.due: row for row in past.memory.record.recent}
    for run in ended:
        if run.due not in recent:
            recent[run.due] = _row(past.jobs[run][-1])
    alive = {*alive, *past.active, *past.waiting} - ended
    named = sorted(run for run in alive if run.due <= mark)
    rows = [recent[due] for due in sorted(recent)]
    entry.storing.tells_timing = past.memory.timing is not None
    turn.emit(account.known(entry, mark=mark, recent=rows, alive=named))
    if entry.dues is not None and not entry.storing.tells_timing:
        # A process that ends before a status tells of it leaves nothing behind: the next one may
        # reckon from later on.
        account.timing_began(turn, entry)
    entry.storing.told_mark = min([mark, *(run.due - 1 for run in named)])
    if entry.suspended_since is not None or entry.pause is not None:
        assert entry.skipped_as is not None
        account.opened(turn, entry, entry.skipped_as)


def _row(fact: JobFact) -> RecentRun:
    """Of a run whose end a status has told, and whose Job is still there."""
    failed = fact.state is JobState.FAILED
    return RecentRun(
        fact.run.due,
        RunState.FAILED if failed else RunState.SUCCEEDED,
        started=fact.started,
        finished=fact.finished,
        reason=(fact.reason or Reason.JOB_FAILED) if failed else "",
        attempt=fact.attempt,
        job=fact.ref.name,
    )


def _gather(turn: Turn, entry: Entry, facts: Iterable[JobFact]) -> _Past:
    memory, entry.memory = entry.memory or EMPTY, None
    found: dict[RunId, list[JobFact]] = {}
    for fact in sorted(facts, key=lambda fact: (fact.run, fact.attempt)):
        if not jobs.is_of(entry, fact):
            continue
        if fact.run.kind == BY_SCHEDULE:
            found.setdefault(fact.run, []).append(fact)
        else:
            jobs.keep_for_request(entry, fact)
    active: dict[RunId, tuple[int, JobRef]] = {}
    for ref in memory.active:
        named = read_job_name(ref.name, entry.name)
        if named is not None and named.kind == BY_SCHEDULE:  # of others their requests tell
            active[RunId(entry.uid, named.due)] = (named.attempt, ref)
    waiting = {RunId(entry.uid, row.due): row for row in memory.waiting}
    there = {fact.ref.name for several in found.values() for fact in several}
    vanished = {run for run, (_, ref) in active.items() if ref.name not in there}
    for run, row in waiting.items():
        launched = any(fact.attempt >= row.attempt for fact in found.get(run, ()))
        if not launched and may_have_vanished(turn, entry, row):
            vanished.add(run)
    return _Past(
        memory=memory,
        ended={
            RunId(entry.uid, row.due): row.state
            for row in memory.record.recent
            if row.state in ENDED
        },
        active=active,
        waiting=waiting,
        jobs=found,
        vanished=frozenset(vanished),
    )


def may_have_vanished(turn: Turn, entry: Entry, row: WaitingRun | ActiveRun) -> bool:
    """Its create was announced, and its Job is not there: either there never was one, or there was
    one and its ttl has taken it. The latter only if the ttl can have passed since."""
    ahead = row.retry_at is None and row.due > turn.now
    if row.reason is not Reason.LAUNCHING or ahead:
        return False
    schedule = entry.schedule
    if schedule is None or schedule.template_hash != entry.template_hash:
        return True  # the ttl of the template that it was created from is not known any more
    return entry.ttl_may_have_passed(turn.now - (row.retry_at or row.due))


def _leave_ended(turn: Turn, entry: Entry, past: _Past, fact: JobFact) -> None:
    """Its end is stored: its Jobs are history, or were to be deleted and that was not told."""
    if fact.run.due > entry.cursor:
        entry.decided.add(fact.run)
    if fact.state in FINISHED:
        history.keep_told(entry, past.jobs[fact.run])
    elif past.ended.get(fact.run) is not RunState.LOST:
        turn.emit(DeleteJob(fact.ref, Reason.CANCELLED))


def _follow_on(turn: Turn, entry: Entry, past: _Past, fact: JobFact) -> None:
    run = Run(fact.run, taken_m=turn.monotonic, attempt=fact.attempt, late=True, adopted=True)
    run.failed_jobs = [earlier.ref for earlier in past.jobs[fact.run][:-1]]
    run.done = [account.attempt_of(earlier) for earlier in past.jobs[fact.run][:-1]]
    entry.runs[run.id] = run
    if run.id.due > entry.cursor:
        entry.open[run.id] = None
    jobs.follow(turn, entry, run, fact)


def _wait_on(turn: Turn, entry: Entry, past: _Past, run_id: RunId, row: WaitingRun) -> None:
    """A run that waited without a Job: queued, held, between two attempts, or about to launch. By
    hand a row may say anything: what comes of it is a stage that the scheduler makes itself."""
    waits_for_due = row.reason in (Reason.LAUNCHING, Reason.TAKEN_UP)
    if run_id.due > turn.now and waits_for_due:
        entry.rewind(min(entry.cursor, run_id.due - 1))  # announced ahead: it is taken up again
        entry.pull_mark_back(turn.second)
        return
    run = Run(run_id, taken_m=turn.monotonic, late=True, attempt=row.attempt)
    run.delay(_DELAYED_BY.get(row.reason, DelayCause.RESTART))
    run.failed_jobs = [fact.ref for fact in past.jobs.get(run_id, ())]
    run.done = [account.attempt_of(fact) for fact in past.jobs.get(run_id, ())]
    entry.runs[run_id] = run
    if row.attempt > 1 and row.reason in (Reason.RETRYING, Reason.LAUNCHING):
        run.stage, run.reason = Stage.RETRYING, Reason.RETRYING
        turn.retry_later(run, delay_s=left_of_delay(turn, entry, row))
    elif row.attempt == 1 and row.reason is Reason.QUEUED:
        run.stage, run.reason = Stage.QUEUED, Reason.QUEUED
        entry.queue.append(run_id)
    else:
        run.stage, run.reason = Stage.HELD, Reason.HELD
        if row.attempt == 1:  # beyond grace it is one set with all that is not launched
            run.taken_m -= max(0.0, turn.now - run_id.due)
        turn.retry_later(run, delay_s=run_id.due - turn.now)


def left_of_delay(turn: Turn, entry: Entry, row: WaitingRun | ActiveRun) -> float:
    """By hand the next try may stand in the year 9999, and the run would keep its place so long."""
    if row.retry_at is None or row.reason is not Reason.RETRYING:
        return 0.0
    longest_s = attempts.retry_delay_s(entry.retry or Retry(), row.attempt)
    return min(row.retry_at - turn.now, longest_s)


def _mark_lost(turn: Turn, entry: Entry, past: _Past, run_id: RunId) -> None:
    """A run that was alive, or may have been, and has no Job any more: never launched again."""
    if run_id in past.active:
        attempt, ref = past.active[run_id]
        stage = Stage.RUNNING
    else:
        attempt, ref, stage = past.waiting[run_id].attempt, None, Stage.ASKING
    run = Run(run_id, taken_m=turn.monotonic, stage=stage, attempt=attempt, ref=ref, late=True)
    run.failed_jobs = [fact.ref for fact in past.jobs.get(run_id, ())]
    run.done = [account.attempt_of(fact) for fact in past.jobs.get(run_id, ())]
    entry.runs[run_id] = run
    how, reason = _how_it_went(entry, run_id.due)
    life.end(turn, entry, run, how, reason, answered=True)


def _count_unnamed_as_lost(turn: Turn, entry: Entry, past: _Past, followed: set[RunId]) -> None:
    """A status counts more active runs than it names. Of those whose Jobs are gone nobody knows
    any more which they were; that they were is counted. What is due after the mark is found from
    there."""
    memory, mark = past.memory, past.memory.mark or 0
    found = sum(
        run.due <= mark and run not in past.active and run not in past.waiting for run in followed
    )
    lost = memory.unnamed_active - found
    if lost <= 0:
        return
    last = mark or turn.second
    first = min((run.due for run in past.active), default=last)
    life.lose_unnamed(turn, entry, Span(min(first, last), last, lost))


def _how_it_went(entry: Entry, due: Instant) -> tuple[RunState, Reason]:
    """Under Replace a run whose Job is gone and a later one's is there was replaced: the process
    that did so ended before it could tell, and no failure is to be counted."""
    replaces = entry.schedule is not None and entry.schedule.concurrency is Concurrency.REPLACE
    if replaces and any(run.id.due > due and run.has_job for run in entry.runs.values()):
        return RunState.CANCELLED, Reason.REPLACED
    return RunState.LOST, Reason.OUTCOME_UNKNOWN
