"""The rim: kopf watches ScheduledJobs in a thread of its own and tells us what it sees.

One handler, `on.event`, which writes nothing; any other kind of handler would write to every
ScheduledJob. Kopf does not report deletions that happen while its watch is lost, nor the end of
its list: `Pruner` makes up for both with a LIST of its own.
"""

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import aiohttp
import kopf
import orjson
import uvloop

from evenkeel import clock
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import ScheduleGone, ScheduleSeen, SchedulesListed
from evenkeel.kube.api import UNCOMPRESSED, Api, NoAnswer, NotSent, schedules_path
from evenkeel.kube.credentials import Credentials
from evenkeel.resource.names import GROUP, PLURAL, VERSION
from evenkeel.resource.read import read
from evenkeel.resource.status import parse

CHUNK = 500
"""Objects a page: kopf reads a page with the interpreter's lock held, 0.3 ms an object."""

NOT_READY_S = 3.0

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Sight = Callable[[str | None, Mapping[str, Any]], None]


class Sights:
    """Raw objects become messages. `see` is called in kopf's thread, and does the reading there."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        hand_over: Callable[..., object],
        min_interval_s: int,
        namespaces: tuple[str, ...] = (),
    ) -> None:
        """`hand_over` is the main loop's call_soon_threadsafe."""
        self._inbox = inbox
        self._hand_over = hand_over
        self._min_interval_s = min_interval_s
        self._namespaces = namespaces
        self._generations: dict[str, int] = {}

    def see(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """One object as the watch gave it; `kind` is None in the first list."""
        metadata = raw.get("metadata") or {}
        uid = str(metadata.get("uid", ""))
        if self._namespaces and metadata.get("namespace") not in self._namespaces:
            return
        # Deleted in the foreground it stays until its Jobs are gone, and must not create new ones.
        if kind == "DELETED" or metadata.get("deletionTimestamp"):
            self._generations.pop(uid, None)
            self._hand_over(self._inbox.hint, uid, ScheduleGone(uid))
            return
        generation = metadata.get("generation", 0)
        if kind is not None and self._generations.get(uid) == generation:
            return  # our own status write, come back
        self._generations[uid] = generation
        schedule = read(raw, min_interval_s=self._min_interval_s)
        memory = parse(raw.get("status"), version=str(metadata.get("resourceVersion", "")))
        self._hand_over(self._inbox.hint, uid, ScheduleSeen(schedule, memory))


class _NoDiffBase(kopf.DiffBaseStorage):
    """Kopf computes and stores a digest of each object for handlers that we do not have."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> Any:
        return {}

    def fetch(self, *, body: kopf.Body) -> None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: Any) -> None:
        return None


class _QuickResponse(aiohttp.ClientResponse):
    """Kopf's lists, read by orjson: the standard library's reader held the interpreter's lock for
    125 ms a page."""

    async def json(self, **_: object) -> Any:
        return orjson.loads(await self.read())


class _Patience:
    """Pauses between two tries of kopf's, without an end: by its own eight it gives up after 54 s,
    and an API server that is upgraded may be away for longer."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1, 1, 2, 3), itertools.repeat(5))


class KopfThread:
    """Kopf, where its pauses and its clean-up of others' tasks cannot reach the scheduler."""

    def __init__(
        self,
        load: Callable[[], Credentials],
        see: Sight,
        *,
        namespaces: tuple[str, ...],
        on_death: Callable[[BaseException | None], object],
    ) -> None:
        self._load = load
        self._see = see
        self._namespaces = namespaces
        self._on_death = on_death
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

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
        self._stop.set()
        self._thread.join(timeout=3)  # a daemon: it may be left behind

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._operate())
        except BaseException as error:  # noqa: BLE001 - a silent end would be a blind scheduler
            failure = error
        if not self._stop.is_set():
            self._on_death(failure)

    async def _operate(self) -> None:
        await kopf.operator(
            registry=self._registry(),
            settings=_settings(),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=self._stop,
        )
        # TLS connections say goodbye before the loop closes, or asyncio reports an error.
        await clock.sleep(0.1)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
        async def seen(type: str | None, body: kopf.Body, **_: object) -> None:
            self._see(type, cast(Mapping[str, Any], body))

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.AiohttpSession:
            credentials = await asyncio.to_thread(self._load)
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=8, ssl=credentials.context if credentials.context else True
                ),
                headers={**credentials.headers(), **UNCOMPRESSED},
                response_class=_QuickResponse,
            )
            return kopf.AiohttpSession(server=credentials.server, aiohttp_session=session)

        return registry


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.watching.chunk_size = CHUNK
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
    settings.networking.error_backoffs = _Patience()
    return settings


