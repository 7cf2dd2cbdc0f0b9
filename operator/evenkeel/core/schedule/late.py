"""Due times that nobody launched in time: missed while nobody was there, or held back by what
forbade their create.

Both are one set per schedule: once anything in it is older than `grace` allows, all that is not
launched by now goes through missedRuns together. So Latest runs one after an outage, not one of the
outage and those of its last seconds besides.
"""

from evenkeel.core.effects import Withdraw
from evenkeel.core.schedule import backoff, life
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.missed import WHY_NOT, Span, settle
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, RunId, RunState
from evenkeel.reasons import Reason

CATCH_UP_NAMES_LIMIT = 10_000
"""No list of due times in the core is longer, whatever a spec asks for."""


def catch_up(turn: Turn, entry: Entry) -> None:
    """Look for due times that are later than grace allows."""
    if entry.schedule is not None and entry.dues is not None and _overdue(turn, entry):
        _settle(turn, entry)


def stalled(turn: Turn, run: Run) -> bool:
    """Prepared just before a stall: nobody was there for it either."""
    return run.stage is Stage.TAKEN and not run.late and run.id.due < turn.horizon


def too_late(turn: Turn, entry: Entry, run: Run) -> bool:
    """Beyond its startingDeadlineSeconds, which no requested run has: nothing says when that should
    have come."""
    deadline_s = entry.schedule.starting_deadline_s if entry.schedule else None
    # In whole seconds, as due times are: a deadline of 0 s must not mean never.
    return run.by_schedule and deadline_s is not None and turn.second > run.id.due + deadline_s


def try_again(turn: Turn, entry: Entry, run: Run) -> None:
    """Within its grace a held run is tried; after it, all that nobody launched is one set. A held
    retry is no part of that set: settling in its place would use up its try."""
    grace_s = turn.settings.grace_s
    overdue = any(turn.monotonic > one.taken_m + grace_s for one in held_firsts(entry))
    if run.attempt > 1 or not run.by_schedule or not overdue:
        backoff.launch(turn, entry, run)
    elif backoff.awaits_answers(turn, entry):
        turn.retry_later(run, delay_s=backoff.ANSWER_LOOK_S)
    else:
        _settle(turn, entry)


def withdraw(turn: Turn, entry: Entry, runs: list[Run]) -> None:
    """Runs that have not begun become due times again that are nobody's."""
    for run in runs:
        if run.prepared:
            turn.emit(Withdraw(run.id, run.attempt))
        if run.announced:
            turn.dirty(entry)
        del entry.runs[run.id]
        entry.open.pop(run.id, None)
        entry.rewind(min(entry.cursor, run.id.due - 1))
        entry.pull_mark_back(min(turn.second, run.id.due - 1))


def withdraw_future_runs(turn: Turn, entry: Entry) -> None:
    """Runs whose instant has not come belong to a timing that is gone."""
    if runs := [run for run in taken(entry) if run.id.due > turn.now]:
        withdraw(turn, entry, runs)


def taken(entry: Entry) -> list[Run]:
    """Runs by schedule that are taken up and no more."""
    return [run for run in entry.runs.values() if run.stage is Stage.TAKEN and run.by_schedule]


def unclaimed(entry: Entry, first: Instant, end: Instant) -> Span | None:
    """The due times in [first, end) that are nobody's run yet, counted without listing them."""
    dues = entry.dues
    if dues is None or end <= first:
        return None
    claimed = _claimed(entry, first, end)
    count = dues.count(first, end) - sum(1 for due in claimed if dues.count(due, due + 1))
    if count <= 0:
        return None
    enough = len(claimed) + 1
    earliest = next(due for due in dues.between(first, end, limit=enough) if due not in claimed)
    backwards = reversed(dues.newest(first, end, limit=enough))
    latest = next(due for due in backwards if due not in claimed)
    return Span(earliest, latest, count)


def held_firsts(entry: Entry) -> list[Run]:
    """Held runs of which no attempt has run, the oldest first."""
    held = [run for run in entry.held if run.attempt == 1 and run.by_schedule]
    return sorted(held, key=lambda run: run.id)


