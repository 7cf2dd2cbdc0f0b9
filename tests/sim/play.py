"""Plays a world: a server, its controllers, the deeds, and one operator process after another."""

from __future__ import annotations

import asyncio
import itertools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import orjson
from prometheus_client import generate_latest
from tests.sim.controllers import Controllers
from tests.sim.forged import parts
from tests.sim.network import CrashPoint, Storm, Weather
from tests.sim.outcome import Outcome, Scrape
from tests.sim.process import Process, owned, text_of
from tests.sim.record import Record
from tests.sim.server import JOB, RUN_REQUEST, SCHEDULED_JOB, Json, Kind, Server
from tests.sim.store import StoreCrash, StoreTrouble, Vault
from tests.sim.virtual import SimulatedClock, VirtualLoop
from tests.sim.world import FORGED_FROM, REQUESTS_FROM, Deed, World

import evenkeel.app
import evenkeel.clock
from evenkeel.core.messages import CancelRun
from evenkeel.kube.api import Reply, requests_path, schedules_path
from evenkeel.model import RunId


@dataclass(frozen=True, slots=True)
class Trouble:
    """When the operator is killed or stopped, and the seed of its weather."""

    crash_point: CrashPoint | StoreCrash | None = None
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


def play(
    world: World,
    trouble: Trouble = CALM,
    *,
    weather: Callable[[int], Weather] | None = None,
    store: StoreTrouble | None = None,
    verbose: bool = False,
) -> Outcome:
    """Play it to its end. The same arguments give the same outcome, to the last request.

    `weather` gives each process its own, by its number; without it all have that of `trouble`.
    `store`: what is wrong with the ledger's store.
    """
    rng = Random(f"{world.name} {trouble}")
    with _ours(rng), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        whole = Play(world, trouble, loop, store=store or StoreTrouble(), verbose=verbose)
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


