"""A TCP forwarder on loopback, for faults of the network between a store and its database.

It can answer late, stop forwarding while connections stay open, lead to another port (a fail-over)
and cut what is open. Called by tests, on their event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Forwarder:
    def __init__(self, target: int) -> None:
        self.target = target
        """The port that new connections lead to."""
        self.port = 0
        self.delay_s = 0.0
        """How much later each answer of the target arrives."""
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._connections: set[asyncio.Task[None]] = set()

    def stall(self) -> None:
        """Forward nothing, and close nothing."""
        self._flowing.clear()

    def go_on(self) -> None:
        self._flowing.set()

    async def cut(self) -> None:
        """Close every connection that is open."""
        connections = list(self._connections)
        for each in connections:
            each.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # a cut connection is what the test wanted
        finally:
            self._connections.discard(connection)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ways = [
            asyncio.ensure_future(self._pump(reader, far_writer, late=False)),
            asyncio.ensure_future(self._pump(far_reader, writer, late=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.transport.abort()  # first: a cut may come while this waits
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, late: bool
    ) -> None:
        while data := await reader.read(65_536):
            if late:
                await asyncio.sleep(self.delay_s)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def forwarding_to(port: int) -> AsyncIterator[Forwarder]:
    forwarder = Forwarder(port)
    server = await asyncio.start_server(forwarder._accept, "127.0.0.1", 0)
    forwarder.port = server.sockets[0].getsockname()[1]
    try:
        yield forwarder
    finally:
        server.close()
        forwarder.go_on()
        await forwarder.cut()
        with suppress(OSError):
            await server.wait_closed()
