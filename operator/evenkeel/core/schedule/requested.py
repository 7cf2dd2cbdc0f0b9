"""The runs of requests: they begin behind those by schedule, one after the other in the order of
the request, and the request ends when the last has ended.

`go_on` looks at all requests of a schedule: `core.requests` has it called for each schedule that a
step touched. A run that has begun is a run as every other; what differs is told where it differs.
"""

from collections import Counter
from dataclasses import replace

from evenkeel.core.agenda import LookAtRequest
from evenkeel.core.effects import RunWaits, Withdraw
from evenkeel.core.schedule import account, backoff, closing, history, life, planning, resume, start
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry, Step
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, Meeting, Request, RequestState, RunId, RunState
from evenkeel.reasons import Reason


def go_on(turn: Turn, entry: Entry) -> None:
    """Plan what is not planned, begin what may begin, end what has ended."""
    if not entry.taken_over or not entry.unfinished:
        return
    alive = Counter(run.id.kind for run in entry.runs.values())
    for request in list(entry.unfinished.values()):
        if request.step is Step.WAITING and turn.monotonic >= request.asks_again_m:
            planning.begin(turn, entry, request)
        if request.step is Step.RUNNING and request.memory is not None:
            resume.take_over(turn, entry, request)
            alive = Counter(run.id.kind for run in entry.runs.values())
        if request.step is Step.PLANNED and request.storing.written >= request.plan_revision:
            request.step = Step.RUNNING
        if request.step is Step.RUNNING:
            if request.kind in entry.unclaimed:
                resume.seen(turn, entry, request)
                alive = Counter(run.id.kind for run in entry.runs.values())
            _run(turn, entry, request, alive)


def _run(turn: Turn, entry: Entry, request: RequestEntry, alive: Counter[str]) -> None:
    _stop_after_failures(turn, entry, request)
    _give_up_or_take_places(turn, entry, request)
    while not request.stopped and not request.is_all_begun:
        due = request.dues[request.begun]
        if (
            waits := _why_not_yet(turn, entry, request, due, active=alive[request.kind])
        ) is not None:
            planning.say_accepted(turn, request, waits)
            break
        _begin(turn, entry, request, due)
        alive[request.kind] += RunId(entry.uid, due, request.kind) in entry.runs
        _stop_after_failures(turn, entry, request)
    if request.is_all_begun:
        planning.say_accepted(turn, request)
    over = request.stopped or request.is_all_begun
    if over and not entry.runs_of(request):
        closing.all_ended(turn, entry, request)


