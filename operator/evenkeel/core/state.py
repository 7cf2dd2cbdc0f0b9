"""All that the scheduler knows, and the verbs that end, launch and write.

`scheduler.py` steps through it; `admit`, `adopt`, `take`, `late`, `creates`, `follow`, `placing`
and `answer` are its chapters. Nobody else holds a reference.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evenkeel.balance import LoadMap, Move, Plan, Skip
from evenkeel.core import history
from evenkeel.core.agenda import Agenda, Start
from evenkeel.core.effects import (
    Effect,
    Launch,
    LetGo,
    Log,
    Prepare,
    Recorded,
    Told,
    WriteStatus,
)
from evenkeel.core.entry import Entry, Run
from evenkeel.core.inbox import Inbox
from evenkeel.core.index import IndexCell, nothing_yet
from evenkeel.core.messages import Ask, ScheduleSeen
from evenkeel.core.missed import Span
from evenkeel.model import (
    Concurrency,
    Instant,
    JobFact,
    JobRef,
    RunId,
    RunState,
)
from evenkeel.resource import rfc3339
from evenkeel.resource.status import (
    RECENT_COUNT,
    WAITING_COUNT,
    Condition,
    Pause,
    Placed,
    RecentRun,
)
from evenkeel.settings import Settings

SHORT_TTL_S = 300
"""A Job with a shorter ttlSecondsAfterFinished may be gone before the mark is written."""


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
    early: dict[str, ScheduleSeen] = field(default_factory=dict)
    """Schedules seen before the Jobs were listed: what is due cannot be told without them."""
    early_ordered: bool = False
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
    ended: deque[tuple[float, RunId, RunState]] = field(default_factory=deque)
    ended_states: dict[RunId, RunState] = field(default_factory=dict)
    stopping: bool = False
    doubts_clock: bool = False
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
        seen = self.early.get(uid)
        return seen.schedule.generation if seen else 0

    def count_known(self) -> int:
        """How many those are."""
        return len(self.entries) + len(self.early)

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

    def tell(self, entry: Entry, reason: str, message: str, *, warning: bool = False) -> None:
        """A Kubernetes Event for the schedule's owner."""
        self.emit(Told(entry.uid, entry.ns, entry.name, warning, reason, message[:1024]))

    def again(self, run: Run, *, at: float) -> None:
        """Put a run's next try on the agenda."""
        run.retry_at = at
        self.agenda.put(at, Start(run.id, run.attempt))

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

    # --- runs -----------------------------------------------------------------------------------

    def open_run(self, entry: Entry, due: Instant, *, late: bool = False) -> Run:
        """Take a due time up: from here on it is a run that awaits a verdict."""
        run = Run(RunId(entry.uid, due), taken_at=max(self.now, due), late=late)
        entry.runs[run.id] = run
        entry.open[due] = None
        entry.advance(due)
        if due > self.now:
            self.prepare(entry, run)
        self.agenda.put(max(due, 0), Start(run.id, run.attempt))
        return run

    def reindex(self, entry: Entry) -> None:
        """Its due times are others now: what an index built before says of it is void."""
        self.index_dirty = True
        entry.index_from = max(self.index.current.generation, self.index_building) + 1

    def prepare(self, entry: Entry, run: Run) -> None:
        """Have the orchestrator of a run begin."""
        assert entry.schedule is not None
        run.prepared = True
        self.emit(Prepare(run.id, run.attempt, entry.schedule))

    def launch(self, entry: Entry, run: Run) -> None:
        """Nothing forbids it: create the Job of the run's present attempt."""
        schedule = entry.schedule
        assert schedule is not None
        if run.state is RunState.RETRYING:
            run.move(RunState.PENDING)
        run.creating = True
        run.reason = ""
        mark_first = schedule.ttl_s is not None and schedule.ttl_s < SHORT_TTL_S
        run.marked_first = mark_first
        if mark_first:
            entry.open.pop(run.id.due, None)
            self.dirty(entry)
        self.emit(Launch(run.id, run.attempt, schedule, mark_first))

    def wait(self, entry: Entry, run: Run, reason: str) -> None:
        """The run stands in `waiting`, and the mark may pass it; or not, where that is full."""
        run.reason = reason
        if len(entry.waiting) < WAITING_COUNT:
            entry.open.pop(run.id.due, None)
        self._remember(entry, run, run.state)
        self.dirty(entry)

    def running(self, entry: Entry, run: Run) -> None:
        """The Job exists."""
        if run.state is RunState.SCHEDULED:  # put back, and then created by another process
            run.move(RunState.PENDING)
        if run.prepared and not run.creating:  # by another process: what was rendered is waste
            self.emit(LetGo(run.id, run.attempt))
        run.creating = False
        run.prepared = False
        run.reason = ""
        run.move(RunState.RUNNING)
        self._let_mark_pass(entry, run.id.due)
        entry.last_schedule = max(entry.last_schedule or 0, run.id.due)
        self._remember(entry, run, RunState.RUNNING)
        self.dirty(entry)
        run.told = entry.revision

    def end(
        self,
        entry: Entry,
        run: Run,
        state: RunState,
        reason: str = "",
        *,
        message: str = "",
        finished: Instant | None = None,
    ) -> None:
        """The run's last step: counted, remembered, its place given to whoever waits."""
        if run.reason == "queued":
            entry.queue = deque(waiting for waiting in entry.queue if waiting != run.id)
        if run.creating:
            entry.doomed[run.id, run.attempt] = reason
            self.emit(LetGo(run.id, run.attempt))  # if it still waits in its lane, none is created
        elif run.prepared:
            self.emit(LetGo(run.id, run.attempt))
        run.move(state)
        run.reason, run.message = reason, message
        entry.runs.pop(run.id, None)
        self._let_mark_pass(entry, run.id.due)
        if run.id.due > entry.cursor:
            entry.decided.add(run.id.due)
        finished = int(self.now) if finished is None else finished
        self._remember(entry, run, state, finished=finished)
        self._count(entry, state, run.id.due, finished)
        history.keep_those_of(entry, run, state, finished)
        self.emit(
            Recorded(
                uid=entry.uid,
                key=entry.key,
                first=run.id.due,
                last=run.id.due,
                count=1,
                state=state,
                reason=reason,
                attempt=run.attempt,
                job=run.ref.name if run.ref else "",
                started=run.started,
                finished=finished,
            )
        )
        self.ended.append((self.now, run.id, state))
        self.ended_states[run.id] = state
        self.dirty(entry)

    def _let_mark_pass(self, entry: Entry, due: Instant) -> None:
        """A later due time has its Job or its end. Older ones that do not come to a verdict stand
        in `waiting`: above the mark only ten rows of `recent` would tell of this one."""
        entry.open.pop(due, None)
        older = [open for open in entry.open if open < due and open <= self.now]
        if older:
            for open in older[: max(0, WAITING_COUNT - len(entry.waiting))]:
                del entry.open[open]

    def end_span(self, entry: Entry, span: Span, state: RunState, reason: str) -> None:
        """Due times that were never runs of their own get one verdict as a whole."""
        entry.count(state, span.count)
        entry.last_result = state.value
        entry.remember(RecentRun(span.last, state, reason=reason), limit=RECENT_COUNT)
        self.emit(
            Recorded(
                uid=entry.uid,
                key=entry.key,
                first=span.first,
                last=span.last,
                count=span.count,
                state=state,
                reason=reason,
            )
        )
        self.dirty(entry)

    def _count(self, entry: Entry, state: RunState, due: Instant, finished: Instant) -> None:
        entry.count(state)
        entry.last_result = state.value
        if state is RunState.SUCCEEDED:
            entry.consecutive_failures = 0
            entry.last_success = max(entry.last_success or 0, finished)
        elif state in (RunState.FAILED, RunState.LOST):
            entry.consecutive_failures += 1
            entry.last_failure = max(entry.last_failure or 0, finished)
            self._pause_if_it_fails_too_often(entry, due)

    def _pause_if_it_fails_too_often(self, entry: Entry, due: Instant) -> None:
        limit = entry.schedule.pause_after_failures if entry.schedule else None
        if limit is None or entry.consecutive_failures < limit or entry.pause is not None:
            return
        reason = (
            f"{entry.consecutive_failures} runs in a row failed, the last due {rfc3339.show(due)}"
        )
        entry.pause = Pause(int(self.now), "evenkeel", reason)
        self.condition(entry, "Active", "False", "Paused", reason)
        self.index_dirty = True
        self.reweigh[entry.uid] = None
        self.tell(
            entry, "Paused", f"{reason}; edit the timing or the template to go on", warning=True
        )
        self.log("schedule paused", level="warning", schedule=entry.key, reason=reason)

    def _remember(
        self, entry: Entry, run: Run, state: RunState, *, finished: Instant | None = None
    ) -> None:
        entry.remember(
            RecentRun(
                run.id.due,
                state,
                started=run.started,
                finished=finished,
                reason=run.reason,
                attempt=run.attempt,
                job=run.ref.name if run.ref else "",
            ),
            limit=RECENT_COUNT,
        )

    def cancel(self, entry: Entry, run: Run, reason: str) -> None:
        """End a run whatever it is doing; its Job goes, its record stays."""
        ref = run.ref if run.state is RunState.RUNNING else None
        self.end(entry, run, RunState.CANCELLED, reason)
        if ref is not None:
            self.delete_job(entry, ref, reason, told=run.told)

    def delete_job(self, entry: Entry, ref: JobRef, why: str, *, told: int | None = None) -> None:
        """Delete it as soon as a stored status tells of its run."""
        self.effects += history.delete(entry, ref, why, told=told)

    def needs_places(self, entry: Entry) -> bool:
        """Whether runs of this schedule wait for one another."""
        return entry.schedule is not None and entry.schedule.concurrency is not Concurrency.ALLOW
