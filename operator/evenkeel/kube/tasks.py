"""Background tasks whose failure is not lost: `fail` is called, which ends the process.

asyncio would only log the failure, and the operator would go on without a part of itself.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Fail = Callable[[BaseException], object]

Busy = Callable[[], bool]
"""Whether whoever could wait should: creates wait."""


def reraise(error: BaseException) -> None:
    """For tests: the failure goes to asyncio's own handler."""
    raise error


class Tasks:
    """The running tasks of one kind."""

    def __init__(self, fail: Fail, *, after: Callable[[], None] = lambda: None) -> None:
        """`after` is called whenever one has ended."""
        self._fail = fail
        self._after = after
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    async def finish(self, *, within_s: float) -> None:
        """Wait for those under way; cancel what takes longer."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=within_s)
        self.cancel()

    def cancel(self) -> None:
        """Give up all of them."""
        for task in self._running:
            task.cancel()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._fail(error)
        self._after()
