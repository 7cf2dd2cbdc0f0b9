"""What is to be done later: by the wall clock for due times, by the monotonic clock for durations.

A duration on the wall clock would last for years once that clock was set back by years. A task that
is no longer true when its moment comes is dropped then, so nothing is ever searched for in here.
"""

import heapq
import itertools
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
class CauseDeadline(Task):
    """By now the Pods of a Job that failed must have told why."""


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


@dataclass(frozen=True, slots=True)
class ProveTemplate:
    """The template of a schedule was refused and is to be proven again: a webhook or the cluster
    may have been changed."""

    uid: str


@dataclass(frozen=True, slots=True)
class StartWarning:
    """Jobs of a schedule may be there of which no Pod has started."""

    uid: str


@dataclass(frozen=True, slots=True)
class ProofDeadline:
    """The status of a schedule waits for the proof of its template no longer."""

    uid: str


@dataclass(frozen=True, slots=True)
class LedgerDeadline:
    """A verdict waits for the ledger no longer."""

    uid: str


@dataclass(frozen=True, slots=True)
class LookAtRequest:
    """What a request of this schedule waits for may have come."""

    uid: str
    kind: str


@dataclass(frozen=True, slots=True)
class ScheduleDeadline:
    """By now the schedule of a request must exist."""

    request: str


@dataclass(frozen=True, slots=True)
class RequestExpired:
    """The ttl of a request has passed."""

    request: str


OfSchedule = ProveTemplate | ProofDeadline | StartWarning | LedgerDeadline | LookAtRequest
OfRequest = ScheduleDeadline | RequestExpired
AnyTask = Task | ReadAgain | OfSchedule | OfRequest

_Entry = tuple[float, int, AnyTask]

NEVER = float("-inf")


class Agenda:
    """Two heaps of tasks by their moment; those of one moment keep the order in which they were
    put. The scheduler takes out what has come; schedules only put in."""

    def __init__(self) -> None:
        self._dues: list[_Entry] = []
        self._delays: list[_Entry] = []
        self._count = itertools.count()

    def __len__(self) -> int:
        return len(self._dues) + len(self._delays)

    def put_due(self, instant: float, task: AnyTask) -> None:
        """At that instant of the wall clock, or as soon after it as there is a step."""
        heapq.heappush(self._dues, (instant, next(self._count), task))

    def put_delay(self, until_m: float, task: AnyTask) -> None:
        """At that moment of the monotonic clock."""
        heapq.heappush(self._delays, (until_m, next(self._count), task))

    def pop(self, now: float, monotonic: float) -> AnyTask | None:
        """The task whose moment came longest ago; None: no moment has come."""
        due_late_s = now - self._dues[0][0] if self._dues else NEVER
        delay_late_s = monotonic - self._delays[0][0] if self._delays else NEVER
        if max(delay_late_s, due_late_s) < 0:
            return None
        heap = self._delays if delay_late_s > due_late_s else self._dues
        return heapq.heappop(heap)[-1]

    def wait_s(self, now: float, monotonic: float) -> float:
        """How long until the next; infinite when there is none."""
        due_s = self._dues[0][0] - now if self._dues else -NEVER
        delay_s = self._delays[0][0] - monotonic if self._delays else -NEVER
        return min(due_s, delay_s)
