"""One schedule as the scheduler holds it: what it is, how far it got, which of its runs are alive.

Only the handlers of this package change it, between two steps nobody does. The stage of a run
changes through `Run.move` alone. Seconds named `..._m` are of the monotonic clock.
"""

import enum
from collections import deque
from dataclasses import dataclass, field

from evenkeel.core.schedule.progress import Backoff, Storing
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.model import (
    ENDED,
    Concurrency,
    Instant,
    JobFact,
    JobRef,
    Meeting,
    Rejection,
    Request,
    Retry,
    RunId,
    Schedule,
    Timing,
)
from evenkeel.reasons import ConditionReason, Reason, RunReason
from evenkeel.resource.record import (
    WAITING_COUNT,
    Condition,
    Memory,
    Pause,
    Placed,
    Record,
    WaitingRun,
)
from evenkeel.when import DueTimes

CLOCK_MARGIN_S = 5.0
"""By so much the clock that ends Jobs by their ttl may be ahead of ours."""


@dataclass(slots=True)
class FinishedJob:
    """A Job that only history keeps. Deleted when `revision` of a status is stored."""

    finished: Instant
    run: RunId
    ref: JobRef
    succeeded: bool
    storing: Storing
    """Of the status that tells how its run ended."""
    revision: int
    keep_until_m: float = 0.0
    """Until then a create that was given up may still arrive, and only this Job's name stops it."""


class Trouble(enum.Enum):
    """What may be wrong with a schedule for the moment, the gravest first."""

    CREATE = "create"
    """The last create was refused or held back."""
    START = "start"
    """A Job exists, and no Pod of it starts."""
    PODS = "pods"
    """Pods may not be listed."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A Job that is not wanted, should there ever be one."""

    reason: RunReason
    late: bool = False
    """A create that got no answer may bring it for a while, whatever others have brought."""
    storing: Storing | None = None
    revision: int = 0
    """The Job is deleted as soon as this revision of that status, which tells the end, is
    stored. None: at once."""


@dataclass(frozen=True, slots=True)
class ToDelete:
    """A Job that is deleted when `revision` of a status is stored."""

    storing: Storing
    revision: int
    ref: JobRef
    why: str

    @property
    def is_due(self) -> bool:
        """That revision is stored."""
        return self.revision <= self.storing.written


@dataclass(frozen=True, slots=True)
class Past:
    """An instant that was over before it was asked for."""

    instant: Instant
    missed_unless_known: bool
    """It was asked for just now. Otherwise an earlier process has given it its verdict, unless that
    process ended in between: only a ledger that has no row of it tells so."""


