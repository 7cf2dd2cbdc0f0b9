"""The scheduler without a cluster: callbacks in this process instead of Jobs.

    schedule = Schedule()
    schedule.add_hourly("report", 17, callback=report)
    schedule.add_interval("sweep", 25, offset=2, callback=sweep)
    schedule.run()                                   # blocks until schedule.stop()

It is the scheduler of the operator, with the same rules. A run that starts late by at most `grace`
(30 s) is not lost. Of due times that were missed, the latest runs. Jobs due together start by
priority. Nothing is stored: a new process knows nothing of the runs before it.
"""

import asyncio
import datetime as dt
import inspect
import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from evenkeel.clock import Clock, SystemClock
from evenkeel.core.effects import (
    ConfirmTime,
    Effect,
    Launch,
    Log,
    LookAtPods,
    ReadSchedule,
    RunEnded,
    SpanEnded,
)
from evenkeel.core.lanes import Lanes
from evenkeel.core.messages import (
    CreateResult,
    JobGone,
    JobsListed,
    Message,
    PodsLookedAt,
    ScheduleGone,
    ScheduleRead,
    ScheduleSeen,
    SchedulesListed,
    TimeConfirmed,
)
from evenkeel.core.scheduler import Scheduler
from evenkeel.errors import BadField
from evenkeel.loop import Loop
from evenkeel.model import (
    Hourly,
    Instant,
    Interval,
    JobFact,
    JobRef,
    JobState,
    RunId,
    RunState,
    Timing,
    Verdict,
)
from evenkeel.model import (
    Schedule as Planned,
)
from evenkeel.resource.job import job_name
from evenkeel.resource.record import EMPTY
from evenkeel.settings import Settings
from evenkeel.when.compile import LONGEST_INTERVAL_S

Callback = Callable[[str, dt.datetime], object]

HIGHEST_PRIORITY = 1000
"""The same as for a ScheduledJob. The lowest is -1000."""

UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

_NAMESPACE = "local"
_log = logging.getLogger("evenkeel.local")


