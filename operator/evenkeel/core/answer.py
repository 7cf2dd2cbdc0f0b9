"""Questions and orders of people: each is answered in the step that reads it."""

from evenkeel.core import life, take
from evenkeel.core.document import status_document
from evenkeel.core.effects import Answer
from evenkeel.core.messages import CancelRun, GetActiveRuns, GetRun, GetSchedule
from evenkeel.core.state import State
from evenkeel.model import RunId, RunState


def cancel_run(state: State, message: CancelRun) -> None:
    """Works before, during and after the create."""
    entry = state.entries.get(message.run.uid)
    run = entry.runs.get(message.run) if entry else None
    if entry is not None and run is not None:
        life.cancel(state, entry, run, "cancelled")
        take.next_in_queue(state, entry)
    state.emit(Answer(message.ask, _run_state(state, message.run)))


def get_run(state: State, message: GetRun) -> None:
    """Where a run stands; ended ones are remembered for grace."""
    state.emit(Answer(message.ask, _run_state(state, message.run)))


def get_active_runs(state: State, message: GetActiveRuns) -> None:
    """Every run that holds a place, with its schedule."""
    runs = [
        (entry.key, run.id, run.state, run.attempt)
        for entry in state.entries.values()
        for run in entry.occupying
    ]
    state.emit(Answer(message.ask, runs))


def get_schedule(state: State, message: GetSchedule) -> None:
    """The status as it would be written now."""
    uid = state.uid_by_key.get(message.key)
    document = status_document(state.entries[uid], now=state.now) if uid else None
    state.emit(Answer(message.ask, document))


def _run_state(state: State, run_id: RunId) -> RunState | None:
    """Where a run stands, as long as it is remembered."""
    entry = state.entries.get(run_id.uid)
    run = entry.runs.get(run_id) if entry else None
    return run.state if run else state.ended_states.get(run_id)
