"""Requests: they come, find their schedule, wait for their turn in their namespace, and go.

A request that has found its schedule stands in the entry of that schedule, and `core.schedule`
carries it out. Here is what concerns more than one schedule: which requests there are, which
schedule each one means, and how many of a namespace may be under way.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from evenkeel.core import placing, route
from evenkeel.core.agenda import OfRequest, RequestExpired, ScheduleDeadline
from evenkeel.core.effects import (
    DeleteRequest,
    ReadRequest,
    RequestClosed,
    RequestEnded,
    RequestKnown,
    RequestTold,
    WriteRequest,
)
from evenkeel.core.messages import (
    Document,
    DuesListed,
    RequestGone,
    RequestSeen,
    RequestsListed,
    RequestWritten,
    RunsTold,
)
from evenkeel.core.schedule import closing, planning, request_view, requested, resume
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry, Step
from evenkeel.core.schedule.turn import Turn
from evenkeel.core.state import State
from evenkeel.model import Rejection, Request, RequestState, kind_of_request
from evenkeel.reasons import ConditionReason, RequestCondition, RequestReason
from evenkeel.resource.request_record import RequestMemory

SCHEDULE_WAIT_S = 60.0
"""So long a request waits for a schedule that does not exist: both may be applied together."""

LOOK_S = 5.0

LACKING_S = 3600.0
"""A request that ended so long before a start may have ends that the ledger lacks: the process
before died between the two."""

# --- they come ------------------------------------------------------------------------------------


def seen(state: State, message: RequestSeen) -> None:
    """Added or modified; the same sight twice changes nothing."""
    sight = message.request
    if sight.uid in state.requests_gone:
        return
    if sight.uid in state.requests_closed:
        if not message.read:
            return  # the status that it was read with may be older than the one we have stored
        del state.requests_closed[sight.uid]
    request = state.requests.get(sight.uid)
    if request is None:
        request = _first_sight(state, sight, message.memory)
    elif sight.generation <= request.generation:
        return
    request.generation = sight.generation
    request.conditions = {  # kubectl and kstatus heed none of an older generation
        kind: replace(condition, generation=sight.generation)
        for kind, condition in request.conditions.items()
    }
    if isinstance(sight, Rejection):
        _reject(state, request, sight)
        return
    edited, request.spec, request.created = request.spec is not None, sight, sight.created
    state.requests_of.setdefault(sight.schedule_key, {})[sight.uid] = None
    if edited and request.bound_to:
        route.call(state, request.bound_to, requested.edited, request)
    elif edited:
        _with_turn(state, request, lambda turn: turn.request_dirty(request))
    state.requests_touched[sight.uid] = None


def _first_sight(state: State, sight: Request | Rejection, memory: RequestMemory) -> RequestEntry:
    request = RequestEntry(sight.uid, sight.ns, sight.name, seen_m=state.monotonic)
    request.memory = memory
    request.whole = memory.plan is None and memory.finished is None
    request.conditions = dict(memory.conditions)
    request.record, request.state = memory.record, memory.state
    request.started, request.finished = memory.started, memory.finished
    request.schedule_uid = memory.schedule_uid
    request.storing.version = memory.version
    request.storing.told_generation = memory.generation
    state.requests[sight.uid] = request
    if _tells_end(memory):
        request.step, request.memory = Step.ENDED, None
        if isinstance(sight, Request):
            request.spec = sight
            _expire_later(state, request)
            if memory.generation != sight.generation:
                _with_turn(state, request, lambda turn: turn.request_dirty(request))
    return request


def _tells_end(memory: RequestMemory) -> bool:
    """Its end was stored: a request that Git applies again must run nothing again."""
    ends = (RequestCondition.COMPLETE, RequestCondition.FAILED)
    found = (memory.conditions.get(kind) for kind in ends)
    return any(condition is not None and condition.status == "True" for condition in found)


def _reject(state: State, request: RequestEntry, rejection: Rejection) -> None:
    """An older CRD may have let it through."""
    if request.ended:
        return
    sentence = f"{rejection.field}: {rejection.sentence}" if rejection.field else rejection.sentence
    unreadable = rejection.reason is ConditionReason.UNREADABLE
    why = RequestReason.UNREADABLE if unreadable else RequestReason.INVALID
    if request.bound_to:  # an edit: what has begun goes on, by the spec as it was
        _with_turn(
            state,
            request,
            lambda turn: turn.request_condition(
                request, RequestCondition.READY, "False", why, sentence
            ),
        )
        return
    _with_turn(state, request, lambda turn: closing.refuse(turn, None, request, why, sentence))


# --- they find their schedule ---------------------------------------------------------------------


def follow_up(state: State) -> None:
    """For each request that was touched in this step: its turn, and its schedule. Then for each
    schedule what follows, which may end requests and give others their turn."""
    if state.stopping or not state.can_tell_what_is_due:
        return
    while True:
        while state.requests_ended:
            _ended(state, state.requests_ended.pop(0))
        while state.requests_touched:
            uid = next(iter(state.requests_touched))
            del state.requests_touched[uid]
            request = state.requests.get(uid)
            if request is not None and not request.bound_to:
                _find_schedule(state, request)
        _follow_orphans(state)
        placing.follow_up(state)
        if not state.requests_ended:
            return


def _find_schedule(state: State, request: RequestEntry) -> None:
    spec, memory = request.spec, request.memory
    if spec is None:
        return
    uid = state.uid_by_key.get(spec.schedule_key, "")
    if request.ended:  # its Jobs are history of its schedule
        if (entry := state.entries.get(uid)) is not None and request.schedule_uid == uid:
            _bind(state, entry, request)
        return
    if not _has_turn(state, request):
        return
    told = request.schedule_uid
    if uid in state.closed:
        return  # it is read again, and its requests with it
    entry = state.entries.get(uid)
    if entry is not None and told in ("", entry.uid):
        _bind(state, entry, request)
    elif told and (entry is not None or _schedules_are_known(state)):
        _gone_with_schedule(state, request, active=len(memory.active) if memory else 0)
    elif entry is None:
        _wait_for_schedule(state, request)


def _bind(state: State, entry: Entry, request: RequestEntry) -> None:
    request.bound_to = entry.uid
    known = [*entry.requests.values(), request]
    known.sort(key=lambda one: (one.created, one.name))
    entry.requests = {one.kind: one for one in known}
    entry.unfinished = {one.kind: one for one in known if not one.ended}
    state.touched[entry.uid] = None
    if request.ended and state.now - (request.finished or 0) < LACKING_S:
        recent = tuple(request.record.recent)
        kind, name = request.kind, request.name
        state.emit(RequestKnown(request.uid, entry.uid, entry.key, name, kind, recent=recent))
    if request.ended and request.kind in entry.unclaimed:
        route.call(state, entry.uid, resume.leave_to_history, request)


def _schedules_are_known(state: State) -> bool:
    """All schedules that were listed at the start are known: one that is missing does not exist."""
    if not state.schedules_known and state.listed_uids is not None and not state.unadmitted:
        state.schedules_known = all(map(state.knows, state.listed_uids))
    return state.schedules_known


def _wait_for_schedule(state: State, request: RequestEntry) -> None:
    left_s = request.seen_m + SCHEDULE_WAIT_S - state.monotonic
    if left_s <= 0 and _schedules_are_known(state):
        assert request.spec is not None
        sentence = (
            f"spec.schedule: there is no ScheduledJob {request.spec.schedule} in namespace "
            f"{request.ns}; the request has waited for it for {SCHEDULE_WAIT_S:g} s"
        )
        why = RequestReason.SCHEDULE_NOT_FOUND
        _with_turn(state, request, lambda turn: closing.refuse(turn, None, request, why, sentence))
        return
    _with_turn(state, request, lambda turn: planning.wait_for_schedule(turn, request))
    until_m = state.monotonic + (left_s if left_s > 0 else LOOK_S)
    state.agenda.put_delay(until_m, ScheduleDeadline(request.uid))


def _gone_with_schedule(state: State, request: RequestEntry, *, active: int) -> None:
    _with_turn(state, request, lambda turn: closing.schedule_gone(turn, request, active=active))


# --- their turn -----------------------------------------------------------------------------------


def _has_turn(state: State, request: RequestEntry) -> bool:
    """So many of a namespace may be under way; one that was accepted once keeps its turn."""
    turns = state.requests_under_way.setdefault(request.ns, {})
    limit = state.settings.requests_max_unfinished
    accepted = request.memory is not None and request.memory.plan is not None
    if request.uid in turns or accepted or len(turns) < limit:
        turns[request.uid] = None
        return True
    state.requests_in_line.setdefault(request.ns, {})[request.uid] = None
    sentence = (
        f"{limit} requests of this namespace are under way (setting requests.maxUnfinished): this "
        "one begins when one of them has ended"
    )
    reason = RequestReason.TOO_MANY_REQUESTS
    _with_turn(state, request, lambda turn: planning.wait(turn, request, reason, sentence))
    return False


def _ended(state: State, uid: str) -> None:
    """A request has come to its end, or is gone: the oldest one in line has its turn."""
    request = state.requests.get(uid)
    if request is not None and request.spec is not None and request.ended:
        _expire_later(state, request)
    ns = next((ns for ns, turns in state.requests_under_way.items() if uid in turns), None)
    if ns is None:
        return
    del state.requests_under_way[ns][uid]
    if not state.requests_under_way[ns]:
        del state.requests_under_way[ns]
    line = state.requests_in_line.get(ns, {})
    line.pop(uid, None)
    waiting = [state.requests[one] for one in line if one in state.requests]
    oldest = min(waiting, key=lambda one: (one.created, one.name), default=None)
    if oldest is not None:
        del line[oldest.uid]
        state.requests_touched[oldest.uid] = None
    if not line:
        state.requests_in_line.pop(ns, None)


# --- they go --------------------------------------------------------------------------------------


def gone(state: State, message: RequestGone) -> None:
    """Deleted: what has not begun never does."""
    state.requests_gone[message.uid] = state.monotonic
    state.requests_closed.pop(message.uid, None)
    state.requests_ended.append(message.uid)
    request = state.requests.get(message.uid)
    if request is None:
        return
    entry = state.entries.get(request.bound_to)
    if entry is not None:
        route.call(state, entry.uid, requested.deleted, request)
        state.emit(RequestClosed(request.uid, entry.uid, entry.key))
    route.drop_request(state, request)
    state.log("request removed", request=request.key)


def listed(state: State, message: RequestsListed) -> None:
    """Prune ghosts: a request that was deleted begins nothing more."""
    if not message.unlisted:
        state.listed_requests = (state.listed_requests or message.uids) & message.uids
    for request in list(state.requests.values()):
        known = request.uid in message.uids or request.ns in message.unlisted
        if not known and request.seen_m < message.listed_m:
            state.log("request pruned", level="warning", request=request.key)
            gone(state, RequestGone(request.uid))
    for uid in list(state.requests_closed):
        if uid not in message.uids:
            del state.requests_closed[uid]
    for entry in state.entries.values():
        if entry.unclaimed:
            state.touched[entry.uid] = None


def _follow_orphans(state: State) -> None:
    """Jobs that no request claims are followed by themselves, once all requests are known."""
    if not state.requests_known and state.listed_requests is not None:
        state.requests_known = all(map(state.knows_request, state.listed_requests))
    if not state.requests_known:
        return
    for uid in list(state.touched):
        entry = state.entries.get(uid)
        if entry is not None and entry.unclaimed and entry.taken_over:
            uids = state.requests_of.get(entry.key, {})
            mine = [state.requests[one] for one in uids]
            kinds = frozenset(request.kind for request in mine if not request.ended)
            if not entry.unclaimed.keys() <= kinds:
                route.call(state, uid, resume.follow_orphans, kinds)


def kinds(state: State) -> frozenset[str] | None:
    """Of all requests there are, and of Jobs that nobody follows yet; None: not all requests are
    known that there were at the start."""
    if not state.requests_known:
        return None
    closed = map(kind_of_request, state.requests_closed)
    unclaimed = (kind for entry in state.entries.values() for kind in entry.unclaimed)
    known = (request.kind for request in state.requests.values())
    return frozenset((*known, *closed, *unclaimed))


# --- their schedule comes and goes ----------------------------------------------------------------


def schedule_went(state: State, entry: Entry) -> None:
    """It was deleted, and its Jobs with it."""
    for request in list(entry.requests.values()):
        request.bound_to = ""
        if not request.ended:
            _gone_with_schedule(state, request, active=len(entry.runs_of(request)))


def read_again(state: State, schedule_uid: str) -> None:
    """The pause of a closed schedule is over."""
    for uid, (of, ns, name) in state.requests_closed.items():
        if of == schedule_uid:
            state.emit(ReadRequest(uid, ns, name))


# --- answers and moments --------------------------------------------------------------------------


def written(state: State, message: RequestWritten) -> None:
    """The status of a request is stored."""
    request = state.requests.get(message.uid)
    if request is None:
        return
    storing = request.storing
    storing.written = max(storing.written, message.revision)
    if request.schedule_uid and request.spec is not None:
        key = request.spec.schedule_key
        state.emit(RequestTold(request.uid, request.schedule_uid, key, message.revision))
    if storing.revision > storing.written:
        state.emit(WriteRequest(request.uid))
    if request.bound_to in state.entries:
        route.call(state, request.bound_to, requested.written)


def dues_listed(state: State, message: DuesListed) -> None:
    """The due times of a range are listed."""
    if (request := state.requests.get(message.request)) is not None:
        route.call(state, request.bound_to, planning.dues_listed, request, message)


def runs_told(state: State, message: RunsTold) -> None:
    """The ledger has answered."""
    if (request := state.requests.get(message.request)) is not None:
        route.call(state, request.bound_to, planning.runs_told, request, message)


def task(state: State, come: OfRequest) -> None:
    """The moment of a task has come."""
    request = state.requests.get(come.request)
    if request is None:
        return
    if isinstance(come, ScheduleDeadline):
        state.requests_touched[request.uid] = None
    elif request.storing.written < request.storing.revision:  # its end is not stored yet
        state.agenda.put_delay(state.monotonic + LOOK_S, come)
    else:
        state.emit(DeleteRequest(request.uid, request.ns, request.name))


def _expire_later(state: State, request: RequestEntry) -> None:
    assert request.spec is not None
    if (ttl_s := request.spec.ttl_s) is None or request.finished is None:
        return
    left_s = min(ttl_s, max(0.0, request.finished + ttl_s - state.now))
    state.agenda.put_delay(state.monotonic + left_s, RequestExpired(request.uid))


# --- what the shell asks --------------------------------------------------------------------------


def document(state: State, uid: str) -> tuple[str, str, Document, int] | None:
    """A request's namespace, name, status and revision, for the status writer; None: gone."""
    request = state.requests.get(uid)
    if request is None:
        return None
    found = request_view.document(request, state.entries.get(request.bound_to))
    return request.ns, request.name, found, request.storing.revision


def by_state(state: State) -> dict[RequestState, int]:
    """Every state, and how many requests are in it."""
    counted = Counter(request.state for request in state.requests.values())
    return {each: counted[each] for each in RequestState}


def _with_turn(state: State, request: RequestEntry, act: Callable[[Turn], object]) -> None:
    """Of a request that has found no schedule."""
    turn = state.turn(request.ns)
    act(turn)
    state.effects += turn.effects
    state.requests_ended += [one.uid for one in turn.effects if isinstance(one, RequestEnded)]
