"""Due times that nobody launched in time: missed while nobody was there, or held back by what
forbade their create.

Both are one set per schedule: once anything in it is older than `grace` allows, all that is not
launched by now goes through missedRuns together. So Latest runs one after an outage, not one of the
outage and those of its last seconds besides.
"""

import math

from evenkeel.core import life
from evenkeel.core.effects import Withdraw
from evenkeel.core.entry import Entry, Run
from evenkeel.core.messages import TOO_MANY_REQUESTS
from evenkeel.core.missed import WHY_NOT, Missed, Span, settle
from evenkeel.core.state import State
from evenkeel.model import Instant, RunState
from evenkeel.resource import rfc3339

CATCH_UP_NAMES_LIMIT = 10_000
"""No list of due times in the core is longer, whatever a spec asks for."""

HELD_RETRY_LIMIT_S = 30
"""A quota that heals is noticed within this; a schedule that never fits asks twice a minute."""

ANSWER_WAIT_S = 60.0
"""So long the set waits for them: a reading by name takes 10 s to fail, and pauses as long."""

ANSWER_LOOK_S = 1.0

GRACE_SHARE = 0.25
"""Of grace, a pause within it is no longer. After tries at 1, 3, 7 and 15 s the next one came at
31, and an API server that was back after 18 s was too late."""

BUSY_RETRY_S = 1.0
"""After a 429 the lanes are closed for all, as long as the server says. A schedule that paused on
its own as well, longer each time, would leave the server idle when it has room again."""


def catch_up(state: State, entry: Entry) -> None:
    """Look for due times that are later than grace allows."""
    if entry.schedule is not None and entry.dues is not None and _overdue(state, entry):
        _settle(state, entry)


def stalled(state: State, run: Run) -> bool:
    """Prepared just before a stall: nobody was there for it either."""
    return not_begun(run) and not run.late and run.id.due < _horizon(state)


def too_late(state: State, entry: Entry, run: Run) -> bool:
    """Beyond its startingDeadlineSeconds."""
    deadline_s = entry.schedule.starting_deadline_s if entry.schedule else None
    # In whole seconds, as due times are: a deadline of 0 s must not mean never.
    return deadline_s is not None and math.floor(state.now) > run.id.due + deadline_s


def give_back(state: State, entry: Entry, runs: list[Run]) -> None:
    """Runs that have not begun become due times again that are nobody's."""
    for run in runs:
        if run.prepared:
            state.emit(Withdraw(run.id, run.attempt))
        del entry.runs[run.id]
        entry.open.pop(run.id.due, None)
        entry.rewind(min(entry.cursor, run.id.due - 1))


def drop_future_runs(state: State, entry: Entry) -> None:
    """Runs whose instant has not come belong to a timing that is gone."""
    runs = entry.runs.values()
    give_back(state, entry, [run for run in runs if not_begun(run) and run.id.due > state.now])


def unclaimed(entry: Entry, first: Instant, end: Instant) -> Span | None:
    """The due times in [first, end) that are nobody's run yet, counted without listing them."""
    dues = entry.dues
    if dues is None or end <= first:
        return None
    taken = _taken(entry, first, end)
    count = dues.count(first, end) - sum(1 for due in taken if dues.count(due, due + 1))
    if count <= 0:
        return None
    enough = len(taken) + 1
    earliest = next(due for due in dues.between(first, end, limit=enough) if due not in taken)
    backwards = reversed(dues.newest(first, end, limit=enough))
    latest = next(due for due in backwards if due not in taken)
    return Span(earliest, latest, count)


def miss(state: State, entry: Entry, missed: Missed) -> None:
    """Nobody was there in time: counted as one span, and said to the owner."""
    life.end_span(state, entry, missed.span, RunState.MISSED, missed.reason)
    state.event(entry, "Missed", f"{missed.span} missed: {missed.reason}", warning=True)


def not_begun(run: Run) -> bool:
    """Taken up; neither is its create under way nor does it wait for anything."""
    return run.state is RunState.PENDING and not run.creating and not run.waits


def _horizon(state: State) -> Instant:
    """What was due before it is later than grace allows."""
    return math.ceil(state.now - state.settings.grace_s)


def _taken(entry: Entry, first: Instant, end: Instant) -> list[Instant]:
    return [due for due in entry.taken if first <= due < end]


# --- the set --------------------------------------------------------------------------------------


def _overdue(state: State, entry: Entry) -> bool:
    if any(stalled(state, run) for run in entry.runs.values()):
        return True
    assert entry.dues is not None
    horizon, following = _horizon(state), entry.dues.next_after(entry.cursor)
    if following is None or following >= horizon:
        return False
    return unclaimed(entry, entry.cursor + 1, horizon) is not None


