"""The parts joined: a question to a scheduler that is busy, and what /livez says of a loop."""

import asyncio
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.sim.virtual import SimulatedClock, VirtualLoop

import evenkeel.process
from evenkeel.app import Operator
from evenkeel.clock import SystemClock
from evenkeel.core import messages
from evenkeel.errors import Busy
from evenkeel.process import operating
from evenkeel.settings import Settings
from evenkeel.web.health import ALIVE_WITHIN_S, HealthServer


class Silent:
    """An API server of which nothing is ever heard."""

    answering_s = 0.0

    async def call(self, verb, path, **_):
        await asyncio.get_running_loop().create_future()

    @asynccontextmanager
    async def watch(self, path, params):
        await asyncio.get_running_loop().create_future()
        yield


# --- questions ------------------------------------------------------------------------------------


def test_a_question_to_a_full_inbox_is_answered_busy_at_once_and_later_answered():
    async def asking(loop):
        operator = Operator(Silent(), SimulatedClock(loop, base=0), Settings(inbox_size=10))
        inbox = operator.scheduler.inbox
        while inbox.offer(messages.SchedulesChanged()):
            pass
        with pytest.raises(Busy, match="ask again"):
            async with asyncio.timeout(60):
                await operator.ask(messages.GetActiveRuns)
        assert len(inbox) == 10  # and the question does not wait there for nobody
        running = asyncio.create_task(operator.run())
        await asyncio.sleep(1)
        assert await operator.ask(messages.GetActiveRuns) == []
        operator.stop()
        await running

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asking(runner.get_loop()))


# --- /livez ---------------------------------------------------------------------------------------


class ClockAhead(SystemClock):
    """The machine's, and some seconds that nobody has waited for."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + ClockAhead.ahead_s


class NoWatch:
    """It sees nothing."""

    installed = True
    unanswered_s = silence_s = 0.0

    def __init__(self, *_):
        pass

    async def wait_until_installed(self, namespaces):
        pass

    async def run(self, *_, **__):
        await asyncio.get_running_loop().create_future()


class KnownServer(HealthServer):
    """Tells where it listens."""

    async def __aenter__(self):
        KnownServer.at = f"http://{(await super().__aenter__()).address}"
        return self


@pytest.fixture
def no_cluster(monkeypatch):
    @asynccontextmanager
    async def client(load, **_):
        yield Silent()

    async def fine(api, namespaces):
        return

    monkeypatch.setattr(evenkeel.process, "KubeClient", client)
    monkeypatch.setattr(evenkeel.process, "check_surroundings", fine)
    monkeypatch.setattr(evenkeel.process, "ScheduleWatch", NoWatch)
    monkeypatch.setattr(evenkeel.process, "HealthServer", KnownServer)
    monkeypatch.setattr(evenkeel.process, "SystemClock", ClockAhead)
    monkeypatch.setattr(ClockAhead, "ahead_s", 0.0)


async def test_livez_tells_of_a_loop_that_does_not_step(no_cluster, monkeypatch):
    """The process is well otherwise: it answers, and only its scheduler stands still."""
    settings = Settings(health_listen="127.0.0.1:0", loop_interval_s=60)
    async with operating(None, settings) as operator, aiohttp.ClientSession() as session:

        async def livez() -> int:
            return (await session.get(f"{KnownServer.at}/livez")).status

        while not operator.scheduler.state.now:
            await asyncio.sleep(0)
        assert await livez() == 200
        ClockAhead.ahead_s = 60 + ALIVE_WITHIN_S - 5
        assert await livez() == 200  # it may rest for so long
        ClockAhead.ahead_s = 60 + ALIVE_WITHIN_S + 1
        assert await livez() == 503
        operator.scheduler.inbox.hint("wake up", messages.SchedulesChanged())
        stood_still_at = operator.loop.stepped_at
        async with asyncio.timeout(20):
            while operator.loop.stepped_at == stood_still_at:
                await asyncio.sleep(0.001)
        assert await livez() == 200
