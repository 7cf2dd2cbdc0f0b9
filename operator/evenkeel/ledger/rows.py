"""What a ledger keeps, in nouns. Frozen; the stores write and read them, and nothing else.

Times of the operator's own acts are seconds with fractions (`float`), times of Kubernetes and due
times are whole seconds (`Instant`).
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from evenkeel.model import BY_SCHEDULE, Attempt, Instant, RunId, RunState

UNRECORDED = "unrecorded"
"""In the counts of a range row beside the states: due times whose verdict nobody knows any more."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it stands. A write whose fields are None or empty leaves what is stored; but a
    reason belongs to its state, and goes with it (`merge`)."""

    run: RunId
    key: str
    """`namespace/name` of its schedule."""
    state: RunState
    reason: str = ""
    attempt: int = 1
    """0: the one that is stored, or the first."""
    job: str = ""
    taken_up: float | None = None
    created: float | None = None
    """When the create of its first attempt was sent."""
    started: Instant | None = None
    finished: Instant | None = None
    exit_code: int | None = None
    exit_reason: str = ""
    container: str = ""
    message: str = ""
    generation: int = 0
    template_hash: str = ""
    request: str = ""
    """The name of the RunRequest that asked for it."""
    requested_by: str = ""
    """Who made that request, as he told it himself."""
    attempts: tuple[Attempt, ...] = ()
    """Ascending by number. A write adds to those that are stored, and fills their gaps."""
    due_at: float | None = None
    """Of a run `scheduled` or `retrying`: when it is to start. Such a run stands in the hot table
    until it starts; the hot table keeps this and `priority`."""
    priority: int = 0

    @property
    def lateness_s(self) -> float | None:
        """From the due time to the first create; None: there was none, or it is not known, or a
        request asked for the run: last Tuesday's is not late."""
        if self.created is None or self.run.kind != BY_SCHEDULE:
            return None
        return self.created - self.run.due


class Range(enum.StrEnum):
    """What a range row stands for."""

    VERDICT = "verdict"
    """Due times that were missed, skipped or suspended as a whole, or are unrecorded."""
    OPEN = "open"
    """The schedule is suspended, paused or rejected since `first`, and no due time from then on
    has a row yet. `end` is None. The verdict row of the same reason that overlaps it takes its
    place, `SpanClosed` removes it, and `ScheduleEnded` gives it an end; after that there are no new
    ones."""
    DAY = "day"
    """Old rows of one UTC day, folded."""
    MONTH = "month"
    """Rows of days, folded."""


@dataclass(frozen=True, slots=True)
class SpanRow:
    """A range row: so many due times in [first, end), of which none has a row of its own.

    Verdicts of a schedule do not overlap: one that overlaps another is refused as illegal. An
    unrecorded row may overlap verdicts."""

    uid: str
    key: str
    first: Instant
    end: Instant | None
    counts: Mapping[str, int] = field(default_factory=dict)
    """By state, or UNRECORDED."""
    reason: str = ""
    kind: Range = Range.VERDICT


@dataclass(frozen=True, slots=True)
class SpanClosed:
    """What was open with this reason ends: due times up to `last` were in it, and each has a row by
    now."""

    uid: str
    key: str
    reason: str
    last: Instant


@dataclass(frozen=True, slots=True)
class TimingRow:
    """From `after` on (exclusive) this timing makes the due times of a schedule."""

    uid: str
    key: str
    after: Instant
    fields: str
    """JSON of `resource.timing.timing_fields` of the timing in force, a chosen phase as its offset
    0s and anchor; empty: the schedule has no due times (no phase yet)."""


@dataclass(frozen=True, slots=True)
class MarkRow:
    """Every due time of a schedule up to here has a row, or lies in a range row. The one that was
    written last counts: an edit of a timing may take a mark back."""

    uid: str
    key: str
    mark: Instant


@dataclass(frozen=True, slots=True)
class ScheduleEnded:
    """A schedule was deleted. Nothing after `until` is expected of it; unfinished rows of it become
    cancelled (schedule_deleted), and its hot rows go."""

    uid: str
    key: str
    at: Instant
    until: Instant
    phase: str = ""
    """JSON of the phase that a schedule of the same name gets back within a day; empty: none."""


Write = RunRow | SpanRow | SpanClosed | TimingRow | MarkRow | ScheduleEnded
"""What is written about one schedule. Any of them makes the schedule known to the store; `since`,
from which on the store answers for it, is the least of its TimingRows' `after`."""


