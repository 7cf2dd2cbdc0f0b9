"""What the store needs beside writes: deferred runs are promoted, old rows folded, and schedules
that were deleted while nobody watched are ended. `sync` calls it between two batches.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from evenkeel.clock import Clock
from evenkeel.core.effects import RunBegan, RunEnded, RunWaits, ScheduleKnown
from evenkeel.ledger.rows import Folded, Holder, Retention, ScheduleEnded, ScheduleRow
from evenkeel.ledger.store import RunStore
from evenkeel.log import log
from evenkeel.model import BY_SCHEDULE, RunId, RunState

PROMOTED_AT_ONCE = 1000
"""Rows of one call: a transaction that locks more would hold up others."""

RETAIN_EVERY_S = 600.0
FIRST_RETAIN_S = 60.0
"""After the start: a process that is started again every few minutes must fold, too."""


@dataclass(frozen=True, slots=True)
class Present:
    """What the scheduler says of the present, each when it is asked."""

    known: Callable[[str], ScheduleKnown | None]
    """A schedule as its stored status tells of it; None: there is no such schedule, or its Jobs are
    not known yet."""
    exists: Callable[[str], bool]
    """Whether there is a schedule of this uid."""
    schedules: Callable[[], Iterable[str]]
    """The uids of all schedules."""
    launched: Callable[[], Iterable[tuple[RunId, int]]]
    """Runs whose Job exists, with their attempts."""
    requests: Callable[[], Collection[str] | None]
    """The kinds of all requests there are; None: not all are known that there were at the start."""
    ready: Callable[[], bool]
    """Whether all schedules and Jobs there were at the start are known."""


class Upkeep:
    """Of one process."""

    def __init__(
        self,
        clock: Clock,
        present: Present,
        *,
        process: str,
        retention: Retention,
        observe: Callable[[str, float], object],
    ) -> None:
        self._clock = clock
        self._present = present
        self._process = process
        self._retention = retention
        self._observe = observe
        self._retain_at_m = clock.monotonic() + FIRST_RETAIN_S
        self._deferred: dict[str, dict[RunId, float]] = {}
        """When deferred runs are due, by schedule."""
        self._at_start: list[ScheduleRow] | None = []
        """Schedules that the store knew at the start, until it is known which of them still exist;
        None: that is done."""
        self._requeued = False

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"deferred runs": sum(map(len, self._deferred.values()))}

    def see(self, effect: RunWaits | RunBegan | RunEnded) -> None:
        """A run begins later, or does not any more."""
        if isinstance(effect, RunWaits) and effect.due_at is not None:
            self._defer(effect.run, effect.due_at)
        elif (runs := self._deferred.get(effect.run.uid)) is not None:
            runs.pop(effect.run, None)
            if not runs:
                del self._deferred[effect.run.uid]

    def forget(self, uid: str) -> None:
        """The schedule was deleted."""
        self._deferred.pop(uid, None)

    async def start(self, store: RunStore, rows: Iterable[ScheduleRow]) -> None:
        """The store is open for the first time, or again after it was lost. `rows`: the schedules
        of which it does not know that they were deleted."""
        self._at_start = list(rows)
        self._requeued = False
        await self._read_deferred(store)

    def deleted(self) -> list[ScheduleEnded]:
        """Once, as soon as all schedules are known: those that were deleted while nobody watched,
        up to the mark that the ledger had."""
        if self._at_start is None or not self._present.ready():
            return []
        rows, self._at_start = self._at_start, None
        now = int(self._clock.now())
        return [
            ScheduleEnded(row.uid, row.key, now, row.mark)
            for row in rows
            if not self._present.exists(row.uid)
        ]

    async def promote(self, store: RunStore, term: int) -> list[str]:
        """Promote the deferred runs that are due. The uids of schedules of which the store believes
        that a run waits, and the scheduler does not."""
        if not self._requeued and self._present.ready():
            await self._requeue(store, term)
        now = self._clock.now()
        if not self._is_due(now):
            return []
        holder = Holder(term, self._process)
        strange: dict[str, None] = {}
        count = stale = 0
        while True:
            promoted = await store.promote_due(now, PROMOTED_AT_ONCE, holder)
            count += len(promoted.rows)
            stale += promoted.stale
            strange |= {row.run.uid: None for row in promoted.rows if self._is_over(row.run)}
            if len(promoted.rows) + promoted.stale < PROMOTED_AT_ONCE:
                break
        self._forget_due(now)
        if count or stale:
            self._observe("ledger_promoted", count)
            log("deferred runs promoted", count=count, stale=stale)
        return list(strange)

    async def retain(self, store: RunStore) -> bool:
        """Fold old rows if it is time for it, one bite of them. Whether there is more to fold."""
        if self._clock.monotonic() < self._retain_at_m:
            return False
        folded = await store.retain(self._clock.now(), self._retention)
        more = folded.more and folded != Folded(more=True)  # one that folds nothing is the last
        if not more:
            self._retain_at_m = self._clock.monotonic() + RETAIN_EVERY_S
        return more

    async def _requeue(self, store: RunStore, term: int) -> None:
        launched = tuple(self._present.launched())
        count = await store.requeue(below_term=term, launched=launched)
        self._requeued = True
        if not count:
            return
        log("promoted runs of an earlier process put back", count=count)
        await self._read_deferred(store)

    async def _read_deferred(self, store: RunStore) -> None:
        for row in await store.deferred():
            if row.state is not RunState.PENDING:
                self._defer(row.run, row.due_at)

    def _defer(self, run: RunId, due_at: float) -> None:
        self._deferred.setdefault(run.uid, {})[run] = due_at

    def _is_due(self, now: float) -> bool:
        return any(due_at <= now for runs in self._deferred.values() for due_at in runs.values())

    def _forget_due(self, now: float) -> None:
        later = {
            uid: {run: due_at for run, due_at in runs.items() if due_at > now}
            for uid, runs in self._deferred.items()
        }
        self._deferred = {uid: runs for uid, runs in later.items() if runs}

    def _is_over(self, run: RunId) -> bool:
        """Whether the scheduler has no such run of a schedule that it knows."""
        known = self._present.known(run.uid) if run.kind == BY_SCHEDULE else None
        return known is not None and run not in known.alive
