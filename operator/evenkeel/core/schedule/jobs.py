"""What Jobs tell of runs: started, ended, retried, stuck, lost."""

from evenkeel.core.agenda import DeletionDeadline, PendingDeadline
from evenkeel.core.effects import FindJob, LookAtPods
from evenkeel.core.messages import JobGone, PodsLookedAt
from evenkeel.core.schedule import history, life, tell
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import JobFact, JobRef, JobState, Retry, RunState
from evenkeel.reasons import (
    ConditionReason,
    ConditionType,
    EventReason,
    JobReason,
    Reason,
    RunReason,
)
from evenkeel.resource.job import job_name
from evenkeel.resource.record import WAITING_COUNT

PENDING_LOOK_S = 3600.0

DELETION_PATIENCE_S = 120.0
"""A Job that is deleted in the foreground goes when its Pods have, which by default takes 30 s."""


def job_seen(turn: Turn, entry: Entry, fact: JobFact) -> None:
    """A Job of this schedule was added or modified."""
    if not is_of(entry, fact):
        return
    unwanted = entry.unwanted.get((fact.run, fact.attempt))
    if unwanted is not None:
        if not unwanted.late:
            del entry.unwanted[fact.run, fact.attempt]
        history.delete(turn, entry, fact.ref, unwanted.reason, shown=unwanted.revision)
        return
    run = entry.runs.get(fact.run) or _found(turn, entry, fact)
    if run is not None:
        follow(turn, entry, run, fact)


def is_of(entry: Entry, fact: JobFact) -> bool:
    """Whether this Job is what it says. Anybody who may create Jobs can write an owner's uid and a
    due time on one of his own, in any namespace; only the name that the run has cannot be had
    twice."""
    run = entry.runs.get(fact.run)
    if run is not None and run.ref == fact.ref and run.attempt == fact.attempt:
        return True  # as before: to compute the name again for each event took longer than the rest
    return fact.ref.ns == entry.ns and fact.ref.name == job_name(entry.name, fact.run, fact.attempt)


def _found(turn: Turn, entry: Entry, fact: JobFact) -> Run | None:
    """A Job above the cursor that another process of ours made: its run is taken. Of requested runs
    each is followed that is not finished: no cursor passes them."""
    run = Run(fact.run, taken_m=turn.monotonic, attempt=fact.attempt, late=True, adopted=True)
    seen = entry.is_taken(fact.run.due) if run.by_schedule else fact.finished is not None
    if seen or fact.deleting:
        return None
    entry.runs[fact.run] = run
    return run


def follow(turn: Turn, entry: Entry, run: Run, fact: JobFact) -> None:
    """Bring a run up to what its Job says."""
    if fact.attempt != run.attempt or run.stage is Stage.RETRYING:
        return
    run.ref = fact.ref
    run.job_state = fact.state
    run.started = fact.started or run.started
    if fact.state is JobState.SUSPENDED:
        run.started = run.pending_since = None  # its clocks begin anew when it goes on
    if run.stage is not Stage.RUNNING:
        life.running(turn, entry, run)
    if fact.state is JobState.SUCCEEDED:
        life.end(turn, entry, run, RunState.SUCCEEDED, finished=fact.finished)
    elif fact.state is JobState.FAILED:
        reason = JobReason(fact.reason) if fact.reason else Reason.JOB_FAILED
        _attempt_failed(turn, entry, run, fact, reason)
    elif fact.deleting:
        _watch_deletion(turn, run)
    elif fact.state is JobState.WAITING:
        _watch_pending(turn, entry, run)


def _attempt_failed(turn: Turn, entry: Entry, run: Run, fact: JobFact, reason: RunReason) -> None:
    if entry.retry is None:  # rejected since before this process: who mends it says what follows
        run.unjudged = fact
        return
    message = fact.message
    no_room = entry.waiting_room <= 0  # no restart would know of one more
    if run.attempt > entry.retry.limit or no_room:
        if run.attempt <= entry.retry.limit:
            message = f"{message} (not tried again: {WAITING_COUNT} runs wait already)".strip()
        how = RunState.FAILED
        life.end(turn, entry, run, how, reason, message=message, finished=fact.finished)
        return
    if fact.ref.uid:
        run.failed_jobs.append(fact.ref)
    run.attempt += 1
    run.was_held = run.deleting = run.adopted = run.disowned = False
    run.pending_since = None  # of the next Job too, which may begin in the same second
    failed_at = turn.second if fact.finished is None else fact.finished
    delay_s = retry_delay_s(entry.retry, run.attempt)
    life.wait(turn, entry, run, Stage.RETRYING, reason, failed_at=failed_at)
    run.started = run.job_state = None  # shown above; of the next Job nothing is known yet
    turn.retry_later(run, delay_s=min(delay_s, failed_at + delay_s - turn.now))
    turn.log("run retries", schedule=entry.key, attempt=run.attempt, delay_s=delay_s, reason=reason)
    turn.event(
        entry,
        EventReason.RETRYING,
        f"Job {fact.ref.name} failed: {tell.cause(reason, fact.message)}; attempt {run.attempt} "
        f"of at most {entry.retry.limit + 1} begins {delay_s} s later",
        warning=True,
    )


