"""A proxy on loopback between a client and a real API server, for others to build on.

It speaks plain HTTP to the client, presents the administrator's certificate to the server, and
writes a kubeconfig that leads to itself. Runs on a loop and a thread of its own. Called by
fault_proxy.py and renaming_proxy.py. Not guaranteed: upgrades of connections (exec, attach).
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web
from tests.cluster.harness import Cluster

from evenkeel.kube import credentials

HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding", "host"}
LINE_BYTES = 8 << 20  # a watch tells of an object in one line


class LoopbackProxy(ABC):
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.kubeconfig = directory / "through-the-proxy.kubeconfig"
        self._admin = credentials.load(cluster.kubeconfig)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._stop = asyncio.Event()
        self._server: aiohttp.ClientSession | None = None
        self._port = 0
        self._thread = threading.Thread(target=self._run, name="proxy")

    @abstractmethod
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """What the client gets."""

    @property
    def server(self) -> aiohttp.ClientSession:
        """The way to the API server."""
        assert self._server is not None, "the proxy has not started"
        return self._server

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
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        async with aiohttp.ClientSession(
            base_url=self._admin.server,
            connector=aiohttp.TCPConnector(limit=0, ssl=self._admin.context or True),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            read_bufsize=LINE_BYTES,
        ) as self._server:
            await site.start()
            self._port = runner.addresses[0][1]
            self._started.set()
            await self._stop.wait()
            await runner.cleanup()


def end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    """Without those that speak of one connection, or of how a body was packed on it."""
    return {key: text for key, text in headers.items() if key.lower() not in HOP_BY_HOP}
