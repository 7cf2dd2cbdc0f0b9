"""Kopf's sessions with the API server: how kopf logs in and reads, and whether it watches at all.

Kopf calls this module, in its own thread. Requests that kopf would repeat without a pause are
slowed down here: a watch that ends at once, a list after a 410, a login after a 401. Where
discovery does not name one of our resources, as for a moment after its CRD was applied, kopf goes
on without ever asking for it: `ask_for_all` tells.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, cast

import aiohttp
import kopf
import yarl

from evenkeel import clock
from evenkeel.errors import EvenkeelError
from evenkeel.kube.api import DEEPEST, UNCOMPRESSED, load_json, resource_path, shallow
from evenkeel.kube.credentials import NO_TOKEN, Credentials
from evenkeel.kube.daemon_worker import DaemonWorker
from evenkeel.log import log
from evenkeel.resource.names import PLURAL

ASKS_WITHIN_S = 30.0
"""How long kopf may send nothing before it has asked for one of our resources, and how long after
that it may take to ask for the others. Between two tries of a request it pauses for 5 s."""

PACE_S = 1.0
"""The least time between two lists of one path, or between two watches. Kopf alone sent 5,000 a
second to a server that closed each watch at once. After a watch that lasted longer, the next one
begins at once."""

LASTS_S = 60.0
"""A session that was used for so long was good: the next one is opened without a pause."""

LOGIN_PAUSE_S, LONGEST_LOGIN_PAUSE_S = 1.0, 10.0
"""The pause before another session where the last was refused soon. Jittered, doubled each time."""

LOGIN_WITHIN_S = 30.0
"""How long a login may take: a program that asks a cloud for a token needs seconds."""


class KopfSessions:
    """Kopf asks for a new session after each 401."""

    def __init__(
        self,
        load: Callable[[], Credentials],
        *,
        namespaces: tuple[str, ...],
        plurals: tuple[str, ...] = (PLURAL,),
    ) -> None:
        """`namespaces`: those that kopf watches; none: the whole cluster. `plurals`: of the
        resources that it watches."""
        self._load = load
        self._worker = DaemonWorker()
        self._clock = clock.SystemClock()
        self._answered_m = dict.fromkeys(
            (resource_path(plural, ns) for plural in plurals for ns in namespaces or ("",)),
            self._clock.monotonic(),
        )
        """By path: when the API server said anything to a list or watch of it, a refusal
        included."""
        self._heard_m = dict.fromkeys(plurals, self._clock.monotonic())
        """By resource: when a list or a watch was granted, or a watch told something."""
        self.not_found = asyncio.Event()
        """A list or watch was answered with 404: a resource is not served any more."""
        self._unasked = set(plurals)
        """Resources that kopf has not asked for yet."""
        self._asked_at: float | None = None
        """When it asked for the first of them."""
        self._next_at: dict[tuple[str, bool], float] = {}
        """When a path may be listed or watched again."""
        self._opened_at = float("-inf")
        self._refused = 0
        self._under_way = 0
        self._ended_at = float("-inf")

    @property
    def unanswered_s(self) -> float:
        """Since the API server said anything to the watch that has waited longest for it. Read by
        another thread."""
        return self._clock.monotonic() - min(self._answered_m.values())

    @property
    def silence_s(self) -> float:
        """Since any watch was told something, if only that it may watch; of the resource of which
        that is longest ago. A quiet watch is opened anew every 90 s."""
        return self._clock.monotonic() - min(self._heard_m.values())

    async def open(self) -> kopf.AiohttpSession:
        """Log in."""
        with self._busy():
            await self._pause()
            credentials, authorization = await self._read()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=len(self._answered_m) + 8,
                ssl=credentials.context if credentials.context else True,
            ),
            headers={**authorization, **UNCOMPRESSED},
            response_class=_QuickResponse,
            middlewares=[self.send],
        )
        self._opened_at = asyncio.get_running_loop().time()
        return kopf.AiohttpSession(server=credentials.server, aiohttp_session=session)

    async def _read(self) -> tuple[Credentials, dict[str, str]]:
        """Credentials, tried for until they can be read. Kopf would end over a file that is half
        written, and a program that hangs would keep it from watching."""
        said = ""
        async for _ in clock.tries(LOGIN_PAUSE_S, LONGEST_LOGIN_PAUSE_S):
            try:
                return await self._worker.do(self._load_all, within_s=LOGIN_WITHIN_S)
            except (EvenkeelError, *NO_TOKEN) as error:
                sentence = str(error) or "they could not be read in time"
                if sentence != said:
                    log("no credentials for the watch", level="warning", sentence=sentence)
                said = sentence
        raise AssertionError("tries have no end")

    def _load_all(self) -> tuple[Credentials, dict[str, str]]:
        credentials = self._load()
        return credentials, credentials.headers()

    async def _pause(self) -> None:
        """Another login means that the last session was refused."""
        if asyncio.get_running_loop().time() - self._opened_at > LASTS_S:
            self._refused = 0
            return
        pause_s = min(LONGEST_LOGIN_PAUSE_S, LOGIN_PAUSE_S * 2**self._refused)
        self._refused = min(self._refused + 1, 10)
        await clock.sleep(clock.jitter(pause_s))

    async def ask_for_all(self) -> bool:
        """True once kopf has asked for each of the resources; False when it sends nothing more
        without having done so. It asks for all of them at once, so where it has asked for one, no
        other request of it counts."""
        self._ended_at = asyncio.get_running_loop().time()
        while self._unasked:
            may_ask = self._under_way and self._asked_at is None
            if not may_ask and self._quiet_s() >= ASKS_WITHIN_S:
                return False
            await clock.sleep(ASKS_WITHIN_S / 10)
        return True

    def _quiet_s(self) -> float:
        since = self._ended_at if self._asked_at is None else self._asked_at
        return asyncio.get_running_loop().time() - since

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._ended_at = asyncio.get_running_loop().time()

    async def send(
        self, request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request of kopf's, after the pause that it needs."""
        with self._busy():
            path = request.url.path
            plural = path.rpartition("/")[2]
            if plural not in self._heard_m:
                return await send(request)
            self._unasked.discard(plural)
            if self._asked_at is None:
                self._asked_at = asyncio.get_running_loop().time()
            await self._pace(request.url)
            response = await send(request)
            self._hear(plural, path, granted=response.ok)
            if response.status == 404:
                # Kopf would fail over it, and its other watches might keep it from ending.
                response.close()
                self.not_found.set()
                await asyncio.get_running_loop().create_future()
            if isinstance(content := response.content, _ShallowLines):
                content.heard = partial(self._hear, plural, path)
            return response

    def _hear(self, plural: str, path: str, *, granted: bool = True) -> None:
        now = self._clock.monotonic()
        for known in self._answered_m:
            if path.endswith(known):  # there may be more before it: a server behind a proxy
                self._answered_m[known] = now
        if granted:
            self._heard_m[plural] = now

    async def _pace(self, url: yarl.URL) -> None:
        if "continue" in url.query:  # the next page of a list that goes on
            return
        key = url.path, "watch" in url.query
        now = asyncio.get_running_loop().time()
        may_at = max(now, self._next_at.get(key, now))
        self._next_at[key] = may_at + PACE_S
        await clock.sleep(may_at - now)


class _QuickResponse(aiohttp.ClientResponse):
    """A response whose lists are read by orjson: the standard library's reader held the
    interpreter's lock for 125 ms a page. In a watch, objects that are nested too deeply for that
    reader are cut: kopf would end over one of them, and no schedule would be watched."""

    async def start(self, connection: Any) -> Self:
        await super().start(connection)
        self.content = cast(aiohttp.StreamReader, _ShallowLines(self.content))
        return self

    async def json(self, **_: object) -> Any:
        return load_json(await self.read())


class _ShallowLines:
    """A stream of lines, none of which is nested too deeply for its reader."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self.heard: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in self._content.iter_chunked(size):
            self.heard()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                nests = line.count(b"{") + line.count(b"[")
                yield (shallow(line) if nests > DEEPEST else line) + b"\n"
        if rest:
            yield rest
