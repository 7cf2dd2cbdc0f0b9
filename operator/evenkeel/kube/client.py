"""The real `Api`: aiohttp with the credentials that the `kubernetes` package finds.

A create costs 100 us of CPU, where the generated client takes 800. A call is repeated once, and
only where new credentials may help: after a 401, or when the server shows a certificate that the
old credentials do not know. Callers repeat all other calls, for they know what was asked.

A watch that is open when its session must be closed ends with NoAnswer. A watch whose connection
dies without a word does not end here: see `Reflector`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Self, TypeVar

import aiohttp

from evenkeel import clock
from evenkeel.errors import CannotStart
from evenkeel.kube.api import JSON, SILENCE_S, UNCOMPRESSED, NoAnswer, NotSent, Reply
from evenkeel.kube.credentials import NO_TOKEN, Credentials
from evenkeel.kube.daemon_worker import DaemonWorker

T = TypeVar("T")

USER_AGENT = f"evenkeel/{version('evenkeel-operator')}"
"""Tells the operator's writes from kopf's and from people's in a cluster's audit log."""

KEEP_ALIVE_S = 75
"""Longer than preSchedule: a connection that was warmed must still be there at the due second."""

KEPT = ("Retry-After", "Date")

CONNECT_SHARE = 0.8
"""The part of the time-out within which there must be a connection. Without one the request was
certainly not sent, and its Job need not be looked for by name."""

UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ValueError)
"""ValueError: aiohttp refuses the URL or a header, a token of two lines for example."""

TOKEN_S = 30.0
"""How long a token is used before it is read again. No token lives shorter than ten minutes."""

NOT_READ_FOR_S = 5.0
"""How long credentials are not read again after a reading that found the same ones. While 401s
last, each call would read them."""

ANSWERING_S = 150.0
"""A longer pause between two answers means that the API server was away, or this process stood
still. Shorter ones are those of a quiet operator."""

START_WITHIN_S = 60.0
"""How long the first reading of the credentials may take: a credential plugin may have more to do
then, and no run waits for it yet."""

TLS_CLOSE_S = 0.1
"""How long TLS connections are given to close before the loop does. Otherwise asyncio reports them
as left open."""

LINE_BYTES = 4 * 1024 * 1024
"""A watch line holds one object, and no object of an API server is larger than etcd's 1.5 MB."""


