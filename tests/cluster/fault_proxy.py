"""A proxy on loopback between an operator and a real API server, which a test lets misbehave.

    with fault_proxy(cluster, directory=tmp_path) as proxy:
        proxy.rule = lambda call: Reset(after=True) if call.verb == "POST" else None
        with operator(proxy.kubeconfig, ...): ...

It speaks plain HTTP to the operator and presents the administrator's certificate to the server.
Runs on a loop and a thread of its own. Not guaranteed: upgrades of connections (exec, attach).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from tests.cluster.harness import Cluster

from evenkeel.kube import credentials

HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "host"}


@dataclass(frozen=True)
class Call:
    """What the operator asks. `path` is without the query."""

    verb: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_create(self) -> bool:
        """Of a Job, and not only for show."""
        return self.verb == "POST" and self.path.endswith("/jobs") and "dryRun" not in self.query

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


@dataclass(frozen=True)
class Answer:
    """This instead of the server's answer; `after`: the server was asked all the same."""

    status: int
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    after: bool = False


@dataclass(frozen=True)
class Reset:
    """The connection breaks; `after`: when the server has done what was asked."""

    after: bool


@dataclass(frozen=True)
class Slow:
    """The server does it at once, and its answer takes so long."""

    seconds: float


@dataclass(frozen=True)
class Silent:
    """The answer begins, and then nothing comes of it, for ever: a watch that hangs."""


Fault = Answer | Reset | Slow | Silent
Rule = Callable[[Call], Fault | None]


class FaultProxy:
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.rule: Rule = lambda call: None
        self.calls: list[Call] = []  # all that arrived, for looking at afterwards
        self.kubeconfig = directory / "through-the-proxy.kubeconfig"
        self._admin = credentials.load(cluster.kubeconfig)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="fault-proxy")

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60), "the proxy does not listen"
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "proxy",
                    "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "me"}}],
                    "clusters": [
                        {"name": "proxy", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}
                    ],
                    "users": [{"name": "me", "user": {}}],
                }
            )
        )

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the proxy does not end"

    def _run(self) -> None:
        with asyncio.Runner() as runner:  # it cancels what still hangs on a watch
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=8 << 20)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        async with aiohttp.ClientSession(
            base_url=self._admin.server,
            connector=aiohttp.TCPConnector(limit=0, ssl=self._admin.context or True),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        ) as self._session:
            await site.start()
            self._port = runner.addresses[0][1]
            self._started.set()
            await self._stop.wait()
            await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, dict(request.query))
        self.calls.append(call)
        fault = self.rule(call)
        match fault:
            case Answer(after=False):
                return _answer(fault)
            case Reset(after=False):
                return _reset(request)
        assert self._session is not None
        headers = {
            key: text for key, text in request.headers.items() if key.lower() not in HOP_BY_HOP
        }
        async with self._session.request(
            request.method,
            request.rel_url,
            data=await request.read() or None,
            headers=headers,
        ) as answer:
            match fault:
                case Answer():
                    await answer.read()
                    return _answer(fault)
                case Reset():
                    await answer.read()
                    return _reset(request)
                case Slow(seconds=seconds):
                    await asyncio.sleep(seconds)
                case Silent():
                    return await _say_nothing(request)
            return await self._stream(request, answer)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        for key, text in answer.headers.items():
            if key.lower() not in HOP_BY_HOP or key.lower() == "content-encoding":
                response.headers[key] = text
        with contextlib.suppress(ConnectionError, aiohttp.ClientError):  # the operator went away
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        return response


def _answer(fault: Answer) -> web.Response:
    return web.Response(
        status=fault.status,
        body=fault.body,
        headers={"Content-Type": "application/json", **fault.headers},
    )


async def _say_nothing(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await asyncio.Event().wait()  # until the operator goes away, or the proxy ends
    return response


def _reset(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


class Times:
    """A fault for the first `count` calls that `of` picks."""

    def __init__(self, count: int, fault: Fault, *, of: Callable[[Call], Any]) -> None:
        self.left = count
        self._fault, self._of = fault, of

    def __call__(self, call: Call) -> Fault | None:
        if self.left and self._of(call):
            self.left -= 1
            return self._fault
        return None


@contextmanager
def fault_proxy(cluster: Cluster, *, directory: Path) -> Iterator[FaultProxy]:
    proxy = FaultProxy(cluster, directory)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
