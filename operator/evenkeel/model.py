"""The nouns of the product: frozen, slotted, without behaviour beyond their own identity.

Everybody imports this module; it imports nothing of ours. Times are whole seconds since the Unix
epoch in UTC (`Instant`): due times have no fractions, so equality is safe.
"""

import enum
from dataclasses import dataclass, field

Instant = int
"""Whole seconds since the Unix epoch, UTC."""

DAY_S = 86_400

SLOT_S = 900
"""A slot of load: 15 minutes."""


# --- when -------------------------------------------------------------------------------------


class Gap(enum.StrEnum):
    """What becomes of a fixed time that the clock jumps over in spring."""

    SHIFT = "Shift"
    SKIP = "Skip"


class Fold(enum.StrEnum):
    """What becomes of a fixed time that the clock shows twice in autumn."""

    FIRST = "First"
    BOTH = "Both"


class DayMatch(enum.StrEnum):
    """How day of month and day of week join when both are restricted."""

    OR = "Or"
    AND = "And"


@dataclass(frozen=True, slots=True)
class Cron:
    """`spec.schedule`, as written."""

    text: str
    day_match: DayMatch = DayMatch.OR


@dataclass(frozen=True, slots=True)
class Hourly:
    """Once an hour at a minute of the zone's clock."""

    minute: int


@dataclass(frozen=True, slots=True)
class Interval:
    """anchor + offset + k * every, k = 1, 2, ...; an offset of None waits to be placed."""

    every_s: int
    offset_s: int | None = None
    anchor: Instant | None = None


@dataclass(frozen=True, slots=True)
class At:
    """One run."""

    instant: Instant


Rule = Cron | Hourly | Interval | At


@dataclass(frozen=True, slots=True)
class Timing:
    """All that decides when a schedule is due; nothing else does, so an image bump changes none."""

    rule: Rule
    zone: str = "UTC"
    gap: Gap = Gap.SHIFT
    fold: Fold = Fold.FIRST
    start: Instant | None = None
    end: Instant | None = None


# --- the schedule -----------------------------------------------------------------------------


class Concurrency(enum.StrEnum):
    """What a due time does when a run of the same schedule is still there."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"
    QUEUE = "Queue"


class MissedRuns(enum.StrEnum):
    """What becomes of due times that nobody launched in time."""

    LATEST = "Latest"
    SKIP = "Skip"
    ALL = "All"


@dataclass(frozen=True, slots=True)
class Window:
    """A time of day, seconds after local midnight; it wraps when end < start."""

    start_s: int
    end_s: int


@dataclass(frozen=True, slots=True)
class PlacementWish:
    """`spec.placement`: what the user asks of the balance."""

    weight: int = 1
    window: Window | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """`spec.retry`: new attempts of a failed run."""

    limit: int = 0
    delay_s: int = 10
    factor: int = 2
    max_delay_s: int = 3600


@dataclass(frozen=True, slots=True)
class Schedule:
    """One ScheduledJob as the operator understands it.

    The Job template stays bytes: ten thousand parsed trees cost the garbage collector 77 ms a
    pass, ten thousand byte strings nothing.
    """

    uid: str
    ns: str
    name: str
    created: Instant
    generation: int
    timing: Timing
    template: bytes
    template_hash: str
    suspend: bool = False
    starting_deadline_s: int | None = None
    missed_runs: MissedRuns = MissedRuns.LATEST
    catch_up_limit: int = 100
    concurrency: Concurrency = Concurrency.ALLOW
    max_queued: int = 20
    priority: int = 0
    placement: PlacementWish = field(default_factory=PlacementWish)
    retry: Retry = field(default_factory=Retry)
    pause_after_failures: int | None = None
    pending_deadline_s: int | None = None
    keep_succeeded: int = 3
    keep_failed: int = 1
    ttl_s: int | None = None
    """ttlSecondsAfterFinished of the template: a short one opens the name lock early."""

    @property
    def key(self) -> str:
        """`namespace/name`, as people and the API name it."""
        return f"{self.ns}/{self.name}"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A ScheduledJob that cannot be scheduled, with a sentence for its owner."""

    uid: str
    ns: str
    name: str
    generation: int
    field: str
    sentence: str
    reason: str = "Invalid"


# --- the run ----------------------------------------------------------------------------------

BY_SCHEDULE = "s"
"""`RunId.kind` of a run that its schedule asked for."""


@dataclass(frozen=True, slots=True, order=True)
class RunId:
    """Which run this is, for ever: never random, never counted, so a retry is no second run."""

    uid: str
    due: Instant
    kind: str = BY_SCHEDULE

    def __str__(self) -> str:
        return f"{self.uid}.{self.kind}.{self.due}"


class RunState(enum.StrEnum):
    """Where a run stands: scheduled -> pending -> running -> an end."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    MISSED = "missed"
    CANCELLED = "cancelled"
    LOST = "lost"


ENDED = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.SKIPPED,
        RunState.MISSED,
        RunState.CANCELLED,
        RunState.LOST,
    }
)

NEXT_STATES: dict[RunState, frozenset[RunState]] = {
    RunState.SCHEDULED: frozenset(
        {RunState.PENDING, RunState.SKIPPED, RunState.MISSED, RunState.CANCELLED}
    ),
    RunState.PENDING: frozenset(
        {
            RunState.SCHEDULED,
            RunState.RUNNING,
            RunState.FAILED,
            RunState.SKIPPED,
            RunState.MISSED,
            RunState.CANCELLED,
            RunState.LOST,
        }
    ),
    RunState.RUNNING: frozenset(
        {
            RunState.SUCCEEDED,
            RunState.FAILED,
            RunState.RETRYING,
            RunState.CANCELLED,
            RunState.LOST,
        }
    ),
    RunState.RETRYING: frozenset({RunState.PENDING, RunState.FAILED, RunState.CANCELLED}),
}
"""Every legal step of a run; an end has no next."""


@dataclass(frozen=True, slots=True)
class JobRef:
    """A Job that exists or is about to."""

    ns: str
    name: str
    uid: str = ""


class JobPhase(enum.StrEnum):
    """What a Job's status says, in our words."""

    WAITING = "waiting"
    """No Pod of it has started yet."""
    SUSPENDED = "suspended"
    """Somebody else holds it back (a queue such as Kueue): active, but its clocks stand still."""
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JobFact:
    """What the API server says of one of our Jobs."""

    ref: JobRef
    run: RunId
    attempt: int
    phase: JobPhase
    reason: str = ""
    message: str = ""
    started: Instant | None = None
    finished: Instant | None = None
    deleting: bool = False


class Verdict(enum.StrEnum):
    """What one create call proved. UNKNOWN is an answer: the Job may exist."""

    CREATED = "created"
    ADOPTED = "adopted"
    """409, and the Job there is ours: same owner uid, same due time."""
    TAKEN = "taken"
    """409, and the Job there is somebody else's."""
    REFUSED = "refused"
    """Invalid or denied by admission: trying again cannot heal it."""
    HELD = "held"
    """429, quota, RBAC, a terminating namespace: nothing was written, it may heal."""
    UNKNOWN = "unknown"
    """Time-out, reset, 5xx: read by name before anything else. If that finds nothing of a Job that
    was there, its outcome stays unknown for ever."""
