"""Calls the scheduler's `step` when its time comes or a message arrives, and hands the effects on.

`app` and `local` run one `Loop` each, and give it the function that carries effects out. The loop
does no I/O. It does not catch exceptions of a step: they end `run`, because the state of the
scheduler may be damaged.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from evenkeel.clock import Clock, sleep
from evenkeel.core.arrivals import improve
from evenkeel.core.effects import (
    BuildIndex,
    ConfirmRebalance,
    Effect,
    ImproveSet,
    ListDues,
    PlanRebalance,
    Stopped,
)
from evenkeel.core.messages import Message, Shutdown
from evenkeel.core.moving import make_plan, prove_plan
from evenkeel.core.schedule.planning import list_dues
from evenkeel.core.scheduler import Scheduler, make_index

LONGEST_SLEEP_S = 60.0
"""The longest sleep between two steps: a wall clock that was set must be noticed."""

GATHER_S = 0.008
"""After a message the loop waits this long for others, and reads all of them in one step. Without
it each of a thousand messages at once would have a step, and the steps would cost more than the
messages. A due time is not delayed."""

OFFLOADED: dict[type[Effect], Callable[[Any], Message]] = {
    BuildIndex: make_index,
    ImproveSet: improve,
    ListDues: list_dues,
    PlanRebalance: make_plan,
    ConfirmRebalance: prove_plan,
}
"""Effects that are computed in another thread. The result is a message to the scheduler."""


class Loop:
    """Runs one scheduler."""

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
        """The monotonic time at which the last step ended, for /livez."""

    async def run(self) -> None:
        """Call `step` until the scheduler has stopped."""
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
        """Ask the scheduler to stop: it takes up no more runs and puts back those not created.
        `run` then returns."""
        if not self._scheduler.inbox.offer(Shutdown()):
            asyncio.get_running_loop().call_later(0.05, self.stop)

    def fail(self, error: BaseException) -> None:
        """Make `run` raise this error: an effect could not be carried out."""
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
        """Give the result of the other thread to the scheduler. An exception there ends the loop,
        as in a step. The inbox cannot refuse the result: `hint` accepts it even if the inbox is
        full."""
        if (error := away.exception()) is None:
            self._scheduler.inbox.hint(away, away.result())
        else:
            self.fail(error)

    async def _sleep_until(self, wake_at: float) -> None:
        # uvloop's timers may fire 0.6 ms early. The step then finds nothing due, and the loop
        # sleeps again.
        left_s = min(wake_at - self._clock.now(), LONGEST_SLEEP_S)
        if left_s <= 0 or self._stopped:
            await asyncio.sleep(0)  # noqa: TID251 - no wait: other tasks, such as creates, run between two steps
            return
        try:
            async with asyncio.timeout(left_s):
                await self._arrived.wait()
        except TimeoutError:
            return
        await sleep(min(GATHER_S, max(0.0, wake_at - self._clock.now())))
