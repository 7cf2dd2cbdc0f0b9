"""What an earlier process left is taken over: its runs, from their Jobs and its last status.

Once for each schedule, when its status, its spec and the list of Jobs are all there. What neither
shows any more, and the status knew as alive, is lost: launched again it might run twice.
"""

from dataclasses import dataclass

from evenkeel.core import follow, history, life, take
from evenkeel.core.effects import DeleteJob
from evenkeel.core.entry import Entry, Run
from evenkeel.core.missed import Span
from evenkeel.core.state import State
from evenkeel.model import ENDED, Concurrency, Instant, JobFact, JobPhase, Retry, RunId, RunState
from evenkeel.resource.job import due_of, job_name, read_job_name
from evenkeel.resource.status import ACTIVE_COUNT, EMPTY, Memory, RecentRun


@dataclass(frozen=True, slots=True)
class _Past:
    """All that an earlier process left of a schedule: its last status, and the Jobs of each run."""

    memory: Memory
    rows: dict[Instant, RecentRun]
    ended: dict[Instant, RunState]
    alive: set[Instant]
    """By due time: where a retry was launched since, the status names the attempt before it."""
    waiting: set[Instant]
    attempts: dict[RunId, list[JobFact]]
    """The earliest run first; of each its last attempt last."""

    @property
    def mark(self) -> Instant:
        return self.memory.mark or 0

    def speaks_for(self, fact: JobFact) -> bool:
        """Whether a run's last Job tells how it stands. It does not where the Job of a later
        attempt was deleted: begun again by this one, that attempt would be made a second time."""
        row = self.rows.get(fact.run.due)
        if fact.run.due not in self.waiting or row is None or not row.tells_attempt:
            return True
        if fact.phase is JobPhase.SUCCEEDED:
            return True  # one given up as too slow has succeeded after all: no other is needed
        return row.attempt <= fact.attempt + (fact.phase is JobPhase.FAILED)

    def tells_end_of(self, fact: JobFact) -> bool:
        """Whether the status has told that the run of this Job ended."""
        due = fact.run.due
        if due in self.alive:
            return False
        if due in self.ended:
            return True
        if due > self.mark or due in self.waiting:
            return False
        if len(self.memory.active) < ACTIVE_COUNT:
            return True
        # One that names as many as it may leaves out others, which may have ended since.
        succeeded = fact.phase is JobPhase.SUCCEEDED
        last = self.memory.last_success if succeeded else self.memory.last_failure
        return fact.finished is not None and fact.finished <= (last or 0)

    def names(self, run: RunId) -> bool:
        """Whether the status calls it alive or waiting."""
        return run.due in self.alive or run.due in self.waiting


def take_over(state: State, entry: Entry) -> None:
    """Once: take over the runs of an earlier process from its Jobs and its last status."""
    if entry.taken_over:
        return
    entry.taken_over = True
    past = _gather(state, entry)
    last = [facts[-1] for facts in past.attempts.values() if past.speaks_for(facts[-1])]
    with_jobs = {fact.run for fact in last}
    ended = {fact.run for fact in last if past.tells_end_of(fact)}
    for fact in last:
        if fact.run in ended:
            _leave_ended(state, entry, past, fact)
        else:
            _follow_on(state, entry, past, fact)
    entry.open = dict(sorted(entry.open.items()))
    _remember_waiting(state, entry, past, with_jobs)
    _mark_lost(state, entry, past, with_jobs)
    _count_unnamed_as_lost(state, entry, past, with_jobs - ended)


def _gather(state: State, entry: Entry) -> _Past:
    memory, entry.memory = entry.memory or EMPTY, None
    jobs = state.job_facts.pop(entry.uid, {}).values()
    attempts: dict[RunId, list[JobFact]] = {}
    for fact in sorted(jobs, key=lambda fact: (fact.run.due, fact.attempt)):
        if follow.is_of(entry, fact):
            attempts.setdefault(fact.run, []).append(fact)
    return _Past(
        memory=memory,
        rows={row.due: row for row in memory.recent},
        ended={row.due: row.state for row in memory.recent if row.state in ENDED},
        alive={due for ref in memory.active if (due := due_of(ref.name)) is not None},
        waiting=set(memory.waiting),
        attempts=attempts,
    )


def _leave_ended(state: State, entry: Entry, past: _Past, fact: JobFact) -> None:
    """Its end is stored: its Jobs are history, or were to be deleted and that was not told."""
    if fact.run.due > entry.cursor:
        entry.decided.add(fact.run.due)
    if fact.phase in (JobPhase.SUCCEEDED, JobPhase.FAILED):
        history.keep_told(entry, past.attempts[fact.run])
    elif past.ended.get(fact.run.due) is not RunState.LOST:
        state.emit(DeleteJob(fact.ref, "cancelled"))


