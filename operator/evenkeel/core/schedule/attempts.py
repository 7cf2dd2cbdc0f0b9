"""An attempt has failed: the run ends, or its next attempt waits."""

from evenkeel.core.schedule import account, life, tell, trouble
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import JobFact, Retry, RunState
from evenkeel.reasons import EventReason, RunReason
from evenkeel.resource.record import WAITING_COUNT


def failed(turn: Turn, entry: Entry, run: Run, fact: JobFact, reason: RunReason) -> None:
    """What comes of it. Delays count from the failure, whenever its cause became known."""
    if entry.retry is None:  # rejected since before this process: who mends it says what follows
        run.unjudged = fact
        return
    message = fact.message
    no_room = run.by_schedule and entry.waiting_room <= 0  # no restart would know of one more
    unasked = not run.by_schedule and entry.request_of(run.id) is None
    if run.attempt > entry.retry.limit or no_room or unasked:
        if run.attempt <= entry.retry.limit:
            why = f"{WAITING_COUNT} runs wait already" if no_room else "its request was deleted"
            message = f"{message} (not tried again: {why})".strip()
        how = RunState.FAILED
        life.end(turn, entry, run, how, reason, message=message, finished=fact.finished)
        return
    if fact.ref.uid:
        run.failed_jobs.append(fact.ref)
    trouble.let_go(turn, entry, run)
    failed_at = turn.second if fact.finished is None else fact.finished
    run.done = list(account.attempts_of(run, finished=failed_at, reason=reason))
    run.attempt += 1
    delay_s = retry_delay_s(entry.retry, run.attempt)
    due_at = max(turn.now, failed_at + delay_s)
    life.wait(turn, entry, run, Stage.RETRYING, reason, failed_at=failed_at, due_at=due_at)
    cause, shown = run.cause, tell.why(reason, fact.message, run.cause)
    run.begin_attempt()  # shown above; of the next Job nothing is known yet
    turn.retry_later(run, delay_s=min(delay_s, failed_at + delay_s - turn.now))
    turn.log(
        "run retries",
        schedule=entry.key,
        attempt=run.attempt,
        delay_s=delay_s,
        reason=reason,
        **tell.fields(cause),
    )
    turn.event(
        entry,
        EventReason.RETRYING,
        f"Job {fact.ref.name} failed: {shown}; attempt {run.attempt} of at most "
        f"{entry.retry.limit + 1} begins {delay_s} s later",
        warning=True,
        run=run.id,
    )


def retry_delay_s(retry: Retry, attempt: int) -> int:
    """How long this attempt waits after the one before it failed."""
    delay_s: int = retry.delay_s * retry.factor ** (attempt - 2)
    return min(retry.max_delay_s, delay_s)
