"""Kubernetes Events on ScheduledJobs: for people, so few, short, and never in the way.

The same reason on the same schedule within a minute is one Event with a count. What exceeds the
queue is dropped and counted: the status holds the truth.
"""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.effects import KubeEvent
from evenkeel.kube.api import MERGE_PATCH, Api, NoAnswer, NotSent
from evenkeel.resource import rfc3339
from evenkeel.resource.names import API_VERSION, KIND

QUEUE_LIMIT = 2_000
"""Waiting Events; in a herd more than that would be old news when they were sent."""

EVENTS_A_SECOND = 50
"""A herd of ten thousand has as many to tell, and the API server has better to do."""

SIMILAR_S = 60.0
"""Within it the same reason is counted on one Event."""

REMEMBERED_LIMIT = 20_000
"""(schedule, reason) pairs whose last Event is remembered."""


@dataclass(slots=True)
class _Sent:
    name: str
    at: float
    count: int


class Events:
    """Runs on the scheduler's loop, one at a time."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        *,
        busy: Callable[[], bool],
        dropped: Callable[[], None] = lambda: None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._busy = busy
        self._dropped = dropped
        self._queue: asyncio.Queue[KubeEvent] = asyncio.Queue(QUEUE_LIMIT)
        self._sent: dict[tuple[str, str], _Sent] = {}

    def tell(self, told: KubeEvent) -> None:
        """Queue an Event."""
        try:
            self._queue.put_nowait(told)
        except asyncio.QueueFull:
            self._dropped()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            told = await self._queue.get()
            while self._busy():
                await clock.sleep(0.1)
            try:
                await self._send(told)
            except (NotSent, NoAnswer):
                self._dropped()
            await clock.sleep(1 / EVENTS_A_SECOND)

    async def _send(self, told: KubeEvent) -> None:
        now, key = self._clock.now(), (told.uid, told.reason)
        sent = self._sent.get(key)
        path = f"/api/v1/namespaces/{told.ns}/events"
        if sent and now - sent.at < SIMILAR_S:
            sent.count += 1
            body = {
                "count": sent.count,
                "lastTimestamp": rfc3339.show(int(now)),
                "message": told.message,
            }
            reply = await self._api.call(
                "PATCH",
                f"{path}/{sent.name}",
                body=orjson.dumps(body),
                content_type=MERGE_PATCH,
            )
            if reply.ok and reply.spoken:
                return
            if not reply.absent:
                self._dropped()
                return
            del self._sent[key]  # somebody deleted it, or it had lived its hour
        digest = hashlib.sha256(f"{told.uid}/{told.reason}/{now}".encode()).hexdigest()[:16]
        name = f"{told.name[:200].rstrip('-.')}.{digest}"
        reply = await self._api.call("POST", path, body=orjson.dumps(_event(told, name, int(now))))
        if reply.ok and reply.spoken:
            self._sent.pop(key, None)
            self._sent[key] = _Sent(name, now, 1)
            if len(self._sent) > REMEMBERED_LIMIT:
                del self._sent[next(iter(self._sent))]
        else:
            self._dropped()


def _event(told: KubeEvent, name: str, now: int) -> dict[str, object]:
    moment = rfc3339.show(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": told.ns},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": told.ns,
            "name": told.name,
            "uid": told.uid,
        },
        "type": "Warning" if told.warning else "Normal",
        "reason": told.reason,
        "message": told.message,
        "source": {"component": "evenkeel"},
        "reportingComponent": "evenkeel",
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
    }
