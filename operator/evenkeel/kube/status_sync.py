"""Write statuses behind: at most one merge patch per schedule and second, creates first.

The document is taken when there is time to send it, so what waits is a set of uids and needs no
bound of its own. One that cannot be written is tried again, later each time; launching never waits
for it, except where the scheduler asked for the mark first.
"""

import asyncio
from collections.abc import Awaitable, Callable

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Document, ScheduleGone, StatusWritten
from evenkeel.kube.api import MERGE_PATCH, Api, NoAnswer, NotSent, Reply, schedules_path

EVERY_S = 1.0
"""Between two patches of one schedule: each comes back through the watch and costs kopf 0.3 ms."""

LAG_LIMIT_S = 40.0
"""Creates go first, but not for ever: in a herd the mark may lag its create by at most 60 s. With
20 s half of the statuses of ten thousand were written between their creates."""

LONGEST_PAUSE_S = 30.0

LONGEST_SILENCE_S = 5.0
"""Between two looks whether an API server that could not be reached is there again."""

RETRY_AFTER_S = 1.0
"""After a 429 that does not say how long."""

A_PAGE = Reply(502, b'{"message": "that was a proxy\'s page, no answer of the API server"}')
"""What a 200 without an object is taken for: nothing was stored."""

Documents = Callable[[str], tuple[str, str, Document, int] | None]


