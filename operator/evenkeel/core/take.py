"""Due times become runs: taken up before their instant, started at it."""

import math

from evenkeel.core import late, life
from evenkeel.core.agenda import Start
from evenkeel.core.entry import Entry, Run
from evenkeel.core.overlap import Overlap, overlap
from evenkeel.core.state import State
from evenkeel.model import Instant, RunState
from evenkeel.resource import rfc3339
from evenkeel.resource.status import WAITING_COUNT

LOOK_AGAIN_S = 30
"""At runs whose schedule is rejected, suspended or paused meanwhile."""


def take_up_soon(state: State, entry: Entry) -> None:
    """Take up what an index built earlier cannot know of a schedule that is new or has changed."""
    until = math.floor(state.now + state.settings.pre_schedule_s) + 1
    take_up(state, entry, until=until)


def take_up(state: State, entry: Entry, *, until: Instant) -> None:
    """Every due time above the cursor and before `until` becomes a run, or goes to missedRuns."""
    if entry.halted or entry.dues is None:
        return
    catch_up(state, entry)
    for due in entry.dues.between(entry.cursor + 1, until):
        offer(state, entry, due)


def catch_up(state: State, entry: Entry) -> None:
    """Settle what is later than grace allows; a held run that is given up frees its place."""
    late.catch_up(state, entry)
    next_in_queue(state, entry)


def retire_timing(state: State, entry: Entry, *, refused: bool = False) -> None:
    """The timing in force ends now: reckon with what was due by it, let go of the rest. `refused`:
    an edit had put an end to it already, and this one mends that."""
    now = math.floor(state.now)
    if entry.skipped_as:
        pass_over(state, entry, reason=entry.skipped_as)
    elif refused:
        # CreateResult now, they would run by a timing that the user has replaced twice.
        for run in [run for run in entry.runs.values() if late.not_begun(run)]:
            if run.id.due <= now:
                life.end(state, entry, run, RunState.SKIPPED, "rejected")
        pass_over(state, entry, reason="rejected")
    elif not entry.halted:
        take_up(state, entry, until=now + 1)
    late.drop_future_runs(state, entry)
    _stand_in_waiting(state, entry)
    entry.rewind(max(now, entry.mark or 0))


def pass_over(state: State, entry: Entry, *, reason: str) -> None:
    """Whatever is due up to now and nobody's run is skipped, as one span."""
    first, end = entry.cursor + 1, math.floor(state.now) + 1
    span = late.unclaimed(entry, first, end)
    if span is not None:
        life.end_span(state, entry, span, RunState.SKIPPED, reason)
        state.event(entry, "Skipped", f"{span} skipped: {reason}")
    _stand_in_waiting(state, entry)
    entry.advance(end - 1)


def _stand_in_waiting(state: State, entry: Entry) -> None:
    """What is taken up lets the mark pass: what counts from now on is bounded by more than the
    mark, so after a restart only `waiting` would give these runs back. Those for which it has no
    room are given up, for after a restart nobody would know of them: held ones, the oldest first,
    then those that stand last in their lanes."""
    entry.open.clear()
    surplus = len(entry.waiting) - WAITING_COUNT
    if surplus > 0:
        unnamed = [*late.held_firsts(entry), *reversed(late.firsts_in_lanes(entry))][:surplus]
        late.give_up(state, entry, unnamed, "catch_up_limit")


def offer(state: State, entry: Entry, due: Instant) -> None:
    """A due time within grace: a run, unless it already is one or has a verdict."""
    if entry.halted:
        return
    if entry.is_taken(due):
        entry.advance(due)
    else:
        life.open_run(state, entry, due)


# --- a run's instant ------------------------------------------------------------------------------


def start(state: State, task: Start) -> None:
    """The instant of a run, or of its next try, has come."""
    found = state.living(task.run, task.attempt)
    if found is None:
        return
    entry, run = found
    if run.creating or run.state is RunState.RUNNING:
        return
    if run.reason == "queued":
        next_in_queue(state, entry)
        return
    if state.now < run.retry_at:
        return  # put off since
    if entry.schedule is None:  # rejected meanwhile: what waited goes on when it is mended
        state.retry_later(run, at=state.now + LOOK_AGAIN_S)
        return
    if run.state is RunState.RETRYING:
        if not entry.schedule.suspend and entry.pause is None:
            late.launch(state, entry, run)
        return
    if entry.halted and run.attempt > 1:
        state.retry_later(run, at=state.now + LOOK_AGAIN_S)
    elif entry.halted:
        life.end(state, entry, run, RunState.SKIPPED, "paused" if entry.pause else "suspended")
    elif run.attempt == 1 and late.too_late(state, entry, run):
        late.give_up(state, entry, [run], "deadline")
    elif run.reason == "held":
        late.try_again(state, entry, run)
    elif late.stalled(state, run):
        late.catch_up(state, entry)
    else:
        _decide(state, entry, run)
    next_in_queue(state, entry)  # given up, it frees its place, and no Job will tell of that


def _decide(state: State, entry: Entry, run: Run) -> None:
    """Apply the overlap policy to a run whose instant has come."""
    schedule = entry.schedule
    assert schedule is not None
    holding = entry.occupying if entry.needs_places else []
    queue_limit = min(schedule.max_queued, WAITING_COUNT - sum(r.waits for r in holding))
    match overlap(
        schedule.concurrency,
        holding=len(holding),
        queued=len(entry.queue),
        max_queued=queue_limit,
    ):
        case Overlap.START:
            late.launch(state, entry, run)
        case Overlap.QUEUE:
            entry.queue.append(run.id)
            life.wait(state, entry, run, "queued")
        case Overlap.REPLACE:
            # Queued ones are there after an edit: with one replacing the other none had its turn.
            queued = [other for other in entry.runs.values() if other.reason == "queued"]
            for other in [*queued, *holding]:
                life.cancel(state, entry, other, "replaced")
                state.event(
                    entry,
                    "Replaced",
                    f"the run due {rfc3339.show(other.id.due)} was cancelled: "
                    f"the one due {rfc3339.show(run.id.due)} replaces it",
                )
            late.launch(state, entry, run)
        case Overlap.SKIP:
            reason = "queue_full" if entry.queue else "overlap"
            life.end(state, entry, run, RunState.SKIPPED, reason)
            state.event(
                entry,
                "Skipped",
                f"the run due {rfc3339.show(run.id.due)} was skipped: {reason}",
                warning=True,
            )


def next_in_queue(state: State, entry: Entry) -> None:
    """A place is free: whoever waited longest takes it. Edited to Allow, all do: its runs overlap,
    so that there may never be a moment at which none holds a place."""
    if not entry.queue or entry.halted or state.stopping or not state.can_tell_what_is_due:
        return
    while entry.queue and not (entry.needs_places and entry.occupying):
        run = entry.runs.get(entry.queue[0])
        if run is not None and run.id.due > state.now:  # the clock was set back since
            if run.retry_at != run.id.due:
                state.retry_later(run, at=run.id.due)
            return
        entry.queue.popleft()
        if run is None or run.reason != "queued":
            continue
        run.reason = ""
        if late.too_late(state, entry, run):
            late.give_up(state, entry, [run], "deadline")
        else:
            late.launch(state, entry, run)
