"""A run that has not ended, and the table of its legal steps.

The scheduler works with a `Stage`, which says what happens next; people see the coarser `RunState`,
which `state_of` derives. A step that is not in the table is a defect of ours: `Run.move` raises.
"""

import enum
from dataclasses import dataclass, field

from evenkeel.model import (
    BY_SCHEDULE,
    Attempt,
    Cause,
    Instant,
    JobFact,
    JobRef,
    JobState,
    Meeting,
    RunId,
    RunState,
)
from evenkeel.reasons import DelayCause, Reason, RunReason


class IllegalStepError(AssertionError):
    """A run was to take a step that does not exist: a defect, never a user's mistake."""


class Stage(enum.Enum):
    """Where a run stands, and so what it waits for."""

    TAKEN = "taken"
    """Taken up; it waits for its instant, or for its turn in this step."""
    QUEUED = "queued"
    """It waits for a place, because another run of its schedule has it."""
    HELD = "held"
    """Its create was held back; it waits for its next try."""
    CREATING = "creating"
    """Its create was sent, or stands in a lane of the launcher."""
    ASKING = "asking"
    """Its create got no answer; the API server is asked by name whether its Job exists."""
    RUNNING = "running"
    """Its Job exists and has not ended."""
    RETRYING = "retrying"
    """Its Job failed; it waits for the delay before its next attempt."""


_ENDS_UNLAUNCHED = frozenset({RunState.SKIPPED, RunState.MISSED, RunState.CANCELLED})
_ENDS_OF_A_CREATE = _ENDS_UNLAUNCHED | {RunState.FAILED, RunState.LOST}

NEXT: dict[Stage, frozenset[Stage | RunState]] = {
    Stage.TAKEN: _ENDS_UNLAUNCHED | {Stage.QUEUED, Stage.HELD, Stage.CREATING},
    Stage.QUEUED: _ENDS_UNLAUNCHED | {Stage.TAKEN, Stage.HELD, Stage.CREATING, Stage.RUNNING},
    Stage.HELD: _ENDS_UNLAUNCHED | {Stage.CREATING, Stage.RUNNING},
    Stage.CREATING: _ENDS_OF_A_CREATE | {Stage.ASKING, Stage.HELD, Stage.RUNNING, Stage.TAKEN},
    Stage.ASKING: _ENDS_OF_A_CREATE | {Stage.HELD, Stage.RUNNING},
    Stage.RUNNING: frozenset(
        {
            Stage.RETRYING,
            RunState.SUCCEEDED,
            RunState.FAILED,
            RunState.CANCELLED,
            RunState.LOST,
        }
    ),
    Stage.RETRYING: frozenset({Stage.HELD, Stage.CREATING, RunState.FAILED, RunState.CANCELLED}),
}
"""Every legal step; an end has no next."""

_STATES = {
    Stage.TAKEN: RunState.SCHEDULED,
    Stage.RUNNING: RunState.RUNNING,
    Stage.RETRYING: RunState.RETRYING,
}


def state_of(stage: Stage) -> RunState:
    """The stage as people see it."""
    return _STATES.get(stage, RunState.PENDING)


