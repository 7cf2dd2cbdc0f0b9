"""All that the scheduler knows of all schedules together.

`scheduler` steps through it. `route` finds one schedule in it and calls that schedule's handlers;
`admit`, `placing`, `moving`, `wallclock` and `answer` work on the whole. The shell reads numbers of
it for metrics, between two steps; nothing outside `core` changes it.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evenkeel.balance import LoadMap, Member, Move, Plan, Skip
from evenkeel.core.agenda import Agenda
from evenkeel.core.census import Census
from evenkeel.core.effects import Effect, Log
from evenkeel.core.inbox import Inbox
from evenkeel.core.index import IndexCell, nothing_yet
from evenkeel.core.messages import Ask, ScheduleSeen
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant, JobFact, RunId, RunState, ScheduleState
from evenkeel.resource.record import Condition, Placed
from evenkeel.settings import Settings
from evenkeel.when import DueTimes


@dataclass(slots=True)
class Statistics:
    """Numbers that `/metrics` reads; step 5 writes them."""

    schedules: int = 0
    index_runs: int = 0


@dataclass(slots=True)
class Moving:
    """A rebalance that is being carried out."""

    ask: Ask
    plan: Plan
    """As it was proven to fit."""
    ahead: deque[Move | Skip]
    made: list[Move] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)


GONE_S = 600.0
"""How long a deletion is remembered: an API server keeps five minutes of what it tells."""

QUIET_S = 5.0
"""When no schedule has come for this time, all of the set are taken to be there."""

OPEN_S = 30.0
"""A set to which schedules are added all the time is improved after this time, then after twice
this time, and so on: each improvement may move all that have not run."""


@dataclass(slots=True)
class Arrivals:
    """Schedules that arrived together: those whose first phase may still be improved."""

    members: dict[str, Instant] = field(default_factory=dict)
    """By uid, the latest instant at which each must have its first run."""
    last_m: float = 0.0
    improved_m: float | None = None
    """When the set was opened or improved; None: there is no set."""
    open_s: float = OPEN_S
    """How long it may be open from then on."""
    improving: bool = False
    ahead: deque[tuple[str, Move]] = field(default_factory=deque)
    """The uids of schedules and their moves."""

    @property
    def under_way(self) -> bool:
        """A set is being improved."""
        return self.improving or bool(self.ahead)

    def add(self, uid: str, latest: Instant, monotonic: float) -> None:
        """One more schedule, or a schedule of the set that was placed afresh."""
        self.members[uid] = latest
        self.last_m = monotonic
        if self.improved_m is None:
            self.improved_m = monotonic

    def wait_s(self, monotonic: float) -> float:
        """How long until the set is to be improved; infinite where there is none."""
        if self.improved_m is None:
            return float("inf")
        return max(0.0, min(self.last_m + QUIET_S, self.improved_m + self.open_s) - monotonic)

    def is_due(self, monotonic: float) -> bool:
        """Whether the set is to be improved now."""
        return not self.improving and self.wait_s(monotonic) <= 0

    def improve(self, members: dict[str, Instant], monotonic: float) -> None:
        """The improvement of these members begins. Where schedules still come, the set stays
        open."""
        self.improving = True
        if monotonic >= self.last_m + QUIET_S:
            self.members, self.improved_m, self.open_s = {}, None, OPEN_S
        else:
            self.members, self.improved_m, self.open_s = members, monotonic, 2 * self.open_s


@dataclass(slots=True)
class Closed:
    """A schedule whose handler raised. It has no entry until it is read again."""

    uid: str
    ns: str
    name: str
    generation: int
    conditions: dict[str, Condition]
    revision: int
    tries: int
    closed_m: float
    gone_jobs: set[str] = field(default_factory=set)
    """Uids of Jobs that were deleted meanwhile: a list that is older may still show them."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.ns}/{self.name}"


@dataclass(slots=True)
class Known:
    """What the index and the load hold of a schedule, to see whether it has changed."""

    dues: DueTimes | None = None
    halted: bool = True
    member: Member | None = None