def _settle(state: State, entry: Entry) -> None:
    """All that is due by now and not launched goes through missedRuns."""
    schedule, dues = entry.schedule, entry.dues
    assert schedule is not None
    assert dues is not None
    end = math.floor(state.now) + 1
    runs = entry.runs.values()
    give_back(
        state,
        entry,
        [run for run in runs if not_begun(run) and not run.late and run.id.due < end],
    )
    held = _held_in_time(state, entry)
    first = border = min(entry.cursor + 1, end)
    if schedule.starting_deadline_s is not None:
        # In whole seconds, as `too_late` reckons: a run due this very second is not beyond 0 s.
        border = min(max(first, math.floor(state.now) - schedule.starting_deadline_s), end)
    taken = _taken(entry, border, end)
    limit = min(schedule.catch_up_limit, CATCH_UP_NAMES_LIMIT) + 1 + len(taken)
    newest = dues.newest(border, end, limit=limit) if border < end else []
    settled = settle(
        too_late=unclaimed(entry, first, border),
        in_time=unclaimed(entry, border, end),
        newest=tuple(due for due in newest if due not in taken),
        held=tuple(held),
        policy=schedule.missed_runs,
        catch_up_limit=schedule.catch_up_limit,
    )
    entry.advance(end - 1)
    for missed in settled.missed:
        miss(state, entry, missed)
    outdone = [run for due, run in held.items() if due not in settled.launch]
    give_up(state, entry, outdone, WHY_NOT[schedule.missed_runs])
    for due in settled.launch:
        if due in held:
            held[due].taken_at, held[due].late = state.now, True
            launch(state, entry, held[due])
        else:
            life.open_run(state, entry, due, late=True)
    entry.open = dict(sorted(entry.open.items()))


def _held_in_time(state: State, entry: Entry) -> dict[Instant, Run]:
    """The held runs of the set, by due time; those beyond their deadline end here."""
    held = held_firsts(entry)
    give_up(state, entry, [run for run in held if too_late(state, entry, run)], "deadline")
    return {run.id.due: run for run in held if run.state is RunState.PENDING}


def held_firsts(entry: Entry) -> list[Run]:
    """Held runs of which no attempt has run, the oldest first."""
    return sorted((run for run in entry.held if run.attempt == 1), key=lambda run: run.id.due)


def firsts_in_lanes(entry: Entry) -> list[Run]:
    """Runs whose first create is under way or about to be, and that no Job speaks for; the oldest
    first, as lanes go."""
    pending = (run for run in entry.runs.values() if run.state is RunState.PENDING)
    begun = [run for run in pending if run.attempt == 1 and not run.waits and not run.has_job]
    return sorted(begun, key=lambda run: run.id.due)


def give_up(state: State, entry: Entry, runs: list[Run], reason: str) -> None:
    """Runs that waited, and are not to be tried any more."""
    for run in runs:
        why = f"could not be created in time: {run.message}"
        what = why if run.message else f"was missed: {reason}"
        life.end(state, entry, run, RunState.MISSED, reason, message=run.message)
        state.event(entry, "Missed", f"the run due {rfc3339.show(run.id.due)} {what}", warning=True)


# --- held runs ------------------------------------------------------------------------------------


def launch(state: State, entry: Entry, run: Run) -> None:
    """Launch, unless the schedule's last create was held: then wait for its next try, too."""
    if state.now < entry.hold_until:
        _wait(state, entry, run, since=state.now)
    else:
        life.launch(state, entry, run)


def hold(state: State, entry: Entry, run: Run, reason: str, message: str, *, since: float) -> None:
    """Nothing was written, and it may heal: try again, later each time. What holds one run back
    holds the schedule's others: they share the pause, or each would ask for itself. `since`: when
    the create was sent, which may be long ago where no answer came."""
    run.creating = False
    entry.hold_message = message
    if state.now >= entry.hold_until:  # those sent beside it say the same
        if not entry.held_count:
            entry.held_since = state.now
        delay_s = min(HELD_RETRY_LIMIT_S, 2.0 ** min(entry.held_count, 10))
        grace_s = state.settings.grace_s
        if state.now < entry.held_since + grace_s:  # or a pause would outlast what is left of it
            delay_s = min(delay_s, grace_s * GRACE_SHARE)
        if reason == TOO_MANY_REQUESTS:
            delay_s = BUSY_RETRY_S
        entry.held_count += 1
        entry.hold_until = state.now + delay_s
    if entry.held_count == 1:
        state.log("create held", level="warning", schedule=entry.key, reason=reason)
    _wait(state, entry, run, since=since)


def release(state: State, entry: Entry) -> None:
    """A create was answered: what waited for that is tried at once."""
    if not entry.held_count:
        return
    state.log("creates go on", schedule=entry.key, tries=entry.held_count)
    entry.held_count, entry.hold_until = 0, 0.0
    for run in entry.held:
        state.retry_later(run, at=state.now)


def try_again(state: State, entry: Entry, run: Run) -> None:
    """Within its grace a held run is tried; after it, all that nobody launched is one set. A held
    retry is no part of that set: settling in its place would use up its try."""
    grace_s = state.settings.grace_s
    overdue = any(state.now > one.taken_at + grace_s for one in held_firsts(entry))
    if run.attempt > 1 or not overdue:
        launch(state, entry, run)
    elif _awaits_answers(state, entry):
        state.retry_later(run, at=state.now + ANSWER_LOOK_S)
    else:
        _settle(state, entry)


def _awaits_answers(state: State, entry: Entry) -> bool:
    """Creates without an answer belong to the set, if they come to nothing: after an outage that
    swallowed them they are found out one by one, and as many sets would run as many late."""
    if not any(run.silent for run in entry.runs.values()):
        entry.answers_awaited_until = None
        return False
    if entry.answers_awaited_until is None:
        entry.answers_awaited_until = state.now + ANSWER_WAIT_S
    return state.now < entry.answers_awaited_until


def _wait(state: State, entry: Entry, run: Run, *, since: float) -> None:
    if not run.was_held:  # its grace counts from here: to wait in a queue or lane is no failure
        run.was_held = True
        run.taken_at = max(run.taken_at, since)
    run.message = entry.hold_message
    if run.state is not RunState.RETRYING:
        life.wait(state, entry, run, "held")
    state.retry_later(run, at=entry.hold_until)
