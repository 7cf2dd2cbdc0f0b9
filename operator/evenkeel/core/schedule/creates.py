"""What creates prove of runs: their Job exists, is somebody else's, is refused, held, or undone."""

from dataclasses import replace

from evenkeel import rfc3339
from evenkeel.core.agenda import UnwantedExpired
from evenkeel.core.effects import Observed, RunDelayed
from evenkeel.core.messages import CreateResult, PutBack, Unanswered
from evenkeel.core.schedule import account, backoff, history, jobs, life, template, trouble
from evenkeel.core.schedule.entry import Entry, Trouble
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import RunState, Verdict
from evenkeel.reasons import ConditionReason, EventReason, Reason
from evenkeel.resource.job import OWNER


def answered(turn: Turn, entry: Entry, message: CreateResult) -> None:
    """An orchestrator says what its create proved."""
    if message.reason is ConditionReason.UNREACHABLE:
        turn.server_unreachable = True
    elif message.reason is not ConditionReason.STATUS_NOT_WRITTEN:  # then no create was sent
        turn.server_answered = True
    if (message.run, message.attempt) in entry.unwanted:
        _undo(turn, entry, message)
        return
    run = entry.living(message.run, message.attempt)
    if run is None:
        return
    if message.reason is ConditionReason.UNKNOWN_FIELD and template.is_accepted(entry):
        # In an upgrade one API server may know the field and another may not yet.
        message = replace(message, verdict=Verdict.HELD)
        template.prove_once_more(turn, entry)
    if message.verdict is not Verdict.HELD:
        backoff.release_those_of(turn, entry, run)
    if run.stage is Stage.RUNNING and message.verdict not in (Verdict.CREATED, Verdict.ADOPTED):
        return  # the server did it after it was asked by name: the watch is the proof that counts
    match message.verdict:
        case Verdict.CREATED | Verdict.ADOPTED:
            _created(turn, entry, run, message)
        case Verdict.TAKEN if message.reason is ConditionReason.CRONJOB:
            how, reason = RunState.SKIPPED, Reason.CRONJOB
            _end_trouble(turn, entry, run)
            life.end(turn, entry, run, how, reason, message=message.message, answered=True)
        case Verdict.TAKEN:
            _cannot_be_created(turn, entry, run, message, Reason.NAME_TAKEN)
        case Verdict.REFUSED:
            _cannot_be_created(turn, entry, run, message, Reason.REFUSED)
        case Verdict.UNKNOWN:
            how, reason = RunState.LOST, Reason.OUTCOME_UNKNOWN
            life.end(turn, entry, run, how, reason, message=message.message, answered=True)
        case Verdict.HELD:
            _held(turn, entry, run, message)


def unanswered(turn: Turn, entry: Entry, message: Unanswered) -> None:
    """Nobody knows yet whether it was created."""
    run = entry.living(message.run, message.attempt)
    if run is not None and run.stage is Stage.CREATING:
        run.move(Stage.ASKING)


def _undo(turn: Turn, entry: Entry, message: CreateResult) -> None:
    """The run was cancelled while its create was under way."""
    key = (message.run, message.attempt)
    if message.reason is ConditionReason.NOT_CREATED:
        # It may arrive yet: the entry stays as long, or a cancelled run would run.
        until_m = turn.monotonic + history.LATE_CREATE_S
        turn.agenda.put_delay(until_m, UnwantedExpired(*key))
        return
    unwanted = entry.unwanted.pop(key)
    if message.verdict in (Verdict.CREATED, Verdict.ADOPTED):
        history.delete_unwanted(turn, entry, message.ref, unwanted)


def unwanted_expired(turn: Turn, entry: Entry, task: UnwantedExpired) -> None:
    """No Job came of it."""
    entry.unwanted.pop((task.run, task.attempt), None)


def _created(turn: Turn, entry: Entry, run: Run, message: CreateResult) -> None:
    # A Job that was there before the create says nothing of when it was made, unless a create of
    # ours that got no answer made it.
    ours = message.verdict is Verdict.CREATED or run.stage is Stage.ASKING
    if ours and run.attempt == 1 and run.by_schedule:
        delay_s = max(0.0, message.sent_at - run.id.due)
        turn.emit(RunDelayed(delay_s, run.delayed_by))
        if message.verdict is Verdict.CREATED and not run.late:
            turn.emit(Observed("lateness", delay_s))
    if ours:
        run.sent_at = message.sent_at
    if run.stage is not Stage.RUNNING:  # the watch may have told of it first
        run.ref = message.ref
        life.running(turn, entry, run)
    elif ours:  # when it was sent, the watch could not tell
        account.run_began(turn, entry, run)
    created = f"Created job {message.ref.name}"
    turn.event(entry, EventReason.SUCCESSFUL_CREATE, created, run=run.id)
    if message.marks_lost:
        _follow_by_name(turn, entry, run, message)
    else:
        _end_trouble(turn, entry, run)
    template.prove_if_refused(turn, entry)
    if message.found is not None:
        jobs.follow(turn, entry, run, message.found)


