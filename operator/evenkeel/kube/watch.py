"""Kopf watches our resources, in a thread and an asyncio loop of its own, and shows what it sees.

Each resource has one handler, `on.event`, which writes nothing: any other kind of handler would
write to every object. Kopf reports neither deletions that happen while its watch is broken nor the
end of its list; `pruner` finds out both.
"""

import asyncio
import itertools
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

import kopf
import uvloop

from evenkeel import clock
from evenkeel.errors import CannotStart
from evenkeel.kube.api import SILENCE_S
from evenkeel.kube.client import TLS_CLOSE_S
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.kopf_session import KopfSessions
from evenkeel.kube.listener import Sight
from evenkeel.resource.names import GROUP, VERSION

CHUNK = 500
"""Objects a page: kopf reads a page with the interpreter's lock held, 0.3 ms an object."""


class _NoDiffBase(kopf.DiffBaseStorage):
    """Stores nothing: kopf would keep a digest of each object for handlers that we do not have."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> Any:
        return {}

    def fetch(self, *, body: kopf.Body) -> None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: Any) -> None:
        return None


class _EndlessPauses:
    """Pauses between kopf's tries of a request. Kopf's own eight pauses end after 54 s, and an API
    server that is upgraded may be away for longer."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1, 1, 2, 3), itertools.repeat(5))


class KopfThread:
    """Kopf in a thread: its pauses, and its cancelling of tasks that are not its own, would stop
    the scheduler."""

    def __init__(
        self,
        load: Callable[[], Credentials],
        sights: Mapping[str, Sight],
        *,
        namespaces: tuple[str, ...],
        on_death: Callable[[BaseException | None], object],
    ) -> None:
        """`sights`: by the plural of each resource that is watched, who is shown its objects."""
        self._sessions = KopfSessions(load, namespaces=namespaces, plurals=tuple(sights))
        self._sights = sights
        self._namespaces = namespaces
        self._on_death = on_death
        self._stop = threading.Event()
        self._end_known = False
        """It was asked for, or is told already."""
        self.never_watched = False
        """Kopf did not ask for each resource, because discovery did not name all when kopf looked.
        It looks once."""
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    @property
    def unanswered_s(self) -> float:
        """See `KopfSessions`."""
        return self._sessions.unanswered_s

    @property
    def silence_s(self) -> float:
        """See `KopfSessions`."""
        return self._sessions.silence_s

    @property
    def not_found(self) -> bool:
        """See `KopfSessions`."""
        return self._sessions.not_found.is_set()

    def start(self) -> None:
        """Begin to watch."""
        # One INFO line per event otherwise: ten thousand at the start.
        logging.getLogger("kopf").setLevel(logging.WARNING)
        # It says at each start that signals are ours; they are.
        logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        # Stopped in the middle of a request, kopf reports the connection that we take from it.
        logging.getLogger("kopf").setLevel(logging.CRITICAL)
        self._end_known = True
        self._stop.set()
        self._thread.join(timeout=3)  # a daemon: it may be left behind

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._operate())
        except BaseException as error:  # noqa: BLE001 - a silent end would be a blind scheduler
            failure = error
        self._tell_death(failure)

    def _tell_death(self, failure: BaseException | None) -> None:
        if not self._end_known:
            self._end_known = True
            self._on_death(failure)

    async def _operate(self) -> None:
        beside = [
            asyncio.create_task(work)
            for work in (self._prove_that_it_watches(), self._end_when_not_found())
        ]
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=self._stop,
            )
        finally:
            # Kopf waits for the flag in a thread of its own, and the runner waits for that thread:
            # where kopf has ended by itself, nobody would ever learn of it.
            self._stop.set()
            for task in beside:
                task.cancel()
        await clock.sleep(TLS_CLOSE_S)
        if self.never_watched:
            raise CannotStart("kopf never began it: discovery did not name each resource")

    async def _prove_that_it_watches(self) -> None:
        if not await self._sessions.ask_for_all():
            self.never_watched = True
            self._stop.set()

    async def _end_when_not_found(self) -> None:
        await self._sessions.not_found.wait()
        # At once: whoever waits for the resource need not wait for the end of kopf.
        self._tell_death(CannotStart("404: a resource that was watched is not served any more"))
        self._stop.set()

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        for plural, see in self._sights.items():
            kopf.on.event(GROUP, VERSION, plural, registry=registry)(_shown_to(see))

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.AiohttpSession:
            return await self._sessions.open()

        return registry


def _shown_to(see: Sight) -> Callable[..., Awaitable[None]]:
    async def seen(type: str | None, body: kopf.Body, **_: object) -> None:
        see(type, cast(Mapping[str, Any], body))

    return seen


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.watching.chunk_size = CHUNK
    # Not left to kopf's default: without an end a connection that died in silence blinds us.
    settings.watching.inactivity_timeout = SILENCE_S
    settings.queueing.idle_timeout = 0.05
    settings.queueing.exit_timeout = 5
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.persistence.finalizer = f"{GROUP}/unused"
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = kopf.StatusProgressStorage()
    # Kopf would kill the process ten minutes after an end that it did not expect.
    settings.process.ultimate_exiting_timeout = None
    settings.networking.error_backoffs = _EndlessPauses()
    return settings
