"""Work that hangs: it is left behind, one at a time, and nobody waits for it for ever."""

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import pytest

from evenkeel.kube import daemon_worker
from evenkeel.kube.daemon_worker import DaemonWorker


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hangs goes on when this is set."""
    found = threading.Event()
    yield found
    found.set()


async def test_its_result_and_its_error_are_the_waiters() -> None:
    it = DaemonWorker()
    assert await it.do(lambda: 5, within_s=5) == 5
    with pytest.raises(ZeroDivisionError):
        await it.do(lambda: 1 // 0, within_s=5)


async def test_what_hangs_is_not_waited_for(gate: threading.Event) -> None:
    with pytest.raises(TimeoutError):
        await DaemonWorker().do(gate.wait, within_s=0.05)


async def test_while_one_hangs_no_other_is_begun(gate: threading.Event) -> None:
    it, begun, before = DaemonWorker(), [], set(threading.enumerate())
    for _ in range(5):
        with pytest.raises(TimeoutError):
            await it.do(lambda: begun.append(gate.wait()), within_s=0.05)
    new = set(threading.enumerate()) - before  # another test's may still be ending
    assert [each.name for each in new].count("credentials") == 1
    gate.set()
    assert await it.do(lambda: "good", within_s=5) == "good"


async def test_one_that_hangs_for_ever_is_given_up(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_worker, "GIVE_UP_S", 0.1)
    it = DaemonWorker()
    with pytest.raises(TimeoutError):
        await it.do(gate.wait, within_s=0.05)
    assert await it.do(lambda: "good", within_s=5) == "good"


async def test_who_stops_waiting_leaves_the_turn_to_others(gate: threading.Event) -> None:
    it = DaemonWorker()
    waiting = asyncio.create_task(it.do(gate.wait, within_s=60))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()
    assert await it.do(lambda: "good", within_s=5) == "good"


def test_a_process_ends_though_one_hangs() -> None:
    program = """
        import asyncio, contextlib, threading
        from evenkeel.kube.daemon_worker import DaemonWorker

        async def main():
            with contextlib.suppress(TimeoutError):
                await DaemonWorker().do(threading.Event().wait, within_s=0.05)

        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
