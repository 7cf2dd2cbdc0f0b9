"""The types that all packages share: timing, schedule, run, Job, verdict.

Objects are frozen and do nothing by themselves. All other modules may import this one, which
imports none of them. Times are whole seconds since 1970 in UTC (`Instant`), so due times can be
compared for equality.
"""

import base64
import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from evenkeel.reasons import ConditionReason

Instant = int
"""Whole seconds since 1970-01-01T00:00:00Z."""

DAY_S = 86_400

SLOT_S = 900
"""The length of a slot: 15 minutes. Load is counted by slot."""


# --- when -------------------------------------------------------------------------------------


class Gap(enum.StrEnum):
    """What becomes of a fixed time that the clock jumps over, as in spring."""

    SHIFT = "Shift"
    SKIP = "Skip"


class Fold(enum.StrEnum):
    """What becomes of a fixed time that the clock shows twice, as in autumn."""

    FIRST = "First"
    BOTH = "Both"


class DayMatch(enum.StrEnum):
    """Whether one of day of month and day of week must match, or both, when both are set."""

    OR = "Or"
    AND = "And"


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron text, as the user wrote it in `spec.schedule`."""

    text: str
    day_match: DayMatch = DayMatch.OR


@dataclass(frozen=True, slots=True)
class Hourly:
    """Once an hour at a minute of the zone's clock."""

    minute: int


@dataclass(frozen=True, slots=True)
class Interval:
    """Due at anchor + offset + k * every, k = 1, 2, ... Offset None: the operator must place it."""

    every_s: int
    offset_s: int | None = None
    anchor: Instant | None = None


@dataclass(frozen=True, slots=True)
class At:
    """One run at this instant."""

    instant: Instant


Rule = Cron | Hourly | Interval | At


@dataclass(frozen=True, slots=True)
class Timing:
    """All fields that decide when a schedule is due. A change of any other field changes no due
    time."""

    rule: Rule
    zone: str = "UTC"
    gap: Gap = Gap.SHIFT
    fold: Fold = Fold.FIRST
    start: Instant | None = None
    end: Instant | None = None


# --- the schedule -----------------------------------------------------------------------------


class Concurrency(enum.StrEnum):
    """What a due time does when another run of the schedule has not ended."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"
    QUEUE = "Queue"


class MissedRuns(enum.StrEnum):
    """What becomes of due times that were not launched in time."""

    LATEST = "Latest"
    SKIP = "Skip"
    ALL = "All"


@dataclass(frozen=True, slots=True)
class Window:
    """A time of day in seconds after local midnight. With end < start it ends on the next day."""

    start_s: int
    end_s: int


Weigh = Literal["Runs", "Requests"]
"""What a run weighs without a weight of its own: 1, or what its Pods request."""


@dataclass(frozen=True, slots=True)
class PlacementWish:
    """`spec.placement`: what the user asks of the placement."""

    weight: int | None = None
    """None: what the setting placement.weigh says."""
    window: Window | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """`spec.retry`: how often, and after which delays, a failed Job is followed by another
    attempt."""

    limit: int = 0
    delay_s: int = 10
    factor: int = 2
    max_delay_s: int = 3600


@dataclass(frozen=True, slots=True)
class Parameter:
    """`spec.parameters`: an environment variable that every container of a run gets."""

    name: str
    value: str
    choices: tuple[str, ...] = ()
    """What a request may give instead (`enum`). Empty: anything."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One ScheduledJob whose spec was accepted.

    The Job template is kept as bytes: 10,000 parsed templates would cost the garbage collector 77
    ms in each pass, and 10,000 byte strings cost it nothing.
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
    """ttlSecondsAfterFinished of the template. After it Kubernetes deletes the Job, and the Job's
    name no longer prevents a second create."""
    weight_by_requests: int = 1
    """What the CPU requests of the template weigh, in tenths of a core."""
    images: tuple[str, ...] = ()
    """The images of the template's containers, for people."""
    parameters: tuple[Parameter, ...] = ()
    """Their values are in `template` already: `render` replaces those that a request gives."""
    trigger: str = ""
    """The annotation evenkeel.dev/trigger: another id than the last one asks for one run."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A ScheduledJob or a RunRequest whose spec was not accepted, with a sentence for its owner."""

    uid: str
    ns: str
    name: str
    generation: int
    field: str
    sentence: str
    reason: ConditionReason = ConditionReason.INVALID

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"


# --- the run ----------------------------------------------------------------------------------

BY_SCHEDULE = "s"
"""The kind of a run that the timing made due."""


@dataclass(frozen=True, slots=True, order=True)
class RunId:
    """The identity of a run, which never changes. All attempts of a run share it."""

    uid: str
    due: Instant
    kind: str = BY_SCHEDULE

    def __str__(self) -> str:
        return f"{self.uid}.{self.kind}.{self.due}"


# --- the request ------------------------------------------------------------------------------


class Include(enum.StrEnum):
    """Which due times of a range a request runs."""

    NOT_SUCCEEDED = "NotSucceeded"
    """Those without a run that succeeded."""
    NOT_RUN = "NotRun"
    """Those without a run that had a Job."""
    ALL = "All"


class Order(enum.StrEnum):
    """In which order the due times of a range run."""

    OLDEST_FIRST = "OldestFirst"
    NEWEST_FIRST = "NewestFirst"


class Meeting(enum.StrEnum):
    """`spec.overlap`: what a requested run does where it meets another run of its schedule."""

    WAIT = "Wait"
    """It begins when the place is free. A scheduled run that meets it waits for it."""
    ALLOW = "Allow"
    """It runs beside others and holds no place."""
    POLICY = "Policy"
    """As a due time of the schedule would."""


