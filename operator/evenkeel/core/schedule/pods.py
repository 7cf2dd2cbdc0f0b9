"""What the Pods of a Job tell: why none of them starts, and why the Job failed.

The API server is asked for them as seldom as may be: once for a Job that failed, and for one Job of
a schedule at a time where none starts. Who asks waits for the answer, but a failed Job not for
long: its run ends without the cause then.
"""

from dataclasses import replace

from evenkeel import rfc3339
from evenkeel.core.agenda import CauseDeadline, PendingDeadline, StartWarning
from evenkeel.core.effects import LookAtPods
from evenkeel.core.messages import PodsLookedAt
from evenkeel.core.schedule import attempts, history, life, trouble
from evenkeel.core.schedule.entry import Entry, Trouble
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.trouble import NOT_STARTED
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import JobFact, JobRef, JobState
from evenkeel.reasons import ConditionReason, EventReason, JobReason, Reason

CAUSE_PATIENCE_S = 10.0
"""So long the end of a run waits for the cause of its Job's failure."""

PENDING_LOOK_S = 3600.0

LONGEST_PAUSE_S = 600.0
"""Between two looks at a Job of which no Pod starts: ten thousand of them are 17 looks a second."""


def looked_at(turn: Turn, entry: Entry, message: PodsLookedAt) -> None:
    """The Pods of a Job were listed, or may not be."""
    run = entry.living(message.run, message.attempt)
    if run is None or run.stage is not Stage.RUNNING or run.ref is None:
        return
    run.asked = False
    if message.unreadable:
        reason = ConditionReason.PODS_UNREADABLE
        trouble.say(turn, entry, Trouble.PODS, reason, message.message)
    elif Trouble.PODS in entry.troubles:
        trouble.end(turn, entry, Trouble.PODS)
    run.cause = run.cause or message.cause
    if run.failed is not None:
        end_failed(turn, entry, run)
    elif message.started:
        run.pod_started = True
        trouble.let_go(turn, entry, run)
    elif run.job_state is JobState.WAITING and message.reason is not None:
        _not_started(turn, entry, run, message.reason, message.message)


# --- why a Job failed -------------------------------------------------------------------------


def failing(turn: Turn, run: Run) -> None:
    """The Job has failed, and is ending its Pods: some go before the Job says that it has ended."""
    if not run.asked and run.cause is None:
        _ask_why(turn, run)


def job_failed(turn: Turn, entry: Entry, run: Run, fact: JobFact) -> None:
    """The run ends as soon as the cause is known, or nobody will tell it."""
    if run.failed is not None and run.asked:
        return
    asked_before = run.failed is not None
    run.failed = run.failed or fact
    if asked_before or run.cause is not None:
        end_failed(turn, entry, run)
        return
    if not run.asked:
        _ask_why(turn, run)
    until_m = turn.monotonic + CAUSE_PATIENCE_S
    turn.agenda.put_delay(until_m, CauseDeadline(run.id, run.attempt))


def cause_deadline(turn: Turn, entry: Entry, task: CauseDeadline) -> None:
    """Nobody has told the cause."""
    run = entry.living(task.run, task.attempt)
    if run is not None and run.failed is not None and run.asked:
        run.asked = False
        end_failed(turn, entry, run)


def end_failed(turn: Turn, entry: Entry, run: Run) -> None:
    """With the cause, or without it."""
    fact = run.failed
    assert fact is not None
    reason = JobReason(fact.reason) if fact.reason else Reason.JOB_FAILED
    attempts.failed(turn, entry, run, fact, reason)


def end_all_failed(turn: Turn, entry: Entry) -> None:
    """Somebody needs their places: a run whose Job has ended keeps none."""
    for run in [run for run in entry.runs.values() if run.failed is not None and run.asked]:
        run.asked = False
        end_failed(turn, entry, run)


def job_gone(run: Run) -> None:
    """A failed Job was deleted before its Pods were listed: history has nothing to keep of it."""
    if run.failed is not None:
        run.ref = JobRef(run.failed.ref.ns, run.failed.ref.name)
        run.failed = replace(run.failed, ref=run.ref)


def _ask_why(turn: Turn, run: Run) -> None:
    assert run.ref is not None
    run.asked = True
    within_s = CAUSE_PATIENCE_S
    turn.emit(LookAtPods(run.id, run.attempt, run.ref, of_failure=True, within_s=within_s))


# --- why no Pod starts ------------------------------------------------------------------------


