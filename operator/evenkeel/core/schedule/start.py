"""A run's instant, or its next try, has come: the overlap policy decides, and places that became
free go to whoever waits longest."""

from evenkeel import rfc3339
from evenkeel.core.agenda import Start
from evenkeel.core.schedule import backoff, late, life, pods
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.overlap import Overlap, overlap
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Concurrency, RunId, RunState
from evenkeel.reasons import EventReason, Reason
from evenkeel.resource.record import WAITING_COUNT

LOOK_AGAIN_S = 30
"""At runs whose schedule is rejected, suspended or paused meanwhile."""


def start(turn: Turn, entry: Entry, task: Start) -> None:
    """The moment of a task on the agenda has come. A queued run waits for a place instead."""
    run = entry.living(task.run, task.attempt)
    if run is None or turn.monotonic < run.retry_m:  # gone, or put off since
        return
    if run.gave_up_place:  # `requested` begins it again when there is a place
        return
    match run.stage:
        case Stage.TAKEN:
            _first_try(turn, entry, run)
        case Stage.HELD:
            _next_try(turn, entry, run)
        case Stage.RETRYING:
            _next_attempt(turn, entry, run)
        case _:
            return


def _first_try(turn: Turn, entry: Entry, run: Run) -> None:
    if run.id.due > turn.now:  # the clock was set back since
        turn.start_when_due(run)
    elif _is_stopped(turn, entry, run):
        return
    elif run.attempt == 1 and late.too_late(turn, entry, run):
        late.give_up(turn, entry, [run], Reason.DEADLINE)
    elif run.by_schedule and late.stalled(turn, run):
        late.catch_up(turn, entry)
    elif run.attempt > 1 or not run.by_schedule:
        backoff.launch(turn, entry, run)
    else:
        decide(turn, entry, run)


def _next_try(turn: Turn, entry: Entry, run: Run) -> None:
    if run.id.due > turn.now:  # the clock was set back since
        turn.start_when_due(run)
        return
    if _is_stopped(turn, entry, run):
        return
    if run.attempt == 1 and late.too_late(turn, entry, run):
        late.give_up(turn, entry, [run], Reason.DEADLINE)
    else:
        late.try_again(turn, entry, run)


def _next_attempt(turn: Turn, entry: Entry, run: Run) -> None:
    if entry.schedule is None:
        turn.retry_later(run, delay_s=LOOK_AGAIN_S)
    elif not run.by_schedule and entry.request_of(run.id) is None:
        life.end(turn, entry, run, RunState.CANCELLED, Reason.REQUEST_DELETED)
    elif not _is_off(entry, run):  # else whoever ends that goes on
        backoff.launch(turn, entry, run)


def _is_off(entry: Entry, run: Run) -> bool:
    """No attempt of the run may begin: its schedule is suspended or paused, or its request is
    suspended."""
    if entry.skipped_as is not None and not life.is_forced(entry, run):
        return True
    spec = entry.spec_of(run.id)
    return spec is not None and spec.suspend


def _is_stopped(turn: Turn, entry: Entry, run: Run) -> bool:
    """The schedule is rejected, suspended or paused: the run waits, or is skipped."""
    if not run.by_schedule:
        return _is_request_stopped(turn, entry, run)
    if entry.schedule is None or (entry.halted and run.attempt > 1):
        turn.retry_later(run, delay_s=LOOK_AGAIN_S)  # what waited goes on when it is mended
        return True
    if not entry.halted:
        return False
    reason = Reason.PAUSED if entry.pause else Reason.SUSPENDED
    life.end(turn, entry, run, RunState.SKIPPED, reason)
    return True


def _is_request_stopped(turn: Turn, entry: Entry, run: Run) -> bool:
    """Of a requested run that has begun: it waits, and is never skipped."""
    if entry.request_of(run.id) is None:
        life.end(turn, entry, run, RunState.CANCELLED, Reason.REQUEST_DELETED)
        return True
    if entry.schedule is not None and not _is_off(entry, run):
        return False
    turn.retry_later(run, delay_s=LOOK_AGAIN_S)
    return True