@dataclass(frozen=True, slots=True)
class DueRange:
    """`spec.range`: the due times of a schedule in [first, end)."""

    first: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class Request:
    """One RunRequest whose spec was accepted as far as it can be read without its schedule."""

    uid: str
    ns: str
    name: str
    created: Instant
    generation: int
    schedule: str
    """The name of a ScheduledJob in the same namespace."""
    at: Instant | None = None
    """The due time of a single run. None: the request's creation, unless there is a range."""
    span: DueRange | None = None
    include: Include = Include.NOT_SUCCEEDED
    order: Order = Order.OLDEST_FIRST
    max_active: int = 1
    meeting: Meeting = Meeting.WAIT
    stop_after_failures: int = 3
    """So many failed runs in a row end a range; 0: never."""
    suspend: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    force: bool = False
    """Although the schedule is suspended or paused."""
    dry_run: bool = False
    ttl_s: int | None = None
    requested_by: str = ""
    """The annotation evenkeel.dev/requested-by: what somebody said of himself, proven by nobody."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"

    @property
    def schedule_key(self) -> str:
        """`namespace/name` of its schedule."""
        return f"{self.ns}/{self.schedule}"

    @property
    def due(self) -> Instant:
        """The due time of its single run."""
        return self.created if self.at is None else self.at


def kind_of_request(uid: str) -> str:
    """The kind of the runs of a request: `q0` and 30 bits of the hash of its uid."""
    digest = hashlib.sha256(uid.encode()).digest()
    return f"q0{base64.b32encode(digest).decode().lower()[:6]}"


class RequestState(enum.StrEnum):
    """How a request stands, in one word."""

    PENDING = "Pending"
    """None of its runs has begun."""
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REFUSED = "Refused"


class RunState(enum.StrEnum):
    """Where a run stands, as people see it. `core.schedule.run` lists the legal steps, `ENDED` the
    final states."""

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


STEPS: Mapping[RunState, frozenset[RunState]] = {
    RunState.SCHEDULED: frozenset(
        {RunState.PENDING, RunState.SKIPPED, RunState.MISSED, RunState.CANCELLED}
    ),
    RunState.PENDING: frozenset(RunState) - {RunState.PENDING, RunState.SUCCEEDED},
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
    **dict.fromkeys(ENDED, frozenset()),
}
"""Every legal step of a run as people see it."""


def reaches(state: RunState, to: RunState) -> bool:
    """Whether legal steps lead from one state to the other; every state reaches itself."""
    return to in _REACHED[state]


def _reached(state: RunState) -> frozenset[RunState]:
    found, ahead = {state}, [state]
    while ahead:
        for following in STEPS[ahead.pop()] - found:
            found.add(following)
            ahead.append(following)
    return frozenset(found)


_REACHED = {state: _reached(state) for state in RunState}


@dataclass(frozen=True, slots=True)
class JobRef:
    """A Job that exists, or is being created."""

    ns: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One Job of a run. What is not known is None or empty; a later write may add it."""

    number: int
    job: str = ""
    created: float | None = None
    """When its create was sent; None: the Job was there already."""
    started: Instant | None = None
    finished: Instant | None = None
    exit_code: int | None = None
    reason: str = ""


class ScheduleState(enum.StrEnum):
    """How a schedule stands, in one word: the first that applies."""

    PENDING = "Pending"
    REFUSED = "Refused"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    ENDED = "Ended"
    DEGRADED = "Degraded"
    RUNNING = "Running"
    SCHEDULED = "Scheduled"


class JobState(enum.StrEnum):
    """What the status of a Job says."""

    WAITING = "waiting"
    """No Pod of the Job has started yet."""
    SUSPENDED = "suspended"
    """The Job is suspended, by Kueue for example. It has not ended, and its deadlines do not
    run."""
    STARTED = "started"
    FAILING = "failing"
    """It has failed, and its Pods are being ended: only then is it FAILED."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JobFact:
    """One of our Jobs, as the API server described it."""

    ref: JobRef
    run: RunId
    attempt: int
    state: JobState
    reason: str = ""
    message: str = ""
    started: Instant | None = None
    finished: Instant | None = None
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a Job failed: how the container of it ended that failed first."""

    reason: str
    """Kubernetes' word: Error, OOMKilled, Evicted, ..."""
    container: str = ""
    """Empty: the Pod as a whole failed."""
    exit_code: int | None = None
    message: str = ""
    """What the container left as its last words, or Kubernetes says of the Pod: a tenant's text,
    which no log line may hold."""


class Verdict(enum.StrEnum):
    """What one create proved. UNKNOWN is a result too: the Job may exist."""

    CREATED = "created"
    ADOPTED = "adopted"
    """409, and the Job with this name belongs to the run: the schedule's uid owns it."""
    TAKEN = "taken"
    """409, and the Job with this name belongs to somebody else."""
    REFUSED = "refused"
    """The Job is invalid, or admission denied it: trying again cannot help."""
    HELD = "held"
    """429, quota, RBAC, a terminating namespace: nothing was written, and trying again may help."""
    UNKNOWN = "unknown"
    """Time-out, reset, 5xx: the Job may exist. The next thing is to read it by its name."""


class WriteOutcome(enum.StrEnum):
    """What became of one request that stores a status."""

    OK = "ok"
    CONFLICT = "conflict"
    """409: somebody else has written since."""
    THROTTLED = "throttled"
    """429: the API server has too much to do."""
    REFUSED = "refused"
    """Another 4xx: trying again may not help."""
    SERVER_ERROR = "server_error"
    NO_ANSWER = "no_answer"


class WatchRestart(enum.StrEnum):
    """Why a watch of Jobs was begun anew."""

    GONE = "gone"
    """The API server does not know the version any more from which the watch went on."""
    BROKEN = "broken"
    """The watch was cut, was refused or was silent."""
