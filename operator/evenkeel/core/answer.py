"""Questions and orders of people: each is answered in the step that reads it.

A question changes nothing. Of a schedule that is closed nothing can be said for the moment: whoever
asks is told that the scheduler is busy.
"""

from typing import Any

from evenkeel.core import route
from evenkeel.core.effects import Answer
from evenkeel.core.messages import CancelRun, GetActiveRuns, GetRun, GetSchedule
from evenkeel.core.schedule import life, view
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.core.state import State
from evenkeel.errors import Busy
from evenkeel.model import RunId, RunState

CLOSED = "this schedule is being read again after an internal error; ask again in a moment"


def cancel_run(state: State, message: CancelRun) -> None:
    """Works before, during and after the create."""
    route.call(state, message.run.uid, life.cancel_run, message.run)
    state.emit(Answer(message.ask, _run_state(state, message.run)))


def get_run(state: State, message: GetRun) -> None:
    """Where a run stands; ended ones are remembered for grace."""
    state.emit(Answer(message.ask, _run_state(state, message.run)))


def get_active_runs(state: State, message: GetActiveRuns) -> None:
    """Every run that holds a place, with its schedule."""
    runs = [
        (entry.key, run.id, run.state, run.attempt)
        for entry in state.entries.values()
        for run in entry.runs.values()
        if run.holds_place
    ]
    state.emit(Answer(message.ask, runs))


def get_schedule(state: State, message: GetSchedule) -> None:
    """The status as it would be written now."""
    uid = state.uid_by_key.get(message.key, "")
    value: Any = route.call(state, uid, _document)
    if uid in state.closed:
        value = Busy(CLOSED)
    state.emit(Answer(message.ask, value))


def _document(turn: Turn, entry: Entry) -> dict[str, Any]:
    return view.document(entry, now=turn.now)


def _run_state(state: State, run_id: RunId) -> RunState | Busy | None:
    """Where a run stands, as long as it is remembered."""
    if run_id.uid in state.closed:
        return Busy(CLOSED)
    entry = state.entries.get(run_id.uid)
    run = entry.runs.get(run_id) if entry else None
    return run.state if run else state.ended_states.get(run_id)
