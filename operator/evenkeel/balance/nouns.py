"""The nouns of even load: what goes in, what a placement, a picture and a plan are.

Everybody who asks `balance` for something speaks in these. Frozen; no behaviour of their own.
"""

from dataclasses import dataclass, field

from evenkeel.model import DAY_S, SLOT_S, Instant, Interval, Timing, Window
from evenkeel.when import DueTimes

DAY_SLOTS = DAY_S // SLOT_S
WEEK_S = 7 * DAY_S
WEEK_SLOTS = WEEK_S // SLOT_S


@dataclass(frozen=True, slots=True)
class Member:
    """One schedule as the load sees it."""

    key: str
    timing: Timing
    """An interval that the operator placed carries offset 0 and its anchor."""
    dues: DueTimes | None = field(default=None, compare=False, repr=False)
    """The compiled timing, if the caller has it; else it is compiled here when needed."""
    weight: int = 1
    counts: bool = True
    """False for a suspended or paused one: in total_jobs, but no load."""
    placed_at: Instant | None = None
    """When the operator chose the phase. None: its owner did, and it is never moved."""
    window: Window | None = None
    pinned: bool = False

    @property
    def interval(self) -> Interval:
        """The rule of a schedule that is placed."""
        rule = self.timing.rule
        assert isinstance(rule, Interval), f"{self.key} is no interval"
        return rule


@dataclass(frozen=True, slots=True)
class Place:
    """The phase found for one interval: due at anchor + k * every, k = 1, 2, ..."""

    anchor: Instant
    first_run: Instant
    slot: int
    """The first run's slot of its UTC day, 0 to 95."""
    load: int
    """What the busiest slot it hits carries with it."""
    reason: str


@dataclass(frozen=True, slots=True)
class HourLoad:
    """One UTC hour of the picture."""

    hour: int
    job_count: int
    run_count: int


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
    suggestion: str

    @property
    def peak(self) -> int:
        """What the busiest slot carries."""
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


@dataclass(frozen=True, slots=True)
class Skip:
    """One placed schedule that stays: job_running, protection_window, placement_cooldown, pinned
    or no_gain."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A rebalance, ready to be shown and then carried out."""

    plan_id: str
    phases: str
    """Which phases it was made for; another value later means that it is stale."""
    made_at: Instant
    moves: tuple[Move, ...]
    skipped: tuple[Skip, ...]
    current: Distribution
    projected: Distribution
    score_without_protection: float

    @property
    def current_score(self) -> float:
        """Today's evenness."""
        return self.current.distribution_score

    @property
    def projected_score(self) -> float:
        """The evenness after the moves."""
        return self.projected.distribution_score


@dataclass(frozen=True, slots=True)
class Stale:
    """A plan that no longer fits, and why."""

    sentence: str
