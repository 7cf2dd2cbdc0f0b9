"""The runs of a request that an earlier process left, from its Jobs and its last status.

Once for each request, when its stored plan is read and its schedule is taken over. A row of
`status.active` names each run that had begun and had not ended; runs that have begun since are
known by their Jobs. Of what had begun, and is neither a Job nor a row, the end is told already.

`follow_orphans` takes over Jobs whose request is gone: they are followed to their end.
"""

from collections.abc import Iterable

from evenkeel.core.effects import DeleteJob, RequestKnown
from evenkeel.core.schedule import account, history, jobs, life
from evenkeel.core.schedule.adopt import FINISHED, left_of_delay, may_have_vanished
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, JobFact, JobRef, JobState, Meeting, RunId, RunState
from evenkeel.reasons import Reason
from evenkeel.resource.job import job_name
from evenkeel.resource.request_record import REQUEST_ACTIVE_COUNT, ActiveRun


def take_over(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """Go on from what the earlier process left."""
    memory, request.memory = request.memory, None
    assert memory is not None
    if memory.generation != request.generation:  # it was edited while no process ran
        turn.request_dirty(request)
    found = _by_due(entry.unclaimed.pop(request.kind, {}).values())
    rows = {row.due: row for row in memory.active}
    told = request.begun
    followed = {run.id.due for run in entry.runs_of(request)}
    _advance(request, (*found, *followed))
    request.whole = True
    for place, due in enumerate(request.dues[: request.begun]):
        facts, row = found.get(due, []), rows.get(due)
        if due in followed:
            continue
        if facts and row is None and place < told:
            _leave_ended(turn, entry, facts)
        elif facts and _speaks(facts[-1], row):
            _follow_on(turn, entry, request, facts)
        elif row is not None:
            _go_on_from_row(turn, entry, request, row, facts)
        elif place >= told:  # it stands between two that have begun: this one had, too
            _go_on_from_row(turn, entry, request, ActiveRun(due, reason=Reason.HELD), facts)
    alive = tuple(run.id for run in entry.runs_of(request))
    recent = tuple(memory.record.recent)
    kind = request.kind
    turn.emit(RequestKnown(request.uid, entry.uid, entry.key, request.name, kind, alive, recent))


def seen(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """Another process of ours has made Jobs of this request: what it has begun has begun."""
    found = _by_due(entry.unclaimed.pop(request.kind, {}).values())
    begun = request.begun
    _advance(request, found)
    for due in request.dues[begun : request.begun]:
        if (facts := found.get(due)) is not None:
            _follow_on(turn, entry, request, facts)
        else:
            _go_on_from_row(turn, entry, request, ActiveRun(due, reason=Reason.HELD), [])


def _advance(request: RequestEntry, dues: Iterable[Instant]) -> None:
    """These have begun; so have all that stand before them in the order of the request."""
    places = (request.position(due) for due in dues)
    request.begun = max([request.begun, *(place + 1 for place in places if place is not None)])


def _by_due(facts: Iterable[JobFact]) -> dict[Instant, list[JobFact]]:
    found: dict[Instant, list[JobFact]] = {}
    for fact in sorted(facts, key=lambda fact: (fact.run.due, fact.attempt)):
        found.setdefault(fact.run.due, []).append(fact)
    return found


def _speaks(last: JobFact, row: ActiveRun | None) -> bool:
    """Whether a run's last Job tells how it stands. It does not where the status knew a later
    attempt."""
    if last.state is JobState.SUCCEEDED or row is None:
        return True
    return row.attempt <= last.attempt + (last.state is JobState.FAILED)


def _leave_ended(turn: Turn, entry: Entry, facts: list[JobFact]) -> None:
    """Its end is stored: its Jobs are history, or were to be deleted and that was not told."""
    if facts[-1].state in FINISHED:
        history.keep_told(entry, facts)
    else:
        turn.emit(DeleteJob(facts[-1].ref, Reason.CANCELLED))


def _follow_on(turn: Turn, entry: Entry, request: RequestEntry, facts: list[JobFact]) -> None:
    last = facts[-1]
    run = _run(turn, request, last.run, facts[:-1], attempt=last.attempt)
    run.adopted = True
    entry.runs[run.id] = run
    jobs.follow(turn, entry, run, last)


def _run(
    turn: Turn, request: RequestEntry, run_id: RunId, before: list[JobFact], *, attempt: int
) -> Run:
    run = Run(run_id, turn.monotonic, attempt=attempt, late=True)
    run.meeting = request.spec.meeting if request.spec else Meeting.WAIT
    run.failed_jobs = [fact.ref for fact in before]
    run.done = [account.attempt_of(fact) for fact in before]
    return run


def _go_on_from_row(
    turn: Turn, entry: Entry, request: RequestEntry, row: ActiveRun, facts: list[JobFact]
) -> None:
    """A run that waited without a Job, or whose Job is gone."""
    run = _run(turn, request, RunId(entry.uid, row.due, request.kind), facts, attempt=row.attempt)
    entry.runs[run.id] = run
    had_job = row.reason is None
    unnamed = len(entry.runs_of(request)) > REQUEST_ACTIVE_COUNT
    if had_job or may_have_vanished(turn, entry, row) or unnamed:
        run.stage = Stage.RUNNING if had_job else Stage.ASKING
        if had_job:
            name = row.job or job_name(entry.name, run.id, run.attempt)
            run.ref = JobRef(entry.ns, name, row.job_uid)
        lost, why = RunState.LOST, Reason.OUTCOME_UNKNOWN
        life.end(turn, entry, run, lost, why, answered=True)
    elif row.attempt > 1 and row.reason in (Reason.RETRYING, Reason.LAUNCHING):
        run.stage, run.reason = Stage.RETRYING, Reason.RETRYING
        turn.retry_later(run, delay_s=left_of_delay(turn, entry, row))
    elif row.attempt == 1 and row.reason is Reason.QUEUED and run.meeting is Meeting.POLICY:
        run.stage, run.reason = Stage.QUEUED, Reason.QUEUED
        entry.queue.append(run.id)
    else:
        run.stage, run.reason = Stage.HELD, Reason.HELD
        turn.retry_later(run, delay_s=0)


def leave_to_history(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """The request has ended: so have its Jobs, or nobody waits for them any more."""
    for facts in _by_due(entry.unclaimed.pop(request.kind, {}).values()).values():
        _leave_ended(turn, entry, facts)


# --- Jobs without a request -----------------------------------------------------------------------


def follow_orphans(turn: Turn, entry: Entry, kinds: frozenset[str]) -> None:
    """Jobs of kinds of which there is no request: they go on, and are followed to their end."""
    for kind in [kind for kind in entry.unclaimed if kind not in kinds]:
        for facts in _by_due(entry.unclaimed.pop(kind).values()).values():
            last = facts[-1]
            if last.state in FINISHED:
                history.keep_told(entry, facts)
                continue
            run = Run(last.run, turn.monotonic, attempt=last.attempt, late=True, adopted=True)
            run.meeting = Meeting.WAIT
            entry.runs[run.id] = run
            jobs.follow(turn, entry, run, last)
