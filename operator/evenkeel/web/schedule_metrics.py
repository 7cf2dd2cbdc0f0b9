"""/metrics/schedules: metrics with the names of schedules, for whom the API server lets read them.

The scheduler's loop hands over a page of schedules at a time, and another thread renders it: no run
waits for a scrape. One text serves all scrapes of some seconds. `process` joins it to the
operator's address. Not guaranteed: that all lines are of the same instant.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Literal

from aiohttp import web

from evenkeel import clock as clocks
from evenkeel.clock import Clock
from evenkeel.core.schedule.figures import Figures, figures
from evenkeel.core.state import State
from evenkeel.log import log
from evenkeel.model import ScheduleState
from evenkeel.web.access import Access, Decision
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_text import Page, ScheduleText, join, namespaces

PATH = "/metrics/schedules"

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST = 5_000
"""With Auto. Ten series for each are as many as a middle-sized cluster has in all."""

PAGE = 50
"""A page costs the loop 0.2 ms, and the other thread, which holds the interpreter lock meanwhile,
1 ms."""

PAUSE_S = 0.002
"""Between two pages: what is due goes first."""

KEPT_S = 5.0
"""For so long one text is served."""

Mode = Literal["Auto", "On", "Off"]

ANSWERS = {
    Decision.REFUSED: (403, "not allowed to get /metrics/schedules; see docs/metrics.md"),
    Decision.UNKNOWN: (401, "the API server does not know this token"),
    Decision.BUSY: (429, "too many tokens that are not known; try again in a second"),
    Decision.AWAY: (503, "the API server does not answer, so the token cannot be checked"),
}


class ScheduleMetrics:
    """The text, and how old it is."""

    def __init__(self, state: State, metrics: Metrics, clock: Clock, mode: Mode) -> None:
        self._state = state
        self._metrics = metrics
        self._clock = clock
        self._mode = mode
        self._renderer = ScheduleText()
        self._rendering = asyncio.Lock()
        self._text = b""
        self._rendered_m = float("-inf")
        self._said = False

    @property
    def off(self) -> bool:
        """The setting says so."""
        return self._mode == "Off"

    @property
    def left_out(self) -> bool:
        """There are too many schedules for a text with their names."""
        return self._mode == "Auto" and self._state.count_known() > MOST

    async def text(self) -> bytes:
        """What a scrape gets."""
        if self.left_out:
            return self._why_left_out().encode()
        async with self._rendering:
            if self._clock.monotonic() - self._rendered_m >= KEPT_S:
                self._text = await self._render()
                self._rendered_m = self._clock.monotonic()
            return self._text

    def _why_left_out(self) -> str:
        number = self._state.count_known()
        sentence = (
            f"{number} schedules are more than {MOST}: no metrics by schedule are served; "
            "the setting metrics.schedules: On serves them"
        )
        if not self._said:
            self._said = True
            log("metrics by schedule left out", level="warning", sentence=sentence)
        return f"# {sentence}\n"

    async def _render(self) -> bytes:
        pages: list[Page] = []
        found: set[str] = set()
        spaces: set[str] = set()
        for page in self._pages():
            found |= {each.uid for each in page}
            spaces |= {each.ns for each in page}
            now = int(self._clock.now())
            pages.append(await asyncio.to_thread(self._renderer.page, page, now))
            await clocks.sleep(PAUSE_S)
        self._renderer.forget(found)
        self._metrics.forget_namespaces(spaces)
        counts = self._metrics.counts
        runs = {(key[1], key[2]): counts.shown(key) for key in counts.keys("namespace")}
        pages.append(namespaces(runs, spaces))
        return join(pages)

    def _pages(self) -> Iterator[list[Figures]]:
        """In the order of uids as they are known now; what goes meanwhile is left out."""
        state = self._state
        uids = [*state.entries, *state.closed]
        for first in range(0, len(uids), PAGE):
            page = []
            for uid in uids[first : first + PAGE]:
                if (entry := state.entries.get(uid)) is not None:
                    page.append(figures(entry))
                elif (closed := state.closed.get(uid)) is not None:
                    page.append(Figures(uid, closed.ns, closed.name, ScheduleState.DEGRADED))
            yield page


def handler(
    find: Callable[[], ScheduleMetrics | None], access: Access
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Answers a scrape that carries a token of somebody who may get this path. Until the operator
    is there, nothing is found."""

    async def answer(request: web.Request) -> web.Response:
        metrics = find()
        if metrics is None:
            return web.Response(status=503, text="the operator is still starting\n")
        if metrics.off:
            return web.Response(status=404, text="the setting metrics.schedules is Off\n")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            text = "write Authorization: Bearer and a token; see docs/metrics.md\n"
            return web.Response(status=401, text=text, headers={"WWW-Authenticate": "Bearer"})
        decision = await access.ask(token.strip())
        if decision is not Decision.ALLOWED:
            status, sentence = ANSWERS[decision]
            return web.Response(status=status, text=f"{sentence}\n")
        body = await metrics.text()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    return answer
