"""The life of a run: taken up, announced, prepared, launched, waiting, running, ended.

The other modules of this package decide; this one does what follows of each step for the schedule,
its status and its mark, so that no step forgets one of them. Whether a step is legal, the table in
`run` says. What becomes of a run is said by three effects: RunBegan, RunEnded and SpanEnded.
"""

from collections import deque
from dataclasses import replace

from evenkeel.core.agenda import Start, UnwantedExpired
from evenkeel.core.effects import Launch, Prepare, RunEnded, SpanEnded, Withdraw
from evenkeel.core.schedule import account, expect, history, pause, tell, trouble
from evenkeel.core.schedule.entry import Entry, Unwanted
from evenkeel.core.schedule.missed import Span
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, RunId, RunState
from evenkeel.reasons import DelayCause, Reason, RunReason
from evenkeel.resource.record import RecentRun, ToldSpan

UNSEEN_S = 1.0
"""A due time that is taken up so long after it had nobody who looked: runs are taken up ahead."""

ROOM_PAUSE_S = 1.0
"""More runs wait than a status can name; until some of them have a Job."""


def open_run(turn: Turn, entry: Entry, due: Instant, *, late: bool = False) -> Run:
    """Take a due time up: from here on it is a run that awaits a verdict."""
    wait_s = max(0.0, due - turn.now)
    run = Run(RunId(entry.uid, due), taken_m=turn.monotonic + wait_s, taken_at=turn.now, late=late)
    if late or turn.now - due >= UNSEEN_S:
        run.delay(DelayCause.RESTART)
    entry.runs[run.id] = run
    entry.open[run.id] = None
    entry.advance(due)
    if due > turn.now:
        prepare(turn, entry, run)
        if entry.announces and entry.waiting_room > 0:
            announce(turn, entry, run)
    turn.agenda.put_due(max(due, 0), Start(run.id, run.attempt))
    return run


def prepare(turn: Turn, entry: Entry, run: Run) -> None:
    """Have the orchestrator of a run begin."""
    assert entry.schedule is not None
    run.prepared = True
    turn.emit(Prepare(run.id, run.attempt, entry.schedule))


def announce(turn: Turn, entry: Entry, run: Run) -> None:
    """Have the next status name the run as launching, and the mark pass it: should the operator end
    after the create, and the Job vanish by its ttl, nobody creates it a second time."""
    run.announced_at = None if run.id.due > turn.now else turn.second
    entry.open.pop(run.id, None)
    run.announced = turn.changed(entry, run).revision


def launch(turn: Turn, entry: Entry, run: Run) -> None:
    """Nothing forbids it: create the Job of the run's present attempt."""
    schedule = entry.schedule
    assert schedule is not None
    if run.id.due > turn.now:  # the clock was set back: its instant is to come once more
        run.late = True
        turn.start_when_due(run)
        return
    if entry.announces and not run.announced:
        named = run.id not in entry.open
        if not named and entry.waiting_room <= 0:
            run.late = True  # it was there in time, and waits for others as it would in a lane
            run.delay(DelayCause.HELD)
            if run.stage is Stage.QUEUED:
                run.move(Stage.TAKEN)
            turn.retry_later(run, delay_s=ROOM_PAUSE_S)
            return
    if turn.rebalancing:
        run.delay(DelayCause.REBALANCE)
    run.move(Stage.CREATING)
    run.reason = None
    if entry.announces and not run.announced:
        announce(turn, entry, run)
    latest = None
    if schedule.starting_deadline_s is not None and run.attempt == 1 and run.by_schedule:
        latest = run.id.due + schedule.starting_deadline_s
    request = entry.spec_of(run.id)
    turn.emit(Launch(run.id, run.attempt, schedule, run.announced, latest, request))


def wait(
    turn: Turn,
    entry: Entry,
    run: Run,
    stage: Stage,
    reason: RunReason,
    *,
    failed_at: Instant | None = None,
    due_at: float | None = None,
) -> None:
    """The run stands in `waiting`, and the mark may pass it; or not, where that is full."""
    run.move(stage)
    run.delay(DelayCause.QUEUE if stage is Stage.QUEUED else DelayCause.HELD)
    run.reason = reason
    run.announced, run.announced_at = 0, None  # a later create is announced anew
    if run.id in entry.open and entry.waiting_room > 0:
        del entry.open[run.id]
    _remember(entry, run, run.state, finished=failed_at)
    turn.changed(entry, run)
    if not run.by_schedule and stage is Stage.RETRYING:  # it is among the active ones no more
        turn.dirty(entry)
    account.run_waits(turn, entry, run, reason, due_at=due_at)


