"""Virtual time: an event loop that jumps to its next timer, and the operator's clock on it.

A simulated hour costs as much as what happens in it. For code without sockets and threads: nothing
from outside can wake this loop. A loop that spins without time passing is reported, not endured.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any

HONEST_SPINS = 1_000
"""From there on every round takes time, as on a real machine: a timer that comes up to the clock's
resolution before its time, and is set again by whom it woke too early, would never come."""

SPINS_LIMIT = 50_000
"""Rounds of the loop at one instant: the busiest honest one (a start with many schedules) needs a
few hundred."""


class SpinningError(AssertionError):
    """Something runs again and again at one instant: on a real machine it would burn a core."""


class _Jump(selectors.DefaultSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        loop = self.loop
        if timeout is None or timeout <= 0:
            loop.spins += 1
            if loop.spins > SPINS_LIMIT:
                loop.spins = 0
                raise SpinningError(f"{SPINS_LIMIT} rounds at second {loop.now_s:.6f}")
            if loop.spins > HONEST_SPINS:
                loop.now_s += 1e-6
            return super().select(0 if timeout is not None else 0.05)
        loop.spins = 0
        loop.now_s += timeout
        return []

    # `select(None)` means that no timer and no task is left: only a signal can help.


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time is `now_s`, which jumps while nothing can run."""

    def __init__(self) -> None:
        jump = _Jump()
        self.now_s = 0.0
        self.spins = 0
        super().__init__(jump)
        jump.loop = self
        # Or a timer would never come after a year: seconds that large have no finer steps.
        self._clock_resolution = 1e-6
        self.failures: list[BaseException | str] = []
        self.set_exception_handler(_record)

    def time(self) -> float:
        return self.now_s

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:  # type: ignore[override]
        """At once: the end of another thread's work would be at no time in particular."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the awaiter's
            done.set_exception(error)
        return done


def _record(loop: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """An exception that nobody awaits is a defect like any other."""
    assert isinstance(loop, VirtualLoop)
    error = context.get("exception")
    loop.failures.append(error if isinstance(error, BaseException) else str(context.get("message")))


class SimulatedClock:
    """The clock of the operator's machine: the wall may be set, the monotonic one never jumps."""

    def __init__(self, loop: VirtualLoop, *, base: int) -> None:
        self._loop = loop
        self._base = base
        self.set_by_s = 0.0
        """How far the wall is ahead of the truth."""
        self.stuck_at: float | None = None

    def now(self) -> float:
        if self.stuck_at is not None:
            return self.stuck_at
        return self._base + self._loop.now_s + self.set_by_s

    def monotonic(self) -> float:
        return 1_000 + self._loop.now_s