def watch_start(turn: Turn, entry: Entry, run: Run) -> None:
    """No Pod of the Job has started: look at it after some time, and at its deadline."""
    deadline_s = entry.schedule.pending_deadline_s if entry.schedule else None
    # Where nobody minds Jobs they get no startTime, and would keep their place for ever.
    started = run.started or run.pending_since or turn.second
    # For our own Jobs only the monotonic clock counts: ours may be hours ahead of the server's,
    # and a Job made a second ago would have failed by its deadline.
    waited_s = max(0.0, turn.now - started) if run.adopted else 0.0
    if deadline_s is not None and run.pending_since != started:  # not at each sight of it
        run.pending_since = started
        run.pending_until_m = turn.monotonic + max(0.0, deadline_s - waited_s)
        _look_again(turn, run)
    if run.waiting_since_m is None and (warning_s := turn.settings.pod_start_warning_s):
        run.waiting_since_m = turn.monotonic - waited_s
        if not entry.start_watched:
            entry.start_watched = True
            turn.agenda.put_delay(run.waiting_since_m + warning_s, StartWarning(entry.uid))


def _look_again(turn: Turn, run: Run) -> None:
    """A deadline of years must not stay on the agenda for years after its run has ended."""
    at_m = min(run.pending_until_m, turn.monotonic + PENDING_LOOK_S)
    turn.agenda.put_delay(at_m, PendingDeadline(run.id, run.attempt))


def pending_deadline(turn: Turn, entry: Entry, task: PendingDeadline) -> None:
    """A Pod must have started by now; find out why not before ending the attempt."""
    run = entry.living(task.run, task.attempt)
    if run is None:
        return
    if entry.schedule is None or entry.schedule.pending_deadline_s is None:
        run.pending_since = None  # an accepted edit looks at it again
        return
    if run.job_state is not JobState.WAITING or run.pending_since is None or run.ref is None:
        return
    if turn.monotonic >= run.pending_until_m:  # a suspension in between starts it anew
        turn.emit(LookAtPods(run.id, run.attempt, run.ref))
    else:
        _look_again(turn, run)


def start_warning(turn: Turn, entry: Entry, task: StartWarning) -> None:
    """Look at the Job that has waited longest, less and less often. One task of a schedule is on
    the agenda, however many of its Jobs wait."""
    entry.start_watched = False
    warning_s = turn.settings.pod_start_warning_s
    waiting = [
        (run.waiting_since_m, run)
        for run in entry.runs.values()
        if run.waiting_since_m is not None
        and run.job_state is JobState.WAITING
        and not run.pod_started
        and (run.pending_since is None or turn.monotonic < run.pending_until_m)
    ]
    if not waiting or not warning_s:
        entry.start_looks = 0
        return
    since_m, run = min(waiting, key=lambda each: each[0])
    pause_s = since_m + warning_s - turn.monotonic
    if pause_s <= 0 and run.ref is not None:
        turn.emit(LookAtPods(run.id, run.attempt, run.ref, within_s=warning_s))
        pause_s = min(LONGEST_PAUSE_S, warning_s * 2.0 ** min(entry.start_looks, 20))
        entry.start_looks += 1
    entry.start_watched = True
    turn.agenda.put_delay(turn.monotonic + max(1.0, pause_s), StartWarning(entry.uid))


def _not_started(turn: Turn, entry: Entry, run: Run, reason: Reason, message: str) -> None:
    limited = entry.schedule is None or entry.schedule.pending_deadline_s is not None
    if limited and run.pending_since is not None and turn.monotonic >= run.pending_until_m:
        _too_slow(turn, entry, run, reason, message)
        return
    told, how = run.stuck, "has not started" if reason is Reason.PENDING else "cannot start"
    run.stuck = f"its Pod {how}: {message}"
    sentence = f"the run due {rfc3339.show(run.id.due)}: {run.stuck}"
    trouble.say(turn, entry, Trouble.START, NOT_STARTED[reason], sentence)
    if run.stuck != told:
        turn.event(entry, EventReason.POD_NOT_STARTED, sentence, warning=True)
        turn.log("no pod started", level="warning", schedule=entry.key, reason=reason)


def _too_slow(turn: Turn, entry: Entry, run: Run, reason: Reason, message: str) -> None:
    """No Pod started in time: the attempt failed, and its Job must not start later."""
    ref = run.ref
    assert ref is not None
    fact = JobFact(
        ref=JobRef(ref.ns, ref.name),  # without a uid: history has nothing to keep
        run=run.id,
        attempt=run.attempt,
        state=JobState.FAILED,
        reason=reason,
        message=message,
        finished=turn.second,
    )
    life.refuse_late_create(turn, entry, run, reason)
    run.ref, run.job_state = fact.ref, JobState.FAILED
    attempts.failed(turn, entry, run, fact, reason)
    history.delete(turn, entry, ref, reason)