class Schedule:
    """Jobs by their ids. Every method may be called from any thread, also while the schedule
    runs."""

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        workers: int = 32,
        run_loop: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run,
    ) -> None:
        """At most `workers` callbacks run at the same time. Tests pass a virtual `clock` and
        `run_loop`."""
        self._settings = settings or Settings(min_interval_s=1)
        self._clock = clock or SystemClock()
        self._workers = workers
        self._run_loop = run_loop
        self._lock = threading.Lock()
        self._jobs: dict[str, Callable[[Instant], Planned]] = {}
        self._uids: dict[str, str] = {}
        self._callbacks: dict[str, Callback | None] = {}
        self._count = 0
        self._ends: Counter[str] = Counter()
        self._running: _Running | None = None

    def add_hourly(
        self, id: str, minute: int, callback: Callback | None = None, *, priority: int = 0
    ) -> None:
        """Call back once an hour at that minute, in UTC. A job with the same id is replaced.

        Without a callback each run is logged.
        """
        _whole("minute", minute, 0, 59)
        self._add(id, callback, priority, lambda _: Hourly(minute))

    def add_interval(
        self,
        id: str,
        every: int,
        offset: int = 0,
        unit: str = "m",
        callback: Callback | None = None,
        priority: int = 0,
    ) -> None:
        """Call back at start + offset + k * every, k = 1, 2, ..., where start is the call of `run`,
        or of this method if it comes later. A job with the same id is replaced.
        """
        if unit not in UNIT_S:
            raise BadField("unit", f"{unit!r} is not one of {', '.join(UNIT_S)}")
        scale = UNIT_S[unit]
        _whole("every", every, 1, LONGEST_INTERVAL_S // scale)
        _whole("offset", offset, 0, every - 1)
        self._add(id, callback, priority, lambda now: Interval(every * scale, offset * scale, now))

    def remove(self, id: str) -> None:
        """Remove a job. A callback under way goes on. KeyError if the id is unknown."""
        with self._lock:
            del self._jobs[id]
            uid = self._uids.pop(id)
            self._callbacks.pop(uid)
            if self._running:
                self._running.tell(uid, ScheduleGone(uid))

    def run(self) -> None:
        """Block until `stop`, and call back when jobs are due."""
        with self._lock:
            if self._running:
                raise RuntimeError("this schedule is running already")
            self._running = running = _Running(self)
        try:
            self._run_loop(running.main())
        finally:
            with self._lock:
                self._running = None

    def stop(self) -> None:
        """Start no more callbacks. `run` returns when those under way have ended."""
        with self._lock:
            if self._running:
                self._running.stop()

    def _add(
        self,
        id: str,
        callback: Callback | None,
        priority: int,
        rule: Callable[[Instant], Hourly | Interval],
    ) -> None:
        if not isinstance(id, str) or not id or not id.isprintable():
            raise BadField("id", f"{id!r} is not a name")
        _whole("priority", priority, -HIGHEST_PRIORITY, HIGHEST_PRIORITY)
        _check_callback(callback)
        with self._lock:
            self._count += 1
            uid = f"{id}#{self._count}"
            replaced = self._uids.get(id)

            def planned(now: Instant) -> Planned:
                return Planned(
                    uid=uid,
                    ns=_NAMESPACE,
                    name=id,
                    created=now,
                    generation=1,
                    timing=Timing(rule(now)),
                    template=b"{}",
                    template_hash="",
                    priority=priority,
                )

            self._jobs[id], self._uids[id] = planned, uid
            self._callbacks[uid] = callback
            if replaced:
                self._callbacks.pop(replaced)
            if self._running:
                if replaced:
                    self._running.tell(replaced, ScheduleGone(replaced))
                now = int(self._clock.now())
                self._running.tell(uid, ScheduleSeen(planned(now), EMPTY))

    def counts(self) -> dict[str, int]:
        """The number of runs that have ended, by final state."""
        with self._lock:
            return dict(self._ends)

    def _count_end(self, state: RunState, number: int = 1) -> None:
        with self._lock:
            self._ends[state.value] += number

    def _everything(self) -> list[Planned]:
        with self._lock:
            now = int(self._clock.now())
            return [planned(now) for planned in self._jobs.values()]

    def _seen(self, uid: str) -> ScheduleSeen | None:
        """A job as it would be seen at a start. None if the job was removed."""
        with self._lock:
            ids = [id for id, known in self._uids.items() if known == uid]
            now = int(self._clock.now())
            return ScheduleSeen(self._jobs[ids[0]](now), EMPTY) if ids else None

    def _callback(self, uid: str) -> Callback | None:
        """The callback of a job. KeyError if the job was removed."""
        with self._lock:
            return self._callbacks[uid]


def _whole(field: str, value: int, least: int, most: int) -> None:
    """Refuse a wrong number in the caller's line. Otherwise it would fail later, inside `run`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BadField(field, f"{value!r} is not a whole number between {least} and {most}")


def _check_callback(callback: Callback | None) -> None:
    if callback is None:
        return
    if not callable(callback):
        raise BadField("callback", f"{callback!r} cannot be called")
    if inspect.iscoroutinefunction(callback):
        raise BadField(
            "callback",
            "must not be async; pass a function that calls asyncio.run(...)",
        )
    try:
        inspect.signature(callback).bind("id", None)
    except TypeError as error:
        raise BadField("callback", f"must accept an id and a due time: {error}") from None
    except ValueError:
        return  # a built-in function, which has no signature to check


class _Running:
    """One call of `run`: the loop, the worker threads, and messages from other threads."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._scheduler = Scheduler(schedule._settings)
        self._lanes: Lanes[Launch] = Lanes()
        self._workers = ThreadPoolExecutor(schedule._workers, thread_name_prefix="evenkeel")
        self._aio: asyncio.AbstractEventLoop | None = None
        self._early: list[tuple[str, Message] | None] = []
        self._under_way: set[asyncio.Future[bool]] = set()
        self._last: deque[Message] = deque()
        self._loop: Loop | None = None

    async def main(self) -> None:
        inbox = self._scheduler.inbox
        self._loop = Loop(self._scheduler, self._schedule._clock, self._carry_out)
        inbox.offer(JobsListed((), int(self._schedule._clock.now())))
        jobs = self._schedule._everything()
        inbox.hint("list", SchedulesListed(frozenset(job.uid for job in jobs), 0.0))
        for job in jobs:
            inbox.hint(job.uid, ScheduleSeen(job, EMPTY))
        with self._schedule._lock:
            self._aio = asyncio.get_running_loop()
            for early in self._early:
                if early is None:
                    self._loop.stop()
                else:
                    inbox.hint(*early)
        ended = False
        try:
            await self._loop.run()
            ended = True
        finally:
            with self._schedule._lock:
                self._aio = None
            # After an exception do not wait for callbacks, and start none that waits for a worker.
            self._workers.shutdown(wait=ended, cancel_futures=True)
        await self._count_the_last()

    async def _count_the_last(self) -> None:
        """Count the callbacks that ended after the loop did, which reads no more messages."""
        await asyncio.gather(*self._under_way, return_exceptions=True)
        clock, inbox = self._schedule._clock, self._scheduler.inbox
        while self._last or len(inbox):
            while self._last and inbox.offer(self._last[0]):
                self._last.popleft()
            for effect in self._scheduler.step(clock.now(), clock.monotonic()).effects:
                if isinstance(effect, RunEnded | SpanEnded | LookAtPods):
                    self._carry_out(effect)

    def tell(self, uid: str, message: Message) -> None:
        """Called from any thread with the schedule's lock held, so messages keep the order of
        calls."""
        if self._aio is None:
            self._early.append((uid, message))
        else:
            self._aio.call_soon_threadsafe(self._scheduler.inbox.hint, uid, message)

    def stop(self) -> None:
        """Called from any thread with the schedule's lock held."""
        if self._aio is None or self._loop is None:
            self._early.append(None)
        else:
            self._aio.call_soon_threadsafe(self._loop.stop)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Launch():
                if not self._lanes:  # the launches of one step are collected and start by priority
                    asyncio.get_running_loop().call_soon(self._start_waiting)
                self._lanes.push(
                    effect,
                    ns=_NAMESPACE,
                    priority=effect.schedule.priority,
                    due=effect.run.due,
                    name=effect.schedule.name,
                )
            case RunEnded(state=state):
                self._schedule._count_end(state)
            case SpanEnded(key=key, count=count, state=state, reason=reason):
                self._schedule._count_end(state, count)
                _log.warning("%s: %d runs %s: %s", key, count, state, reason)
            case LookAtPods(run=run, attempt=attempt):  # the log has told the exception
                self._report(PodsLookedAt(run, attempt, started=True, reason=None, message=""))
            case ReadSchedule(uid=uid):
                self._report(ScheduleRead(uid, self._schedule._seen(uid), ()))
            case ConfirmTime():  # the clock jumped, and there is no other clock to ask
                self._report(TimeConfirmed(self._schedule._clock.now()))
            case Log(level="warning" | "error"):
                _log.warning("%s %s", effect.event, effect.fields)
            case _:
                pass

    def _start_waiting(self) -> None:
        try:
            self._start_all()
        except BaseException as error:  # noqa: BLE001 - asyncio would only log it, and no job would run
            assert self._loop is not None
            self._loop.fail(error)

    def _start_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._lanes:
            launch = self._lanes.pop()
            name = job_name(launch.schedule.name, launch.run, launch.attempt)
            ref = JobRef(_NAMESPACE, name, str(launch.run))
            self._report(
                CreateResult(
                    launch.run, launch.attempt, Verdict.CREATED, ref, self._schedule._clock.now()
                )
            )
            work = loop.run_in_executor(
                self._workers, self._call_back, launch.run, launch.schedule.name
            )
            self._under_way.add(work)
            work.add_done_callback(partial(self._called_back, launch, ref))

    def _called_back(self, launch: Launch, ref: JobRef, done: asyncio.Future[bool]) -> None:
        self._under_way.discard(done)
        if done.cancelled():
            return  # `run` ended before a worker was free
        state = JobState.SUCCEEDED if done.result() else JobState.FAILED
        # Report the Job as gone when it ends: history would keep it, and no one deletes it here.
        self._report(JobGone(JobFact(ref, launch.run, launch.attempt, state)))

    def _report(self, message: Message) -> None:
        if self._aio is None:
            self._last.append(message)
        elif not self._scheduler.inbox.offer(message):
            asyncio.get_running_loop().call_later(0.01, self._report, message)

    def _call_back(self, run: RunId, id: str) -> bool:
        """Called in a worker thread. True if the callback returned."""
        due = dt.datetime.fromtimestamp(run.due, dt.UTC)
        try:
            callback = self._schedule._callback(run.uid)
        except KeyError:
            return True  # removed while it waited for a worker; its run is not counted
        if callback is None:
            _log.info("%s due %s", id, due.isoformat())
            return True
        try:
            callback(id, due)
        except BaseException:  # noqa: BLE001 - the user's code; sys.exit() ends only the callback
            _log.exception("%s due %s: the callback failed", id, due.isoformat())
            return False
        return True
