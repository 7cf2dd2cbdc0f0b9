"""One life of the operator: the real `app.Operator` with its launcher, reflectors and writers.

Only kopf is replaced, by our own `Reflector` with the same listeners: kopf needs a real server. As
with kopf, a list does not tell of deletions; the `Pruner` does.
"""

from __future__ import annotations

import asyncio
import contextvars
import traceback
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.sim.network import Connection, CrashPoint
from tests.sim.outcome import Left
from tests.sim.server import Json
from tests.sim.store import SimulatedStore, StoreCrash
from tests.sim.world import NO_LEDGER

from evenkeel.app import Operator
from evenkeel.core.census import Census
from evenkeel.core.effects import Answer
from evenkeel.core.messages import GetActiveRuns, GetSchedule, Message
from evenkeel.kube.api import requests_path, schedules_path
from evenkeel.kube.listener import Listener, RequestListener, ScheduleListener
from evenkeel.kube.reflector import Reflector
from evenkeel.model import BY_SCHEDULE
from evenkeel.settings import Settings

if TYPE_CHECKING:
    from tests.sim.play import Play

STEPS_TO_AN_ANSWER = 50
"""A question waits behind what is in the inbox."""

CURRENT: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
"""Whose code is running; none: the world's own."""


class _Shown:
    """What a reflector sees, shown to the listener of a resource as kopf shows it."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def read(self, item: Json) -> Json:
        """The whole object: the listener reads it."""
        return item

    def listed(self, found: list[Json], listed_at: float) -> None:
        """As kopf tells of a list: without a kind of event."""
        for item in found:
            self._listener.see(None, item)

    def changed(self, kind: str, item: Json) -> None:
        """As kopf tells of a change."""
        self._listener.see(kind, item)

    def sizes(self) -> dict[str, int]:
        """It keeps nothing of the objects."""
        return {}


class Process:
    """From its start to its stop or crash."""

    def __init__(
        self, play: Play, number: int, crash_point: CrashPoint | StoreCrash | None
    ) -> None:
        self.store: SimulatedStore | None = None
        """Once it is open."""
        of_store = crash_point if isinstance(crash_point, StoreCrash) else None
        self.number = number
        self.play = play
        self.clock = play.clock
        self.connection = Connection(
            play.server,
            play.weather_of(number),
            who=f"operator {number}",
            crash_point=crash_point if isinstance(crash_point, CrashPoint) else None,
            crash=self.crash,
            note=play.record.note,
        )
        settings = Settings(**play.world.settings)
        self.operator = Operator(
            self.connection,
            play.clock,
            settings,
            open_store=None
            if NO_LEDGER in play.world.tags
            else partial(SimulatedStore.open, play.vault, self, of_store),
            process=f"operator {number}",
        )
        self.listener = ScheduleListener(
            self.operator.scheduler.inbox,
            hand_over=lambda act, *args: act(*args),
            min_interval_s=settings.min_interval_s,
            namespaces=settings.namespaces,
        )
        self.operator.status_sync.seen_version = self.listener.version
        self.request_listener = RequestListener(
            self.operator.scheduler.inbox,
            hand_over=lambda act, *args: act(*args),
            namespaces=settings.namespaces,
        )
        self.operator.request_sync.seen_version = self.request_listener.version
        self.reflectors = [
            Reflector(self.connection, path, _Shown(listener), now=play.clock.now)
            for path, listener in (
                (schedules_path(), self.listener),
                (requests_path(), self.request_listener),
            )
        ]
        # In the order of their birth: a set's own order is another one in each process.
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.over = asyncio.Event()
        self.crashed = False
        self.steps_since_ready = 0
        self._count_steps()

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
        context.run(CURRENT.set, self)
        asyncio.get_running_loop().create_task(self._main(), context=context)

    async def _main(self) -> None:
        watching = [asyncio.create_task(reflector.run()) for reflector in self.reflectors]
        try:
            await self.operator.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the operator died of it
            self.play.fail(f"operator {self.number} died: {text_of(error)}")
        finally:
            for watch in watching:
                watch.cancel()
            self.over.set()

    def crash(self) -> None:
        """kill -9: nothing of it gets out any more."""
        self.crashed = True
        self.connection.dead = True
        self.over.set()

    def stop(self) -> None:
        """SIGTERM."""
        self.operator.stop()

    def miscounted(self) -> list[str]:
        """What /metrics would say of the schedules, if it differs from a walk over all of them."""
        state, walked = self.operator.scheduler.state, Census()
        if state.touched:  # by a clock that is doubted nothing is followed up
            return []
        for entry in state.entries.values():
            walked.count(entry)
        kept = state.census
        told = (dict(kept.by_state), kept.running, kept.waiting)
        true = (dict(walked.by_state), walked.running, walked.waiting)
        return [] if told == true else [f"/metrics counts {told}, and there are {true}"]

    def left(self) -> Left:
        """What the process says of itself. The sizes come first: a question is a message, too."""
        sizes, tasks = self.operator.sizes(), len(self.tasks)
        outcome = self.play.outcome
        keys = {
            f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            for item in outcome.schedules.values()
        }
        active = [run for _, run, *_ in self._ask(GetActiveRuns)]
        return Left(
            now=self.clock.now(),
            ready=self.operator.scheduler.ready,
            sizes=sizes,
            tasks=tasks,
            behind=frozenset(self.operator.events.behind(1.0)),
            documents={
                key: self._ask(lambda asked, key=key: GetSchedule(asked, key))
                for key in sorted(keys)
            },
            active=frozenset((run.uid, run.due) for run in active if run.kind == BY_SCHEDULE),
            requested=frozenset(run for run in active if run.kind != BY_SCHEDULE),
        )

    def _ask(self, question: Callable[[object], Message]) -> Any:
        """Ask by a message, as everybody does. The scheduler is stepped here: time stands still."""
        scheduler, asked = self.operator.scheduler, object()
        assert scheduler.inbox.offer(question(asked))
        for _ in range(STEPS_TO_AN_ANSWER):
            for effect in scheduler.step(self.clock.now(), self.clock.monotonic()).effects:
                if isinstance(effect, Answer) and effect.ask is asked:
                    return effect.value
        raise AssertionError("a question without an answer")

    async def bury(self) -> None:
        self.connection.dead = True
        while alive := [task for task in self.tasks if not task.done()]:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive, timeout=0)
        for task in self.tasks:
            if not task.cancelled():
                task.exception()
        self.tasks.clear()


def owned(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    context: contextvars.Context | None = None,
    **options: Any,
) -> asyncio.Task[Any]:
    """A task belongs to the process whose code made it, and dies with it.

    The `options` differ between Pythons: some hand the name over, some set it afterwards."""
    task = asyncio.Task(work, loop=loop, context=context, **options)
    process = context.get(CURRENT) if context is not None else CURRENT.get()
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(lambda task: process.tasks.pop(task, None))
    return task


def text_of(error: BaseException | str) -> str:
    """With its traceback, if it has one."""
    if isinstance(error, str):
        return error
    return "".join(traceback.format_exception(error))