def uid_of(write: Write) -> str:
    """The schedule that a row is about."""
    return write.run.uid if isinstance(write, RunRow) else write.uid


LATENESS_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of a minute's lateness histogram; one more counts what is later."""


@dataclass(frozen=True, slots=True)
class Minute:
    """Statistics of one minute; the same minute written again replaces it."""

    at: Instant
    ended: Mapping[str, int] = field(default_factory=dict)
    """Runs that ended in it, by state."""
    lateness: tuple[int, ...] = ()
    """Runs that began in it, by bucket of LATENESS_BOUNDS_S."""
    load: int = 0
    """Starts x weight expected in the minute's slot."""
    score: float | None = None
    active: int = 0
    index_runs: int = 0
    span_s: int = 60
    """3600: sixty of them, folded."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What is written in one transaction, in this order."""

    at: float
    """The writer's wall clock: the time of recording."""
    writes: tuple[Write, ...] = ()
    minutes: tuple[Minute, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a batch. Each of its writes is counted once."""

    accepted: int = 0
    illegal: int = 0
    """No legal steps lead from the stored state to this one, it is of an older attempt, or its
    range overlaps another."""
    bad: int = 0
    """No store can keep the row (`cleaning`), or this one refused it."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A row of the hot table: a run that starts later."""

    run: RunId
    key: str
    due_at: float
    priority: int
    state: RunState
    """scheduled or retrying; pending once it is promoted."""
    attempt: int = 1
    request: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who promotes: rows that a dead holder has promoted are put back by `requeue`."""

    term: int
    process: str


@dataclass(frozen=True, slots=True)
class Promoted:
    """The rows that this caller alone got, and how many stale ones were dropped."""

    rows: tuple[Deferred, ...] = ()
    stale: int = 0


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule as the store knows it."""

    uid: str
    key: str
    since: Instant
    """0: no timing of it is known."""
    mark: Instant
    """0: none is known."""
    ended_at: Instant | None = None
    until: Instant | None = None
    phase: str = ""


@dataclass(frozen=True, slots=True)
class Book:
    """All that an audit needs of one schedule in [first, end)."""

    schedule: ScheduleRow
    timings: tuple[TimingRow, ...]
    """All of them, ascending by `after`."""
    spans: tuple[SpanRow, ...]
    """Those that touch the asked time, ascending by `first`."""
    runs: tuple[tuple[Instant, RunState], ...]
    """Runs by schedule, ascending by due time, from the least `first` of those spans to the largest
    `end` of them."""
    first: Instant
    """The asked time, widened so that it cuts no range row that is not open."""
    end: Instant


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which rows of `runs` and ranges a reader wants; newest due time first."""

    namespace: str = ""
    name: str = ""
    states: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    request: str = ""
    """Runs that a request of this name asked for."""
    since: Instant | None = None
    until: Instant | None = None
    """Exclusive."""
    ranges: bool = True
    """Range rows stand among the runs by their last instant. Those of `counts` that have none of
    the wanted states are left out."""
    limit: int = 100
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and the cursor of those that follow; empty: there are none."""

    items: tuple[RunRow | SpanRow, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept; the rest is folded into rows of days, and these into rows of months."""

    keep_s: float = 30 * 86_400
    """By the time of recording."""
    keep_runs: int = 1000
    """Runs by schedule, of each schedule. Requested runs are not counted: a backfill must not push
    the history of its schedule out, nor forget what it has run itself."""
    days_s: float = 365 * 86_400
    """How long rows of days are kept; after it they become rows of months."""
    minutes_s: float = 30 * 86_400
    """How long minutes are kept; after it they become hours."""
    max_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class Folded:
    """What one call of `retain` did."""

    runs: int = 0
    spans: int = 0
    minutes: int = 0
    more: bool = False
    """There is more to fold: call again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a store says of itself."""

    kind: str
    """sqlite or postgresql; memory in tests."""
    where: str
    """Path or address, without a password."""
    born: str
    """Random, made with the store: another one means that the store was lost and begun anew."""
    since: float
    """When it was made."""
    written_at: float
    """The time of the last batch; 0: none yet."""
    term: int
    migration: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Exported:
    """Some rows of one table, the same on every store: schedules by uid, times as numbers."""

    table: str
    """schedule, timing, run, span, deferred or minute."""
    total: int
    """How many rows the table has, for a progress bar."""
    rows: tuple[Mapping[str, object], ...]
