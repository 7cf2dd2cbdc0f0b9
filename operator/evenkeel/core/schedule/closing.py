"""A request comes to its end: refused, nothing to do, complete, or failed.

At its end exactly one of the conditions Complete and Failed is True.
"""

from dataclasses import replace

from evenkeel import rfc3339
from evenkeel.core.effects import RequestEnded
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry, Step
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import ENDED, RequestState, RunState
from evenkeel.reasons import EventReason, Reason, RequestCondition, RequestReason

PLAN_LOST = (
    "the due times of its range are others than when it was planned: the time zone data has "
    "changed, or somebody has edited status.plan; make another request for what has not run"
)


def refuse(
    turn: Turn, entry: Entry | None, request: RequestEntry, reason: RequestReason, sentence: str
) -> None:
    """Its spec cannot be carried out, and nothing but another request helps."""
    turn.request_condition(request, RequestCondition.READY, "False", reason, sentence)
    turn.request_condition(request, RequestCondition.STALLED, "True", reason, sentence)
    turn.request_event(request, EventReason.REFUSED, f"{reason}: {sentence}", warning=True)
    why = RequestReason.REFUSED
    if reason is RequestReason.SCHEDULE_NOT_FOUND:
        why = reason
    _end(turn, entry, request, RequestState.REFUSED, why, sentence)


def nothing_runs(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """It asked what would run; or nothing is left to run."""
    spec = request.spec
    assert spec is not None
    if spec.dry_run:
        reason, sentence = RequestReason.DRY_RUN, f"{_runs(len(request.dues))} would begin"
    else:
        reason, sentence = RequestReason.NOTHING_TO_DO, "no due time of the range is left to run"
        if request.plan is not None and request.plan.count == 0:
            sentence = "the schedule has no due time in the range"
    _end(turn, entry, request, RequestState.SUCCEEDED, reason, sentence)


def all_ended(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """No run of it is alive, and none is to begin."""
    counts = request.record.counts
    said = ", ".join(f"{number} {state}" for state, number in sorted(counts.items()) if number)
    sentence = f"{said} of {_runs(len(request.dues))}"
    failed = any(counts.get(state.value) for state in (RunState.FAILED, RunState.LOST))
    if request.stopped and not request.is_all_begun:
        left = len(request.dues) - request.begun
        reason = RequestReason.STOPPED_AFTER_FAILURES
        sentence = f"{sentence}; {left} did not begin, because runs failed in a row"
    elif failed:
        reason = RequestReason.RUNS_FAILED
    elif counts.get(RunState.SUCCEEDED.value, 0) == len(request.dues):
        done = RequestReason.SUCCEEDED
        _end(turn, entry, request, RequestState.SUCCEEDED, done, f"{sentence}")
        return
    else:
        reason = RequestReason.RUNS_SKIPPED
    _end(turn, entry, request, RequestState.FAILED, reason, sentence)


def schedule_gone(turn: Turn, request: RequestEntry, *, active: int) -> None:
    """Its schedule was deleted, and the Jobs with it."""
    record, why = request.record, Reason.SCHEDULE_DELETED
    for _ in range(active):
        record.count(RunState.CANCELLED)
    record.recent = [
        row
        if row.state in ENDED
        else replace(row, state=RunState.CANCELLED, reason=why, finished=turn.second)
        for row in record.recent
    ]
    sentence = "the schedule was deleted, and its Jobs with it"
    reason = RequestReason.SCHEDULE_GONE
    _end(turn, None, request, RequestState.FAILED, reason, sentence)


def plan_lost(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """Nobody can say any more which due times it was to run."""
    _end(turn, entry, request, RequestState.FAILED, RequestReason.PLAN_LOST, PLAN_LOST)


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _end(
    turn: Turn,
    entry: Entry | None,
    request: RequestEntry,
    state: RequestState,
    reason: RequestReason,
    sentence: str,
) -> None:
    complete = state is RequestState.SUCCEEDED
    kind = RequestCondition.COMPLETE if complete else RequestCondition.FAILED
    turn.request_condition(request, kind, "True", reason, sentence)
    request.step, request.state, request.finished = Step.ENDED, state, turn.second
    request.listed = ()
    request.memory = None
    turn.request_dirty(request)
    if state is not RequestState.REFUSED:
        told = EventReason.COMPLETED if complete else EventReason.FAILED
        turn.request_event(request, told, f"{reason}: {sentence}", warning=not complete)
    if entry is not None:
        entry.unfinished.pop(request.kind, None)
        if request.plan is not None and request.begun:
            ended = f"RunRequest {request.name} {state.value.lower()}: {sentence}"
            turn.event(entry, EventReason.REQUEST_ENDED, ended, warning=not complete)
    schedule = request.spec.schedule if request.spec else ""
    turn.emit(
        RequestEnded(
            request.ns,
            request.name,
            schedule,
            state,
            reason,
            len(request.dues),
            dict(request.record.counts),
            request.uid,
        )
    )
    turn.log(
        "request ended",
        level="info" if complete else "warning",
        request=request.key,
        schedule=schedule,
        state=state,
        reason=reason,
        finished=rfc3339.show(request.finished),
        **request.record.counts,
    )
