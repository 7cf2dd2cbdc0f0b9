"""What the status of a RunRequest holds, in nouns: what is remembered over a restart, and what is
only shown.

`request_status` reads and writes them; the core's requests hold them. The status of a request is
the durable truth of its progress: which due times are to run (the plan), how far they have begun
(the mark), which of them have not ended (active), and how the others ended (counts).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenkeel.model import Instant, RequestState, RunState, Timing
from evenkeel.reasons import Reason
from evenkeel.resource.record import LARGEST_COUNT, Condition, RecentRun

REQUEST_ACTIVE_COUNT = 100
"""maxActive is at most this: `status.active` names every run that has begun and has not ended."""
REQUEST_RECENT_COUNT = 10
DUES_SHOWN_COUNT = 20
MOST_DUES = 10_000
"""Due times of a plan at most: setting requests.maxDues allows no more."""
REQUEST_COUNTED = ("succeeded", "failed", "skipped", "cancelled", "lost")


@dataclass(frozen=True, slots=True)
class Plan:
    """`status.plan`: which due times run. It is made once, when the request is accepted, and a
    later edit of the timing does not change it."""

    count: int
    """Due times in the range, or 1."""
    bits: bytes
    """One bit for each of them, ascending by due time, the first in the highest bit of the first
    byte: 1: it is to run."""
    timing: Timing | None = None
    """That made them, with its phase. None: the plan is one run at the request's due time."""


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """One row of `status.active`: a run that has begun and has not ended."""

    due: Instant
    attempt: int = 1
    reason: Reason | None = None
    """Why it waits: launching, held, queued or retrying. None: its Job exists."""
    job: str = ""
    job_uid: str = ""
    retry_at: Instant | None = None
    """Its next try; of a row `launching`, when it was announced."""


@dataclass(slots=True)
class RequestRecord:
    """What became of a request's runs."""

    counts: dict[str, int] = field(default_factory=dict)
    recent: list[RecentRun] = field(default_factory=list)
    """The rows that changed last, the newest change first. One row of each due time at most."""
    consecutive_failures: int = 0

    @property
    def done(self) -> int:
        """Runs that have ended."""
        return sum(self.counts.values())

    def remember(self, row: RecentRun) -> None:
        """Put a row first; a row of the same due time is replaced."""
        rows = [row, *(old for old in self.recent if old.due != row.due)]
        self.recent = rows[:REQUEST_RECENT_COUNT]

    def count(self, state: RunState) -> None:
        """One more run has ended."""
        self.counts[state.value] = min(self.counts.get(state.value, 0) + 1, LARGEST_COUNT)
        if state is RunState.SUCCEEDED:
            self.consecutive_failures = 0
        elif state in (RunState.FAILED, RunState.LOST):
            self.consecutive_failures += 1


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """What the status of a request gives back after a restart."""

    generation: int = 0
    """The spec that it speaks of; 0: no operator has written it yet."""
    state: RequestState = RequestState.PENDING
    schedule_uid: str = ""
    """The schedule that it was accepted for; empty: not accepted yet."""
    plan: Plan | None = None
    mark: Instant | None = None
    """`status.plan.mark`: the due time that has begun last, in the order of the request. Every due
    time up to it, in that order, has ended or stands in `active`. None: none has begun."""
    active: tuple[ActiveRun, ...] = ()
    record: RequestRecord = field(default_factory=RequestRecord)
    started: Instant | None = None
    """When its first run began."""
    finished: Instant | None = None
    """When it ended; None: it has not."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    version: str = ""
    """The resourceVersion it was read at."""


@dataclass(frozen=True, slots=True)
class RequestShown:
    """What the status of a request tells people beside that; nothing is read back from it."""

    total: int | None = None
    """How many runs are wanted; None: not planned yet."""
    dues: tuple[Instant, ...] = ()
    """The first of them, in the order of the request, at most DUES_SHOWN_COUNT."""


NO_REQUEST_STATUS = RequestMemory()
