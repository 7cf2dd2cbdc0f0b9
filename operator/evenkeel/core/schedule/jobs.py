"""What Jobs tell of runs: started, ended, being deleted, lost. Their Pods tell more: see `pods`."""

from evenkeel.core.agenda import DeletionDeadline
from evenkeel.core.effects import FindJob
from evenkeel.core.messages import JobGone
from evenkeel.core.schedule import history, life, pods, trouble
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import BY_SCHEDULE, JobFact, JobState, RunState
from evenkeel.reasons import ConditionReason, ConditionType, Reason
from evenkeel.resource.job import job_name

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
        history.delete_unwanted(turn, entry, fact.ref, unwanted)
        return
    run = entry.runs.get(fact.run)
    if run is None and fact.run.kind != BY_SCHEDULE:
        keep_for_request(entry, fact)
        return
    run = run or _found(turn, entry, fact)
    if run is not None:
        follow(turn, entry, run, fact)


def keep_for_request(entry: Entry, fact: JobFact) -> None:
    """A requested Job that nobody here has made: its request, once it is known, says what it is. Of
    a request that has ended nothing is missing."""
    request = entry.request_of(fact.run)
    if request is None or not request.ended:
        entry.unclaimed.setdefault(fact.run.kind, {})[fact.ref.uid] = fact
    elif fact.finished is not None:
        history.keep_told(entry, [fact])


def _forget_unclaimed(entry: Entry, fact: JobFact) -> None:
    facts = entry.unclaimed.get(fact.run.kind, {})
    facts.pop(fact.ref.uid, None)
    if not facts:
        entry.unclaimed.pop(fact.run.kind, None)


def is_of(entry: Entry, fact: JobFact) -> bool:
    """Whether this Job is what it says. Anybody who may create Jobs can write an owner's uid and a
    due time on one of his own, in any namespace; only the name that the run has cannot be had
    twice."""
    run = entry.runs.get(fact.run)
    if run is not None and run.ref == fact.ref and run.attempt == fact.attempt:
        return True  # as before: to compute the name again for each event took longer than the rest
    return fact.ref.ns == entry.ns and fact.ref.name == job_name(entry.name, fact.run, fact.attempt)


def _found(turn: Turn, entry: Entry, fact: JobFact) -> Run | None:
    """A Job above the cursor that another process of ours made: its run is taken."""
    run = Run(fact.run, taken_m=turn.monotonic, attempt=fact.attempt, late=True, adopted=True)
    if entry.is_taken(fact.run.due) or fact.deleting:
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
        run.started = run.pending_since = run.waiting_since_m = None  # begin anew when it goes on
    if fact.state is not JobState.WAITING:
        trouble.let_go(turn, entry, run)
    if run.stage is not Stage.RUNNING:
        life.running(turn, entry, run)
    if fact.state is JobState.SUCCEEDED:
        life.end(turn, entry, run, RunState.SUCCEEDED, finished=fact.finished)
    elif fact.state is JobState.FAILED:
        pods.job_failed(turn, entry, run, fact)
    elif fact.state is JobState.FAILING:
        pods.failing(turn, run)
    elif fact.deleting:
        _watch_deletion(turn, run)
    elif fact.state is JobState.WAITING:
        pods.watch_start(turn, entry, run)


def job_gone(turn: Turn, entry: Entry, message: JobGone) -> None:
    """A Job of this schedule was deleted, by whoever's hand."""
    fact = message.fact
    if not is_of(entry, fact):
        return
    history.forget(entry, fact.ref)
    _forget_unclaimed(entry, fact)
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
    if fact.state is JobState.FAILED:
        follow(turn, entry, run, fact)
    if run.failed is not None:  # it has ended; what its Pods tell of the cause is awaited still
        pods.job_gone(run)
        history.forget(entry, fact.ref)
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


def silence_changed(turn: Turn, entry: Entry) -> None:
    """Ends of Jobs are not seen any more, or they are again. A schedule none of whose Jobs goes on
    says so with its next create."""
    degraded = entry.conditions.get(ConditionType.DEGRADED)
    not_seen = degraded is not None and degraded.reason == ConditionReason.ENDS_NOT_SEEN
    if not_seen or (turn.silent and any(run.has_job for run in entry.runs.values())):
        trouble.show(turn, entry)


def judge(turn: Turn, entry: Entry) -> None:
    """Mended: what becomes of runs whose Jobs failed before anybody knew, and of Jobs that wait."""
    for run in list(entry.runs.values()):
        fact, run.unjudged = run.unjudged, None
        if fact is not None:
            follow(turn, entry, run, fact)
        elif run.stage is Stage.RUNNING and run.job_state is JobState.WAITING:
            pods.watch_start(turn, entry, run)


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