@dataclass(slots=True)
class State:
    """The world as the scheduler has it. Seconds named `..._m` are of the monotonic clock."""

    settings: Settings
    inbox: Inbox
    now: float = 0.0
    monotonic: float = 0.0
    stopping: bool = False

    # schedules
    entries: dict[str, Entry] = field(default_factory=dict)
    uid_by_key: dict[str, str] = field(default_factory=dict)
    touched: dict[str, None] = field(default_factory=dict)
    """Schedules that a handler was called for in this step; in order, or no replay would be one."""
    known: dict[str, Known] = field(default_factory=dict)
    closed: dict[str, Closed] = field(default_factory=dict)
    failures: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How often a schedule's handler raised in a row, and when last."""
    unreachable: dict[str, None] = field(default_factory=dict)
    """Schedules that wait for the API server to answer anybody's create."""
    gone: dict[str, float] = field(default_factory=dict)
    """Schedules whose deletion was seen, and when: a watch that lags may show them once more."""

    # before there is an entry
    listed_uids: set[str] | None = None
    listed_namespaces: set[str] = field(default_factory=set)
    job_facts: dict[str, dict[str, JobFact]] = field(default_factory=dict)
    """Facts of schedules that are not taken over yet, by owner uid and Job uid."""
    unadmitted: dict[str, tuple[float, ScheduleSeen]] = field(default_factory=dict)
    """Schedules seen before the Jobs were listed, and when: what is due cannot be told without."""
    unadmitted_ordered: bool = False

    # requests
    requests: dict[str, RequestEntry] = field(default_factory=dict)
    requests_of: dict[str, dict[str, None]] = field(default_factory=dict)
    """By `namespace/name` of a schedule, the uids of the requests that mean it."""
    requests_touched: dict[str, None] = field(default_factory=dict)
    """Requests that look for their schedule in this step."""
    requests_ended: list[str] = field(default_factory=list)
    """Those that have come to their end in this step, or are gone."""
    requests_under_way: dict[str, dict[str, None]] = field(default_factory=dict)
    """By namespace, those that have their turn."""
    requests_in_line: dict[str, dict[str, None]] = field(default_factory=dict)
    """By namespace, those that wait for it."""
    requests_gone: dict[str, float] = field(default_factory=dict)
    """As `gone`."""
    requests_closed: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    """Those of closed schedules, until they are read again: schedule's uid, namespace, name."""
    listed_requests: frozenset[str] | None = None
    requests_known: bool = False
    """All requests that were listed at the start are known."""
    schedules_known: bool = False
    """All schedules that were listed at the start are known."""

    # time
    agenda: Agenda = field(default_factory=Agenda)
    doubts_clock: bool = False
    clock_agreed: bool = False
    """The API server has confirmed it; from then on only its steps are looked at."""
    clock_asked_m: float = 0.0
    wall_minus_monotonic: float | None = None

    # index
    index: IndexCell = field(default_factory=lambda: IndexCell(nothing_yet(0)))
    index_dirty: bool = True
    index_from: dict[str, int] = field(default_factory=dict)
    """An index of an older generation knows another timing of these schedules."""
    index_built_at: float = float("-inf")
    index_building: int = 0
    index_began: float = 0.0
    looked_until: Instant = 0
    looked_generation: int = -1

    # load
    load: LoadMap = field(default_factory=lambda: LoadMap(0))
    reweigh: dict[str, None] = field(default_factory=dict)
    """Schedules whose load has changed in this step."""
    phases: dict[str, tuple[Placed, float]] = field(default_factory=dict)
    """Phases of names that went, and when: the same name within a day gets its own back."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Those that were shown and may be confirmed, by id."""
    moving: Moving | None = None
    arrivals: Arrivals = field(default_factory=Arrivals)

    silent: set[str] = field(default_factory=set)
    """Namespaces whose watch of Jobs has been told nothing for minutes; empty: the watch of all."""

    # what comes of a step
    effects: list[Effect] = field(default_factory=list)
    ended: deque[tuple[float, RunId]] = field(default_factory=deque)
    ended_states: dict[RunId, RunState] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=Statistics)
    census: Census = field(default_factory=Census)
    stopwatch: Callable[[], float] = lambda: 0.0
    """For the duration metrics alone; no decision depends on it."""

    @property
    def jobs_listed(self) -> bool:
        """All Jobs there were are known: only now can it be told what nobody launched."""
        return self.listed_namespaces >= set(self.settings.namespaces or ("",))

    @property
    def can_tell_what_is_due(self) -> bool:
        """Without the Jobs, or by a clock that is not believed, nothing is reckoned with."""
        return self.jobs_listed and not self.doubts_clock

    def knows(self, uid: str) -> int:
        """The generation in which this schedule was last shown to us; 0: it never was."""
        if (known := self.entries.get(uid) or self.closed.get(uid)) is not None:
            return max(1, known.generation)
        unadmitted = self.unadmitted.get(uid)
        return unadmitted[1].schedule.generation if unadmitted else 0

    def count_known(self) -> int:
        """How many those are."""
        return len(self.entries) + len(self.closed) + len(self.unadmitted)

    def knows_request(self, uid: str) -> int:
        """The generation in which this request was last shown to us; 0: it never was."""
        if uid in self.requests_closed:
            return 1
        known = self.requests.get(uid)
        return max(1, known.generation) if known else 0

    def count_known_requests(self) -> int:
        """How many those are."""
        return len(self.requests) + len(self.requests_closed)

    def schedules_by_state(self) -> dict[ScheduleState, int]:
        """Every state, and how many schedules are in it."""
        found = dict(self.census.by_state)
        found[ScheduleState.PENDING] += len(self.unadmitted)
        found[ScheduleState.DEGRADED] += len(self.closed)
        return found

    def forget_gone(self) -> None:
        """No watch lags for longer; and had a list been wrong, the object would be back then."""
        old = self.monotonic - GONE_S
        for gone in (self.gone, self.requests_gone):
            while gone and next(iter(gone.values())) <= old:
                del gone[next(iter(gone))]

    def turn(self, ns: str) -> Turn:
        """What one schedule of this namespace may use now."""
        return Turn(
            now=self.now,
            second=int(self.now),
            horizon=math.ceil(self.now - self.settings.grace_s),
            monotonic=self.monotonic,
            settings=self.settings,
            agenda=self.agenda,
            stopping=self.stopping,
            rebalancing=self.moving is not None or bool(self.arrivals.ahead),
            silent=bool(self.silent) and not self.silent.isdisjoint(("", ns)),
        )

    def emit(self, effect: Effect) -> None:
        """Have something done after this step."""
        self.effects.append(effect)

    def log(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """One line, an event and its fields."""
        self.emit(Log(level, event, fields))
