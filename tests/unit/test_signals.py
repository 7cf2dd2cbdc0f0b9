"""SIGTERM and SIGINT end `evenkeel run` well at any time."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from evenkeel import process
from evenkeel.errors import CannotStart
from evenkeel.settings import Settings

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@pytest.fixture
async def ours() -> AsyncIterator[None]:
    """Signals are the test's again when it ends."""
    yield
    for number in SIGNALS:
        asyncio.get_running_loop().remove_signal_handler(number)


IMPORTS_UNTIL_IT_IS_ENDED = """
import importlib, os, signal, sys, time
from evenkeel import cli

def import_module(name):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

importlib.import_module = import_module
sys.argv[1:] = ["run"]
cli.main()
"""


def test_one_that_comes_while_it_is_imported_ends_it() -> None:
    """Unhandled, it would end this process too, but not the first one of a container."""
    done = subprocess.run([sys.executable, "-c", IMPORTS_UNTIL_IT_IS_ENDED], timeout=50)
    assert done.returncode == 0


@pytest.mark.usefixtures("ours")
@pytest.mark.parametrize("number", SIGNALS)
async def test_one_that_comes_while_it_starts_ends_it(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A Pod's first process has no other chance: it is deaf to what it does not handle."""
    said: list[str] = []

    @asynccontextmanager
    async def operating(*_: object) -> AsyncIterator[None]:
        said.append("starts")
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(3600)
            yield
        finally:
            said.append("is cleaned up")

    monkeypatch.setattr(process, "operating", operating)
    await asyncio.wait_for(process.main(None, Settings()), 30)
    assert said == ["starts", "is cleaned up"]


class Running:
    """As much of an operator as a signal meets."""

    def __init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1
        asyncio.get_running_loop().call_later(0.05, self.ended.set_result, None)


@pytest.mark.usefixtures("ours")
async def test_one_that_comes_while_it_runs_stops_it_and_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = Running()

    @asynccontextmanager
    async def operating(*_: object) -> AsyncIterator[Running]:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        yield running
        assert running.ended.done()

    monkeypatch.setattr(process, "operating", operating)
    await asyncio.wait_for(process.main(None, Settings()), 30)
    assert running.stops == 1


@pytest.mark.usefixtures("ours")
async def test_a_failure_of_the_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def operating(*_: object) -> AsyncIterator[None]:
        raise CannotStart("no API server")
        yield

    monkeypatch.setattr(process, "operating", operating)
    with pytest.raises(CannotStart):
        await process.main(None, Settings())
