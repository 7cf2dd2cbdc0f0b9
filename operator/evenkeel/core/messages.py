"""What the scheduler is told and asked. Everybody who wants something of its state sends one of
these through the inbox; what comes back is an effect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.balance import Move, Plan, Stale
from evenkeel.core.index import RunIndex
from evenkeel.model import (
    Cause,
    Instant,
    JobFact,
    JobRef,
    Rejection,
    Request,
    RunId,
    RunState,
    Schedule,
    Verdict,
)
from evenkeel.reasons import ConditionReason, Reason
from evenkeel.resource.record import Memory, Placed
from evenkeel.resource.request_record import RequestMemory

Ask = object
"""Whoever asks recognises the answer by it; the scheduler only hands it back."""


@dataclass(frozen=True, slots=True)
class ScheduleSeen:
    """A schedule was added or modified. `memory` is its status: believed at first sight only."""

    schedule: Schedule | Rejection
    memory: Memory


@dataclass(frozen=True, slots=True)
class ScheduleGone:
    """A schedule was deleted."""

    uid: str


@dataclass(frozen=True, slots=True)
class ResourceRemoved:
    """The CRD was deleted, and with it all schedules."""


@dataclass(frozen=True, slots=True)
class ScheduleRead:
    """A closed schedule as the API server has it now, with its Jobs. `seen` is None: it is gone."""

    uid: str
    seen: ScheduleSeen | None
    facts: tuple[JobFact, ...]


@dataclass(frozen=True, slots=True)
class SchedulesListed:
    """All there are by an own LIST: what is not in it was deleted while nobody watched."""

    uids: frozenset[str]
    listed_m: float
    """Before the LIST was sent, by the monotonic clock: a schedule first seen since need not be in
    it."""
    unlisted: frozenset[str] = frozenset()
    """Namespaces that could not be listed: nothing is known of theirs."""


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A request was added or modified. `memory` is its status: believed at first sight only."""

    request: Request | Rejection
    memory: RequestMemory
    read: bool = False
    """It was asked for by a `ReadRequest` effect."""


@dataclass(frozen=True, slots=True)
class RequestGone:
    """A request was deleted."""

    uid: str


@dataclass(frozen=True, slots=True)
class RequestsListed:
    """All requests there are by an own LIST, as `SchedulesListed`."""

    uids: frozenset[str]
    listed_m: float
    unlisted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RequestWritten:
    """The status document of this revision is stored."""

    uid: str
    """The request's."""
    revision: int


@dataclass(frozen=True, slots=True)
class DuesListed:
    """The due times of a range that a `ListDues` effect asked for, ascending."""

    request: str
    dues: tuple[Instant, ...]


@dataclass(frozen=True, slots=True)
class PastRun:
    """What the ledger knows of one run."""

    due: Instant
    kind: str
    state: RunState
    had_job: bool


@dataclass(frozen=True, slots=True)
class RunsTold:
    """The runs that an `AskRuns` effect asked for. A due time later than `since` that none of
    them names, and that lies in no span of `unknown`, has not run."""

    request: str
    runs: tuple[PastRun, ...] = ()
    since: Instant = 0
    """What was due up to here is not known. It is the last instant of the asked time where nothing
    of it is known."""
    unknown: tuple[tuple[Instant, Instant], ...] = ()
    """Spans [first, end) of which nobody knows what became of them (unrecorded). They may overlap,
    and runs in them that are named are known."""
    has_ledger: bool = True
    """False: there is none, and never will be while this process runs."""
    away: bool = False
    """The ledger did not answer; the same question may get an answer later."""


@dataclass(frozen=True, slots=True)
class TriggerMade:
    """What became of a `MakeRequest`."""

    uid: str
    """The schedule's."""
    trigger: str
    made: bool
    """The request exists. False: the API server refused it, for `sentence`."""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class SchedulesChanged:
    """Rebuild the index now."""


