"""At the end of a process every status is written, those that a worker is writing included."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def working(
    api: Any, clock_: Any, *, revision: Callable[[str], int] = lambda uid: 1, in_flight: int = 2
) -> AsyncIterator[StatusSync]:
    """A status sync with its workers, which end as the operator ends them."""
    it = StatusSync(
        api,
        Desk().inbox,
        clock_,
        lambda uid: ("shop", uid, {}, revision(uid)),
        in_flight=in_flight,
        busy=lambda: False,
        namespace=lambda uid: "shop",
    )
    workers = asyncio.create_task(it.run())
    yield it
    workers.cancel()
    await asyncio.gather(workers, return_exceptions=True)


def test_a_write_on_its_way_is_waited_for():
    api = ASlowServer()

    async def whole(clock_):
        async with working(api, clock_) as it:
            for uid in ("one", "two"):
                it.dirty(uid)
            await clock.sleep(1)  # both are on their way

            assert await it.flush(within_s=10) == 0

    virtually(whole)
    assert sorted(api.written) == ["one", "two"]


def test_what_changed_while_it_was_written_is_written_again():
    """The scheduler is silent about a change while an older document is on its way: it waits for
    the word that that one is stored, which nobody hears during a shutdown."""
    api, revisions = ASlowServer(), {"one": 1}

    async def whole(clock_):
        async with working(api, clock_, revision=revisions.__getitem__) as it:
            it.dirty("one")
            await clock.sleep(1)
            revisions["one"] = 2

            assert await it.flush(within_s=10) == 0

    virtually(whole)
    assert api.written == ["one", "one"]


def test_from_the_call_on_no_change_is_lost():
    """The write of an older document ends after the call and before anything of it has run."""
    api, revisions = ASlowServer(), {"one": 1}

    async def whole(clock_):
        async with working(api, clock_, revision=revisions.__getitem__) as it:
            it.dirty("one")
            await clock.sleep(1)
            revisions["one"] = 2

            flushing = it.flush(within_s=10)
            await clock.sleep(1.5)
            assert await flushing == 0

    virtually(whole)
    assert api.written == ["one", "one"]


def test_what_could_not_be_written_is_counted_and_the_time_kept():
    """Two are on their way when the time begins, and four wait."""

    async def whole(clock_):
        async with working(ASlowServer(), clock_) as it:
            for number in range(6):
                it.dirty(str(number))
            await clock.sleep(0.5)
            began = clock_.monotonic()

            assert await it.flush(within_s=1) == 6
            assert clock_.monotonic() - began <= 1.01

    virtually(whole)


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever():
    async def whole(clock_):
        async with working(ASlowServer(), clock_, in_flight=1) as it:
            it.dirty("one")
            await clock.sleep(0.5)
            began = clock_.monotonic()

            assert await it.flush(within_s=1) == 1
            assert clock_.monotonic() - began <= 1.01

    virtually(whole)


def test_a_write_that_fails_at_the_end_is_counted():
    api = ScriptedApi([status(500, "InternalError")])

    async def whole(clock_):
        async with working(api, clock_, in_flight=1) as it:
            it.dirty("one")
            assert await it.flush(within_s=1) == 1

    virtually(whole)
    assert len(api.calls) == 1


def test_a_status_that_is_being_written_is_not_begun_a_second_time():
    """The newer document would arrive before the older one."""
    writing, most = 0, []

    class Counting(ASlowServer):
        async def call(self, verb: str, path: str, **more: Any) -> Reply:
            nonlocal writing
            writing += 1
            most.append(writing)
            reply = await super().call(verb, path, **more)
            writing -= 1
            return reply

    async def whole(clock_):
        async with working(Counting(), clock_) as it:
            it.dirty("one")
            await clock.sleep(1)
            it.dirty("one")
            assert await it.flush(within_s=10) == 0

    virtually(whole)
    assert most == [1, 1]
