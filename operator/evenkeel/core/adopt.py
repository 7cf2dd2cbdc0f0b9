"""What an earlier process left is taken over: its runs, from their Jobs and its last status.

Once for each schedule, when its status, its spec and the list of Jobs are all there. What neither
shows any more, and the status knew as alive, is lost: launched again it might run twice.
"""

from collections.abc import Mapping

from evenkeel.core import follow, history, life, take
from evenkeel.core.effects import DeleteJob
from evenkeel.core.entry import Entry, Run
from evenkeel.core.missed import Span
from evenkeel.core.state import State
from evenkeel.model import ENDED, Concurrency, Instant, JobFact, JobPhase, Retry, RunId, RunState
from evenkeel.resource.job import due_of, job_name
from evenkeel.resource.status import ACTIVE_COUNT, EMPTY, Memory, RecentRun


def take_over(state: State, entry: Entry) -> None:
    """Once: take over the runs of an earlier process from its Jobs and its last status."""
    if entry.settled:
        return
    entry.settled = True
    memory, entry.memory = entry.memory or EMPTY, None
    facts = sorted(
        (fact for fact in state.job_facts.pop(entry.uid, {}).values() if follow.is_of(entry, fact)),
        key=lambda fact: (fact.run.due, fact.attempt),
    )
    attempts: dict[RunId, list[JobFact]] = {}
    for fact in facts:
        attempts.setdefault(fact.run, []).append(fact)
    last_attempt = {run_id: facts[-1] for run_id, facts in attempts.items()}
    counted = {row.due for row in memory.recent if row.state in ENDED}
    lost = {row.due for row in memory.recent if row.state is RunState.LOST}
    # By due time: where a retry was launched since, the status names the attempt before it.
    alive = {due_of(ref.name) for ref in memory.active}
    waiting = set(memory.waiting)
    rows = {row.due: row for row in memory.recent}
    unnamed = 0
    for run_id, fact in list(last_attempt.items()):
        if run_id.due in waiting and _is_outdated(fact, rows.get(run_id.due)):
            del last_attempt[run_id]
            continue
        known = run_id.due <= (memory.mark or 0)
        ended = fact.phase in (JobPhase.SUCCEEDED, JobPhase.FAILED)
        finished_before = known and run_id.due not in waiting and _is_told(memory, fact)
        if run_id.due not in alive and (finished_before or run_id.due in counted):
            if run_id.due > entry.cursor:
                entry.decided.add(run_id.due)
            if ended:
                history.keep_told(entry, attempts[run_id])
            elif run_id.due not in lost:
                state.emit(DeleteJob(fact.ref, "cancelled"))  # as its end, stored, had decided
            continue
        unnamed += known and run_id.due not in alive | waiting
        run = Run(run_id, taken_at=state.now, attempt=fact.attempt, late=True)
        run.failed_jobs = [earlier.ref for earlier in attempts[run_id][:-1]]
        entry.runs[run_id] = run
        if run_id.due > entry.cursor:
            entry.open[run_id.due] = None
        follow.follow(state, entry, run, fact)
    entry.open = dict(sorted(entry.open.items()))
    with_jobs = set(last_attempt)
    _remember_waiting(state, entry, memory, attempts, with_jobs=with_jobs)
    facts_names = {fact.ref.name for fact in facts}
    _mourn(state, entry, memory, facts_names=facts_names, with_jobs=with_jobs)
    _mourn_unnamed(state, entry, memory, found=unnamed)


def _is_outdated(fact: JobFact, row: RecentRun | None) -> bool:
    """The Job of an attempt after this one failed and was deleted: begun again by this fact, that
    attempt would be created a second time."""
    if row is None or not row.tells_attempt or fact.phase is JobPhase.SUCCEEDED:
        return False  # one given up as too slow has succeeded after all: no other is needed
    return row.attempt > fact.attempt + (fact.phase is JobPhase.FAILED)


def _is_told(memory: Memory, fact: JobFact) -> bool:
    """Whether that a status does not call a run alive means that it told of the run's end: one that
    names as many as it may leaves out others, which may have ended since."""
    if len(memory.active) < ACTIVE_COUNT:
        return True
    succeeded = fact.phase is JobPhase.SUCCEEDED
    last = memory.last_success if succeeded else memory.last_failure
    return fact.finished is not None and fact.finished <= (last or 0)


def _remember_waiting(
    state: State,
    entry: Entry,
    memory: Memory,
    attempts: Mapping[RunId, list[JobFact]],
    *,
    with_jobs: set[RunId],
) -> None:
    """Runs that waited without a Job: queued, held, or between two attempts."""
    rows = {row.due: row for row in memory.recent}
    for due in memory.waiting:
        run_id = RunId(entry.uid, due)
        if run_id in with_jobs or run_id in entry.runs:
            continue
        row = rows.get(due)
        run = Run(run_id, taken_at=state.now, late=True)
        run.failed_jobs = [fact.ref for fact in attempts.get(run_id, ())]
        entry.runs[run_id] = run
        if row and row.state is RunState.RETRYING:
            run.state, run.attempt, run.reason = RunState.RETRYING, row.attempt, row.reason
            state.again(run, at=max(state.now, _next_attempt_at(entry, row, now=int(state.now))))
        elif (row and row.reason == "queued") or (row is None and _queues(entry)):
            run.reason = "queued"
            entry.queue.append(run_id)
        else:
            run.attempt, run.reason = row.attempt if row else 1, "held"
            if _has_not_begun(entry, row):  # beyond grace it is one set with all unlaunched ones
                run.taken_at = min(state.now, due)
            state.again(run, at=max(state.now, due))
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


def _mourn(
    state: State, entry: Entry, memory: Memory, *, facts_names: set[str], with_jobs: set[RunId]
) -> None:
    """A run that was alive and has no Job any more is lost: never launched again."""
    for ref in memory.active:
        if ref.name in facts_names:
            continue
        due = next(
            (row.due for row in memory.recent if row.job == ref.name),
            due_of(ref.name),
        )
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
        if not ref.name.startswith(job_name(entry.name, run_id)):
            continue
        run = Run(run_id, taken_at=state.now, state=RunState.RUNNING, ref=ref, late=True)
        entry.runs[run_id] = run
        life.end(state, entry, run, *_how_it_went(entry, due))


def _mourn_unnamed(state: State, entry: Entry, memory: Memory, *, found: int) -> None:
    """A status counts more active runs than it names. Of those whose Jobs are gone nobody knows
    any more which they were; that they were is counted."""
    lost = memory.active_count - len(memory.active) - found
    if len(memory.active) < ACTIVE_COUNT or lost <= 0:
        return
    dues = [due for ref in memory.active if (due := due_of(ref.name)) is not None]
    last = memory.mark or int(state.now)
    life.lose_unnamed(state, entry, Span(min(dues, default=last), last, lost), "outcome_unknown")


def _how_it_went(entry: Entry, due: Instant) -> tuple[RunState, str]:
    """Under Replace a run whose Job is gone and a later one's is there was replaced: the process
    that did so ended before it could tell, and no failure is to be counted."""
    replaces = entry.schedule is not None and entry.schedule.concurrency is Concurrency.REPLACE
    if replaces and any(run.id.due > due and run.has_job for run in entry.runs.values()):
        return RunState.CANCELLED, "replaced"
    return RunState.LOST, "outcome_unknown"
