"""What Jobs tell of runs: started, ended, retried, stuck, lost."""

from evenkeel.core import history, life, take
from evenkeel.core.agenda import DeletionDeadline, PendingDeadline
from evenkeel.core.effects import FindJob, LookAtPods
from evenkeel.core.entry import Entry, Run
from evenkeel.core.messages import (
    UNREADABLE,
    JobGone,
    JobSeen,
    JobsListed,
    PodsLookedAt,
)
from evenkeel.core.state import State
from evenkeel.model import Instant, JobFact, JobPhase, Retry, RunState
from evenkeel.resource import rfc3339
from evenkeel.resource.job import job_name
from evenkeel.resource.status import WAITING_COUNT

PENDING_LOOK_S = 3600.0

DELETION_PATIENCE_S = 120.0
"""A Job that is deleted in the foreground goes when its Pods have, which by default takes 30 s."""


# --- Jobs -----------------------------------------------------------------------------------------


def job_seen(state: State, message: JobSeen) -> None:
    """A Job of ours was added or modified."""
    fact = message.fact
    entry = state.entries.get(fact.run.uid)
    if entry is None or not entry.taken_over:
        state.job_facts.setdefault(fact.run.uid, {})[fact.ref.uid] = fact
        return
    if not is_of(entry, fact):
        return
    unwanted_job = entry.unwanted.get((fact.run, fact.attempt))
    if unwanted_job is not None:
        if not unwanted_job.late:
            del entry.unwanted[fact.run, fact.attempt]
        life.delete_job(state, entry, fact.ref, unwanted_job.reason)
        return
    run = entry.runs.get(fact.run)
    if run is None:
        run = _found(state, entry, fact)
        if run is None:
            return
    follow(state, entry, run, fact)
    take.next_in_queue(state, entry)


def is_of(entry: Entry, fact: JobFact) -> bool:
    """Whether this Job is what it says. Anybody who may create Jobs can write an owner's uid and a
    due time on one of his own, in any namespace; only the name that the run has cannot be had
    twice."""
    run = entry.runs.get(fact.run)
    if run is not None and run.ref == fact.ref and run.attempt == fact.attempt:
        return True  # as before: to compute the name again for each event took longer than the rest
    return fact.ref.ns == entry.ns and fact.ref.name == job_name(entry.name, fact.run, fact.attempt)


def _found(state: State, entry: Entry, fact: JobFact) -> Run | None:
    """A Job above the cursor that another process of ours made: its run is taken."""
    if entry.is_taken(fact.run.due) or fact.deleting:
        return None
    run = Run(fact.run, taken_at=state.now, attempt=fact.attempt, late=True)
    entry.runs[fact.run] = run
    return run


def follow(state: State, entry: Entry, run: Run, fact: JobFact) -> None:
    """Bring a run up to what its Job says."""
    if fact.attempt != run.attempt or run.state is RunState.RETRYING:
        return
    run.ref = fact.ref
    run.phase = fact.phase
    run.started = fact.started or run.started
    if fact.phase is JobPhase.SUSPENDED:
        run.started = run.pending_since = None  # its clocks begin anew when it goes on
    if run.state is not RunState.RUNNING:
        life.running(state, entry, run)
    if fact.phase is JobPhase.SUCCEEDED:
        life.end(state, entry, run, RunState.SUCCEEDED, finished=fact.finished)
    elif fact.phase is JobPhase.FAILED:
        _attempt_failed(state, entry, run, fact)
    elif fact.deleting:
        _watch_deletion(state, run)
    elif fact.phase is JobPhase.WAITING:
        _watch_pending(state, entry, run)


