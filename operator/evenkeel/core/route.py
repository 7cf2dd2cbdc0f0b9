"""The door to each schedule. A message or a task about one schedule comes in here: its entry is
found, its handler is called with a `Turn`, and a surprise stays inside that schedule.

When a handler raises, its effects are dropped, the entry is deleted, and the schedule is closed: it
says InternalError, and after a pause it is read again as at a restart. All other schedules go on.
Whoever works on all schedules goes through the same door, one schedule after the other.
"""

import traceback
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, TypeVar

from evenkeel.core import messages
from evenkeel.core.agenda import (
    CauseDeadline,
    DeletionDeadline,
    LedgerDeadline,
    LookAtRequest,
    OfSchedule,
    PendingDeadline,
    ProofDeadline,
    ProveTemplate,
    ReadAgain,
    Start,
    StartWarning,
    Task,
    UnwantedExpired,
)
from evenkeel.core.effects import (
    Forget,
    ForgetRequest,
    KubeEvent,
    Observed,
    RequestEnded,
    RunEnded,
    ScheduleKnown,
    Withdraw,
    WriteStatus,
)
from evenkeel.core.messages import Document, JobGone, JobSeen, Message
from evenkeel.core.schedule import (
    accept,
    account,
    backoff,
    creates,
    due,
    history,
    jobs,
    pods,
    requested,
    start,
    template,
    trigger,
    view,
)
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.ready import readiness, renew
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.turn import Turn
from evenkeel.core.state import Closed, Known, State
from evenkeel.model import Instant, Rejection, Schedule, ScheduleState
from evenkeel.reasons import ConditionReason, ConditionType, EventReason
from evenkeel.resource.record import Condition, Memory
from evenkeel.resource.status_parts import show_conditions

T = TypeVar("T")

READ_AGAIN_S = 10.0
"""The first pause before a schedule whose handler raised is read again; each one doubles it."""

LONGEST_READ_AGAIN_S = 300.0

FORGIVEN_S = 600.0
"""So long without a surprise, and the next one counts as the first."""

OF_ONE_SCHEDULE: dict[type[Message], Callable[[Turn, Entry, Any], None]] = {
    messages.CreateResult: creates.answered,
    messages.Unanswered: creates.unanswered,
    messages.PutBack: creates.put_back,
    messages.PodsLookedAt: pods.looked_at,
    messages.TemplateChecked: template.checked,
    messages.StatusWritten: history.status_written,
    messages.LedgerTold: accept.ledger_told,
    messages.TriggerMade: trigger.made,
}
"""Who handles what is said of one schedule, which its uid names."""

TASKS: dict[type[Task | OfSchedule], Callable[[Turn, Entry, Any], None]] = {
    Start: start.start,
    PendingDeadline: pods.pending_deadline,
    CauseDeadline: pods.cause_deadline,
    StartWarning: pods.start_warning,
    DeletionDeadline: jobs.deletion_deadline,
    UnwantedExpired: creates.unwanted_expired,
    ProveTemplate: template.prove_again,
    ProofDeadline: template.proof_deadline,
    LedgerDeadline: accept.ledger_deadline,
    LookAtRequest: requested.look,
}
"""Who handles what was put on the agenda."""


def message(state: State, said: Any) -> None:
    """A message about one schedule."""
    names_schedule = isinstance(
        said,
        messages.TemplateChecked
        | messages.StatusWritten
        | messages.LedgerTold
        | messages.TriggerMade,
    )
    uid = said.uid if names_schedule else said.run.uid
    call(state, uid, OF_ONE_SCHEDULE[type(said)], said)


def task(state: State, come: Task | OfSchedule) -> None:
    """The moment of a task has come."""
    uid = come.run.uid if isinstance(come, Task) else come.uid
    call(state, uid, TASKS[type(come)], come)


def job_seen(state: State, said: JobSeen) -> None:
    """A Job was added or modified. Of a schedule that is not taken over yet it is kept for that."""
    uid = said.fact.run.uid
    entry = state.entries.get(uid)
    if entry is None or not entry.taken_over:
        state.job_facts.setdefault(uid, {})[said.fact.ref.uid] = said.fact
    else:
        call(state, uid, jobs.job_seen, said.fact)


