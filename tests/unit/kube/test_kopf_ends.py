"""Kopf ends over what it does not know, or goes on without having begun to watch. The operator must
learn of both, or it would be blind."""

import asyncio
import queue

import pytest
from aiohttp import web
from kubernetes import client as kubernetes_client
from tests.unit.kube.discovery import LIST, Answer, serving

from evenkeel.errors import CannotStart
from evenkeel.kube import kopf_session
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.watch import KopfThread

Deaths = queue.SimpleQueue[BaseException | None]


def watching(server: str, deaths: Deaths) -> KopfThread:
    configuration = kubernetes_client.Configuration()
    configuration.host = server
    return KopfThread(
        lambda: Credentials(server, None, configuration),
        lambda kind, raw: None,
        namespaces=(),
        on_death=deaths.put,
    )


async def death_of(answer: Answer, *, named: bool = True) -> BaseException | None:
    deaths: Deaths = queue.SimpleQueue()
    async with serving(answer, named=named) as server:
        thread = watching(server, deaths)
        thread.start()
        try:
            return await asyncio.to_thread(deaths.get, timeout=30)
        finally:
            await asyncio.to_thread(thread.stop)


async def nothing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="404 page not found")


async def test_an_end_of_kopf_by_itself_is_told() -> None:
    """The resource is known, and then it is not: as where a CRD is deleted."""
    assert "404 page not found" in repr(await death_of(nothing))


async def test_a_watch_that_never_began_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery may lag behind a CRD that was applied a moment ago; kopf asks it once."""
    monkeypatch.setattr(kopf_session, "ASKS_WITHIN_S", 0.3)
    assert isinstance(await death_of(nothing, named=False), CannotStart)


async def test_a_watch_that_began_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_session, "ASKS_WITHIN_S", 0.1)
    deaths: Deaths = queue.SimpleQueue()
    began = asyncio.Event()

    async def quiet(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response(LIST)
        began.set()
        await asyncio.sleep(60)
        return web.Response()

    async with serving(quiet) as server:
        thread = watching(server, deaths)
        thread.start()
        try:
            await asyncio.wait_for(began.wait(), 20)
            await asyncio.sleep(0.5)
        finally:
            await asyncio.to_thread(thread.stop)
    assert deaths.empty()


async def test_an_end_that_was_asked_for_is_not() -> None:
    deaths: Deaths = queue.SimpleQueue()
    thread = watching("http://127.0.0.1:1", deaths)  # nobody is there, and kopf waits
    thread.start()
    await asyncio.sleep(0.5)
    await asyncio.to_thread(thread.stop)
    assert deaths.empty()
