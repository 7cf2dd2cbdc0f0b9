"""Due times become runs: taken up before their instant, started at it, settled when missed."""

import math

from evenkeel.core.effects import LetGo
from evenkeel.core.entry import Entry, Run
from evenkeel.core.missed import Missed, Settled, Span, settle
from evenkeel.core.overlap import Overlap, overlap
from evenkeel.core.state import CATCH_UP_NAMES_LIMIT, Start, State
from evenkeel.model import Instant, RunState
from evenkeel.resource import rfc3339
from evenkeel.resource.status import WAITING_COUNT

HELD_RETRY_LIMIT_S = 30
"""A quota that heals is noticed within this; a schedule that never fits asks twice a minute."""


def look_at(state: State, entry: Entry) -> None:
    """Take up what an index built earlier cannot know of a schedule that is new or has changed."""
    until = math.floor(state.now + state.settings.pre_schedule_s) + 1
    take_up(state, entry, until=until)


def take_up(state: State, entry: Entry, *, until: Instant) -> None:
    """Every due time above the cursor and before `until` becomes a run, or goes to missedRuns."""
    if entry.idle or entry.dues is None:
        return
    catch_up(state, entry)
    for due in entry.dues.between(entry.cursor + 1, until):
        offer(state, entry, due)


def leave(state: State, entry: Entry) -> None:
    """The timing in force ends now: reckon with what was due by it, let go of the rest."""
    now = math.floor(state.now)
    if entry.held_back:
        pass_over(state, entry, reason=entry.held_back)
    elif not entry.idle:
        take_up(state, entry, until=now + 1)
    drop_future_runs(state, entry)
    entry.stand_in_waiting()
    entry.rewind(max(now, entry.stored_mark or 0))


def pass_over(state: State, entry: Entry, *, reason: str) -> None:
    """Whatever is due up to now and nobody's run is skipped, as one span."""
    first, end = entry.cursor + 1, math.floor(state.now) + 1
    taken = [due for due in entry.taken if first <= due < end]
    span = _span(entry, first, end, taken) if entry.dues else None
    if span is not None:
        state.end_span(
            entry,
            first=span.first,
            last=span.last,
            count=span.count,
            state=RunState.SKIPPED,
            reason=reason,
        )
    entry.stand_in_waiting()
    entry.advance(end - 1)


def drop_future_runs(state: State, entry: Entry) -> None:
    """Runs whose instant has not come belong to a timing that is gone."""
    for run in [run for run in entry.runs.values() if _not_begun(run) and run.id.due > state.now]:
        _let_go(state, entry, run)


def _let_go(state: State, entry: Entry, run: Run) -> None:
    if run.prepared:
        state.emit(LetGo(run.id, run.attempt))
    del entry.runs[run.id]
    entry.open.pop(run.id.due, None)
    entry.rewind(min(entry.cursor, run.id.due - 1))


def _not_begun(run: Run) -> bool:
    return run.state is RunState.PENDING and not run.creating and not run.waits


def offer(state: State, entry: Entry, due: Instant) -> None:
    """A due time within grace: a run, unless it already is one or has a verdict."""
    if entry.idle:
        return
    if entry.is_taken(due):
        entry.advance(due)
    else:
        state.open_run(entry, due)


def catch_up(state: State, entry: Entry) -> None:
    """All due times first looked at later than grace go through missedRuns as one set."""
    schedule, dues = entry.schedule, entry.dues
    if schedule is None or dues is None:
        return
    horizon = _horizon(state)
    _give_back(state, entry, horizon)
    if horizon <= entry.cursor + 1:
        return
    following = dues.next_after(entry.cursor)
    if following is None or following >= horizon:
        return
    first = entry.cursor + 1
    border = first
    if schedule.starting_deadline_s is not None:
        border = min(max(first, math.ceil(state.now - schedule.starting_deadline_s)), horizon)
    limit = min(schedule.catch_up_limit, CATCH_UP_NAMES_LIMIT) + 1
    taken = [due for due in entry.taken if first <= due < horizon]
    newest = dues.newest(border, horizon, limit=limit + len(taken))
    settled = settle(
        too_late=_span(entry, first, border, taken),
        in_time=_span(entry, border, horizon, taken),
        newest=tuple(due for due in newest if due not in taken),
        policy=schedule.missed_runs,
        catch_up_limit=schedule.catch_up_limit,
    )
    entry.advance(horizon - 1)
    _carry_out(state, entry, settled)


