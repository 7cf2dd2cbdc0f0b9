"""A tiny API server that answers as the test says, a launcher on it, and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from tests.builders import instant
from tests.sim.virtual import SimulatedClock, VirtualLoop

from evenkeel.core.effects import Launch
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Message
from evenkeel.kube.api import Api, NoAnswer, NotSent, Reply
from evenkeel.kube.launcher import Launcher
from evenkeel.model import Verdict

Answer = Reply | Exception | float
"""A number is a pause before the next answer."""

OK = Reply(200, b'{"kind": "Status", "status": "Success"}')
CREATED = Reply(201, b'{"kind": "Job", "metadata": {"uid": "uid-created"}}')
NOBODY_THERE = NotSent("connection refused")
NO_ANSWER = NoAnswer("TimeoutError")


def status(code: int, reason: str = "", message: str = "", **headers: str) -> Reply:
    """A Status, as the API server sends one."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Reply(code, orjson.dumps(body), headers)


def listing(*items: dict[str, Any], version: str = "7", more: str = "") -> Reply:
    """A page of a list."""
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    body = {"kind": "List", "metadata": metadata, "items": list(items)}
    return Reply(200, orjson.dumps(body))


PAGES = {
    "sign in": Reply(200, b"<html>sign in</html>"),
    "bad request": Reply(400, b"<html><h1>400 Bad request</h1></html>"),
    "forbidden": Reply(403, b"<html>blocked</html>"),
    "nothing here": Reply(404, b"<html>nothing here</html>"),
    "conflict": Reply(409, b"<html>conflict</html>"),
    "too large": Reply(413, b"<html>too large</html>"),
    "no such type": Reply(415, b'{"error": "unsupported"}'),
    "not processed": Reply(422, b"{}"),
}
"""A proxy's, by what they say; none of them is the API server's word."""


@dataclass
class Call:
    """One request."""

    at: float
    verb: str
    path: str
    params: Mapping[str, str]
    body: Any


@dataclass
class ScriptedApi:
    """Answers by a function of the call, or from a list, the last of which repeats."""

    answers: list[Answer] | Callable[[Call], Answer]
    watches: list[list[Any] | Exception] = field(default_factory=list)
    """Each is the lines of one watch: bytes, a dict, a pause, or an exception to end it."""
    calls: list[Call] = field(default_factory=list)
    opened: list[Call] = field(default_factory=list)

    async def call(self, verb: str, path: str, *, body: bytes | None = None, **more: Any) -> Reply:
        call = Call(
            asyncio.get_running_loop().time(),
            verb,
            path,
            dict(more.get("params") or {}),
            orjson.loads(body) if body else None,
        )
        self.calls.append(call)
        while True:
            answer = self._next(call)
            if not isinstance(answer, float):
                break
            await asyncio.sleep(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _next(self, call: Call) -> Answer:
        if callable(self.answers):
            return self.answers(call)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    @asynccontextmanager
    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[_Stream]:
        call = Call(asyncio.get_running_loop().time(), "WATCH", path, dict(params), None)
        self.opened.append(call)
        script = self.watches.pop(0) if self.watches else [3600.0]
        if isinstance(script, Exception):
            raise script
        yield _Stream(script)


class _Stream:
    def __init__(self, script: list[Any]) -> None:
        self._script = script
        refusal = next((each for each in script if isinstance(each, Reply)), None)
        self.status = refusal.status if refusal else 200
        self._refusal = refusal

    async def lines(self) -> AsyncIterator[bytes]:
        for each in self._script:
            if isinstance(each, float):
                await asyncio.sleep(each)
            elif isinstance(each, Exception):
                raise each
            else:
                yield each if isinstance(each, bytes) else orjson.dumps(each)

    async def reply(self) -> Reply:
        assert self._refusal is not None
        return self._refusal


class Desk:
    """Where what the shell reports arrives."""

    def __init__(self, *, size: int = 1000) -> None:
        self.inbox = Inbox(size=size)

    def reports(self) -> list[Message]:
        """Everything since the last time."""
        return self.inbox.drain(10_000)


def launcher(
    api: Api,
    clock: SimulatedClock,
    desk: Desk,
    *,
    in_flight: int = 48,
    mark: bool = True,
    mark_takes_s: float = 0.0,
    strict: bool = True,
    counted: list[Verdict] | None = None,
) -> Launcher:
    """A launcher that reports to the desk; `mark` says whether the mark can be written."""

    async def announce(_: Launch) -> bool:
        await asyncio.sleep(mark_takes_s)
        return mark

    def count(verdict: Verdict, _: float | None) -> None:
        if counted is not None:
            counted.append(verdict)

    return Launcher(
        api,
        desk.inbox,
        clock,
        in_flight=in_flight,
        announce=announce,
        strict=strict,
        count=count,
    )


def virtually(scenario: Callable[[SimulatedClock], Coroutine[Any, Any, None]]) -> None:
    """Run it to its end, with virtual time; an exception nobody awaited fails too."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        runner.run(scenario(SimulatedClock(loop, base=instant("10:00"))))
        assert loop.failures == []


async def for_a(seconds: float, *work: Coroutine[Any, Any, None]) -> None:
    """Let it run for so long, then cancel it; what it raises before is raised here."""
    tasks = [asyncio.create_task(each) for each in work]
    done, _ = await asyncio.wait(
        [*tasks, asyncio.create_task(asyncio.sleep(seconds))],
        return_when=asyncio.FIRST_COMPLETED,
    )
    for task in tasks:
        if task in done:
            task.result()
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
