"""The scheduler: one owner of all scheduling state, five fixed steps, no I/O.

`loop.py` calls `step` with the time, carries the effects out and calls again when `wake_at` comes
or a message arrives. Same messages, same times: same effects, which is what the simulator lives on.

Guarantees: every due time of an accepted schedule becomes a run or part of a span exactly once per
process, and none is launched before its instant. Does not guarantee that a run has only one
launcher in the world: the Job's name does (see `resource.job`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenkeel.core import (
    admit,
    answer,
    creates,
    follow,
    history,
    messages,
    moving,
    placing,
    take,
    wallclock,
)
from evenkeel.core.agenda import DeletionDeadline, PendingDeadline, Start, UnwantedExpired
from evenkeel.core.document import say_whether_active, status_document
from evenkeel.core.effects import (
    BuildIndex,
    Effect,
    Observed,
    Stopped,
    Withdraw,
    WriteStatus,
)
from evenkeel.core.inbox import Inbox
from evenkeel.core.index import RunIndex
from evenkeel.core.messages import Document, Message
from evenkeel.core.state import State
from evenkeel.model import RunState
from evenkeel.settings import Settings
from evenkeel.when import columns, expand

MESSAGES_PER_STEP = 200
"""A storm of hints is read in bites of a few milliseconds, so that due runs go between them."""

SCHEDULES_PER_STEP = 20
"""Of messages about schedules: each may choose a phase, and costs as much as ten others. Two
hundred new intervals in one step made a run 0.1 s late."""

STARTS_PER_STEP = 100
"""A herd is started in bites too: its first creates wait for all the starts of a step."""

INDEX_PAUSE_S = 2.0
"""Edits in a row cause no more builds than this: what changed is looked at directly, as far as
preSchedule, and well before that has passed there is an index that knows it."""

INLINE_SCHEDULES = 20_000
"""More are expanded away from the loop: it would stand still for over 20 ms."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step wants done, and when the next is due at the latest."""

    effects: list[Effect]
    wake_at: float


