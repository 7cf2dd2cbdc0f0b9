"""What the scheduler wants done, as data. `app.py` turns each into what it is; tests read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evenkeel.balance import Limits, LoadMap, Plan
from evenkeel.core.messages import Ask
from evenkeel.model import (
    Attempt,
    Cause,
    Instant,
    JobRef,
    Request,
    RequestState,
    RunId,
    RunState,
    Schedule,
    Timing,
)
from evenkeel.reasons import DelayCause, EventReason, Reason, RequestReason, RunReason
from evenkeel.resource.names import KIND
from evenkeel.resource.record import Placed, RecentRun, ToldSpan
from evenkeel.when import DueTimes


@dataclass(frozen=True, slots=True)
class Prepare:
    """A run is due soon: start its orchestrator, render its body, warm its connection."""

    run: RunId
    attempt: int
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Launch:
    """The run's instant has come and nothing forbids it: create the Job."""

    run: RunId
    attempt: int
    schedule: Schedule
    announced: int = 0
    """The status of this revision, which announces the create, must be stored before it: the Job
    may vanish by its ttl, and the name that locks with it. 0: nothing announces it."""
    latest: Instant | None = None
    """Later than this it is not to be created: its startingDeadlineSeconds."""
    request: Request | None = None
    """Of a requested run: what its Job gets from it, and whose status announces it."""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A prepared run is not wanted any more: its schedule changed or went, or it was cancelled."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """Delete with a UID precondition, in the background; gone is as good as deleted."""

    ref: JobRef
    why: str


@dataclass(frozen=True, slots=True)
class FindJob:
    """Find out whether a Job is still there: a list that may be older than it does not tell."""

    run: RunId
    attempt: int
    ref: JobRef
    disowned: bool = False
    """It was stored without its owner reference: whose it is, only its uid says."""


@dataclass(frozen=True, slots=True)
class LookAtPods:
    """Find out whether a Pod of a Job has started, why not, and why one failed."""

    run: RunId
    attempt: int
    ref: JobRef
    of_failure: bool = False
    """The Job has failed: of its Pods one page is enough, and none may be left."""
    within_s: float | None = None
    """Later than this nobody needs the answer. None: it is needed, however long that takes."""


@dataclass(frozen=True, slots=True)
class CheckTemplate:
    """Prove a template by a dry run."""

    schedule: Schedule


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """This schedule's status has changed; take the document when there is time to send it."""

    uid: str
    awaited: bool = False
    """The stored status speaks of no spec or of an older one: somebody who has just applied this
    one waits for what becomes of it."""


@dataclass(frozen=True, slots=True)
class Forget:
    """This schedule is gone: whatever is kept or tried again for it has no reason any more."""

    uid: str


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The status of a request has changed; take the document when there is time to send it."""

    uid: str
    awaited: bool = False
    """As of `WriteStatus`."""


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """This request is gone: whatever is kept or tried again for it has no reason any more."""

    uid: str


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """The ttl of a request has passed: delete the object, with a UID precondition."""

    uid: str
    ns: str
    name: str


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read a request again, with its status: what was known of it was dropped. The answer is a
    `RequestSeen` or a `RequestGone`."""

    uid: str
    ns: str
    name: str


@dataclass(frozen=True, slots=True)
class MakeRequest:
    """The annotation evenkeel.dev/trigger asks for one run: create the RunRequest of this name. One
    that is there already is as good. The answer is a `TriggerMade`."""

    uid: str
    """The schedule's."""
    ns: str
    schedule: str
    name: str
    trigger: str


@dataclass(frozen=True, slots=True)
class ListDues:
    """List the due times of a range, away from the loop: ten thousand take some milliseconds, and a
    start lists those of all unfinished requests. The answer is a `DuesListed`."""

    request: str
    """The request's uid."""
    dues: DueTimes
    first: Instant
    end: Instant
    limit: int
    """No more are listed."""


@dataclass(frozen=True, slots=True)
class AskRuns:
    """Ask the ledger which runs of a schedule there were in [first, end); the answer is a
    `RunsTold`. It includes what waits to be written."""

    request: str
    """The request's uid."""
    uid: str
    key: str
    first: Instant
    end: Instant


@dataclass(frozen=True, slots=True)
class RequestTold:
    """The stored status of a request tells of all that was emitted for its runs up to
    `revision`."""

    request: str
    """The request's uid."""
    uid: str
    key: str
    """The schedule's."""
    revision: int


