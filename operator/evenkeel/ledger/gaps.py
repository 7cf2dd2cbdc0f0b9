"""Fills the gaps of the ledger: what it lacks of schedules at their first sight, and after a loss.

`sync` calls it between two batches. What a schedule lacks is found by `reconcile`, from what the
scheduler tells of the schedule's status and from what the store has.
"""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from evenkeel.clock import Clock
from evenkeel.core.effects import ScheduleKnown
from evenkeel.ledger.outbox import Outbox
from evenkeel.ledger.reconcile import fill, time_lacking
from evenkeel.ledger.rows import UNRECORDED, Book, RunRow, ScheduleRow, SpanRow, Write
from evenkeel.ledger.store import RunStore, book_of
from evenkeel.ledger.trouble import sentence
from evenkeel.log import log

AT_ONCE = 4
"""Schedules that are read from the store at a time: a small pool of connections serves them."""

IN_A_ROW = 50
"""Schedules that are filled before the next batch is written."""


class Gaps:
    """What is known of schedules that the ledger lacks something of."""

    def __init__(
        self,
        outbox: Outbox,
        clock: Clock,
        *,
        known: Callable[[str], ScheduleKnown | None],
        observe: Callable[[str, float], object],
    ) -> None:
        """`known`: a schedule as its stored status tells of it now; None: there is none."""
        self._outbox = outbox
        self._clock = clock
        self._known = known
        self._observe = observe
        self._first_sights: dict[str, ScheduleKnown] = {}
        self._at_start: dict[str, ScheduleRow] = {}
        """Schedules as the store had them at the start, until their gap is filled."""

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"first sights": len(self._first_sights), "rows read": len(self._at_start)}

    def sight(self, known: ScheduleKnown) -> None:
        """A schedule at its first sight."""
        self._first_sights[known.uid] = known
        self._outbox.open_gap(known.uid)

    def start(self, rows: Iterable[ScheduleRow]) -> None:
        """The schedules that the store has, before anything is written."""
        self._at_start = {row.uid: row for row in rows}

    def lose(self, uids: Iterable[str]) -> None:
        """The store was lost: all that it knew of these schedules is lacking."""
        self._at_start.clear()
        for uid in uids:
            self._first_sights.pop(uid, None)
            self._outbox.open_gap(uid)

    def forget(self, uid: str) -> None:
        """A schedule that the store had at the start does not exist any more."""
        self._at_start.pop(uid, None)

    async def fill_some(self, store: RunStore) -> bool:
        """Fill some gaps. Whether there may be more to fill at once."""
        chosen = list(islice(self._outbox.gaps(), IN_A_ROW))
        filled = False
        for first in range(0, len(chosen), AT_ONCE):
            several = chosen[first : first + AT_ONCE]
            found = await asyncio.gather(
                *(self._fill(store, uid, gap) for uid, gap in several), return_exceptions=True
            )
            for each in found:
                if isinstance(each, BaseException):
                    raise each
                filled = each or filled
        return filled

    async def _fill(self, store: RunStore, uid: str, gap: int) -> bool:
        known = self._first_sights.get(uid) or self._known(uid)
        now_m = self._clock.monotonic()
        if known is None:
            # Nobody can tell what is lacking: the schedule is gone, and its mark stays where it is.
            return self._outbox.forget_gap(uid, gap)
        book = await self._book(store, known)
        unfinished = () if book is None else await store.unfinished(uid)
        told, held = self._outbox.waiting(uid)
        try:
            writes = fill(known, book, unfinished=unfinished, told=told, held=held)
        except Exception as error:  # noqa: BLE001 - the rows of all others would wait for ever
            self._observe("ledger_error_defect", 1)
            log("ledger gap not filled", level="error", schedule=known.key, error=sentence(error))
            self._outbox.stop_mark(uid)
            writes = ()
        if not self._outbox.fill(uid, gap, writes, upto=known.mark, now_m=now_m):
            return True
        if self._first_sights.get(uid) is known:
            del self._first_sights[uid]
        self._at_start.pop(uid, None)
        self._count(writes)
        return True

    async def _book(self, store: RunStore, known: ScheduleKnown) -> Book | None:
        """What the store has of the time that may be lacking; None: it has no such schedule."""
        row = self._at_start.get(known.uid)
        if row is None:
            book = await book_of(store, known.uid, known.mark, known.mark + 1)
            if book is None:
                return None
            row = book.schedule
        return await book_of(store, known.uid, *time_lacking(known, row))

    def _count(self, writes: Iterable[Write]) -> None:
        for write in writes:
            if isinstance(write, RunRow):
                self._observe("ledger_reconciled", 1)
            elif isinstance(write, SpanRow):
                for what, count in write.counts.items():
                    unrecorded = what == UNRECORDED
                    self._observe("ledger_unrecorded" if unrecorded else "ledger_reconciled", count)
