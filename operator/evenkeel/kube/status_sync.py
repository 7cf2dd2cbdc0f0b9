"""Write statuses behind: at most one merge patch per schedule and second, creates first.

The first status of a spec goes before all others, and before creates: somebody has just applied
that spec and waits for the answer. AWAITED_A_SECOND bounds how many do.

The document is taken when there is time to send it, so what waits is a set of uids and needs no
bound of its own. Namespaces take turns, and a write that hangs delays those of its own namespace
alone. A write that fails is tried again, later each time. Launching never waits for a write, except
where the scheduler asks for one before a create: see `write_now`.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import orjson

from evenkeel import clock
from evenkeel.clock import Clock
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Document, ScheduleGone, StatusWritten
from evenkeel.kube.api import MERGE_PATCH, Api, NoAnswer, NotSent, Reply, schedules_path
from evenkeel.kube.gate import Gate
from evenkeel.kube.places import Place, Places
from evenkeel.model import WriteOutcome

EVERY_S = 1.0
"""Between two patches of one schedule: each comes back through the watch and costs kopf 0.3 ms."""

LAG_LIMIT_S = 40.0
"""Creates go first, but not for ever: in a herd the mark may lag its create by at most 60 s. With
20 s half of the statuses of ten thousand were written between their creates."""

AWAITED_A_SECOND = 50
"""First statuses of a spec that go before creates. A thousand ScheduledJobs that are applied at
once must not make the runs of others late."""

BUSY_PAUSE_S = 0.05
"""Between two looks whether creates have been sent."""

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

WHAT = "statuses"

A_PAGE = Reply(502, b'{"message": "that was a proxy\'s page, no answer of the API server"}')
"""What a 200 without an object is taken for: nothing was stored."""

Documents = Callable[[str], tuple[str, str, Document, int] | None]
Write = Coroutine[Any, Any, None]
Lanes = dict[str, dict[str, None]]
"""Schedules that may be written now, by namespace; the namespace whose turn it is first."""


@dataclass(slots=True)
class _Unstored:
    """A change that no stored status tells of yet."""

    ns: str
    since: float


class StatusSync:
    """Runs on the scheduler's loop."""

    def __init__(
        self,
        api: Api,
        inbox: Inbox,
        clock: Clock,
        documents: Documents,
        *,
        in_flight: int,
        busy: Callable[[], bool],
        namespace: Callable[[str], str],
        gate: Gate | None = None,
        version: Callable[[str], str] = lambda uid: "",
        count: Callable[[WriteOutcome, float], None] = lambda outcome, took_s: None,
        complain: Callable[[str, str], None] = lambda what, sentence: None,
    ) -> None:
        self._api = api
        self._inbox = inbox
        self._clock = clock
        self._documents = documents
        self._busy = busy
        self._gate = gate or Gate(clock)
        self._version = version
        self._namespace = namespace
        self._count = count
        self._complain = complain
        self.seen_version: Callable[[str], int] = lambda uid: 0
        """The version of a schedule that its watch showed last; 0: not known."""
        self._arrived = asyncio.Event()
        self._places = Places(
            in_flight, kept=KEPT, stuck=STUCK, old_in_all=OLD_IN_ALL, freed=self._arrived.set
        )
        self._waiting: dict[str, float] = {}
        """Schedules to be written, and since when. Each stands in its namespace's lane, or is
        paced, or its last write is still under way."""
        self._lanes: Lanes = {}
        self._awaited: set[str] = set()
        """Schedules that wait, and whose stored status speaks of no spec or of an older one."""
        self._awaited_lanes: Lanes = {}
        """Those of them that may be written now; each stands in `_lanes` as well."""
        self._awaited_until = float("-inf")
        """Up to here the second's AWAITED_A_SECOND are used."""
        self._paced: list[tuple[float, str]] = []
        """A heap of schedules that may be written later, by when."""
        self._is_paced: set[str] = set()
        self._unstored: dict[str, _Unstored] = {}
        self._written_at: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._stored: dict[str, int] = {}
        """The revision stored last."""
        self._writing: dict[str, asyncio.Future[None]] = {}
        """One write at a time for each schedule, whose document is taken when it begins: an older
        document that arrived after a newer one would take back what a create relies on."""
        self._spawn: Callable[[Write], object] | None = None
        """Begins a write; None: nobody writes now."""
        self._closed_until = 0.0
        self._closings = 0
        self._stopping = False

    @property
    def waiting(self) -> int:
        """Schedules whose status is not yet written."""
        return len(self._waiting)

    @property
    def failing(self) -> int:
        """Schedules whose last write failed."""
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
            "statuses that wait": len(self._waiting),
            "first statuses that wait": len(self._awaited),
            "times of writes": len(self._written_at),
            "failed writes": len(self._failures),
            "versions": len(self._versions),
            "stored revisions": len(self._stored),
        }

    def dirty(self, uid: str, *, awaited: bool = False) -> None:
        """The status of this schedule has changed. `awaited`: what is stored speaks of no spec or
        of an older one."""
        if awaited:
            self._awaited.add(uid)
        if uid in self._waiting:
            if awaited and uid not in self._writing:
                self._queue(uid)
            return
        self._wait(uid, since=self._clock.monotonic())
        if self._spawn is not None and len(self._waiting) <= FEW:
            # At once, and not when `run` wakes up: a status that tells why a Job is deleted is sent
            # before the deletion that the scheduler asks for after it.
            self._begin(self._spawn)

    async def write_now(self, uid: str, revision: int) -> bool:
        """Have this revision stored before going on; False when it could not be done.

        Called by a create whose Job may vanish: a stored status must announce it. A revision that
        is stored counts, however long ago it was written, unless the watch shows a version that
        the operator did not write. Then somebody else, another process perhaps, may have taken the
        announcement back, and it is written again. What the watch has not shown yet is not known.

        It waits for no place and for no other schedule. One write serves all creates of a schedule
        that wait for it, and so does its failure."""
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

        Nobody reads `StatusWritten` any more, from the call on and not only from the first
        `await`: a change that the scheduler tells only after it would be lost in between."""
        self._stopping = True
        for uid in [uid for uid in self._waiting if uid not in self._writing]:
            self._queue(uid)
        self._arrived.set()
        return self._flush(within_s)

    async def _flush(self, within_s: float) -> int:
        until = self._clock.monotonic() + within_s
        writes: list[asyncio.Task[None]] = []

        def begin(work: Write) -> None:
            writes.append(asyncio.create_task(work))

        while (self._waiting or self._writing) and (left_s := until - self._clock.monotonic()) > 0:
            pause_s = self._begin(begin)
            self._arrived.clear()
            await clock.wait_for(self._arrived, min(pause_s, left_s))
        unwritten = len(self._waiting.keys() | self._writing.keys() | self._failures.keys())
        for write in writes:
            if write.done():
                write.result()
            write.cancel()
        return unwritten

    # --- whose turn it is -------------------------------------------------------------------------

    def _wait(self, uid: str, *, since: float) -> None:
        self._waiting[uid] = since
        self._unstored.setdefault(uid, _Unstored(self._namespace(uid), since))
        if uid not in self._writing:  # else it is queued when that write has ended
            self._queue(uid)

    def _queue(self, uid: str) -> None:
        """Put a schedule into its lane, now or as soon as another patch of it may be sent."""
        may_at = self._written_at.get(uid, float("-inf")) + EVERY_S
        if self._stopping or may_at <= self._clock.monotonic():
            ns = self._unstored[uid].ns
            self._lanes.setdefault(ns, {})[uid] = None
            if uid in self._awaited:
                self._awaited_lanes.setdefault(ns, {})[uid] = None
            self._arrived.set()
        elif uid not in self._is_paced:
            self._is_paced.add(uid)
            heapq.heappush(self._paced, (may_at, uid))
            self._arrived.set()

    def _take(self, uid: str) -> None:
        """A schedule waits no longer."""
        self._awaited.discard(uid)
        if self._waiting.pop(uid, None) is None:
            return
        ns = self._unstored[uid].ns
        for lanes in (self._lanes, self._awaited_lanes):
            lane = lanes.get(ns, {})
            lane.pop(uid, None)
            if not lane:
                lanes.pop(ns, None)

    def _begin(self, spawn: Callable[[Write], object]) -> float:
        """Begin the writes that may begin; how long to rest then."""
        while True:
            uid, pause_s = self._next()
            if uid is None:
                return pause_s
            ns = self._unstored[uid].ns
            self._take(uid)
            for lanes in (self._lanes, self._awaited_lanes):
                if ns in lanes:
                    lanes[ns] = lanes.pop(ns)  # to the end: others come first next time
            # From here on, not from when its task begins: it must not be begun twice.
            self._writing[uid] = asyncio.get_running_loop().create_future()
            spawn(self._write_in(self._places.take(ns), uid))

    def _next(self) -> tuple[str | None, float]:
        """The next to be written, or how long to rest."""
        now = self._clock.monotonic()
        pause_s = self._end_paces(now)
        if not self._stopping and self._closed_until > now:
            return None, self._closed_until - now
        busy = not self._stopping and self._busy()
        if self._awaited_lanes and self._awaited_until <= now:
            for ns, lane in self._awaited_lanes.items():
                if self._places.free_for(ns) and not self._gate.closed_s(WHAT, ns):
                    used = max(self._awaited_until, now - 1.0)
                    self._awaited_until = used + 1.0 / AWAITED_A_SECOND
                    return next(iter(lane)), 0.0
        if busy and now - next(iter(self._waiting.values()), now) < LAG_LIMIT_S:
            return None, BUSY_PAUSE_S  # not even the one that has waited longest
        for ns, lane in self._lanes.items():
            uid = next(iter(lane))
            if not self._places.free_for(ns):
                continue
            if not self._stopping and (closed_s := self._gate.closed_s(WHAT, ns)):
                pause_s = min(pause_s, closed_s)
            elif busy and now - self._waiting[uid] < LAG_LIMIT_S:
                pause_s = min(pause_s, BUSY_PAUSE_S)
            else:
                return uid, 0.0
        return None, pause_s

    def _end_paces(self, now: float) -> float:
        """Put schedules whose pause has ended into their lanes; how long until the next one's."""
        while self._paced and self._paced[0][0] <= now:
            _, uid = heapq.heappop(self._paced)
            self._is_paced.discard(uid)
            if uid in self._waiting and uid not in self._writing:
                self._queue(uid)
        return self._paced[0][0] - now if self._paced else 3600.0

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
        self._take(uid)
        self._writing[uid] = asyncio.get_running_loop().create_future()
        try:
            return await self._send(uid) is True
        finally:
            self._end_write(uid)

    def _end_write(self, uid: str) -> None:
        self._writing.pop(uid).set_result(None)
        if uid in self._waiting:
            self._queue(uid)
        self._arrived.set()

    async def _send(self, uid: str) -> bool | None:
        """Whether it is stored; None: no answer."""
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
                path = schedules_path(ns, name)
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
            if uid not in self._written_at:  # forgotten while it was on its way: nobody would again
                return False
            self._failures.pop(uid, None)
            self._versions[uid] = _version(reply)
            self._stored[uid] = revision
            self._unstored.pop(uid, None)
            if uid in self._waiting:
                self._unstored[uid] = _Unstored(ns, self._waiting[uid])
            self._inbox.hint(("written", uid), StatusWritten(uid, revision))
            if self._stopping and (newest := self._documents(uid)) and newest[3] > revision:
                self.dirty(uid)  # nobody reads the inbox any more to find that out
            return True
        if reply.absent or another or "UID in precondition" in reply.message:
            self.forget(uid)
            self._inbox.hint(("gone", uid), ScheduleGone(uid))
            return False
        self._gate.heed(WHAT, ns, reply)
        self._complain("statuses cannot be written", f"{ns}/{name}: {reply.message}")
        self._later(uid)
        return False

    async def _send_again(self, uid: str, path: str, sent: int) -> tuple[Reply, bool, int]:
        """Somebody else has written since, mostly the user the spec: from which version on? True
        when it is another schedule of the same name. The document is taken afresh: the first write
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

    def _open(self) -> None:
        if self._closings:
            self._closings, self._closed_until = 0, 0.0
            self._arrived.set()

    def forget(self, uid: str) -> None:
        """The schedule is gone."""
        self._take(uid)
        self._unstored.pop(uid, None)
        self._written_at.pop(uid, None)
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