def _horizon(state: State) -> Instant:
    """What was due before it is later than grace allows."""
    return math.ceil(state.now - state.settings.grace_s)


def _give_back(state: State, entry: Entry, horizon: Instant) -> None:
    """Runs prepared just before a stall belong to the set: nobody was there for them either."""
    for run in [run for run in entry.runs.values() if _stalled(run, horizon)]:
        _let_go(state, entry, run)


def _stalled(run: Run, horizon: Instant) -> bool:
    return _not_begun(run) and not run.late and run.id.due < horizon


def _span(entry: Entry, first: Instant, end: Instant, taken: list[Instant]) -> Span | None:
    """The due times in [first, end) that are nobody's run yet, counted without listing them."""
    dues = entry.dues
    assert dues is not None
    if end <= first:
        return None
    count = dues.count(first, end)
    count -= sum(1 for due in taken if first <= due < end and dues.count(due, due + 1))
    if count <= 0:
        return None
    enough = len(taken) + 1
    earliest = next(due for due in dues.between(first, end, limit=enough) if due not in taken)
    backwards = reversed(dues.newest(first, end, limit=enough))
    latest = next(due for due in backwards if due not in taken)
    return Span(earliest, latest, count)


def _carry_out(state: State, entry: Entry, settled: Settled) -> None:
    for missed in settled.missed:
        miss(state, entry, missed)
    for due in settled.launch:
        state.open_run(entry, due, late=True)
    entry.open = dict(sorted(entry.open.items()))


def miss(state: State, entry: Entry, missed: Missed) -> None:
    """Nobody was there in time: counted as one span, and said to the owner."""
    span = missed.span
    state.end_span(
        entry,
        first=span.first,
        last=span.last,
        count=span.count,
        state=RunState.MISSED,
        reason=missed.reason,
    )
    state.tell(
        entry,
        "Missed",
        f"{span.count} due times from {rfc3339.show(span.first)} to "
        f"{rfc3339.show(span.last)} were missed: {missed.reason}",
        warning=True,
    )
    state.log(
        "runs missed",
        level="warning",
        schedule=entry.key,
        count=span.count,
        reason=missed.reason,
    )


# --- a run's instant ------------------------------------------------------------------------------


def start(state: State, task: Start) -> None:
    """The instant of a run, or of its next try, has come."""
    entry = state.entries.get(task.uid)
    run = entry.runs.get(task.run) if entry else None
    if entry is None or run is None or run.attempt != task.attempt or run.creating:
        return
    if run.state is RunState.RUNNING or run.reason == "queued":
        return
    if entry.schedule is None:  # rejected meanwhile: what waited goes on when it is mended
        again(state, entry, run, at=state.now + HELD_RETRY_LIMIT_S)
        return
    if run.state is RunState.RETRYING:
        if not entry.schedule.suspend and entry.pause is None:
            state.launch(entry, run)
        return
    if entry.idle and run.attempt > 1:
        again(state, entry, run, at=state.now + HELD_RETRY_LIMIT_S)
    elif entry.idle:
        state.end(entry, run, RunState.SKIPPED, "paused" if entry.pause else "suspended")
    elif run.attempt == 1 and _too_late(state, entry, run):
        state.end(entry, run, RunState.MISSED, "deadline", message=run.message)
    elif run.reason == "held":
        _try_again(state, entry, run)
    elif _stalled(run, _horizon(state)):
        catch_up(state, entry)
    else:
        _decide(state, entry, run)


