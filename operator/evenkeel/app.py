"""START HERE. Builds the parts of the operator, joins them, runs them.

    kubectl apply
         |
    kube/watch      kopf, in a thread and an asyncio loop of its own; kube/resource_watch begins it
    kube/listener   reads the object, in kopf's thread
         | ScheduleSeen, RequestSeen, ...     (from here on: one thread, one asyncio loop)
         |
    core/inbox   <-- JobSeen, JobGone ----- kube/jobs    lists and watches Jobs
         |       <-- SchedulesListed, ... - kube/pruner  lists our objects every ten minutes
         |       <-- CreateResult, ... ---- kube/launcher, kube/status_sync, kube/errands
         |
    core/scheduler  State + step(now) -> effects
         | Launch, WriteStatus, DeleteJob, KubeEvent, ...
         |
    kube/launcher   kube/status_sync   kube/errands   kube/events     ledger/sync
         |  each asks kube/gate and kube/places whether it may send       |
    kube/api        the API server: kube/client, or the simulator's    ledger/store

`carry_out` is the whole list of what the scheduler can want. `process` adds what an operator needs
around it: credentials, kopf's thread, probes, signals.
"""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

from evenkeel import clock as clocks
from evenkeel import gauges
from evenkeel.carry_out import CarryOut
from evenkeel.clock import Clock
from evenkeel.core.effects import Launch
from evenkeel.core.messages import Ask, JobsSilent, Message
from evenkeel.core.scheduler import Scheduler
from evenkeel.errors import Busy
from evenkeel.kube.api import Api
from evenkeel.kube.errands import Errands
from evenkeel.kube.events import Events
from evenkeel.kube.gate import Gate
from evenkeel.kube.jobs import jobs_reflectors
from evenkeel.kube.launcher import Launcher
from evenkeel.kube.pruner import Pruner
from evenkeel.kube.request_errands import RequestErrands
from evenkeel.kube.resources import REQUESTS
from evenkeel.kube.status_sync import StatusSync
from evenkeel.ledger.minutes import Picture
from evenkeel.ledger.sync import LedgerSync, OpenStore
from evenkeel.ledger.upkeep import Present
from evenkeel.log import log
from evenkeel.loop import Loop
from evenkeel.model import WatchRestart
from evenkeel.settings import Settings
from evenkeel.web.health import READY_WITHIN_S
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_metrics import ScheduleMetrics

CREATES_END_S = 10.0
"""At a shutdown creates in flight get this long to be answered; a Pod has 30 s in all."""

WRITES_END_S = 8.0
"""At a shutdown statuses and deletions get this long, after the creates."""

ROWS_END_S = 5.0
"""At a shutdown the rows of the ledger get this long, after the statuses that tell of them."""

PICTURE_S = 5.0
"""The greatest age of the picture of the load that /metrics shows."""

LISTEN_S = 5.0
"""Between two looks whether the watches of Jobs are told something."""

COMPLAINT_S = 60.0
"""One sentence a minute of each kind: an API server that is away must not fill a disk."""


