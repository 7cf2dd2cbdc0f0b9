"""A bare client that creates one Job at each full second, and does nothing else.

`python -m tests.bench._each_second KUBECONFIG NS`, until its standard input ends. What its creates
are late by is what the machine and the API server do to anybody.
"""

import asyncio
import sys
import time
from pathlib import Path

import orjson
import uvloop
from tests.bench._cluster import BATCH, TEMPLATE

from evenkeel.kube import credentials
from evenkeel.kube.client import KubeClient


async def create(kubeconfig: Path, ns: str) -> None:
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with KubeClient(
        lambda: credentials.load(kubeconfig), timeout_s=60, connections=8
    ) as client:
        while not over.done():
            due = int(time.time()) + 1
            body = {"metadata": {"name": f"bare-{due}"}, **TEMPLATE}
            await asyncio.sleep(due - time.time())
            await client.call("POST", f"{BATCH}/namespaces/{ns}/jobs", body=orjson.dumps(body))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(create(Path(sys.argv[1]), sys.argv[2]))
