"""A week of 1,000 schedules as people write them, and a day of a hundred, on virtual time: the
scheduler's core, the ledger's syncer, and the store in memory. In the end the audit balances.

The world around the core (tests/unit/core/world.py) answers at once, so this measures nothing. The
store is away for an hour a day, and the operator is killed once a day.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.builders import every
from tests.ledger.model import MemoryStore, Tables
from tests.people import A_MORNING_IN_MARCH, people
from tests.sim.virtual import SimulatedClock, VirtualLoop
from tests.unit.core.world import World

from evenkeel.core import effects, messages
from evenkeel.core.inbox import Inbox
from evenkeel.ledger.audit import Audit, audit
from evenkeel.ledger.rows import (
    Batch,
    Book,
    Deferred,
    Facts,
    Folded,
    Page,
    Retention,
    RunQuery,
    RunRow,
    ScheduleRow,
    Write,
    Written,
)
from evenkeel.ledger.store import StoreAway
from evenkeel.ledger.sync import LedgerSync
from evenkeel.ledger.upkeep import Present
from evenkeel.model import DAY_S, Instant, JobFact, JobState, RunId, Schedule
from evenkeel.settings import Settings

MINUTE_S = 60
LASTS_S = 20
"""Each Job; every seventh one fails, and is tried once more."""


class Shards:
    """The store in memory, a table set for each schedule: alone it would look at all rows for each
    of them. Nothing is folded."""

    def __init__(self) -> None:
        self.of: dict[str, MemoryStore] = {}
        self.written_at = 0.0
        self.is_away = False
        self.illegal = 0

    async def write(self, batch: Batch, *, term: int) -> Written:
        self._reach()
        writes: dict[str, list[Write]] = {}
        for write in batch.writes:
            uid = write.run.uid if isinstance(write, RunRow) else write.uid
            writes.setdefault(uid, []).append(write)
        for uid, several in writes.items():
            store = self.of.setdefault(uid, MemoryStore(Tables()))
            done = await store.write(Batch(batch.at, tuple(several)), term=0)
            self.illegal += done.illegal
        self.written_at = batch.at
        return Written(len(batch.writes))

    async def runs(self, query: RunQuery) -> Page:
        """There are no requests, and nothing else is asked for."""
        assert not query.ranges
        return Page(())

    async def facts(self) -> Facts:
        self._reach()
        return Facts("memory", "memory", "born", 0.0, self.written_at, 1, 1, 0)

    async def take_term(self, at_least: int = 1) -> int:
        self._reach()
        return at_least

    async def schedules(self) -> AsyncIterator[ScheduleRow]:
        for store in self.of.values():
            async for row in store.schedules():
                yield row

    async def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        for uid in uids or list(self.of):
            if uid in self.of:
                async for book in self.of[uid].books(first, end):
                    yield book

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        return await self.of[uid].unfinished(uid)

    async def deferred(self) -> tuple[Deferred, ...]:
        return ()

    async def requeue(self, **asked: object) -> int:
        return 0

    async def promote_due(self, *asked: object) -> object:
        raise StoreAway("nothing is deferred")

    async def retain(self, now: float, retention: Retention) -> Folded:
        return Folded()

    async def close(self) -> None:
        """Nothing is held open."""

    def _reach(self) -> None:
        if self.is_away:
            raise StoreAway("away")


TOLD = (
    effects.ScheduleKnown
    | effects.TimingBegan
    | effects.RunWaits
    | effects.RunBegan
    | effects.RunEnded
    | effects.SpanEnded
    | effects.SpanOpened
    | effects.SpanClosed
    | effects.StatusTold
    | effects.ScheduleEnded
)

UNHEEDED = (
    effects.Prepare
    | effects.Withdraw
    | effects.KubeEvent
    | effects.Observed
    | effects.RunDelayed
    | effects.Log
)


class Cluster(World):
    """A world whose Jobs end, and whose statuses are stored once a minute."""

    def begin(self, store: Shards, loop: VirtualLoop) -> None:
        self.store, self.loop = store, loop
        self.began_at = int(self.now)
        self.sync_clock = SimulatedClock(loop, base=self.began_at)
        self.dirty: dict[str, None] = {}
        self.ends: list[tuple[float, str]] = []
        self.ended: Counter[str] = Counter()
        self.sync = self._new_sync()

    def _new_sync(self) -> LedgerSync:
        async def open_store() -> Shards:
            return self.store

        async def begun() -> LedgerSync:
            scheduler = self.scheduler
            sync = LedgerSync(
                open_store,  # type: ignore[arg-type]
                Inbox(size=10_000),
                self.sync_clock,
                self.settings,
                Present(
                    known=scheduler.known,
                    exists=lambda uid: scheduler.state.knows(uid) > 0,
                    schedules=lambda: tuple(scheduler.state.entries),
                    launched=scheduler.launched,
                    requests=scheduler.request_kinds,
                    ready=lambda: scheduler.ready,
                ),
            )
            self.task = asyncio.ensure_future(sync.run())
            return sync

        return self.loop.run_until_complete(begun())

    def kill(self) -> None:
        """The operator dies; what its syncer holds is gone."""
        self._end_sync()
        self.dirty.clear()
        self.sync = self._new_sync_after_crash()

    def _new_sync_after_crash(self) -> LedgerSync:
        told: list[effects.Effect] = []
        self._take = told.append
        self.crash()
        sync = self._new_sync()
        del self._take
        for effect in told:
            sync.take(effect)
        return sync

    def _end_sync(self) -> None:
        self.task.cancel()
        self.loop.run_until_complete(asyncio.wait([self.task]))

    def _take(self, effect: effects.Effect) -> None:  # type: ignore[misc]
        self.sync.take(effect)

    def _carry_out(self, effect: effects.Effect) -> None:
        if isinstance(effect, TOLD):
            self._take(effect)
            if isinstance(effect, effects.RunEnded):
                self.ended[effect.state] += 1
            elif isinstance(effect, effects.SpanEnded):
                self.ended[effect.state] += effect.count
        elif isinstance(effect, effects.WriteStatus):
            self.dirty[effect.uid] = None
        elif isinstance(effect, effects.Launch):
            self._launch(effect)
        elif not isinstance(effect, UNHEEDED):
            super()._carry_out(effect)

    def _answer(self, launch, verdict, **more):  # type: ignore[no-untyped-def]
        super()._answer(launch, verdict, **more)
        name, _ = next(reversed(self.jobs.items()))
        heapq.heappush(self.ends, (self.now + LASTS_S, name))

    def go_on(self, until: float) -> None:
        """Minute by minute: Jobs end, statuses are stored, the syncer writes."""
        while self.now < until:
            self.run_until(min(until, self.now + MINUTE_S))
            for _ in range(2):  # what that changes is told a minute later
                self._end_jobs()
                self._store()
            self.loop.run_until_complete(asyncio.sleep(max(0.0, self.now - self.sync_clock.now())))
            if self.task.done():
                self.task.result()
            for kept in (self.creations, self.launches, self.deleted, self.asked_why, self.checks):
                kept.clear()
            self.marks.clear()

    def _end_jobs(self) -> None:
        while self.ends and self.ends[0][0] <= self.now:
            _, name = heapq.heappop(self.ends)
            if (fact := self.jobs.get(name)) is not None:
                self._end(fact)
        self.settle()

    def _end(self, fact: JobFact) -> None:
        state = JobState.FAILED if fact.run.due // 60 % 7 == 0 else JobState.SUCCEEDED
        fact = self.jobs[fact.ref.name] = replace(fact, state=state, finished=int(self.now))
        self.scheduler.inbox.hint(fact.ref.uid, messages.JobSeen(fact))

    def _store(self) -> None:
        dirty, self.dirty = self.dirty, {}
        for uid in dirty:
            self.write(uid)
        self.settle()


def schedules(count: int) -> Iterator[Schedule]:
    """Intervals that the operator places, and crons, as people write them."""
    for written in people(count, seed=7, fixed_share=0.3):
        ns, name = written.key.split("/")
        made = every(3600, name=name)
        yield replace(
            made,
            ns=ns,
            uid=f"uid-{name}",
            created=A_MORNING_IN_MARCH,
            timing=written.member.timing,
        )


@contextmanager
def playing(count: int) -> Iterator[Cluster]:
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    cluster = Cluster(Settings(store_buffer=1_000_000), now=float(A_MORNING_IN_MARCH))
    cluster.begin(Shards(), loop)
    try:
        for each in schedules(count):
            cluster.see(each)
        yield cluster
        assert not loop.failures
    finally:
        cluster._end_sync()
        asyncio.set_event_loop(None)
        loop.close()


def _live(count: int, days: int) -> tuple[Cluster, Audit]:
    with playing(count) as cluster:
        for day in range(days):
            begin = A_MORNING_IN_MARCH + day * DAY_S
            cluster.go_on(begin + 6 * 3600)
            cluster.store.is_away = True
            cluster.go_on(begin + 7 * 3600)
            cluster.store.is_away = False
            cluster.go_on(begin + 15 * 3600 + 1234)
            cluster.kill()
            cluster.go_on(begin + DAY_S)
        cluster.go_on(cluster.now + 10 * MINUTE_S)
        store: object = cluster.store
        auditing = audit(store, 0, int(cluster.now) + 1)  # type: ignore[arg-type]
        return cluster, cluster.loop.run_until_complete(auditing)


def _balances(count: int, days: int, *, at_least: int) -> None:
    cluster, found = _live(count, days)

    assert found.balanced, found.found.differences[:5]
    assert found.found.unrecorded == 0
    assert found.schedules == count
    assert found.found.expected > at_least
    assert sum(cluster.ended.values()) <= found.found.recorded
    assert cluster.ended["failed"] > 0
    assert cluster.store.illegal == 0


def test_a_day_of_a_hundred_schedules_is_recorded_to_the_last_due_time() -> None:
    _balances(100, 1, at_least=3_900)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_week_of_a_thousand_schedules_is_recorded_to_the_last_due_time() -> None:
    _balances(1_000, 7, at_least=250_000)
