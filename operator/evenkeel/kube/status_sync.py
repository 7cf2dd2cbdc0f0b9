"""Write statuses behind: at most one merge patch per object and second, creates first.

One of these writes the statuses of ScheduledJobs, and another one those of RunRequests.
`WriteTurns` says whose status is next. The document is taken when there is time to send it.

A write that hangs delays those of its own namespace alone. A write that fails is tried again, later
each time. Launching never waits for a write, except where the scheduler asks for one before a
create: see `write_now`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Document
from evenkeel.kube.api import MERGE_PATCH, Api, NoAnswer, NotSent, Reply
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Place, Places
from evenkeel.kube.resources import SCHEDULES, Resource
from evenkeel.kube.write_turns import WHAT, WriteTurns
from evenkeel.model import WriteOutcome

LONGEST_PAUSE_S = 30.0

LONGEST_SILENCE_S = 5.0
"""Between two looks whether an API server that could not be reached is there again."""

FEW = 4
"""While no more statuses wait, looking for the next one costs nothing."""

KEPT = 1
STUCK = 2
OLD_IN_ALL = 32
"""See `Places`: a place more for namespaces that hold none, writes of one namespace while none of
them comes back, and writes older than a second of all namespaces."""

A_PAGE = Reply(502, b'{"message": "that was a proxy\'s page, no answer of the API server"}')
"""What a 200 without an object is taken for: nothing was stored."""

Documents = Callable[[str], tuple[str, str, Document, int] | None]
Write = Coroutine[Any, Any, None]


@dataclass(slots=True)
class _Unstored:
    """A change that no stored status tells of yet."""

    ns: str
    since: float


class StatusSync:
    """Of one resource. Runs on the scheduler's loop."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        documents: Documents,
        *,
        resource: Resource = SCHEDULES,
        in_flight: int,
        busy: Callable[[], bool],
        namespace: Callable[[str], str],
        gate: Gate | None = None,
        version: Callable[[str], str] = lambda uid: "",
        count: Callable[[WriteOutcome, float], None] = lambda outcome, took_s: None,
        complain: Callable[[str, str], None] = lambda what, sentence: None,
    ) -> None:
        self._api = api
        self._resource = resource
        self._inbox = inbox
        self._clock = clock
        self._documents = documents
        self._gate = gate or Gate(clock)
        self._version = version
        self._namespace = namespace
        self._count = count
        self._complain = complain
        self.seen_version: Callable[[str], int] = lambda uid: 0
        """The version of an object that its watch showed last; 0: not known."""
        self._arrived = asyncio.Event()
        self._places = Places(
            in_flight, kept=KEPT, stuck=STUCK, old_in_all=OLD_IN_ALL, freed=self._arrived.set
        )
        self._turns = WriteTurns(
            clock,
            places=self._places,
            gate=self._gate,
            busy=busy,
            is_writing=lambda uid: uid in self._writing,
            arrived=self._arrived.set,
        )
        self._unstored: dict[str, _Unstored] = {}
        self._failures: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._stored: dict[str, int] = {}
        """The revision stored last."""
        self._writing: dict[str, asyncio.Future[None]] = {}
        """One write at a time for each object, whose document is taken when it begins: an older
        document that arrived after a newer one would take back what a create relies on."""
        self._spawn: Callable[[Write], object] | None = None
        """Begins a write; None: nobody writes now."""
        self._closings = 0
        self._stopping = False

    @property
    def waiting(self) -> int:
        """Objects whose status is not yet written."""
        return len(self._turns)

    @property
    def failing(self) -> int:
        """Objects whose last write failed."""
        return len(self._failures)

    @property
    def oldest_s(self) -> float:
        """How long the change has waited that no stored status tells of; 0: all are told."""
        since = min((each.since for each in self._unstored.values()), default=None)
        return 0.0 if since is None else self._clock.monotonic() - since

    def behind(self, by_s: float) -> set[str]:
        """Namespaces with a status that should have been stored so long ago."""
        since = self._clock.monotonic() - by_s
        return {each.ns for each in self._unstored.values() if each.since < since}

    def sizes(self) -> dict[str, int]:
        """How many things are kept, by what they are."""
        return {
            **self._turns.sizes(),
            "failed writes": len(self._failures),
            "versions": len(self._versions),
            "stored revisions": len(self._stored),
        }

    def dirty(self, uid: str, *, awaited: bool = False) -> None:
        """The status of this object has changed. `awaited`: what is stored speaks of no spec or
        of an older one."""
        if awaited:
            self._turns.add_awaited(uid)
        if uid in self._turns:
            return
        ns, since = self._namespace(uid), self._clock.monotonic()
        unstored = self._unstored.setdefault(uid, _Unstored(ns, since))
        self._turns.add(uid, unstored.ns, since=since)
        if self._spawn is not None and len(self._turns) <= FEW:
            # At once, and not when `run` wakes up: a status that tells why a Job is deleted is sent
            # before the deletion that the scheduler asks for after it.
            self._begin(self._spawn)

    async def write_now(self, uid: str, revision: int) -> bool:
        """Have this revision stored before going on; False when it could not be done.

        Called by a create whose Job may vanish: a stored status must announce it. A revision that
        is stored counts, however long ago it was written, unless the watch shows a version that
        the operator did not write. Then somebody else, another process perhaps, may have taken the
        announcement back, and it is written again. What the watch has not shown yet is not known.

        It waits for no place and for no other object. One write serves all creates that wait for
        the status of an object, and so does its failure."""
        if self._is_stored(uid, revision):
            return True
        begun_before = True
        while (other := self._writing.get(uid)) is not None:
            await asyncio.wait([other])
            if self._is_stored(uid, revision):
                return True
            if not begun_before:
                return False
            begun_before = False  # it may have held an older document
        return await self._write(uid)

    def _is_stored(self, uid: str, revision: int) -> bool:
        if self._stored.get(uid, 0) < revision:
            return False
        ours = self._versions[uid]
        return not ours.isdecimal() or self.seen_version(uid) <= int(ours)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as writes:
            self._spawn = writes.create_task
            try:
                while True:
                    pause_s = self._begin(writes.create_task)
                    self._arrived.clear()
                    await clock.wait_for(self._arrived, pause_s)
            finally:
                self._spawn = None

    def flush(self, *, within_s: float) -> Awaitable[int]:
        """At shutdown: write what waits, without the pauses; give up after `within_s`. How many
        statuses are not written then.

        Nobody reads what is written any more, from the call on and not only from the first
        `await`: a change that the scheduler tells only after it would be lost in between."""
        self._stopping = True
        self._turns.hurry()
        return self._flush(within_s)

    async def _flush(self, within_s: float) -> int:
        until = self._clock.monotonic() + within_s
        writes: list[asyncio.Task[None]] = []

        def begin(work: Write) -> None:
            writes.append(asyncio.create_task(work))

        while (len(self._turns) or self._writing) and (
            left_s := until - self._clock.monotonic()
        ) > 0:
            pause_s = self._begin(begin)
            self._arrived.clear()
            await clock.wait_for(self._arrived, min(pause_s, left_s))
        unwritten = len({*self._turns, *self._writing, *self._failures})
        for write in writes:
            if write.done():
                write.result()
            write.cancel()
        return unwritten

    def _begin(self, spawn: Callable[[Write], object]) -> float:
        """Begin the writes that may begin; how long to rest then."""
        while (found := self._turns.take_next()) is not None:
            uid, ns = found
            # From here on, not from when its task begins: it must not be begun twice.
            self._writing[uid] = asyncio.get_running_loop().create_future()
            spawn(self._write_in(self._places.take(ns), uid))
        return self._turns.pause_s

    # --- one write --------------------------------------------------------------------------------

    async def _write_in(self, place: Place, uid: str) -> None:
        answered = False
        try:
            answered = await self._send(uid) is not None
        finally:
            self._end_write(uid)
            place.give_back(answered=answered)

    async def _write(self, uid: str) -> bool:
        """Outside of all turns."""
        self._turns.take(uid)
        self._writing[uid] = asyncio.get_running_loop().create_future()
        try:
            return await self._send(uid) is True
        finally:
            self._end_write(uid)

    def _end_write(self, uid: str) -> None:
        self._writing.pop(uid).set_result(None)
        if uid in self._turns:
            self._turns.queue(uid)
        self._arrived.set()

    async def _send(self, uid: str) -> bool | None:
        """Whether it is stored; None: no answer."""
        found = self._documents(uid)
        if found is None:
            self.forget(uid)
            return False
        ns, name, status, revision = found
        path = self._resource.path(ns, name)
        # The version is the precondition: a status must not land on an object created anew, and a
        # write that was given up may arrive after the next one. The uid is none: a status patch
        # with another one is taken (tests/contract).
        metadata = {"uid": uid}
        if version := self._versions.get(uid) or self._version(uid):
            metadata["resourceVersion"] = version
        body = orjson.dumps({"metadata": metadata, "status": status})
        began = self._clock.monotonic()
        self._turns.sent(uid)
        try:
            reply = await self._api.call(
                "PATCH", f"{path}/status", body=body, content_type=MERGE_PATCH
            )
            another = False
            if reply.status == 409 and "UID in precondition" not in reply.message:
                reply, another, revision = await self._send_again(uid, path, revision)
        except (NotSent, NoAnswer) as error:
            self._complain("statuses cannot be written", str(error))
            self._count(WriteOutcome.NO_ANSWER, self._clock.monotonic() - began)
            if isinstance(error, NotSent):
                self._close(uid)
            else:
                self._later(uid)
            return None
        self._open()
        if reply.ok and not another and not _version(reply):
            reply = A_PAGE
        self._count(_outcome(reply), self._clock.monotonic() - began)
        if reply.ok and not another:
            if self._turns.is_forgotten(
                uid
            ):  # forgotten while it was on its way: nobody would again
                return False
            self._failures.pop(uid, None)
            self._versions[uid] = _version(reply)
            self._stored[uid] = revision
            self._unstored.pop(uid, None)
            if uid in self._turns:
                self._unstored[uid] = _Unstored(ns, self._turns.since(uid))
            self._inbox.hint(("written", uid), self._resource.written(uid, revision))
            if self._stopping and (newest := self._documents(uid)) and newest[3] > revision:
                self.dirty(uid)  # nobody reads the inbox any more to find that out
            return True
        if reply.absent or another or "UID in precondition" in reply.message:
            self.forget(uid)
            self._inbox.hint(("gone", uid), self._resource.gone(uid))
            return False
        self._gate.heed(WHAT, ns, reply)
        self._complain("statuses cannot be written", f"{ns}/{name}: {reply.message}")
        self._later(uid)
        return False

    async def _send_again(self, uid: str, path: str, sent: int) -> tuple[Reply, bool, int]:
        """Somebody else has written since, mostly the user the spec: from which version on? True
        when it is another object of the same name. The document is taken afresh: the first write
        may have hung for seconds, and would announce runs that were withdrawn meanwhile."""
        found = await self._api.call("GET", path)
        if not found.ok:
            return found, False, sent
        metadata = found.json().get("metadata") or {}
        if not metadata.get("resourceVersion"):
            return A_PAGE, False, sent  # without a version the patch would overwrite anything
        newest = self._documents(uid)
        if newest is None or metadata.get("uid", uid) != uid:
            return found, True, sent
        _, _, status, revision = newest
        metadata = {"uid": uid, "resourceVersion": metadata.get("resourceVersion", "")}
        body = orjson.dumps({"metadata": metadata, "status": status})
        path = f"{path}/status"
        reply = await self._api.call("PATCH", path, body=body, content_type=MERGE_PATCH)
        return reply, False, revision

    def _later(self, uid: str) -> None:
        """Try again, later each time; the pause is kept where the last write was."""
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        pause_s = clock.jitter(min(LONGEST_PAUSE_S, 2.0 ** min(failures, 10) / 2))
        self._turns.delay(uid, pause_s)
        if not self._stopping:
            self.dirty(uid)

    def _close(self, uid: str) -> None:
        """The API server is not there, for this object as for all: they wait together, so that
        all are written as soon as one finds it there again."""
        self._failures.setdefault(uid, 1)
        if not self._turns.is_closed:  # those sent beside it found the same
            self._closings += 1
            pause_s = min(LONGEST_SILENCE_S, 2.0 ** min(self._closings, 10) / 2)
            self._turns.close(clock.jitter(pause_s))
        if not self._stopping:
            self.dirty(uid)

    def _open(self) -> None:
        if self._closings:
            self._closings = 0
            self._turns.close(0.0)
            self._arrived.set()

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._turns.forget(uid)
        self._unstored.pop(uid, None)
        self._failures.pop(uid, None)
        self._versions.pop(uid, None)
        self._stored.pop(uid, None)


def _version(reply: Reply) -> str:
    return str((reply.json().get("metadata") or {}).get("resourceVersion", ""))


def _outcome(reply: Reply) -> WriteOutcome:
    if reply.ok:
        return WriteOutcome.OK
    if reply.status >= 500:
        return WriteOutcome.SERVER_ERROR
    special = {409: WriteOutcome.CONFLICT, 429: WriteOutcome.THROTTLED}
    return special.get(reply.status, WriteOutcome.REFUSED)