def job_gone(state: State, said: JobGone) -> None:
    """A Job was deleted."""
    uid = said.fact.run.uid
    entry = state.entries.get(uid)
    if entry is not None and entry.taken_over:
        call(state, uid, jobs.job_gone, said)
        return
    if (closed := state.closed.get(uid)) is not None:
        closed.gone_jobs.add(said.fact.ref.uid)
    facts = state.job_facts.get(uid, {})
    facts.pop(said.fact.ref.uid, None)
    if not facts:
        state.job_facts.pop(uid, None)


# --- the door -------------------------------------------------------------------------------------


def call(
    state: State, uid: str, handler: Callable[..., T], *arguments: Any, touch: bool = True
) -> T | None:
    """Call one schedule's handler. None where there is no such schedule, or where it raised.
    `touch`: what follows for the schedule is looked at, at the end of the step."""
    entry = state.entries.get(uid)
    if entry is None:
        return None
    turn = state.turn(entry.ns)
    try:
        value = handler(turn, entry, *arguments)
    except Exception as surprise:  # noqa: BLE001 - the bulkhead between tenants
        _close(state, entry, surprise)
        return None
    _hand_on(state, entry, turn)
    if touch:
        state.touched[uid] = None
    return value


def offer(state: State, uid: str, instant: Instant) -> None:
    """The index says that this schedule is due then: ten thousand may be at one instant, so whoever
    cannot take it up is passed by without a `Turn`."""
    entry = state.entries.get(uid)
    if entry is not None and not entry.halted:
        call(state, uid, due.offer, instant, touch=False)


def catch_up(state: State) -> None:
    """After a stall: each schedule may have due times that nobody took up."""
    for uid, entry in list(state.entries.items()):
        if not entry.halted:
            call(state, uid, due.catch_up)


def first_sight(
    state: State, seen: Schedule | Rejection, memory: Memory, *, revision: int = 0
) -> bool:
    """Make the entry of a schedule that was not known; False: that raised."""
    try:
        entry = accept.begin(state.turn(seen.ns), seen, memory, revision=revision)
    except Exception as surprise:  # noqa: BLE001 - the bulkhead between tenants
        empty = Entry(seen.uid, seen.ns, seen.name, generation=seen.generation)
        _close(state, empty, surprise)
        return False
    state.entries[entry.uid] = entry
    state.uid_by_key[entry.key] = entry.uid
    state.known[entry.uid] = Known()
    state.requests_touched.update(state.requests_of.get(entry.key, {}))
    count(state, entry.uid)
    return True


def count(state: State, uid: str) -> None:
    """Count a schedule that was touched, for /metrics."""
    call(state, uid, lambda turn, entry: state.census.count(entry), touch=False)


def document(state: State, uid: str) -> tuple[str, str, Document, int] | None:
    """A schedule's namespace, name, status and revision, for the status writer; None: gone."""
    if (closed := state.closed.get(uid)) is not None:
        return closed.ns, closed.name, _document_of(closed), closed.revision
    entry = state.entries.get(uid)
    if entry is None:
        return None
    try:
        found = view.take_document(entry, now=state.now)
        state.census.count(entry)  # the document may have said that nothing is due any more
    except Exception as surprise:  # noqa: BLE001 - the bulkhead between tenants
        _close(state, entry, surprise)
        return document(state, uid)
    return entry.ns, entry.name, found, entry.storing.revision


def known(state: State, uid: str) -> ScheduleKnown | None:
    """A schedule as its stored status tells of it, for the ledger; None: it is not known yet."""
    entry = state.entries.get(uid)
    return account.known_now(entry) if entry is not None and entry.taken_over else None


def _hand_on(state: State, entry: Entry, turn: Turn) -> None:
    state.effects += turn.effects
    for effect in turn.effects:
        if isinstance(effect, RunEnded):  # for a while people may ask how a run ended
            state.ended.append((state.monotonic, effect.run))
            state.ended_states[effect.run] = effect.state
        elif isinstance(effect, RequestEnded):
            state.requests_ended.append(effect.uid)
    if turn.server_unreachable:
        state.unreachable[entry.uid] = None
    elif turn.server_answered and state.unreachable:
        # One create that the API server answered tells all who wait for that to go on.
        waiting, state.unreachable = state.unreachable, {}
        for uid in waiting:
            call(state, uid, backoff.release)