def _attempt_failed(state: State, entry: Entry, run: Run, fact: JobFact) -> None:
    if entry.retry is None:  # rejected since before this process: who mends it says what follows
        run.unjudged = fact
        return
    reason, message = fact.reason or "job_failed", fact.message
    no_room = len(entry.waiting) >= WAITING_COUNT  # no restart would know of one more
    if run.attempt > entry.retry.limit or no_room:
        if run.attempt <= entry.retry.limit:
            message = f"{message} (not tried again: {WAITING_COUNT} runs wait already)".strip()
        life.end(
            state, entry, run, RunState.FAILED, reason, message=message, finished=fact.finished
        )
        state.event(
            entry, "Failed", f"job {fact.ref.name} failed: {reason} {message}", warning=True
        )
        return
    if fact.ref.uid:
        run.failed_jobs.append(fact.ref)
    run.move(RunState.RETRYING)
    run.attempt += 1
    run.was_held = run.deleting = False
    run.pending_since = None  # of the next Job too, which may begin in the same second
    failed_at = int(state.now) if fact.finished is None else fact.finished
    delay_s = retry_delay_s(entry.retry, run.attempt)
    life.wait(state, entry, run, reason, failed_at=failed_at)
    run.started = run.phase = None  # told above; of the next Job nothing is known yet
    state.retry_later(run, at=max(state.now, failed_at + delay_s))
    state.log(
        "run retries", schedule=entry.key, attempt=run.attempt, delay_s=delay_s, reason=reason
    )
    state.event(
        entry,
        "Retrying",
        f"job {fact.ref.name} failed: {f'{reason} {fact.message}'.strip()}; attempt {run.attempt} "
        f"of at most {entry.retry.limit + 1} begins {delay_s} s later",
        warning=True,
    )


def retry_delay_s(retry: Retry, attempt: int) -> int:
    """How long this attempt waits after the one before it failed."""
    delay_s: int = retry.delay_s * retry.factor ** (attempt - 2)
    return min(retry.max_delay_s, delay_s)


def job_gone(state: State, message: JobGone) -> None:
    """A Job of ours was deleted, by whoever's hand."""
    fact = message.fact
    entry = state.entries.get(fact.run.uid)
    if entry is None or not entry.taken_over:
        facts = state.job_facts.get(fact.run.uid, {})
        facts.pop(fact.ref.uid, None)
        if not facts:
            state.job_facts.pop(fact.run.uid, None)
        return
    if not is_of(entry, fact):
        return
    history.forget(entry, fact.ref)
    run = entry.runs.get(fact.run)
    if run is None or fact.attempt != run.attempt:
        return
    if run.unjudged is not None:
        return  # how it ended is known already
    if run.creating and run.state is RunState.PENDING:  # gone before its create was answered
        follow(state, entry, run, fact)
        if run.id not in entry.runs:  # it had ended, and the answer will not tell of it any more
            history.forget(entry, fact.ref)
            take.next_in_queue(state, entry)
            return
    if run.state is not RunState.RUNNING:
        return
    if run.ref is not None and run.ref.uid not in ("", fact.ref.uid):
        return
    if fact.phase in (JobPhase.SUCCEEDED, JobPhase.FAILED):
        follow(state, entry, run, fact)  # deleted after it finished: it ends by what was last seen
        history.forget(entry, fact.ref)  # history has nothing left to keep
    if run.state is RunState.RUNNING and run.id in entry.runs and run.unjudged is None:
        if not message.proven:
            _ask_for(state, run)
            return
        _lose(state, entry, run, "was deleted before it finished")
    take.next_in_queue(state, entry)


def _ask_for(state: State, run: Run) -> None:
    """What a watch or a list does not show may still run: its labels are everybody's to edit, and
    a list may be older than the Job."""
    assert run.ref is not None
    state.emit(FindJob(run.id, run.attempt, run.ref))


def _lose(state: State, entry: Entry, run: Run, how: str) -> None:
    name = run.ref.name if run.ref else ""
    sentence = f"job {name} of the run due {rfc3339.show(run.id.due)} {how}"
    life.end(state, entry, run, RunState.LOST, "job_deleted", message=sentence)
    state.event(entry, "Lost", sentence, warning=True)


def jobs_listed(state: State, message: JobsListed) -> None:
    """All Jobs at one moment: adopt what is new, look for what is not among them."""
    first_time = message.ns not in state.listed_namespaces
    listed = {(fact.ref.ns, fact.ref.name) for fact in message.facts}
    _forget_facts(state, message.ns)
    for fact in message.facts:
        job_seen(state, JobSeen(fact))
    if first_time:
        state.listed_namespaces.add(message.ns)
        return
    for entry in list(state.entries.values()):
        if message.ns not in ("", entry.ns):
            continue
        for run in list(entry.runs.values()):
            if run.state is not RunState.RUNNING or run.ref is None:
                continue
            if (run.ref.ns, run.ref.name) in listed:
                continue
            _ask_for(state, run)
        entry.finished_jobs = [  # or history would keep a place for what is gone
            job
            for job in entry.finished_jobs
            if (job.ref.ns, job.ref.name) in listed or job.finished >= message.listed_at
        ]


