"""Who may create next: namespaces take turns; inside one (priority, due, name). Pure.

The launcher keeps its waiting launches here. Without turns one tenant's ten thousand schedules at
00:00 would make everybody else's minute-past runs late.
"""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lanes(Generic[T]):
    """A fair queue. Not thread-safe, and it forgets nothing by itself."""

    def __init__(self) -> None:
        self._lanes: dict[str, list[tuple[int, int, str, int, T]]] = {}
        self._turns: deque[str] = deque()
        self._arrivals = 0

    def __len__(self) -> int:
        return sum(len(lane) for lane in self._lanes.values())

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def push(self, item: T, *, ns: str, priority: int, due: int, name: str) -> None:
        """Add a launch; a higher priority goes first."""
        lane = self._lanes.get(ns)
        if lane is None:
            lane = self._lanes[ns] = []
            self._turns.append(ns)
        self._arrivals += 1  # ends the comparison before it reaches the item
        heapq.heappush(lane, (-priority, due, name, self._arrivals, item))

    def pop(self) -> T:
        """The next launch; IndexError when there is none."""
        return self._pop(self._turns[0])

    def pop_where(self, may: Callable[[str], bool]) -> T | None:
        """The next launch of a namespace that may; None: no launch of such a namespace waits."""
        ns = next((ns for ns in self._turns if may(ns)), None)
        return None if ns is None else self._pop(ns)

    def _pop(self, ns: str) -> T:
        self._turns.remove(ns)
        lane = self._lanes[ns]
        item = heapq.heappop(lane)[-1]
        if lane:
            self._turns.append(ns)
        else:
            del self._lanes[ns]
        return item
