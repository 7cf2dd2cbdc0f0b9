"""The arguments and results of `balance`: member, placement, distribution, move, plan.

Callers of `balance` pass and get these. They are frozen and do nothing by themselves.
"""

from dataclasses import dataclass, field

from evenkeel.model import DAY_S, SLOT_S, Instant, Interval, Timing, Window
from evenkeel.when import DueTimes

DAY_SLOTS = DAY_S // SLOT_S
WEEK_S = 7 * DAY_S
WEEK_SLOTS = WEEK_S // SLOT_S


@dataclass(frozen=True, slots=True)
class Member:
    """One schedule, with the fields that its load and its placement depend on."""

    key: str
    timing: Timing
    """An interval that the operator placed has offset 0 and its anchor here."""
    dues: DueTimes | None = field(default=None, compare=False, repr=False)
    """The compiled timing, if the caller has it. Otherwise `balance` compiles it when needed."""
    weight: int = 1
    lasts_s: int = 0
    """How long a run is expected to last; 0 where that is not known. A run weighs on the slot in
    which it starts, and by its share on the later slots in which it is still running."""
    counts: bool = True
    """False for a suspended or paused schedule: it is counted in total_jobs, but has no load."""
    placed_at: Instant | None = None
    """When the operator chose the phase. None: the owner chose it, and it is never moved."""
    window: Window | None = None
    pinned: bool = False

    @property
    def interval(self) -> Interval:
        """The interval. Only members with an interval are placed and moved."""
        rule = self.timing.rule
        assert isinstance(rule, Interval), f"{self.key} is no interval"
        return rule


@dataclass(frozen=True, slots=True)
class Placement:
    """The phase found for one interval: due at anchor + k * every, k = 1, 2, ..."""

    anchor: Instant
    first_run: Instant
    slot: int
    """The first run's slot of its UTC day, 0 to 95."""
    load: int
    """The load of the busiest slot in which it runs, its own runs included."""
    reason: str


@dataclass(frozen=True, slots=True)
class HourLoad:
    """How many schedules, and how many runs, one UTC hour has."""

    hour: int
    job_count: int
    run_count: int


@dataclass(frozen=True, slots=True)
class Busiest:
    """The minute, or the second, of a day with the most starts; the first of equal ones."""

    at: Instant
    starts: int
    bound: int
    """No arrangement has a lower `starts`: the mean rounded up, and at least `fixed_alone`."""
    fixed_alone: int
    """The most starts in one minute (one second) of the schedules that are never moved."""
    schedules: int
    """How many schedules start then."""
    keys: tuple[str, ...]
    """The first of their keys, sorted."""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many runs are expected to go on at once, in a day that repeats. Only runs count whose
    duration is known."""

    peak: int
    at: Instant
    """The first second of the peak."""
    mean: float
    unknown: int
    """How many schedules have no known duration, and do not count here."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The load of the 24 hours from `start`; the names are those of the HTTP API."""

    start: Instant
    slots: tuple[int, ...]
    hourly: tuple[HourLoad, ...]
    total_jobs: int
    distribution_score: float
    peak_hour: int
    peak_count: int
    peak_to_mean: float
    lower_bound: float
    """No arrangement of these runs has a lower peak_to_mean."""
    busiest_minute: Busiest
    busiest_second: Busiest
    concurrency: Concurrency | None
    """None where no schedule has a known duration."""
    suggestion: str

    @property
    def peak(self) -> int:
        """The load of the busiest slot."""
        return max(self.slots)


@dataclass(frozen=True, slots=True)
class Move:
    """One schedule that changes its phase."""

    key: str
    old_anchor: Instant
    new_anchor: Instant
    current_time: Instant
    """The next run by the old phase."""
    proposed_time: Instant
    """The first run by the new one."""
    load: int = 0
    """The load of the busiest slot in which it runs by the new phase, all moves made."""


@dataclass(frozen=True, slots=True)
class Skip:
    """One placed schedule that stays: job_running, protection_window, placement_cooldown, pinned
    or no_gain."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The moves of a rebalance, to be shown and then carried out."""

    plan_id: str
    phases: str
    """A hash of the phases that the plan was made for. If it differs later, the plan is stale."""
    made_at: Instant
    moves: tuple[Move, ...]
    skipped: tuple[Skip, ...]
    current: Distribution
    projected: Distribution
    score_without_protection: float

    @property
    def current_score(self) -> float:
        """The score now."""
        return self.current.distribution_score

    @property
    def projected_score(self) -> float:
        """The score after the moves."""
        return self.projected.distribution_score


@dataclass(frozen=True, slots=True)
class Stale:
    """A plan that no longer fits, and why."""

    sentence: str