@dataclass(slots=True)
class Run:
    """A run that is not at its end. Seconds named `..._m` are of the monotonic clock."""

    id: RunId
    taken_m: float
    """When it was taken up, or given another chance: its grace counts from here."""
    stage: Stage = Stage.TAKEN
    attempt: int = 1
    reason: RunReason | None = None
    """Why it waits."""
    message: str = ""
    late: bool = False
    """Taken up after its time (restart, stall): its lateness says nothing of our precision."""
    delayed_by: DelayCause = DelayCause.NONE
    """What first kept it from being created at its due time."""
    adopted: bool = False
    """The Job of this attempt was made before this process knew of the run: only the wall clock
    tells how long that Job has waited."""
    prepared: bool = False
    """The launcher holds a rendered body for it."""
    announced: int = 0
    """The revision of the status that announces its create; 0: none does."""
    announced_at: Instant | None = None
    """When it was announced, where that was not before its due time."""
    taken_at: float | None = None
    """When it was taken up, by the wall clock. None: an earlier process did so."""
    sent_at: float | None = None
    """When the create of this attempt was sent. None: it was not, or an earlier process did so."""
    begun: bool = False
    """The Job of this attempt exists, or did."""
    done: list[Attempt] = field(default_factory=list)
    """The attempts that have failed."""
    told: tuple[RunState, str, int] | None = None
    """What the ledger is told of it: state, reason, attempt. None: nothing yet."""
    shown: int = 0
    """The revision of the status that first says that its Job exists."""
    was_held: bool = False
    """A create of this attempt was held back."""
    unanswered_m: float | None = None
    """When a create of it got no answer, and its Job was not there: the create may arrive yet."""
    unanswered_at: Instant = 0
    """When that create was announced, or its due time."""
    unanswered_attempt: int = 0
    meeting: Meeting | None = None
    """Of a requested run: what it does where it meets another run of its schedule."""
    gave_up_place: bool = False
    """A requested run without a Job that cannot begin for now: it waits for a place again."""
    ref: JobRef | None = None
    job_state: JobState | None = None
    pending_since: Instant | None = None
    """When its Job began, if somebody looks whether a Pod of it starts in time."""
    pending_until_m: float = 0.0
    disowned: bool = False
    """Its Job was stored without its owner reference."""
    waiting_since_m: float | None = None
    """Since when its Job exists without a started Pod."""
    pod_started: bool = False
    """Its Pods tell so, and its Job does not yet."""
    stuck: str = ""
    """Why no Pod of its Job starts, where that was looked at."""
    asked: bool = False
    """Its Pods are being asked why its Job failed."""
    failed: JobFact | None = None
    """Its Job failed, and the cause is awaited."""
    cause: Cause | None = None
    deleting: bool = False
    """Somebody has deleted its Job, and the Job is still there."""
    started: Instant | None = None
    retry_m: float = 0.0
    """Its next try."""
    retry_at: Instant | None = None
    """The next try by the wall clock: for a restart only."""
    unjudged: JobFact | None = None
    """Its Job failed while nobody knew whether another attempt may follow."""
    failed_jobs: list[JobRef] = field(default_factory=list)
    """Jobs of earlier attempts: after a restart they prove which attempt comes next."""

    def move(self, to: Stage | RunState) -> None:
        """Take one step of the run's life; the stage of a run that ends stays as it was."""
        if to is self.stage:
            return
        if to not in NEXT[self.stage]:
            raise IllegalStepError(f"{self.id}: {self.stage} -> {to}")
        if isinstance(to, Stage):
            self.stage = to

    def delay(self, cause: DelayCause) -> None:
        """Something keeps it from being created; what did so first is told."""
        if self.delayed_by is DelayCause.NONE:
            self.delayed_by = cause

    def begin_attempt(self) -> None:
        """Forget what is true of the Job of the attempt before."""
        self.was_held = self.deleting = self.adopted = self.pod_started = self.asked = False
        self.disowned = self.begun = False
        self.sent_at = None
        self.started = self.job_state = self.cause = self.failed = None
        # The next Job may begin in the same second.
        self.pending_since = self.waiting_since_m = None
        self.stuck = ""

    @property
    def state(self) -> RunState:
        """As people see it."""
        return state_of(self.stage)

    @property
    def by_schedule(self) -> bool:
        """Its schedule's timing asked for it, and nobody else: only such runs move the mark."""
        return self.id.kind == BY_SCHEDULE

    @property
    def creating(self) -> bool:
        """A create of it may be on its way."""
        return self.stage in (Stage.CREATING, Stage.ASKING)

    @property
    def waits(self) -> bool:
        """For its turn, for what holds it back to heal, or for its next attempt."""
        return self.stage in (Stage.QUEUED, Stage.HELD, Stage.RETRYING)

    @property
    def holds_place(self) -> bool:
        """It makes others wait, if runs of its schedule wait for one another."""
        return self.stage not in (Stage.TAKEN, Stage.QUEUED) and not self.gave_up_place

    @property
    def has_job(self) -> bool:
        """Its Job exists."""
        return self.stage is Stage.RUNNING

    @property
    def why_waiting(self) -> RunReason:
        """What `status.internal.waiting` says of it. A restart decides by it."""
        match self.stage:
            case Stage.QUEUED:
                return Reason.QUEUED
            case Stage.RETRYING:
                return Reason.RETRYING
            case Stage.HELD:
                return self.reason or Reason.HELD
            case Stage.TAKEN if not self.announced:
                return Reason.TAKEN_UP
            case _:
                return Reason.LAUNCHING