def running(turn: Turn, entry: Entry, run: Run) -> None:
    """The Job exists."""
    if run.prepared and not run.creating:  # by another process: what was rendered is waste
        turn.emit(Withdraw(run.id, run.attempt))
    if run.stage is Stage.TAKEN:  # another process has created it
        run.move(Stage.CREATING)
    run.move(Stage.RUNNING)
    run.prepared = False
    run.begun = True
    run.reason = None
    run.told = (run.state, "", run.attempt)
    run.announced, run.announced_at = 0, None
    entry.open.pop(run.id, None)
    if run.by_schedule:
        _pass_older(entry, turn, run.id.due)
        entry.record.last_schedule = max(entry.record.last_schedule or 0, run.id.due)
    _remember(entry, run, RunState.RUNNING)
    run.shown = turn.changed(entry, run).revision
    if not run.by_schedule:  # whose status shows it among the active ones
        turn.dirty(entry)
    account.run_began(turn, entry, run)


def end(
    turn: Turn,
    entry: Entry,
    run: Run,
    how: RunState,
    reason: RunReason | None = None,
    *,
    message: str = "",
    finished: Instant | None = None,
    answered: bool = False,
) -> None:
    """The run's last step: counted, remembered, its place free. `answered`: the create that was
    under way has come back, so none can arrive later."""
    if run.stage is Stage.QUEUED:
        entry.queue = deque(waiting for waiting in entry.queue if waiting != run.id)
    under_way = run.creating and not answered
    if under_way:
        entry.unwanted[run.id, run.attempt] = Unwanted(reason or Reason.CANCELLED)
        turn.emit(Withdraw(run.id, run.attempt))  # if it waits in its lane, none is created
    elif run.prepared:
        turn.emit(Withdraw(run.id, run.attempt))
    if run.stage not in (Stage.RUNNING, Stage.RETRYING) and not under_way:
        refuse_late_create(turn, entry, run, reason or Reason.CANCELLED)
    run.move(how)
    trouble.let_go(turn, entry, run)
    run.reason, run.message = reason, message
    entry.runs.pop(run.id, None)
    entry.open.pop(run.id, None)
    if run.by_schedule:
        _pass_older(entry, turn, run.id.due)
        if run.id.due > entry.cursor:
            entry.decided.add(run.id)
    lasted_s = None
    if run.started is not None and finished is not None:
        lasted_s = finished - run.started
    finished = turn.second if finished is None else finished
    _remember(entry, run, how, finished=finished)
    storing = turn.changed(entry, run)
    if not run.by_schedule:  # whose status shows it among the active ones
        turn.dirty(entry)
    if (unwanted := entry.unwanted.get((run.id, run.attempt))) is not None:
        told_by = replace(unwanted, storing=storing, revision=storing.revision)
        entry.unwanted[run.id, run.attempt] = told_by
    ended = RunEnded(
        run=run.id,
        key=entry.key,
        state=how,
        reason=reason,
        attempt=run.attempt,
        job=run.ref.name if run.ref else "",
        started=run.started,
        finished=finished,
        message=message,
        cause=run.cause if how is RunState.FAILED else None,
        taken_at=run.taken_at,
        attempts=account.attempts_of(run, finished=finished, reason=reason or ""),
        revision=storing.revision,
        told_by=account.told_by(entry, run),
    )
    _count(turn, entry, run, how, finished, lasted_s)
    history.keep_those_of(entry, run, how, finished, storing)
    turn.emit(ended)
    tell.run_ended(turn, entry, ended)


def lose_unnamed(turn: Turn, entry: Entry, span: Span) -> None:
    """So many runs of this span are lost, and which they were is not known."""
    entry.record.failed(turn.second, span.count)
    _end_span(turn, entry, span, RunState.LOST, Reason.OUTCOME_UNKNOWN)


def end_span(turn: Turn, entry: Entry, span: Span, how: RunState, reason: Reason) -> None:
    """Due times that were never runs of their own get one verdict as a whole."""
    entry.record.remember(RecentRun(span.last, how, reason=reason))
    # Its row names the last due time alone: above the mark, a restart would count the others once
    # more.
    _pass_older(entry, turn, span.last)
    _end_span(turn, entry, span, how, reason)


