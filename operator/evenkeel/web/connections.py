"""Bounds the connections to an HTTP server: who holds many open takes neither the descriptors that
creates need nor the turn of probes.

`HealthServer` listens through `BoundedServer`. A request's head must be complete within 5 s of the
connection or of the answer before it. Over the limit, the oldest connection without a complete
request is closed for the new one; if each has a complete request, the oldest of them is. Not
guaranteed: that a probe is answered if more connections than the limit come at the same moment.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

from evenkeel.errors import CannotStart
from evenkeel.log import log

MOST_CONNECTIONS = 100
"""Kubelet and Prometheus need a few."""

HEAD_WITHIN_S = 5.0
"""Also for how long a connection is kept that has no request."""

SENT_WITHIN_S = 30.0
"""Who does not read an answer within this time does not get it."""

BODY_WITHIN_S = 1.0
"""No request here needs a body. So long one is read, so that its sender sees the answer."""

SAID_EVERY_S = 60.0
"""One log line a minute tells of connections that were closed for others."""


class BoundedServer:
    """Serves an application of aiohttp. `closed` counts the connections closed for others."""

    def __init__(
        self,
        app: web.Application,
        *,
        most: int = MOST_CONNECTIONS,
        head_within_s: float = HEAD_WITHIN_S,
        sent_within_s: float = SENT_WITHIN_S,
    ) -> None:
        app.middlewares.append(self._answer)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1,
            keepalive_timeout=head_within_s,
            lingering_time=BODY_WITHIN_S,
        )
        self._most = most
        self._sent_within_s = sent_within_s
        self._answering: set[web.RequestHandler] = set()
        """Connections with a complete request whose answer is not sent yet."""
        self._listening: asyncio.Server | None = None
        self._said_at = float("-inf")
        self.closed = 0

    async def listen(self, host: str, port: int) -> Self:
        """Accept connections on this address."""
        await self._runner.setup()
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                self._connection, host, port
            )
        except OSError as error:
            await self.close()
            raise CannotStart(
                f"cannot listen on {host}:{port}: {error.strerror or error}; "
                "choose another address with --health-listen"
            ) from error
        return self

    @property
    def address(self) -> str:
        """Where it listens. The port may have been 0."""
        assert self._listening is not None
        return "{}:{}".format(*self._listening.sockets[0].getsockname()[:2])

    async def close(self) -> None:
        """Close all connections, those with a request after its answer."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        """What speaks HTTP on a connection that has just come."""
        server = self._runner.server
        assert server is not None
        present = [one for one in server.connections if _is_open(one)]
        if len(present) >= self._most:
            waiting = (one for one in present if one not in self._answering)
            self._close(next(waiting, present[0]))
        return server()

    def _close(self, connection: web.RequestHandler) -> None:
        # Not `close`, which would first send what the other side does not read.
        assert connection.transport is not None
        connection.transport.abort()
        self.closed += 1
        now = asyncio.get_running_loop().time()
        if now - self._said_at >= SAID_EVERY_S:
            self._said_at = now
            log("health port crowded", level="warning", limit=self._most, closed=self.closed)

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Called with each request whose head is complete."""
        connection = request.protocol
        self._answering.add(connection)
        try:
            response = await handler(request)
            await self._send(response, request)
            return response
        finally:
            self._answering.discard(connection)

    async def _send(self, response: web.StreamResponse, request: web.Request) -> None:
        """Send an answer. aiohttp would send it later, when nothing shows any more whether the
        connection still has a request."""
        try:
            async with asyncio.timeout(self._sent_within_s):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
            raise


def _is_open(connection: web.RequestHandler) -> bool:
    return connection.transport is not None and not connection.transport.is_closing()
