"""The loop between the scheduler and what carries its wishes out: threads, failures, the stop."""

import asyncio

import pytest
from tests.builders import cron, instant
from tests.sim.virtual import SimulatedClock, VirtualLoop

import evenkeel.loop
from evenkeel.core import effects, messages
from evenkeel.core.scheduler import Scheduler
from evenkeel.loop import Loop
from evenkeel.resource.record import EMPTY
from evenkeel.settings import Settings


class NoRoomForThis(Exception):
    """What a build says that cannot be done."""


def looping(scenario, *, settings=None):
    """Run `scenario(loop, scheduler, done)` beside the loop, on virtual time; all it did."""
    done: list[effects.Effect] = []

    async def whole(clock):
        scheduler = Scheduler(settings or Settings())
        scheduler.inbox.hint("list", messages.SchedulesListed(frozenset({"uid-report"}), 0.0))
        scheduler.inbox.hint("jobs", messages.JobsListed((), int(clock.now())))
        scheduler.inbox.hint("seen", messages.ScheduleSeen(cron("* * * * *"), EMPTY))
        loop = Loop(scheduler, clock, done.append)
        running = asyncio.create_task(loop.run())
        playing = asyncio.create_task(scenario(loop, scheduler))
        await asyncio.wait([running, playing], timeout=300, return_when=asyncio.FIRST_EXCEPTION)
        playing.cancel()
        async with asyncio.timeout(60):
            await running

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        virtual = runner.get_loop()
        runner.run(whole(SimulatedClock(virtual, base=instant("10:00"))))
    return done


def launched(done):
    return [effect.run.due for effect in done if isinstance(effect, effects.Launch)]


def test_an_index_that_was_built_aside_comes_back_to_the_scheduler(monkeypatch):
    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)
    found = []

    async def scenario(loop, scheduler):
        await asyncio.sleep(130)
        found.append(scheduler.state.index.current.generation)
        loop.stop()

    done = looping(scenario, settings=Settings(index_rebuild_s=60))
    assert launched(done) == [instant("10:01"), instant("10:02")]
    assert found[0] >= 3
    assert not [effect for effect in done if isinstance(effect, effects.BuildIndex)]


def test_an_index_that_cannot_be_built_ends_the_loop(monkeypatch):
    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)

    def fails(_):
        raise NoRoomForThis

    monkeypatch.setitem(evenkeel.loop.OFFLOADED, effects.BuildIndex, fails)
    with pytest.raises(NoRoomForThis):
        looping(lambda loop, _: asyncio.sleep(10))


def test_a_stop_gets_through_a_full_inbox_in_the_end():
    async def scenario(loop, scheduler):
        await asyncio.sleep(5)
        while scheduler.inbox.offer(messages.SchedulesChanged()):
            pass
        loop.stop()

    done = looping(scenario, settings=Settings(inbox_size=300))
    assert [effect for effect in done if isinstance(effect, effects.Stopped)]
