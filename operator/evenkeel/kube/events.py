"""Kubernetes Events on our objects: for people, so few, short, and never in the way.

Of one reason on one object a Normal Event is sent once a minute at most, and counts those that
were not sent; Warnings within a minute are one Event with a count. Namespaces take turns. What
exceeds the queue, and what the API server does not take, is dropped and counted: the status holds
the truth.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from evenkeel import clock, rfc3339
from evenkeel.clock import Clock
from evenkeel.core.effects import KubeEvent
from evenkeel.kube.api import JSON, MERGE_PATCH, Api, NoAnswer, NotSent
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Place, Places
from evenkeel.resource.names import API_VERSION

QUEUE_LIMIT = 2_000
"""Waiting Events; in a herd more than that would be old news when they were sent."""

EVENTS_A_SECOND = 50
"""A herd of ten thousand has as many to tell, and the API server has better to do."""

SIMILAR_S = 60.0
"""Within it Warnings of the same reason are counted on one Event, and Normal ones are not sent."""

SERIES_S = 600.0
"""For so long a Normal Event is counted up, as by Kubernetes itself."""

PATIENCE_S = 40.0
"""So long Events wait for creates to be sent."""

BUSY_PAUSE_S = 0.1

IN_FLIGHT = 2
KEPT = 1
OLD_IN_ALL = 16
"""See `Places`. One at a time of each namespace: an Event that does not exist yet cannot be counted
up."""

REMEMBERED_LIMIT = 20_000
"""(schedule, reason) pairs whose last Event is remembered."""

REFUSED_FOR_S = 300.0
"""So long a refusal is remembered where nothing else is told in its namespace."""

ENDING = "because it is being terminated"
"""So the API server refuses what is to be created in a namespace that goes."""

WHAT = "events"


@dataclass(slots=True)
class _Series:
    """The Events of one reason on one object."""

    told_at: float
    """When one was queued last."""
    unsent: int = 0
    """Normal ones since then."""
    name: str = ""
    """Of the Event that was sent last; empty: none was."""
    sent_at: float = 0.0
    """When it was created."""
    count: int = 0


@dataclass(slots=True)
class _Dropped:
    """Events of a namespace, none of which was taken."""

    first_m: float
    last_m: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: KubeEvent
    since: float


class _NamespaceEnds(Exception):
    """Nothing is created there any more, and nobody misses it."""


class Events:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        busy: Callable[[], bool],
        gate: Gate | None = None,
        dropped: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._busy = busy
        self._gate = gate or Gate(clock)
        self._dropped = dropped
        self._arrived = asyncio.Event()
        self._places = Places(
            IN_FLIGHT,
            kept=KEPT,
            stuck=1,
            old_in_all=OLD_IN_ALL,
            each=1,
            freed=self._arrived.set,
        )
        self._lanes: dict[str, deque[_Waiting]] = {}
        """By namespace, the next one's turn first."""
        self._waiting = 0
        self._series: dict[tuple[str, str], _Series] = {}
        self._not_taken: dict[str, _Dropped] = {}
        """By namespace."""

    @property
    def waiting(self) -> int:
        """Events that are not sent yet."""
        return self._waiting

    def behind(self, by_s: float) -> set[str]:
        """Namespaces with an Event that has waited for so long, or none of whose Events was taken
        for so long."""
        now = self._clock.monotonic()
        late = {ns for ns, lane in self._lanes.items() if lane[0].since < now - by_s}
        self._not_taken = {
            ns: one for ns, one in self._not_taken.items() if one.last_m > now - REFUSED_FOR_S
        }
        return late | {ns for ns, one in self._not_taken.items() if one.last_m - one.first_m > by_s}

    def tell(self, event: KubeEvent) -> None:
        """Queue an Event."""
        now, key = self._clock.monotonic(), (event.uid, event.reason)
        series = self._series.pop(key, None) or _Series(told_at=float("-inf"))
        self._series[key] = series  # the one told last is forgotten last
        if len(self._series) > REMEMBERED_LIMIT:
            del self._series[next(iter(self._series))]
        if not event.warning and now - series.told_at < SIMILAR_S:
            series.unsent += 1
            return
        series.told_at = now
        self._lanes.setdefault(event.ns, deque()).append(_Waiting(event, now))
        self._waiting += 1
        if self._waiting > QUEUE_LIMIT:
            # Of whom most are waiting: one namespace must not silence the others.
            self._pop(max(self._lanes, key=lambda ns: len(self._lanes[ns])), newest=True)
            self._dropped()
        self._arrived.set()

    def _pop(self, ns: str, *, newest: bool = False) -> KubeEvent:
        lane = self._lanes[ns]
        waiting = lane.pop() if newest else lane.popleft()
        self._waiting -= 1
        if not lane:
            del self._lanes[ns]
        elif not newest:
            self._lanes[ns] = self._lanes.pop(ns)  # to the end: others come first next time
        return waiting.event

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"Events that wait": self._waiting, "series of Events": len(self._series)}

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as sending:
            while True:
                ns, pause_s = self._next()
                if ns is None:
                    self._arrived.clear()
                    await clock.wait_for(self._arrived, pause_s)
                    continue
                sending.create_task(self._send_in(self._places.take(ns), self._pop(ns)))
                await clock.sleep(1 / EVENTS_A_SECOND)

    def _next(self) -> tuple[str | None, float]:
        """The namespace whose turn it is, or how long to rest."""
        now, busy, pause_s = self._clock.monotonic(), self._busy(), 3600.0
        for ns, lane in self._lanes.items():
            if not self._places.free_for(ns):
                continue
            if closed_s := self._gate.closed_s(WHAT, ns):
                pause_s = min(pause_s, closed_s)
            elif busy and now - lane[0].since < PATIENCE_S:
                pause_s = min(pause_s, BUSY_PAUSE_S)
            else:
                return ns, 0.0
        return None, pause_s

    async def _send_in(self, place: Place, event: KubeEvent) -> None:
        answered = False
        try:
            self._count(event.ns, taken=await self._send(event))
            answered = True
        except _NamespaceEnds:
            self._dropped()
            answered = True
        except (NotSent, NoAnswer):
            self._count(event.ns, taken=False)
        finally:
            place.give_back(answered=answered)

    def _count(self, ns: str, *, taken: bool) -> None:
        if taken:
            self._not_taken.pop(ns, None)
            return
        self._dropped()
        now = self._clock.monotonic()
        self._not_taken.setdefault(ns, _Dropped(now, now)).last_m = now

    async def _send(self, event: KubeEvent) -> bool:
        """Whether it was taken."""
        series = self._series.get((event.uid, event.reason)) or _Series(told_at=0.0)
        now = self._clock.monotonic()
        many, series.unsent = 1 + series.unsent, 0
        if series.name and now - series.sent_at < (SIMILAR_S if event.warning else SERIES_S):
            body = {
                "count": series.count + many,
                "lastTimestamp": rfc3339.show(int(self._clock.now())),
                "message": event.message,
            }
            path = f"{_path(event)}/{series.name}"
            taken, absent = await self._call("PATCH", path, event.ns, body, MERGE_PATCH)
            if not absent:
                series.count += many
                return taken
            # Somebody deleted it, or it had lived its hour.
        digest = hashlib.sha256(f"{event.uid}/{event.reason}/{now}".encode()).hexdigest()[:16]
        name = f"{event.name[:200].rstrip('-.')}.{digest}"
        body = _event(event, name, int(self._clock.now()), many)
        taken, _ = await self._call("POST", _path(event), event.ns, body, JSON)
        if taken:
            series.name, series.sent_at, series.count = name, now, many
        return taken

    async def _call(
        self, verb: str, path: str, ns: str, body: dict[str, object], content_type: str
    ) -> tuple[bool, bool]:
        """Whether it was taken, and whether there is no such Event."""
        reply = await self._api.call(verb, path, body=orjson.dumps(body), content_type=content_type)
        self._gate.heed(WHAT, ns, reply)
        if reply.status == 403 and ENDING in reply.message:
            raise _NamespaceEnds
        return reply.ok and reply.from_api_server, reply.absent


def _path(event: KubeEvent) -> str:
    return f"/api/v1/namespaces/{event.ns}/events"


def _event(event: KubeEvent, name: str, now: int, count: int) -> dict[str, object]:
    moment = rfc3339.show(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": event.ns},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": event.kind,
            "namespace": event.ns,
            "name": event.name,
            "uid": event.uid,
        },
        "type": "Warning" if event.warning else "Normal",
        "reason": event.reason,
        "message": event.message,
        "source": {"component": "evenkeel"},
        "reportingComponent": "evenkeel",
        "count": count,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
    }
