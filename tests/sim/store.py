"""The ledger's store in a play: it outlives the processes, and may be away, slow or lost.

`Vault` keeps the tables; each process has a `SimulatedStore` of its own over them, which is the
store in memory that specifies the real ones (tests/ledger/model.py), behind a network. A call that
writes is either done or not done before its outcome is told, as with a request to the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, TypeVar

from tests.ledger.model import MemoryStore, Tables

from evenkeel.ledger.opening import CALL_WITHIN_S
from evenkeel.ledger.rows import (
    Batch,
    Book,
    Deferred,
    Exported,
    Facts,
    Folded,
    Holder,
    Minute,
    Page,
    Promoted,
    Retention,
    RunQuery,
    ScheduleRow,
    Written,
)
from evenkeel.ledger.store import StoreAway
from evenkeel.model import Instant, RunId, RunState

if TYPE_CHECKING:
    from tests.sim.process import Process

LATENCY_S = 0.002

T = TypeVar("T")
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class StoreCrash:
    """The first process dies at this call of its store: before it is done, or after."""

    call: int
    after: bool


@dataclass(slots=True)
class StoreTrouble:
    """What is wrong with the store, and when. Times are seconds of the play."""

    away: Sequence[Span] = ()
    """Every call fails at once."""
    hangs: Sequence[Span] = ()
    """Calls time out; every other one was done."""
    slow: Sequence[Span] = ()
    """Each call takes a second."""
    loses_answers: float = 0.0
    """How often a call is done, and its answer is lost."""
    until_s: float = 0.0
    """Then no more answers get lost."""
    begun_anew: Sequence[float] = ()
    """The store is lost, and an empty one is in its place."""
    rng: Random = field(default_factory=lambda: Random(0))

    @property
    def is_any(self) -> bool:
        return bool(self.away or self.hangs or self.slow or self.begun_anew or self.loses_answers)

    @classmethod
    def from_seed(cls, seed: int, *, until_s: float) -> StoreTrouble:
        """In half of all worlds there is some."""
        rng = Random(f"store {seed}")
        trouble = cls(until_s=until_s, rng=rng)
        if rng.random() < 0.5:
            return trouble

        def spans(likely: float, longest_s: float) -> list[Span]:
            if rng.random() >= likely:
                return []
            begin = rng.uniform(0, until_s)
            return [(begin, min(until_s, begin + rng.uniform(1, longest_s)))]

        trouble.away = spans(0.4, 120)
        trouble.hangs = spans(0.3, 40)
        trouble.slow = spans(0.2, 60)
        if rng.random() < 0.3:
            trouble.loses_answers = rng.choice((0.05, 0.5))
        if rng.random() < 0.2:
            trouble.begun_anew = [rng.uniform(1, until_s)]
        return trouble

    def fault(self, now_s: float) -> str:
        """What happens to a call: away, hang, slow, lost answer; empty: nothing."""
        for what, spans in (("away", self.away), ("hang", self.hangs), ("slow", self.slow)):
            if any(begin <= now_s < end for begin, end in spans):
                return what
        loses = now_s < self.until_s and self.rng.random() < self.loses_answers
        return "lost answer" if loses else ""


@dataclass(slots=True)
class Vault:
    """What is stored, and how often it was lost."""

    trouble: StoreTrouble
    tables: Tables = field(default_factory=Tables)
    calls: int = 0
    born: int = 0

    def begin_anew(self) -> None:
        """The store is lost."""
        self.born += 1
        self.tables = Tables(born=f"born {self.born}")

    def read(self) -> MemoryStore:
        """For oracles: without a network."""
        return MemoryStore(self.tables, readonly=True)


class SimulatedStore:
    """The way of one process to the store: a `RunStore`."""

    def __init__(self, vault: Vault, process: Process, crash_point: StoreCrash | None) -> None:
        self._vault = vault
        self._process = process
        self._crash_point = crash_point
        self.calls = 0

    @classmethod
    async def open(
        cls, vault: Vault, process: Process, crash_point: StoreCrash | None
    ) -> SimulatedStore:
        store = process.store = cls(vault, process, crash_point)
        await store._call(lambda one: one.facts())
        return store

    async def _call(self, work: Callable[[MemoryStore], Awaitable[T]]) -> T:
        number, self.calls = self.calls, self.calls + 1
        self._vault.calls += 1
        await self._survive(number, after=False)
        fault = self._vault.trouble.fault(asyncio.get_running_loop().time())
        await asyncio.sleep(1.0 if fault == "slow" else LATENCY_S)
        if fault == "away":
            raise StoreAway("the store is away")
        hangs = fault == "hang"
        if not hangs or number % 2:
            await self._survive(number, after=False)
            done = await work(MemoryStore(self._vault.tables))
        if hangs:
            await asyncio.sleep(CALL_WITHIN_S)
            raise StoreAway(f"no answer within {CALL_WITHIN_S:g} s")
        await self._survive(number, after=True)
        if fault == "lost answer":
            raise StoreAway("the connection was cut")
        return done

    async def _survive(self, number: int, *, after: bool) -> None:
        """The crash point may be here. The call of a dead process never returns."""
        point = self._crash_point
        if point is not None and (point.call, point.after) == (number, after):
            self._process.crash()
        if self._process.connection.dead:
            await asyncio.get_running_loop().create_future()

    # --- the protocol -----------------------------------------------------------------------------

    async def write(self, batch: Batch, *, term: int) -> Written:
        return await self._call(lambda store: store.write(batch, term=term))

    async def take_term(self, at_least: int = 1) -> int:
        return await self._call(lambda store: store.take_term(at_least))

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        return await self._call(lambda store: store.promote_due(before, limit, holder))

    async def requeue(
        self,
        *,
        below_term: int = 0,
        process: str = "",
        launched: Collection[tuple[RunId, int]] = (),
    ) -> int:
        return await self._call(
            lambda store: store.requeue(below_term=below_term, process=process, launched=launched)
        )

    async def retain(self, now: float, retention: Retention) -> Folded:
        return await self._call(lambda store: store.retain(now, retention))

    async def runs(self, query: RunQuery) -> Page:
        return await self._call(lambda store: store.runs(query))

    async def states(self, runs: Sequence[RunId]) -> dict[RunId, RunState]:
        return await self._call(lambda store: store.states(runs))

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        return await self._call(lambda store: store.unfinished(uid))

    async def deferred(self) -> tuple[Deferred, ...]:
        return await self._call(lambda store: store.deferred())

    async def schedules(self) -> AsyncIterator[ScheduleRow]:
        for row in await self._call(lambda store: _all(store.schedules())):
            yield row

    async def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        for book in await self._call(lambda store: _all(store.books(first, end, uids=uids))):
            yield book

    async def minutes(self, first: Instant, end: Instant) -> tuple[Minute, ...]:
        return await self._call(lambda store: store.minutes(first, end))

    async def facts(self) -> Facts:
        return await self._call(lambda store: store.facts())

    async def check(self) -> list[str]:
        return await self._call(lambda store: store.check())

    async def export(self) -> AsyncIterator[Exported]:
        for chunk in await self._call(lambda store: _all(store.export())):
            yield chunk

    async def restore(self, chunk: Exported) -> int:
        return await self._call(lambda store: store.restore(chunk))

    async def close(self) -> None:
        """Nothing is held open."""


async def _all(rows: AsyncIterator[T]) -> list[T]:
    return [row async for row in rows]