def firsts_in_lanes(entry: Entry) -> list[Run]:
    """Runs whose first create is under way or about to be, and that no Job speaks for; the oldest
    first, as lanes go."""
    begun = [
        run
        for run in entry.runs.values()
        if run.stage in (Stage.TAKEN, Stage.CREATING, Stage.ASKING)
        and run.attempt == 1
        and run.by_schedule
        and not (run.creating and run.announced)
    ]
    return sorted(begun, key=lambda run: run.id)


def give_up(turn: Turn, entry: Entry, runs: list[Run], reason: Reason) -> None:
    """Runs that waited, and are not to be tried any more."""
    for run in runs:
        message = f"could not be created in time: {run.message}" if run.message else ""
        life.end(turn, entry, run, RunState.MISSED, reason, message=message)


# --- the set --------------------------------------------------------------------------------------


def _claimed(entry: Entry, first: Instant, end: Instant) -> list[Instant]:
    return [due for due in entry.taken if first <= due < end]


def _overdue(turn: Turn, entry: Entry) -> bool:
    if any(stalled(turn, run) for run in entry.runs.values()):
        return True
    assert entry.dues is not None
    horizon, following = turn.horizon, entry.dues.next_after(entry.cursor)
    if following is None or following >= horizon:
        return False
    return unclaimed(entry, entry.cursor + 1, horizon) is not None


def _settle(turn: Turn, entry: Entry) -> None:
    """All that is due by now and not launched goes through missedRuns."""
    schedule, dues = entry.schedule, entry.dues
    assert schedule is not None
    assert dues is not None
    end = turn.second + 1
    in_time = [run for run in taken(entry) if not run.late and run.id.due < end]
    withdraw(turn, entry, in_time)
    held = _held_in_time(turn, entry)
    first = border = min(entry.cursor + 1, end)
    if schedule.starting_deadline_s is not None:
        # In whole seconds, as `too_late` reckons: a run due this very second is not beyond 0 s.
        border = min(max(first, turn.second - schedule.starting_deadline_s), end)
    claimed = _claimed(entry, border, end)
    limit = min(schedule.catch_up_limit, CATCH_UP_NAMES_LIMIT) + 1 + len(claimed)
    newest = dues.newest(border, end, limit=limit) if border < end else []
    settled = settle(
        too_late=unclaimed(entry, first, border),
        in_time=unclaimed(entry, border, end),
        newest=tuple(due for due in newest if due not in claimed),
        held=tuple(held),
        launched=_launched(entry, claimed, held),
        policy=schedule.missed_runs,
        catch_up_limit=schedule.catch_up_limit,
    )
    entry.advance(end - 1)
    for missed in settled.missed:
        life.end_span(turn, entry, missed.span, RunState.MISSED, missed.reason)
    outdone = [run for due, run in held.items() if due not in settled.launch]
    give_up(turn, entry, outdone, WHY_NOT[schedule.missed_runs])
    for due in settled.launch:
        if due in held:
            held[due].taken_m, held[due].late = turn.monotonic, True
            backoff.launch(turn, entry, held[due])
        else:
            life.open_run(turn, entry, due, late=True)
    entry.open = dict(sorted(entry.open.items()))


def _launched(
    entry: Entry, claimed: list[Instant], held: dict[Instant, Run]
) -> tuple[Instant, ...]:
    """Those of the set that an earlier process has launched, whose status does not tell of it."""
    passed = (RunState.SKIPPED, RunState.MISSED)
    no_runs = {row.due for row in entry.record.recent if row.state in passed}
    return tuple(due for due in claimed if due not in held and due not in no_runs)


def _held_in_time(turn: Turn, entry: Entry) -> dict[Instant, Run]:
    """The held runs of the set, by due time; those beyond their deadline end here."""
    held = held_firsts(entry)
    give_up(turn, entry, [run for run in held if too_late(turn, entry, run)], Reason.DEADLINE)
    return {run.id.due: run for run in held if RunId(entry.uid, run.id.due) in entry.runs}
