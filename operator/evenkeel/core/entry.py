"""One schedule as the scheduler holds it: what it is, how far it got, which of its runs are alive.

Only `core` touches it, between two steps nobody does. Runs change state through `move` alone.
"""

from collections import deque
from dataclasses import dataclass, field

from evenkeel.model import (
    ENDED,
    NEXT_STATES,
    Concurrency,
    Instant,
    JobFact,
    JobPhase,
    JobRef,
    Rejection,
    Retry,
    RunId,
    RunState,
    Schedule,
    Timing,
)
from evenkeel.resource.status import (
    ACTIVE_COUNT,
    WAITING_COUNT,
    Condition,
    Memory,
    Pause,
    Placed,
    RecentRun,
)
from evenkeel.when import DueTimes


class IllegalStepError(AssertionError):
    """A run was to take a step that does not exist: a defect, never a user's mistake."""


@dataclass(slots=True)
class Run:
    """A run that is not at its end."""

    id: RunId
    taken_at: float
    """When it was taken up, or given another chance: its grace counts from here."""
    state: RunState = RunState.PENDING
    attempt: int = 1
    reason: str = ""
    message: str = ""
    late: bool = False
    """Taken up after its time (restart, stall): its lateness says nothing of our precision."""
    prepared: bool = False
    creating: bool = False
    marked_first: bool = False
    """The status told of it before its create: not found after a restart, it is lost."""
    told: int = 0
    """The revision of the status that first says that its Job exists."""
    was_held: bool = False
    """A create of this attempt was held back."""
    silent: bool = False
    """Its create got no answer; whether its Job exists is being asked by name."""
    unanswered_at: float | None = None
    """A create of it got no answer, and its Job was not there."""
    ref: JobRef | None = None
    phase: JobPhase | None = None
    pending_since: Instant | None = None
    """When its Job began, if somebody looks whether a Pod of it starts in time."""
    deleting: bool = False
    """Somebody has deleted its Job, and it is still there."""
    started: Instant | None = None
    retry_at: float = 0.0
    unjudged: JobFact | None = None
    """Its Job failed while nobody knew whether another attempt may follow."""
    failed_jobs: list[JobRef] = field(default_factory=list)
    """Jobs of earlier attempts: they prove after a restart which attempt comes next."""

    def move(self, state: RunState) -> None:
        """Take one step of the run's life."""
        if state is self.state:
            return
        if state not in NEXT_STATES.get(self.state, ()):
            raise IllegalStepError(f"{self.id}: {self.state} -> {state}")
        self.state = state

    @property
    def waits(self) -> bool:
        """For its turn, for what holds it back to heal, or for its next attempt."""
        return self.state is RunState.RETRYING or self.reason in ("queued", "held")

    @property
    def has_job(self) -> bool:
        """Its Job exists, or its create is under way after the mark was written ahead of it."""
        return self.state is RunState.RUNNING or (self.creating and self.marked_first)