def retry_delay_s(retry: Retry, attempt: int) -> int:
    """How long this attempt waits after the one before it failed."""
    delay_s: int = retry.delay_s * retry.factor ** (attempt - 2)
    return min(retry.max_delay_s, delay_s)


def job_gone(turn: Turn, entry: Entry, message: JobGone) -> None:
    """A Job of this schedule was deleted, by whoever's hand."""
    fact = message.fact
    if not is_of(entry, fact):
        return
    history.forget(entry, fact.ref)
    run = entry.living(fact.run, fact.attempt)
    if run is None or run.unjudged is not None:
        return  # how it ended is known already
    if run.creating:  # gone before its create was answered
        follow(turn, entry, run, fact)
        if run.id not in entry.runs:  # it has ended, and the answer will not tell of it any more
            history.forget(entry, fact.ref)
            return
    if run.stage is not Stage.RUNNING:
        return
    if run.ref is not None and run.ref.uid not in ("", fact.ref.uid):
        return
    if fact.state in (JobState.SUCCEEDED, JobState.FAILED):
        follow(turn, entry, run, fact)  # deleted after it finished: it ends by what was last seen
        history.forget(entry, fact.ref)  # history has nothing left to keep
    if run.stage is Stage.RUNNING and run.id in entry.runs and run.unjudged is None:
        if message.proven:
            _lose(turn, entry, run, "was deleted before it finished")
        else:
            ask_for(turn, run)


def ask_for(turn: Turn, run: Run) -> None:
    """What a watch or a list does not show may still run: its labels are everybody's to edit, and
    a list may be older than the Job."""
    assert run.ref is not None
    turn.emit(FindJob(run.id, run.attempt, run.ref, run.disowned))


def _lose(turn: Turn, entry: Entry, run: Run, how: str) -> None:
    name = run.ref.name if run.ref else ""
    life.end(turn, entry, run, RunState.LOST, Reason.JOB_DELETED, message=f"its Job {name} {how}")


def compare_with_list(
    turn: Turn, entry: Entry, listed: set[tuple[str, str]], listed_at: int
) -> None:
    """All Jobs at one moment: look for those of ours that are not among them."""
    for run in list(entry.runs.values()):
        if run.stage is not Stage.RUNNING or run.ref is None:
            continue
        if (run.ref.ns, run.ref.name) not in listed:
            ask_for(turn, run)
    history.keep_listed(entry, listed, listed_at)


def judge(turn: Turn, entry: Entry) -> None:
    """Mended: what becomes of runs whose Jobs failed before anybody knew, and of Jobs that wait."""
    for run in list(entry.runs.values()):
        fact, run.unjudged = run.unjudged, None
        if fact is not None:
            follow(turn, entry, run, fact)
        elif run.stage is Stage.RUNNING and run.job_state is JobState.WAITING:
            _watch_pending(turn, entry, run)


# --- Jobs that do not go ----------------------------------------------------------------------


def _watch_deletion(turn: Turn, run: Run) -> None:
    if not run.deleting:
        run.deleting = True
        until_m = turn.monotonic + DELETION_PATIENCE_S
        turn.agenda.put_delay(until_m, DeletionDeadline(run.id, run.attempt))


def deletion_deadline(turn: Turn, entry: Entry, task: DeletionDeadline) -> None:
    """A finalizer that nobody takes away keeps a deleted Job, and would keep the run's place."""
    run = entry.living(task.run, task.attempt)
    if run is not None and run.stage is Stage.RUNNING and run.deleting:
        _lose(turn, entry, run, "is being deleted and does not go: look at its finalizers")


# --- Jobs that do not start -----------------------------------------------------------------


def _watch_pending(turn: Turn, entry: Entry, run: Run) -> None:
    deadline_s = entry.schedule.pending_deadline_s if entry.schedule else None
    # Where nobody minds Jobs they get no startTime, and would keep their place for ever.
    started = run.started or run.pending_since or turn.second
    if deadline_s is not None and run.pending_since != started:  # not at each sight of it
        # For our own Jobs only the monotonic clock counts: ours may be hours ahead of the server's,
        # and a Job made a second ago would have failed by its deadline.
        waited_s = max(0.0, turn.now - started) if run.adopted else 0.0
        run.pending_since = started
        run.pending_until_m = turn.monotonic + max(0.0, deadline_s - waited_s)
        _look_again(turn, run)


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


def pods_looked_at(turn: Turn, entry: Entry, message: PodsLookedAt) -> None:
    """No Pod started in time: the attempt failed, and its Job must not start later."""
    run = entry.living(message.run, message.attempt)
    if run is None or message.started or run.stage is not Stage.RUNNING or run.ref is None:
        return
    if message.reason is None:
        turn.condition(
            entry,
            ConditionType.DEGRADED,
            "True",
            ConditionReason.PODS_UNREADABLE,
            message.message,
        )
        return
    reason, ref = message.reason, run.ref
    fact = JobFact(
        ref=JobRef(ref.ns, ref.name),  # without a uid: history has nothing to keep
        run=run.id,
        attempt=run.attempt,
        state=JobState.FAILED,
        reason=reason,
        message=message.message,
        finished=turn.second,
    )
    life.refuse_late_create(turn, entry, run, reason)
    run.ref, run.job_state = fact.ref, JobState.FAILED
    _attempt_failed(turn, entry, run, fact, reason)
    history.delete(turn, entry, ref, reason)
