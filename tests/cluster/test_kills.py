"""A herd of 300 runs due at one second, and an operator that does not live to see its end.

Whatever is killed and whenever, there are exactly 300 Jobs at the end and every status tells the
truth. Creates are few at a time here, so that a herd lasts long enough to be killed in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.herd import HERD, Herd, wait_for_jobs
from tests.cluster.operator_process import operator

SETTINGS = {"CREATES_IN_FLIGHT": "2"}


@pytest.fixture
def herd(kwok_cluster: Cluster) -> Iterator[Herd]:
    kwok_cluster.install_crd()
    found = Herd(kwok_cluster)
    yield found
    found.world.leave([found.ns])
    found.world.close()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kills", [10, pytest.param(100, marks=pytest.mark.long)], ids=["ten", "a hundred"]
)
def test_killed_again_and_again_in_a_herd(
    kwok_cluster: Cluster,
    herd: Herd,
    tmp_path: Path,
    kills: int,
) -> None:
    flags = ("--namespace", herd.ns)
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags
    ) as running:
        for number in range(kills):
            enough = HERD * (number + 1) // (kills + 1)
            wait_for_jobs(herd, enough, running)
            time.sleep(random.uniform(0, 0.05))
            running.kill()
            assert herd.created() < HERD, f"the herd was over before kill {number + 1}"
            running.start(wait=False)
        running.wait_ready()

        herd.assert_complete()  # how soon, `make bench` says: restart


def test_two_operators_at_once_share_a_herd(
    kwok_cluster: Cluster, herd: Herd, tmp_path: Path
) -> None:
    def one(name: str) -> Any:
        return operator(
            kwok_cluster.kubeconfig,
            directory=tmp_path,
            settings=SETTINGS,
            flags=("--namespace", herd.ns),
            name=name,
        )

    with one("first") as first, one("second") as second:
        herd.assert_complete()

        verdicts = {
            word: sum(
                each.metrics().get(f'evenkeel_creates_total{{verdict="{word}"}}', 0)
                for each in (first, second)
            )
            for word in ("created", "adopted", "taken", "refused")
        }
        assert verdicts["created"] == HERD
        assert verdicts["adopted"] > 0, "they never met: this proves nothing"
        assert verdicts["taken"] == verdicts["refused"] == 0


def test_asked_to_end_in_a_herd_it_leaves_the_rest_to_the_next(
    kwok_cluster: Cluster, herd: Herd, tmp_path: Path
) -> None:
    flags = ("--namespace", herd.ns)
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, settings=SETTINGS, flags=flags
    ) as running:
        wait_for_jobs(herd, HERD // 10, running)

        assert running.terminate(within_s=30) == 0

        left_at = herd.created()
        assert left_at < HERD, "the herd was over: this proves nothing"
        statuses = herd.statuses()
        unwritten = [status for status in statuses if "counts" not in status]
        assert unwritten == [], "a status was cut off"
        launched = sum(bool(status.get("lastScheduleTime")) for status in statuses)
        # On a machine that is full the time it has may be over before all is written.
        left = running.events("left to the next process")
        untold = sum(each["statuses"] + each["creates"] for each in left)
        assert 0 <= left_at - launched <= untold, "a Job that no status and no log tells of"
        assert not any(status["counts"]["missed"] for status in statuses)
        running.start()

        herd.assert_complete()
