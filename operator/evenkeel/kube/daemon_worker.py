"""Runs work that may hang in a daemon thread: a credential plugin is a program that may never end.

asyncio's own threads cannot be used: there are few, and the process waits for all of them at its
end. Work that hangs is left to its thread, for a thread cannot be stopped.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

GIVE_UP_S = 60.0
"""How long work waits for earlier work that hangs. Doubled each time, for each that hangs keeps a
thread and a process."""

LONGEST_GIVE_UP_S = 3600.0


class DaemonWorker:
    """One piece of work at a time. Belongs to the loop that uses it first."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._last: Future[Any] | None = None
        self._give_up_at = 0.0
        self._give_up_s = GIVE_UP_S

    async def do(self, work: Callable[[], T], *, within_s: float) -> T:
        """Raises TimeoutError when it has no result by then, or when an earlier one hangs."""
        async with asyncio.timeout(within_s), self._turn:
            await self._end_of_last()
            self._give_up_at = asyncio.get_running_loop().time() + self._give_up_s
            self._last = future = _begin(work)
            return await asyncio.wrap_future(future)

    async def _end_of_last(self) -> None:
        if self._last is None or self._last.done():
            self._give_up_s = GIVE_UP_S
            return
        left_s = self._give_up_at - asyncio.get_running_loop().time()
        waiting = asyncio.wrap_future(self._last)
        waiting.add_done_callback(
            lambda it: it.cancelled() or it.exception()
        )  # nobody else reads it
        try:
            await asyncio.wait([waiting], timeout=max(0.0, left_s))
        finally:
            waiting.cancel()
        if not self._last.done():
            self._give_up_s = min(LONGEST_GIVE_UP_S, self._give_up_s * 2)


def _begin(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    # Otherwise a caller that stops waiting would cancel the future, and the work would seem done.
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is the waiter's
            future.set_exception(error)

    threading.Thread(target=run, name="credentials", daemon=True).start()
    return future
