"""Kopf ends over what it does not know. The operator must learn of it, or it would be blind."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from kubernetes import client as kubernetes_client

from evenkeel.kube.credentials import Credentials
from evenkeel.kube.watch import KopfThread
from evenkeel.resource.names import API_VERSION, GROUP, KIND, PLURAL, VERSION

GROUPS = {
    "kind": "APIGroupList",
    "groups": [{"name": GROUP, "versions": [{"groupVersion": API_VERSION, "version": VERSION}]}],
}
RESOURCE = {
    "name": PLURAL,
    "singularName": KIND.lower(),
    "namespaced": True,
    "kind": KIND,
    "verbs": ["get", "list", "watch", "patch"],
}


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """Knows the resource, and then does not: as where a CRD is deleted."""

    async def groups(_: web.Request) -> web.Response:
        return web.json_response(GROUPS)

    async def resources(_: web.Request) -> web.Response:
        found = {"kind": "APIResourceList", "groupVersion": API_VERSION, "resources": [RESOURCE]}
        return web.json_response(found)

    async def old_groups(_: web.Request) -> web.Response:
        return web.json_response({"kind": "APIVersions", "versions": []})

    async def nothing(_: web.Request) -> web.Response:
        return web.Response(status=404, text="404 page not found")

    app = web.Application()
    app.router.add_get("/api", old_groups)
    app.router.add_get("/apis", groups)
    app.router.add_get(f"/apis/{API_VERSION}", resources)
    app.router.add_route("*", "/{path:.*}", nothing)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_an_end_of_kopf_by_itself_is_told(server: str) -> None:
    configuration = kubernetes_client.Configuration()
    configuration.host = server
    dead = threading.Event()
    thread = KopfThread(
        lambda: Credentials(server, None, configuration),
        lambda kind, raw: None,
        namespaces=(),
        on_death=lambda error: dead.set(),
    )
    thread.start()
    try:
        assert await asyncio.to_thread(dead.wait, 30)
    finally:
        await asyncio.to_thread(thread.stop)


async def test_an_end_that_was_asked_for_is_not(server: str) -> None:
    configuration = kubernetes_client.Configuration()
    configuration.host = "http://127.0.0.1:1"  # nobody is there, and kopf waits
    dead = threading.Event()
    thread = KopfThread(
        lambda: Credentials(configuration.host, None, configuration),
        lambda kind, raw: None,
        namespaces=(),
        on_death=lambda error: dead.set(),
    )
    thread.start()
    await asyncio.sleep(0.5)
    await asyncio.to_thread(thread.stop)
    assert not dead.is_set()
