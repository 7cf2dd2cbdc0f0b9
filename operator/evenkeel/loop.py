"""Drives the scheduler: steps when its time or a message comes, hands its effects on, in order.

`app` and `local` each give it a `carry_out` of their own. It does no I/O and catches nothing: a
defect in a step ends the process, because a scheduler that lost its state must not go on.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from evenkeel.clock import Clock, sleep
from evenkeel.core.effects import BuildIndex, ConfirmRebalance, Effect, PlanRebalance, Stopped
from evenkeel.core.messages import Message, Shutdown
from evenkeel.core.moving import make_plan, prove_plan
from evenkeel.core.scheduler import Scheduler, make_index

LONGEST_SLEEP_S = 60.0
"""However far the next step is: a wall clock that was set meanwhile must be noticed."""

GATHER_S = 0.008
"""What arrives within it is read by one step. In a herd every message would have a step of its own,
and the steps would cost more than the messages; due instants are not put off by it."""

OFFLOADED: dict[type[Effect], Callable[[Any], Message]] = {
    BuildIndex: make_index,
    PlanRebalance: make_plan,
    ConfirmRebalance: prove_plan,
}
"""Pure work for another thread; what it returns is told to the scheduler."""


class Loop:
    """One scheduler, stepped."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        carry_out: Callable[[Effect], None],
        *,
        observe_step: Callable[[float, float], None] = lambda took_s, lag_s: None,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._carry_out = carry_out
        self._observe_step = observe_step
        self._arrived = asyncio.Event()
        self._stopped = False
        self._failure: BaseException | None = None
        self.stepped_at = clock.monotonic()
        """When the last step ended, for /livez."""

    async def run(self) -> None:
        """Step until the scheduler says that it has stopped."""
        scheduler, clock = self._scheduler, self._clock
        scheduler.inbox.on_arrival = self._arrived.set
        wake_at = clock.now()
        while not self._stopped:
            if self._failure is not None:
                raise self._failure
            self._arrived.clear()
            began = clock.monotonic()
            now = clock.now()
            step = scheduler.step(now, began)
            for effect in step.effects:
                self._hand_on(effect)
            self.stepped_at = clock.monotonic()
            self._observe_step(self.stepped_at - began, max(0.0, now - wake_at))
            wake_at = max(step.wake_at, now)
            await self._sleep_until(wake_at)

    def stop(self) -> None:
        """Have the scheduler take no more runs and put back those not begun; `run` then returns."""
        if not self._scheduler.inbox.offer(Shutdown()):
            asyncio.get_running_loop().call_later(0.05, self.stop)

    def fail(self, error: BaseException) -> None:
        """What carries effects out has failed: `run` raises it."""
        self._failure = self._failure or error
        self._arrived.set()

    def _hand_on(self, effect: Effect) -> None:
        if (work := OFFLOADED.get(type(effect))) is not None:
            away = asyncio.get_running_loop().run_in_executor(None, work, effect)
            away.add_done_callback(self._back)
            return
        self._carry_out(effect)
        if isinstance(effect, Stopped):
            self._stopped = True

    def _back(self, away: asyncio.Future[Message]) -> None:
        """Work on another thread that failed ends the loop as work in a step would. What it found
        is never refused: whoever asked for it has been counted already."""
        if (error := away.exception()) is None:
            self._scheduler.inbox.hint(away, away.result())
        else:
            self.fail(error)

    async def _sleep_until(self, wake_at: float) -> None:
        # uvloop's timers may fire 0.6 ms early; the step then finds nothing and comes here again.
        left_s = min(wake_at - self._clock.now(), LONGEST_SLEEP_S)
        if left_s <= 0 or self._stopped:
            await asyncio.sleep(0)  # noqa: TID251 - not a wait: lets creates go between two steps
            return
        try:
            async with asyncio.timeout(left_s):
                await self._arrived.wait()
        except TimeoutError:
            return
        await sleep(min(GATHER_S, max(0.0, wake_at - self._clock.now())))
