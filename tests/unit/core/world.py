"""A small world around the scheduler core, so that tests read as sentences.

    world = World()                            # 2026-03-02, a Monday, 10:00:00 UTC
    world.see(cron("*/5 * * * *"))
    world.run_until("10:05")
    assert world.started("report") == ["10:05:00"]

The world is what the shell and the cluster are to the core, without I/O: it creates Jobs under
their names (the name is the lock), deletes them, stores statuses as JSON, and steps the scheduler
exactly at its wake_at. `crash` throws the scheduler away and starts another one on what is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from tests.builders import clock, instant

from evenkeel import rfc3339
from evenkeel.core import effects, messages
from evenkeel.core.schedule.run import Stage
from evenkeel.core.scheduler import Scheduler
from evenkeel.loop import OFFLOADED
from evenkeel.model import (
    Cause,
    Instant,
    JobFact,
    JobRef,
    JobState,
    Rejection,
    Request,
    RunId,
    RunState,
    Schedule,
    Verdict,
    kind_of_request,
)
from evenkeel.reasons import ConditionReason
from evenkeel.resource.job import job_name
from evenkeel.resource.record import EMPTY, Memory
from evenkeel.resource.request_status import parse_request
from evenkeel.resource.status import parse
from evenkeel.settings import Settings

STEPS_AT_ONE_INSTANT = 500
FOR_LEDGER = (
    effects.ScheduleKnown,
    effects.TimingBegan,
    effects.RunWaits,
    effects.SpanOpened,
    effects.SpanClosed,
    effects.StatusTold,
    effects.ScheduleEnded,
    effects.RequestTold,
    effects.RequestKnown,
    effects.RequestClosed,
)
"""More would be a loop that never sleeps."""

Answering = Callable[[effects.Launch], Verdict | None]


def created(_: effects.Launch) -> Verdict | None:
    """What the API server says of every create unless a test has it say something else."""
    return Verdict.CREATED


@dataclass
class World:
    """One scheduler, its clock, and a cluster that does as it is told."""

    settings: Settings = field(default_factory=Settings)
    now: float = field(default_factory=lambda: float(instant("10:00")))
    monotonic: float = 1000.0
    answering: Answering = created
    explains: bool = True
    """Whether the Pods of a Job that failed tell at once why."""
    cause: Cause | None = None
    """What they tell."""
    proves: bool = True
    """Whether each dry run of a template is accepted at once."""
    writes: bool = True
    """Whether statuses get stored at once."""
    schedules: dict[str, Schedule | Rejection] = field(default_factory=dict)
    requests: dict[str, Request | Rejection] = field(default_factory=dict)
    request_statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By uid, as stored."""
    requests_stored: dict[str, int] = field(default_factory=dict)
    writes_requests: bool = True
    """Whether statuses of requests get stored at once."""
    requests_deleted: list[effects.DeleteRequest] = field(default_factory=list)
    requests_ended: list[effects.RequestEnded] = field(default_factory=list)
    requests_made: list[effects.MakeRequest] = field(default_factory=list)
    makes_requests: bool | None = True
    """What the API server says of a request that a trigger makes; None: nothing."""
    runs_asked: list[effects.AskRuns] = field(default_factory=list)
    ledger_since: Instant = 0
    ledger_unknown: tuple[tuple[Instant, Instant], ...] = ()
    jobs: dict[str, JobFact] = field(default_factory=dict)
    """By name. This is what exists."""
    creations: list[tuple[RunId, int, float]] = field(default_factory=list)
    """Every Job that ever was created."""
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By uid, as stored."""
    stored: dict[str, int] = field(default_factory=dict)
    """By uid, the revision that this process has stored."""
    marks: dict[str, list[Instant]] = field(default_factory=dict)
    in_flight: list[effects.Launch] = field(default_factory=list)
    """Creates that nobody has answered yet."""
    prepared: list[effects.Prepare] = field(default_factory=list)
    launches: list[effects.Launch] = field(default_factory=list)
    withdraw: list[effects.Withdraw] = field(default_factory=list)
    deleted: list[effects.DeleteJob] = field(default_factory=list)
    looked_at: list[effects.LookAtPods] = field(default_factory=list)
    """Jobs of which no Pod has started."""
    asked_why: list[effects.LookAtPods] = field(default_factory=list)
    """Jobs that failed."""
    asked_for: list[effects.FindJob] = field(default_factory=list)
    checks: list[effects.CheckTemplate] = field(default_factory=list)
    asked: list[effects.WriteStatus] = field(default_factory=list)
    rows: list[effects.RunEnded | effects.SpanEnded] = field(default_factory=list)
    began: list[effects.RunBegan] = field(default_factory=list)
    accounts: list[Any] = field(default_factory=list)
    """What only the ledger is told."""
    ledger: dict[RunId, RunState] = field(default_factory=dict)
    has_ledger: bool = True
    ledger_answers: bool = True
    told: list[effects.KubeEvent] = field(default_factory=list)
    observed: list[effects.Observed] = field(default_factory=list)
    delayed: list[effects.RunDelayed] = field(default_factory=list)
    logged: list[effects.Log] = field(default_factory=list)
    time_asked: int = 0
    clock_is_confirmed: bool = False
    """Whether the API server, asked for the time, says the same."""
    surprises: bool = False
    """Whether a handler that raises is what the test is about."""
    stopped: bool = False
    answers: dict[object, Any] = field(default_factory=dict)
    """By who asked."""

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.settings)
        self.wake_at = self.now
        self.jobs_listed()
        self.schedules_listed()
        self.requests_listed()

    # --- what the scheduler is told -----------------------------------------------------------

    def see(self, seen: Schedule | Rejection, memory: Memory | None = None) -> World:
        """The watch tells of a schedule; its memory is its stored status."""
        self.schedules[seen.uid] = seen
        if memory is None:
            memory = parse(self.statuses[seen.uid]) if seen.uid in self.statuses else EMPTY
        self.scheduler.inbox.hint(seen.uid, messages.ScheduleSeen(seen, memory))
        self.settle()
        return self

    def gone(self, seen: Schedule) -> None:
        """The watch tells of a deletion; the garbage collector takes the Jobs."""
        self.schedules.pop(seen.uid, None)
        self.statuses.pop(seen.uid, None)
        self.jobs = {name: fact for name, fact in self.jobs.items() if fact.run.uid != seen.uid}
        self.scheduler.inbox.hint(seen.uid, messages.ScheduleGone(seen.uid))
        self.settle()

    def want(self, request: Request | Rejection) -> World:
        """The watch tells of a request; its memory is its stored status."""
        self.requests[request.uid] = request
        memory = parse_request(self.request_statuses.get(request.uid))
        seen = messages.RequestSeen(request, memory)
        self.scheduler.inbox.hint(request.uid, seen)
        self.settle()
        return self

    def request_gone(self, request: Request) -> None:
        """The watch tells that a request was deleted."""
        self.requests.pop(request.uid, None)
        self.request_statuses.pop(request.uid, None)
        self.scheduler.inbox.hint(request.uid, messages.RequestGone(request.uid))
        self.settle()

    def requests_listed(self) -> None:
        """The pruner lists all requests there are."""
        uids = frozenset(self.requests)
        self.scheduler.inbox.hint("requests", messages.RequestsListed(uids, self.monotonic))

    def jobs_listed(self) -> None:
        """The watch lists all Jobs there are."""
        listed = messages.JobsListed(tuple(self.jobs.values()), int(self.now))
        self.scheduler.inbox.hint(("jobs", ""), listed)

    def schedules_listed(self) -> None:
        """The pruner lists all schedules there are."""
        uids = frozenset(self.schedules)
        self.scheduler.inbox.hint("list", messages.SchedulesListed(uids, self.monotonic))

    def tell(self, message: messages.Message) -> World:
        """Anything else."""
        assert self.scheduler.inbox.offer(message)
        self.settle()
        return self

    def ask(self, question: Callable[[object], messages.Message]) -> Any:
        """A question, and its answer."""
        asked = object()
        self.tell(question(asked))
        return self.answers[asked]

    def cancel(self, of: Schedule, due: str) -> RunState | None:
        """Somebody ends a run."""
        run = RunId(of.uid, instant(due))
        state: RunState | None = self.ask(lambda asked: messages.CancelRun(asked, run))
        return state

    # --- what happens to Jobs -----------------------------------------------------------------

    def job(self, of: Schedule, due: str, attempt: int = 1) -> JobFact:
        """The Job of a run; KeyError when there is none."""
        return self.jobs[job_name(of.name, RunId(of.uid, instant(due)), attempt)]

    def change(self, fact: JobFact, **changes: Any) -> None:
        """A Job changes, and the watch tells."""
        fact = self.jobs[fact.ref.name] = replace(fact, **changes)
        self.scheduler.inbox.hint(fact.ref.uid, messages.JobSeen(fact))
        self.settle()

    def succeed(self, of: Schedule, due: str, attempt: int = 1) -> None:
        """A Job completes now."""
        fact = self.job(of, due, attempt)
        self.change(fact, state=JobState.SUCCEEDED, finished=int(self.now))

    def fail(self, of: Schedule, due: str, attempt: int = 1) -> None:
        """A Job fails now."""
        fact = self.job(of, due, attempt)
        changes = {"state": JobState.FAILED, "reason": "BackoffLimitExceeded"}
        self.change(fact, finished=int(self.now), **changes)

    def remove(self, fact: JobFact, *, told: bool = True) -> None:
        """Somebody deletes a Job."""
        del self.jobs[fact.ref.name]
        if told:
            self.scheduler.inbox.hint(fact.ref.uid, messages.JobGone(fact))
            self.settle()

    def answer(self, launch: effects.Launch, verdict: Verdict, **more: Any) -> None:
        """The create of a run is answered at last."""
        self.in_flight.remove(launch)
        self._answer(launch, verdict, **more)
        self.settle()

    # --- time ---------------------------------------------------------------------------------

    def at(self, when: str) -> World:
        """Go on until then."""
        return self.run_until(when)

    def run_until(self, when: str | float) -> World:
        """Step exactly whenever the scheduler wants, until then."""
        until = float(instant(when)) if isinstance(when, str) else when
        self.settle()
        while self.now < until:
            moment = min(max(self.wake_at, self.now), until)
            assert moment > self.now, "a scheduler that does not sleep"
            self.monotonic += moment - self.now
            self.now = moment
            self.settle()
        return self

    def stall_until(self, when: str) -> World:
        """Time passes and nobody steps: a stalled loop, a suspended machine."""
        self.monotonic += instant(when) - self.now
        self.now = float(instant(when))
        return self.run_until(self.now)

    def set_clock(self, when: str) -> World:
        """The wall clock is set; no time passes."""
        self.now = float(instant(when))
        return self

    def step(self) -> list[effects.Effect]:
        """One step, and what it wants done."""
        step = self.scheduler.step(self.now, self.monotonic)
        self.wake_at = step.wake_at
        for effect in step.effects:
            self._carry_out(effect)
        return step.effects

    def settle(self) -> None:
        """Step until nothing is left to do at this instant."""
        for _ in range(STEPS_AT_ONE_INSTANT):
            self.step()
            if self.wake_at > self.now and not len(self.scheduler.inbox):
                return
        raise AssertionError("the scheduler never comes to rest")

    def crash(self, *, for_s: float = 0) -> World:
        """The process dies, and another one starts on what the cluster has stored."""
        self.now += for_s
        self.monotonic = 50.0
        self.in_flight.clear()
        self.stored.clear()
        self.requests_stored.clear()
        self.scheduler = Scheduler(self.settings)
        self.stopped = False
        self.wake_at = self.now
        for seen in list(self.schedules.values()):
            memory = parse(self.statuses.get(seen.uid))
            self.scheduler.inbox.hint(seen.uid, messages.ScheduleSeen(seen, memory))
        for request in list(self.requests.values()):
            stored = parse_request(self.request_statuses.get(request.uid))
            self.scheduler.inbox.hint(request.uid, messages.RequestSeen(request, stored))
        self.jobs_listed()
        self.schedules_listed()
        self.requests_listed()
        self.settle()
        return self

    # --- what became of requests --------------------------------------------------------------

    def request_status(self, request: Request) -> dict[str, Any]:
        """The stored status of a request."""
        return self.request_statuses[request.uid]

    def request_state(self, request: Request) -> tuple[str, str]:
        """Its state, and the reason of the condition that ended it or that Ready has."""
        status = self.request_status(request)
        rows = {row["type"]: row for row in status["conditions"]}
        ends = [rows[kind] for kind in ("Complete", "Failed") if kind in rows]
        assert len(ends) <= 1, "more than one end"
        return status["state"], (ends or [rows["Ready"]])[0]["reason"]

    def requested(self, request: Request, *, attempt: int = 1) -> list[str]:
        """Due times of the Jobs that a request has got, in the order of their creation."""
        kind = kind_of_request(request.uid)
        return [
            clock(run.due)
            for run, number, _ in self.creations
            if run.kind == kind and number == attempt
        ]

    def requested_job(self, request: Request, due: str) -> JobFact:
        """The Job of a requested run; KeyError when there is none."""
        run = RunId(f"uid-{request.schedule}", instant(due), kind_of_request(request.uid))
        return self.jobs[job_name(request.schedule, run)]

    def end_requested(self, request: Request, due: str, *, ok: bool = True) -> None:
        """The Job of a requested run ends now."""
        state = JobState.SUCCEEDED if ok else JobState.FAILED
        fact = self.requested_job(request, due)
        self.change(fact, state=state, finished=int(self.now))

    # --- what became of it --------------------------------------------------------------------

    def status(self, of: Schedule | str = "report") -> dict[str, Any]:
        """The stored status."""
        return self.statuses[f"uid-{of}" if isinstance(of, str) else of.uid]

    def condition(self, kind: str, of: str = "report") -> tuple[str, str]:
        """A condition's status and reason."""
        rows = {row["type"]: row for row in self.status(of)["conditions"]}
        return rows[kind]["status"], rows[kind]["reason"]

    def counts(self, of: str = "report") -> dict[str, int]:
        """Ends counted so far; those of zero left out."""
        return {name: count for name, count in self.status(of)["counts"].items() if count}

    def started(self, of: str = "report") -> list[str]:
        """Due times whose first attempt was created, in the order of their creation."""
        return [
            clock(run.due)
            for run, attempt, _ in self.creations
            if run.uid == f"uid-{of}" and attempt == 1
        ]

    def ends(self, of: str = "report") -> list[tuple[str, str, str]]:
        """(due, state, reason) of every run that ended; a span is `first..last xcount`."""
        return [
            (_when(row), row.state.value, str(row.reason or ""))
            for row in self.rows
            if _uid(row) == f"uid-{of}"
        ]

    def verdicts(self, of: Schedule | str = "report") -> int:
        """How many due times have got one."""
        uid = f"uid-{of}" if isinstance(of, str) else of.uid
        return sum(_count(row) for row in self.rows if _uid(row) == uid)

    def alive(self, of: str = "report") -> dict[str, str]:
        """Runs that are not at their end: due -> state, or what they wait for."""
        entry = self.scheduler.state.entries[f"uid-{of}"]
        return {
            clock(run.id.due): run.stage.value
            if run.stage in (Stage.QUEUED, Stage.HELD)
            else run.state.value
            for run in sorted(entry.runs.values(), key=lambda run: run.id.due)
        }

    def names_created(self) -> list[str]:
        """Of all Jobs ever created."""
        names = {seen.uid: seen.name for seen in self.schedules.values()}
        return [job_name(names[run.uid], run, attempt) for run, attempt, _ in self.creations]

    def said(self, reason: str) -> list[str]:
        """Events with that reason."""
        return [told.message for told in self.told if told.reason == reason]

    def lateness(self) -> list[float]:
        """What was observed of our precision."""
        return [each.value for each in self.observed if each.metric == "lateness"]

    def delays(self) -> list[tuple[float, str]]:
        """How long after its due time each run was created, and what delayed it first."""
        return [(each.delay_s, each.cause) for each in self.delayed]

    # --- inside -------------------------------------------------------------------------------

    def _carry_out(self, effect: effects.Effect) -> None:
        kept: dict[type, list[Any]] = {
            effects.Prepare: self.prepared,
            effects.Withdraw: self.withdraw,
            effects.FindJob: self.asked_for,
            effects.CheckTemplate: self.checks,
            effects.WriteStatus: self.asked,
            effects.RunEnded: self.rows,
            effects.SpanEnded: self.rows,
            effects.RunBegan: self.began,
            effects.AskRuns: self.runs_asked,
            effects.DeleteRequest: self.requests_deleted,
            effects.RequestEnded: self.requests_ended,
            effects.MakeRequest: self.requests_made,
            **dict.fromkeys(FOR_LEDGER, self.accounts),
            effects.KubeEvent: self.told,
            effects.Observed: self.observed,
            effects.RunDelayed: self.delayed,
            effects.Log: self.logged,
        }
        if type(effect) in kept:
            kept[type(effect)].append(effect)
        if isinstance(effect, effects.Log) and effect.event == "handler of a schedule failed":
            assert self.surprises, effect.fields
        match effect:
            case effects.Launch():
                self._launch(effect)
            case effects.DeleteJob(ref=ref):
                self.deleted.append(effect)
                fact = self.jobs.get(ref.name)
                if fact is not None and ref.uid in ("", fact.ref.uid):
                    del self.jobs[ref.name]
                    self.scheduler.inbox.hint(fact.ref.uid, messages.JobGone(fact))
            case effects.LookAtPods(of_failure=False):
                self.looked_at.append(effect)
            case effects.LookAtPods():
                self.asked_why.append(effect)
                if self.explains:
                    self.scheduler.inbox.hint(object(), self.explained(effect))
            case effects.FindJob():
                self._find(effect)
            case effects.CheckTemplate(schedule=seen) if self.proves:
                checked = messages.TemplateChecked(
                    seen.uid, seen.template_hash, True, ConditionReason.ACCEPTED, ""
                )
                self.scheduler.inbox.hint(("template", seen.uid), checked)
            case effects.WriteStatus(uid=uid):
                if self.writes:
                    self.write(uid)
            case effects.ConfirmTime():
                self.time_asked += 1
                if self.clock_is_confirmed:
                    confirmation = messages.TimeConfirmed(self.now)
                    self.scheduler.inbox.hint("time", confirmation)
            case effects.ReadSchedule(uid=uid):
                self._read(uid)
            case effects.WriteRequest(uid=uid) if self.writes_requests:
                self.write_request(uid)
            case effects.ReadRequest(uid=uid):
                self._read_request(uid)
            case effects.AskRuns() if self.ledger_answers:
                self.scheduler.inbox.hint(("runs", effect.request), self._runs(effect))
            case effects.MakeRequest(uid=uid, trigger=trigger) if self.makes_requests is not None:
                made = messages.TriggerMade(uid, trigger, self.makes_requests, "not allowed")
                self.scheduler.inbox.hint(("trigger", uid), made)
            case effects.AskLedger(uid=uid, runs=runs) if self.ledger_answers:
                known = {run: self.ledger[run] for run in runs if run in self.ledger}
                told = messages.LedgerTold(uid, known, known=self.has_ledger)
                self.scheduler.inbox.hint(("ledger", uid), told)
            case _ if type(effect) in OFFLOADED:
                self.scheduler.inbox.hint(object(), OFFLOADED[type(effect)](effect))
            case effects.Answer(ask=ask, value=value):
                self.answers[ask] = value
            case effects.Stopped():
                self.stopped = True

    def explained(self, look: effects.LookAtPods) -> messages.PodsLookedAt:
        """What the Pods of a failed Job tell."""
        return messages.PodsLookedAt(look.run, look.attempt, True, None, "", self.cause)

    def _find(self, effect: effects.FindJob) -> None:
        fact = self.jobs.get(effect.ref.name)
        if fact is None:
            gone = JobFact(effect.ref, effect.run, effect.attempt, JobState.WAITING)
            self.scheduler.inbox.hint(("not found", effect.run), messages.JobGone(gone, True))
        else:
            self.scheduler.inbox.hint(fact.ref.uid, messages.JobSeen(fact))

    def _read(self, uid: str) -> None:
        """The shell reads a closed schedule and its Jobs."""
        seen = self.schedules.get(uid)
        sight = messages.ScheduleSeen(seen, parse(self.statuses.get(uid))) if seen else None
        facts = tuple(fact for fact in self.jobs.values() if fact.run.uid == uid)
        self.scheduler.inbox.hint(("read", uid), messages.ScheduleRead(uid, sight, facts))

    def write(self, uid: str) -> None:
        """Store a schedule's status, through JSON as the API server does."""
        document = self.scheduler.document(uid)
        if document is None:
            return
        patch = orjson.loads(orjson.dumps(document[2]))
        stored = self.statuses[uid] = merge_patch(self.statuses.get(uid, {}), patch)
        if (mark := rfc3339.read((stored.get("internal") or {}).get("mark"))) is not None:
            # What stands ahead of the clock may be taken back, and nothing else.
            assert mark >= max(self.marks.setdefault(uid, [0])), "a mark went back"
            self.marks[uid].append(min(mark, int(self.now)))
        self.stored[uid] = document[3]
        self.scheduler.inbox.hint(("written", uid), messages.StatusWritten(uid, document[3]))

    def write_request(self, uid: str) -> None:
        """Store the status of a request."""
        document = self.scheduler.request_document(uid)
        if document is None or uid not in self.requests:
            return
        patch = orjson.loads(orjson.dumps(document[2]))
        self.request_statuses[uid] = merge_patch(self.request_statuses.get(uid, {}), patch)
        self.requests_stored[uid] = document[3]
        self.scheduler.inbox.hint(("written", uid), messages.RequestWritten(uid, document[3]))

    def _read_request(self, uid: str) -> None:
        request = self.requests.get(uid)
        if request is None:
            self.scheduler.inbox.hint(uid, messages.RequestGone(uid))
            return
        memory = parse_request(self.request_statuses.get(uid))
        self.scheduler.inbox.hint(uid, messages.RequestSeen(request, memory, read=True))

    def _runs(self, asked: effects.AskRuns) -> messages.RunsTold:
        """What a ledger would tell of the runs that this world has seen."""
        found = {
            row.run: messages.PastRun(row.run.due, row.run.kind, row.state, bool(row.job))
            for row in self.rows
            if isinstance(row, effects.RunEnded)
            and row.run.uid == asked.uid
            and asked.first <= row.run.due < asked.end
        }
        return messages.RunsTold(
            asked.request,
            tuple(found.values()),
            self.ledger_since,
            self.ledger_unknown,
            has_ledger=self.has_ledger,
        )

    def _launch(self, launch: effects.Launch) -> None:
        assert self.now >= launch.run.due, "launched before its instant"
        self.launches.append(launch)
        if launch.request is not None:
            if launch.announced > self.requests_stored.get(launch.request.uid, 0):
                self.write_request(launch.request.uid)
        elif launch.announced > self.stored.get(launch.run.uid, 0):
            self.write(launch.run.uid)
        verdict = self.answering(launch)
        if verdict is None:
            self.in_flight.append(launch)
        else:
            self._answer(launch, verdict)

    def _answer(self, launch: effects.Launch, verdict: Verdict, **more: Any) -> None:
        run, attempt = launch.run, launch.attempt
        name = job_name(launch.schedule.name, run, attempt)
        ref, found = JobRef(launch.schedule.ns, name), None
        if verdict is Verdict.CREATED and name in self.jobs:
            there = self.jobs[name]
            verdict = Verdict.ADOPTED if there.run == run else Verdict.TAKEN
        if verdict is Verdict.CREATED:
            ref = JobRef(ref.ns, name, f"uid-{name}-{len(self.creations)}")
            fact = JobFact(ref, run, attempt, JobState.STARTED, started=int(self.now))
            self.jobs[name] = fact
            self.creations.append((run, attempt, self.now))
            self.scheduler.inbox.hint(ref.uid, messages.JobSeen(fact))
        elif verdict is Verdict.ADOPTED:
            fact = self.jobs[name]
            ref = fact.ref
            found = fact
        said = {"found": found, "reason": _REASONS.get(verdict), **more}
        launched = messages.CreateResult(run, attempt, verdict, ref, self.now, **said)
        assert self.scheduler.inbox.offer(launched)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server applies a status: a null removes."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


_REASONS = {
    Verdict.HELD: ConditionReason.QUOTA_EXCEEDED,
    Verdict.REFUSED: ConditionReason.DENIED_BY_ADMISSION,
    Verdict.TAKEN: ConditionReason.NAME_TAKEN,
}
"""Why the API server says so, unless a test has it say something else."""


def _uid(row: effects.RunEnded | effects.SpanEnded) -> str:
    return row.uid if isinstance(row, effects.SpanEnded) else row.run.uid


def _count(row: effects.RunEnded | effects.SpanEnded) -> int:
    return row.count if isinstance(row, effects.SpanEnded) else 1


def _when(row: effects.RunEnded | effects.SpanEnded) -> str:
    if isinstance(row, effects.RunEnded):
        return clock(row.run.due)
    if row.count == 1:
        return clock(row.first)
    return f"{clock(row.first)}..{clock(row.last)} x{row.count}"
