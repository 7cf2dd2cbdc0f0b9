"""Places for requests in flight: bounded, and fair between namespaces.

One namespace's admission webhook may let every request hang. So some places are kept for
namespaces that hold none; a request older than a second gives its place back and counts for its
namespace alone; and a namespace none of whose requests come back may have few in flight.

The launcher, the status writer, errands and Events each have places of their own. `take` is for
those that choose what to send next by themselves, `hold` for those that only wait for their turn.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

YOUNG_S = 1.0
"""A request older than this mostly waits for a webhook, which may take ten seconds or thirty."""


class Place:
    """Held by one request."""

    def __init__(self, places: "Places", ns: str) -> None:
        self._places = places
        self._ns = ns
        self.old = False
        self._aging = asyncio.get_running_loop().call_later(YOUNG_S, self._grow_old)

    def _grow_old(self) -> None:
        self.old = self._places.let_grow_old(self._ns)
        if not self.old:
            self._aging = asyncio.get_running_loop().call_later(YOUNG_S, self._grow_old)

    def give_back(self, *, answered: bool) -> None:
        """The request has ended; `answered`: with the server's answer, whatever that says."""
        self._aging.cancel()
        self._places.take_back(self._ns, old=self.old, answered=answered)


class Places:
    """Of one kind of request."""

    def __init__(
        self,
        count: int,
        *,
        kept: int,
        stuck: int,
        old_in_all: int,
        each: int | None = None,
        freed: Callable[[], object] = lambda: None,
    ) -> None:
        """`count` for all, and `kept` more for namespaces that hold none. `stuck` is how many a
        namespace may have in flight while none comes back, `old_in_all` how many of all
        namespaces may be in flight without a place, `each` how many of one namespace at all.
        `freed` is told that another request may begin."""
        self._count = count
        self._kept = kept
        self._stuck_limit = stuck
        self._old_in_all = old_in_all
        self._each = each
        self._freed = freed
        self._young: Counter[str] = Counter()
        self._old: Counter[str] = Counter()
        self.young = 0
        """Requests that hold a place."""
        self.old = 0
        """Requests that gave theirs back."""
        self._stuck: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[Place]]] = {}
        """By namespace, the next one's turn first."""

    @property
    def full(self) -> bool:
        """Only namespaces that hold no place may begin another request."""
        return self.young >= self._count

    def free_for(self, ns: str) -> bool:
        """Whether another request to this namespace may begin."""
        held = self._young[ns] + self._old[ns]
        if self._each is not None and held >= self._each:
            return False
        if held >= self._stuck_limit and (ns in self._stuck or self._old[ns] >= self._count):
            return False
        return self.young < self._count + (0 if held else self._kept)

    def take(self, ns: str) -> Place:
        """A place that is free."""
        self._young[ns] += 1
        self.young += 1
        return Place(self, ns)

    @asynccontextmanager
    async def hold(self, ns: str) -> AsyncIterator[None]:
        """A place, as soon as one is free. What the block raises is taken for no answer."""
        place = await self._turn(ns)
        answered = False
        try:
            yield
            answered = True
        finally:
            place.give_back(answered=answered)

    async def _turn(self, ns: str) -> Place:
        if ns not in self._waiting and self.free_for(ns):
            return self.take(ns)
        turn: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(ns, deque()).append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._hand_out()  # or those that come later would wait behind nobody
            else:
                turn.result().give_back(answered=False)
            raise

    def let_grow_old(self, ns: str) -> bool:
        """A request is older than a second. False: it keeps its place, for too many have none."""
        if self.old >= self._old_in_all:
            return False
        _less(self._young, ns)
        self._old[ns] += 1
        self.young, self.old = self.young - 1, self.old + 1
        self._stuck.add(ns)
        self._hand_out()
        return True

    def take_back(self, ns: str, *, old: bool, answered: bool) -> None:
        """A request has ended."""
        if old:
            _less(self._old, ns)
            self.old -= 1
        else:
            _less(self._young, ns)
            self.young -= 1
        if answered:
            self._stuck.discard(ns)
        self._hand_out()

    def _hand_out(self) -> None:
        handed = True
        while handed:
            handed = False
            for ns in list(self._waiting):
                handed |= self._hand_to(ns)
        self._freed()

    def _hand_to(self, ns: str) -> bool:
        turns = self._waiting[ns]
        while turns and turns[0].cancelled():
            turns.popleft()
        free = bool(turns) and self.free_for(ns)
        if free:
            turns.popleft().set_result(self.take(ns))
            self._waiting[ns] = self._waiting.pop(ns)  # to the end: others come first next time
        if not turns:
            del self._waiting[ns]
        return free


def _less(counter: Counter[str], ns: str) -> None:
    counter[ns] -= 1
    if not counter[ns]:
        del counter[ns]
