"""Small calls about RunRequests: make one that a trigger asks for, read one, delete one.

Each is tried until it is answered, later each time. A deletion is given up after DELETE_TRIES. At a
shutdown all are given up: the next process asks for each of them again, and to ask twice does no
harm.
"""

from typing import Any

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.effects import DeleteRequest, MakeRequest, ReadRequest
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Message, RequestGone, RequestSeen, TriggerMade
from evenkeel.kube.api import Api, Reply, requests_path
from evenkeel.kube.calls import Calls
from evenkeel.kube.gate import Gate
from evenkeel.kube.tasks import Busy, Fail, Tasks, reraise
from evenkeel.log import log
from evenkeel.resource.names import API_VERSION, NOTE_REQUESTED_BY, NOTE_TRIGGER, REQUEST_KIND
from evenkeel.resource.request_read import read_request
from evenkeel.resource.request_status import parse_request

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

DELETE_TRIES = 20
"""Tries for some eight minutes. After that a person must look."""

TTL_S = 86_400
"""A trigger's request is deleted a day after its end: nobody else would clean up."""

REFUSALS = (400, 403, 413, 422)
"""Answers to a create by which the same create would be refused again."""

WHAT = "requests"


class RequestErrands:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        *,
        busy: Busy,
        gate: Gate | None = None,
        fail: Fail = reraise,
    ) -> None:
        self._inbox = inbox
        self._calls = Calls(api, clock, what=WHAT, busy=busy, gate=gate)
        self._tasks = Tasks(fail)
        self._wanted: dict[str, MakeRequest] = {}
        """The newest trigger of each schedule that has no request yet, by the schedule's uid."""
        self._deleting: set[str] = set()

    def make(self, effect: MakeRequest) -> None:
        """Create the request that a trigger asks for; an older trigger of the schedule is given
        up."""
        if self._wanted.get(effect.uid) != effect:
            self._wanted[effect.uid] = effect
            self._tasks.spawn(self._make(effect))

    def forget_schedule(self, uid: str) -> None:
        """The schedule is gone: nobody waits for its trigger."""
        self._wanted.pop(uid, None)

    def read(self, effect: ReadRequest) -> None:
        """Read a request again, as at a restart."""
        self._tasks.spawn(self._read(effect))

    def delete(self, effect: DeleteRequest) -> None:
        """Delete a request. One that is gone counts as deleted, and one with another uid under the
        same name is left alone."""
        if effect.uid not in self._deleting:
            self._deleting.add(effect.uid)
            self._tasks.spawn(self._delete(effect))

    def stop(self) -> None:
        """Give up all of them."""
        self._tasks.cancel()

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {"requests to make": len(self._wanted), "requests to delete": len(self._deleting)}

    async def _make(self, effect: MakeRequest) -> None:
        path, body = requests_path(effect.ns), orjson.dumps(_requested_by_trigger(effect))
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S):
            if self._wanted.get(effect.uid) != effect:
                return
            reply = await self._calls.call(effect.ns, "POST", path, body=body)
            made = None if reply is None else _is_made(reply)
            if reply is None or made is None or self._wanted.get(effect.uid) != effect:
                continue
            del self._wanted[effect.uid]
            sentence = "" if made else reply.message
            await self._report(TriggerMade(effect.uid, effect.trigger, made, sentence))
            return

    async def _read(self, effect: ReadRequest) -> None:
        path = requests_path(effect.ns, effect.name)
        async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S):
            reply = await self._calls.call(effect.ns, "GET", path)
            if reply is None or not (reply.ok or reply.absent) or not reply.from_api_server:
                continue
            raw = reply.json() if reply.ok else {}
            metadata = raw.get("metadata") or {}
            if metadata.get("uid") != effect.uid or metadata.get("deletionTimestamp"):
                await self._report(RequestGone(effect.uid))
                return
            version = str(metadata.get("resourceVersion", ""))
            memory = parse_request(raw.get("status"), version=version)
            await self._report(RequestSeen(read_request(raw), memory))
            return

    async def _delete(self, effect: DeleteRequest) -> None:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": effect.uid},
        }
        path, body = requests_path(effect.ns, effect.name), orjson.dumps(options)
        try:
            async for _ in clock.tries(FIRST_PAUSE_S, LONGEST_PAUSE_S, count=DELETE_TRIES):
                reply = await self._calls.call(effect.ns, "DELETE", path, body=body)
                if reply is None or not reply.from_api_server:
                    continue
                if reply.ok or reply.status == 409 or reply.absent:
                    if not reply.ok:  # the watch has not told it, or not yet
                        await self._report(RequestGone(effect.uid))
                    return
            log("request not deleted", level="warning", request=f"{effect.ns}/{effect.name}")
        finally:
            self._deleting.discard(effect.uid)

    async def _report(self, message: Message) -> None:
        while not self._inbox.offer(message):
            await clock.sleep(0.01)


def _requested_by_trigger(effect: MakeRequest) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": REQUEST_KIND,
        "metadata": {
            "name": effect.name,
            "namespace": effect.ns,
            "annotations": {NOTE_REQUESTED_BY: f"annotation {NOTE_TRIGGER}={effect.trigger}"},
        },
        "spec": {"schedule": effect.schedule, "ttlSecondsAfterFinished": TTL_S},
    }


def _is_made(reply: Reply) -> bool | None:
    """Whether the request exists; False: it is refused; None: another try may tell."""
    if not reply.from_api_server:
        return None
    if reply.ok or (reply.status == 409 and reply.reason == "AlreadyExists"):
        return True
    return False if reply.status in REFUSALS else None
