"""Watches ScheduledJobs and RunRequests while the cluster serves them, and waits while it does not.

The CRD of ScheduledJobs may be missing at the start, and it may be deleted and applied again. Kopf
ends then, and another one begins as soon as the resource is served and discovery names it. Without
the CRD of RunRequests, ScheduledJobs are watched alone, until that CRD is there. `process` runs
this. Where discovery did not name each resource when kopf looked, another kopf begins. Not
guaranteed: that an end of kopf for any other reason is mended; it ends the process.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from evenkeel import clock
from evenkeel.errors import CannotStart
from evenkeel.kube.api import Api
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.listener import Sight
from evenkeel.kube.resources import REQUESTS, SCHEDULES
from evenkeel.kube.served import (
    LOOK_S,
    NOT_FOUND,
    REMOVED_LOOKS,
    is_named,
    is_served,
    list_status,
)
from evenkeel.kube.surroundings import NOT_INSTALLED
from evenkeel.kube.watch import KopfThread
from evenkeel.log import log

LOOK_FOR_REQUESTS_S = 5.0
"""Between two looks whether RunRequests are served, while ScheduledJobs are watched alone."""

UNNAMED_TIMES = 3
"""So often in a row kopf may find that discovery does not name each resource. Discovery lags behind
for seconds where a CRD was deleted and applied again, and kopf looks once."""

SAID_EVERY_S = 60.0

NO_REQUESTS = (
    "the RunRequest resource is not installed in this cluster, so nobody can request runs: "
    "kubectl apply -f crds/"
)


@dataclass(frozen=True, slots=True)
class Watched:
    """Who is told of one resource."""

    see: Sight
    removed: Callable[[], object]
    """The resource, and with it all its objects, are gone."""
    returned: Callable[[], object]
    """A watch begins again: it does not tell what was deleted meanwhile."""


class ResourceWatch:
    """Runs on the scheduler's loop; kopf has a thread of its own."""

    def __init__(self, api: Api, load: Callable[[], Credentials]) -> None:
        self._api = api
        self._load = load
        self._thread: KopfThread | None = None
        self._knows_requests = True
        """Whether RunRequests were served when the watch began last."""
        self._unnamed_times = 0
        self.installed = True
        """Whether the cluster serves ScheduledJobs."""

    @property
    def unanswered_s(self) -> float:
        """Since the API server said anything to the watch that has waited longest for it."""
        return self._thread.unanswered_s if self._thread else 0.0

    @property
    def silence_s(self) -> float:
        """Since any watch of a resource was told something; of the resource that has waited
        longest for it."""
        return self._thread.silence_s if self._thread else 0.0

    async def wait_until_installed(self, namespaces: tuple[str, ...]) -> None:
        """Return at once, unless the API server answers that there are no ScheduledJobs."""
        if await list_status(self._api, SCHEDULES, namespaces) == NOT_FOUND:
            await self._wait(namespaces)

    async def run(self, namespaces: tuple[str, ...], schedules: Watched, requests: Watched) -> None:
        """Watch until cancelled. CannotStart: kopf has ended, and not because a resource is
        gone."""
        while True:
            served = await is_served(self._api, REQUESTS, namespaces)
            self._tell_of_requests(served, requests)
            sights = {SCHEDULES.plural: schedules.see}
            if served:
                sights[REQUESTS.plural] = requests.see
            await self._watch(namespaces, sights)
            await self._wait(namespaces, schedules.removed)
            schedules.returned()
            requests.returned()

    def _tell_of_requests(self, served: bool, requests: Watched) -> None:
        if served is self._knows_requests:
            return
        self._knows_requests = served
        if served:
            log("requests are watched")
        else:
            requests.removed()
            log("requests are not watched", level="warning", sentence=NO_REQUESTS)

    async def _watch(self, namespaces: tuple[str, ...], sights: dict[str, Sight]) -> None:
        """Until a resource is gone, or there is one more."""
        ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        thread = self._thread = KopfThread(
            self._load, sights, namespaces=namespaces, on_death=partial(_settle, ended)
        )
        thread.start()
        more = asyncio.create_task(self._one_more(namespaces, sights))
        awaited: list[asyncio.Future[Any]] = [ended, more]
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._thread = None
            more.cancel()
            await asyncio.to_thread(thread.stop)
        unnamed = ended.done() and thread.never_watched
        self._unnamed_times = self._unnamed_times + 1 if unnamed else 0
        if 0 < self._unnamed_times < UNNAMED_TIMES:
            log("watch begun again", level="warning", sentence=str(ended.result()))
        elif ended.done() and not thread.not_found:
            raise CannotStart(f"the watch of ScheduledJobs and RunRequests ended: {ended.result()}")
        if not more.cancelled() and more.done():
            more.result()

    async def _one_more(self, namespaces: tuple[str, ...], sights: dict[str, Sight]) -> None:
        """Return when RunRequests are served that are not watched."""
        if REQUESTS.plural in sights:
            await asyncio.get_running_loop().create_future()
        await clock.sleep(clock.jitter(LOOK_FOR_REQUESTS_S))
        while not await is_served(self._api, REQUESTS, namespaces):
            await clock.sleep(clock.jitter(LOOK_FOR_REQUESTS_S))

    async def _wait(
        self, namespaces: tuple[str, ...], removed: Callable[[], object] = lambda: None
    ) -> None:
        """Wait until kopf can watch ScheduledJobs."""
        loop, said_at, looks = asyncio.get_running_loop(), float("-inf"), 0
        try:
            while True:
                status = await list_status(self._api, SCHEDULES, namespaces)
                named = await is_named(self._api, SCHEDULES.plural)
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
            waited, self.installed = not self.installed, True
        if waited:
            log("the resource is installed")


def _settle(ended: asyncio.Future[BaseException | None], error: BaseException | None) -> None:
    """Called in kopf's thread."""

    def settle() -> None:
        if not ended.done():
            ended.set_result(error)

    ended.get_loop().call_soon_threadsafe(settle)