def decide(turn: Turn, entry: Entry, run: Run) -> None:
    """Apply the overlap policy to a run whose instant has come."""
    schedule = entry.schedule
    assert schedule is not None
    if entry.needs_places:
        pods.end_all_failed(turn, entry)
    occupying = entry.occupying if entry.needs_places else []
    named = sum(run.waits and run.by_schedule for run in occupying)
    match overlap(
        schedule.concurrency,
        occupying=len(occupying),
        queued=len(entry.queue),
        max_queued=min(schedule.max_queued, WAITING_COUNT - named),
        requested=len(entry.requested_occupying) if entry.needs_places else 0,
    ):
        case Overlap.START:
            backoff.launch(turn, entry, run)
        case Overlap.QUEUE:
            _queue(turn, entry, run)
        case Overlap.REPLACE:
            _cancel_others(turn, entry, run)
            backoff.launch(turn, entry, run)
        case Overlap.REPLACE_QUEUED:
            _cancel_others(turn, entry, run)
            _queue(turn, entry, run)
        case Overlap.SKIP:
            full = schedule.concurrency is Concurrency.QUEUE
            reason = Reason.QUEUE_FULL if full else Reason.OVERLAP
            message = _why_still_there(occupying)
            life.end(turn, entry, run, RunState.SKIPPED, reason, message=message)


def _why_still_there(occupying: list[Run]) -> str:
    """Of a run whose Pod does not start; empty: all is as it should be."""
    stuck = next((run for run in occupying if run.stuck), None)
    return (
        f"the run due {rfc3339.show(stuck.id.due)} is still there; {stuck.stuck}" if stuck else ""
    )


def _queue(turn: Turn, entry: Entry, run: Run) -> None:
    entry.queue.append(run.id)
    life.wait(turn, entry, run, Stage.QUEUED, Reason.QUEUED)
    due = rfc3339.show(run.id.due)
    waits = f"The run due {due} waits for the one before it"
    turn.event(entry, EventReason.QUEUED, waits, run=run.id)


def _cancel_others(turn: Turn, entry: Entry, run: Run) -> None:
    # Queued ones are there after an edit: with one replacing the other none had its turn.
    queued = [other for other in entry.runs.values() if other.stage is Stage.QUEUED]
    for other in [*queued, *entry.occupying]:
        life.cancel(turn, entry, other, Reason.REPLACED)
        turn.event(
            entry,
            EventReason.REPLACED,
            f"The run due {rfc3339.show(other.id.due)} was cancelled: "
            f"the one due {rfc3339.show(run.id.due)} replaces it",
            run=other.id,
        )


def _rests(entry: Entry, queued: RunId) -> bool:
    """Whether a queued run takes no place although there is one. A requested one may go on while
    its schedule is suspended (force), and may not while its request is."""
    run = entry.runs.get(queued)
    if entry.schedule is None or not entry.taken_over:
        return True
    if run is None or run.by_schedule:
        return entry.halted
    return _is_off(entry, run)


def give_free_places(turn: Turn, entry: Entry) -> None:
    """Whoever waited longest takes a place that is free. After an edit to Allow all do: their runs
    overlap, so that there may never be a moment at which none holds a place."""
    while entry.queue and entry.place_is_free:
        first = next((one for one in entry.queue if not _rests(entry, one)), None)
        if first is None:
            return
        run = entry.runs.get(first)
        if run is not None and run.id.due > turn.now:  # the clock was set back since
            if run.retry_at != run.id.due:  # once: this is asked again and again until then
                run.retry_at = run.id.due
                turn.start_when_due(run)
            return
        entry.queue.remove(first)
        if run is None or run.stage is not Stage.QUEUED:
            continue
        if run.by_schedule and late.too_late(turn, entry, run):
            late.give_up(turn, entry, [run], Reason.DEADLINE)
        else:
            backoff.launch(turn, entry, run)
