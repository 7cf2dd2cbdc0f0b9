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
from evenkeel.core.effects import AskLedger
from evenkeel.errors import Busy
from evenkeel.ledger import open_store
from evenkeel.ledger.store import BadStore
from evenkeel.ledger.sync import LedgerState
from evenkeel.model import RunId
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
        return namespaces

    monkeypatch.setattr(evenkeel.process, "KubeClient", client)
    monkeypatch.setattr(evenkeel.process, "check_surroundings", fine)
    monkeypatch.setattr(evenkeel.process, "ResourceWatch", NoWatch)
    monkeypatch.setattr(evenkeel.process, "HealthServer", KnownServer)
    monkeypatch.setattr(evenkeel.process, "SystemClock", ClockAhead)
    monkeypatch.setattr(ClockAhead, "ahead_s", 0.0)


async def test_livez_tells_of_a_loop_that_does_not_step(no_cluster, monkeypatch):
    """The process is well otherwise: it answers, and only its scheduler stands still."""
    settings = Settings(health_listen="127.0.0.1:0", loop_interval_s=60, store_url="none")
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


# --- the ledger -----------------------------------------------------------------------------------


async def test_an_operator_keeps_its_ledger_in_the_data_directory_and_says_so(
    no_cluster, tmp_path, caplog
):
    caplog.set_level("INFO", logger="evenkeel")
    settings = Settings(health_listen="127.0.0.1:0", data=str(tmp_path / "data"))
    async with operating(None, settings) as operator:
        async with asyncio.timeout(60):
            while operator.ledger.state is not LedgerState.WRITING:
                await asyncio.sleep(0.01)
        operator.stop()
        await operator.ended
    (line,) = [record for record in caplog.records if record.getMessage() == "ledger"]
    assert line.fields["store"] == f"sqlite://{tmp_path}/data/evenkeel.db"
    store = await open_store(line.fields["store"], readonly=True)
    facts = await store.facts()
    await store.close()
    assert (facts.kind, facts.term) == ("sqlite", 1)


async def test_where_no_ledger_can_be_kept_runs_go_on_and_the_log_says_so(
    no_cluster, tmp_path, caplog
):
    (tmp_path / "file").touch()
    settings = Settings(health_listen="127.0.0.1:0", data=str(tmp_path / "file"))
    async with operating(None, settings) as operator:
        assert operator.ledger.state is LedgerState.NONE
    (line,) = [record for record in caplog.records if record.getMessage() == "ledger"]
    assert (line.levelname, line.fields["store"]) == ("WARNING", "none")
    assert f"{tmp_path}/file cannot be written" in line.fields["why"]


async def test_a_wrong_store_ends_the_process_before_anything_runs(no_cluster):
    settings = Settings(health_listen="127.0.0.1:0", store_url="mysql://me:secret@db/runs")
    with pytest.raises(BadStore, match=r"^store\.url: write sqlite:///") as refusal:
        async with operating(None, settings):
            pytest.fail("it runs")
    assert "secret" not in str(refusal.value)


def test_without_a_ledger_the_scheduler_is_told_so_at_once():
    async def asking(loop):
        operator = Operator(Silent(), SimulatedClock(loop, base=0), Settings())
        operator.ledger.take(AskLedger("a", (RunId("a", 0),)))
        assert operator.scheduler.inbox.drain(1) == [messages.LedgerTold("a", {}, known=False)]
        assert operator.ledger.waiting == 0

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(asking(runner.get_loop()))
