"""A schedule stands still for a while: suspended by its spec, or paused after failures.

`accept` calls it with each accepted spec; how a pause begins, `pause` says.
"""

from collections import deque

from evenkeel.core.schedule import account, due, late, life
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import RunState, Schedule
from evenkeel.reasons import ConditionReason, ConditionType, EventReason, Reason


def suspend_or_resume(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """As the spec says now: stop what has not begun, or pass over what was due meanwhile."""
    if schedule.suspend:
        if entry.suspended_since is None:
            _suspend(turn, entry)
        turn.condition(entry, ConditionType.ACTIVE, "False", ConditionReason.SUSPENDED)
        return
    if entry.suspended_since is not None:
        _go_on(turn, entry, reason=Reason.SUSPENDED)
        entry.suspended_since = None
        entry.resumed_at = turn.second
    if entry.pause is not None:
        reason = entry.pause.reason
        turn.condition(entry, ConditionType.ACTIVE, "False", ConditionReason.PAUSED, reason)


def _suspend(turn: Turn, entry: Entry) -> None:
    entry.suspended_since = turn.second
    late.withdraw_future_runs(turn, entry)
    life.call_back(turn, entry)
    for run in [run for run in entry.runs.values() if _has_not_begun(run)]:
        life.end(turn, entry, run, RunState.SKIPPED, Reason.SUSPENDED)
    left = (run for run in entry.queue if run in entry.runs)  # requested ones wait on
    entry.queue = deque(left)
    account.opened(turn, entry, Reason.SUSPENDED)


def _has_not_begun(run: Run) -> bool:
    """A held retry has: an attempt of it has run, so no policy can skip it any more."""
    waits = run.stage in (Stage.TAKEN, Stage.QUEUED, Stage.HELD)
    return run.by_schedule and run.attempt == 1 and waits


def end_pause(turn: Turn, entry: Entry, *, why: str) -> None:
    """An edit or a resume lets a schedule go on that failures had paused."""
    _go_on(turn, entry, reason=Reason.PAUSED)
    entry.pause = None
    entry.record.consecutive_failures = 0
    turn.event(entry, EventReason.RESUMED, why)


def _go_on(turn: Turn, entry: Entry, *, reason: Reason) -> None:
    """What passed while nothing was launched is one span, and never runs; retries go on."""
    due.pass_over(turn, entry, reason=reason)
    account.closed(turn, entry, reason)
    for run in entry.runs.values():
        if run.stage is Stage.RETRYING:
            turn.retry_later(run, delay_s=run.retry_m - turn.monotonic)