@dataclass(slots=True)
class Entry:
    """A schedule, its progress and its living runs."""

    uid: str
    ns: str
    name: str
    schedule: Schedule | None = None
    rejection: Rejection | None = None
    retry: Retry | None = None
    """As accepted last: a mistake in an edit must not take their attempts from runs under way.
    None: rejected ever since this process knows of it."""
    pause_after: int | None = None
    """pauseAfterFailures, as accepted last as well."""
    generation: int = 0
    seen_m: float = 0.0

    # timing
    timing: Timing | None = None
    dues: DueTimes | None = None
    since: Instant = 0
    resumed_at: Instant | None = None
    suspended_since: Instant | None = None
    pause: Pause | None = None
    placed: Placed | None = None
    asked_past: Past | None = None
    """The ledger is being asked about an instant of `at` that is over."""
    place_afresh: bool = False
    """It was off for longer than placement.keepOnResume: its phase is chosen anew."""

    # progress
    created: Instant = 0
    """Nothing is due until then, not even where our clock is behind the API server's."""
    taken_over: bool = False
    """What an earlier process left is reckoned with; until then nothing is launched."""
    cursor: Instant = 0
    """Every due time up to here has been taken up or has a verdict."""
    open: dict[RunId, None] = field(default_factory=dict)
    """Taken up by schedule, without verdict: they hold the mark back. Ascending by due time."""
    decided: set[RunId] = field(default_factory=set)
    """Above the cursor and already at their end (seen after a restart): not to be taken again."""
    mark: Instant | None = None
    settled_mark: Instant = 0
    """As far as the mark was not ahead of the clock. It never goes back behind this: a clock that
    was set back must not make due times count again that have run."""
    backoff: Backoff = field(default_factory=Backoff)

    # runs
    runs: dict[RunId, Run] = field(default_factory=dict)
    queue: deque[RunId] = field(default_factory=deque)
    unwanted: dict[tuple[RunId, int], Unwanted] = field(default_factory=dict)
    """Ended while a create of theirs might still arrive: deleted when it turns out to exist."""
    finished_jobs: list[FinishedJob] = field(default_factory=list)
    to_delete: list[ToDelete] = field(default_factory=list)

    # requests
    requests: dict[str, RequestEntry] = field(default_factory=dict)
    """All that ask for runs of this schedule, by the kind of their runs."""
    unfinished: dict[str, RequestEntry] = field(default_factory=dict)
    """Those that have not ended, the oldest first."""
    unclaimed: dict[str, dict[str, JobFact]] = field(default_factory=dict)
    """By kind and uid, Jobs of requests that are not known yet, or whose plan is not."""
    trigger: str = ""
    """The id of the annotation evenkeel.dev/trigger for which a request was made last."""
    trigger_asked: str = ""
    """The one for which a request is being made, or was refused."""

    # the status
    record: Record = field(default_factory=Record)
    template_hash: str = ""
    conditions: dict[str, Condition] = field(default_factory=dict)
    troubles: dict[Trouble, tuple[ConditionReason, str]] = field(default_factory=dict)
    """What the condition Degraded tells, each with its reason and sentence; see `trouble`."""
    start_watched: bool = False
    """The agenda has a task that looks at Jobs of which no Pod has started."""
    start_looks: int = 0
    """How often that was done since such a Job was first found."""
    proof_until_m: float = 0.0
    """Until then Ready is Unknown without a proof of the template."""
    proof_waits: bool = False
    """Its template was refused, and the agenda has a task that proves it again."""
    memory: Memory | None = None
    """What the status said at first sight; dropped when taken over."""
    storing: Storing = field(default_factory=Storing)

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"

    # --- what may happen now ---------------------------------------------------------------------

    @property
    def halted(self) -> bool:
        """Nothing new may start: invalid, suspended, paused, or not yet taken over."""
        return (
            self.schedule is None
            or self.dues is None
            or self.schedule.suspend
            or self.pause is not None
            or not self.taken_over
        )

    @property
    def announces(self) -> bool:
        """Its Jobs may vanish by their ttl, and their names with them: no create is sent before a
        stored status announces it."""
        return self.schedule is not None and self.schedule.ttl_s is not None

    def ttl_may_have_passed(self, since_s: float) -> bool:
        """Whether a Job whose create was sent so long ago may have ended and vanished. A negative
        time was measured by a clock that has been set back: nothing is known."""
        ttl_s = self.schedule.ttl_s if self.schedule else None
        return ttl_s is not None and not 0 <= since_s < ttl_s - CLOCK_MARGIN_S

    @property
    def needs_places(self) -> bool:
        """Whether its runs wait for one another."""
        return self.schedule is not None and self.schedule.concurrency is not Concurrency.ALLOW

    @property
    def skipped_as(self) -> Reason | None:
        """Why what is due meanwhile is skipped as one span; None: it is not."""
        if self.suspended_since is not None or (self.schedule and self.schedule.suspend):
            return Reason.SUSPENDED
        return Reason.PAUSED if self.pause is not None else None

    # --- its requests ----------------------------------------------------------------------------

    def request_of(self, run: RunId) -> RequestEntry | None:
        """The request that asked for a run; None: the schedule did, or that request is gone."""
        return self.requests.get(run.kind)

    def spec_of(self, run: RunId) -> Request | None:
        """What that request asks for."""
        request = self.request_of(run)
        return request.spec if request is not None else None

    def runs_of(self, request: RequestEntry) -> list[Run]:
        """The runs of a request that have not ended."""
        return [run for run in self.runs.values() if run.id.kind == request.kind]

    # --- its runs --------------------------------------------------------------------------------

    def living(self, run_id: RunId, attempt: int) -> Run | None:
        """A run that is at this attempt; None: it is not any more."""
        run = self.runs.get(run_id)
        return run if run is not None and run.attempt == attempt else None

    @property
    def occupying(self) -> list[Run]:
        """Runs that hold their place by concurrencyPolicy: from launch to their end, waiting for a
        retry included."""
        return [run for run in self._launched if run.by_schedule or run.meeting is Meeting.POLICY]

    @property
    def requested_occupying(self) -> list[Run]:
        """Requested runs that hold a place, and for which due times wait whatever
        concurrencyPolicy says."""
        return [run for run in self._launched if run.meeting is Meeting.WAIT]

    @property
    def place_is_free(self) -> bool:
        """No run of this schedule makes another one wait."""
        return not self.needs_places or not (self.occupying or self.requested_occupying)

    @property
    def _launched(self) -> list[Run]:
        return [run for run in self.runs.values() if run.holds_place]

    @property
    def held(self) -> list[Run]:
        """Runs that wait for what holds their create back to heal."""
        return [run for run in self.runs.values() if run.stage is Stage.HELD]

    # --- progress --------------------------------------------------------------------------------

    def reach_mark(self, now: float) -> Instant | None:
        """Move the mark as far as every due time has a verdict or stands in `waiting`.

        It stands ahead of now only over announced runs: an edit that makes earlier times due takes
        it back (`pull_mark_back`)."""
        if not self.cursor:
            return self.mark
        reached = next(iter(self.open)).due - 1 if self.open else self.cursor
        announced = (run.id.due for run in self.runs.values() if run.announced and run.by_schedule)
        reached = min(reached, max(int(now), max(announced, default=0)))
        if self.mark is None or reached > self.mark:
            self.mark = reached
        self.settled_mark = max(self.settled_mark, min(self.mark, int(now)))
        return self.mark

    @property
    def told_mark(self) -> Instant:
        """Every due time up to here was told of as a run or within a span. The mark itself passes
        runs that are announced, of which nothing is told before they have begun."""
        reached = self.mark or 0
        for run in self.runs.values():
            if run.by_schedule and run.told is None:
                reached = min(reached, run.id.due - 1)
        return reached

    def pull_mark_back(self, to: Instant) -> None:
        """A run that was announced ahead is withdrawn: what is due after this is open again."""
        if self.mark is not None:
            self.mark = max(min(self.mark, to), self.settled_mark)

    @property
    def waiting(self) -> list[WaitingRun]:
        """Living runs that nothing but `status.internal.waiting` would give back after a restart:
        the mark has passed them, and no Job speaks for them."""
        runs = [run for run in self.runs.values() if self._is_named(run)]
        return [self._waiting(run) for run in sorted(runs, key=lambda run: run.id)]

    def _is_named(self, run: Run) -> bool:
        """Whether `waiting` names it. Requested runs are named by the status of their request."""
        return run.by_schedule and run.id not in self.open and not run.has_job

    def _waiting(self, run: Run) -> WaitingRun:
        reason, retry_at = self.why_waiting(run)
        return WaitingRun(run.id.due, run.attempt, reason, retry_at)

    def why_waiting(self, run: Run) -> tuple[Reason, Instant | None]:
        """Why a run without a Job waits, and until when, as a restart must know it."""
        reason, retry_at = run.why_waiting, None
        if reason is Reason.LAUNCHING:
            retry_at = run.announced_at
        elif run.unanswered_attempt == run.attempt and self.announces:
            # Its create may arrive yet, and its Job vanish by the ttl: that is launching still.
            reason, retry_at = Reason.LAUNCHING, run.unanswered_at
        elif run.stage in (Stage.HELD, Stage.RETRYING):
            retry_at = run.retry_at
        assert isinstance(reason, Reason)
        return reason, retry_at

    @property
    def waiting_room(self) -> int:
        """How many more runs `waiting` can name."""
        return WAITING_COUNT - sum(map(self._is_named, self.runs.values()))

    def advance(self, cursor: Instant) -> None:
        """Every due time up to here is taken up or decided."""
        if cursor > self.cursor:
            self.cursor = cursor
            if self.decided:
                self.decided = {run for run in self.decided if run.due > cursor}

    def rewind(self, cursor: Instant) -> None:
        """Look again at what is due after this; ends that are told already stay."""
        self.cursor = max(cursor, self.created)
        ended = (row.due for row in self.record.recent if row.state in ENDED)
        self.decided |= {RunId(self.uid, due) for due in ended if due > self.cursor}

    def is_taken(self, due: Instant) -> bool:
        """A run by schedule, alive or at its end, has this due time already."""
        run = RunId(self.uid, due)
        return due <= self.cursor or run in self.decided or run in self.runs

    @property
    def taken(self) -> list[Instant]:
        """Due times that are runs or decided; not all of them need be above the cursor."""
        by_schedule = {run.id.due for run in self.runs.values() if run.by_schedule}
        return sorted(by_schedule | {run.due for run in self.decided})