# --- a surprise -----------------------------------------------------------------------------------


def _close(state: State, entry: Entry, surprise: Exception) -> None:
    """Delete the entry, say so, and have the schedule read again, and its requests with it."""
    drop(state, entry)
    for request in entry.requests.values():
        state.requests_closed[request.uid] = (entry.uid, request.ns, request.name)
        drop_request(state, request)
    tries, last_m = state.failures.get(entry.uid, (0, float("-inf")))
    tries = tries + 1 if state.monotonic - last_m < FORGIVEN_S else 1
    state.failures[entry.uid] = (tries, state.monotonic)
    sentence = f"an internal error of the operator: {type(surprise).__name__}: {surprise}"[:1024]
    closed = Closed(
        uid=entry.uid,
        ns=entry.ns,
        name=entry.name,
        generation=entry.generation,
        conditions=_conditions_of(state, entry, sentence),
        revision=entry.storing.revision + 1,
        tries=tries,
        closed_m=state.monotonic,
    )
    state.closed[entry.uid] = closed
    state.uid_by_key[entry.key] = entry.uid
    pause_s = min(LONGEST_READ_AGAIN_S, READ_AGAIN_S * 2.0 ** min(tries - 1, 10))
    state.agenda.put_delay(state.monotonic + pause_s, ReadAgain(entry.uid))
    state.log(
        "handler of a schedule failed",
        level="error",
        schedule=entry.key,
        error=type(surprise).__name__,
        where=_where(surprise),
        read_again_s=pause_s,
    )
    state.emit(Observed("internal_error", 1))
    reason = EventReason.INTERNAL_ERROR
    state.emit(KubeEvent(entry.uid, entry.ns, entry.name, True, reason, sentence))
    state.emit(Forget(entry.uid))  # what is kept for it has the revisions of an entry that is gone
    state.emit(WriteStatus(entry.uid))


def drop(state: State, entry: Entry) -> None:
    """Delete an entry, and all that the index, the load and the launcher have of it."""
    state.entries.pop(entry.uid, None)
    state.known.pop(entry.uid, None)
    state.census.forget(entry.uid)
    state.index_from.pop(entry.uid, None)
    state.touched.pop(entry.uid, None)
    state.unreachable.pop(entry.uid, None)
    if state.uid_by_key.get(entry.key) == entry.uid:
        del state.uid_by_key[entry.key]
    for run in entry.runs.values():
        if run.prepared or run.creating:
            state.emit(Withdraw(run.id, run.attempt))
    state.load.drop(entry.key)
    state.index_dirty = True


def drop_request(state: State, request: RequestEntry) -> None:
    """Delete a request, and all that is kept of it."""
    state.requests.pop(request.uid, None)
    state.requests_touched.pop(request.uid, None)
    if request.spec is not None:
        key = request.spec.schedule_key
        of = state.requests_of.get(key, {})
        of.pop(request.uid, None)
        if not of:
            state.requests_of.pop(key, None)
    state.emit(ForgetRequest(request.uid))


def _conditions_of(state: State, entry: Entry, sentence: str) -> dict[str, Condition]:
    """Not by a `Turn`: what it would read of the entry may be what raised."""
    conditions = dict(entry.conditions)
    conditions.pop(ConditionType.STALLED, None)

    def put(kind: ConditionType, status: str, reason: str, message: str) -> None:
        now, generation = int(state.now), entry.generation
        old = conditions.get(kind)
        conditions[kind] = renew(old, status, reason, message, now=now, generation=generation)

    put(ConditionType.DEGRADED, "True", ConditionReason.INTERNAL_ERROR, sentence)
    put(ConditionType.READY, *readiness(conditions))
    return conditions


def _document_of(closed: Closed) -> Document:
    """Nothing but what is known of it: all else in the stored status is what a restart needs."""
    return {"state": ScheduleState.DEGRADED, "conditions": show_conditions(closed.conditions)}


def _where(surprise: Exception) -> str:
    """The line that raised, without a text that could be a tenant's."""
    frames = traceback.extract_tb(surprise.__traceback__)
    if not frames:
        return ""
    return f"{PurePath(frames[-1].filename).name}:{frames[-1].lineno}"
