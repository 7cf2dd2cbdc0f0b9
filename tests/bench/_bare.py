"""The bare client: creates Jobs at an instant, and does nothing else.

`python -m tests.bench._bare KUBECONFIG NS COUNT IN_FLIGHT BODY`: the least that a client of aiohttp
can do. BODY is a file with the body of one of our own Jobs, the word NAME for its name. When all is
rendered and every connection open it prints `ready` and reads the due instant; at the end it prints
how much processor it used from then on, and how many creates succeeded.
"""

import asyncio
import json
import resource
import sys
import time
from pathlib import Path

import aiohttp
import uvloop

from evenkeel.kube import credentials


async def herd(kubeconfig: Path, ns: str, count: int, in_flight: int, body: bytes) -> None:
    known = credentials.load(kubeconfig)
    headers = {**known.headers(), "Content-Type": "application/json", "Accept": "application/json"}
    path = f"/apis/batch/v1/namespaces/{ns}/jobs"
    stem = f"b{time.time_ns() // 1_000_000:013}"  # with a number behind it as long as our names
    names = [f"{stem}-{number:05}".encode() for number in range(count)]
    waiting = iter([body.replace(b"NAME", name) for name in names])
    connector = aiohttp.TCPConnector(
        ssl=known.context or True, limit=in_flight, keepalive_timeout=60
    )
    created = 0
    async with aiohttp.ClientSession(known.server, connector=connector, headers=headers) as session:

        async def warm() -> None:
            async with session.get("/version") as answer:
                await answer.read()

        async def work() -> None:
            nonlocal created
            for text in waiting:
                async with session.post(path, data=text) as answer:
                    await answer.read()
                    created += answer.status == 201

        await asyncio.gather(*(warm() for _ in range(in_flight)))
        print("ready", flush=True)
        due = float(await asyncio.to_thread(sys.stdin.readline))
        while (left_s := due - time.time()) > 0:
            await asyncio.sleep(left_s)
        used_s = _used_s()
        await asyncio.gather(*(work() for _ in range(in_flight)))
    print(json.dumps({"created": created, "processor_s": _used_s() - used_s}))


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _, kubeconfig, ns, count, in_flight, body = sys.argv
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        work = herd(Path(kubeconfig), ns, int(count), int(in_flight), Path(body).read_bytes())
        runner.run(work)
