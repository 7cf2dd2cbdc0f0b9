"""Connections to the health port are bounded: half a request holds nothing that others need."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from evenkeel.web.connections import BoundedServer

HALF = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-a: "
WHOLE = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
BIG = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
MOST = 10
LARGE = 64 << 20
"""More than the buffers of a connection hold."""


class Port:
    """A server that is listening, and whoever connects to it."""

    def __init__(self, app: web.Application, *, head_within_s: float, sent_within_s: float) -> None:
        self.go_on = asyncio.Event()
        self.asked = 0
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/slow", self._slow)
        app.router.add_get("/large", self._large)
        self.server = BoundedServer(
            app, most=MOST, head_within_s=head_within_s, sent_within_s=sent_within_s
        )
        self.open = ExitStack()

    async def _livez(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _slow(self, _: web.Request) -> web.Response:
        self.asked += 1
        await self.go_on.wait()
        return web.Response(text="at last\n")

    async def _large(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(body=bytes(LARGE))

    async def connect(self, said: bytes = b"") -> socket.socket:
        host, _, port = self.server.address.rpartition(":")
        client = self.open.enter_context(socket.socket())
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (host, int(port)))
        await loop.sock_sendall(client, said)
        return client

    async def ask_slowly(self, said: bytes) -> socket.socket:
        """A request that has reached its handler."""
        before, client = self.asked, await self.connect(said)
        async with asyncio.timeout(10):
            while self.asked == before:
                await asyncio.sleep(0.01)
        return client

    async def livez(self) -> int:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10)) as session,
            session.get(f"http://{self.server.address}/livez") as answer,
        ):
            return answer.status


@asynccontextmanager
async def listening(
    *, head_within_s: float = 60.0, sent_within_s: float = 60.0
) -> AsyncIterator[Port]:
    port = Port(web.Application(), head_within_s=head_within_s, sent_within_s=sent_within_s)
    await port.server.listen("127.0.0.1", 0)
    with port.open:
        try:
            yield port
        finally:
            port.go_on.set()
            await port.server.close()


async def read(client: socket.socket, *, within_s: float = 10.0) -> bytes:
    async with asyncio.timeout(within_s):
        return await asyncio.get_running_loop().sock_recv(client, 1 << 16)


async def is_closed(client: socket.socket) -> bool:
    """Whether the server closes it within a moment."""
    try:
        return await read(client, within_s=2.0) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_half_open_requests_keep_no_probe_from_its_answer_and_few_descriptors() -> None:
    async with listening() as port:
        before = descriptors()
        attackers = [await port.connect(HALF) for _ in range(10 * MOST)]
        assert [await port.livez() for _ in range(5)] == [200] * 5

        assert descriptors() - before - len(attackers) <= MOST  # both ends are in this process
        assert port.server.closed >= 9 * MOST
        assert await is_closed(attackers[0])
        assert not await is_closed(attackers[-1])


async def test_a_head_that_is_not_complete_in_time_ends_its_connection() -> None:
    async with listening(head_within_s=0.3) as port:
        silent, half, dripping = [await port.connect(said) for said in (b"", HALF, HALF)]
        for _ in range(2):
            await asyncio.sleep(0.1)
            await asyncio.get_running_loop().sock_sendall(dripping, b"a")
        for client in (silent, half, dripping):
            assert await is_closed(client)


async def test_after_an_answer_a_connection_is_kept_for_as_long_as_a_head_may_take() -> None:
    async with listening(head_within_s=1.0) as port:
        client = await port.connect(WHOLE)
        assert (await read(client)).endswith(b"ok\n")
        await asyncio.get_running_loop().sock_sendall(client, WHOLE)
        assert (await read(client)).endswith(b"ok\n")
        await asyncio.get_running_loop().sock_sendall(client, HALF)
        assert await is_closed(client)


async def test_a_request_that_is_being_answered_is_not_closed_for_others() -> None:
    async with listening() as port:
        client = await port.ask_slowly(SLOW)
        for _ in range(2 * MOST):
            await port.connect(HALF)
        assert await port.livez() == 200

        port.go_on.set()
        assert b"200 OK" in await read(client)


@pytest.mark.parametrize("said", [SLOW, BIG], ids=["not answered yet", "answer not read"])
async def test_where_all_are_being_answered_the_oldest_is_closed(said: bytes) -> None:
    """Whoever does not read answers must not keep probes away either."""
    async with listening() as port:
        for _ in range(MOST):
            await port.ask_slowly(said)
        assert await port.livez() == 200
        assert port.server.closed == 1


async def test_an_answer_that_nobody_reads_is_given_up() -> None:
    async with listening(sent_within_s=0.3) as port:
        before = descriptors()
        await port.ask_slowly(BIG)
        assert descriptors() - before == 2
        async with asyncio.timeout(10):
            while descriptors() - before > 1:  # only this end is left
                await asyncio.sleep(0.05)
