"""Whose status is written next. `StatusSync` asks, and keeps the objects here that wait.

An object has a pause after each write. Namespaces take turns. Creates go before statuses, but not
for ever. The first status of a spec goes before all others, and before creates: somebody has just
applied that spec and waits for the answer. AWAITED_A_SECOND bounds how many do. What waits is a set
of uids, which needs no bound of its own. Nothing is sent here.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from evenkeel.clock import Clock
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Places
from evenkeel.kube.tasks import Busy

EVERY_S = 1.0
"""Between two patches of one object: each comes back through the watch and costs kopf 0.3 ms."""

LAG_LIMIT_S = 40.0
"""Creates go first, but not for ever: in a herd the mark may lag its create by at most 60 s. With
20 s half of the statuses of ten thousand were written between their creates."""

AWAITED_A_SECOND = 50
"""First statuses of a spec that go before creates. A thousand objects that are applied at once must
not make the runs of others late."""

BUSY_PAUSE_S = 0.05
"""Between two looks whether creates have been sent."""

WHAT = "statuses"

_Lanes = dict[str, dict[str, None]]
"""Objects that may be written now, by namespace; the namespace whose turn it is first."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    ns: str
    since: float


class WriteTurns:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        places: Places,
        gate: Gate,
        busy: Busy,
        is_writing: Callable[[str], bool],
        arrived: Callable[[], object],
    ) -> None:
        """`arrived` is told that `take_next` may have another answer."""
        self._clock = clock
        self._places = places
        self._gate = gate
        self._busy = busy
        self._is_writing = is_writing
        self._arrived = arrived
        self._waiting: dict[str, _Waiting] = {}
        """Objects to be written. Each stands in its namespace's lane, or is paced, or its last
        write is still under way."""
        self._lanes: _Lanes = {}
        self._awaited: set[str] = set()
        """Objects that wait, and whose stored status speaks of no spec or of an older one."""
        self._awaited_lanes: _Lanes = {}
        """Those of them that may be written now; each stands in `_lanes` as well."""
        self._awaited_until = float("-inf")
        """Up to here the second's AWAITED_A_SECOND are used."""
        self._may_at: dict[str, float] = {}
        """When another patch of an object may be sent."""
        self._paced: list[tuple[float, str]] = []
        """A heap of objects that may be written later, by when."""
        self._is_paced: set[str] = set()
        self._closed_until = 0.0
        self._hurried = False
        self.pause_s = 0.0
        """How long to rest when `take_next` has found nothing."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[str]:
        return iter(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def since(self, uid: str) -> float:
        """When one began to wait."""
        return self._waiting[uid].since

    def is_forgotten(self, uid: str) -> bool:
        """Whether an object that was written has gone since."""
        return uid not in self._may_at

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            "statuses that wait": len(self._waiting),
            "first statuses that wait": len(self._awaited),
            "times of writes": len(self._may_at),
        }

    # --- who waits --------------------------------------------------------------------------------

    def add(self, uid: str, ns: str, *, since: float) -> None:
        """An object is to be written."""
        self._waiting[uid] = _Waiting(ns, since)
        self.queue(uid)

    def add_awaited(self, uid: str) -> None:
        """What is stored of this object speaks of no spec or of an older one."""
        self._awaited.add(uid)
        if uid in self._waiting:
            self.queue(uid)

    def queue(self, uid: str) -> None:
        """Put an object that waits into its lane, now or as soon as another patch of it may be
        sent."""
        if self._is_writing(uid):
            return  # this is done again when that write has ended
        may_at = self._may_at.get(uid, float("-inf"))
        if self._hurried or may_at <= self._clock.monotonic():
            ns = self._waiting[uid].ns
            self._lanes.setdefault(ns, {})[uid] = None
            if uid in self._awaited:
                self._awaited_lanes.setdefault(ns, {})[uid] = None
            self._arrived()
        elif uid not in self._is_paced:
            self._is_paced.add(uid)
            heapq.heappush(self._paced, (may_at, uid))
            self._arrived()

    def take(self, uid: str) -> None:
        """An object waits no longer."""
        self._awaited.discard(uid)
        found = self._waiting.pop(uid, None)
        if found is None:
            return
        for lanes in (self._lanes, self._awaited_lanes):
            lane = lanes.get(found.ns, {})
            lane.pop(uid, None)
            if not lane:
                lanes.pop(found.ns, None)

    def forget(self, uid: str) -> None:
        """An object is gone."""
        self.take(uid)
        self._may_at.pop(uid, None)

    # --- pauses -----------------------------------------------------------------------------------

    def sent(self, uid: str) -> None:
        """A patch of it is being sent."""
        self._may_at[uid] = self._clock.monotonic() + EVERY_S

    def delay(self, uid: str, pause_s: float) -> None:
        """No patch of it may be sent for so long."""
        self._may_at[uid] = self._clock.monotonic() + pause_s

    def close(self, pause_s: float) -> None:
        """Nothing may be sent for so long; 0: everything may."""
        self._closed_until = self._clock.monotonic() + pause_s

    @property
    def is_closed(self) -> bool:
        """Whether nothing may be sent now."""
        return self._clock.monotonic() < self._closed_until

    def hurry(self) -> None:
        """From now on nothing has a pause: the process ends."""
        self._hurried = True
        for uid in list(self._waiting):
            self.queue(uid)
        self._arrived()

    # --- whose turn it is -------------------------------------------------------------------------

    def take_next(self) -> tuple[str, str] | None:
        """The object whose turn it is, which waits no longer, and its namespace. None: it is
        nobody's turn for `pause_s`."""
        uid, self.pause_s = self._next()
        if uid is None:
            return None
        ns = self._waiting[uid].ns
        self.take(uid)
        for lanes in (self._lanes, self._awaited_lanes):
            if ns in lanes:
                lanes[ns] = lanes.pop(ns)  # to the end: others come first next time
        return uid, ns

    def _next(self) -> tuple[str | None, float]:
        now = self._clock.monotonic()
        pause_s = self._end_paces(now)
        if not self._hurried and self._closed_until > now:
            return None, self._closed_until - now
        busy = not self._hurried and self._busy()
        if (first := self._next_awaited(now)) is not None:
            return first, 0.0
        longest = next(iter(self._waiting.values()), None)
        if busy and (longest is None or now - longest.since < LAG_LIMIT_S):
            return None, BUSY_PAUSE_S  # not even the one that has waited longest
        for ns, lane in self._lanes.items():
            uid = next(iter(lane))
            if not self._places.free_for(ns):
                continue
            if not self._hurried and (closed_s := self._gate.closed_s(WHAT, ns)):
                pause_s = min(pause_s, closed_s)
            elif busy and now - self._waiting[uid].since < LAG_LIMIT_S:
                pause_s = min(pause_s, BUSY_PAUSE_S)
            else:
                return uid, 0.0
        return None, pause_s

    def _next_awaited(self, now: float) -> str | None:
        if not self._awaited_lanes or self._awaited_until > now:
            return None
        for ns, lane in self._awaited_lanes.items():
            if self._places.free_for(ns) and not self._gate.closed_s(WHAT, ns):
                used = max(self._awaited_until, now - 1.0)
                self._awaited_until = used + 1.0 / AWAITED_A_SECOND
                return next(iter(lane))
        return None

    def _end_paces(self, now: float) -> float:
        """Put objects whose pause has ended into their lanes; how long until the next one's."""
        while self._paced and self._paced[0][0] <= now:
            _, uid = heapq.heappop(self._paced)
            self._is_paced.discard(uid)
            if uid in self._waiting:
                self.queue(uid)
        return self._paced[0][0] - now if self._paced else 3600.0
