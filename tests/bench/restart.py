"""Killed in a herd: how soon after its restart does every status tell the truth?

300 runs due at one second; the operator is killed (-9) when half of the Jobs are there, and begun
again at once. The time runs from that start until all 300 statuses say that their run succeeded,
asked for every half second; Pods succeed at once, on a fake node.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._cluster import place
from tests.bench._machine import Idle
from tests.bench._measure import say
from tests.cluster.herd import HERD, Herd, wait_for_jobs
from tests.cluster.operator_process import operator

ROUNDS = 3
SETTINGS = {"CREATES_IN_FLIGHT": "2"}
"""So that the herd lasts long enough to be killed in."""


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place(pods="kwok"))
        idle, found = Idle(), []
        for number in range(ROUNDS):
            herd = Herd(here.cluster)
            flags = ("--namespace", herd.ns)
            with operator(
                here.kubeconfig, directory=here.directory, settings=SETTINGS, flags=flags
            ) as running:
                wait_for_jobs(herd, HERD // 2, running)
                running.kill()
                began = time.monotonic()
                running.start(wait=False)
                running.wait_ready()
                herd.assert_complete()
                found.append(time.monotonic() - began)
            say(f"       restart: round {number + 1}: {found[-1]:.1f} s")
            herd.world.leave([herd.ns])
            herd.world.close()
    yield {
        "name": "every status right after kill -9 in a herd of 300",
        "value": statistics.median(found),
        "unit": "s",
        "beside": {"max_s": max(found), "machine_idle": idle.share()},
    }
