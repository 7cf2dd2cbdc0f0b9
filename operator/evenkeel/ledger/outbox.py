"""What waits to be written to the ledger, in order for each schedule and request, and bounded.

A row waits first until a stored status tells of it, however long that takes, and then for its
turn. Were it written before, a crash would leave a verdict in the ledger that the next process does
not know of, and it would give another one. The status of a schedule tells of its runs by schedule,
that of a request of the runs that it asked for. A schedule's mark is written behind all rows that
the same status told of; a mark that still waits is outdated by the next one.

A schedule has a gap while the ledger lacks something of it: from its first sight on, and from when
one of its rows was dropped because too many waited. Nothing of it is written then until `fill` has
put what is lacking before the rows that wait. Runs and verdicts are dropped, the oldest first. Rows
that tell of a timing, of an open range or of a deletion never are: there are as many as edits. The
gap of a row that no status told of stays until one does, for what it told is not known before.
Rows of requested runs do not wait for the gap of their schedule: no mark waits for them.

`sync` calls it. Pure. Not guaranteed: an order between schedules, or between a schedule and its
requests; that a requested run of which rows were dropped gets them again.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from evenkeel.ledger.rows import MarkRow, Range, RunRow, SpanRow, Write, uid_of
from evenkeel.model import BY_SCHEDULE, Instant

MOST_HELD = 1000
"""Rows of one schedule or request that no status tells of: one whose statuses are refused for ever
must not take the room of all others."""

_EVER = 1 << 62


class Teller(NamedTuple):
    """Whose status tells of a row. Of a run whose request was deleted that of the schedule does."""

    uid: str
    """The schedule's."""
    kind: str = BY_SCHEDULE
    """The schedule itself, or the request whose runs are of this kind."""

    @property
    def is_schedule(self) -> bool:
        return self.kind == BY_SCHEDULE


@dataclass(frozen=True, slots=True)
class _Waiting:
    teller: Teller
    write: Write
    since_m: float
    revision: int = 0


@dataclass(slots=True)
class _Lane:
    """What waits of one schedule or request: mostly one row, and an empty deque would be larger
    than it."""

    held: list[_Waiting] = field(default_factory=list)
    """No stored status tells of these yet."""
    aside: list[_Waiting] = field(default_factory=list)
    """These came to their turn, and the schedule has a gap."""
    queued: int = 0
    """Rows in the common queue, or being written."""

    @property
    def is_empty(self) -> bool:
        return not (self.held or self.aside or self.queued)


