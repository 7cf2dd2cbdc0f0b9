"""What is to be done at an instant. What is no longer true when its instant comes is dropped then,
so nothing is ever searched for in here.
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


class Agenda:
    """Tasks by their instant; those of one instant in the order in which they were put."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Task]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, when: float, task: Task) -> None:
        """At that instant, or as soon after it as there is a step."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, task))

    @property
    def next_at(self) -> float:
        """When the first is due; infinite when there is none."""
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> Task:
        """The first."""
        return heapq.heappop(self._heap)[-1]
