"""The scheduler: one owner of all scheduling state, a fixed cycle of steps, no I/O.

`loop.py` calls `step` with the time, carries the effects out, and calls again when `wake_at` comes
or a message arrives. The same messages at the same times bring the same effects in the same order:
the simulator lives on that.

Guarantees: every due time of an accepted schedule becomes a run or part of a span exactly once per
process, and none is launched before its instant. Does not guarantee that a run has only one
launcher in the world: the Job's name does (see `resource.job_name`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenkeel.core import (
    admit,
    answer,
    arrivals,
    messages,
    moving,
    placing,
    requests,
    route,
    wallclock,
)
from evenkeel.core.agenda import OfRequest, ReadAgain
from evenkeel.core.effects import BuildIndex, Effect, Observed, ScheduleKnown, Stopped, Withdraw
from evenkeel.core.inbox import Inbox
from evenkeel.core.index import RunIndex
from evenkeel.core.messages import Document, Message
from evenkeel.core.state import State
from evenkeel.model import RequestState, RunId
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
        self._index_pause_s = min(INDEX_PAUSE_S, settings.pre_schedule_s / 2)

    def step(self, now: float, monotonic: float) -> Step:
        """One iteration of the cycle; five of its steps are the specification's."""
        state = self.state

        # 0. Look at the clock.
        wallclock.watch(state, now, monotonic)
        placing.show_new_day(state)
        # 1. Rebuild the index if needed.
        self._rebuild_index()
        # 2. Hand due runs to orchestrators.
        more_runs = self._hand_out_due_runs()
        # 3. Drain the inbox.
        self._drain_inbox()
        # 3a. Follow up on every request and schedule that was touched: which schedule is meant,
        # phase, due times, free places, requested runs, load.
        requests.follow_up(state)
        # 3b. Move a bite of the rebalance under way.
        if state.moving is not None:
            moving.go_on(state)
        # 3c. Improve the phases of schedules that arrived together, in bites too.
        arrivals.go_on(state)
        # 4. Forget what ended longer than grace ago.
        self._forget_ended()
        # 5. Update statistics.
        self._update_statistics()

        effects, state.effects = state.effects, []
        return Step(effects, self._wake_at(more_runs))

    def document(self, uid: str) -> tuple[str, str, Document, int] | None:
        """A schedule's namespace, name, status and revision, for the status writer; None: gone.

        It is asked for between two steps; what a surprise here causes comes with the next one."""
        return route.document(self.state, uid)

    def known(self, uid: str) -> ScheduleKnown | None:
        """A schedule as its stored status tells of it, for a ledger that was lost or has lost rows;
        None: there is no such schedule, or nothing is known of it yet."""
        return route.known(self.state, uid)

    def launched(self) -> list[tuple[RunId, int]]:
        """The runs whose Job exists, with their attempts."""
        runs = (run for entry in self.state.entries.values() for run in entry.runs.values())
        return [(run.id, run.attempt) for run in runs if run.has_job]

    def request_kinds(self) -> frozenset[str] | None:
        """The kinds of all requests there are; None: not all are known that there were at the
        start."""
        return requests.kinds(self.state)

    def version(self, uid: str) -> str:
        """The resourceVersion at which a schedule was first seen."""
        entry = self.state.entries.get(uid)
        return entry.storing.version if entry else ""

    def namespace(self, uid: str) -> str:
        """A schedule's namespace; empty: there is no such schedule."""
        known = self.state.entries.get(uid) or self.state.closed.get(uid)
        return known.ns if known else ""

    def request_document(self, uid: str) -> tuple[str, str, Document, int] | None:
        """A request's namespace, name, status and revision; None: gone."""
        return requests.document(self.state, uid)

    def request_version(self, uid: str) -> str:
        """The resourceVersion at which a request was first seen."""
        request = self.state.requests.get(uid)
        return request.storing.version if request else ""

    def request_namespace(self, uid: str) -> str:
        """A request's namespace; empty: there is no such request."""
        request = self.state.requests.get(uid)
        return request.ns if request else ""

    def requests_by_state(self) -> dict[RequestState, int]:
        """Every state, and how many requests are in it."""
        return requests.by_state(self.state)

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are. What is gone must not be counted in here for
        long: a number that only grows is a leak."""
        state = self.state
        entries = state.entries.values()
        runs = [run for entry in entries for run in entry.runs.values()]
        return {
            "schedules": len(state.entries),
            "schedules not admitted": len(state.unadmitted),
            "requests": len(state.requests),
            "requests in line": sum(map(len, state.requests_in_line.values())),
            "requests under way": sum(map(len, state.requests_under_way.values())),
            "unfinished requests": sum(len(entry.unfinished) for entry in entries),
            "closed requests": len(state.requests_closed),
            "unclaimed Jobs": sum(
                len(facts) for entry in entries for facts in entry.unclaimed.values()
            ),
            "Jobs without a schedule": sum(map(len, state.job_facts.values())),
            "runs": len(runs),
            "prepared runs": sum(run.prepared for run in runs),
            "queued runs": sum(len(entry.queue) for entry in entries),
            "ended runs": len(state.ended),
            "schedules that arrived together": len(state.arrivals.members),
            "moves of a set": len(state.arrivals.ahead),
            "agenda": len(state.agenda),
            "unwanted creates": sum(len(entry.unwanted) for entry in entries),
            "decided due times": sum(len(entry.decided) for entry in entries),
            "finished Jobs": sum(len(entry.finished_jobs) for entry in entries),
            # Those whose run is told of by a stored status: nothing is left to wait for.
            "Jobs to delete": sum(
                waiting.is_due for entry in entries for waiting in entry.to_delete
            ),
        }

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
            (entry for entry in state.entries.values() if not entry.halted),
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
        if start > state.looked_until and state.entries:  # stalled
            route.catch_up(state)
        if index.generation == state.looked_generation and state.looked_until <= end:
            start = max(start, state.looked_until)
        for instant, ordinal in index.query(start, end):
            uid = index.uids[ordinal]
            if index.generation >= state.index_from.get(uid, 0):
                route.offer(state, uid, instant)
        state.looked_until = end
        state.looked_generation = index.generation

    def _work_off_agenda(self) -> bool:
        state = self.state
        for _ in range(STARTS_PER_STEP):
            task = state.agenda.pop(state.now, state.monotonic)
            if task is None:
                return False
            if isinstance(task, ReadAgain):
                admit.read_again(state, task)
            elif isinstance(task, OfRequest):
                requests.task(state, task)
            else:
                route.task(state, task)
        return state.agenda.wait_s(state.now, state.monotonic) <= 0

    # --- 3 --------------------------------------------------------------------------------------

    def _drain_inbox(self) -> None:
        state = self.state
        left = MESSAGES_PER_STEP
        while left > 0 and (taken := self.inbox.drain(1)):
            for message in taken:
                if type(message) in route.OF_ONE_SCHEDULE:
                    route.message(state, message)
                else:
                    _OF_ALL[type(message)](self, message)
                heavy = isinstance(message, messages.ScheduleSeen)
                left -= MESSAGES_PER_STEP // SCHEDULES_PER_STEP if heavy else 1
        if state.unadmitted and state.can_tell_what_is_due:
            admit.admit_waiting(state, SCHEDULES_PER_STEP)

    def _shutdown(self) -> None:
        state = self.state
        moving.finish(state)
        state.stopping = True
        for entry in state.entries.values():
            for run in entry.runs.values():
                if run.prepared and not run.creating:
                    state.emit(Withdraw(run.id, run.attempt))
        state.emit(Stopped())

    # --- 4, 5 -----------------------------------------------------------------------------------

    def _forget_ended(self) -> None:
        state = self.state
        while state.ended and state.ended[0][0] <= state.monotonic - state.settings.grace_s:
            _, run = state.ended.popleft()
            state.ended_states.pop(run, None)
        state.forget_gone()

    def _update_statistics(self) -> None:
        state, numbers = self.state, self.state.statistics
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
        wait_s = min(state.agenda.wait_s(state.now, state.monotonic), arrivals.wait_s(state))
        return min(latest, state.now + wait_s)

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


_OF_ALL: dict[type[Message], Callable[[Scheduler, Any], None]] = {
    messages.ScheduleSeen: lambda self, message: admit.schedule_seen(self.state, message),
    messages.ScheduleGone: lambda self, message: admit.schedule_gone(self.state, message),
    messages.ResourceRemoved: lambda self, _: admit.resource_removed(self.state),
    messages.ScheduleRead: lambda self, message: admit.schedule_read(self.state, message),
    messages.SchedulesListed: lambda self, message: admit.schedules_listed(self.state, message),
    messages.RequestSeen: lambda self, message: requests.seen(self.state, message),
    messages.RequestGone: lambda self, message: requests.gone(self.state, message),
    messages.RequestsListed: lambda self, message: requests.listed(self.state, message),
    messages.RequestWritten: lambda self, message: requests.written(self.state, message),
    messages.DuesListed: lambda self, message: requests.dues_listed(self.state, message),
    messages.RunsTold: lambda self, message: requests.runs_told(self.state, message),
    messages.SchedulesChanged: lambda self, _: setattr(self.state, "index_dirty", True),
    messages.IndexBuilt: Scheduler._index_built,
    messages.JobSeen: lambda self, message: route.job_seen(self.state, message),
    messages.JobGone: lambda self, message: route.job_gone(self.state, message),
    messages.JobsListed: lambda self, message: admit.jobs_listed(self.state, message),
    messages.JobsSilent: lambda self, message: admit.jobs_silent(self.state, message),
    messages.PhasesRead: lambda self, message: placing.phases_read(self.state, message),
    messages.TimeConfirmed: lambda self, message: wallclock.confirmed(self.state, message),
    messages.CancelRun: lambda self, message: answer.cancel_run(self.state, message),
    messages.GetRun: lambda self, message: answer.get_run(self.state, message),
    messages.GetActiveRuns: lambda self, message: answer.get_active_runs(self.state, message),
    messages.GetSchedule: lambda self, message: answer.get_schedule(self.state, message),
    messages.GetDistribution: lambda self, message: moving.distribution(self.state, message),
    messages.PreviewRebalance: lambda self, message: moving.preview(self.state, message),
    messages.Rebalance: lambda self, message: moving.rebalance(self.state, message),
    messages.SetImproved: lambda self, message: arrivals.improved(self.state, message),
    messages.RebalancePlanned: lambda self, message: moving.planned(self.state, message),
    messages.RebalanceConfirmed: lambda self, message: moving.confirmed(self.state, message),
    messages.Shutdown: lambda self, _: self._shutdown(),
}
"""Messages about all schedules, or about which there are; the others `route` knows."""