class StatusSync:
    """Runs on the scheduler's loop with a few workers."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        documents: Documents,
        *,
        in_flight: int,
        busy: Callable[[], bool],
        version: Callable[[str], str] = lambda uid: "",
        count: Callable[[str, float], None] = lambda outcome, took_s: None,
        complain: Callable[[str, str], None] = lambda what, sentence: None,
    ) -> None:
        self._api = api
        self._inbox = inbox
        self._clock = clock
        self._documents = documents
        self._in_flight = in_flight
        self._busy = busy
        self._version = version
        self._count = count
        self._complain = complain
        self._waiting: dict[str, float] = {}
        self._written_at: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._stored: dict[str, tuple[int, float]] = {}
        """The revision stored last, and when its request began."""
        self._writing: dict[str, asyncio.Future[None]] = {}
        self._closed_until = 0.0
        self._closings = 0
        self._paused_until = 0.0
        """As the server asked for: one that answers others meanwhile does not take it back."""
        self._arrived = asyncio.Event()
        self._stopping = False

    @property
    def waiting(self) -> int:
        """Schedules whose status is not yet written."""
        return len(self._waiting)

    @property
    def failing(self) -> int:
        """Schedules whose last write failed."""
        return len(self._failures)

    def dirty(self, uid: str) -> None:
        """The status of this schedule has changed."""
        if uid not in self._waiting:
            self._waiting[uid] = self._clock.monotonic()
            self._arrived.set()

    async def write_now(self, uid: str, revision: int) -> bool:
        """Have this revision stored before going on; False when it could not be done. A hundred
        creates of one schedule need the same one, and would each write it."""
        waits = self._waiting.pop(uid, None) is not None
        await self._my_turn(uid)
        stored, began = self._stored.get(uid, (0, 0.0))
        # Not for long: another process may take it back.
        if stored >= revision and self._clock.monotonic() < began + EVERY_S:
            if waits:
                self.dirty(uid)  # for what has changed since
            return True
        return await self._write(uid)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._in_flight):
                workers.create_task(self._work())

    def flush(self, *, within_s: float) -> Awaitable[int]:
        """At shutdown: write what waits, without the pauses; give up after `within_s`. How many
        statuses are not written then.

        From the call on nobody hears that a document was stored, not only from the first `await`:
        a change that waits for that word would be lost in between."""
        self._stopping = True
        self._arrived.set()
        return self._flush(within_s)

    async def _flush(self, within_s: float) -> int:
        until = self._clock.monotonic() + within_s
        hands: list[asyncio.Task[None]] = []
        while (self._waiting or self._writing) and (left_s := until - self._clock.monotonic()) > 0:
            if self._waiting:
                hands = [asyncio.create_task(self._write_all()) for _ in range(self._in_flight)]
                done, _ = await asyncio.wait(hands, timeout=left_s)
                for hand in done:
                    hand.result()
            else:  # what the workers are writing would be cut off with them
                await asyncio.wait(list(self._writing.values()), timeout=left_s)
        unwritten = len(self._waiting.keys() | self._writing.keys() | self._failures.keys())
        for hand in hands:
            hand.cancel()
        return unwritten

    async def _write_all(self) -> None:
        while self._waiting:
            uid = next(iter(self._waiting))
            del self._waiting[uid]
            await self._write(uid)

    async def _work(self) -> None:
        while True:
            uid, pause_s = self._next()
            if uid is None:
                self._arrived.clear()
                await self._rest(pause_s)
                continue
            del self._waiting[uid]
            await self._write(uid)

    def _next(self) -> tuple[str | None, float]:
        """The one that has waited longest and may be written, or how long to rest."""
        now = self._clock.monotonic()
        if (opens_at := max(self._closed_until, self._paused_until)) > now:
            return None, opens_at - now
        pause_s = 3600.0
        busy = self._busy()
        for uid, since in self._waiting.items():
            if busy and now - since < LAG_LIMIT_S:
                return None, 0.05
            may_at = self._written_at.get(uid, float("-inf")) + EVERY_S
            if may_at <= now:
                return uid, 0.0
            pause_s = min(pause_s, may_at - now)
        return None, pause_s

    async def _rest(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._arrived.wait()
        except TimeoutError:
            return

    async def _write(self, uid: str) -> bool:
        """One at a time for each schedule, and the document is taken when its turn has come: an
        older one that arrives after a newer takes back a mark that a create relies on."""
        await self._my_turn(uid)
        done = self._writing[uid] = asyncio.get_running_loop().create_future()
        try:
            return await self._send(uid)
        finally:
            del self._writing[uid]
            done.set_result(None)

    async def _my_turn(self, uid: str) -> None:
        while (other := self._writing.get(uid)) is not None:
            await asyncio.wait([other])

    async def _send(self, uid: str) -> bool:
        found = self._documents(uid)
        if found is None:
            self.forget(uid)
            return False
        ns, name, status, revision = found
        # The version is the precondition: a status must not land on a schedule created anew, and a
        # request that was given up may arrive after the next one. The uid is none: a status patch
        # with another one is taken (tests/contract).
        metadata = {"uid": uid}
        if version := self._versions.get(uid) or self._version(uid):
            metadata["resourceVersion"] = version
        body = orjson.dumps({"metadata": metadata, "status": status})
        began = self._clock.monotonic()
        self._written_at[uid] = began
        try:
            reply = await self._api.call(
                "PATCH", f"{schedules_path(ns, name)}/status", body=body, content_type=MERGE_PATCH
            )
            another = False
            if reply.status == 409 and "UID in precondition" not in reply.message:
                reply, another = await self._send_again(uid, schedules_path(ns, name), status)
        except (NotSent, NoAnswer) as error:
            self._complain("statuses cannot be written", str(error))
            self._count("no_answer", self._clock.monotonic() - began)
            if isinstance(error, NotSent):
                self._close(uid)
            else:
                self._later(uid)
            return False
        self._open()
        if reply.ok and not another and not _version(reply):
            reply = A_PAGE
        self._count("ok" if reply.ok else str(reply.status), self._clock.monotonic() - began)
        if reply.ok and not another:
            if uid not in self._written_at:  # forgotten while it was on its way: nobody would again
                return False
            self._failures.pop(uid, None)
            self._versions[uid] = _version(reply)
            self._stored[uid] = revision, began
            self._inbox.hint(("written", uid), StatusWritten(uid, revision))
            if self._stopping and (newest := self._documents(uid)) and newest[3] > revision:
                self.dirty(uid)  # nobody reads the inbox any more to find that out
            return True
        if reply.absent or another or "UID in precondition" in reply.message:
            self.forget(uid)
            self._inbox.hint(("gone", uid), ScheduleGone(uid))
            return False
        self._obey(reply)
        self._complain("statuses cannot be written", f"{ns}/{name}: {reply.message}")
        self._later(uid)
        return False

    async def _send_again(self, uid: str, path: str, status: Document) -> tuple[Reply, bool]:
        """Somebody else has written since, mostly the user the spec: from which version on? True
        when it is another schedule of the same name."""
        found = await self._api.call("GET", path)
        if not found.ok:
            return found, False
        metadata = found.json().get("metadata") or {}
        if not metadata.get("resourceVersion"):
            return A_PAGE, False  # without a version the patch would overwrite anything
        if metadata.get("uid", uid) != uid:
            return found, True
        metadata = {"uid": uid, "resourceVersion": metadata.get("resourceVersion", "")}
        body = orjson.dumps({"metadata": metadata, "status": status})
        path = f"{path}/status"
        return await self._api.call("PATCH", path, body=body, content_type=MERGE_PATCH), False

    def _later(self, uid: str) -> None:
        """Try again, later each time; the pause is kept where the last write was."""
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        pause_s = clock.jitter(min(LONGEST_PAUSE_S, 2.0 ** min(failures, 10) / 2))
        self._written_at[uid] = self._clock.monotonic() + pause_s - EVERY_S
        if not self._stopping:
            self.dirty(uid)

    def _close(self, uid: str) -> None:
        """The API server is not there, for this schedule as for all: they wait together, so that
        all are written as soon as one finds it there again."""
        self._failures.setdefault(uid, 1)
        now = self._clock.monotonic()
        if now >= self._closed_until:  # those sent beside it found the same
            self._closings += 1
            pause_s = min(LONGEST_SILENCE_S, 2.0 ** min(self._closings, 10) / 2)
            self._closed_until = now + clock.jitter(pause_s)
        if not self._stopping:
            self.dirty(uid)

    def _obey(self, reply: Reply) -> None:
        """A server that has too much to do speaks of all requests: one for each schedule, each
        tried again by itself, are those that it cannot take."""
        pause_s = reply.retry_after_s
        if reply.status == 429 and pause_s is None:
            pause_s = RETRY_AFTER_S
        if reply.status in (429, 503) and pause_s is not None:
            until = self._clock.monotonic() + pause_s
            self._paused_until = max(self._paused_until, until)

    def _open(self) -> None:
        if self._closings:
            self._closings, self._closed_until = 0, 0.0
            self._arrived.set()

    def forget(self, uid: str) -> None:
        """The schedule is gone."""
        self._waiting.pop(uid, None)
        self._written_at.pop(uid, None)
        self._failures.pop(uid, None)
        self._versions.pop(uid, None)
        self._stored.pop(uid, None)


def _version(reply: Reply) -> str:
    return str((reply.json().get("metadata") or {}).get("resourceVersion", ""))