def _follow_by_name(turn: Turn, entry: Entry, run: Run, message: CreateResult) -> None:
    """Something changed the Job as it was stored, and the watch of Jobs does not tell of it: asked
    for by name until its end. Otherwise its run would never end, and keep its place for ever."""
    sentence = (
        f"the Job {message.ref.name} was stored without its "
        f"{' and its '.join(message.marks_lost)}: an admission policy or webhook changes Jobs. It "
        "is asked for by name until it ends"
    )
    trouble.say(turn, entry, Trouble.CREATE, ConditionReason.JOB_ALTERED, sentence)
    turn.event(entry, EventReason.JOB_ALTERED, sentence, warning=True)
    lost = ", ".join(message.marks_lost)
    turn.log("job altered", level="warning", schedule=entry.key, job=message.ref.name, lost=lost)
    run.disowned = OWNER in message.marks_lost
    if run.stage is Stage.RUNNING and run.ref == message.ref:
        jobs.ask_for(turn, run)


def _held(turn: Turn, entry: Entry, run: Run, message: CreateResult) -> None:
    assert message.reason is not None
    if message.reason is ConditionReason.NOT_CREATED:
        run.unanswered_m, run.unanswered_attempt = turn.monotonic, run.attempt
        run.unanswered_at = run.id.due if run.announced_at is None else run.announced_at
        if entry.ttl_may_have_passed(max(0.0, turn.now - message.sent_at)):
            # Its Job may have been there, ended and vanished before it was looked for.
            how, reason = RunState.LOST, Reason.OUTCOME_UNKNOWN
            life.end(turn, entry, run, how, reason, message=message.message, answered=True)
            return
    _say_trouble(turn, entry, run, message.reason, message.message)
    since_s = max(0.0, turn.now - message.sent_at) if message.sent_at else 0.0
    if backoff.pause_of(entry, run).count == 0:
        due = rfc3339.show(run.id.due)
        turn.event(
            entry,
            EventReason.FAILED_CREATE,
            f"Error creating job for the run due {due}: {message.message}; it is tried again",
            warning=True,
            run=run.id,
        )
    backoff.hold(turn, entry, run, message.reason, message.message, since_s=since_s)


def _cannot_be_created(
    turn: Turn, entry: Entry, run: Run, message: CreateResult, reason: Reason
) -> None:
    taken = reason is Reason.NAME_TAKEN
    why = ConditionReason.NAME_TAKEN if taken else ConditionReason.REFUSED
    _say_trouble(turn, entry, run, why, message.message)
    turn.log("create refused", level="warning", schedule=entry.key, reason=reason)
    how = RunState.FAILED
    life.end(turn, entry, run, how, reason, message=message.message, answered=True)


def _say_trouble(turn: Turn, entry: Entry, run: Run, reason: ConditionReason, message: str) -> None:
    """What a requested run meets is told on its request: parameters of it may be the cause."""
    if run.by_schedule:
        trouble.say(turn, entry, Trouble.CREATE, reason, message)


def _end_trouble(turn: Turn, entry: Entry, run: Run) -> None:
    if run.by_schedule:
        trouble.end(turn, entry, Trouble.CREATE)


def put_back(turn: Turn, entry: Entry, message: PutBack) -> None:
    """It left its lane without a create. At a shutdown the due time is nobody's, and the next
    process finds it; else it came too late there, and that is decided where all of it is."""
    # Where it was cancelled in its lane, there is nothing to undo.
    entry.unwanted.pop((message.run, message.attempt), None)
    run = entry.living(message.run, message.attempt)
    if run is None or run.stage in (Stage.RUNNING, Stage.RETRYING):
        return
    run.prepared = False
    if run.stage is Stage.CREATING:
        if run.attempt > 1 or not run.by_schedule:  # it keeps its place until its schedule goes on
            life.wait(turn, entry, run, Stage.HELD, Reason.HELD)
        else:
            run.move(Stage.TAKEN)
            run.late = True  # it was there in time; its schedule may have another timing by now
            run.announced, run.announced_at = 0, None
    turn.changed(entry, run)  # what was announced is launching no more
    if not turn.stopping:
        turn.retry_later(run, delay_s=0)
