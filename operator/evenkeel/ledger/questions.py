"""Answers what the scheduler asks the ledger: each `AskLedger` gets a `LedgerTold`, and each
`AskRuns` a `RunsTold`, soon.

`sync` hands the questions over. Each is a task of its own, beside the one that writes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from itertools import count

from evenkeel import clock as clocks
from evenkeel.core.effects import AskLedger, AskRuns
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import LedgerTold, RunsTold
from evenkeel.ledger.outbox import Outbox
from evenkeel.ledger.past import Past
from evenkeel.ledger.rows import RunQuery, RunRow, SpanRow
from evenkeel.ledger.store import RunStore, book_of
from evenkeel.ledger.trouble import kind_of
from evenkeel.model import RunId, RunState

STATES_WITHIN_S = 2.0
"""The scheduler waits no longer for the states of some runs."""

RUNS_WITHIN_S = 5.0
"""Nor for the runs of a range: they may be tens of thousands."""

PAGE = 1000
"""So many rows are read at a time: some milliseconds."""

GAP_LOOK_S = 0.05
"""Between two looks whether the gap of a schedule is filled."""


class Questions:
    """Those that are not answered yet."""

    def __init__(
        self,
        inbox: Inbox,
        outbox: Outbox,
        store: Callable[[], Awaitable[RunStore | None]],
        *,
        observe: Callable[[str, float], object],
    ) -> None:
        """`store`: the store once it is known whether it is there; None: it is away."""
        self._inbox = inbox
        self._outbox = outbox
        self._store = store
        self._observe = observe
        self._answers: set[asyncio.Task[None]] = set()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._answers)

    def ask(self, asked: AskLedger | AskRuns) -> None:
        """Begin to answer."""
        if isinstance(asked, AskRuns):
            self._begin(self._answer_runs(asked))
        else:
            self._begin(self._answer_states(asked))

    def refuse(self, asked: AskLedger | AskRuns) -> None:
        """There is no ledger."""
        if isinstance(asked, AskRuns):
            self._tell(RunsTold(asked.request, has_ledger=False))
        else:
            self._tell(LedgerTold(asked.uid, {}, known=False))

    def cancel(self) -> None:
        """Nobody waits for an answer any more."""
        for answer in self._answers:
            answer.cancel()

    def _begin(self, answering: Coroutine[None, None, None]) -> None:
        answer = asyncio.create_task(answering)
        self._answers.add(answer)
        answer.add_done_callback(self._answers.discard)

    def _tell(self, told: LedgerTold | RunsTold) -> None:
        self._inbox.hint(("ledger", next(self._numbers)), told)

    # --- the states of some runs ------------------------------------------------------------------

    async def _answer_states(self, asked: AskLedger) -> None:
        states: dict[RunId, RunState] = {}
        known = False
        try:
            async with asyncio.timeout(STATES_WITHIN_S):
                if (store := await self._store()) is not None:
                    states = await store.states(asked.runs)
                    known = True
        except Exception as error:  # noqa: BLE001 - the scheduler waits for an answer
            self._observe(f"ledger_error_{kind_of(error)}", 1)
        self._tell(LedgerTold(asked.uid, states, known=known))

    # --- the runs of a range ----------------------------------------------------------------------

    async def _answer_runs(self, asked: AskRuns) -> None:
        told = RunsTold(asked.request, away=True)
        try:
            async with asyncio.timeout(RUNS_WITHIN_S):
                if (store := await self._store()) is not None:
                    told = await self._runs_told(store, asked)
        except Exception as error:  # noqa: BLE001 - the scheduler waits for an answer
            self._observe(f"ledger_error_{kind_of(error)}", 1)
        self._tell(told)

    async def _runs_told(self, store: RunStore, asked: AskRuns) -> RunsTold:
        while True:
            while self._outbox.has_gap(asked.uid):
                await clocks.sleep(GAP_LOOK_S)
            past = Past(asked, self._outbox.all_of(asked.uid))
            async for page in _pages(store, asked):
                past.add(page)
            book = await book_of(store, asked.uid, asked.first, asked.end)
            if not self._outbox.has_gap(asked.uid):  # the store may have been lost meanwhile
                return past.told(book, mark_stands=self._outbox.is_stopped(asked.uid))


async def _pages(store: RunStore, asked: AskRuns) -> AsyncIterator[Sequence[RunRow | SpanRow]]:
    """All runs of a schedule of this name in the asked time."""
    ns, _, name = asked.key.partition("/")
    query = RunQuery(
        namespace=ns, name=name, since=asked.first, until=asked.end, ranges=False, limit=PAGE
    )
    while True:
        page = await store.runs(query)
        yield page.items
        if not page.next:
            return
        query = replace(query, cursor=page.next)
