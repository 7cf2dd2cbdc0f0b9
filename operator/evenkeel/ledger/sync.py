"""Writes behind to the ledger what the scheduler tells by its effects.

`app` hands over each effect by `take`, which only keeps it. What is kept is written in batches once
a stored status tells of it (`outbox`). Nothing waits for the store: while it is away runs go on,
rows are kept up to a bound, and what was dropped beyond it is filled in later (`gaps`).

One task does all that writes, one thing after another: what a schedule lacks is found from what the
store has, and no row of it may be written in between. Questions are answered beside it.

Not guaranteed: that the store has what happened in the last second, or before a status told of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum

from evenkeel import clock as clocks
from evenkeel.clock import Clock
from evenkeel.core import effects
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import PhasesRead
from evenkeel.ledger.gaps import Gaps
from evenkeel.ledger.leftovers import Leftovers
from evenkeel.ledger.minutes import Minutes, Picture
from evenkeel.ledger.outbox import Outbox
from evenkeel.ledger.questions import Questions
from evenkeel.ledger.rows import Batch, Retention
from evenkeel.ledger.store import BadStore, OlderTerm, RunStore
from evenkeel.ledger.trouble import Trouble, kind_of, sentence
from evenkeel.ledger.upkeep import Present, Upkeep
from evenkeel.ledger.writes import (
    OfRun,
    Told,
    end_of,
    mark_of,
    phases_of,
    teller_of,
    uid_of,
    write_of,
)
from evenkeel.log import log
from evenkeel.model import DAY_S, kind_of_request
from evenkeel.settings import Settings

OpenStore = Callable[[], Awaitable[RunStore]]

BATCH_ROWS = 500
"""A larger batch writes hardly more rows a second, and holds the store for longer."""

GATHER_S = 0.05
"""So long after the first row a batch is written, full or not."""

TICK_S = 1.0
"""Between two looks at what depends on time alone."""

FACTS_EVERY_S = 60.0
"""Between two looks whether the store is still the same."""

AS_WRITTEN_S = 1.0
"""A store may keep times less exactly than they were written."""


class LedgerState(StrEnum):
    """How things stand between the operator and its store."""

    NONE = "none"
    """Nothing is kept."""
    OPENING = "opening"
    WRITING = "writing"
    AWAY = "away"


class LedgerSync:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        open_store: OpenStore | None,
        inbox: Inbox,
        clock: Clock,
        settings: Settings,
        present: Present,
        *,
        process: str = "",
        picture: Callable[[], Picture] = Picture,
        observe: Callable[[str, float], object] = lambda what, number: None,
    ) -> None:
        self._open_store = open_store
        self._inbox = inbox
        self._clock = clock
        self._present = present
        self._observe = observe
        self._outbox = Outbox(
            limit=settings.store_buffer, count_drop=lambda: observe("ledger_dropped", 1)
        )
        self._gaps = Gaps(self._outbox, clock, known=present.known, observe=observe)
        self._leftovers = Leftovers(
            self._outbox,
            clock,
            requests=present.requests,
            launched=present.launched,
            observe=observe,
        )
        self._minutes = Minutes(picture)
        self._upkeep = Upkeep(
            clock,
            present,
            process=process,
            retention=Retention(
                keep_s=settings.store_retention_days * DAY_S,
                keep_runs=settings.store_retention_runs,
                max_bytes=settings.store_max_size,
            ),
            observe=observe,
        )
        self._trouble = Trouble(clock)
        self._store: RunStore | None = None
        self._namespaces = frozenset(settings.namespaces)
        self._term = 0
        self._born = ""
        self._written_at = 0.0
        """The time of the last batch."""
        self._begun = False
        """What the store has from earlier processes was read."""
        self._looked_m = 0.0
        self._tried = asyncio.Event()
        """The store was begun with, or that has failed once."""
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._hurry = asyncio.Event()
        """The operator ends: no pause is waited for."""
        self._flushed = asyncio.Event()
        self._questions = Questions(inbox, self._outbox, self._store_there, observe=observe)

    @property
    def state(self) -> LedgerState:
        """How things stand between the operator and its store."""
        if self._open_store is None:
            return LedgerState.NONE
        if self._trouble.is_on:
            return LedgerState.AWAY
        return LedgerState.WRITING if self._begun else LedgerState.OPENING

    @property
    def waiting(self) -> int:
        """Rows that are not written yet."""
        return len(self._outbox)

    @property
    def oldest_s(self) -> float:
        """How long the oldest of them has waited."""
        since = self._outbox.oldest_m
        return 0.0 if since is None else max(0.0, self._clock.monotonic() - since)

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            **self._outbox.sizes(),
            **self._gaps.sizes(),
            **self._upkeep.sizes(),
            **self._leftovers.sizes(),
            "minutes": len(self._minutes),
            "questions": len(self._questions),
        }

    # --- what the scheduler tells -----------------------------------------------------------------

    def take(self, effect: effects.Effect) -> None:
        """Keep what is to be written. It never waits and never raises."""
        if isinstance(effect, effects.AskLedger | effects.AskRuns):
            answer = self._questions.refuse if self._open_store is None else self._questions.ask
            answer(effect)
            return
        if self._open_store is None:
            return
        try:
            self._keep(effect)
        except Exception as error:  # noqa: BLE001 - a row that cannot be made must not stop a run
            self._observe("ledger_error_defect", 1)
            log("ledger row not made", level="error", error=sentence(error))
            if isinstance(effect, Told):
                self._outbox.open_gap(uid_of(effect))
        if self._outbox.ready >= BATCH_ROWS:
            self._full.set()
        self._arrived.set()

    def _keep(self, effect: effects.Effect) -> None:
        now_m = self._clock.monotonic()
        if isinstance(effect, effects.ScheduleKnown):
            self._gaps.sight(effect)
        elif isinstance(effect, effects.StatusTold):
            self._outbox.tell(mark_of(effect), revision=effect.revision, now_m=now_m)
        elif isinstance(effect, effects.RequestTold):
            if self._present.exists(effect.uid):  # else nothing of it is held any more
                kind = kind_of_request(effect.request)
                self._outbox.tell_request(effect.uid, kind, revision=effect.revision)
        elif isinstance(effect, effects.RequestKnown | effects.RequestClosed):
            self._outbox.release_request(effect.uid, kind_of_request(effect.request))
            if isinstance(effect, effects.RequestKnown):
                self._leftovers.know(effect)
        elif isinstance(effect, effects.ScheduleEnded):
            self._upkeep.forget(effect.uid)
            self._leftovers.forget(effect.uid)
            self._outbox.end(effect.uid, end_of(effect), now_m=now_m)
        elif isinstance(effect, Told):
            self._minutes.look(self._clock.now())
            self._minutes.see(effect)
            if isinstance(effect, OfRun):
                self._upkeep.see(effect)
                self._leftovers.see(effect.run)
            if (write := write_of(effect)) is not None:
                revision = effect.revision
                self._outbox.hold(teller_of(effect), write, revision=revision, now_m=now_m)

    # --- the one task that writes -----------------------------------------------------------------

    async def run(self) -> None:
        """Write until cancelled. BadStore: opening it showed at once that no other try can help."""
        if self._open_store is None:
            return
        try:
            while True:
                try:
                    await self._work(self._open_store)
                except Exception as error:  # a defect of the store must not stop runs
                    if isinstance(error, BadStore) and not self._tried.is_set():
                        raise
                    pause_s = self._failed(error)
                if self._hurry.is_set():
                    self._flushed.set()  # as far as it can be
                    await clocks.sleep(pause_s)
                else:
                    await clocks.wait_for(self._hurry, pause_s)
        finally:
            self._questions.cancel()
            if self._store is not None:
                await self._store.close()

    async def flush(self, *, within_s: float) -> int:
        """At shutdown: write what may be written, and give up after `within_s`. How many rows are
        not written then."""
        if self._open_store is None:
            return 0
        self._minutes.look(self._clock.now(), last=True)
        for event in (self._hurry, self._arrived, self._full):
            event.set()
        await clocks.wait_for(self._flushed, within_s)
        return self.waiting

    async def _work(self, open_store: OpenStore) -> None:
        """Until a call fails."""
        store = await self._connect(open_store)
        while True:
            if not self._begun:
                await self._connect(open_store)
            busy = await self._write(store)
            busy = await self._gaps.fill_some(store) or busy
            busy = await self._keep_up(store) or busy
            if busy:
                continue
            if self._hurry.is_set() and not self._outbox.ready:
                self._flushed.set()
            await self._rest()

    async def _connect(self, open_store: OpenStore) -> RunStore:
        """Begin with the store, or go on with it."""
        if (store := self._store) is None:
            store = self._store = await open_store()
        await self._look(store)
        if not self._term:
            self._term = await store.take_term()
        if not self._begun:
            await self._begin(store)
            self._begun = True
        self._trouble.end(waiting=self.waiting, dropped=self._outbox.dropped)
        self._tried.set()
        return store

    async def _look(self, store: RunStore) -> None:
        """Look whether the store is the one that was written last. Where it is another one, or an
        older copy, it is begun with anew."""
        facts = await store.facts()
        self._looked_m = self._clock.monotonic()
        new = self._born not in ("", facts.born)
        if new or facts.written_at < self._written_at - AS_WRITTEN_S:
            log(
                "ledger lost",
                level="error",
                store=facts.where,
                found="another store" if new else "an older copy of the store",
                rows="what the statuses of the schedules tell is written again",
            )
            self._gaps.lose(self._present.schedules())
            self._term, self._begun, self._written_at = 0, False, facts.written_at
        self._born = facts.born

    async def _begin(self, store: RunStore) -> None:
        """Read what earlier processes left, before anything is written."""
        rows = [row async for row in store.schedules()]
        living = [row for row in rows if row.ended_at is None and self._watches(row.key)]
        self._gaps.start(living)
        await self._upkeep.start(store, living)
        await self._leftovers.start(store)
        if phases := phases_of(rows, since=self._clock.now() - DAY_S):
            self._inbox.hint("phases", PhasesRead(phases))

    async def _write(self, store: RunStore) -> bool:
        """Write a batch. Whether another one is full already."""
        writes, minutes = self._outbox.take(BATCH_ROWS), self._minutes.take()
        if not writes and not minutes:
            return False
        at, began = self._clock.now(), self._clock.monotonic()
        # By a clock that was set back the batch is older than the last; its answer may get lost.
        self._written_at = min(self._written_at, at)
        written = await store.write(Batch(at, writes, minutes), term=self._term)
        self._outbox.written()
        self._minutes.written()
        self._written_at = at
        self._observe("ledger_write", self._clock.monotonic() - began)
        self._observe("ledger_batch", len(writes))
        self._observe("ledger_rows", written.accepted)
        self._observe("ledger_illegal", written.illegal)
        self._observe("ledger_bad", written.bad)
        if written.bad:
            log("ledger rows refused", level="warning", count=written.bad)
        return self._outbox.ready >= BATCH_ROWS

    async def _keep_up(self, store: RunStore) -> bool:
        """Do what is due by the time. Whether there is more to do at once."""
        now_m = self._clock.monotonic()
        self._minutes.look(self._clock.now())
        for ended in self._upkeep.deleted():
            self._gaps.forget(ended.uid)
            self._leftovers.forget(ended.uid)
            self._outbox.end(ended.uid, ended, now_m=now_m)
        for uid in await self._upkeep.promote(store, self._term):
            self._outbox.open_gap(uid)
        if self._present.ready():
            await self._leftovers.end_some(store)
        if now_m >= self._looked_m + FACTS_EVERY_S:
            await self._look(store)
            if not self._begun:
                return True
        return await self._upkeep.retain(store)

    async def _rest(self) -> None:
        """Until there is a batch to write, or the time for something else has come."""
        self._arrived.clear()
        self._full.clear()
        if not self._outbox.ready and not self._hurry.is_set():
            await clocks.wait_for(self._arrived, TICK_S)
        if self._outbox.ready < BATCH_ROWS:
            await clocks.wait_for(self._full, GATHER_S)

    def _failed(self, error: Exception) -> float:
        """A call failed. How long to wait before the next try."""
        self._tried.set()
        self._minutes.look(self._clock.now())
        self._observe(f"ledger_error_{kind_of(error)}", 1)
        if isinstance(error, OlderTerm):
            # Until there is a Lease every operator believes that it is the one in charge.
            self._trouble.lose_term(error)
            self._term = 0
            return TICK_S
        return self._trouble.begin(error, waiting=self.waiting, dropped=self._outbox.dropped)

    def _watches(self, key: str) -> bool:
        return not self._namespaces or key.partition("/")[0] in self._namespaces

    async def _store_there(self) -> RunStore | None:
        """The store, once it was begun with; None: it is away."""
        await self._tried.wait()
        return None if self._trouble.is_on else self._store