def _follow_on(state: State, entry: Entry, past: _Past, fact: JobFact) -> None:
    run = Run(fact.run, taken_at=state.now, attempt=fact.attempt, late=True)
    run.failed_jobs = [earlier.ref for earlier in past.attempts[fact.run][:-1]]
    entry.runs[run.id] = run
    if run.id.due > entry.cursor:
        entry.open[run.id.due] = None
    follow.follow(state, entry, run, fact)


def _remember_waiting(state: State, entry: Entry, past: _Past, with_jobs: set[RunId]) -> None:
    """Runs that waited without a Job: queued, held, or between two attempts."""
    for due in past.memory.waiting:
        run_id = RunId(entry.uid, due)
        if run_id in with_jobs or run_id in entry.runs:
            continue
        row = past.rows.get(due)
        run = Run(run_id, taken_at=state.now, late=True)
        run.failed_jobs = [fact.ref for fact in past.attempts.get(run_id, ())]
        entry.runs[run_id] = run
        if row and row.state is RunState.RETRYING:
            run.state, run.attempt, run.reason = RunState.RETRYING, row.attempt, row.reason
            state.retry_later(
                run, at=max(state.now, _next_attempt_at(entry, row, now=int(state.now)))
            )
        elif (row and row.reason == "queued") or (row is None and _queues(entry)):
            run.reason = "queued"
            entry.queue.append(run_id)
        else:
            run.attempt, run.reason = row.attempt if row else 1, "held"
            if _has_not_begun(entry, row):  # beyond grace it is one set with all unlaunched ones
                run.taken_at = min(state.now, due)
            state.retry_later(run, at=max(state.now, due))
    take.next_in_queue(state, entry)


def _next_attempt_at(entry: Entry, row: RecentRun, *, now: Instant) -> Instant:
    """Its failed Job is gone, by a short ttl perhaps: the row alone tells when its delay began."""
    if row.finished is None:
        return row.due
    # By hand it may be any time: of the year 9999 it would keep its place until then.
    return min(row.finished, now) + follow.retry_delay_s(entry.retry or Retry(), row.attempt)


def _queues(entry: Entry) -> bool:
    """Ten rows tell less than 128 dues: what they leave out waited behind a place, not for one.
    Of a schedule that is rejected now nobody knows: taken for held they would start together."""
    return entry.schedule is None or entry.schedule.concurrency is Concurrency.QUEUE


def _has_not_begun(entry: Entry, row: RecentRun | None) -> bool:
    """Without its row a run that failed and waits for a retry looks like one that was held."""
    if row is None:
        return entry.retry is not None and entry.retry.limit == 0
    return row.attempt == 1


def _mark_lost(state: State, entry: Entry, past: _Past, with_jobs: set[RunId]) -> None:
    """A run that was alive and has no Job any more is lost: never launched again."""
    there = {fact.ref.name for facts in past.attempts.values() for fact in facts}
    dues = {row.job: row.due for row in past.memory.recent}
    for ref in past.memory.active:
        if ref.name in there:
            continue
        due = dues.get(ref.name, due_of(ref.name))
        if due is None:
            continue
        run_id = RunId(entry.uid, due)
        known = entry.runs.get(run_id)
        if known is not None:
            # Its last attempt is gone, and only an earlier one is left: that one is no excuse.
            if ref.name == job_name(entry.name, run_id, known.attempt):
                known.move(RunState.PENDING)
                known.ref = ref
                life.end(state, entry, known, *_how_it_went(entry, due))
            continue
        if run_id in with_jobs:  # an earlier attempt's Job has ended it a moment ago
            continue
        named = read_job_name(ref.name, entry.name)
        if named is None or named.due != due:
            continue
        run = Run(run_id, taken_at=state.now, state=RunState.RUNNING, ref=ref, late=True)
        entry.runs[run_id] = run
        life.end(state, entry, run, *_how_it_went(entry, due))


def _count_unnamed_as_lost(state: State, entry: Entry, past: _Past, followed: set[RunId]) -> None:
    """A status counts more active runs than it names. Of those whose Jobs are gone nobody knows
    any more which they were; that they were is counted."""
    active = past.memory.active
    found = sum(run.due <= past.mark and not past.names(run) for run in followed)
    lost = past.memory.active_count - len(active) - found
    if len(active) < ACTIVE_COUNT or lost <= 0:
        return
    last = past.mark or int(state.now)
    span = Span(min(past.alive, default=last), last, lost)
    life.lose_unnamed(state, entry, span, "outcome_unknown")


def _how_it_went(entry: Entry, due: Instant) -> tuple[RunState, str]:
    """Under Replace a run whose Job is gone and a later one's is there was replaced: the process
    that did so ended before it could tell, and no failure is to be counted."""
    replaces = entry.schedule is not None and entry.schedule.concurrency is Concurrency.REPLACE
    if replaces and any(run.id.due > due and run.has_job for run in entry.runs.values()):
        return RunState.CANCELLED, "replaced"
    return RunState.LOST, "outcome_unknown"
