"""An operator that ends without warning, and the next one, on a real API server."""

from __future__ import annotations

import time
from pathlib import Path

from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import World, due, eventually, every, seconds

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5", "GRACE": "300"}
"""On a busy machine the next process takes longer to begin than a grace of half a minute."""


def test_a_restart_creates_nothing_twice_and_loses_nothing(
    kwok_cluster: Cluster, tmp_path: Path
) -> None:
    """Killed and begun again while two schedules are due every second."""
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("slice-restart")
    flags = ("--namespace", ns)
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags, start=False
    ) as running:
        running.start()
        keep = {"successfulJobsHistoryLimit": 500}
        names_ = ("left", "right")
        for name in names_:
            world.create(ns, name, interval=every(1), **keep)
        for _ in range(2):
            eventually(lambda: world.jobs(ns), "it creates")
            time.sleep(1.1)
            running.kill()
            running.start()
        for name in names_:
            world.edit(ns, name, suspend=True)
        eventually(
            lambda: all(
                world.condition(ns, name, "Active")["reason"] == "Suspended"
                and world.status(ns, name).get("activeCount") == 0
                and world.counts(ns, name).get("succeeded") == len(world.jobs(ns, name))
                for name in names_
            ),
            "everything has come to rest",
        )

        for name in names_:
            created = [due(job) for job in world.jobs(ns, name)]
            assert len(created) == len(set(created)), "a due time has two Jobs"
            first, last = seconds(created[0]), seconds(created[-1])
            assert len(created) == last - first + 1, "a due time in between has no Job"
            status = world.status(ns, name)
            assert status["counts"]["succeeded"] == len(created)
            # instants between the last run and the suspension's first sight may be skipped
            assert {k: v for k, v in world.counts(ns, name).items() if k != "skipped"} == {
                "succeeded": len(created)
            }
    world.leave([ns])
    world.close()
