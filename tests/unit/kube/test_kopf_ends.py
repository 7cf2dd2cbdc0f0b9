"""Kopf ends over what it does not know, or goes on without having begun to watch. The operator must
learn of both, or it would be blind."""

import asyncio
import queue
from functools import partial

import pytest
from aiohttp import web
from kubernetes import client as kubernetes_client
from tests.unit.kube.discovery import BOOKMARK, LIST, Answer, serving

from evenkeel.errors import CannotStart
from evenkeel.kube import kopf_session
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.listener import Sight
from evenkeel.kube.watch import KopfThread
from evenkeel.resource.names import PLURAL, REQUEST_PLURAL

Deaths = queue.SimpleQueue[BaseException | None]


def login(server: str) -> Credentials:
    configuration = kubernetes_client.Configuration()
    configuration.host = server
    return Credentials(server, None, configuration)


def watching(server: str, deaths: Deaths, plurals: tuple[str, ...] = (PLURAL,)) -> KopfThread:
    return KopfThread(
        partial(login, server),
        dict.fromkeys(plurals, lambda kind, raw: None),
        namespaces=(),
        on_death=deaths.put,
    )


async def death_of(
    answer: Answer, *, named: bool = True, plurals: tuple[str, ...] = (PLURAL,)
) -> BaseException | None:
    deaths: Deaths = queue.SimpleQueue()
    async with serving(answer, named=named) as server:
        thread = watching(server, deaths, plurals)
        thread.start()
        try:
            return await asyncio.to_thread(deaths.get, timeout=30)
        finally:
            await asyncio.to_thread(thread.stop)


async def nothing(_: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="404 page not found")


async def quiet(request: web.Request) -> web.StreamResponse:
    """Nothing is there, and nothing comes."""
    if "watch" not in request.query:
        return web.json_response(LIST)
    await asyncio.sleep(60)
    return web.Response()


async def test_an_end_of_kopf_by_itself_is_told() -> None:
    """The resource is known, and then it is not: as where a CRD is deleted."""
    assert "not served any more" in repr(await death_of(nothing))


async def test_a_watch_that_never_began_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discovery may lag behind a CRD that was applied a moment ago; kopf asks it once."""
    monkeypatch.setattr(kopf_session, "ASKS_WITHIN_S", 0.3)
    assert isinstance(await death_of(nothing, named=False), CannotStart)


async def test_one_of_two_watches_that_never_began_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_session, "ASKS_WITHIN_S", 0.3)
    assert isinstance(await death_of(quiet, plurals=(PLURAL, "thirds")), CannotStart)


async def test_one_of_two_resources_that_goes_is_told_at_once() -> None:
    """The watch of the other one goes on, and would keep kopf from ending."""
    deaths: Deaths = queue.SimpleQueue()
    gone = False

    async def one(request: web.Request) -> web.StreamResponse:
        nonlocal gone
        of_requests = request.path.endswith(REQUEST_PLURAL)
        if of_requests and gone:
            return await nothing(request)
        if "watch" not in request.query:
            return web.json_response(LIST)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(BOOKMARK)
        gone = gone or of_requests
        await asyncio.sleep(1 if of_requests else 60)
        return response

    async with serving(one) as server:
        thread = watching(server, deaths, (PLURAL, REQUEST_PLURAL))
        thread.start()
        try:
            assert "not served any more" in repr(await asyncio.to_thread(deaths.get, timeout=30))
            assert thread.not_found
        finally:
            await asyncio.to_thread(thread.stop)


async def test_each_resource_is_shown_to_whoever_watches_it() -> None:
    shown: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    async def both(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await quiet(request)
        plural = request.path.rpartition("/")[2]
        metadata = {"uid": plural, "name": "it", "namespace": "shop", "resourceVersion": "7"}
        return web.json_response(LIST | {"items": [{"metadata": metadata}]})

    def show(to: str) -> Sight:
        return lambda kind, raw: shown.put((to, raw["metadata"]["uid"]))

    async with serving(both) as server:
        sights = {plural: show(plural) for plural in (PLURAL, REQUEST_PLURAL)}
        thread = KopfThread(partial(login, server), sights, namespaces=(), on_death=print)
        thread.start()
        try:
            found = {await asyncio.to_thread(shown.get, timeout=30) for _ in range(2)}
        finally:
            await asyncio.to_thread(thread.stop)
    assert found == {(PLURAL, PLURAL), (REQUEST_PLURAL, REQUEST_PLURAL)}


async def test_a_watch_that_began_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_session, "ASKS_WITHIN_S", 0.1)
    deaths: Deaths = queue.SimpleQueue()
    began = asyncio.Event()

    async def begun(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            began.set()
        return await quiet(request)

    async with serving(begun) as server:
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
