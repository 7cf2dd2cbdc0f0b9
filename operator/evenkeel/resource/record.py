"""What a status holds, in nouns: what is remembered over a restart, and what is only shown.

`status` reads and writes them; the core's entries hold them. `Record` is what an entry changes as
its runs end; all others are replaced as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evenkeel.model import (
    Instant,
    JobRef,
    RunState,
    ScheduleState,
    Timing,
    Window,
)
from evenkeel.reasons import Reason
from evenkeel.when.compile import LONGEST_INTERVAL_S

RECENT_COUNT = 10
ACTIVE_COUNT = 50
DURATIONS_COUNT = 10
WAITING_COUNT = 128
"""Due times that a status names; a ScheduledJob must stay far below etcd's 1.5 MB."""
SPANS_COUNT = 4
CONDITION_COUNT = 16
UPCOMING_COUNT = 5
MOST_ATTEMPTS = 21
"""retry.limit is at most 20."""
LONGEST_RUN_S = LONGEST_INTERVAL_S
LARGEST_COUNT = 2**53 - 1
"""By hand a number may be as large as the schema takes, and one more would be refused for ever."""
COUNTED = ("succeeded", "failed", "skipped", "missed", "cancelled", "lost")
NOT_SEEN_STATE = ScheduleState.PENDING.value
NOT_SEEN_MESSAGE = "Waiting for the operator"
"""What a schedule says until the operator has read it; the CRD fills it in."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """One row of `status.recent`."""

    due: Instant
    state: RunState
    started: Instant | None = None
    finished: Instant | None = None
    reason: str = ""
    attempt: int = 1
    job: str = ""
    exit_code: int | None = None
    exit_reason: str = ""


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """One row of `status.internal.waiting`: a run by schedule that the mark has passed and that has
    no Job."""

    due: Instant
    attempt: int = 1
    reason: Reason = Reason.HELD
    retry_at: Instant | None = None
    """When its next try begins; of a row `launching`, when it was announced. None: its due time."""


@dataclass(frozen=True, slots=True)
class ToldSpan:
    """One row of `status.internal.spans`: due times that got one verdict as a whole."""

    first: Instant
    last: Instant
    count: int
    state: RunState
    reason: Reason


@dataclass(slots=True)
class Record:
    """What became of a schedule's runs, as far as a status tells it."""

    recent: list[RecentRun] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    counts_since: Instant = 0
    consecutive_failures: int = 0
    last_schedule: Instant | None = None
    last_success: Instant | None = None
    last_failure: Instant | None = None
    last_result: str = ""
    durations: list[int] = field(default_factory=list)
    """Seconds of the last runs that succeeded, the newest last. `recent` need not tell of them: its
    rows may all be skipped or failed ones."""
    spans: list[ToldSpan] = field(default_factory=list)
    """The last due times that got one verdict as a whole, the newest last."""
    expected_s: int = 0
    """How long the next run is expected to last; 0 where that is not known."""

    def remember(self, row: RecentRun) -> None:
        """Put a row where its due time belongs, newest first; a row of the same due is replaced."""
        rows = [old for old in self.recent if old.due != row.due]
        rows.append(row)
        rows.sort(key=lambda one: one.due, reverse=True)
        self.recent = rows[:RECENT_COUNT]

    def tell_span(self, span: ToldSpan) -> None:
        """Keep it beside the last ones: should the ledger miss it, the next process tells it."""
        self.spans = [*self.spans, span][-SPANS_COUNT:]

    def count(self, state: RunState, number: int) -> None:
        """So many more of an end."""
        self.counts[state.value] = min(self.counts.get(state.value, 0) + number, LARGEST_COUNT)
        self.last_result = state.value

    def succeeded(self, at: Instant) -> None:
        """A run succeeded at that instant."""
        self.consecutive_failures = 0
        self.last_success = max(self.last_success or 0, at)

    def failed(self, at: Instant, number: int = 1) -> None:
        """A run failed or was lost."""
        self.consecutive_failures = min(self.consecutive_failures + number, LARGEST_COUNT)
        self.last_failure = max(self.last_failure or 0, at)


@dataclass(frozen=True, slots=True)
class Pause:
    """Why a schedule is paused, by whom, and since when."""

    since: Instant
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Placed:
    """`status.placement`: the phase of an interval that the operator chose."""

    anchor: Instant
    every_s: int
    placed_at: Instant
    weight: int | None = None
    """The field that it was chosen for."""
    slot: int = 0
    window: Window | None = None
    reason: str = ""
    load: int = 0


@dataclass(frozen=True, slots=True)
class Condition:
    """One of `status.conditions`."""

    status: str
    reason: str
    message: str
    since: Instant
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What a status gives back after a restart."""

    generation: int = 0
    """The spec that it speaks of; 0: no operator has written it yet."""
    mark: Instant | None = None
    timing: Timing | None = None
    timing_since: Instant | None = None
    suspended_since: Instant | None = None
    resumed_at: Instant | None = None
    pause: Pause | None = None
    waiting: tuple[WaitingRun, ...] = ()
    active: tuple[JobRef, ...] = ()
    unnamed_active: int = 0
    """Of the active runs up to the mark, those that `active` has no room for."""
    record: Record = field(default_factory=Record)
    template_hash: str = ""
    trigger: str = ""
    """The last id of the annotation evenkeel.dev/trigger for which a RunRequest exists."""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    placed: Placed | None = None
    version: str = ""
    """The resourceVersion it was read at."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a status tells people beside that; nothing is read back from it."""

    state: str
    schedule_text: str | None = None
    images: str | None = None
    upcoming: tuple[Instant, ...] = ()
    next_local: str | None = None
    active_count: int = 0


EMPTY = Memory()