def _stop_after_failures(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    spec = request.spec
    assert spec is not None
    limit = spec.stop_after_failures
    if request.stopped or spec.span is None or not limit:
        return
    if request.record.consecutive_failures >= limit:
        request.stopped = True
        _cancel_unlaunched(turn, entry, request, Reason.REQUEST_STOPPED)


def _cancel_unlaunched(turn: Turn, entry: Entry, request: RequestEntry, reason: Reason) -> None:
    """End the runs of which no Job exists and none is being created."""
    waiting = (Stage.TAKEN, Stage.QUEUED, Stage.HELD)
    for run in entry.runs_of(request):
        if run.stage in waiting and run.attempt == 1:
            life.cancel(turn, entry, run, reason)


def _give_up_or_take_places(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """Runs without a Job hold no place while their request is suspended, or while their first
    create is held back: runs of the schedule would wait for them as long."""
    spec = request.spec
    assert spec is not None
    for run in entry.runs_of(request):
        if run.stage not in (Stage.HELD, Stage.RETRYING):
            continue
        unlaunched = run.attempt == 1 and spec.meeting is Meeting.WAIT
        rests = spec.suspend or (unlaunched and turn.monotonic < run.retry_m)
        if rests and not run.gave_up_place:
            run.gave_up_place = True
            start.give_free_places(turn, entry)
        elif run.gave_up_place and not rests and _has_place(entry, spec):
            run.gave_up_place = False
            turn.retry_later(run, delay_s=run.retry_m - turn.monotonic)


def _has_place(entry: Entry, spec: Request) -> bool:
    """Whether a run may begin beside those of the schedule that there are."""
    if spec.meeting is Meeting.ALLOW or not entry.needs_places:
        return True
    # While the schedule is paused, what is queued takes no place: a forced run would wait for ever.
    return entry.place_is_free and (not entry.queue or entry.halted)


# --- the next one ---------------------------------------------------------------------------------


def _why_not_yet(
    turn: Turn, entry: Entry, request: RequestEntry, due: Instant, *, active: int
) -> str | None:
    """What the next run waits for; empty: for nothing that people need to know. None: it may
    begin."""
    spec, schedule = request.spec, entry.schedule
    assert spec is not None
    if turn.stopping or active >= spec.max_active:
        return ""
    if spec.suspend:
        return "spec.suspend is true"
    if schedule is None:
        return "the spec of the schedule is not accepted"
    if entry.skipped_as is not None and not spec.force:
        return f"the schedule is {entry.skipped_as}, and spec.force is false"
    if due > turn.now:
        _wait_for_due(turn, entry, request, due)
        return "its due time is to come"
    if turn.monotonic < request.backoff.until_m:
        turn.agenda.put_delay(request.backoff.until_m, LookAtRequest(entry.uid, request.kind))
        return request.backoff.message
    if spec.meeting is Meeting.POLICY or _has_place(entry, spec):
        return None
    return "another run of the schedule is active, and concurrencyPolicy is not Allow"


def _wait_for_due(turn: Turn, entry: Entry, request: RequestEntry, due: Instant) -> None:
    """The single run of a request for later; or the clock was set back."""
    if request.deferred:
        return
    request.deferred = True
    turn.agenda.put_due(due, LookAtRequest(entry.uid, request.kind))
    turn.emit(
        RunWaits(
            run=RunId(entry.uid, due, request.kind),
            key=entry.key,
            state=RunState.SCHEDULED,
            reason=None,
            attempt=1,
            taken_at=None,
            revision=request.storing.revision,
            due_at=due,
            priority=entry.schedule.priority if entry.schedule else 0,
            told_by=account.told_by_request(request),
        )
    )


def _begin(turn: Turn, entry: Entry, request: RequestEntry, due: Instant) -> None:
    request.deferred = False
    request.begun += 1
    if RunId(entry.uid, due, request.kind) in entry.runs:
        return  # its Job was there before the request was seen
    run = open_run(turn, entry, request, due)
    request.state = RequestState.RUNNING
    if request.started is None:
        request.started = turn.second
    turn.request_dirty(request)
    if run.meeting is Meeting.POLICY:
        start.decide(turn, entry, run)
    else:
        backoff.launch(turn, entry, run)


def open_run(turn: Turn, entry: Entry, request: RequestEntry, due: Instant) -> Run:
    """A run of this request."""
    assert request.spec is not None
    run_id = RunId(entry.uid, due, request.kind)
    run = Run(run_id, turn.monotonic, taken_at=turn.now, late=True)
    run.meeting = request.spec.meeting
    entry.runs[run.id] = run
    return run


# --- what happens to a request --------------------------------------------------------------------


def edited(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """`suspend` or `maxActive` was changed: what waited for that goes on."""
    turn.request_dirty(request)
    for run in entry.runs_of(request):
        if run.stage is Stage.HELD:
            turn.retry_later(run, delay_s=request.backoff.until_m - turn.monotonic)
        elif run.stage is Stage.RETRYING:
            turn.retry_later(run, delay_s=run.retry_m - turn.monotonic)


def written(turn: Turn, entry: Entry) -> None:
    """The status of a request is stored: what waited for that may begin, or be deleted."""
    if entry.to_delete or entry.finished_jobs:
        history.clean(turn, entry)


def deleted(turn: Turn, entry: Entry, request: RequestEntry) -> None:
    """Somebody deleted it: what has not begun never does, and running Jobs go on."""
    if request.deferred and not request.is_all_begun:  # the ledger was told that it waits
        open_run(turn, entry, request, request.dues[request.begun])
    _cancel_unlaunched(turn, entry, request, Reason.REQUEST_DELETED)
    for run in entry.runs_of(request):
        if run.stage is Stage.RETRYING:
            life.cancel(turn, entry, run, Reason.REQUEST_DELETED)
        elif run.creating:
            turn.emit(Withdraw(run.id, run.attempt))  # one that is on its way arrives
    for job in entry.finished_jobs:
        if job.run.kind == request.kind:
            job.storing, job.revision = entry.storing, 0
    entry.to_delete = [
        replace(one, storing=entry.storing, revision=0) if one.storing is request.storing else one
        for one in entry.to_delete
    ]
    history.clean(turn, entry)
    entry.requests.pop(request.kind, None)
    entry.unfinished.pop(request.kind, None)
    for run in entry.runs_of(request):
        run.announced = 0  # no status of the request will tell of it
    turn.dirty(entry)


def look(turn: Turn, entry: Entry, task: LookAtRequest) -> None:
    """Its moment has come: `go_on` follows, as for every schedule that is touched."""
    request = entry.unfinished.get(task.kind)
    if request is not None:
        request.deferred = False
