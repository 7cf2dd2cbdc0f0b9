"""Opens the operator's store: the first try begins before the operator does.

A wrong setting ends the process with its sentence before anything runs. A store that cannot be
reached, or does not answer soon, stops nothing: the syncer goes on trying.
"""

import asyncio
from collections.abc import Awaitable, Callable

from evenkeel.ledger.store import BadStore, RunStore

WITHIN_S = 1.0
"""Runs do not wait longer for a database that does not answer."""


class FirstTry:
    """Call it to open the store: it gives what the first try opened, and opens anew afterwards."""

    def __init__(self, open_store: Callable[[], Awaitable[RunStore]]) -> None:
        self._open_store = open_store
        self._first: asyncio.Task[RunStore] | None = None

    async def begin(self, *, within_s: float = WITHIN_S) -> None:
        """Begin the first try. BadStore: no other can help."""
        self._first = asyncio.ensure_future(self._open())
        await asyncio.wait([self._first], timeout=within_s)
        if self._first.done() and isinstance(error := self._first.exception(), BadStore):
            self._first = None
            raise error

    async def __call__(self) -> RunStore:
        """The store."""
        if (first := self._first) is not None:
            self._first = None
            return await first
        return await self._open_store()

    async def close(self) -> None:
        """Nobody will ask for what the first try opens."""
        if (first := self._first) is None:
            return
        self._first = None
        first.cancel()
        await asyncio.wait([first])
        if not first.cancelled() and first.exception() is None:
            await first.result().close()

    async def _open(self) -> RunStore:
        return await self._open_store()