class Outbox:
    """What waits of all schedules. Times are monotonic."""

    def __init__(self, *, limit: int, count_drop: Callable[[], object] = lambda: None) -> None:
        """`limit`: most rows. Marks do not count: each schedule has one at most."""
        self._limit = limit
        self._count_drop = count_drop
        self._lanes: dict[Teller, _Lane] = {}
        """Of those with rows."""
        self._gaps: dict[str, int] = {}
        """And a number that changes when more is lacking."""
        self._told: dict[str, tuple[int, MarkRow]] = {}
        """What the stored status of each schedule tells: up to which revision, and its mark."""
        self._requests: dict[str, dict[str, int]] = {}
        """Up to which revision the stored status of each request tells, by schedule and kind."""
        self._stopped: set[str] = set()
        """Schedules whose mark stays where it is."""
        self._queue: OrderedDict[int, _Waiting] = OrderedDict()
        """Rows that may be written, by ascending number."""
        self._marks: OrderedDict[str, tuple[int, _Waiting]] = OrderedDict()
        """The mark of a schedule follows the rows with lower numbers. Ascending by number."""
        self._next = 0
        self._next_first = -1
        """The number of a row that goes before all others."""
        self._gap_number = 0
        self._taken: list[_Waiting] = []
        self._gaps_until: dict[str, int] = {}
        """The revision that must be told before the gap of a schedule can be filled."""
        self._rows = 0
        self.dropped = 0
        """Rows since the start."""

    def __len__(self) -> int:
        """Rows and marks that wait or are being written."""
        return self._rows + len(self._marks)

    @property
    def ready(self) -> int:
        """How many may be written."""
        return len(self._queue) + len(self._marks) + len(self._taken)

    @property
    def oldest_m(self) -> float | None:
        """About since when the oldest row has waited; None: nothing waits."""
        firsts = [*self._taken[:1]]
        if self._queue:
            firsts.append(next(iter(self._queue.values())))
        if self._marks:
            firsts.append(next(iter(self._marks.values()))[1])
        if (uid := next(iter(self._gaps), None)) is not None:
            firsts += self._lanes.get(Teller(uid), _Lane()).aside[:1]
        found = [each.since_m for each in firsts]
        found += [lane.held[0].since_m for lane in self._lanes.values() if lane.held]
        return min(found, default=None)

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            "rows that wait": self._rows,
            "marks that wait": len(self._marks),
            "schedules and requests with rows": len(self._lanes),
            "schedules with a gap": len(self._gaps),
            "gaps that wait for a status": len(self._gaps_until),
            "told marks": len(self._told),
            "told requests": sum(map(len, self._requests.values())),
        }

    # --- what comes in ----------------------------------------------------------------------------

    def hold(self, teller: Teller, write: Write, *, revision: int, now_m: float) -> None:
        """Keep a row until the status of this revision is stored."""
        lane, waiting = self._lane(teller), _Waiting(teller, write, now_m, revision)
        self._rows += 1
        if not lane.held and revision <= self._revision_told(teller):
            self._append(lane, waiting)
        else:
            lane.held.append(waiting)
            if not teller.is_schedule:
                self._requests.setdefault(teller.uid, {}).setdefault(teller.kind, 0)
            if len(lane.held) > MOST_HELD and self._drop_from(lane, lane.held):
                self._dropped(teller)
        self._shrink()

    def tell(self, mark: MarkRow, *, revision: int, now_m: float) -> None:
        """The status of this revision is stored: its rows may be written, and then its mark."""
        uid = mark.uid
        told, before = self._told.get(uid, (0, None))
        if before is not None and before.mark >= mark.mark:
            mark = before
        self._told[uid] = max(revision, told), mark
        self._release(Teller(uid), revision)
        if mark != before:
            self._append_mark(mark, now_m)

    def tell_request(self, uid: str, kind: str, *, revision: int) -> None:
        """The status of this revision of a request is stored: its rows may be written."""
        told = self._requests.setdefault(uid, {})
        told[kind] = max(revision, told.get(kind, 0))
        self._release(Teller(uid, kind), revision)

    def release_request(self, uid: str, kind: str) -> None:
        """No status will tell of what is held of a request: it was deleted, or it was read again,
        and its revisions begin anew."""
        self._release(Teller(uid, kind), _EVER)
        requests = self._requests.get(uid, {})
        requests.pop(kind, None)
        if not requests:
            self._requests.pop(uid, None)

    def end(self, uid: str, write: Write, *, now_m: float) -> None:
        """The schedule was deleted: no status will tell of what is held. Its end is written behind
        all that, the rows of its requests too."""
        for kind in self._requests.pop(uid, {}):
            self._release(Teller(uid, kind), _EVER)
        self._release(Teller(uid), _EVER)
        self._rows += 1
        self._append(self._lane(Teller(uid)), _Waiting(Teller(uid), write, now_m))
        self._told.pop(uid, None)
        self._stopped.discard(uid)
        self._gaps_until.pop(uid, None)
        self._shrink()

    # --- gaps -------------------------------------------------------------------------------------

    def open_gap(self, uid: str) -> None:
        """The ledger lacks something of a schedule, or something more."""
        self._gap_number += 1
        self._gaps[uid] = self._gap_number
        self._marks.pop(uid, None)  # `fill` appends it again

    def gaps(self) -> Iterator[tuple[str, int]]:
        """Schedules with a gap that can be filled, the oldest first, each with the number of its
        gap. Those with rows in the queue follow later, as do those that no status tells of yet."""
        for uid, number in self._gaps.items():
            lane, revision = self._lanes.get(Teller(uid)), self._gaps_until.get(uid, 0)
            told, _ = self._told.get(uid, (0, None))
            if (lane is None or not lane.queued) and told >= revision:
                yield uid, number

    def waiting(self, uid: str) -> tuple[list[Write], list[Write]]:
        """The rows of a schedule with a gap: those that `fill` puts before the mark, and those that
        no stored status tells of yet."""
        lane = self._lanes.get(Teller(uid), _Lane())
        return [each.write for each in lane.aside], [each.write for each in lane.held]

    def fill(
        self, uid: str, gap: int, writes: Iterable[Write], *, upto: Instant, now_m: float
    ) -> bool:
        """These are what the ledger lacked of the time up to `upto`: they are written first, and
        then what waits. False: since it was found what is lacking, there is more."""
        if self._gaps.get(uid) != gap:
            return False
        del self._gaps[uid]
        self._gaps_until.pop(uid, None)
        teller = Teller(uid)
        lane, mark = self._lane(teller), None
        filling: list[_Waiting] = []
        for write in writes:
            if isinstance(write, MarkRow):
                mark = write
            else:
                filling.append(_Waiting(teller, write, now_m))
        self._rows += len(filling)
        for waiting in reversed([*filling, *lane.aside]):
            self._queue[self._next_first] = waiting
            self._queue.move_to_end(self._next_first, last=False)
            self._next_first -= 1
            lane.queued += 1
        lane.aside.clear()
        _, told = self._told.get(uid, (0, None))
        if told is not None and told.mark > upto:
            mark = told
        if mark is not None:
            self._append_mark(mark, now_m)
        self._tidy(teller)
        return True

    def forget_gap(self, uid: str, gap: int) -> bool:
        """Nobody can tell what is lacking. Of a deleted schedule the gap is forgotten. Of any other
        it stays, because the mark would pass what is lacking. Whether it is forgotten."""
        if self._gaps.get(uid) != gap:
            return False
        if uid in self._told:
            self._gaps[uid] = self._gaps.pop(uid)  # others are filled first
            return False
        return self.fill(uid, gap, (), upto=0, now_m=0.0)

    def stop_mark(self, uid: str) -> None:
        """It cannot be found what a schedule lacks: its rows are written, and no mark passes what
        is lacking. The next process tries again."""
        self._stopped.add(uid)

    def is_stopped(self, uid: str) -> bool:
        """Whether it could not be found what a schedule lacks."""
        return uid in self._stopped

    def has_gap(self, uid: str) -> bool:
        """Whether the ledger lacks something of a schedule that may still be found."""
        return uid in self._gaps

    # --- what goes out ----------------------------------------------------------------------------

    def take(self, limit: int) -> tuple[Write, ...]:
        """What is to be written next. The same is given again until `written` is called."""
        if not self._taken:
            while len(self._taken) < limit and (waiting := self._pop()) is not None:
                if self._has_gap(waiting.teller):
                    lane = self._lanes[waiting.teller]
                    lane.queued -= 1
                    lane.aside.append(waiting)
                else:
                    self._taken.append(waiting)
        return tuple(each.write for each in self._taken)

    def written(self) -> None:
        """What was taken is stored."""
        for waiting in self._taken:
            if isinstance(waiting.write, MarkRow):
                continue
            self._rows -= 1
            self._lanes[waiting.teller].queued -= 1
            self._tidy(waiting.teller)
        self._taken = []

    # --- what is asked ----------------------------------------------------------------------------

    def all_rows(self) -> Iterator[Write]:
        """All rows that are not known to be stored, marks aside. Those of one run stand in their
        order."""
        lanes = self._lanes.values()
        found = chain(
            self._taken,
            self._queue.values(),
            chain.from_iterable(lane.aside for lane in lanes),
            chain.from_iterable(lane.held for lane in lanes),
        )
        return (each.write for each in found if not isinstance(each.write, MarkRow))

    def all_of(self, uid: str) -> list[Write]:
        """Those of a schedule and its requests."""
        return [row for row in self.all_rows() if uid_of(row) == uid]

    # --- within -----------------------------------------------------------------------------------

    def _lane(self, teller: Teller) -> _Lane:
        if (lane := self._lanes.get(teller)) is None:
            lane = self._lanes[teller] = _Lane()
        return lane

    def _tidy(self, teller: Teller) -> None:
        if self._lanes[teller].is_empty:
            del self._lanes[teller]

    def _revision_told(self, teller: Teller) -> int:
        if teller.is_schedule:
            return self._told.get(teller.uid, (0,))[0]
        return self._requests.get(teller.uid, {}).get(teller.kind, 0)

    def _release(self, teller: Teller, revision: int) -> None:
        """Rows up to this revision may be written."""
        if (lane := self._lanes.get(teller)) is not None:
            while lane.held and lane.held[0].revision <= revision:
                self._append(lane, lane.held.pop(0))

    def _has_gap(self, teller: Teller) -> bool:
        return teller.is_schedule and teller.uid in self._gaps

    def _append(self, lane: _Lane, waiting: _Waiting) -> None:
        self._queue[self._next] = waiting
        self._next += 1
        lane.queued += 1

    def _append_mark(self, mark: MarkRow, now_m: float) -> None:
        uid = mark.uid
        if uid in self._gaps or uid in self._stopped:
            return
        _, before = self._marks.pop(uid, (0, None))
        since_m = before.since_m if before else now_m
        self._marks[uid] = self._next, _Waiting(Teller(uid), mark, since_m)
        self._next += 1

    def _pop(self) -> _Waiting | None:
        """Take what comes next out of the queue."""
        row = next(iter(self._queue), None)
        mark = next(iter(self._marks.values()), None)
        if mark is not None and (row is None or mark[0] < row):
            return self._marks.popitem(last=False)[1][1]
        return self._queue.popitem(last=False)[1] if row is not None else None

    def _shrink(self) -> None:
        """Drop the oldest runs and verdicts while too many rows wait."""
        while self._rows > self._limit and (teller := self._drop()) is not None:
            self._dropped(teller)

    def _dropped(self, teller: Teller) -> None:
        self._rows -= 1
        self.dropped += 1
        self._count_drop()
        if teller.is_schedule:
            self.open_gap(teller.uid)
        self._tidy(teller)

    def _drop(self) -> Teller | None:
        """Drop one row. None: there is none that may be dropped."""
        while self._queue:
            _, waiting = self._queue.popitem(last=False)
            lane = self._lanes[waiting.teller]
            lane.queued -= 1
            if _may_be_dropped(waiting):
                return waiting.teller
            lane.aside.append(waiting)  # it keeps its place before the later rows of its schedule
            self.open_gap(waiting.teller.uid)
        for teller, lane in self._lanes.items():
            for rows in (lane.aside, lane.held):
                if self._drop_from(lane, rows):
                    return teller
        return None

    def _drop_from(self, lane: _Lane, rows: list[_Waiting]) -> bool:
        """Drop the oldest of these rows that may be dropped."""
        found = next(filter(_may_be_dropped, rows), None)
        if found is None:
            return False
        rows.remove(found)
        if rows is lane.held and found.teller.is_schedule:
            uid = found.teller.uid
            self._gaps_until[uid] = max(found.revision, self._gaps_until.get(uid, 0))
        return True


def _may_be_dropped(waiting: _Waiting) -> bool:
    write = waiting.write
    return isinstance(write, RunRow) or (isinstance(write, SpanRow) and write.kind is Range.VERDICT)
