"""What creates prove of runs: their Job exists, is somebody else's, is refused, held, or undone."""

from evenkeel.core import follow, history, late, life, take
from evenkeel.core.agenda import UnwantedExpired
from evenkeel.core.effects import Observed
from evenkeel.core.entry import Entry, Run
from evenkeel.core.messages import (
    BY_CRON_JOB,
    MARK_NOT_WRITTEN,
    NOT_CREATED,
    UNREACHABLE,
    CreateResult,
    PutBack,
    Unanswered,
)
from evenkeel.core.state import State
from evenkeel.model import RunState, Verdict


def launched(state: State, message: CreateResult) -> None:
    """An orchestrator says what its create proved."""
    entry = state.entries.get(message.run.uid)
    if entry is None:
        return  # the schedule is gone; the garbage collector takes the Job
    _release_unreachable(state, entry, message)
    if (message.run, message.attempt) in entry.unwanted:
        _undo(state, entry, message)
        take.next_in_queue(state, entry)
        return
    run = entry.runs.get(message.run)
    if run is None or run.attempt != message.attempt:
        return
    run.silent = False
    if message.verdict is not Verdict.HELD:
        late.release(state, entry)
    if run.state is RunState.RUNNING and message.verdict not in (Verdict.CREATED, Verdict.ADOPTED):
        return  # the server did it after it was asked by name: the watch is the proof that counts
    match message.verdict:
        case Verdict.CREATED | Verdict.ADOPTED:
            _created(state, entry, run, message)
        case Verdict.TAKEN if message.reason == BY_CRON_JOB:
            _run_by_cron_job(state, entry, run, message.message)
        case Verdict.TAKEN:
            _cannot_be_created(state, entry, run, "NameTaken", message.message)
        case Verdict.REFUSED:
            _cannot_be_created(state, entry, run, "Refused", message.message)
        case Verdict.UNKNOWN:
            run.creating = False
            life.end(state, entry, run, RunState.LOST, "outcome_unknown", message=message.message)
        case Verdict.HELD:
            if message.reason == NOT_CREATED:
                run.unanswered_at = state.now
            state.condition(entry, "Degraded", "True", message.reason or "Held", message.message)
            since = message.sent_at or state.now
            late.hold(state, entry, run, message.reason, message.message, since=since)
    take.next_in_queue(state, entry)  # an adopted Job may have ended as well


def unanswered(state: State, message: Unanswered) -> None:
    """Nobody knows yet whether it was created."""
    found = state.living(message.run, message.attempt)
    if found is not None:
        found[1].silent = found[1].creating


def _release_unreachable(state: State, entry: Entry, message: CreateResult) -> None:
    """One create that the API server answered tells all who wait for that to go on."""
    if message.reason == UNREACHABLE:
        state.unreachable[entry.uid] = None
        return
    if message.reason == MARK_NOT_WRITTEN:
        return  # no create was sent
    for uid in state.unreachable:
        if (other := state.entries.get(uid)) is not None:
            late.release(state, other)
    state.unreachable.clear()


def _undo(state: State, entry: Entry, message: CreateResult) -> None:
    """The run was cancelled while its create was under way."""
    key = (message.run, message.attempt)
    if message.verdict is Verdict.HELD and message.reason == NOT_CREATED:
        # It may arrive yet: the entry stays as long, or a cancelled run would run.
        state.agenda.put(state.now + history.LATE_CREATE_S, UnwantedExpired(*key))
        return
    unwanted_job = entry.unwanted.pop(key)
    if message.verdict in (Verdict.CREATED, Verdict.ADOPTED):
        life.delete_job(state, entry, message.ref, unwanted_job.reason)


def unwanted_expired(state: State, task: UnwantedExpired) -> None:
    """No Job came of it."""
    entry = state.entries.get(task.run.uid)
    if entry is not None:
        entry.unwanted.pop((task.run, task.attempt), None)


def _created(state: State, entry: Entry, run: Run, message: CreateResult) -> None:
    lateness_s = message.sent_at - run.id.due
    if message.verdict is Verdict.CREATED and run.attempt == 1 and not run.late:
        state.emit(Observed("lateness", max(0.0, lateness_s)))
    if run.state is not RunState.RUNNING:  # the watch may have told of it first
        run.ref = message.ref
        life.running(state, entry, run)
    state.event(entry, "Created", f"created job {message.ref.name}")
    state.condition(entry, "Degraded", "False", "AsExpected")
    if message.found is not None:
        follow.follow(state, entry, run, message.found)


def _run_by_cron_job(state: State, entry: Entry, run: Run, message: str) -> None:
    """The name is a lock between the two: this due time has had its Job."""
    run.creating = False
    state.condition(entry, "Degraded", "False", "AsExpected")
    state.event(entry, "Skipped", message)
    life.end(state, entry, run, RunState.SKIPPED, "cronjob", message=message)


def _cannot_be_created(state: State, entry: Entry, run: Run, reason: str, message: str) -> None:
    run.creating = False
    state.condition(entry, "Degraded", "True", reason, message)
    state.event(entry, reason, message, warning=True)
    state.log("create refused", level="warning", schedule=entry.key, reason=reason)
    words = {"NameTaken": "name_taken", "Refused": "refused"}
    life.end(state, entry, run, RunState.FAILED, words[reason], message=message)


def put_back(state: State, message: PutBack) -> None:
    """It left its lane without a create. At a shutdown the due time is nobody's, and the next
    process finds it; else it came too late there, and that is decided where all of it is."""
    entry = state.entries.get(message.run.uid)
    if entry is None:
        return
    entry.unwanted.pop(
        (message.run, message.attempt), None
    )  # cancelled in its lane: no Job to undo
    run = entry.runs.get(message.run)
    if run is None or run.attempt != message.attempt or run.state is not RunState.PENDING:
        return
    run.creating = False
    run.prepared = False
    if not state.stopping and run.attempt > 1:
        life.wait(state, entry, run, "held")  # it keeps its place until its schedule goes on
        state.retry_later(run, at=state.now)
        return
    if not state.stopping:
        run.late = True  # it was there in time, and its schedule may have another timing by now
        state.retry_later(run, at=state.now)
        return
    if not run.waits and run.attempt == 1:
        run.move(RunState.SCHEDULED)
    state.dirty(entry)  # where the mark was written ahead of the create, it is `waiting` now