class Scheduler:
    """State and `step`. Offer messages to `inbox`; ask for documents between steps."""

    def __init__(self, settings: Settings, *, stopwatch: Callable[[], float] = lambda: 0.0) -> None:
        self.inbox = Inbox(size=settings.inbox_size)
        self.state = State(settings, self.inbox, stopwatch=stopwatch)

    def step(self, now: float, monotonic: float) -> Step:
        """One iteration: always these five, in this order."""
        state = self.state
        state.effects = []
        wallclock.watch(state, now, monotonic)
        placing.move_on(state)

        # 1. Rebuild the index if needed.
        self._rebuild_index()
        # 2. Hand due runs to orchestrators.
        more_runs = self._hand_out_due_runs()
        # 3. Drain the inbox.
        self._drain_inbox()
        # 4. Forget what ended longer than grace ago.
        self._forget_ended()
        # 5. Update statistics.
        self._update_statistics()

        return Step(state.effects, self._wake_at(more_runs))

    def document(self, uid: str) -> tuple[str, str, Document, int] | None:
        """A schedule's namespace, name, status and revision, for the status writer; None: gone."""
        entry = self.state.entries.get(uid)
        if entry is None:
            return None
        say_whether_active(entry, now=self.state.now)
        document = status_document(entry, now=self.state.now)
        entry.sent = (entry.revision, entry.mark or 0)
        return entry.ns, entry.name, document, entry.revision

    def version(self, uid: str) -> str:
        """The resourceVersion at which a schedule was first seen."""
        entry = self.state.entries.get(uid)
        return entry.version if entry else ""

    # --- 1 --------------------------------------------------------------------------------------

    def _rebuild_index(self) -> None:
        state = self.state
        age_s = state.now - state.index_built_at
        wanted = age_s >= state.settings.index_rebuild_s or age_s < 0
        if not wanted and not (state.index_dirty and age_s >= self._index_pause_s):
            return
        if state.doubts_clock or state.index_building:
            return
        entries = sorted(
            (entry for entry in state.entries.values() if not entry.halted and entry.dues),
            key=lambda entry: (entry.ns, entry.name),
        )
        origin = math.floor(state.now - state.settings.grace_s)
        end = math.floor(state.now + state.settings.lookahead_s) + 1
        generation = state.index.current.generation + 1
        dues = [entry.dues for entry in entries if entry.dues is not None]
        uids = [entry.uid for entry in entries]
        state.index_dirty = False
        state.index_built_at = state.now
        state.index_began = state.stopwatch()
        build = BuildIndex(generation, origin, end, tuple(uids), tuple(dues))
        if len(entries) > INLINE_SCHEDULES:
            state.index_building = generation
            state.emit(build)
        else:
            self._index_built(make_index(build))

    @property
    def _index_pause_s(self) -> float:
        return min(INDEX_PAUSE_S, self.state.settings.pre_schedule_s / 2)

    def _index_built(self, message: messages.IndexBuilt) -> None:
        self.state.index_building = 0
        self.state.index.swap(message.index)
        self.state.emit(Observed("index_build", self.state.stopwatch() - self.state.index_began))

    # --- 2 --------------------------------------------------------------------------------------

    def _hand_out_due_runs(self) -> bool:
        """True when more are due than one step takes."""
        state = self.state
        if state.stopping or not state.can_tell_what_is_due:
            return False
        self._take_up_due_runs()
        return self._work_off_agenda()

    def _take_up_due_runs(self) -> None:
        """Runs of [now - grace, now + preSchedule): a stall shorter than grace loses none, and
        what is older is found from the schedule's own cursor."""
        state, index = self.state, self.state.index.current
        start = math.ceil(state.now - state.settings.grace_s)
        end = math.floor(state.now + state.settings.pre_schedule_s) + 1
        if start > state.looked_until:  # stalled, perhaps before it looked for the first time
            for entry in state.entries.values():
                if not entry.halted:
                    take.catch_up(state, entry)
        if index.generation == state.looked_generation and state.looked_until <= end:
            start = max(start, state.looked_until)
        for due, ordinal in index.query(start, end):
            known = state.entries.get(index.uids[ordinal])
            if known is not None and index.generation >= known.index_from:
                take.offer(state, known, due)
        state.looked_until = end
        state.looked_generation = index.generation

    def _work_off_agenda(self) -> bool:
        state = self.state
        for _ in range(STARTS_PER_STEP):
            if state.agenda.next_at > state.now:
                return False
            match state.agenda.pop():
                case Start() as task:
                    take.start(state, task)
                case PendingDeadline() as task:
                    follow.pending_deadline(state, task)
                case UnwantedExpired() as task:
                    creates.unwanted_expired(state, task)
                case DeletionDeadline() as task:
                    follow.deletion_deadline(state, task)
        return state.agenda.next_at <= state.now

    # --- 3 --------------------------------------------------------------------------------------

    def _drain_inbox(self) -> None:
        state = self.state
        left = MESSAGES_PER_STEP
        while left > 0 and (taken := self.inbox.drain(1)):
            for message in taken:
                _HANDLERS[type(message)](self, message)
                heavy = isinstance(message, messages.ScheduleSeen)
                left -= MESSAGES_PER_STEP // SCHEDULES_PER_STEP if heavy else 1
        if state.can_tell_what_is_due:
            for uid in admit.next_unadmitted(state, SCHEDULES_PER_STEP):
                admit.admit_safely(state, state.unadmitted.pop(uid)[1])
        moving.go_on(state)
        placing.load(state)

    def _shutdown(self) -> None:
        state = self.state
        moving.finish(state)
        state.stopping = True
        for entry in state.entries.values():
            for run in entry.runs.values():
                if run.prepared and not run.creating:
                    state.emit(Withdraw(run.id, run.attempt))
        state.emit(Stopped())

    def _status_written(self, message: messages.StatusWritten) -> None:
        entry = self.state.entries.get(message.uid)
        if entry is not None:
            entry.written = max(entry.written, message.revision)
            revision, mark = entry.sent
            if message.revision >= revision:
                entry.stored_mark = mark
            if entry.revision > entry.written:
                self.state.emit(WriteStatus(entry.uid))
            self.state.effects += history.clean(entry, self.state.now)

    def _template_checked(self, message: messages.TemplateChecked) -> None:
        entry = self.state.entries.get(message.uid)
        if entry is None or entry.template_hash != message.template_hash:
            return
        status = {True: "True", False: "False", None: "Unknown"}[message.accepted]
        self.state.condition(entry, "TemplateAccepted", status, message.reason, message.message)
        if message.accepted is False:
            self.state.event(entry, "TemplateRefused", message.message, warning=True)
            # Not the sentence: it quotes the template.
            self.state.log("template refused", level="warning", schedule=entry.key)

    # --- 4, 5 -----------------------------------------------------------------------------------

    def _forget_ended(self) -> None:
        state = self.state
        while state.ended and state.ended[0][0] <= state.now - state.settings.grace_s:
            _, run, _ = state.ended.popleft()
            state.ended_states.pop(run, None)
        admit.forget_gone(state)

    def _update_statistics(self) -> None:
        state, numbers = self.state, self.state.statistics
        if state.now - numbers.counted_at >= state.settings.loop_interval_s:
            numbers.counted_at = state.now
            runs = [run for entry in state.entries.values() for run in entry.runs.values()]
            numbers.running = sum(run.state is RunState.RUNNING for run in runs)
            numbers.waiting = sum(run.waits for run in runs)
        numbers.schedules = len(state.entries)
        numbers.index_runs = len(state.index.current)

    def _wake_at(self, more_runs: bool) -> float:
        state = self.state
        if more_runs or len(self.inbox):
            return state.now
        if state.can_tell_what_is_due and (state.unadmitted or state.moving):
            return state.now
        latest = state.now + state.settings.loop_interval_s
        if state.stopping or not state.can_tell_what_is_due:
            return latest
        index = state.index.current
        following = index.query(state.looked_until, index.end).peek()
        if following is not None:  # however rarely the loop wakes by itself
            latest = min(latest, following[0] - state.settings.pre_schedule_s)
        if state.index_dirty and not state.index_building:
            latest = min(latest, state.index_built_at + self._index_pause_s)
        return min(latest, state.agenda.next_at)

    @property
    def ready(self) -> bool:
        """All schedules that were listed are known, their past is settled, an index stands."""
        state = self.state
        if not state.jobs_listed or state.listed_uids is None or state.unadmitted:
            return False
        return state.index.current.generation > 0 and all(map(state.knows, state.listed_uids))


