"""A small API server on loopback for kopf: discovery, and for all else what the test answers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from evenkeel.resource.names import (
    API_VERSION,
    GROUP,
    KIND,
    PLURAL,
    REQUEST_KIND,
    REQUEST_PLURAL,
    VERSION,
)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

_VERSION = {"groupVersion": API_VERSION, "version": VERSION}
_GROUP = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}
_RESOURCES = [
    {
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": True,
        "kind": kind,
        "verbs": ["get", "list", "watch", "patch"],
    }
    for plural, kind in ((PLURAL, KIND), (REQUEST_PLURAL, REQUEST_KIND))
]
_NAMESPACES = {  # kopf begins nothing before it has found them
    "name": "namespaces",
    "singularName": "namespace",
    "namespaced": False,
    "kind": "Namespace",
    "verbs": ["get", "list", "watch"],
}

LIST = {"kind": f"{KIND}List", "apiVersion": API_VERSION, "items": []} | {
    "metadata": {"resourceVersion": "7"}
}

BOOKMARK = (
    orjson.dumps(
        {
            "type": "BOOKMARK",
            "object": {
                "kind": KIND,
                "apiVersion": API_VERSION,
                "metadata": {"resourceVersion": "8"},
            },
        }
    )
    + b"\n"
)
"""A line of a watch."""


@asynccontextmanager
async def serving(answer: Answer, *, named: bool = True) -> AsyncIterator[str]:
    """The server's address; `named`: whether discovery knows our resources."""

    def said(content: object) -> Answer:
        async def say(_: web.Request) -> web.Response:
            return web.json_response(content)

        return say

    app = web.Application()
    groups = {"kind": "APIGroupList", "groups": [_GROUP] if named else []}
    found = {"kind": "APIResourceList", "groupVersion": API_VERSION, "resources": _RESOURCES}
    core = {"kind": "APIResourceList", "groupVersion": "v1", "resources": [_NAMESPACES]}
    app.router.add_get("/api", said({"kind": "APIVersions", "versions": ["v1"]}))
    app.router.add_get("/api/v1", said(core))
    app.router.add_get("/apis", said(groups))
    app.router.add_get(f"/apis/{API_VERSION}", said(found))
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
