"""At the end of a process every status is written, those that a worker is writing included."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.unit.kube.scripted import Desk, ScriptedApi, status, virtually

from evenkeel import clock
from evenkeel.kube.api import Reply
from evenkeel.kube.status_sync import StatusSync


class ASlowServer:
    def __init__(self) -> None:
        self.written: list[str] = []

    async def call(self, verb: str, path: str, **_: Any) -> Reply:
        await clock.sleep(2)
        self.written.append(path.split("/")[-2])
        return Reply(200, b'{"metadata":{"resourceVersion":"9"}}')

    def watch(self, path: str, params: Mapping[str, str]) -> Any:
        raise AssertionError


def test_a_write_on_its_way_is_waited_for():
    api = ASlowServer()

    async def whole(clock_):
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, 1),
            in_flight=2,
            busy=lambda: False,
        )
        workers = asyncio.create_task(it.run())
        for uid in ("one", "two"):
            it.dirty(uid)
        await clock.sleep(1)  # both are on their way

        await it.flush(within_s=10)

        workers.cancel()  # as the operator does
        await asyncio.gather(workers, return_exceptions=True)

    virtually(whole)
    assert sorted(api.written) == ["one", "two"]


def test_what_changed_while_it_was_written_is_written_again():
    """The scheduler is silent about a change while an older document is on its way: it waits for
    the word that that one is stored, which nobody hears during a shutdown."""
    api, revisions = ASlowServer(), {"one": 1}

    async def whole(clock_):
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, revisions[uid]),
            in_flight=2,
            busy=lambda: False,
        )
        workers = asyncio.create_task(it.run())
        it.dirty("one")
        await clock.sleep(1)
        revisions["one"] = 2

        await it.flush(within_s=10)

        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)

    virtually(whole)
    assert api.written == ["one", "one"]


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever():
    api = ASlowServer()
    ended_at = []

    async def whole(clock_):
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, 1),
            in_flight=1,
            busy=lambda: False,
        )
        workers = asyncio.create_task(it.run())
        it.dirty("one")
        await clock.sleep(0.5)
        began = clock_.monotonic()
        await it.flush(within_s=1)
        ended_at.append(clock_.monotonic() - began)
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)

    virtually(whole)
    assert ended_at[0] <= 1.01


def test_what_could_not_be_written_is_counted_and_the_time_kept():
    """Four are on their way when the time is over, the workers' one and its own, and two wait."""
    api = ASlowServer()
    ended = []

    async def whole(clock_):
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, 1),
            in_flight=2,
            busy=lambda: False,
        )
        workers = asyncio.create_task(it.run())
        for number in range(6):
            it.dirty(str(number))
        await clock.sleep(0.5)
        began = clock_.monotonic()
        unwritten = await it.flush(within_s=1)
        ended.append((unwritten, clock_.monotonic() - began))
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)

    virtually(whole)
    unwritten, took_s = ended[0]
    assert unwritten == 6
    assert took_s <= 1.01


def test_a_write_that_fails_at_the_end_is_counted():
    async def whole(clock_):
        api = ScriptedApi([status(500, "InternalError")])
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, 1),
            in_flight=2,
            busy=lambda: False,
        )
        it.dirty("one")
        assert await it.flush(within_s=1) == 1
        assert len(api.calls) == 1

    virtually(whole)


def test_from_the_call_on_no_change_is_lost():
    """The write of an older document ends after the call and before anything of it has run."""
    api, revisions = ASlowServer(), {"one": 1}

    async def whole(clock_):
        it = StatusSync(
            api,
            Desk().inbox,
            clock_,
            lambda uid: ("shop", uid, {}, revisions[uid]),
            in_flight=2,
            busy=lambda: False,
        )
        workers = asyncio.create_task(it.run())
        it.dirty("one")
        await clock.sleep(1)
        revisions["one"] = 2

        flushing = it.flush(within_s=10)
        await clock.sleep(1.5)
        assert await flushing == 0

        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)

    virtually(whole)
    assert api.written == ["one", "one"]
