"""The life of a run: taken up, prepared, launched, waiting, running, ended.

The other chapters decide; this does what follows of each step for the schedule, its status and its
mark, so that no step forgets one of them. Whether a step is allowed, `entry.Run` says.
"""

from collections import deque

from evenkeel.core import history
from evenkeel.core.agenda import Start, UnwantedExpired
from evenkeel.core.effects import Launch, Prepare, RunEnded, Withdraw
from evenkeel.core.entry import Entry, Run, Unwanted
from evenkeel.core.missed import Span
from evenkeel.core.state import State
from evenkeel.model import Instant, JobRef, RunId, RunState
from evenkeel.resource import rfc3339
from evenkeel.resource.status import RECENT_COUNT, WAITING_COUNT, Pause, RecentRun

SHORT_TTL_S = 300
"""A Job with a shorter ttlSecondsAfterFinished may be gone before the mark is written."""

ROOM_PAUSE_S = 1.0
"""More creates are under way than a status can name; until some of them are answered."""


def open_run(state: State, entry: Entry, due: Instant, *, late: bool = False) -> Run:
    """Take a due time up: from here on it is a run that awaits a verdict."""
    run = Run(RunId(entry.uid, due), taken_at=max(state.now, due), late=late)
    entry.runs[run.id] = run
    entry.open[due] = None
    entry.advance(due)
    if due > state.now:
        prepare(state, entry, run)
    state.agenda.put(max(due, 0), Start(run.id, run.attempt))
    return run


def prepare(state: State, entry: Entry, run: Run) -> None:
    """Have the orchestrator of a run begin."""
    assert entry.schedule is not None
    run.prepared = True
    state.emit(Prepare(run.id, run.attempt, entry.schedule))


def launch(state: State, entry: Entry, run: Run) -> None:
    """Nothing forbids it: create the Job of the run's present attempt."""
    schedule = entry.schedule
    assert schedule is not None
    mark_first = schedule.ttl_s is not None and schedule.ttl_s < SHORT_TTL_S
    set_back = run.id.due > state.now  # the clock: its instant is to come once more
    if set_back or (mark_first and not entry.may_mark_first(run)):
        run.late = True  # it was there in time, and waits for others as it would in a lane
        state.retry_later(run, at=state.now + ROOM_PAUSE_S)
        return
    if run.state is RunState.RETRYING:
        run.move(RunState.PENDING)
    run.creating = True
    run.reason = ""
    run.marked_first = mark_first
    if mark_first:
        entry.open.pop(run.id.due, None)
        state.dirty(entry)
    latest = None
    if schedule.starting_deadline_s is not None and run.attempt == 1:
        latest = run.id.due + schedule.starting_deadline_s
    revision = entry.revision if mark_first else 0
    state.emit(Launch(run.id, run.attempt, schedule, revision, latest))


def wait(
    state: State, entry: Entry, run: Run, reason: str, *, failed_at: Instant | None = None
) -> None:
    """The run stands in `waiting`, and the mark may pass it; or not, where that is full.
    `failed_at`: from there the next attempt's delay counts, after a restart as well."""
    run.reason = reason
    if len(entry.waiting) < WAITING_COUNT:
        entry.open.pop(run.id.due, None)
    _remember(entry, run, run.state, finished=failed_at)
    state.dirty(entry)


def running(state: State, entry: Entry, run: Run) -> None:
    """The Job exists."""
    if run.state is RunState.SCHEDULED:  # put back, and then created by another process
        run.move(RunState.PENDING)
    if run.prepared and not run.creating:  # by another process: what was rendered is waste
        state.emit(Withdraw(run.id, run.attempt))
    run.creating = False
    run.prepared = False
    run.reason = ""
    run.move(RunState.RUNNING)
    _let_mark_pass(state, entry, run.id.due)
    entry.last_schedule = max(entry.last_schedule or 0, run.id.due)
    _remember(entry, run, RunState.RUNNING)
    state.dirty(entry)
    run.told = entry.revision


def end(
    state: State,
    entry: Entry,
    run: Run,
    how: RunState,
    reason: str = "",
    *,
    message: str = "",
    finished: Instant | None = None,
) -> None:
    """The run's last step: counted, remembered, its place given to whoever waits."""
    if run.reason == "queued":
        entry.queue = deque(waiting for waiting in entry.queue if waiting != run.id)
    if run.creating:
        entry.unwanted[run.id, run.attempt] = Unwanted(reason)
        state.emit(Withdraw(run.id, run.attempt))  # if it still waits in its lane, none is created
    elif run.prepared:
        state.emit(Withdraw(run.id, run.attempt))
    if run.state is RunState.PENDING and not run.creating:
        refuse_late_create(state, entry, run, reason)
    run.move(how)
    run.reason, run.message = reason, message
    entry.runs.pop(run.id, None)
    _let_mark_pass(state, entry, run.id.due)
    if run.id.due > entry.cursor:
        entry.decided.add(run.id.due)
    finished = int(state.now) if finished is None else finished
    _remember(entry, run, how, finished=finished)
    _count(state, entry, how, run.id.due, finished)
    history.keep_those_of(entry, run, how, finished)
    state.emit(
        RunEnded(
            uid=entry.uid,
            key=entry.key,
            first=run.id.due,
            last=run.id.due,
            count=1,
            state=how,
            reason=reason,
            attempt=run.attempt,
            job=run.ref.name if run.ref else "",
            started=run.started,
            finished=finished,
        )
    )
    state.ended.append((state.now, run.id, how))
    state.ended_states[run.id] = how
    state.dirty(entry)


