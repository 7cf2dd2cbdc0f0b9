"""A syncer on virtual time, before a store that fails as it is told to.

with syncing() as world:
    world.begin("a", mark=MONDAY)
    world.run_ends("a", MONDAY + 60, revision=1)
    world.told("a", 1, MONDAY + 60)
    world.advance(1)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.builders import MONDAY
from tests.ledger.model import MemoryStore, Tables
from tests.sim.virtual import SimulatedClock, VirtualLoop

from evenkeel.core import effects
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Message
from evenkeel.ledger.rows import Batch, RunRow, Written
from evenkeel.ledger.store import StoreAway
from evenkeel.ledger.sync import LedgerSync
from evenkeel.ledger.upkeep import Present
from evenkeel.model import BY_SCHEDULE, Cron, Instant, RunId, RunState, Timing
from evenkeel.reasons import Reason
from evenkeel.settings import Settings
from evenkeel.web.metrics import Metrics

EVERY_MINUTE = Timing(Cron("* * * * *"))


class Scripted(MemoryStore):
    """The store in memory, with a switch and a log of its batches."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.fails: Exception | None = None
        self.hangs = False
        self.loses_answers = 0
        """So many batches are stored, and the answer is lost."""
        self.batches: list[Batch] = []
        self.calls = 0
        self.closed = False

    async def _reach(self) -> None:
        self.calls += 1
        if self.hangs:
            await asyncio.get_running_loop().create_future()
        if self.fails is not None:
            raise self.fails

    async def write(self, batch: Batch, *, term: int) -> Written:
        await self._reach()
        written = await super().write(batch, term=term)
        self.batches.append(batch)
        if self.loses_answers:
            self.loses_answers -= 1
            raise StoreAway("the connection was cut")
        return written

    async def facts(self) -> Any:
        await self._reach()
        return await super().facts()

    async def states(self, runs: Any) -> Any:
        await self._reach()
        return await super().states(runs)

    async def runs(self, query: Any) -> Any:
        await self._reach()
        return await super().runs(query)

    async def close(self) -> None:
        self.closed = True


class World:
    """The syncer, its store, and what the scheduler would know."""

    def __init__(self, loop: VirtualLoop, tables: Tables, settings: Settings) -> None:
        self.loop = loop
        self.clock = SimulatedClock(loop, base=MONDAY)
        self.tables = tables
        self.store = Scripted(tables)
        self.opening: Exception | None = None
        self.known: dict[str, effects.ScheduleKnown] = {}
        self.inbox = Inbox(size=100)
        self.ready = True
        self.launched: list[tuple[RunId, int]] = []
        self.requests: set[str] | None = None
        """The kinds of those that exist."""
        self.metrics = Metrics(monotonic=self.clock.monotonic)
        self.settings = settings
        self.present = Present(
            known=self.known.get,
            exists=lambda uid: uid in self.known,
            schedules=lambda: tuple(self.known),
            launched=lambda: tuple(self.launched),
            requests=lambda: self.requests,
            ready=lambda: self.ready,
        )
        self.sync = LedgerSync(
            self._open,
            self.inbox,
            self.clock,
            settings,
            self.present,
            process="process 1",
            observe=self.metrics.observed,
        )
        self.task: asyncio.Task[None] | None = None

    async def _open(self) -> Scripted:
        if self.opening is not None:
            raise self.opening
        return self.store

    def start(self) -> None:
        self.task = self.loop.create_task(self.sync.run())

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        self.loop.run_until_complete(asyncio.sleep(seconds))
        if self.task is not None and self.task.done():
            self.task.result()

    def end(self) -> None:
        if self.task is not None:
            self.task.cancel()
            self.loop.run_until_complete(asyncio.wait([self.task]))
        assert not self.loop.failures, self.loop.failures

    # --- what the scheduler tells -----------------------------------------------------------------

    def begin(self, uid: str, *, mark: Instant = MONDAY, **more: Any) -> None:
        """A schedule at its first sight."""
        known = effects.ScheduleKnown(
            uid=uid,
            key=f"shop/{uid}",
            after=mark,
            mark=mark,
            timing=EVERY_MINUTE,
            timing_since=mark,
            **more,
        )
        self.known[uid] = known
        self.sync.take(known)

    def run_began(
        self, uid: str, due: Instant, revision: int, *, sent_after_s: float = 0.0
    ) -> None:
        self.sync.take(
            effects.RunBegan(
                RunId(uid, due), f"shop/{uid}", 1, f"job-{due}",
                sent_at=due + sent_after_s, revision=revision,
            )
        )  # fmt: skip

    def run_ended(
        self, uid: str, due: Instant, revision: int, state: RunState = RunState.SUCCEEDED
    ) -> None:
        self.sync.take(
            effects.RunEnded(
                RunId(uid, due), f"shop/{uid}", state, None, 1, f"job-{due}",
                started=due, finished=due + 1, revision=revision,
            )
        )  # fmt: skip

    def run_waits(self, uid: str, due: Instant, revision: int, *, due_at: float) -> None:
        self.sync.take(
            effects.RunWaits(
                RunId(uid, due), f"shop/{uid}", RunState.RETRYING, Reason.RETRYING, 2, due,
                revision=revision, due_at=due_at,
            )
        )  # fmt: skip

    def told(self, uid: str, revision: int, mark: Instant) -> None:
        """The status of this revision is stored."""
        known = self.known[uid]
        self.known[uid] = effects.ScheduleKnown(
            known.uid, known.key, mark, mark, known.timing, timing_since=known.timing_since
        )
        self.sync.take(effects.StatusTold(uid, f"shop/{uid}", revision, mark))

    def ask(self, uid: str, *runs: RunId) -> None:
        """The scheduler asks what the ledger knows of these runs."""

        async def asking() -> None:
            self.sync.take(effects.AskLedger(uid, runs))

        self.loop.run_until_complete(asking())

    # --- what comes of it -------------------------------------------------------------------------

    def rows(self) -> dict[tuple[str, Instant], RunState]:
        """Runs by schedule that the store has."""
        return {
            (run.uid, run.due): cold.row.state
            for run, cold in self.tables.runs.items()
            if run.kind == BY_SCHEDULE
        }

    def row(self, uid: str, due: Instant) -> RunRow:
        return self.tables.runs[RunId(uid, due)].row

    def mark(self, uid: str) -> Instant:
        return self.tables.schedules[uid].mark

    def unrecorded(self, uid: str) -> int:
        """Due times of which nothing is known."""
        return sum(
            span.row.counts.get("unrecorded", 0)
            for span in self.tables.spans
            if span.row.uid == uid
        )

    def sample(self, name: str, **labels: str) -> float:
        """A number of /metrics."""
        found = self.metrics.registry.get_sample_value(name, labels)
        assert found is not None, name
        return found

    def messages(self) -> list[Message]:
        return self.inbox.drain(100)


@contextmanager
def syncing(
    tables: Tables | None = None, *, start: bool = True, **settings: Any
) -> Iterator[World]:
    """A world whose syncer runs."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        world = World(loop, tables or Tables(), Settings(**settings))
        if start:
            world.start()
        try:
            yield world
        finally:
            world.end()