@dataclass(slots=True)
class FinishedJob:
    """A Job that only history keeps. Deleted when `revision` of the status is stored."""

    finished: Instant
    due: Instant
    ref: JobRef
    succeeded: bool
    revision: int
    keep_until: float = 0.0
    """Until then a create that was given up may still arrive, and only this Job's name stops it."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """A Job that is not wanted, should there ever be one."""

    reason: str
    late: bool = False
    """A create that got no answer may bring it for a while, whatever others have brought."""


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
    seen_at: float = 0.0

    # timing
    timing: Timing | None = None
    dues: DueTimes | None = None
    since: Instant = 0
    resumed_at: Instant | None = None
    suspended_since: Instant | None = None
    pause: Pause | None = None
    placed: Placed | None = None

    # progress
    created: Instant = 0
    """Nothing is due until then, not even where our clock is behind the API server's."""
    taken_over: bool = False
    """Its past is reckoned with. Until the Jobs are listed it is not, and nothing is launched."""
    cursor: Instant = 0
    """Every due time up to here has been taken up or has a verdict."""
    open: dict[Instant, None] = field(default_factory=dict)
    """Taken up, without verdict: they hold the mark back. Ascending, as due times come."""
    held_count: int = 0
    """Creates in a row that were held back."""
    held_since: float = 0.0
    hold_until: float = 0.0
    """Before it none is sent."""
    hold_message: str = ""
    answers_awaited_until: float | None = None
    """Until then those that are held wait for word of creates that got no answer."""
    decided: set[Instant] = field(default_factory=set)
    """Above the cursor and already at their end (seen after a restart): not to be taken again."""
    mark: Instant | None = None
    stored_mark: Instant = 0
    """The mark of the status that is known to be stored."""
    sent: tuple[int, Instant] = (0, 0)
    """Revision and mark of the document taken last."""
    index_from: int = 0
    """An index of an older generation knows another timing of this schedule."""

    # runs
    runs: dict[RunId, Run] = field(default_factory=dict)
    queue: deque[RunId] = field(default_factory=deque)
    unwanted: dict[tuple[RunId, int], Unwanted] = field(default_factory=dict)
    """Ended while a create of theirs might still arrive: deleted when it turns out to exist."""
    finished_jobs: list[FinishedJob] = field(default_factory=list)
    to_delete: list[tuple[int, JobRef, str]] = field(default_factory=list)
    """(revision, Job, why): deleted when that revision of the status is stored."""

    # what the status tells
    recent: list[RecentRun] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    counts_since: Instant = 0
    consecutive_failures: int = 0
    last_schedule: Instant | None = None
    last_success: Instant | None = None
    last_failure: Instant | None = None
    last_result: str = ""
    template_hash: str = ""
    conditions: dict[str, Condition] = field(default_factory=dict)
    version: str = ""
    """The resourceVersion at first sight: what the first write of its status goes on from."""
    revision: int = 0
    written: int = 0
    memory: Memory | None = None
    """What the status said at first sight; dropped when settled."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"

    def reach_mark(self, now: float) -> Instant | None:
        """Every due time up to here has a verdict or stands in `waiting`. It never goes back, so
        it must not run ahead: an edit may yet make earlier times due."""
        if not self.cursor:
            return self.mark
        reached = min(next(iter(self.open)) - 1 if self.open else self.cursor, int(now))
        if self.mark is None or reached > self.mark:
            self.mark = reached
        return self.mark

    @property
    def halted(self) -> bool:
        """Nothing new may start: invalid, suspended, paused, or not yet settled."""
        return (
            self.schedule is None
            or self.dues is None
            or self.schedule.suspend
            or self.pause is not None
            or not self.taken_over
        )

    @property
    def needs_places(self) -> bool:
        """Whether its runs wait for one another."""
        return self.schedule is not None and self.schedule.concurrency is not Concurrency.ALLOW

    @property
    def occupying(self) -> list[Run]:
        """Runs that hold their place: from launch to their end, waiting for a retry included."""
        return [
            run
            for run in self.runs.values()
            if run.creating
            or run.state in (RunState.RUNNING, RunState.RETRYING)
            or run.reason == "held"
        ]

    @property
    def held(self) -> list[Run]:
        """Runs that wait for what holds their create back to heal."""
        return [run for run in self.runs.values() if run.reason == "held" and not run.creating]

    @property
    def waiting(self) -> list[Instant]:
        """Due times of living runs that nothing but `status.waiting` would give back after a
        restart: the mark has passed them, and no Job speaks for them."""
        return sorted(
            run.id.due
            for run in self.runs.values()
            if run.id.due not in self.open and not run.has_job
        )

    def may_mark_first(self, run: Run) -> bool:
        """Whether a status can name one more run whose create the mark has passed: among the
        active ones until it is answered, and in `waiting` should it be held then."""
        passed = [other for other in self.runs.values() if other.id.due not in self.open]
        creating = sum(other.creating and other.marked_first for other in passed)
        waiting = sum(not other.has_job for other in passed if other is not run)
        return creating < ACTIVE_COUNT and creating + waiting < WAITING_COUNT

    @property
    def skipped_as(self) -> str:
        """Why what is due meanwhile is skipped as one span; empty: it is not."""
        if self.suspended_since is not None or (self.schedule and self.schedule.suspend):
            return "suspended"
        return "paused" if self.pause is not None else ""

    @property
    def taken(self) -> list[Instant]:
        """Due times that are runs or decided; not all of them need be above the cursor."""
        return sorted({run.due for run in self.runs} | self.decided)

    def advance(self, cursor: Instant) -> None:
        """Every due time up to here is taken up or decided."""
        if cursor > self.cursor:
            self.cursor = cursor
            if self.decided:
                self.decided = {due for due in self.decided if due > cursor}

    def rewind(self, cursor: Instant) -> None:
        """Look again at what is due after this; ends that are told already stay."""
        self.cursor = max(cursor, self.created)
        ended = (row.due for row in self.recent if row.state in ENDED)
        self.decided |= {due for due in ended if due > self.cursor}

    def is_taken(self, due: Instant) -> bool:
        """A run, alive or at its end, has this due time already."""
        return due <= self.cursor or due in self.decided or RunId(self.uid, due) in self.runs

    def remember(self, row: RecentRun, *, limit: int) -> None:
        """Put a row where its due time belongs, newest first; a row of the same due is replaced."""
        rows = [old for old in self.recent if old.due != row.due]
        rows.append(row)
        rows.sort(key=lambda one: one.due, reverse=True)
        while len(rows) > limit:
            rows.remove(next((row for row in reversed(rows) if not row.tells_attempt), rows[-1]))
        self.recent = rows

    def count(self, state: RunState, number: int = 1) -> None:
        """One more of an end."""
        assert state in ENDED
        self.counts[state.value] = self.counts.get(state.value, 0) + number

    def changed(self) -> None:
        """The status document is not what was written last."""
        self.revision += 1
