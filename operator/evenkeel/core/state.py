"""All that the scheduler knows, and the ways to say what is wanted of the shell.

`scheduler.py` steps through it; `admit`, `adopt`, `halt`, `take`, `late`, `creates`, `follow`,
`life`, `placing`, `moving`, `wallclock` and `answer` are its chapters. Nobody else holds a
reference.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evenkeel.balance import LoadMap, Move, Plan, Skip
from evenkeel.core.agenda import Agenda, Start
from evenkeel.core.effects import Effect, KubeEvent, Log, WriteStatus
from evenkeel.core.entry import Entry, Run
from evenkeel.core.inbox import Inbox
from evenkeel.core.index import IndexCell, nothing_yet
from evenkeel.core.messages import Ask, ScheduleSeen
from evenkeel.model import Instant, JobFact, RunId, RunState
from evenkeel.resource.status import Condition, Placed
from evenkeel.settings import Settings


@dataclass(slots=True)
class Statistics:
    """Numbers that `/metrics` reads; step 5 writes them."""

    schedules: int = 0
    index_runs: int = 0
    running: int = 0
    waiting: int = 0
    counted_at: float = 0.0


@dataclass(slots=True)
class Moving:
    """A rebalance that is being carried out."""

    ask: Ask
    plan: Plan
    """As it was proven to fit."""
    ahead: deque[Move | Skip]
    made: list[Move] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """The world as the scheduler has it."""

    settings: Settings
    inbox: Inbox
    now: float = 0.0
    monotonic: float = 0.0
    entries: dict[str, Entry] = field(default_factory=dict)
    uid_by_key: dict[str, str] = field(default_factory=dict)
    index: IndexCell = field(default_factory=lambda: IndexCell(nothing_yet(0)))
    index_dirty: bool = True
    index_built_at: float = float("-inf")
    index_building: int = 0
    index_began: float = 0.0
    looked_until: Instant = 0
    looked_generation: int = -1
    listed_uids: set[str] | None = None
    job_facts: dict[str, dict[str, JobFact]] = field(default_factory=dict)
    """Facts of schedules that are not settled yet, by owner uid and Job uid."""
    listed_namespaces: set[str] = field(default_factory=set)
    unadmitted: dict[str, tuple[float, ScheduleSeen]] = field(default_factory=dict)
    """Schedules seen before the Jobs were listed, and when: what is due cannot be told without."""
    unadmitted_ordered: bool = False
    unreachable: dict[str, None] = field(default_factory=dict)
    """Schedules that wait for the API server to answer anybody's create."""
    agenda: Agenda = field(default_factory=Agenda)
    load: LoadMap = field(default_factory=lambda: LoadMap(0))
    reweigh: dict[str, None] = field(default_factory=dict)
    """Schedules whose load has changed in this step; in order, or no replay would be one."""
    phases: dict[str, tuple[Placed, float]] = field(default_factory=dict)
    """Phases of names that went, and when: the same name within a day gets its own back."""
    plans: dict[str, Plan] = field(default_factory=dict)
    """Those that were shown and may be confirmed, by id."""
    moving: Moving | None = None
    gone: dict[str, float] = field(default_factory=dict)
    """Schedules whose deletion was seen, and when: a watch that lags may show them once more."""
    ended: deque[tuple[float, RunId, RunState]] = field(default_factory=deque)
    ended_states: dict[RunId, RunState] = field(default_factory=dict)
    stopping: bool = False
    doubts_clock: bool = False
    clock_agreed: bool = False
    """The API server has confirmed it; from then on only its steps are looked at."""
    clock_asked_at: float = 0.0
    wall_minus_monotonic: float | None = None
    statistics: Statistics = field(default_factory=Statistics)
    effects: list[Effect] = field(default_factory=list)
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
        if (entry := self.entries.get(uid)) is not None:
            return entry.generation
        early = self.unadmitted.get(uid)
        return early[1].schedule.generation if early else 0

    def count_known(self) -> int:
        """How many those are."""
        return len(self.entries) + len(self.unadmitted)

    def living(self, run_id: RunId, attempt: int) -> tuple[Entry, Run] | None:
        """A run that is at this attempt, and its schedule; None: it is not any more."""
        entry = self.entries.get(run_id.uid)
        run = entry.runs.get(run_id) if entry else None
        return (entry, run) if entry and run and run.attempt == attempt else None

    # --- saying ---------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        """Have something done after this step."""
        self.effects.append(effect)

    def log(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """One line, an event and its fields."""
        self.emit(Log(level, event, fields))

    def event(self, entry: Entry, reason: str, message: str, *, warning: bool = False) -> None:
        """A Kubernetes Event for the schedule's owner."""
        self.emit(KubeEvent(entry.uid, entry.ns, entry.name, warning, reason, message[:1024]))

    def retry_later(self, run: Run, *, at: float) -> None:
        """Put a run's next try on the agenda; its due time may be to come, by a clock set back."""
        run.retry_at = max(at, run.id.due)
        self.agenda.put(run.retry_at, Start(run.id, run.attempt))

    def dirty(self, entry: Entry) -> None:
        """The status is to be written: at most one patch per schedule and second."""
        known = entry.revision > entry.written
        entry.changed()
        if not known:
            self.emit(WriteStatus(entry.uid))

    def condition(
        self, entry: Entry, kind: str, status: str, reason: str, message: str = ""
    ) -> None:
        """Set a condition; its transition time moves only when its status does."""
        old = entry.conditions.get(kind)
        since = old.since if old and old.status == status else int(self.now)
        new = Condition(status, reason, message[:1024], since, entry.generation)
        if new != old:
            entry.conditions[kind] = new
            self.dirty(entry)

    def reindex(self, entry: Entry) -> None:
        """Its due times are others now: what an index built before says of it is void."""
        self.index_dirty = True
        entry.index_from = max(self.index.current.generation, self.index_building) + 1