def _decide(state: State, entry: Entry, run: Run) -> None:
    """Apply the overlap policy to a run whose instant has come."""
    schedule = entry.schedule
    assert schedule is not None
    holding = entry.holding if state.needs_places(entry) else []
    queue_limit = min(schedule.max_queued, WAITING_COUNT - sum(r.waits for r in holding))
    match overlap(
        schedule.concurrency,
        holding=len(holding),
        queued=len(entry.queue),
        max_queued=queue_limit,
    ):
        case Overlap.START:
            state.launch(entry, run)
        case Overlap.QUEUE:
            entry.queue.append(run.id)
            state.wait(entry, run, "queued")
        case Overlap.REPLACE:
            for other in holding:
                state.cancel(entry, other, "replaced")
            state.launch(entry, run)
        case Overlap.SKIP:
            reason = "queue_full" if entry.queue else "overlap"
            state.end(entry, run, RunState.SKIPPED, reason)
            state.tell(
                entry,
                "Skipped",
                f"the run due {rfc3339.show(run.id.due)} was skipped: {reason}",
                warning=True,
            )


def next_in_queue(state: State, entry: Entry) -> None:
    """A place is free: whoever waited longest takes it."""
    if entry.idle or state.stopping or not state.can_tell_what_is_due:
        return
    while entry.queue and not entry.holding:
        run = entry.runs.get(entry.queue.popleft())
        if run is None or run.reason != "queued":
            continue
        run.reason = ""
        if _too_late(state, entry, run):
            state.end(entry, run, RunState.MISSED, "deadline")
        else:
            state.launch(entry, run)


def _too_late(state: State, entry: Entry, run: Run) -> bool:
    deadline_s = entry.schedule.starting_deadline_s if entry.schedule else None
    # In whole seconds, as due times are: a deadline of 0 s must not mean never.
    return deadline_s is not None and math.floor(state.now) > run.id.due + deadline_s


# --- held runs ------------------------------------------------------------------------------------


def hold(state: State, entry: Entry, run: Run, message: str) -> None:
    """Nothing was written, and it may heal: try again, later each time."""
    run.creating = False
    run.held_count += 1
    if run.held_count == 1:  # its grace counts from here: to wait in a queue or lane is no failure
        run.taken_at = max(run.taken_at, state.now)
    run.message = message
    state.wait(entry, run, "held")
    delay_s = min(HELD_RETRY_LIMIT_S, 2.0 ** min(run.held_count - 1, 10))
    again(state, entry, run, at=state.now + delay_s)


def again(state: State, entry: Entry, run: Run, *, at: float) -> None:
    """Put the next try on the agenda."""
    run.retry_at = at
    state.at(at, Start(entry.uid, run.id, run.attempt))


def _try_again(state: State, entry: Entry, run: Run) -> None:
    """Within its grace a held run is tried; after it, all that nobody launched is one set."""
    if run.attempt > 1 or state.now <= run.taken_at + state.settings.grace_s:
        state.launch(entry, run)
        return
    _settle_held(state, entry)


def _settle_held(state: State, entry: Entry) -> None:
    """missedRuns over the held runs of a schedule."""
    schedule = entry.schedule
    assert schedule is not None
    held = sorted(
        (
            run
            for run in entry.runs.values()
            if run.reason == "held" and run.attempt == 1 and not run.creating
        ),
        key=lambda run: run.id.due,
    )
    settled = settle(
        too_late=None,
        in_time=Span(held[0].id.due, held[-1].id.due, len(held)),
        newest=tuple(run.id.due for run in held),
        policy=schedule.missed_runs,
        catch_up_limit=schedule.catch_up_limit,
    )
    for run in held:
        if run.id.due in settled.launch:
            run.taken_at = state.now
            run.late = True
            state.launch(entry, run)
        else:
            reason = settled.missed[0].reason
            state.end(entry, run, RunState.MISSED, reason, message=run.message)
            state.tell(
                entry,
                "Missed",
                f"the run due {rfc3339.show(run.id.due)} could not be created in time: "
                f"{run.message}",
                warning=True,
            )
