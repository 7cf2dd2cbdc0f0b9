"""Watches ScheduledJobs while the cluster serves them, and waits while it does not.

The CRD may be missing at the start, and it may be deleted and applied again. Kopf ends then, and
another one begins as soon as the resource is served and discovery names it. `process` runs this.
Not guaranteed: that an end of kopf for any other reason is mended; it ends the process.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from evenkeel import clock
from evenkeel.errors import CannotStart
from evenkeel.kube.api import Api, NoAnswer, NotSent, schedules_path
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.listener import Sight
from evenkeel.kube.surroundings import NOT_INSTALLED, is_named
from evenkeel.kube.watch import KopfThread
from evenkeel.log import log

LOOK_S = 1.0
"""Between two looks whether the resource is served. Kubelet would start a process that has ended
again after up to five minutes."""

SAID_EVERY_S = 60.0

REMOVED_LOOKS = 3
"""Discovery says so often that the resource is not served before its schedules are forgotten."""

NOT_FOUND = 404


class ScheduleWatch:
    """Runs on the scheduler's loop; kopf has a thread of its own."""

    def __init__(self, api: Api, load: Callable[[], Credentials]) -> None:
        self._api = api
        self._load = load
        self._thread: KopfThread | None = None
        self.installed = True
        """Whether the cluster serves ScheduledJobs."""

    @property
    def unanswered_s(self) -> float:
        """Since the API server said anything to the watch that has waited longest for it."""
        return self._thread.unanswered_s if self._thread else 0.0

    @property
    def silence_s(self) -> float:
        """Since any watch was told something."""
        return self._thread.silence_s if self._thread else 0.0

    async def wait_until_installed(self, namespaces: tuple[str, ...]) -> None:
        """Return at once, unless the API server answers that there is no such resource."""
        if await self._status(namespaces) == NOT_FOUND:
            await self._wait(namespaces)

    async def run(
        self,
        namespaces: tuple[str, ...],
        see: Sight,
        *,
        removed: Callable[[], object],
        returned: Callable[[], object],
    ) -> None:
        """Watch until cancelled. `removed` is called when the resource, and with it all its
        objects, are gone, and `returned` when a watch begins again. CannotStart: kopf has ended,
        and not for that reason."""
        loop = asyncio.get_running_loop()
        while True:
            ended: asyncio.Future[BaseException | None] = loop.create_future()
            self._thread = KopfThread(
                self._load,
                see,
                namespaces=namespaces,
                on_death=partial(_settle, ended),
            )
            thread = self._thread
            thread.start()
            try:
                failure = await ended
            finally:
                self._thread = None
                await asyncio.to_thread(thread.stop)
            if not thread.not_found:
                raise CannotStart(f"the watch of ScheduledJobs ended: {failure}")
            await self._wait(namespaces, removed)
            returned()

    async def _wait(
        self, namespaces: tuple[str, ...], removed: Callable[[], object] = lambda: None
    ) -> None:
        """Wait until kopf can watch the resource."""
        loop, said_at, looks = asyncio.get_running_loop(), float("-inf"), 0
        try:
            while True:
                status, named = await self._status(namespaces), await is_named(self._api)
                if named and status not in (None, NOT_FOUND):
                    break
                # A 404 alone may come from a proxy.
                looks = looks + 1 if status == NOT_FOUND and named is False else 0
                if looks == REMOVED_LOOKS:
                    removed()
                self.installed = False
                if loop.time() - said_at >= SAID_EVERY_S:
                    said_at = loop.time()
                    log("waiting for the resource", level="warning", sentence=NOT_INSTALLED)
                await clock.sleep(clock.jitter(LOOK_S))
        finally:
            self.installed = True
        log("the resource is installed")

    async def _status(self, namespaces: tuple[str, ...]) -> int | None:
        """The HTTP status of a list of ScheduledJobs; None: no answer."""
        path = schedules_path(namespaces[0] if namespaces else "")
        try:
            reply = await self._api.call("GET", path, params={"limit": "1"})
        except (NotSent, NoAnswer):
            return None
        return reply.status


def _settle(ended: asyncio.Future[BaseException | None], error: BaseException | None) -> None:
    """Called in kopf's thread."""

    def settle() -> None:
        if not ended.done():
            ended.set_result(error)

    ended.get_loop().call_soon_threadsafe(settle)
