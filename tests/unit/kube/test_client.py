"""The client against a small server on loopback: what it takes for sent, answered, refused."""

import asyncio
import contextlib
import itertools
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from kubernetes import client as kubernetes_client

from evenkeel.errors import CannotStart
from evenkeel.kube import client as kube_client
from evenkeel.kube.api import NoAnswer, NotSent
from evenkeel.kube.client import KubeClient
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.reflector import Reflector

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
OLD, NEW = "old-token", "new-token"


class Server:
    """Answers what the test sets; remembers who asked with which token."""

    def __init__(self) -> None:
        self.answer: Answer = _ok
        self.tokens: list[str] = []
        self.token = OLD
        self.certificate = "first"
        self.watchers: list[web.StreamResponse] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization", ""))
        return await self.answer(request)

    def credentials(self) -> Credentials:
        """As the projected token file would give them: the newest."""
        configuration = kubernetes_client.Configuration()
        configuration.host = f"http://127.0.0.1:{self.port}"
        configuration.api_key = {"authorization": self.token}
        configuration.api_key_prefix = {"authorization": "Bearer"}
        return Credentials(configuration.host, None, configuration, fingerprint=self.certificate)

    async def refuse_the_old_token(self, request: web.Request) -> web.StreamResponse:
        """Watches stay open whatever becomes of the token they were opened with."""
        if request.headers["Authorization"] == f"Bearer {OLD}" and self.token == NEW:
            return web.Response(status=401)
        if "watch" not in request.query:
            body = {"kind": "JobList", "metadata": {"resourceVersion": "1"}, "items": []}
            return web.json_response(body)
        response = web.StreamResponse()
        await response.prepare(request)
        self.watchers.append(response)
        await asyncio.Event().wait()
        return response

    async def tell(self, line: bytes) -> None:
        """Into the watch that was opened last."""
        await self.watchers[-1].write(line + b"\n")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    found = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[KubeClient]:
    async with KubeClient(server.credentials, timeout_s=0.3, connections=4) as found:
        yield found


async def _ok(request: web.Request) -> web.StreamResponse:
    return web.json_response({"path": request.path_qs})


async def test_an_answer_is_status_body_and_headers(client: KubeClient) -> None:
    reply = await client.call("GET", "/api", params={"limit": "1"})
    assert (reply.status, reply.json()) == (200, {"path": "/api?limit=1"})


async def test_a_token_that_was_rotated_is_read_again_and_the_call_repeated_once(
    server: Server, client: KubeClient
) -> None:
    async def only_new(request: web.Request) -> web.StreamResponse:
        known = request.headers["Authorization"] == f"Bearer {NEW}"
        return web.Response(status=200 if known else 401)

    server.answer = only_new
    server.token = NEW
    assert (await client.call("GET", "/api")).status == 200
    assert server.tokens == [f"Bearer {OLD}", f"Bearer {NEW}"]