@dataclass(frozen=True, slots=True)
class RequestKnown:
    """A request whose runs were taken over from an earlier process, or that had ended, as its
    stored status tells of them: the ledger may lack the last of it."""

    request: str
    uid: str
    key: str
    name: str
    kind: str
    alive: tuple[RunId, ...] = ()
    recent: tuple[RecentRun, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestClosed:
    """No status of this request will tell of anything any more: it was deleted."""

    request: str
    uid: str
    key: str


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """A request has come to its end: for metrics and logs."""

    ns: str
    name: str
    schedule: str
    state: RequestState
    reason: RequestReason
    total: int
    counts: Mapping[str, int]
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ConfirmTime:
    """Ask the API server what time it is: ours jumped."""


@dataclass(frozen=True, slots=True)
class BuildIndex:
    """Build an index away from the loop: there are too many schedules to do it in a step."""

    generation: int
    origin: Instant
    end: Instant
    uids: tuple[str, ...]
    dues: tuple[DueTimes, ...]


@dataclass(frozen=True, slots=True)
class ImproveSet:
    """Search, away from the loop, better phases for schedules that arrived together."""

    load: LoadMap
    """A copy: the scheduler goes on with its own."""
    latest: Mapping[str, Instant]
    """By key, the latest first run."""
    uids: Mapping[str, str]
    """By key: who comes back under a name is another schedule."""
    now: Instant
    pre_schedule_s: float


@dataclass(frozen=True, slots=True)
class PlanRebalance:
    """Search for a rebalance away from the loop."""

    ask: Ask
    execute: bool
    load: LoadMap
    """A copy: the scheduler goes on with its own."""
    now: Instant
    limits: Limits


@dataclass(frozen=True, slots=True)
class ConfirmRebalance:
    """Prove away from the loop that a plan still fits."""

    ask: Ask
    plan: Plan
    load: LoadMap
    """A copy, as for the search."""
    now: Instant
    limits: Limits


@dataclass(frozen=True, slots=True)
class ScheduleKnown:
    """A schedule at its first sight, as its stored status tells of it: what the ledger lacks of the
    time up to `mark` is filled in from here."""

    uid: str
    key: str
    after: Instant
    """Its due times count from here on (exclusive), unless the ledger knows it from earlier."""
    mark: Instant
    """Every due time up to here is told of by the stored status."""
    timing: Timing | None
    """In force, with its phase; None: it has none yet."""
    recent: tuple[RecentRun, ...] = ()
    """The runs that the status tells of one by one, and those whose Jobs are still there."""
    spans: tuple[ToldSpan, ...] = ()
    alive: tuple[RunId, ...] = ()
    """Runs up to the mark that have not ended, or whose end follows."""
    timing_since: Instant = 0
    """The timing makes the due times from here on (exclusive)."""
    open_as: tuple[Reason, ...] = ()
    """Why no due time becomes a run now: the schedule is suspended, paused or rejected."""
    told: bool = True
    """False: no stored status tells of a timing, so nothing was to be expected of it yet."""


@dataclass(frozen=True, slots=True)
class TimingBegan:
    """From `after` on (exclusive) this timing makes the due times."""

    uid: str
    key: str
    after: Instant
    timing: Timing | None
    revision: int


@dataclass(frozen=True, slots=True)
class ToldBy:
    """The request of a run."""

    request: str
    """Its uid."""
    name: str
    requested_by: str = ""


@dataclass(frozen=True, slots=True)
class RunWaits:
    """A run waits: queued or held (pending), for its next attempt (retrying), or for its due time
    (scheduled: the single run of a request for later)."""

    run: RunId
    key: str
    state: RunState
    reason: RunReason | None
    """None: it is scheduled."""
    attempt: int
    taken_at: float | None
    revision: int
    due_at: float | None = None
    """Of a run that is retrying or scheduled: when its next attempt begins."""
    priority: int = 0
    attempts: tuple[Attempt, ...] = ()
    told_by: ToldBy | None = None
    """Of a requested run: the request, whose status has this `revision`. None: the schedule."""


@dataclass(frozen=True, slots=True)
class RunBegan:
    """The Job of a run's attempt exists. `sent_at`: when its create was sent; None: it was there
    already, or the watch told of it before the create was answered. That answer tells it again."""

    run: RunId
    key: str
    attempt: int
    job: str
    sent_at: float | None = None
    taken_at: float | None = None
    generation: int = 0
    template_hash: str = ""
    attempts: tuple[Attempt, ...] = ()
    """All that are known, this one included."""
    revision: int = 0
    told_by: ToldBy | None = None
    """Of a requested run: the request, whose status has this `revision`. None: the schedule."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has come to its end."""

    run: RunId
    key: str
    state: RunState
    reason: RunReason | None
    attempt: int
    job: str
    started: Instant | None
    finished: Instant
    message: str = ""
    cause: Cause | None = None
    taken_at: float | None = None
    generation: int = 0
    template_hash: str = ""
    attempts: tuple[Attempt, ...] = ()
    revision: int = 0
    told_by: ToldBy | None = None
    """Of a requested run: the request, whose status has this `revision`. None: the schedule."""


@dataclass(frozen=True, slots=True)
class SpanEnded:
    """So many due times from `first` to `last`, none of which was a run, have one verdict."""

    uid: str
    key: str
    first: Instant
    last: Instant
    count: int
    state: RunState
    reason: Reason
    revision: int = 0


@dataclass(frozen=True, slots=True)
class SpanOpened:
    """From `first` on no due time of a schedule becomes a run: it is suspended, paused or
    rejected."""

    uid: str
    key: str
    first: Instant
    reason: Reason
    revision: int


@dataclass(frozen=True, slots=True)
class SpanClosed:
    """What was open with this reason has ended; due times up to `last` were in it."""

    uid: str
    key: str
    last: Instant
    reason: Reason
    revision: int


@dataclass(frozen=True, slots=True)
class StatusTold:
    """The stored status tells of all that was emitted for this schedule up to `revision`."""

    uid: str
    key: str
    revision: int
    mark: Instant
    """Every due time up to here has been told of as a run or within a span."""


@dataclass(frozen=True, slots=True)
class ScheduleEnded:
    """A schedule is gone. Nothing due after `until` is expected of it."""

    uid: str
    key: str
    at: Instant
    until: Instant
    placed: Placed | None = None


@dataclass(frozen=True, slots=True)
class AskLedger:
    """Ask the ledger which of these runs it knows; the answer is a `LedgerTold`."""

    uid: str
    runs: tuple[RunId, ...]


@dataclass(frozen=True, slots=True)
class ReadSchedule:
    """Read a closed schedule again, with its Jobs: its handler raised, and may not any more."""

    uid: str
    ns: str
    name: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A number for a histogram or a counter."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class RunDelayed:
    """The first Job of a run was created so long after its due time, which may be no time at all.
    Retries and requested runs have no delay: nothing says when they should have come."""

    delay_s: float
    cause: DelayCause


@dataclass(frozen=True, slots=True)
class KubeEvent:
    """A Kubernetes Event on a ScheduledJob or a RunRequest, for what its owner must know."""

    uid: str
    ns: str
    name: str
    warning: bool
    reason: EventReason
    message: str
    kind: str = KIND
    """Of the object that it is on."""


@dataclass(frozen=True, slots=True)
class Log:
    """One line: an event's name and its fields; never templates, environment or tokens."""

    level: str
    event: str
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked for."""

    ask: Ask
    value: Any


@dataclass(frozen=True, slots=True)
class Stopped:
    """Every run that was not yet begun has been put back; the shell may end."""


Effect = (
    Prepare
    | Launch
    | Withdraw
    | DeleteJob
    | FindJob
    | LookAtPods
    | CheckTemplate
    | WriteStatus
    | Forget
    | WriteRequest
    | ForgetRequest
    | DeleteRequest
    | ReadRequest
    | MakeRequest
    | ListDues
    | AskRuns
    | RequestTold
    | RequestKnown
    | RequestClosed
    | RequestEnded
    | ConfirmTime
    | BuildIndex
    | ImproveSet
    | PlanRebalance
    | ConfirmRebalance
    | ScheduleKnown
    | TimingBegan
    | RunWaits
    | RunBegan
    | RunEnded
    | SpanEnded
    | SpanOpened
    | SpanClosed
    | StatusTold
    | ScheduleEnded
    | AskLedger
    | ReadSchedule
    | Observed
    | RunDelayed
    | KubeEvent
    | Log
    | Answer
    | Stopped
)