@dataclass(frozen=True, slots=True)
class IndexBuilt:
    """The index that a `BuildIndex` effect asked for."""

    index: RunIndex


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job of ours was added or modified."""

    fact: JobFact


@dataclass(frozen=True, slots=True)
class JobGone:
    """A Job of ours was deleted; `fact` is the last that was known of it."""

    fact: JobFact
    proven: bool = False
    """Asked for by name, it was not there. A watch says the same of a Job that lost its labels."""


@dataclass(frozen=True, slots=True)
class JobsListed:
    """All our Jobs by one LIST: a run whose Job is not in it has lost it."""

    facts: tuple[JobFact, ...]
    listed_at: Instant
    """Before the LIST was sent: a Job created since need not be in it."""
    ns: str = ""
    """The namespace that was listed; empty: all."""


@dataclass(frozen=True, slots=True)
class JobsSilent:
    """The watch of Jobs has been told nothing for minutes, or is told something again."""

    ns: str
    """The namespace that is watched; empty: all."""
    silent: bool


@dataclass(frozen=True, slots=True)
class CreateResult:
    """An orchestrator is done with one attempt: what its create proved."""

    run: RunId
    attempt: int
    verdict: Verdict
    ref: JobRef
    sent_at: float
    message: str = ""
    reason: ConditionReason | None = None
    found: JobFact | None = None
    """An adopted Job, as it was read: it may already have an end."""
    marks_lost: tuple[str, ...] = ()
    """What the Job was stored without, by which it would be known as this schedule's."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The create of this attempt got no answer; whether its Job exists is being asked by name."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class PutBack:
    """An orchestrator let go of a run that it had not begun to create (shutdown)."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class PodsLookedAt:
    """What the Pods of a Job tell: whether one of them has started, and if not, why."""

    run: RunId
    attempt: int
    started: bool
    reason: Reason | None
    """Why none has started. None: one has, or the Pods may not be read."""
    message: str
    cause: Cause | None = None
    """How the container ended that failed first."""

    @property
    def unreadable(self) -> bool:
        """The Pods may not be read, so nothing is known and nothing is ended."""
        return self.reason is None and not self.started


@dataclass(frozen=True, slots=True)
class TemplateChecked:
    """What a dry run said of a template: True, False, or None when it could not be asked."""

    uid: str
    template_hash: str
    accepted: bool | None
    reason: ConditionReason
    message: str


@dataclass(frozen=True, slots=True)
class StatusWritten:
    """The status document of this revision is stored."""

    uid: str
    revision: int


@dataclass(frozen=True, slots=True)
class TimeConfirmed:
    """The API server's own Date, asked for after a jump of our clock."""

    server_now: float


@dataclass(frozen=True, slots=True)
class LedgerTold:
    """What the ledger knows of runs that an `AskLedger` effect named."""

    uid: str
    states: Mapping[RunId, RunState]
    known: bool = True
    """False: the ledger did not answer in time, or there is none."""


@dataclass(frozen=True, slots=True)
class PhasesRead:
    """The phases of schedules that were deleted within the last day, as the ledger keeps them."""

    phases: tuple[tuple[str, Placed, Instant], ...]
    """Key, phase, and when the schedule was deleted."""


@dataclass(frozen=True, slots=True)
class CancelRun:
    """End this run; the answer is its state, or None when there is no such run."""

    ask: Ask
    run: RunId


@dataclass(frozen=True, slots=True)
class GetRun:
    """The answer is the run's state, or None."""

    ask: Ask
    run: RunId


@dataclass(frozen=True, slots=True)
class GetActiveRuns:
    """The answer is every run that holds a place."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class GetSchedule:
    """The answer is the status document of a schedule, or None."""

    ask: Ask
    key: str


@dataclass(frozen=True, slots=True)
class GetDistribution:
    """The answer is the load of the next 24 hours."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class PreviewRebalance:
    """The answer is a plan; nothing is moved."""

    ask: Ask


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Carry out a plan, or without an id one made now; the answer is what was moved, or Stale."""

    ask: Ask
    plan_id: str | None = None


@dataclass(frozen=True, slots=True)
class SetImproved:
    """The moves that an `ImproveSet` effect found."""

    moves: tuple[tuple[str, Move], ...]
    """Each with the uid of its schedule."""
    job_count: int
    """How many schedules the set had."""


@dataclass(frozen=True, slots=True)
class RebalancePlanned:
    """The plan that a `PlanRebalance` effect asked for."""

    ask: Ask
    plan: Plan
    execute: bool


@dataclass(frozen=True, slots=True)
class RebalanceConfirmed:
    """What of a plan a `ConfirmRebalance` effect found to fit still."""

    ask: Ask
    found: Plan | Stale


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Take no more due runs; put back those not yet begun."""


Message = (
    ScheduleSeen
    | ScheduleGone
    | ResourceRemoved
    | ScheduleRead
    | SchedulesListed
    | RequestSeen
    | RequestGone
    | RequestsListed
    | RequestWritten
    | DuesListed
    | RunsTold
    | TriggerMade
    | SchedulesChanged
    | IndexBuilt
    | JobSeen
    | JobGone
    | JobsListed
    | JobsSilent
    | CreateResult
    | PutBack
    | Unanswered
    | PodsLookedAt
    | TemplateChecked
    | StatusWritten
    | TimeConfirmed
    | LedgerTold
    | PhasesRead
    | CancelRun
    | GetRun
    | GetActiveRuns
    | GetSchedule
    | GetDistribution
    | PreviewRebalance
    | Rebalance
    | SetImproved
    | RebalancePlanned
    | RebalanceConfirmed
    | Shutdown
)
Document = dict[str, Any]
"""A status as the API takes it."""