async def test_a_refusal_of_the_same_token_is_not_asked_again(
    server: Server, client: KubeClient
) -> None:
    async def nobody(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    server.answer = nobody
    assert (await client.call("GET", "/api")).status == 401
    assert len(server.tokens) == 1


async def test_many_refused_at_once_read_the_credentials_once(
    server: Server, client: KubeClient
) -> None:
    async def only_new(request: web.Request) -> web.StreamResponse:
        known = request.headers["Authorization"] == f"Bearer {NEW}"
        return web.Response(status=200 if known else 401)

    server.answer = only_new
    server.token = NEW
    replies = await asyncio.gather(*(client.call("GET", "/api") for _ in range(4)))
    assert [reply.status for reply in replies] == [200] * 4


async def test_a_401_that_lasts_reads_the_credentials_once_for_all_calls(server: Server) -> None:
    async def nobody(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    loads: list[str] = []

    def load() -> Credentials:
        loads.append(server.token)
        return server.credentials()

    server.answer = nobody
    async with KubeClient(load, timeout_s=5, connections=20) as client:
        replies = await asyncio.gather(*(client.call("GET", "/api") for _ in range(20)))
        client._not_read_until = float("-inf")  # some seconds later
        await client.call("GET", "/api")
    assert {reply.status for reply in replies} == {401}
    assert len(loads) == 1 + 1 + 1


async def test_nobody_listening_means_not_sent() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = Server()
        server.port = unused.getsockname()[1]
        async with KubeClient(server.credentials, timeout_s=0.3, connections=1) as client:
            with pytest.raises(NotSent):
                await client.call("POST", "/jobs", body=b"{}")


async def test_a_connection_that_is_never_made_means_not_sent() -> None:
    """The queue of those who wait to be accepted is full: nothing is refused, nothing answered."""
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(8):
            other = sockets.enter_context(socket.socket())
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        server = Server()
        server.port = full.getsockname()[1]
        async with KubeClient(server.credentials, timeout_s=0.3, connections=1) as client:
            with pytest.raises(NotSent):
                await client.call("POST", "/jobs", body=b"{}")


async def test_a_connection_that_others_keep_means_not_sent(server: Server) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    server.answer = silent
    async with KubeClient(server.credentials, timeout_s=0.3, connections=1) as client:
        one, other = await asyncio.gather(
            *(client.call("POST", "/jobs", body=b"{}") for _ in range(2)), return_exceptions=True
        )
    assert (type(one), type(other)) == (NoAnswer, NotSent)
    assert len(server.tokens) == 1


async def test_no_file_left_for_a_connection_means_not_sent(
    server: Server, client: KubeClient
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(NotSent, match="Too many open files"):
            await client.call("POST", "/jobs", body=b"{}")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_silence_after_sending_means_no_answer(server: Server, client: KubeClient) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    server.answer = silent
    with pytest.raises(NoAnswer):
        await client.call("POST", "/jobs", body=b"{}")


async def test_a_connection_that_breaks_after_sending_means_no_answer(
    server: Server, client: KubeClient
) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    server.answer = broken
    with pytest.raises(NoAnswer):
        await client.call("POST", "/jobs", body=b"{}")


async def test_a_watch_gives_whole_lines_however_they_arrive(
    server: Server, client: KubeClient
) -> None:
    long = b"x" * 700_000

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b'{"a"', b":1}\n{", b'"b":2}\n\n', long, b"\n"):
            await response.write(part)
            await asyncio.sleep(0.01)
        return response

    server.answer = stream
    async with client.watch("/jobs", {"resourceVersion": "1"}) as watch:
        lines = [line async for line in watch.lines()]
    assert lines == [b'{"a":1}', b'{"b":2}', long]


async def test_a_watch_that_is_refused_says_why(server: Server, client: KubeClient) -> None:
    async def gone(request: web.Request) -> web.StreamResponse:
        return web.json_response({"reason": "Expired", "message": "too old"}, status=410)

    server.answer = gone
    async with client.watch("/jobs", {}) as watch:
        assert watch.status == 410
        assert (await watch.reply()).message == "too old"


async def test_a_watch_that_falls_silent_means_no_answer(
    server: Server, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection may die without a word: nothing would ever be seen again."""
    monkeypatch.setattr(kube_client, "SILENCE_S", 0.2)

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"a":1}\n')
        await asyncio.sleep(60)
        return response

    server.answer = stream
    async with client.watch("/jobs", {}) as watch:
        lines = watch.lines()
        assert await anext(lines) == b'{"a":1}'
        with pytest.raises(NoAnswer):
            await anext(lines)


# --- new credentials while a watch is open --------------------------------------------------------


async def test_a_token_that_was_rotated_leaves_an_open_watch_as_it_is(
    server: Server, client: KubeClient
) -> None:
    """Its session was closed under it once, and no end of a Job was seen from then on."""
    server.answer = server.refuse_the_old_token
    async with client.watch("/jobs", {}) as watch:
        lines = watch.lines()
        server.token = NEW
        assert (await client.call("GET", "/jobs")).status == 200
        await asyncio.sleep(0.5)  # longer than calls under way are given to end

        await server.tell(b'{"still":"heard"}')

        async with asyncio.timeout(5):
            assert await anext(lines) == b'{"still":"heard"}'


async def test_a_watch_is_told_to_end_before_its_session_is_closed(
    server: Server, client: KubeClient
) -> None:
    """New certificates need new connections."""
    server.answer = server.refuse_the_old_token
    async with client.watch("/jobs", {}) as watch:
        server.token, server.certificate = NEW, "second"
        assert (await client.call("GET", "/jobs")).status == 200

        async with asyncio.timeout(5):
            with pytest.raises(NoAnswer, match="session was closed"):
                await anext(watch.lines())


@pytest.mark.parametrize("certificate", ["first", "second"])
async def test_jobs_are_followed_on_after_new_credentials(
    server: Server, client: KubeClient, certificate: str
) -> None:
    heard: list[str] = []

    class Listener:
        def read(self, item: dict[str, Any]) -> None: ...

        def listed(self, found: list[Any], listed_at: float) -> None: ...

        def changed(self, kind: str, item: dict[str, Any]) -> None:
            heard.append(item["metadata"]["name"])

    server.answer = server.refuse_the_old_token
    following = asyncio.create_task(Reflector(client, "/jobs", Listener(), now=time.time).run())
    async with asyncio.timeout(20):
        while not server.watchers:
            await asyncio.sleep(0.01)
        server.token, server.certificate = NEW, certificate
        assert (await client.call("GET", "/jobs")).status == 200
        await asyncio.sleep(0.5)
        while not heard:
            with contextlib.suppress(OSError):  # the watch before the credentials came
                await server.tell(
                    b'{"type":"MODIFIED","object":'
                    b'{"metadata":{"name":"ended","resourceVersion":"2"}}}'
                )
            await asyncio.sleep(0.1)
    following.cancel()
    assert heard[0] == "ended"


async def test_a_401_after_a_token_was_read_again_opens_no_new_session(server: Server) -> None:
    """A webhook of one namespace may deny with this code: it says nothing of our token."""

    async def denied(request: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    async with KubeClient(server.credentials, timeout_s=0.3, connections=4) as client:
        before = client._session
        server.token, server.answer = NEW, denied
        client._credentials.configuration.api_key = {"authorization": NEW}  # as its hook does
        client._authorized_at = float("-inf")
        assert (await client.call("POST", "/jobs", body=b"{}")).status == 401
        assert client._session is before
        assert server.tokens == [f"Bearer {NEW}"]


async def test_for_how_long_the_api_server_has_answered(
    server: Server, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_client, "ANSWERING_S", 0.4)
    assert client.answering_s == 0
    for _ in range(6):
        await client.call("GET", "/api")
        await asyncio.sleep(0.1)
    assert client.answering_s >= 0.6
    await asyncio.sleep(0.5)
    assert client.answering_s == 0
    await client.call("GET", "/api")
    assert client.answering_s < 0.4


class Tokens(Credentials):
    """Whose token takes as long as the test says, or fails."""

    get: Callable[[], dict[str, str]]

    def headers(self) -> dict[str, str]:
        return type(self).get()


async def test_a_token_that_no_header_can_hold_means_not_sent(
    server: Server, client: KubeClient
) -> None:
    client._token = {"Authorization": "Bearer one\nand another"}
    with pytest.raises(NotSent):
        await client.call("GET", "/x")
    with pytest.raises(NotSent):
        async with client.watch("/x", {}):
            raise AssertionError
    assert server.tokens == []


async def test_a_token_that_never_comes_does_not_hold_a_call_for_ever(server: Server) -> None:
    """Behind it may stand a program that hangs."""
    hang: list[bool] = []

    class Slow(Tokens):
        @staticmethod
        def get() -> dict[str, str]:
            if hang:
                time.sleep(1)
            return {}

    configuration = server.credentials().configuration
    load = partial(Slow, configuration.host, None, configuration, "same")
    async with KubeClient(load, timeout_s=0.2, connections=4) as client:
        client._authorized_at = float("-inf")
        hang.append(True)
        with pytest.raises(NotSent, match="in time"):
            await client.call("GET", "/x")


async def test_credentials_that_hang_do_not_keep_a_process_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor a start from being told why."""
    monkeypatch.setattr(kube_client, "START_WITHIN_S", 0.05)
    hang = threading.Event()

    def load() -> Credentials:
        hang.wait()
        raise AssertionError

    with pytest.raises(CannotStart, match="in time"):
        async with KubeClient(load, timeout_s=0.3, connections=4):
            raise AssertionError
    assert all(each.daemon for each in threading.enumerate() if each.name == "credentials")
    hang.set()


async def test_new_certificates_are_used_though_their_token_failed_once(server: Server) -> None:
    async def refused(_: web.Request) -> web.StreamResponse:
        return web.Response(status=401)

    fails = [False, True, False, False]

    class Failing(Tokens):
        @staticmethod
        def get() -> dict[str, str]:
            if fails and fails.pop(0):
                raise OSError("no token today")
            return {}

    server.answer = refused
    configuration = server.credentials().configuration
    prints = itertools.chain(["old"], itertools.repeat("new"))
    load = lambda: Failing(configuration.host, None, configuration, next(prints))  # noqa: E731
    async with KubeClient(load, timeout_s=0.3, connections=4) as client:
        before = client._session
        with pytest.raises(NotSent, match="no token today"):
            await client.call("GET", "/x")
        await client.call("GET", "/x")
        assert client._session is not before


async def test_credentials_that_cannot_be_had_leave_the_old_ones_in_use(server: Server) -> None:
    """A plugin that fails while the token is rotated: the next 401 asks it again."""
    loads: list[str] = []

    def load() -> Credentials:
        loads.append(server.token)
        if len(loads) == 2:
            raise CannotStart("the credential plugin gave nothing")
        return server.credentials()

    async def only_new(request: web.Request) -> web.StreamResponse:
        known = request.headers.get("Authorization") == f"Bearer {NEW}"
        return web.Response(status=200 if known else 401)

    async with KubeClient(load, timeout_s=0.3, connections=4) as client:
        server.answer, server.token = only_new, NEW
        for _ in range(2):
            with pytest.raises(NotSent, match="gave nothing"):
                await client.call("GET", "/x")
        client._not_read_until = float("-inf")  # some seconds later
        assert (await client.call("GET", "/x")).status == 200
    assert server.tokens == [f"Bearer {OLD}"] * 3 + [f"Bearer {NEW}"]
