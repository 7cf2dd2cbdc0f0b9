"""Plays a world: a server, its controllers, the deeds, and one operator process after another.

The operator is the real one: `app.Operator` with its launcher, reflectors, status writer and
errands. Only kopf is replaced, by our own `Reflector` with the same `Sights`: kopf needs a real
server. As with kopf, a list does not tell of deletions; the `Pruner` does.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import types
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson
from tests.sim.controllers import Controllers, run_of
from tests.sim.network import Connection, CrashPoint, Storm, Weather
from tests.sim.server import JOB, SCHEDULED_JOB, Change, Json, Server
from tests.sim.virtual import SimulatedClock, VirtualLoop
from tests.sim.world import Deed, World

import evenkeel.app
import evenkeel.clock
from evenkeel.app import Operator
from evenkeel.kube.api import SCHEDULES
from evenkeel.kube.reflector import Reflector
from evenkeel.kube.watch import Sights
from evenkeel.settings import Settings

_PROCESS: contextvars.ContextVar[_Process | None] = contextvars.ContextVar("process", default=None)


@dataclass(frozen=True, slots=True)
class Trouble:
    """How the operator is disturbed, beside what its weather does."""

    crash_point: CrashPoint | None = None
    """In the first process."""
    every_steps: int = 0
    """Kill each process this many steps after it became ready, until the world is calm."""
    after_step_s: float = 0.05
    """How long after that step: calls that it caused are on their way when the process dies."""
    kills: tuple[tuple[float, float], ...] = ()
    """(when, how long nobody runs)."""
    down_s: float = 1.0
    """How long nobody runs after a crash."""
    storm: int | None = None
    """The seed of the weather."""
    stops: tuple[tuple[float, float], ...] = ()
    """Like kills, but by SIGTERM."""
    twins: bool = False
    """Two processes at once, without a Lease."""


CALM = Trouble()


@dataclass(slots=True)
class Created:
    """A Job that was created, whatever became of it."""

    uid: str
    due: int
    attempt: int
    ns: str
    name: str
    at: float
    who: str
    ended: str = ""
    """succeeded, failed, or empty: it runs, or it was deleted before its end."""
    ended_at: float = 0.0
    deleted_at: float | None = None
    deleted_by: str = ""


@dataclass(slots=True)
class Outcome:
    """The state of the world at the end, and how it came about."""

    world: World
    server: Server
    jobs: dict[str, Created] = field(default_factory=dict)
    """By Job uid: every Job there ever was."""
    statuses: dict[str, list[tuple[float, Json]]] = field(default_factory=dict)
    """By schedule uid: every status that was ever stored."""
    schedules: dict[str, Json] = field(default_factory=dict)
    """By uid: the last that was seen of each, the deleted ones too."""
    processes: list[_Process] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    deleted: dict[str, float] = field(default_factory=dict)
    specs: dict[str, list[Json]] = field(default_factory=dict)
    """By uid: the object at each of its generations."""

    @property
    def now(self) -> float:
        return self.world.base + self.world.lasts_s

    def schedule(self, name: str, ns: str = "default") -> Json:
        """A ScheduledJob as it stands at the end."""
        return self.server.objects[SCHEDULED_JOB][ns, name]

    def status(self, name: str, ns: str = "default") -> Json:
        """Its status."""
        status: Json = self.schedule(name, ns).get("status") or {}
        return status

    def jobs_of(self, name: str) -> list[Created]:
        """The Jobs ever created for schedules of this name, by due and attempt."""
        uids = {uid for uid, item in self.schedules.items() if item["metadata"]["name"] == name}
        found = [job for job in self.jobs.values() if job.uid in uids]
        return sorted(found, key=lambda job: (job.due, job.attempt))


def play(
    world: World,
    trouble: Trouble = CALM,
    *,
    weather: Callable[[int], Weather] | None = None,
    verbose: bool = False,
) -> Outcome:
    """Play it to its end. The same arguments give the same outcome, to the last request.

    `weather` gives each process its own, by its number; without it all have that of `trouble`.
    """
    rng = Random(f"{world.name} {trouble}")
    with _ours(rng), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        whole = _Play(world, trouble, loop, verbose=verbose)
        if weather is not None:
            whole.weather_of = weather
        return runner.run(whole.run())


@contextmanager
def _ours(rng: Random) -> Iterator[None]:
    """Jitter by seed; and no freezing: the simulator starts thousands of operators."""
    kept = evenkeel.clock.random, evenkeel.app.gc
    evenkeel.clock.random = rng  # type: ignore[assignment]
    evenkeel.app.gc = types.SimpleNamespace(  # type: ignore[assignment]
        collect=lambda: None, freeze=lambda: None
    )
    try:
        yield
    finally:
        evenkeel.clock.random, evenkeel.app.gc = kept


class _Process:
    """One life of the operator."""

    def __init__(self, play: _Play, number: int, crash_point: CrashPoint | None) -> None:
        self.number = number
        self.play = play
        self.clock = play.clock
        self.connection = Connection(
            play.server,
            play.weather_of(number),
            who=f"operator {number}",
            crash_point=crash_point,
            crash=self.crash,
            note=play.note,
        )
        settings = Settings(**play.world.settings)
        self.operator = Operator(self.connection, play.clock, settings)
        self.sights = Sights(
            self.operator.scheduler.inbox,
            hand_over=lambda act, *args: act(*args),
            min_interval_s=settings.min_interval_s,
            namespaces=settings.namespaces,
        )
        self.reflector = Reflector(
            self.connection, f"{SCHEDULES}/scheduledjobs", self, now=play.clock.now
        )
        self.tasks: set[asyncio.Task[Any]] = set()
        self.over = asyncio.Event()
        self.crashed = False
        self.steps_since_ready = 0
        self._count_steps()

    # the listener of the reflector

    def read(self, item: Json) -> Json:
        """All of it."""
        return item

    def listed(self, found: list[Json], listed_at: float) -> None:
        """As kopf: objects of a list have no kind of event."""
        for item in found:
            self.sights.see(None, item)

    def changed(self, kind: str, item: Json) -> None:
        """As kopf."""
        self.sights.see(kind, item)

    def _count_steps(self) -> None:
        scheduler, step = self.operator.scheduler, self.operator.scheduler.step

        def counted(now: float, monotonic: float) -> Any:
            done = step(now, monotonic)
            if scheduler.ready:
                self.steps_since_ready += 1
                limit = self.play.trouble.every_steps
                if limit and self.steps_since_ready == limit and self.play.in_trouble:
                    loop = asyncio.get_running_loop()
                    loop.call_later(self.play.trouble.after_step_s, self.crash)
            return done

        scheduler.step = counted  # type: ignore[method-assign]

    def start(self) -> None:
        context = contextvars.copy_context()
        context.run(_PROCESS.set, self)
        asyncio.get_running_loop().create_task(self._main(), context=context)

    async def _main(self) -> None:
        watching = asyncio.create_task(self.reflector.run())
        try:
            await self.operator.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the operator died of it
            self.play.fail(f"operator {self.number} died: {_text(error)}")
        finally:
            watching.cancel()
            self.over.set()

    def crash(self) -> None:
        """kill -9: nothing of it gets out any more."""
        self.crashed = True
        self.connection.dead = True
        self.over.set()

    def stop(self) -> None:
        """SIGTERM."""
        self.operator.stop()

    async def bury(self) -> None:
        self.connection.dead = True
        while alive := [task for task in self.tasks if not task.done()]:
            # In the order of their birth: a set's own order is another one in each process.
            for task in sorted(alive, key=lambda task: int(task.get_name().rpartition("-")[2])):
                task.cancel()
            await asyncio.wait(alive, timeout=0)
        for task in self.tasks:
            if not task.cancelled():
                task.exception()
        self.tasks.clear()


class _Play:
    def __init__(self, world: World, trouble: Trouble, loop: VirtualLoop, *, verbose: bool) -> None:
        self.world = world
        self.trouble = trouble
        self.loop = loop
        self.clock = SimulatedClock(loop, base=world.base)
        self.server = Server(now=lambda: world.base + loop.now_s)
        self.server.namespaces |= {deed.ns for deed in world.deeds}
        self.weather = Weather()
        if trouble.storm is not None:
            storm_rng = Random(f"storm {trouble.storm}")
            self.weather = Storm.from_seed(storm_rng, until_s=world.calm_from_s)
        self.weather_of: Callable[[int], Weather] = lambda number: self.weather
        self.outcome = Outcome(world, self.server)
        self.verbose = verbose
        self._seen_requests = 0
        self._asking = ""
        Controllers(self.server, world.fate)
        self.server.listeners.append(self._write_down)
        loop.set_task_factory(_owned)

    @property
    def in_trouble(self) -> bool:
        return self.loop.now_s < (self.world.calm_from_s or self.world.lasts_s - 5)

    def fail(self, what: str) -> None:
        self.outcome.failures.append(what)

    async def run(self) -> Outcome:
        with self._logged():
            for deed in self.world.deeds:
                self.loop.call_at(deed.at_s, self._do, deed)
            lives = [asyncio.ensure_future(self._lives())]
            if self.trouble.twins:
                lives.append(asyncio.ensure_future(self._lives(first=100)))
            await asyncio.sleep(self.world.lasts_s)
            for life in lives:
                if life.done():
                    life.result()
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            self.outcome.failures += [_text(error) for error in self.loop.failures]
            for process in self.outcome.processes:
                await process.bury()
        return self.outcome

    async def _lives(self, first: int = 0) -> None:
        """One process after another, each until it dies."""
        number = first
        while True:
            point = self.trouble.crash_point if number == 0 else None
            process = _Process(self, number, point)
            self.outcome.processes.append(process)
            self.note(f"--- operator {number} starts")
            process.start()
            down_s = await self._until_it_ends(process)
            await process.bury()
            self.note(f"--- operator {number} is gone for {down_s:g} s")
            await asyncio.sleep(down_s)
            number += 1

    async def _until_it_ends(self, process: _Process) -> float:
        """How long nobody shall run after it."""
        coming = [(at, down_s, process.crash) for at, down_s in self.trouble.kills]
        coming += [(at, down_s, process.stop) for at, down_s in self.trouble.stops]
        # A timer comes up to the clock's resolution before its time.
        now_s = self.loop.now_s + 1e-3
        coming = sorted((one for one in coming if one[0] > now_s), key=lambda one: one[0])
        if coming:
            at, down_s, end = coming[0]
            timer = self.loop.call_at(at, end)
            await process.over.wait()
            timer.cancel()
            return down_s if self.loop.now_s >= at - 1e-3 else self.trouble.down_s
        await process.over.wait()
        return self.trouble.down_s

    # --- deeds ------------------------------------------------------------------------------------

    def _do(self, deed: Deed) -> None:
        path = f"{SCHEDULES}/namespaces/{deed.ns}/scheduledjobs"
        self.note(f"*** {deed.what} {deed.ns}/{deed.name} {deed.body or deed.value or ''}")
        match deed.what:
            case "create":
                body = {"metadata": {"name": deed.name}, "spec": deed.body}
                self._ask("POST", path, body)
            case "patch":
                self._ask("PATCH", f"{path}/{deed.name}", deed.body)
            case "delete":
                self._ask("DELETE", f"{path}/{deed.name}")
            case "delete job":
                for job in self.outcome.jobs_of(deed.name)[-1:]:
                    self._ask("DELETE", f"/apis/batch/v1/namespaces/{job.ns}/jobs/{job.name}")
            case "set clock":
                self.clock.set_by_s += deed.value
            case "block":  # nothing of the machine runs: a stopped VM, a loop that is busy
                self.loop.now_s += deed.value
            case "stop clock":
                self.clock.stuck_at = self.clock.now()
            case "mend clock":
                self.clock.stuck_at, self.clock.set_by_s = None, 0.0
            case "tell again":  # the same sight, some more times
                for process in self.outcome.processes:
                    for change in self.server.log[-5:]:
                        if change.kind is SCHEDULED_JOB:
                            process.changed(change.type, change.object)
                        else:
                            process.operator.jobs[0]._listener.changed(change.type, change.object)
            case "compact":
                self.server.compact()

    def _ask(self, verb: str, path: str, body: Json | None = None) -> None:
        raw = orjson.dumps(body) if body is not None else None
        self._asking = "user"
        self.server.handle(verb, path, body=raw, who="user")
        self._asking = ""

    # --- writing down -----------------------------------------------------------------------------

    def _write_down(self, change: Change) -> None:
        item, now = change.object, self.server.now()
        uid = item["metadata"]["uid"]
        if change.kind is SCHEDULED_JOB:
            self.outcome.schedules[uid] = item
            generations = self.outcome.specs.setdefault(uid, [])
            if len(generations) < item["metadata"]["generation"]:
                generations.append(item)
            if change.type == "DELETED":
                self.outcome.deleted[uid] = now
            elif item.get("status"):
                stored = self.outcome.statuses.setdefault(uid, [])
                if not stored or stored[-1][1] != item["status"]:
                    stored.append((now, item["status"]))
        elif change.kind is JOB:
            self._write_down_job(change, uid, now)
        if self.verbose:
            self._tell(change)

    def _write_down_job(self, change: Change, uid: str, now: float) -> None:
        run = run_of(change.object)
        if run is None:
            return
        metadata = change.object["metadata"]
        if change.type == "ADDED":
            process = _PROCESS.get()
            who = f"operator {process.number}" if process else ""
            self.outcome.jobs[uid] = Created(
                *run, metadata["namespace"], metadata["name"], now, who
            )
            return
        job = self.outcome.jobs[uid]
        for condition in (change.object.get("status") or {}).get("conditions") or ():
            if not job.ended:
                job.ended = {"Complete": "succeeded", "Failed": "failed"}[condition["type"]]
                job.ended_at = now
        if change.type == "DELETED":
            job.deleted_at = now
            job.deleted_by = self._asking

    def _tell(self, change: Change) -> None:
        item = change.object
        where = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        status = item.get("status") or {}
        more: Mapping[str, Any] = {}
        if change.kind is SCHEDULED_JOB:
            keys = ("mark", "counts", "waiting", "active", "recent", "pause")
            more = {key: status[key] for key in keys if status.get(key)}
        elif change.kind is JOB:
            more = {"conditions": [c["type"] for c in status.get("conditions") or ()]}
        self.note(f"    {change.type} {change.kind.name} {where} {_short(more)}")

    def note(self, text: str) -> None:
        if self.verbose:
            for request in self.server.requests[self._seen_requests :]:
                self._line(
                    request.at,
                    f"{request.who}: {request.verb} {request.path} {request.note}"
                    f" -> {request.status}",
                )
            self._seen_requests = len(self.server.requests)
            self._line(self.server.now(), text)

    def _line(self, at: float, text: str) -> None:
        self.outcome.history.append(f"{at - self.world.base:9.3f} {text}")

    @contextmanager
    def _logged(self) -> Iterator[None]:
        logger = logging.getLogger("evenkeel")
        level = logger.level
        handler = _Notes(self) if self.verbose else logging.NullHandler()
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if self.verbose else logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)
            logger.removeHandler(handler)


class _Notes(logging.Handler):
    def __init__(self, play: _Play) -> None:
        super().__init__()
        self._play = play

    def emit(self, record: logging.LogRecord) -> None:
        self._play.note(f"    log: {record.getMessage()} {getattr(record, 'fields', '')}")


def _owned(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    context: contextvars.Context | None = None,
) -> asyncio.Task[Any]:
    """A task belongs to the process whose code made it, and dies with it."""
    task = asyncio.Task(work, loop=loop, context=context)
    process = context.get(_PROCESS) if context is not None else _PROCESS.get()
    if process is not None:
        process.tasks.add(task)
        task.add_done_callback(process.tasks.discard)
    return task


def _text(error: BaseException | str) -> str:
    import traceback

    if isinstance(error, str):
        return error
    return "".join(traceback.format_exception(error))


def _short(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={orjson.dumps(value).decode()}" for key, value in values.items())
