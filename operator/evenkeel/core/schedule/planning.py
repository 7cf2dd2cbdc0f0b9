"""A request is planned once: which due times it runs. Or it is refused, with a sentence.

    WAITING -> (LISTING -> ASKING, for a range) -> PLANNED -> RUNNING

The due times of a range are listed away from the loop; then the ledger is asked which of them have
run. Without a ledger the status of the schedule tells of the last runs. After a restart the stored
plan is read instead, and the due times are listed by the timing that the plan was made from.

`requested` goes on from a stored plan. Not guaranteed: a run that begins while the ledger is asked
may be planned a second time; a run that is alive when the plan is made is not.
"""

from collections.abc import Collection, Sequence

from evenkeel import rfc3339
from evenkeel.core.agenda import LookAtRequest
from evenkeel.core.effects import AskRuns, ListDues
from evenkeel.core.messages import DuesListed, PastRun, RunsTold
from evenkeel.core.schedule import closing, phase
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry, Step
from evenkeel.core.schedule.turn import Turn
from evenkeel.errors import BadField
from evenkeel.model import BY_SCHEDULE, Include, Instant, RunState
from evenkeel.reasons import EventReason, RequestCondition, RequestReason
from evenkeel.resource.record import RECENT_COUNT
from evenkeel.resource.request_fit import wrong_parameters
from evenkeel.resource.request_record import Plan
from evenkeel.when import DueTimes, compile_timing

LEDGER_PAUSE_S = 5.0
"""Between two questions to a ledger that is away."""

NOT_ACCEPTED = "the spec of the schedule is not accepted: mend it, and the request goes on"
NO_PHASE = "the operator has not chosen the phase of the schedule yet"
LEDGER_AWAY = "the ledger does not answer, and nobody else knows which due times have run"