def _forget_facts(state: State, ns: str) -> None:
    """What an older list said of schedules that are not admitted yet is outdated by a new one."""
    for uid, facts in list(state.job_facts.items()):
        kept = {key: fact for key, fact in facts.items() if ns not in ("", fact.ref.ns)}
        if kept:
            state.job_facts[uid] = kept
        else:
            del state.job_facts[uid]


def judge(state: State, entry: Entry) -> None:
    """Mended: what becomes of runs whose Jobs failed before anybody knew, and of Jobs that wait."""
    for run in list(entry.runs.values()):
        fact, run.unjudged = run.unjudged, None
        if fact is not None:
            follow(state, entry, run, fact)
        elif run.state is RunState.RUNNING and run.phase is JobPhase.WAITING:
            _watch_pending(state, entry, run)


# --- Jobs that do not go ----------------------------------------------------------------------


def _watch_deletion(state: State, run: Run) -> None:
    if not run.deleting:
        run.deleting = True
        until = state.now + DELETION_PATIENCE_S
        state.agenda.put(until, DeletionDeadline(run.id, run.attempt))


def deletion_deadline(state: State, task: DeletionDeadline) -> None:
    """A finalizer that nobody takes away keeps a deleted Job, and would keep the run's place."""
    found = state.living(task.run, task.attempt)
    if found is None:
        return
    entry, run = found
    if run.state is RunState.RUNNING and run.deleting:
        _lose(state, entry, run, "is being deleted and does not go: look at its finalizers")
        take.next_in_queue(state, entry)


# --- Jobs that do not start -----------------------------------------------------------------


def _watch_pending(state: State, entry: Entry, run: Run) -> None:
    deadline_s = entry.schedule.pending_deadline_s if entry.schedule else None
    # Where nobody minds Jobs they get no startTime, and would keep their place for ever.
    started = run.started or run.pending_since or int(state.now)
    if deadline_s is not None and run.pending_since != started:  # not at each sight of it
        run.pending_since = started
        _look_again(state, run, started + deadline_s)


def _look_again(state: State, run: Run, deadline: Instant) -> None:
    """A deadline of years must not stay on the agenda for years after its run has ended."""
    at = min(deadline, state.now + PENDING_LOOK_S)
    state.agenda.put(at, PendingDeadline(run.id, run.attempt))


def pending_deadline(state: State, task: PendingDeadline) -> None:
    """A Pod must have started by now; find out why not before ending the attempt."""
    found = state.living(task.run, task.attempt)
    if found is None:
        return
    entry, run = found
    deadline_s = entry.schedule.pending_deadline_s if entry.schedule else None
    if deadline_s is None:
        run.pending_since = None  # an accepted edit looks at it again
        return
    if run.phase is not JobPhase.WAITING or run.pending_since is None or run.ref is None:
        return
    if state.now >= run.pending_since + deadline_s:  # a suspension in between starts it anew
        state.emit(LookAtPods(run.id, run.attempt, run.ref))
    else:
        _look_again(state, run, run.pending_since + deadline_s)


def pods_looked_at(state: State, message: PodsLookedAt) -> None:
    """No Pod started in time: the attempt failed, and its Job must not start later."""
    found = state.living(message.run, message.attempt)
    if found is None or message.started:
        return
    entry, run = found
    if run.state is not RunState.RUNNING or run.ref is None:
        return
    if message.reason == UNREADABLE:
        state.condition(entry, "Degraded", "True", "PodsUnreadable", message.message)
        return
    ref = run.ref
    fact = JobFact(
        ref=type(ref)(ref.ns, ref.name),  # without a uid: history has nothing to keep
        run=run.id,
        attempt=run.attempt,
        phase=JobPhase.FAILED,
        reason=message.reason,
        message=message.message,
        finished=int(state.now),
    )
    life.refuse_late_create(state, entry, run, message.reason)
    follow(state, entry, run, fact)
    life.delete_job(state, entry, ref, message.reason)
    take.next_in_queue(state, entry)
