"""How long kopf's watch has been silent is known: the probes are told, as they are of Jobs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from kubernetes import client as kubernetes_client
from tests.unit.kube.discovery import BOOKMARK, LIST, Answer, serving

from evenkeel.kube.credentials import Credentials
from evenkeel.kube.watch import KopfThread
from evenkeel.resource.names import PLURAL

SHORT_S = 0.4


@asynccontextmanager
async def watching(answer: Answer) -> AsyncIterator[KopfThread]:
    async with serving(answer) as server:
        configuration = kubernetes_client.Configuration()
        configuration.host = server
        thread = KopfThread(
            lambda: Credentials(server, None, configuration),
            {PLURAL: lambda kind, raw: None},
            namespaces=(),
            on_death=lambda error: None,
        )
        thread.start()
        try:
            yield thread
        finally:
            await asyncio.to_thread(thread.stop)


async def seen(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not look():
            await asyncio.sleep(0.01)


async def test_a_watch_is_heard_when_it_is_told_something_if_only_a_bookmark() -> None:
    tell = asyncio.Event()
    opened = asyncio.Event()

    async def quiet(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response(LIST)
        response = web.StreamResponse()
        await response.prepare(request)
        opened.set()
        await tell.wait()
        await response.write(BOOKMARK)
        await asyncio.sleep(60)
        return response

    async with watching(quiet) as thread:
        await asyncio.wait_for(opened.wait(), 20)
        await seen(lambda: min(thread.silence_s, thread.unanswered_s) > 2 * SHORT_S)
        tell.set()
        await seen(lambda: max(thread.silence_s, thread.unanswered_s) < SHORT_S)


async def test_a_refusal_is_an_answer_and_nothing_that_is_heard() -> None:
    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": 500}, status=500)

    async with watching(refuse) as thread:
        await seen(lambda: thread.silence_s > 2 * SHORT_S)
        await seen(lambda: thread.unanswered_s < SHORT_S)
        assert thread.silence_s > 2 * SHORT_S


async def test_a_resource_that_is_not_found_is_known() -> None:
    async def nothing(_: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="404 page not found")

    async with watching(nothing) as thread:
        assert not thread.not_found
        await seen(lambda: thread.not_found)