def begin(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """The schedule is there: plan the request, or read its stored plan."""
    spec, schedule = request.spec, entry.schedule
    if spec is None:
        return
    if request.memory is not None and request.memory.plan is not None:
        _read_plan(turn, entry, request, request.memory.plan)
        return
    if request.memory is not None and request.memory.schedule_uid:
        # It was planned once. Planned anew, it would run again what has run.
        closing.plan_lost(turn, entry, request)
        return
    if schedule is None:
        wait(turn, request, RequestReason.SCHEDULE_NOT_READY, NOT_ACCEPTED)
        return
    if (wrong := next(wrong_parameters(spec, schedule), None)) is not None:
        closing.refuse(turn, entry, request, wrong.reason, f"{wrong.field}: {wrong.sentence}")
    elif spec.span is None:
        _plan(turn, entry, request, (spec.due,), all_due=(spec.due,))
    elif entry.dues is None:
        wait(turn, request, RequestReason.SCHEDULE_NOT_READY, NO_PHASE)
    elif spec.span.end > turn.now:
        end = rfc3339.show(spec.span.end)
        sentence = f"spec.range.to: {end} is not over yet; a range ends in the past"
        closing.refuse(turn, entry, request, RequestReason.RANGE_NOT_OVER, sentence)
    else:
        _list(turn, request, phase.dues_from(entry, entry.dues, spec.span.first))


def wait(turn: Turn, request: RequestEntry, reason: RequestReason, sentence: str) -> None:
    """It goes on when something else has changed."""
    turn.request_condition(request, RequestCondition.READY, "Unknown", reason, sentence)


def wait_for_schedule(turn: Turn, request: RequestEntry) -> None:
    """Both may have been applied together."""
    assert request.spec is not None
    name = request.spec.schedule
    sentence = f"spec.schedule: there is no ScheduledJob {name} in the namespace yet"
    wait(turn, request, RequestReason.SCHEDULE_NOT_SEEN, sentence)


# --- a range: which due times there are -----------------------------------------------------------


def _list(turn: Turn, request: RequestEntry, dues: DueTimes) -> None:
    assert request.spec is not None
    assert request.spec.span is not None
    span = request.spec.span
    request.step, request.timing = Step.LISTING, dues.timing
    limit = turn.settings.requests_max_dues + 1
    turn.emit(ListDues(request.uid, dues, span.first, span.end, limit))


def list_dues(work: ListDues) -> DuesListed:
    """List them; another thread may do it while the scheduler goes on."""
    found = work.dues.between(work.first, work.end, limit=work.limit)
    return DuesListed(work.request, tuple(found))


def dues_listed(turn: Turn, entry: Entry, request: RequestEntry, message: DuesListed) -> None:
    """The due times of the range are there."""
    if request.step is not Step.LISTING or request.spec is None:
        return
    if request.memory is not None and request.memory.plan is not None:
        _use_plan(turn, entry, request, request.memory.plan, message.dues)
        return
    limit = turn.settings.requests_max_dues
    if len(message.dues) > limit:
        sentence = (
            f"spec.range: it has more than {limit} due times, the most that a request may have "
            "(setting requests.maxDues): ask for a shorter range"
        )
        closing.refuse(turn, entry, request, RequestReason.TOO_MANY_DUE_TIMES, sentence)
        return
    request.listed = message.dues
    if request.spec.include is Include.ALL or not message.dues:
        _plan(turn, entry, request, message.dues, all_due=message.dues)
    else:
        _ask_ledger(turn, entry, request)


# --- a range: which of them have run --------------------------------------------------------------


def _ask_ledger(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    request.step = Step.ASKING
    first, last = request.listed[0], request.listed[-1]
    turn.emit(AskRuns(request.uid, entry.uid, entry.key, first, last + 1))


def runs_told(turn: Turn, entry: Entry, request: RequestEntry, message: RunsTold) -> None:
    """What the ledger knows of them."""
    if request.step is not Step.ASKING or request.spec is None:
        return
    if message.away:
        wait(turn, request, RequestReason.LEDGER_AWAY, LEDGER_AWAY)
        request.step = Step.WAITING
        request.asks_again_m = turn.monotonic + LEDGER_PAUSE_S
        turn.agenda.put_delay(request.asks_again_m, LookAtRequest(entry.uid, request.kind))
        return
    if not message.has_ledger:
        message = told_by_status(entry)
    if (sentence := _past_unknown(request.listed, message)) is not None:
        closing.refuse(turn, entry, request, RequestReason.PAST_UNKNOWN, sentence)
        return
    wanted = wanted_dues(request.listed, request.spec.include, message.runs)
    _plan(turn, entry, request, wanted, all_due=request.listed)


def told_by_status(entry: Entry) -> RunsTold:
    """The last runs, as the status of the schedule tells of them. A due time between two of them
    that no row names was missed or skipped with others."""
    rows = entry.record.recent
    runs = [PastRun(row.due, BY_SCHEDULE, row.state, bool(row.job)) for row in rows]
    runs += [
        PastRun(run.id.due, run.id.kind, run.state, run.has_job) for run in entry.runs.values()
    ]
    since = entry.created if len(rows) < RECENT_COUNT else min(row.due for row in rows) - 1
    return RunsTold("", tuple(runs), since)


def _past_unknown(dues: Sequence[Instant], told: RunsTold) -> str | None:
    """Why it cannot be said which of these due times have run; None: it can."""
    advice = "begin later, or set include: All"
    if dues[0] <= told.since:
        since = rfc3339.show(told.since)
        return (
            f"spec.range.from: which due times up to {since} have run is not known any more: "
            f"{advice}"
        )
    named = {run.due for run in told.runs if run.kind == BY_SCHEDULE}
    for first, end in told.unknown:
        if any(first <= due < end and due not in named for due in dues):
            span = f"{rfc3339.show(first)} to {rfc3339.show(end)}"
            return f"spec.range: what became of the due times from {span} is not known: {advice}"
    return None


def wanted_dues(
    dues: Sequence[Instant], include: Include, runs: Collection[PastRun]
) -> tuple[Instant, ...]:
    """The due times that `include` asks for."""
    if include is Include.NOT_SUCCEEDED:
        done = {run.due for run in runs if run.state is RunState.SUCCEEDED}
    elif include is Include.NOT_RUN:
        done = {run.due for run in runs if run.had_job}
    else:
        done = set()
    return tuple(due for due in dues if due not in done)


# --- the plan -------------------------------------------------------------------------------------


def _plan(
    turn: Turn,
    entry: Entry,
    request: RequestEntry,
    wanted: Sequence[Instant],
    *,
    all_due: Sequence[Instant],
) -> None:
    """Keep the plan. Nothing begins before it is stored: a process that ends in between would leave
    Jobs that the next plan does not know of."""
    spec = request.spec
    assert spec is not None
    if spec.span is not None:  # a living run is never repeated
        alive = {run.id.due for run in entry.runs.values()}
        wanted = [due for due in wanted if due not in alive]
    timing = request.timing if spec.span is not None else None
    plan = Plan(len(all_due), pack_bits(all_due, wanted), timing)
    request.adopt_plan(plan, tuple(wanted))
    request.step, request.schedule_uid = Step.PLANNED, entry.uid
    request.memory = None  # no earlier process has begun anything
    sentence = _planned(request)
    say_accepted(turn, request)
    turn.request_dirty(request)
    request.plan_revision = request.storing.revision
    turn.request_event(request, EventReason.ACCEPTED, f"Accepted: {sentence}")
    turn.log("request accepted", request=request.key, schedule=entry.key, runs=len(wanted))
    if spec.dry_run or not wanted:
        closing.nothing_runs(turn, entry, request)
        return
    by = f" by {spec.requested_by} (as told)" if spec.requested_by else ""
    asks = f"RunRequest {request.name}{by}: {sentence}"
    turn.event(entry, EventReason.REQUESTED, asks)


def _planned(request: RequestEntry) -> str:
    spec, plan = request.spec, request.plan
    assert spec is not None
    assert plan is not None
    if spec.span is None:
        return f"one run, due {rfc3339.show(spec.due)}"
    return f"{len(request.dues)} of {plan.count} due times are to run"


def say_accepted(turn: Turn, request: RequestEntry, waits: str = "") -> None:
    """`kubectl describe` answers why nothing begins."""
    sentence = f"{_planned(request)}; waits: {waits}" if waits else _planned(request)
    ready, reason = RequestCondition.READY, RequestReason.ACCEPTED
    turn.request_condition(request, ready, "True", reason, sentence)


def pack_bits(dues: Sequence[Instant], wanted: Collection[Instant]) -> bytes:
    """One bit for each due time, the first in the highest bit of the first byte."""
    chosen, bits = set(wanted), bytearray((len(dues) + 7) // 8)
    for place, due in enumerate(dues):
        if due in chosen:
            bits[place // 8] |= 0x80 >> place % 8
    return bytes(bits)


def unpack_bits(dues: Sequence[Instant], bits: bytes) -> tuple[Instant, ...]:
    """The due times whose bit is set."""
    return tuple(due for place, due in enumerate(dues) if bits[place // 8] & 0x80 >> place % 8)


def _read_plan(turn: Turn, entry: Entry, request: RequestEntry, plan: Plan) -> None:
    spec = request.spec
    assert spec is not None
    if plan.timing is None or spec.span is None:
        _use_plan(turn, entry, request, plan, (spec.due,))
        return
    try:
        dues = compile_timing(plan.timing, seed=entry.key)
    except BadField:  # edited by hand, or the time zone data has lost the zone
        closing.plan_lost(turn, entry, request)
    else:
        _list(turn, request, dues)


def _use_plan(
    turn: Turn, entry: Entry, request: RequestEntry, plan: Plan, dues: Sequence[Instant]
) -> None:
    """The stored plan, with the due times that it was made for."""
    memory = request.memory
    assert memory is not None
    request.schedule_uid = entry.uid
    if len(dues) != plan.count or len(plan.bits) != (plan.count + 7) // 8:
        closing.plan_lost(turn, entry, request)
        return
    request.adopt_plan(plan, unpack_bits(dues, plan.bits))
    if memory.mark is not None:
        place = request.position(memory.mark)
        if place is None:
            closing.plan_lost(turn, entry, request)
            return
        request.begun = place + 1
    request.step = Step.RUNNING
