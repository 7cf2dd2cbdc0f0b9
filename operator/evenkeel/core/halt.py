"""A schedule stands still for a while: suspended by its spec, or paused after failures.

`admit` calls it with each accepted spec; how a pause begins, `life` says.
"""

from evenkeel.core import late, life, take
from evenkeel.core.entry import Entry, Run
from evenkeel.core.state import State
from evenkeel.model import Instant, RunState, Schedule


def suspend_or_resume(state: State, entry: Entry, schedule: Schedule, now: Instant) -> None:
    """As the spec says now: stop what has not begun, or pass over what was due meanwhile."""
    if schedule.suspend:
        if entry.suspended_since is None:
            entry.suspended_since = now
            late.drop_future_runs(state, entry)
            life.call_back(state, entry)
            for run in [run for run in entry.runs.values() if _has_not_begun(run)]:
                life.end(state, entry, run, RunState.SKIPPED, "suspended")
            entry.queue.clear()
        state.condition(entry, "Active", "False", "Suspended")
        return
    if entry.suspended_since is not None:
        _go_on(state, entry, reason="suspended")
        entry.suspended_since = None
        entry.resumed_at = now
    if entry.pause is not None:
        state.condition(entry, "Active", "False", "Paused", entry.pause.reason)
    else:
        state.condition(entry, "Active", "True", "Scheduled")


def _has_not_begun(run: Run) -> bool:
    """A held retry has: an attempt of it has run, so no policy can skip it any more."""
    return run.attempt == 1 and (run.reason in ("queued", "held") or late.not_begun(run))


def end_pause(state: State, entry: Entry, *, why: str) -> None:
    """An edit or a resume lets a schedule go on that failures had paused."""
    _go_on(state, entry, reason="paused")
    entry.pause = None
    entry.consecutive_failures = 0
    state.event(entry, "Resumed", why)


def _go_on(state: State, entry: Entry, *, reason: str) -> None:
    """What passed while nothing was launched is one span, and never runs; retries go on."""
    take.pass_over(state, entry, reason=reason)
    for run in entry.runs.values():
        if run.state is RunState.RETRYING:
            state.retry_later(run, at=max(state.now, run.retry_at))