class Pruner:
    """An own LIST of the ScheduledJobs' metadata, at the start and every few minutes."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        *,
        now: Callable[[], float],
        known: Callable[[str], int],
        namespaces: tuple[str, ...],
        every_s: float,
        complain: Callable[[str, str], None] = lambda what, sentence: None,
        ready: Callable[[], bool] = lambda: True,
        known_count: Callable[[], int] = lambda: 0,
    ) -> None:
        """`known` tells the generation of a schedule that the scheduler has, 0 for none.

        Until it is `ready` the list is asked for again once no more become known: what was
        deleted between it and kopf's own would be waited for till the next one."""
        self._ready = ready
        self._known_count = known_count
        self._api = api
        self._inbox = inbox
        self._now = now
        self._known = known
        self._namespaces = namespaces
        self._every_s = every_s
        self._complain = complain
        self.see: Sight | None = None
        """Who is shown a schedule that the watch should have shown, if there is somebody."""
        self.heard_at = now()
        """When all were listed last."""
        self._unseen: frozenset[str] = frozenset()

    async def run(self) -> None:
        """List until cancelled."""
        while True:
            pause_s = self._every_s
            try:
                await self.list_once()
            except (NotSent, NoAnswer) as error:
                self._complain("schedules cannot be listed", str(error))
                pause_s = min(5.0, self._every_s)
            if self._ready():
                await clock.sleep(clock.jitter(pause_s))
            else:
                await self._stand_still(pause_s)

    async def _stand_still(self, pause_s: float) -> None:
        """While more and more become known another list would only take what that needs."""
        before = -1
        while pause_s > 0 and not self._ready() and self._known_count() > before:
            before = self._known_count()
            await clock.sleep(clock.jitter(min(NOT_READY_S, pause_s)))
            pause_s -= NOT_READY_S

    async def list_once(self) -> None:
        """Tell the scheduler which there are."""
        listed_at = self._now()
        found: dict[str, tuple[str, int]] = {}
        for ns in self._namespaces or ("",):
            params = {"limit": str(CHUNK)}
            while True:
                reply = await self._api.call(
                    "GET", schedules_path(ns), params=params, accept=METADATA_ONLY
                )
                if not reply.ok:
                    raise NoAnswer(reply.message)
                page = reply.json()
                metadata = page.get("metadata") or {}
                if not metadata.get("resourceVersion"):
                    raise NoAnswer("not a list")  # taken for an empty one, it would prune them all
                found |= {
                    each["uid"]: (
                        schedules_path(each.get("namespace", ""), each.get("name", "")),
                        each.get("generation", 0),
                    )
                    for each in (item["metadata"] for item in page.get("items") or ())
                    if not each.get("deletionTimestamp")
                }
                if not (token := metadata.get("continue")):
                    break
                params["continue"] = token
        self.heard_at = listed_at
        self._inbox.hint("schedules", SchedulesListed(frozenset(found), listed_at))
        await self._show_unseen(found)

    async def _show_unseen(self, found: Mapping[str, tuple[str, int]]) -> None:
        """A schedule, or an edit of one, that two lists show and no watch has shown: it would never
        run, or by its old spec for ever."""
        if self.see is None:
            return
        unseen = {
            uid: path for uid, (path, generation) in found.items() if self._known(uid) < generation
        }
        for uid in unseen.keys() & self._unseen:
            reply = await self._api.call("GET", unseen[uid])
            if reply.ok:
                self._complain("schedule not shown by its watch", unseen[uid])
                self.see(None, reply.json())
        self._unseen = frozenset(unseen)
