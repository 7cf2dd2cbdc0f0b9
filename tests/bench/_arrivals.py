"""The measuring process: when does a watch report each new Job?

`python -m tests.bench._arrivals KUBECONFIG` writes a line `seconds count` for every chunk of the
stream that holds ADDED events, and parses nothing: it must cost the machine next to nothing, and
the same whoever created the Job. `Arrivals` is its other end, in the benchmark.
"""

import asyncio
import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

import aiohttp
import uvloop

from evenkeel.kube import credentials

ADDED = b'{"type":"ADDED"'
VERSION = b'"resourceVersion":"'
JOBS = "/apis/batch/v1/jobs"


async def watch(kubeconfig: Path) -> None:
    known = credentials.load(kubeconfig)
    connector = aiohttp.TCPConnector(ssl=known.context or True)
    async with aiohttp.ClientSession(
        known.server, connector=connector, timeout=aiohttp.ClientTimeout(total=None)
    ) as session:
        async with session.get(JOBS, params={"limit": "1"}) as listed:
            version = (await listed.json())["metadata"]["resourceVersion"]
        print("ready", flush=True)
        while True:  # the server ends a watch that a busy machine has made too slow
            version = await follow(session, version)


async def follow(session: aiohttp.ClientSession, version: str) -> str:
    """One watch, to its end; the version to go on from."""
    query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "36000"}
    tail = b""
    async with session.get(JOBS, params=query) as stream:
        assert stream.status == 200, stream.status
        async for chunk in stream.content.iter_any():
            now = time.time()
            # A marker cut in two by the chunks' border is counted with the later half.
            text = tail + chunk
            found = text.count(ADDED)
            tail = text[-len(ADDED) + 1 :]
            if found:
                print(f"{now:.6f} {found}", flush=True)
            if (at := chunk.rfind(VERSION)) >= 0:
                digits = chunk[at + len(VERSION) :].partition(b'"')
                version = digits[0].decode() if digits[1] else version
    return version


class Arrivals:
    """The process, started and read. Instants are those at which it had the event."""

    def __init__(self, kubeconfig: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench._arrivals", str(kubeconfig)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the measuring watch did not begin"
        self._seen: list[float] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(timeout=10)
        self._reader.join(timeout=10)
        with contextlib.suppress(OSError):
            assert self._process.stdout is not None
            self._process.stdout.close()

    @property
    def count(self) -> int:
        """How many Jobs it has seen come so far."""
        return len(self._seen)

    def since(self, before: int, *, count: int, within_s: float) -> list[float]:
        """The instants of the next `count` arrivals after the first `before`; fewer: time is up."""
        deadline = time.monotonic() + within_s
        while self.count < before + count and time.monotonic() < deadline:
            assert self._process.poll() is None, "the measuring process ended"
            time.sleep(0.02)
        return self._seen[before : before + count]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            moment, number = line.split()
            self._seen.extend([float(moment)] * int(number))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(watch(Path(sys.argv[1])))
