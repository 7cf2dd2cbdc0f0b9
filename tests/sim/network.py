"""The way from one operator process to the API server, and all that can go wrong on it.

`Connection` is the `Api` port of `evenkeel.kube`. A `Weather` decides for each request and each
stream what happens to it; `Weather` itself lets all through. A request that may change something is
either done or not done before its outcome is told: that is what the operator cannot see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.sim.server import Server, error_line, gone_line, parse_watch, status_reply

from evenkeel.kube.api import JSON, NoAnswer, NotSent, Reply

TIMEOUT_S = 10.0
"""The client's time-out."""

SILENCE_S = 90.0
"""A watch that says nothing for this long is given up by the client."""

BOOKMARK_S = 60.0


class Weather:
    """What happens to each request and stream; here nothing goes wrong."""

    def latency_s(self) -> float:
        """How long a request takes to the server, and its answer back."""
        return 0.003

    def of_call(self, verb: str, path: str, now: float) -> str:
        """What happens to a request; empty: nothing."""
        return ""

    def of_watch(self, now: float, path: str = "") -> str:
        """What happens to a stream that is opened."""
        return ""

    def of_event(self, now: float, path: str = "") -> str:
        """What happens to an event on its way: late, twice, swap, cut, mute."""
        return ""

    def delay_s(self) -> float:
        """How late a late event is."""
        return 0.0

    def cut_off(self, now: float) -> bool:
        """Whether nothing gets through."""
        return False


CALL_FAULTS = (
    "refused",  # nobody took it
    "lost request",  # sent, not done, no answer
    "lost reply",  # done, no answer
    "late",  # no answer in time, and done some time after
    "429",
    "500",
    "500 done",
    "504 done",
    "slow",
)
WATCH_FAULTS = ("refused", "410", "410 in stream", "500", "500 in stream", "empty", "hang")
EVENT_FAULTS = ("late", "twice", "swap", "cut")


@dataclass(slots=True)
class Storm(Weather):
    """Faults by seed until `until_s`. Each seed has some faults often and others never: with
    all faults at a middling rate all runs would look alike."""

    rng: Random
    until_s: float
    calls: dict[str, float] = field(default_factory=dict)
    watches: dict[str, float] = field(default_factory=dict)
    events: dict[str, float] = field(default_factory=dict)
    partitions: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def from_seed(cls, rng: Random, *, until_s: float, mute: bool = False) -> Storm:
        """`mute`: the watch of Jobs may fall silent for ever."""
        storm = cls(rng, until_s)
        level = rng.choice((0.02, 0.08, 0.25))
        for faults, chosen in (
            (CALL_FAULTS, storm.calls),
            (WATCH_FAULTS, storm.watches),
            (EVENT_FAULTS, storm.events),
        ):
            for fault in faults:
                if rng.random() < 0.4:
                    chosen[fault] = level * rng.random()
        if rng.random() < 0.3:
            begin = rng.uniform(5, until_s)
            storm.partitions.append((begin, min(until_s, begin + rng.uniform(2, 60))))
        if mute and rng.random() < 0.5:
            storm.events["mute"] = rng.choice((0.002, 0.02))
        return storm

    def latency_s(self) -> float:
        return self.rng.uniform(0.001, 0.015)

    def of_call(self, verb: str, path: str, now: float) -> str:
        return self._pick(self.calls, now)

    def of_watch(self, now: float, path: str = "") -> str:
        return self._pick(self.watches, now)

    def of_event(self, now: float, path: str = "") -> str:
        fault = self._pick(self.events, now)
        # The other stream stands for kopf's, which has time-outs of its own.
        return "" if fault == "mute" and "/jobs" not in path else fault

    def delay_s(self) -> float:
        return self.rng.choice((0.05, 0.5, 3.0, 8.0))

    def cut_off(self, now: float) -> bool:
        return any(begin <= now < end for begin, end in self.partitions)

    def _pick(self, faults: Mapping[str, float], now: float) -> str:
        if now >= self.until_s:
            return ""
        dice = self.rng.random()
        for fault, rate in faults.items():
            dice -= rate
            if dice < 0:
                return fault
        return ""


