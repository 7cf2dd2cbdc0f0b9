"""/livez, /readyz and /metrics, on the operator's own address.

`process` tells it by `Signs` how the operator is; the rules that judge them are here. Nothing is
asked that could wait, of the scheduler or of the API server. What the probes answer names no
object.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from evenkeel.errors import BadSetting
from evenkeel.web.connections import BoundedServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

ALIVE_WITHIN_S = 30.0
"""A loop that has not ended a step for so long beyond its pauses is dead: better restarted."""

HEARD_WITHIN_S = 300.0
"""A watch ends after 90 s of silence, and a list follows. Where that has not helped for so long,
though the API server answers other calls, a new process may."""

READY_WITHIN_S = 120.0
"""Without a word of a watch for so long, ends of Jobs or new schedules are not seen."""

BEHIND_S = 60.0
"""Statuses and Events that wait for longer are behind. One namespace may bring that about for its
own; two are a sign that the operator cannot write."""


@dataclass(frozen=True, slots=True)
class Signs:
    """How the operator is."""

    listed: bool
    """Schedules and Jobs are listed, and the index is built."""
    idle_s: float
    """Since the loop ended a step."""
    unanswered_s: float = 0.0
    """Since the API server said anything to the watch of Jobs that has waited longest for it."""
    silence_s: float = 0.0
    """Since any watch of Jobs was told something. Bookmarks come once a minute."""
    answering_s: float = 0.0
    """For how long the API server has been answering other calls; 0: it does not."""
    behind: int = 0
    """Namespaces whose statuses or Events wait for longer than BEHIND_S."""
    installed: bool = True
    """Whether the cluster serves ScheduledJobs."""
    schedules_unanswered_s: float = 0.0
    """As `unanswered_s`, of the watch of ScheduledJobs or RunRequests that has waited longer."""
    schedules_silence_s: float = 0.0
    """As `silence_s`, of the watch of ScheduledJobs or RunRequests that has waited longer."""


def why_dead(signs: Signs, *, alive_within_s: float) -> str:
    """Why the process should be started again; empty: it should not."""
    if signs.idle_s > alive_within_s:
        return f"the loop has not stepped for {signs.idle_s:.0f} s"
    # While the API server is away, and for a moment after it, a silent watch proves nothing.
    for what, unanswered_s in (
        ("Jobs", signs.unanswered_s),
        ("ScheduledJobs or RunRequests", signs.schedules_unanswered_s),
    ):
        if min(unanswered_s, signs.answering_s) > HEARD_WITHIN_S:
            return f"a watch of {what} has been silent for {unanswered_s:.0f} s"
    return ""


def why_unready(signs: Signs) -> str:
    """Why the operator does not do its work; empty: it does."""
    if not signs.installed:
        return "the ScheduledJob resource is not installed in this cluster"
    if not signs.listed:
        return "schedules and Jobs are still being listed"
    for what, silence_s in (
        ("Jobs", max(signs.silence_s, signs.unanswered_s)),
        (
            "ScheduledJobs or RunRequests",
            max(signs.schedules_silence_s, signs.schedules_unanswered_s),
        ),
    ):
        if silence_s > READY_WITHIN_S:
            return f"a watch of {what} has been silent for {silence_s:.0f} s"
    if signs.behind > 1:
        return f"statuses or Events of {signs.behind} namespaces are a minute behind"
    return ""


class HealthServer:
    """An HTTP server for probes and Prometheus."""

    def __init__(
        self,
        listen: str,
        registry: CollectorRegistry,
        *,
        signs: Callable[[], Signs],
        scraped: Callable[[], None] = lambda: None,
        more: Mapping[str, Handler] = MappingProxyType({}),
        alive_within_s: float = ALIVE_WITHIN_S,
    ) -> None:
        self._alive_within_s = alive_within_s
        self._host, self._port = _address(listen)
        self._registry = registry
        self._signs = signs
        self._scraped = scraped
        self._more = more
        self._server: BoundedServer | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 10)
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        for path, handler in self._more.items():
            app.router.add_get(path, handler)
        self._server = await BoundedServer(app).listen(self._host, self._port)
        self.address = self._server.address
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server:
            await self._server.close()

    async def _livez(self, _: web.Request) -> web.Response:
        return _told(why_dead(self._signs(), alive_within_s=self._alive_within_s))

    async def _readyz(self, _: web.Request) -> web.Response:
        return _told(why_unready(self._signs()))

    async def _metrics(self, request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        response = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
        # Written here: a scrape whose caller has gone has shown nobody that counters were 0.
        await response.prepare(request)
        await response.write_eof()
        self._scraped()
        return response


def _told(trouble: str) -> web.Response:
    return web.Response(status=503 if trouble else 200, text=f"{trouble or 'ok'}\n")


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    # Without a colon it would mean every address of the machine, which nobody has written.
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadSetting(f"healthListen: {listen!r} is not an address such as 127.0.0.1:8081")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - ":8081" asks for it
