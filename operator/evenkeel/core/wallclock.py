"""The wall clock may be wrong, and is then set right: what that means for everything that waits.

`scheduler.step` calls `watch` first of all. A step forward needs no more than that: what was due
meanwhile is found from each schedule's cursor. Does not guarantee that a status tells no instant of
a time that never came: conditions and rows keep what was written.
"""

from collections import deque
from collections.abc import Iterable

from evenkeel.core import history, late, take
from evenkeel.core.agenda import DeletionDeadline, PendingDeadline, UnwantedExpired
from evenkeel.core.effects import ConfirmTime
from evenkeel.core.entry import Entry
from evenkeel.core.follow import DELETION_PATIENCE_S, retry_delay_s
from evenkeel.core.messages import TimeConfirmed
from evenkeel.core.state import State
from evenkeel.model import Instant, Retry, RunState
from evenkeel.resource import rfc3339

JUMP_S = 86_400
"""A forward jump of more than this is believed only when the API server's clock agrees."""

AGREES_S = 3_600
ASK_S = 10

SET_BACK_S = 1.0
"""Less is what a clock is slewed by; every wait is longer."""


def watch(state: State, now: float, monotonic: float) -> None:
    """Ten years of catch-up because of a broken clock would be worse than a pause."""
    offset, known = now - monotonic, state.wall_minus_monotonic
    state.now, state.monotonic = now, monotonic
    if known is not None and offset - known > JUMP_S and not state.doubts_clock:
        state.doubts_clock = True
        state.log("clock jumped forward", level="error", jump_s=round(offset - known))
        state.clock_asked_at = float("-inf")
    if state.doubts_clock and monotonic >= state.clock_asked_at + ASK_S:
        state.clock_asked_at = monotonic
        state.emit(ConfirmTime())
    if state.doubts_clock:
        return
    state.wall_minus_monotonic = offset
    if known is not None and offset - known < -SET_BACK_S:
        state.log("clock set back", level="warning", by_s=round(known - offset))
        _set_back(state)


def suspect(state: State, told: Iterable[Instant | None]) -> None:
    """A process that begins with a wrong clock sees no step: what was told last gives it away, by
    lying further from now than a day. After a long absence it does so too, and is confirmed."""
    last = max((instant for instant in told if instant is not None), default=state.now)
    if state.clock_agreed or abs(state.now - last) <= JUMP_S:
        return
    state.doubts_clock = True
    state.clock_asked_at = state.monotonic
    state.log("clock far from what was told last", level="warning", told=rfc3339.show(int(last)))
    state.emit(ConfirmTime())


def confirmed(state: State, message: TimeConfirmed) -> None:
    """The API server says what time it is."""
    if not state.doubts_clock:
        return
    if abs(message.server_now - state.now) > AGREES_S:
        state.log("clock not confirmed", level="error", server_now=message.server_now)
        return
    state.doubts_clock = False
    state.clock_agreed = True
    state.wall_minus_monotonic = None
    state.log("clock confirmed", level="warning")
    _set_back(state)  # of what came in while it was wrong
    for entry in state.entries.values():
        take.next_in_queue(state, entry)


def _set_back(state: State) -> None:
    """Nothing waits longer from now on than it would have from the start: a pause that ends at an
    instant of the clock as it was would last as long as that was ahead, years perhaps."""
    now = state.now
    for entry in state.entries.values():
        _shorten_waits(state, entry)
    state.gone = {uid: min(at, now) for uid, at in state.gone.items()}
    state.ended = deque((min(at, now), run, how) for at, run, how in state.ended)
    state.phases = {key: (placed, min(at, now)) for key, (placed, at) in state.phases.items()}
    state.statistics.counted_at = min(state.statistics.counted_at, now)


def _shorten_waits(state: State, entry: Entry) -> None:
    now = state.now
    entry.seen_at = min(entry.seen_at, now)
    entry.held_since = min(entry.held_since, now)
    entry.hold_until = min(entry.hold_until, now + late.HELD_RETRY_LIMIT_S)
    if entry.answers_awaited_until is not None:
        entry.answers_awaited_until = min(entry.answers_awaited_until, now + late.ANSWER_WAIT_S)
    for run in entry.runs.values():
        run.taken_at = min(run.taken_at, max(now, run.id.due))
        if run.unanswered_at is not None:
            run.unanswered_at = min(run.unanswered_at, now)
        longest_s = late.HELD_RETRY_LIMIT_S
        if run.state is RunState.RETRYING:
            longest_s = retry_delay_s(entry.retry or Retry(), run.attempt)
        if run.retry_at > now + longest_s:
            state.retry_later(run, at=now + longest_s)
        if run.pending_since is not None:
            state.agenda.put(now, PendingDeadline(run.id, run.attempt))
        if run.deleting:
            task = DeletionDeadline(run.id, run.attempt)
            state.agenda.put(now + DELETION_PATIENCE_S, task)
    for key in entry.unwanted:
        state.agenda.put(now + history.LATE_CREATE_S, UnwantedExpired(*key))
    for job in entry.finished_jobs:
        job.keep_until = min(job.keep_until, now + history.LATE_CREATE_S)