def make_index(build: BuildIndex) -> messages.IndexBuilt:
    """Expand and sort. Pure, and safe on another thread: it reads only what the effect carries."""
    expansion = expand(columns(build.dues), build.origin, build.end)
    index = RunIndex(
        generation=build.generation,
        origin=build.origin,
        end=build.end,
        uids=build.uids,
        second=expansion.second,
        ordinal=expansion.ordinal,
    )
    return messages.IndexBuilt(index)


_HANDLERS: dict[type[Message], Callable[[Scheduler, Any], None]] = {
    messages.ScheduleSeen: lambda self, message: admit.admit_safely(self.state, message),
    messages.ScheduleGone: lambda self, message: admit.schedule_gone(self.state, message),
    messages.SchedulesListed: lambda self, message: admit.schedules_listed(self.state, message),
    messages.SchedulesChanged: lambda self, _: setattr(self.state, "index_dirty", True),
    messages.IndexBuilt: Scheduler._index_built,
    messages.JobSeen: lambda self, message: follow.job_seen(self.state, message),
    messages.JobGone: lambda self, message: follow.job_gone(self.state, message),
    messages.JobsListed: lambda self, message: follow.jobs_listed(self.state, message),
    messages.CreateResult: lambda self, message: creates.launched(self.state, message),
    messages.Unanswered: lambda self, message: creates.unanswered(self.state, message),
    messages.PutBack: lambda self, message: creates.put_back(self.state, message),
    messages.PodsLookedAt: lambda self, message: follow.pods_looked_at(self.state, message),
    messages.TemplateChecked: Scheduler._template_checked,
    messages.StatusWritten: Scheduler._status_written,
    messages.TimeConfirmed: lambda self, message: wallclock.confirmed(self.state, message),
    messages.CancelRun: lambda self, message: answer.cancel_run(self.state, message),
    messages.GetRun: lambda self, message: answer.get_run(self.state, message),
    messages.GetActiveRuns: lambda self, message: answer.get_active_runs(self.state, message),
    messages.GetSchedule: lambda self, message: answer.get_schedule(self.state, message),
    messages.GetDistribution: lambda self, message: moving.distribution(self.state, message),
    messages.PreviewRebalance: lambda self, message: moving.preview(self.state, message),
    messages.Rebalance: lambda self, message: moving.rebalance(self.state, message),
    messages.RebalancePlanned: lambda self, message: moving.planned(self.state, message),
    messages.RebalanceConfirmed: lambda self, message: moving.confirmed(self.state, message),
    messages.Shutdown: lambda self, _: self._shutdown(),
}