def _end_span(turn: Turn, entry: Entry, span: Span, how: RunState, reason: Reason) -> None:
    entry.record.count(how, span.count)
    entry.record.tell_span(ToldSpan(span.first, span.last, span.count, how, reason))
    turn.dirty(entry)
    ended = SpanEnded(
        entry.uid,
        entry.key,
        span.first,
        span.last,
        span.count,
        how,
        reason,
        revision=entry.storing.revision,
    )
    turn.emit(ended)
    tell.span_ended(turn, entry, ended)


def call_back(turn: Turn, entry: Entry) -> None:
    """Nothing of it may begin any more: creates that still wait in their lanes are put back. One
    that is on its way arrives, and counts."""
    for run in entry.runs.values():
        if run.creating and not is_forced(entry, run):
            turn.emit(Withdraw(run.id, run.attempt))


def is_forced(entry: Entry, run: Run) -> bool:
    """Whether somebody has asked for it although its schedule is suspended or paused."""
    spec = entry.spec_of(run.id)
    return spec is not None and spec.force and entry.schedule is not None


def cancel_run(turn: Turn, entry: Entry, run_id: RunId) -> None:
    """A person ends a run. It works before, during and after the create."""
    run = entry.runs.get(run_id)
    if run is not None:
        cancel(turn, entry, run, Reason.CANCELLED)


def cancel(turn: Turn, entry: Entry, run: Run, reason: Reason) -> None:
    """End a run whatever it is doing; its Job goes, its record stays."""
    ref = run.ref if run.stage is Stage.RUNNING else None
    if ref is not None:
        refuse_late_create(turn, entry, run, reason)
    end(turn, entry, run, RunState.CANCELLED, reason)
    if ref is not None:
        history.delete(
            turn, entry, ref, reason, storing=account.storing(entry, run), shown=run.shown
        )


# --- what the steps share ------------------------------------------------------------------------


def refuse_late_create(turn: Turn, entry: Entry, run: Run, reason: RunReason) -> None:
    """A create that got no answer may arrive yet: its Job would run beside what was decided."""
    if run.unanswered_m is None:
        return
    until_m = run.unanswered_m + history.LATE_CREATE_S
    if turn.monotonic < until_m:
        entry.unwanted[run.id, run.attempt] = Unwanted(reason, late=True)
        turn.agenda.put_delay(until_m, UnwantedExpired(run.id, run.attempt))


def _pass_older(entry: Entry, turn: Turn, due: Instant) -> None:
    """A run has its Job or its end. Older ones that do not come to a verdict stand in `waiting`:
    above the mark only ten rows of `recent` would tell of this one."""
    if not entry.open or next(iter(entry.open)).due >= due:
        return
    older = [run for run in entry.open if run.due < due and run.due <= turn.now]
    for run in older[: max(0, entry.waiting_room)]:
        del entry.open[run]


def _count(
    turn: Turn, entry: Entry, run: Run, how: RunState, finished: Instant, lasted_s: int | None
) -> None:
    record = entry.record
    if not run.by_schedule:  # a requested run succeeds for people, and counts for its request
        if how is RunState.SUCCEEDED:
            record.last_success = max(record.last_success or 0, finished)
        if (request := entry.request_of(run.id)) is not None:
            request.record.count(how)
        return
    record.count(how, 1)
    if how is RunState.SUCCEEDED:
        record.succeeded(finished)
        if lasted_s is not None:
            expect.learn(record, lasted_s)
    elif how in (RunState.FAILED, RunState.LOST):
        record.failed(finished)
        if pause.wanted(entry):
            call_back(turn, entry)
            pause.begin(turn, entry, run.id.due)


def _remember(entry: Entry, run: Run, how: RunState, *, finished: Instant | None = None) -> None:
    failed = how in (RunState.FAILED, RunState.RETRYING)
    row = RecentRun(
        run.id.due,
        how,
        started=run.started,
        finished=finished,
        reason=run.reason or "",
        attempt=run.attempt,
        job=run.ref.name if run.ref else "",
        exit_code=run.cause.exit_code if failed and run.cause else None,
        exit_reason=run.cause.reason if failed and run.cause else "",
    )
    if run.by_schedule:
        entry.record.remember(row)
    elif (request := entry.request_of(run.id)) is not None:
        request.record.remember(row)
