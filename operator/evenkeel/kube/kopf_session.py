"""Kopf's sessions with the API server: how it logs in, reads, and whether it watches at all.

Called by kopf, in its thread. What kopf would repeat without a pause is slowed down here: a watch
that ends at once, a list after a 410, a login after a 401. Where discovery does not name our
resource, which is so for a moment after its CRD was applied, kopf never asks for it and goes on:
`ask_for_schedules` tells.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, cast

import aiohttp
import kopf
import yarl

from evenkeel import clock
from evenkeel.errors import EvenkeelError
from evenkeel.kube.api import DEEPEST, UNCOMPRESSED, load_json, shallow
from evenkeel.kube.credentials import NO_TOKEN, Credentials
from evenkeel.kube.daemon_worker import DaemonWorker
from evenkeel.log import log
from evenkeel.resource.names import PLURAL

BLIND_AFTER_S = 30.0
"""So long kopf may ask nothing before it has asked for our resource: between two tries of a request
it pauses for 5 s."""

PACE_S = 1.0
"""Between two lists of one path, or two watches: kopf itself sent 5,000 a second to a server that
closed each watch at once. A watch that lived for longer is taken up again at once."""

LASTS_S = 60.0
"""A session that served for so long was good: what replaces it is not waited for."""

LOGIN_PAUSE_S, LONGEST_LOGIN_PAUSE_S = 1.0, 10.0
"""Before another session when the last was refused soon, jittered; doubled each time."""

LOGIN_WITHIN_S = 30.0
"""Programs that ask a cloud for a token take seconds."""


class KopfSessions:
    """One after the other: kopf asks for a new one after each 401."""

    def __init__(self, load: Callable[[], Credentials], *, watches: int) -> None:
        """`watches`: how many kopf will have open at a time."""
        self._load = load
        self._worker = DaemonWorker()
        self._watches = watches
        self._asked_for_schedules = False
        self._next_at: dict[tuple[str, bool], float] = {}
        """When a path may be listed or watched again."""
        self._opened_at = float("-inf")
        self._refused = 0
        self._under_way = 0
        self._ended_at = float("-inf")

    async def open(self) -> kopf.AiohttpSession:
        """Log in."""
        with self._busy():
            await self._pause()
            credentials, authorization = await self._read()
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._watches + 8, ssl=credentials.context if credentials.context else True
            ),
            headers={**authorization, **UNCOMPRESSED},
            response_class=_QuickResponse,
            middlewares=[self.send],
        )
        self._opened_at = asyncio.get_running_loop().time()
        return kopf.AiohttpSession(server=credentials.server, aiohttp_session=session)

    async def _read(self) -> tuple[Credentials, dict[str, str]]:
        """Until there are some: kopf would end over a file that is half written, and over a
        program that hangs it would see nothing any more."""
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

    async def ask_for_schedules(self) -> bool:
        """True once kopf has asked for them; False when it is through without having done so."""
        self._ended_at = asyncio.get_running_loop().time()
        while self._under_way or self._quiet_s() < BLIND_AFTER_S:
            await clock.sleep(BLIND_AFTER_S / 10)
            if self._asked_for_schedules:
                return True
        return False

    def _quiet_s(self) -> float:
        return asyncio.get_running_loop().time() - self._ended_at

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
        """A request of kopf's, when its time has come."""
        with self._busy():
            if request.url.path.endswith(f"/{PLURAL}"):
                self._asked_for_schedules = True
                await self._pace(request.url)
            return await send(request)

    async def _pace(self, url: yarl.URL) -> None:
        if "continue" in url.query:  # the next page of a list that goes on
            return
        key = url.path, "watch" in url.query
        now = asyncio.get_running_loop().time()
        may_at = max(now, self._next_at.get(key, now))
        self._next_at[key] = may_at + PACE_S
        await clock.sleep(may_at - now)


class _QuickResponse(aiohttp.ClientResponse):
    """Kopf's lists, read by orjson: the standard library's reader held the interpreter's lock for
    125 ms a page. Of what it watches, an object that is nested too deeply for that reader is cut
    where it would give up: kopf would end over it, and so would all schedules over one."""

    async def start(self, connection: Any) -> Self:
        await super().start(connection)
        self.content = cast(aiohttp.StreamReader, _ShallowLines(self.content))
        return self

    async def json(self, **_: object) -> Any:
        return load_json(await self.read())


class _ShallowLines:
    """A stream whose lines can be read by whoever reads them."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in self._content.iter_chunked(size):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                nests = line.count(b"{") + line.count(b"[")
                yield (shallow(line) if nests > DEEPEST else line) + b"\n"
        if rest:
            yield rest
