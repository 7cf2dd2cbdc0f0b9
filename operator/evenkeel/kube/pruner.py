"""Lists our objects, for what kopf does not tell: which of them there are.

Kopf reports neither the end of its list nor deletions that happen while its watch is broken.
Without the first, nobody could say when all schedules are known. Without the second, a deleted
schedule would go on creating Jobs. The list also shows objects that kopf never reported. One pruner
lists ScheduledJobs, and another one RunRequests.
"""

import asyncio
from collections.abc import Callable, Mapping

from evenkeel import clock as clocks
from evenkeel.clock import Clock
from evenkeel.core.inbox import Inbox
from evenkeel.kube.api import Api, NoAnswer, NotSent, Reply
from evenkeel.kube.listener import Sight
from evenkeel.kube.reflector import PAGE, Unusable
from evenkeel.kube.resources import SCHEDULES, Resource
from evenkeel.kube.served import is_removed

NOT_READY_S = 3.0
"""Between two looks whether more objects have become known."""

SKEW_S = 5.0
"""A difference that is worth a warning: clocks of machines that are kept in time differ by less."""

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Pruner:
    """Lists the metadata of all objects of a resource, at the start and every few minutes."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        *,
        resource: Resource = SCHEDULES,
        clock: Clock,
        known: Callable[[str], int],
        namespaces: tuple[str, ...],
        every_s: float,
        complain: Callable[[str, str], None] = lambda what, sentence: None,
        ready: Callable[[], bool] = lambda: True,
        known_count: Callable[[], int] = lambda: 0,
    ) -> None:
        """`known` tells the generation of an object that the scheduler has, 0 for none.

        Until the scheduler is `ready`, the list is repeated as soon as no more objects become
        known: one that was deleted between this list and kopf's would be waited for."""
        self._resource = resource
        self._ready = ready
        self._known_count = known_count
        self._api = api
        self._inbox = inbox
        self._clock = clock
        self._known = known
        self._namespaces = namespaces
        self._every_s = every_s
        self._not_listed = f"{resource.many} cannot be listed"
        self._complain = complain
        self.see: Sight | None = None
        """Is shown an object that the watch should have shown; None: nobody is."""
        self.heard_at = clock.now()
        """When all were listed last."""
        self.clock_skew_s = 0.0
        """The API server's clock minus ours, as far as its whole seconds tell."""
        self._unseen: frozenset[str] = frozenset()
        self._wanted = asyncio.Event()

    @property
    def unseen(self) -> int:
        """Objects, and edits of objects, that the last list has shown and no watch had."""
        return len(self._unseen)

    def list_soon(self) -> None:
        """The watch begins anew: it does not tell what was deleted before."""
        self._wanted.set()

    async def run(self) -> None:
        """List until cancelled."""
        while True:
            pause_s = self._every_s
            try:
                await self.list_once()
            except (NotSent, NoAnswer, Unusable) as error:
                self._complain(self._not_listed, str(error))
                pause_s = min(5.0, self._every_s)
            if self._ready():
                self._wanted.clear()
                await clocks.wait_for(self._wanted, clocks.jitter(pause_s))
            else:
                await self._stand_still(pause_s)

    async def _stand_still(self, pause_s: float) -> None:
        """Wait while more objects become known: another list would only slow that down."""
        before = -1
        while pause_s > 0 and not self._ready() and self._known_count() > before:
            before = self._known_count()
            await clocks.sleep(clocks.jitter(min(NOT_READY_S, pause_s)))
            pause_s -= NOT_READY_S

    async def list_once(self) -> None:
        """Tell the scheduler which objects there are."""
        listed_m, heard_at = self._clock.monotonic(), self._clock.now()
        found: dict[str, tuple[str, int]] = {}
        unlisted: set[str] = set()
        for ns in () if await self._is_removed() else self._namespaces or ("",):
            try:
                found |= await self._list(ns)
            except Unusable as error:
                # A namespace that is gone with its Role must not hide all others.
                if not self._namespaces or not self._ready():
                    raise
                unlisted.add(ns)
                self._complain(self._not_listed, f"{ns}: {error}")
        if len(unlisted) == len(self._namespaces or ("",)):
            raise Unusable("not in any namespace")
        self.heard_at = heard_at
        listed = self._resource.listed(frozenset(found), listed_m, frozenset(unlisted))
        self._inbox.hint(("listed", self._resource.plural), listed)
        await self._show_unseen(found)

    async def _is_removed(self) -> bool:
        """Of ScheduledJobs the watch tells it."""
        if not self._resource.optional:
            return False
        return await is_removed(self._api, self._resource, self._namespaces)

    async def _list(self, ns: str) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        params = {"limit": str(PAGE)}
        while True:
            asked_at = self._clock.now()
            reply = await self._api.call(
                "GET", self._resource.path(ns, ""), params=params, accept=METADATA_ONLY
            )
            self._compare_clocks(reply, asked_at)
            if not reply.ok:
                raise Unusable(reply.message)
            page = reply.json()
            metadata = page.get("metadata") or {}
            if not metadata.get("resourceVersion"):
                raise Unusable("not a list")  # an empty list would end all schedules
            found |= {
                each["uid"]: (
                    self._resource.path(each.get("namespace", ""), each.get("name", "")),
                    each.get("generation", 0),
                )
                for each in (item["metadata"] for item in page.get("items") or ())
                if not each.get("deletionTimestamp")
            }
            if not (token := metadata.get("continue")):
                return found
            params["continue"] = token

    def _compare_clocks(self, reply: Reply, asked_at: float) -> None:
        """Due times go by this machine's clock. Nothing else tells that the clock makes every run
        too late."""
        if (said := reply.server_time) is None:
            return
        least, most = said - self._clock.now(), said + 1 - asked_at
        self.clock_skew_s = max(least, 0.0) + min(most, 0.0)
        if abs(self.clock_skew_s) > SKEW_S:
            sentence = f"by {self.clock_skew_s:+.0f} s, and due times go by ours"
            self._complain("the API server's clock differs from ours", sentence)

    async def _show_unseen(self, found: Mapping[str, tuple[str, int]]) -> None:
        """Show objects, and edits of objects, that two lists have shown and no watch has: they
        would never run, or run by their old spec for ever."""
        if self.see is None:
            return
        unseen = {
            uid: path for uid, (path, generation) in found.items() if self._known(uid) < generation
        }
        for uid in unseen.keys() & self._unseen:
            reply = await self._api.call("GET", unseen[uid])
            raw = reply.json()
            if reply.ok and (raw.get("metadata") or {}).get("uid") == uid:
                self._complain(f"{self._resource.one} not shown by its watch", unseen[uid])
                self.see(None, raw)
        self._unseen = frozenset(unseen)