class Operator:
    """The parts, joined. The simulator builds it on an `Api` and a `Clock` of its own."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        settings: Settings,
        metrics: Metrics | None = None,
        open_store: OpenStore | None = None,
        *,
        process: str = "",
    ) -> None:
        """Without `open_store` there is no ledger. `process` names this process in it."""
        self.settings = settings
        self.clock = clock
        self.metrics = metrics or Metrics(monotonic=clock.monotonic)
        self.scheduler = Scheduler(settings, stopwatch=clock.monotonic)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure: BaseException | None = None
        self._complained_at: dict[str, float] = {}
        inbox = self.scheduler.inbox
        metrics = self.metrics
        gate = Gate(clock)
        self.launcher = Launcher(
            api,
            inbox,
            clock,
            in_flight=settings.creates_in_flight,
            announce=self._announce,
            strict=settings.strict_templates,
            gate=gate,
            count=metrics.create_answered,
            fail=self.fail,
        )

        def busy() -> bool:
            return self.launcher.busy

        self.status_sync = StatusSync(
            api,
            inbox,
            clock,
            self.scheduler.document,
            in_flight=settings.status_in_flight,
            busy=busy,
            namespace=self.scheduler.namespace,
            gate=gate,
            version=self.scheduler.version,
            count=metrics.status_answered,
            complain=self._complain,
        )
        self.request_sync = StatusSync(
            api,
            inbox,
            clock,
            self.scheduler.request_document,
            resource=REQUESTS,
            in_flight=settings.status_in_flight,
            busy=busy,
            namespace=self.scheduler.request_namespace,
            gate=gate,
            version=self.scheduler.request_version,
            count=metrics.status_answered,
            complain=self._complain,
        )
        self.errands = Errands(
            api,
            inbox,
            clock,
            busy=busy,
            gate=gate,
            min_interval_s=settings.min_interval_s,
            strict=settings.strict_templates,
            fail=self.fail,
        )
        self.request_errands = RequestErrands(
            api, inbox, clock, busy=busy, gate=gate, fail=self.fail
        )
        self.events = Events(api, clock, busy=busy, gate=gate, dropped=metrics.events_dropped.inc)
        self.jobs = jobs_reflectors(
            api,
            inbox,
            now=clock.now,
            namespaces=settings.namespaces,
            on_restart=self._watch_restarted,
        )
        self.pruner = Pruner(
            api,
            inbox,
            clock=clock,
            known=self.scheduler.state.knows,
            known_count=self.scheduler.state.count_known,
            namespaces=settings.namespaces,
            every_s=settings.prune_s,
            complain=self._complain,
            ready=lambda: self.scheduler.ready,
        )
        self.request_pruner = Pruner(
            api,
            inbox,
            resource=REQUESTS,
            clock=clock,
            known=self.scheduler.state.knows_request,
            known_count=self.scheduler.state.count_known_requests,
            namespaces=settings.namespaces,
            every_s=settings.prune_s,
            complain=self._complain,
            # The scheduler keeps Jobs aside that may be those of a request which is not known yet.
            ready=lambda: self.scheduler.ready and not self.request_pruner.unseen,
        )
        self.schedule_metrics = ScheduleMetrics(
            self.scheduler.state, metrics, clock, settings.metrics_schedules
        )
        self._picture = self.scheduler.state.load.distribution(int(clock.now()))
        metrics.distribution(lambda: self._picture)
        self.ledger = LedgerSync(
            open_store,
            inbox,
            clock,
            settings,
            self._present(),
            process=process,
            picture=self._minute,
            observe=metrics.observed,
        )
        self._carry_out = CarryOut(
            launcher=self.launcher,
            status_sync=self.status_sync,
            request_sync=self.request_sync,
            errands=self.errands,
            request_errands=self.request_errands,
            events=self.events,
            ledger=self.ledger,
            metrics=metrics,
        )
        self.loop = Loop(self.scheduler, clock, self._carry_out, observe_step=metrics.stepped)
        gauges.register_scheduler(metrics, self.scheduler, self.schedule_metrics)
        gauges.register_writers(
            metrics,
            launcher=self.launcher,
            status_syncs=(self.status_sync, self.request_sync),
            events=self.events,
            ledger=self.ledger,
        )
        gauges.register_watches(metrics, clock, jobs=self.jobs, pruner=self.pruner)

    async def ask(self, question: Callable[[Ask], Message]) -> Any:
        """Ask the scheduler, and wait for its answer. Busy when its inbox is full."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self.scheduler.inbox.offer(question(answer)):
            raise Busy("the scheduler is busy; ask again")
        value = await answer
        if isinstance(value, Busy):
            raise value
        return value

    def sizes(self) -> dict[str, int]:
        """How many things each part keeps: `part: things`."""
        parts = {
            "scheduler": self.scheduler.sizes(),
            "launcher": self.launcher.sizes(),
            "status sync": self.status_sync.sizes(),
            "request status sync": self.request_sync.sizes(),
            "errands": self.errands.sizes(),
            "request errands": self.request_errands.sizes(),
            "events": self.events.sizes(),
            "ledger": self.ledger.sizes(),
        }
        for reflector in self.jobs:
            for what, number in reflector.listener.sizes().items():
                watched = parts.setdefault("watch", {})
                watched[what] = watched.get(what, 0) + number
        return {f"{part}: {what}": n for part, kept in parts.items() for what, n in kept.items()}

    def fail(self, error: BaseException) -> None:
        """A part that nothing can do without has failed: end as cleanly as can be, and say so."""
        log("failed", level="error", error=f"{type(error).__name__}: {error}")
        self._failure = self._failure or error
        self.stop()

    async def run(self) -> None:
        """Run until `stop`; then put back, finish, flush. `ended` tells how it went."""
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001 - whoever waits for `ended` is to know
            self._failure = self._failure or error
        if self.ended.done():
            return
        if self._failure is not None:
            self.ended.set_exception(self._failure)
        else:
            self.ended.set_result(None)

    async def _run(self) -> None:
        background = [
            asyncio.create_task(work)
            for work in (
                *(reflector.run() for reflector in self.jobs),
                self.pruner.run(),
                self.request_pruner.run(),
                self.status_sync.run(),
                self.request_sync.run(),
                self.events.run(),
                self.ledger.run(),
                self._listen_to_watches(),
                self._picture_the_load(),
                self._become_ready(),
            )
        ]
        loop = asyncio.create_task(self.loop.run())
        try:
            await asyncio.wait([loop, *background], return_when=asyncio.FIRST_COMPLETED)
            while not loop.done():
                for task in background:
                    if task.done() and not task.cancelled():
                        task.result()  # a part that failed ends the process
                running = [task for task in background if not task.done()]
                await asyncio.wait([loop, *running], return_when=asyncio.FIRST_COMPLETED)
            loop.result()
            await self._shut_down()
        finally:
            for task in (loop, *background):
                task.cancel()
            await asyncio.gather(loop, *background, return_exceptions=True)

    def stop(self) -> None:
        """Begin the shutdown."""
        self.loop.stop()

    async def _shut_down(self) -> None:
        """Running Jobs go on; the next process adopts them."""
        finishing = asyncio.create_task(self.launcher.stop(within_s=CREATES_END_S))
        scheduler = self.scheduler
        while not finishing.done() or len(scheduler.inbox):
            # Results are waiting for room in the inbox, and the loop reads it no more.
            for effect in scheduler.step(self.clock.now(), self.clock.monotonic()).effects:
                self._carry_out(effect)
            await asyncio.wait([finishing], timeout=0.02)
        finishing.result()
        self.request_errands.stop()
        *unwritten, _ = await asyncio.gather(
            self.status_sync.flush(within_s=WRITES_END_S),
            self.request_sync.flush(within_s=WRITES_END_S),
            self.errands.finish(within_s=WRITES_END_S),
        )
        while len(scheduler.inbox):  # the ledger is told what these statuses tell of
            for effect in scheduler.step(self.clock.now(), self.clock.monotonic()).effects:
                self.ledger.take(effect)
        rows = await self.ledger.flush(within_s=ROWS_END_S)
        unanswered = sum(
            run.creating
            for entry in scheduler.state.entries.values()
            for run in entry.runs.values()
        )
        if any(unwritten) or unanswered or rows:
            # No harm, but whoever reads these statuses meanwhile should know that they are old.
            log(
                "left to the next process",
                level="warning",
                statuses=sum(unwritten),
                creates=unanswered,
                ledger_rows=rows,
            )

    async def _listen_to_watches(self) -> None:
        """A status that says that all is well while no end of a Job is seen would be wrong."""
        silent = dict.fromkeys(self.settings.namespaces or ("",), False)
        while True:
            await clocks.sleep(LISTEN_S)
            for ns, reflector in zip(silent, self.jobs, strict=True):
                silence_s = max(reflector.silence_s, reflector.unanswered_s)
                if (silence_s > READY_WITHIN_S) is silent[ns]:
                    continue
                silent[ns] = not silent[ns]
                self.scheduler.inbox.hint(("silent", ns), JobsSilent(ns, silent[ns]))
                event = "ends of runs are not seen" if silent[ns] else "ends of runs are seen again"
                log(event, level="error" if silent[ns] else "info", ns=ns)

    async def _picture_the_load(self) -> None:
        """For /metrics, away from the loop: to count who runs in which hour takes 20 ms at ten
        thousand schedules, and every scrape that follows an edit would stop the loop for it."""
        load, pictured = self.scheduler.state.load, -1
        while True:
            if load.version != pictured:
                pictured = load.version
                now = int(self.clock.now())
                self._picture = await asyncio.to_thread(load.snapshot().distribution, now)
            await clocks.sleep(PICTURE_S)

    async def _become_ready(self) -> None:
        while not self.scheduler.ready:
            await clocks.sleep(0.05)
        # Ten thousand schedules that live for ever: a full collection would stop the loop for
        # 80 ms at each of its passes over them.
        gc.collect()
        gc.freeze()
        self.metrics.counts.became_ready()
        log("ready", schedules=len(self.scheduler.state.entries))

    async def _announce(self, launch: Launch) -> bool:
        """Store the status that names a run before its create: that of its request, if it has
        one."""
        if launch.request is not None:
            return await self.request_sync.write_now(launch.request.uid, launch.announced)
        return await self.status_sync.write_now(launch.schedule.uid, launch.announced)

    def _complain(self, what: str, sentence: str) -> None:
        """Say what does not work, without saying it a thousand times."""
        now = self.clock.monotonic()
        if now - self._complained_at.get(what, float("-inf")) >= COMPLAINT_S:
            self._complained_at[what] = now
            log(what, level="warning", sentence=sentence)

    def _watch_restarted(self, why: WatchRestart, sentence: str) -> None:
        self.metrics.watch_restarts.labels(why.value).inc()
        self._complain("watch of jobs begun anew", sentence)

    def _present(self) -> Present:
        """What the ledger asks the scheduler, between two steps."""
        scheduler, state = self.scheduler, self.scheduler.state
        return Present(
            known=scheduler.known,
            exists=lambda uid: state.knows(uid) > 0,
            schedules=lambda: tuple(state.entries),
            launched=scheduler.launched,
            requests=scheduler.request_kinds,
            ready=lambda: scheduler.ready,
        )

    def _minute(self) -> Picture:
        """What the ledger keeps of the present minute beside what happens in it."""
        state, picture = self.scheduler.state, self._picture
        return Picture(
            load=picture.slots[0],
            score=picture.distribution_score,
            active=state.census.running,
            index_runs=state.statistics.index_runs,
        )