def lose_unnamed(state: State, entry: Entry, span: Span, reason: str) -> None:
    """So many runs of this span are lost, and which they were is not known."""
    entry.last_failure = max(entry.last_failure or 0, int(state.now))
    entry.consecutive_failures += span.count
    _record_span(state, entry, span, RunState.LOST, reason)
    state.event(entry, "Lost", f"{span} lost: {reason}", warning=True)


def end_span(state: State, entry: Entry, span: Span, how: RunState, reason: str) -> None:
    """Due times that were never runs of their own get one verdict as a whole."""
    entry.remember(RecentRun(span.last, how, reason=reason), limit=RECENT_COUNT)
    # Its row names the last due time alone: above the mark, a restart would count the others once
    # more.
    _let_mark_pass(state, entry, span.last)
    _record_span(state, entry, span, how, reason)


def _record_span(state: State, entry: Entry, span: Span, how: RunState, reason: str) -> None:
    entry.count(how, span.count)
    entry.last_result = how.value
    state.emit(
        RunEnded(
            uid=entry.uid,
            key=entry.key,
            first=span.first,
            last=span.last,
            count=span.count,
            state=how,
            reason=reason,
        )
    )
    state.dirty(entry)


def call_back(state: State, entry: Entry) -> None:
    """Nothing of it may begin any more: creates that still wait in their lanes are put back. One
    that is on its way arrives, and counts."""
    for run in entry.runs.values():
        if run.creating:
            state.emit(Withdraw(run.id, run.attempt))


def cancel(state: State, entry: Entry, run: Run, reason: str) -> None:
    """End a run whatever it is doing; its Job goes, its record stays."""
    ref = run.ref if run.state is RunState.RUNNING else None
    if ref is not None:
        refuse_late_create(state, entry, run, reason)
    end(state, entry, run, RunState.CANCELLED, reason)
    if ref is not None:
        delete_job(state, entry, ref, reason, told=run.told)


def delete_job(
    state: State, entry: Entry, ref: JobRef, why: str, *, told: int | None = None
) -> None:
    """Delete it as soon as a stored status tells of its run."""
    state.effects += history.delete(entry, ref, why, told=told)


# --- what the steps share ------------------------------------------------------------------------


def refuse_late_create(state: State, entry: Entry, run: Run, reason: str) -> None:
    """A create that got no answer may arrive yet: its Job would run beside what was decided."""
    until = (run.unanswered_at or float("-inf")) + history.LATE_CREATE_S
    if state.now < until:
        entry.unwanted[run.id, run.attempt] = Unwanted(reason, late=True)
        state.agenda.put(until, UnwantedExpired(run.id, run.attempt))


def _let_mark_pass(state: State, entry: Entry, due: Instant) -> None:
    """A later due time has its Job or its end. Older ones that do not come to a verdict stand
    in `waiting`: above the mark only ten rows of `recent` would tell of this one."""
    entry.open.pop(due, None)
    older = [open for open in entry.open if open < due and open <= state.now]
    if older:
        for open in older[: max(0, WAITING_COUNT - len(entry.waiting))]:
            del entry.open[open]


def _count(state: State, entry: Entry, how: RunState, due: Instant, finished: Instant) -> None:
    entry.count(how)
    entry.last_result = how.value
    if how is RunState.SUCCEEDED:
        entry.consecutive_failures = 0
        entry.last_success = max(entry.last_success or 0, finished)
    elif how in (RunState.FAILED, RunState.LOST):
        entry.consecutive_failures += 1
        entry.last_failure = max(entry.last_failure or 0, finished)
        _pause_if_it_fails_too_often(state, entry, due)


def _pause_if_it_fails_too_often(state: State, entry: Entry, due: Instant) -> None:
    limit = entry.pause_after
    if limit is None or entry.consecutive_failures < limit or entry.pause is not None:
        return
    reason = (
        f"{entry.consecutive_failures} runs in a row failed, the last due {rfc3339.show(due)}; "
        "edit the timing or the template, or set suspend and take it back, to go on"
    )
    entry.pause = Pause(int(state.now), "evenkeel", reason)
    call_back(state, entry)
    if entry.schedule is not None and not entry.schedule.suspend:
        state.condition(entry, "Active", "False", "Paused", reason)
    state.index_dirty = True
    state.reweigh[entry.uid] = None
    state.event(entry, "Paused", reason, warning=True)
    state.log("schedule paused", level="warning", schedule=entry.key, reason=reason)


def _remember(entry: Entry, run: Run, how: RunState, *, finished: Instant | None = None) -> None:
    entry.remember(
        RecentRun(
            run.id.due,
            how,
            started=run.started,
            finished=finished,
            reason=run.reason,
            attempt=run.attempt,
            job=run.ref.name if run.ref else "",
        ),
        limit=RECENT_COUNT,
    )
