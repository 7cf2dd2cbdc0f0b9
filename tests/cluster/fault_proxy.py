"""A proxy on loopback between an operator and a real API server, which a test lets misbehave.

    with fault_proxy(cluster, directory=tmp_path) as proxy:
        proxy.rule = lambda call: Reset(after=True) if call.verb == "POST" else None
        with operator(proxy.kubeconfig, ...): ...

The rest of it is loopback_proxy.py. Not guaranteed: upgrades of connections (exec, attach).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from tests.cluster.harness import Cluster
from tests.cluster.loopback_proxy import HOP_BY_HOP, LoopbackProxy, end_to_end


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


class FaultProxy(LoopbackProxy):
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        super().__init__(cluster, directory)
        self.rule: Rule = lambda call: None
        self.calls: list[Call] = []  # all that arrived, for looking at afterwards

    async def answer(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, dict(request.query))
        self.calls.append(call)
        fault = self.rule(call)
        match fault:
            case Answer(after=False):
                return _answer(fault)
            case Reset(after=False):
                return _reset(request)
        async with self.server.request(
            request.method,
            request.rel_url,
            data=await request.read() or None,
            headers=end_to_end(request.headers),
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
