"""Answers what the scheduler asks the ledger: each `AskLedger` gets a `LedgerTold`, soon.

`sync` hands the questions over. Each is a task of its own, beside the one that writes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

from evenkeel.core.effects import AskLedger
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import LedgerTold
from evenkeel.ledger.store import RunStore
from evenkeel.ledger.trouble import kind_of
from evenkeel.model import RunId, RunState

WITHIN_S = 2.0
"""The scheduler waits no longer."""


class Questions:
    """Those that are not answered yet."""

    def __init__(
        self,
        inbox: Inbox,
        store: Callable[[], Awaitable[RunStore | None]],
        *,
        observe: Callable[[str, float], object],
    ) -> None:
        """`store`: the store once it is known whether it is there; None: it is away."""
        self._inbox = inbox
        self._store = store
        self._observe = observe
        self._answers: set[asyncio.Task[None]] = set()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._answers)

    def ask(self, asked: AskLedger) -> None:
        """Begin to answer."""
        answer = asyncio.create_task(self._answer(asked))
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    def refuse(self, asked: AskLedger) -> None:
        """There is no ledger."""
        self._tell(LedgerTold(asked.uid, {}, known=False))

    def cancel(self) -> None:
        """Nobody waits for an answer any more."""
        for answer in self._answers:
            answer.cancel()

    async def _answer(self, asked: AskLedger) -> None:
        states: dict[RunId, RunState] = {}
        known = False
        try:
            async with asyncio.timeout(WITHIN_S):
                if (store := await self._store()) is not None:
                    states = await store.states(asked.runs)
                    known = True
        except Exception as error:  # noqa: BLE001 - the scheduler waits for an answer
            self._observe(f"ledger_error_{kind_of(error)}", 1)
        self._tell(LedgerTold(asked.uid, states, known=known))

    def _tell(self, told: LedgerTold) -> None:
        self._inbox.hint(("ledger", next(self._numbers)), told)