class Play:
    """One play of a world: the server, its controllers and the operator's processes."""

    def __init__(
        self,
        world: World,
        trouble: Trouble,
        loop: VirtualLoop,
        *,
        store: StoreTrouble,
        verbose: bool,
    ) -> None:
        self.world = world
        self.trouble = trouble
        self.loop = loop
        self.clock = SimulatedClock(loop, base=world.base)
        self.server = Server(now=lambda: world.base + loop.now_s)
        self.server.namespaces |= {deed.ns for deed in world.deeds}
        self.server.refuse = self._refuse
        self.weather = Weather()
        if trouble.storm is not None:
            storm_rng = Random(f"storm {trouble.storm}")
            mute = FORGED_FROM <= trouble.storm < REQUESTS_FROM
            self.weather = Storm.from_seed(storm_rng, until_s=world.calm_from_s, mute=mute)
        self.weather_of: Callable[[int], Weather] = lambda number: self.weather
        self.vault = Vault(store)
        self.outcome = Outcome(world, self.server, self.vault)
        self.record = Record(self.outcome, verbose=verbose)
        self._scraping: asyncio.Task[None] | None = None
        Controllers(self.server, world.fate)
        self.server.listeners.append(self.record.changed)
        loop.set_task_factory(owned)

    @property
    def in_trouble(self) -> bool:
        return self.loop.now_s < (self.world.calm_from_s or self.world.lasts_s - 5)

    def _refuse(self, verb: str, kind: Kind, ns: str, item: Json) -> Reply | None:
        creates = (verb, kind) == ("POST", JOB)
        return self.world.admission(self.loop.now_s, item) if creates else None

    def fail(self, what: str) -> None:
        self.outcome.failures.append(what)

    async def run(self) -> Outcome:
        with self.record.logged():
            for at_s, deeds in itertools.groupby(self.world.deeds, key=lambda deed: deed.at_s):
                self.loop.call_at(
                    at_s, self._do_all, list(deeds)
                )  # timers of one time have no order
            for at_s in self.vault.trouble.begun_anew:
                self.loop.call_at(at_s, self.vault.begin_anew)
            lives = [asyncio.ensure_future(self._lives())]
            if self.trouble.twins:
                lives.append(asyncio.ensure_future(self._lives(first=100)))
            await asyncio.sleep(self.world.lasts_s)
            self._hear_the_last()
            for life in lives:
                if life.done():
                    life.result()
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            self.outcome.failures += [text_of(error) for error in self.loop.failures]
            for process in self.outcome.processes:
                await process.bury()
        return self.outcome

    def _hear_the_last(self) -> None:
        """Ask the last process what it knows while it lives: after `bury` it has no tasks."""
        process = self.outcome.processes[-1]
        try:
            self.outcome.left = process.left()
            self.outcome.failures += process.miscounted()
        except Exception as error:  # noqa: BLE001 - whatever it is, oracles have nothing to go by
            self.fail(f"operator {process.number} cannot answer: {text_of(error)}")

    async def _lives(self, first: int = 0) -> None:
        """One process after another, each until it dies."""
        number = first
        while True:
            point = self.trouble.crash_point if number == 0 else None
            process = Process(self, number, point)
            self.outcome.processes.append(process)
            self.record.note(f"--- operator {number} starts")
            process.start()
            down_s = await self._until_it_ends(process)
            await process.bury()
            self.record.ledger_stands()
            self.record.note(f"--- operator {number} is gone for {down_s:g} s")
            await asyncio.sleep(down_s)
            number += 1

    async def _until_it_ends(self, process: Process) -> float:
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

    def _do_all(self, deeds: list[Deed]) -> None:
        for deed in deeds:
            self._do(deed)

    def _do(self, deed: Deed) -> None:
        path = schedules_path(deed.ns)
        self.record.note(f"*** {deed.what} {deed.ns}/{deed.name} {deed.body or deed.value or ''}")
        match deed.what:
            case "create":
                body = {"metadata": {"name": deed.name}, "spec": deed.body}
                self._ask("POST", path, body)
            case "patch":
                self._ask("PATCH", f"{path}/{deed.name}", deed.body)
            case "delete":
                self._ask("DELETE", f"{path}/{deed.name}")
            case "request":
                body = {"metadata": {"name": deed.name}, "spec": deed.body}
                self._ask("POST", requests_path(deed.ns), body)
            case "patch request":
                self._ask("PATCH", requests_path(deed.ns, deed.name), deed.body)
            case "delete request":
                self._ask("DELETE", requests_path(deed.ns, deed.name))
            case "delete job":
                for job in self.outcome.jobs_of(deed.name)[-1:]:
                    self._ask("DELETE", f"/apis/batch/v1/namespaces/{job.ns}/jobs/{job.name}")
            case "edit job":
                for job in self.outcome.jobs_of(deed.name)[-1:]:
                    path = f"/apis/batch/v1/namespaces/{job.ns}/jobs/{job.name}"
                    self._ask("PATCH", path, deed.body)
            case "cancel run":  # the one due `value` seconds after the base
                self._cancel(self.outcome.schedule(deed.name, deed.ns), deed.value)
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
                            process.listener.see(change.type, change.object)
                        elif change.kind is RUN_REQUEST:
                            process.request_listener.see(change.type, change.object)
                        else:
                            process.operator.jobs[0].listener.changed(change.type, change.object)
            case "scrape":
                self._scraping = asyncio.ensure_future(self._scrape())
            case "compact":
                self.server.compact()
            case "forge status":
                self._forge(deed)

    async def _scrape(self) -> None:
        """As Prometheus does; nothing where no process runs."""
        process = self.outcome.processes[-1]
        if process.over.is_set():
            return
        at, operator = self.server.now(), process.operator
        text = generate_latest(operator.metrics.registry)
        operator.metrics.counts.was_scraped()
        by_schedule = await operator.schedule_metrics.text()
        scrape = Scrape(at, process.number, text.decode(), by_schedule.decode())
        self.outcome.scrapes.append(scrape)

    def _forge(self, deed: Deed) -> None:
        """Whatever of it the schema takes is stored; then every operator dies. A process that lives
        goes by what it knows, and writes that over it."""
        item = self.server.objects[SCHEDULED_JOB].get((deed.ns, deed.name))
        if item is None:
            return
        self.outcome.forged[item["metadata"]["uid"]] = self.server.now()
        path = f"{schedules_path(deed.ns, deed.name)}/status"
        patches = [deed.body] if deed.body else parts(Random(deed.value), self.server.now())
        for status in patches:
            self._ask("PATCH", path, {"status": status})
        for process in self.outcome.processes:
            if not process.over.is_set():
                process.crash()

    def _cancel(self, schedule: Json, due_s: float) -> None:
        run = RunId(schedule["metadata"]["uid"], self.world.base + int(due_s))
        operator = self.outcome.processes[-1].operator
        asking = asyncio.ensure_future(operator.ask(lambda asked: CancelRun(asked, run)))
        asking.add_done_callback(lambda done: self.outcome.answers.append(done.result()))

    def _ask(self, verb: str, path: str, body: Json | None = None) -> None:
        raw = orjson.dumps(body) if body is not None else None
        self.record.asking = "user"
        self.server.handle(verb, path, body=raw, who="user")
        self.record.asking = ""
