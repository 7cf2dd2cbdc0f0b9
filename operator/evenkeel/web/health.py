"""/livez, /readyz and /metrics. They ask the scheduler nothing that could wait."""

from collections.abc import Callable
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from evenkeel.errors import BadSetting, CannotStart

ALIVE_WITHIN_S = 30.0
"""A loop that has not ended a step for so long beyond its pauses is dead: better restarted."""


class HealthServer:
    """An HTTP server for probes and Prometheus."""

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        *,
        idle_s: Callable[[], float],
        ready: Callable[[], bool],
        alive_within_s: float = ALIVE_WITHIN_S,
    ) -> None:
        self._alive_within_s = alive_within_s
        self._host, self._port = _address(listen)
        self._registry = registry
        self._idle_s = idle_s
        self._ready = ready
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 10)
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotStart(
                f"cannot listen on {self._host}:{self._port}: {error.strerror or error}; "
                "choose another address with --listen"
            ) from error
        self.address = "{}:{}".format(*self._runner.addresses[0][:2])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _livez(self, _: web.Request) -> web.Response:
        idle_s = self._idle_s()
        if idle_s > self._alive_within_s:
            return web.Response(status=503, text=f"the loop has not stepped for {idle_s:.0f} s\n")
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        if self._ready():
            return web.Response(text="ok\n")
        return web.Response(status=503, text="schedules and Jobs are still being listed\n")

    async def _metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    # Without a colon it would mean every address of the machine, which nobody has written.
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadSetting(f"listen: {listen!r} is not an address such as 127.0.0.1:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - ":8080" asks for it
