"""The wall clock may be wrong, and is then set right.

`scheduler.step` calls `watch` first of all. Only due times wait on the wall clock, so a step back
needs nothing but a word in the log, and what was due in a step forward is found from each
schedule's cursor. Does not guarantee that a status tells no instant of a time that never came:
conditions and rows keep what was written.
"""

from collections.abc import Iterable

from evenkeel import rfc3339
from evenkeel.core.effects import ConfirmTime
from evenkeel.core.messages import TimeConfirmed
from evenkeel.core.state import State
from evenkeel.model import Instant

JUMP_S = 86_400
"""A forward jump of more than this is believed only when the API server's clock agrees."""

AGREES_S = 3_600
ASK_S = 10

SET_BACK_S = 1.0
"""Less is what a clock is slewed by."""


def watch(state: State, now: float, monotonic: float) -> None:
    """Ten years of catch-up because of a broken clock would be worse than a pause."""
    offset, known = now - monotonic, state.wall_minus_monotonic
    state.now, state.monotonic = now, monotonic
    if known is not None and offset - known > JUMP_S and not state.doubts_clock:
        state.doubts_clock = True
        state.log("clock jumped forward", level="error", jump_s=round(offset - known))
        state.clock_asked_m = float("-inf")
    if state.doubts_clock and monotonic >= state.clock_asked_m + ASK_S:
        state.clock_asked_m = monotonic
        state.emit(ConfirmTime())
    if state.doubts_clock:
        return
    state.wall_minus_monotonic = offset
    if known is not None and offset - known < -SET_BACK_S:
        state.log("clock set back", level="warning", by_s=round(known - offset))


def suspect(state: State, told: Iterable[Instant | None]) -> None:
    """A process that begins with a wrong clock sees no step: what was told last gives it away, by
    lying further from now than a day. After a long absence it does so too, and is confirmed."""
    last = max((instant for instant in told if instant is not None), default=state.now)
    if state.clock_agreed or abs(state.now - last) <= JUMP_S:
        return
    state.doubts_clock = True
    state.clock_asked_m = state.monotonic
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
    state.touched.update(dict.fromkeys(state.entries))  # whoever waits for a place may have it