@dataclass(slots=True)
class Rule:
    """A fault for chosen requests: `verb` may be WATCH, or EVENT for what a stream carries."""

    verb: str
    path: str
    """A part of it."""
    fault: str
    times: int = 1_000_000
    from_s: float = 0.0
    until_s: float = float("inf")

    def hits(self, verb: str, path: str, now: float) -> bool:
        wanted = self.verb == verb and self.path in path and self.from_s <= now < self.until_s
        if not wanted or not self.times:
            return False
        self.times -= 1
        return True


class Scripted(Weather):
    """The faults that its rules name, and no others."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = [replace(rule) for rule in rules]

    def of_call(self, verb: str, path: str, now: float) -> str:
        return next((rule.fault for rule in self.rules if rule.hits(verb, path, now)), "")

    def of_watch(self, now: float, path: str = "") -> str:
        return self.of_call("WATCH", path, now)

    def of_event(self, now: float, path: str = "") -> str:
        return self.of_call("EVENT", path, now)


@dataclass(slots=True)
class CrashPoint:
    """Crash at this call of this process, counted from 0, before or after its effect."""

    call: int
    after: bool


class Connection:
    """The `Api` of one process. Once it is `dead` no call returns: a killed process does
    nothing more."""

    def __init__(
        self,
        server: Server,
        weather: Weather,
        *,
        who: str,
        crash_point: CrashPoint | None = None,
        crash: Callable[[], None] = lambda: None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._server = server
        self._weather = weather
        self._who = who
        self._crash_point = crash_point
        self._crash = crash
        self._note = lambda text: note(f"{who}: {text}")
        self.calls = 0
        self.asked: list[tuple[float, str, str]] = []
        """Every request with its time, for the bound on how often one may be repeated."""
        self.dead = False

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def call(
        self,
        verb: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> Reply:
        """See `Api.call`."""
        number = self._arrive(verb, path)
        await self._survive(number, after=False)
        weather = self._weather
        fault, _, value = weather.of_call(verb, path, self._now).partition(":")
        await asyncio.sleep(weather.latency_s())
        if weather.cut_off(self._now) or fault == "refused":
            raise NotSent("connection refused")

        def do() -> Reply:
            if self.dead:
                return Reply(0)
            return self._server.handle(
                verb,
                path,
                body=body,
                content_type=content_type,
                params=params,
                accept=accept,
                who=self._who,
            )

        match fault:
            case "lost request":
                await asyncio.sleep(TIMEOUT_S)
                raise NoAnswer("time-out")
            case "lost reply":
                do()
                await self._survive(number, after=True)
                raise NoAnswer("connection reset")
            case "late":
                asyncio.get_running_loop().call_later(TIMEOUT_S + weather.delay_s() - 4, do)
                await asyncio.sleep(TIMEOUT_S)
                raise NoAnswer("time-out")
            case "429":
                return status_reply(
                    429, "TooManyRequests", "too many requests", Retry_After=value or "2"
                )
            case "500":
                return status_reply(500, "InternalError", "etcdserver: no leader")
            case "500 done" | "504 done":
                do()
                await self._survive(number, after=True)
                return status_reply(int(fault[:3]), "Timeout", "etcdserver: request timed out")
            case "slow":
                await asyncio.sleep(float(value) if value else weather.delay_s())
            case "refuse":
                code, reason, message = value.split("|")
                return status_reply(int(code), reason, message)
        reply = do()
        await self._survive(number, after=True)
        await asyncio.sleep(weather.latency_s())
        if weather.cut_off(self._now):
            raise NoAnswer("connection reset")
        return reply

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[_Stream]:
        """See `Api.watch`."""
        self._arrive("WATCH", path)
        weather, fault = self._weather, self._weather.of_watch(self._now, path)
        await asyncio.sleep(weather.latency_s())
        if self.dead or weather.cut_off(self._now) or fault == "refused":
            raise NotSent("connection refused")
        refusal = None
        if fault == "410":
            refusal = status_reply(410, "Expired", "too old resource version")
        elif fault == "500":
            refusal = status_reply(500, "InternalError", "etcdserver: no leader")
        stream = _Stream(self, self._server, weather, path, params, fault, refusal)
        self._note(f"watches {path} from {params['resourceVersion']} {fault}")
        try:
            yield stream
        finally:
            stream.close()
            self._note(f"no longer watches {path}")

    def _arrive(self, verb: str, path: str) -> int:
        self.asked.append((self._now, verb, path))
        self.calls += 1
        return self.calls - 1

    async def _survive(self, number: int, *, after: bool) -> None:
        """The crash point may be here. The call of a dead process never returns."""
        point = self._crash_point
        if not self.dead and point and point.call == number and point.after is after:
            self._crash()
        if self.dead:
            await asyncio.get_running_loop().create_future()


class _Stream:
    def __init__(
        self,
        connection: Connection,
        server: Server,
        weather: Weather,
        path: str,
        params: Mapping[str, str],
        fault: str,
        refusal: Reply | None,
    ) -> None:
        self._connection = connection
        self._server = server
        self._weather = weather
        self._params = params
        self._path = path
        self._fault = fault
        self._refusal = refusal
        self._kind, self._ns = parse_watch(path)
        self._version = int(params["resourceVersion"])
        self._changed = asyncio.Event()
        # Its own copy, as a watch cache keeps one for each watcher: a compaction later on takes
        # nothing from a stream that is open.
        self._pending = server.changes(self._kind, self._ns, params, self._version)
        self.status = refusal.status if refusal else 200
        server.listeners.append(self._notice)

    def _notice(self, change: Any) -> None:
        if self._server.concerns(change, self._kind, self._ns, self._params):
            self._pending.append(change)
            self._changed.set()

    def close(self) -> None:
        self._server.listeners.remove(self._notice)

    async def reply(self) -> Reply:
        """See `Stream.reply`."""
        assert self._refusal is not None
        return self._refusal

    async def lines(self) -> AsyncIterator[bytes]:
        """See `Stream.lines`."""
        loop = asyncio.get_running_loop()
        server, weather = self._server, self._weather
        until = loop.time() + float(self._params.get("timeoutSeconds", "300"))
        if self._fault == "410 in stream" or server.too_old(self._version):
            yield gone_line(self._version, server.compacted)
            return
        if self._fault == "500 in stream":
            yield error_line(500, "etcdserver: no leader")
            return
        if self._fault == "empty":
            return
        if self._fault == "mute":
            await _nothing_for_ever()
        if self._fault == "hang":
            # When the storm is over the broken connection is reset, if nobody gave it up before.
            heals_s = getattr(weather, "until_s", float("inf")) - loop.time() + 5
            await asyncio.sleep(min(SILENCE_S, max(heals_s, 0)))
            raise NoAnswer("the stream is silent")
        while loop.time() < until:
            self._changed.clear()
            pending = self._pending
            while pending:
                taken, lines, fault = (
                    1,
                    [pending[0].line],
                    weather.of_event(loop.time(), self._path),
                )
                if fault == "mute":
                    await _nothing_for_ever()
                elif fault == "late":
                    await asyncio.sleep(weather.delay_s())
                elif fault == "twice":
                    lines *= 2
                elif fault == "swap" and len(pending) > 1 and _apart(pending[0], pending[1]):
                    taken, lines = 2, [pending[1].line, pending[0].line, pending[1].line]
                elif fault == "cut":
                    raise NoAnswer("connection reset")
                if self._connection.dead or weather.cut_off(loop.time()):
                    raise NoAnswer("connection reset")
                del pending[:taken]
                for line in lines:
                    yield line
            if not self._changed.is_set():
                async for line in self._wait(until):
                    yield line

    async def _wait(self, until: float) -> AsyncIterator[bytes]:
        """Wait for the next change. Bookmarks come now and then; the connection may be cut."""
        loop = asyncio.get_running_loop()
        left_s = until - loop.time()
        # The server says how far it is a moment before it ends a watch, so that the next one does
        # not begin too far back.
        pause_s = min(BOOKMARK_S, left_s - 2 if left_s > 2 else left_s)
        nearest = [b for b, e in getattr(self._weather, "partitions", ()) if b > loop.time()]
        if nearest:
            pause_s = min(pause_s, min(nearest) - loop.time() + 0.001)
        try:
            async with asyncio.timeout(max(0.0, pause_s)):
                await self._changed.wait()
        except TimeoutError:
            if self._weather.cut_off(loop.time()):
                raise NoAnswer("connection reset") from None
            if loop.time() < until:
                yield self._server.bookmark(self._kind)


async def _nothing_for_ever() -> None:
    """No event, no bookmark, no error: a connection whose session was closed below it."""
    await asyncio.get_running_loop().create_future()


def _apart(one: Any, other: Any) -> bool:
    """Changes of one object never overtake one another."""
    return one.object["metadata"]["uid"] != other.object["metadata"]["uid"]
