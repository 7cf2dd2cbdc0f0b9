"""Due times become runs before their instant comes, or get a verdict as a span.

The index says what is due soon; a schedule that is new or has changed is looked at directly. Not
here: what happens at a run's instant (`start`), and what nobody launched in time (`late`).
"""

from evenkeel.core.schedule import account, late, life
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, RunState
from evenkeel.reasons import Reason


def take_up(turn: Turn, entry: Entry, *, until: Instant) -> None:
    """Every due time above the cursor and before `until` becomes a run, or goes to missedRuns."""
    if entry.halted or entry.dues is None:
        return
    if entry.runs or entry.cursor < turn.horizon:
        late.catch_up(turn, entry)
    for due in entry.dues.between(entry.cursor + 1, until):
        offer(turn, entry, due)


def catch_up(turn: Turn, entry: Entry) -> None:
    """After a stall: settle what is later than grace allows."""
    if not entry.halted:
        late.catch_up(turn, entry)


def offer(turn: Turn, entry: Entry, due: Instant) -> None:
    """A due time within grace: a run, unless it already is one or has a verdict."""
    if entry.halted:
        return
    if entry.is_taken(due):
        entry.advance(due)
    else:
        life.open_run(turn, entry, due)


def retire_timing(turn: Turn, entry: Entry, *, refused: bool = False) -> None:
    """The timing in force ends now: reckon with what was due by it, withdraw the rest. `refused`:
    an edit had put an end to it already, and this one mends that."""
    now = turn.second
    skipped_as = entry.skipped_as
    if skipped_as:
        pass_over(turn, entry, reason=skipped_as)
    elif refused:
        # Launched now, they would run by a timing that the user has replaced twice.
        for run in late.taken(entry):
            if run.id.due <= now:
                life.end(turn, entry, run, RunState.SKIPPED, Reason.REJECTED)
        pass_over(turn, entry, reason=Reason.REJECTED)
    elif not entry.halted:
        take_up(turn, entry, until=now + 1)
    if entry.runs:
        late.withdraw_future_runs(turn, entry)
        _stand_in_waiting(turn, entry)
    entry.rewind(max(now, entry.mark or 0))
    if skipped_as:  # it goes on: what was passed over has its verdict
        account.closed(turn, entry, skipped_as)
        account.opened(turn, entry, skipped_as)


def pass_over(turn: Turn, entry: Entry, *, reason: Reason) -> None:
    """Whatever is due up to now and nobody's run is skipped, as one span."""
    first, end = entry.cursor + 1, turn.second + 1
    span = late.unclaimed(entry, first, end)
    if span is not None:
        life.end_span(turn, entry, span, RunState.SKIPPED, reason)
    _stand_in_waiting(turn, entry)
    entry.advance(end - 1)


def _stand_in_waiting(turn: Turn, entry: Entry) -> None:
    """What is taken up lets the mark pass: what counts from now on is bounded by more than the
    mark, so after a restart only `waiting` would give these runs back. Those for which it has no
    room are given up, for after a restart nobody would know of them: held ones, the oldest first,
    then those that stand last in their lanes."""
    entry.open.clear()
    surplus = -entry.waiting_room
    if surplus > 0:
        unnamed = [*late.held_firsts(entry), *reversed(late.firsts_in_lanes(entry))][:surplus]
        late.give_up(turn, entry, unnamed, Reason.CATCH_UP_LIMIT)