class KubeClient:
    """One session. Open it inside the loop that uses it."""

    def __init__(
        self, load: Callable[[], Credentials], *, timeout_s: float, connections: int
    ) -> None:
        self._load = load
        self._timeout_s = timeout_s
        self._connections = connections
        self._worker = DaemonWorker()
        self._credentials: Credentials
        self._session: aiohttp.ClientSession | None = None
        self._outgoing: set[aiohttp.ClientSession] = set()
        self._watches: dict[aiohttp.ClientSession, set[_Stream]] = {}
        """The open watches of each session."""
        self._renewing = asyncio.Lock()
        self._not_read_until = float("-inf")
        self._why_not_read = ""
        """Why the credentials could not be read again; empty: the same ones were found."""
        self._token: Mapping[str, str] = {}
        self._authorized_at = float("-inf")
        self._answered_at = self._answering_since = float("-inf")

    async def __aenter__(self) -> Self:
        try:
            self._credentials = await self._read(self._load, within_s=START_WITHIN_S)
            self._open()
            await self._ask_token()
        except NotSent as error:
            await self.__aexit__()
            raise CannotStart(str(error)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        open_sessions = [one for one in (self._session, *self._outgoing) if one is not None]
        for session in open_sessions:
            self._end_watches(session)
            await session.close()
        if open_sessions and self._credentials.context is not None:
            await clock.sleep(TLS_CLOSE_S)

    def _open(self) -> None:
        credentials = self._credentials
        connector = aiohttp.TCPConnector(
            limit=self._connections,
            ssl=credentials.context if credentials.context else True,
            keepalive_timeout=KEEP_ALIVE_S,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers={"User-Agent": USER_AGENT, **UNCOMPRESSED},
            timeout=aiohttp.ClientTimeout(
                total=self._timeout_s, connect=self._timeout_s * CONNECT_SHARE
            ),
            trust_env=False,
            auto_decompress=True,
            read_bufsize=1 << 18,
            max_line_size=1 << 16,
        )

    async def call(
        self,
        verb: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> Reply:
        """See `Api.call`."""
        used = self._credentials, await self._authorization()
        request = verb, path, body, content_type, params, accept
        try:
            reply = await self._call(used[1], *request)
        except NotSent as error:
            # The server shows an unknown certificate: perhaps its CA was rotated.
            if not isinstance(error.__cause__, ssl.SSLError | aiohttp.ClientSSLError):
                raise
            if not await self._renew(*used):
                raise
            return await self._call(await self._authorization(), *request)
        if reply.status == 401 and await self._renew(*used):
            reply = await self._call(await self._authorization(), *request)
        now = asyncio.get_running_loop().time()
        if now - self._answered_at > ANSWERING_S:
            self._answering_since = now
        self._answered_at = now
        return reply

    @property
    def credentials(self) -> Credentials:
        """Those in use."""
        return self._credentials

    @property
    def answering_s(self) -> float:
        """For how long calls have been answered, without a longer pause; 0: they are not."""
        now = asyncio.get_running_loop().time()
        return now - self._answering_since if now - self._answered_at <= ANSWERING_S else 0.0

    async def _call(
        self,
        token: Mapping[str, str],
        verb: str,
        path: str,
        body: bytes | None,
        content_type: str,
        params: Mapping[str, str] | None,
        accept: str,
    ) -> Reply:
        assert self._session is not None
        headers = {**token, "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._session.request(
                verb,
                self._credentials.server + path,
                data=body,
                params=params,
                headers=headers,
                # A create sent on to a login page would be answered with a 200.
                allow_redirects=False,
            ) as response:
                return Reply(response.status, await response.read(), _headers(response))
        except UNSENT as error:
            raise NotSent(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"{type(error).__name__} {error}".strip()) from error

    async def _renew(self, refused: Credentials, token: Mapping[str, str]) -> bool:
        """Read the credentials again; True when they are others than the server just refused.

        Only other certificates need another session. A token goes into each request by itself, so
        a rotated one leaves the connections, and the watches on them, as they are."""
        async with self._renewing:
            if self._credentials is not refused or self._token != token:
                return True  # another call has brought the new ones already
            now = asyncio.get_running_loop().time()
            if now < self._not_read_until:
                # Otherwise many calls would each read the credentials, one after the other.
                if self._why_not_read:
                    raise NotSent(self._why_not_read)
                return False
            try:
                renewed = await self._read(self._load)
            except (CannotStart, NotSent) as error:  # half written: a later call finds the rest
                self._do_not_read_soon(str(error))
                raise NotSent(self._why_not_read) from error
            if renewed.fingerprint == refused.fingerprint:
                return await self._take_up_token(renewed, refused=token)
            old, self._credentials = self._session, renewed
            # Before the token is read: reading it may fail, and the old certificates must go.
            self._open()
            if old is not None:
                # Calls that still use the old session get their answers first.
                self._outgoing.add(old)
                asyncio.get_running_loop().call_later(self._timeout_s, self._close, old)
            await self._ask_token()
            return True

    async def _take_up_token(self, renewed: Credentials, *, refused: Mapping[str, str]) -> bool:
        try:
            found = await self._read(renewed.headers)
        except (NotSent, *NO_TOKEN) as error:
            self._do_not_read_soon(f"no token: {error}")
            raise NotSent(self._why_not_read) from error
        if found == refused:
            self._do_not_read_soon()
            return False
        self._credentials, self._token = renewed, found
        self._authorized_at = asyncio.get_running_loop().time()
        return True

    def _do_not_read_soon(self, trouble: str = "") -> None:
        self._why_not_read = trouble
        self._not_read_until = asyncio.get_running_loop().time() + NOT_READ_FOR_S

    async def _authorization(self) -> Mapping[str, str]:
        """The header with the token. It is read in another thread: a program may have to be run."""
        if asyncio.get_running_loop().time() - self._authorized_at > TOKEN_S:
            await self._ask_token()
        return self._token

    async def _ask_token(self) -> None:
        self._authorized_at = (
            asyncio.get_running_loop().time()
        )  # other calls use the old token meanwhile
        try:
            self._token = await self._read(self._credentials.headers)
        except NO_TOKEN as error:
            self._authorized_at = float("-inf")
            raise NotSent(f"no token: {error}") from error

    async def _read(self, work: Callable[[], T], *, within_s: float | None = None) -> T:
        """Work on credentials, in another thread and bounded: a credential plugin may hang."""
        try:
            return await self._worker.do(work, within_s=within_s or self._timeout_s)
        except TimeoutError as error:
            raise NotSent("the credentials could not be read in time") from error

    def _close(self, session: aiohttp.ClientSession) -> None:
        self._end_watches(session)
        closing = asyncio.ensure_future(session.close())
        closing.add_done_callback(lambda _: self._outgoing.discard(session))

    def _end_watches(self, session: aiohttp.ClientSession) -> None:
        """Before the session is closed: aiohttp forgets the reader of a connection that it closes
        itself, and stops its timer, so the reader would wait for ever."""
        for stream in self._watches.pop(session, ()):
            stream.end("the session was closed")

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        """See `Api.watch`."""
        assert self._session is not None
        used = self._credentials, await self._authorization()
        session = self._session
        timeout = aiohttp.ClientTimeout(total=None, connect=self._timeout_s, sock_read=SILENCE_S)
        try:
            response = await session.get(
                self._credentials.server + path,
                params={**params, "watch": "1"},
                headers={**used[1], "Accept": JSON},
                timeout=timeout,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise NotSent(str(error)) from error
        stream = _Stream(response)
        if session.closed:
            stream.end("the session was closed")
        else:
            self._watches.setdefault(session, set()).add(stream)
        try:
            if response.status == 401:
                await self._renew(*used)
            yield stream
        finally:
            self._watches.get(session, set()).discard(stream)
            response.close()


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers that the operator reads; several warnings become one text."""
    found = {name: response.headers[name] for name in KEPT if name in response.headers}
    if warnings := response.headers.getall("Warning", []):
        found["Warning"] = "; ".join(warnings)
    return found


class _Stream:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    def end(self, why: str) -> None:
        """End the watch: its reader gets NoAnswer."""
        self._response.content.set_exception(aiohttp.ClientConnectionError(why))

    async def lines(self) -> AsyncIterator[bytes]:
        """Chunks are cut at line ends here: aiohttp's own line reader stops at 512 kB."""
        rest = b""
        try:
            async for chunk in self._response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                if len(rest) > LINE_BYTES:
                    raise NoAnswer("a watch line longer than any object")
                for line in lines:
                    if line:
                        yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(f"{type(error).__name__} {error}".strip()) from error

    async def reply(self) -> Reply:
        try:
            return Reply(self.status, await self._response.read(), _headers(self._response))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswer(str(error)) from error
