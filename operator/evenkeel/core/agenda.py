"""What is to be done later: by the wall clock for due times, by the monotonic clock for durations.

A duration on the wall clock would last for years once that clock was set back by years. A task that
is no longer true when its moment comes is dropped then, so nothing is ever searched for in here.
"""

import heapq
from dataclasses import dataclass

from evenkeel.model import RunId


@dataclass(frozen=True, slots=True)
class Task:
    """Something about one attempt of a run."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class Start(Task):
    """A run's instant, or its next try."""


@dataclass(frozen=True, slots=True)
class PendingDeadline(Task):
    """By now a Pod of this attempt must have started."""


@dataclass(frozen=True, slots=True)
class DeletionDeadline(Task):
    """By now a Job that is being deleted must have gone."""


@dataclass(frozen=True, slots=True)
class UnwantedExpired(Task):
    """A create that got no answer cannot arrive any more."""


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """A schedule whose handler raised is to be read again, as at a restart."""

    uid: str


AnyTask = Task | ReadAgain


class _Heap:
    """Tasks by their moment; those of one moment in the order in which they were put."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, AnyTask]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, when: float, task: AnyTask) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, task))

    @property
    def next_at(self) -> float:
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> AnyTask:
        return heapq.heappop(self._heap)[-1]


class Agenda:
    """Two clocks' tasks. The scheduler takes out what has come; schedules only put in."""

    def __init__(self) -> None:
        self._dues = _Heap()
        self._delays = _Heap()

    def __len__(self) -> int:
        return len(self._dues) + len(self._delays)

    def put_due(self, instant: float, task: AnyTask) -> None:
        """At that instant of the wall clock, or as soon after it as there is a step."""
        self._dues.put(instant, task)

    def put_delay(self, until_m: float, task: AnyTask) -> None:
        """At that moment of the monotonic clock."""
        self._delays.put(until_m, task)

    def pop(self, now: float, monotonic: float) -> AnyTask | None:
        """The task whose moment came longest ago; None: no moment has come."""
        delay_late_s = monotonic - self._delays.next_at
        due_late_s = now - self._dues.next_at
        if max(delay_late_s, due_late_s) < 0:
            return None
        return self._delays.pop() if delay_late_s > due_late_s else self._dues.pop()

    def wait_s(self, now: float, monotonic: float) -> float:
        """How long until the next; infinite when there is none."""
        return min(self._dues.next_at - now, self._delays.next_at - monotonic)
