"""A herd of 300 runs due at one second, and an operator that does not live to see its end.

Whatever is killed and whenever, there are exactly 300 Jobs at the end and every status tells the
truth. Creates are few at a time here, so that a herd lasts long enough to be killed in.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import BATCH, GROUP, World, due, eventually, install, once, owner, seconds

HERD = 300
WORKERS = 6
SETTLE_S = 90.0  # 300 Pods come and go on a machine that is full of tests
SETTINGS = {"CREATES_IN_FLIGHT": "2"}


@pytest.fixture
def herd(kwok_cluster: Cluster) -> Iterator[Herd]:
    install(kwok_cluster)
    found = Herd(kwok_cluster)
    yield found
    found.world.leave([found.ns])
    found.world.close()


class Herd:
    """300 schedules of one namespace, all due at `at`."""

    def __init__(self, cluster: Cluster) -> None:
        self.world = World(cluster)
        self.ns = self.world.namespace("herd")
        began = time.monotonic()
        self._create_all("probe", range(WORKERS * 3), suspend=True, hourly={"minute": 0})
        pace_s = (time.monotonic() - began) / (WORKERS * 3)
        self.world.call("DELETE", f"{GROUP}/namespaces/{self.ns}/scheduledjobs")
        # An instant that is past at creation is never launched: all must be there before.
        self.at = once(due_in=5 + 1.5 * pace_s * HERD)
        self._create_all("run", range(HERD), at=self.at)
        assert time.time() < seconds(self.at), "this machine is slower now than a moment ago"

    def _create_all(self, word: str, numbers: range, **spec: Any) -> None:
        def some(numbers: range) -> None:
            world = World(self.world.cluster)
            for number in numbers:
                world.create(self.ns, f"{word}-{number:03}", **spec)
            world.close()

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(some, [numbers[i::WORKERS] for i in range(WORKERS)]))

    def created(self) -> int:
        """How many Jobs there are, without fetching them."""
        page = self.world.get(f"{BATCH}/namespaces/{self.ns}/jobs?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def statuses(self) -> list[dict[str, Any]]:
        found = self.world.items(f"{GROUP}/namespaces/{self.ns}/scheduledjobs")
        return [each.get("status") or {} for each in found]

    def is_told(self) -> bool:
        """Every status says: one run, due then, succeeded; nothing runs, nothing waits."""
        return all(
            status.get("lastScheduleTime") == self.at
            and status.get("activeCount") == 0
            and not status.get("waiting")
            and [(row["due"], row["state"]) for row in status["recent"]] == [(self.at, "succeeded")]
            and {end: count for end, count in status["counts"].items() if count} == {"succeeded": 1}
            for status in self.statuses()
        )

    def assert_complete(self) -> None:
        try:
            eventually(self.is_told, "all statuses are right", within_s=SETTLE_S, every_s=0.5)
        except AssertionError:
            told = Counter(
                json.dumps({key: status.get(key) for key in ("counts", "activeCount", "waiting")})
                for status in self.statuses()
            )
            raise AssertionError(f"statuses: {told}; Jobs: {self.created()}") from None
        jobs = self.world.jobs(self.ns)
        assert len(jobs) == HERD
        assert len({owner(job)["uid"] for job in jobs}) == HERD, "a schedule has two Jobs"
        assert {due(job) for job in jobs} == {self.at}
        assert self.deletions() == [], "a Job was created, deleted, created again"

    def deletions(self) -> list[str]:
        log = self.world.cluster.audit_log
        assert log
        with log.open() as lines:
            events = [json.loads(line) for line in lines if f'"{self.ns}"' in line]
        return [
            event["objectRef"]["name"]
            for event in events
            if event["verb"] == "delete" and event["objectRef"]["resource"] == "jobs"
        ]


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
        last_start = time.monotonic()
        running.wait_ready()

        herd.assert_complete()

        took_s = time.monotonic() - last_start
        print(f"from the last start to the truth: {took_s:.1f} s")  # a target, not an assertion


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
        assert launched == left_at, "a Job that no status tells of, or the reverse"
        assert not any(status["counts"]["missed"] for status in statuses)
        running.start()

        herd.assert_complete()


def wait_for_jobs(herd: Herd, enough: int, running: OperatorProcess) -> None:
    def look() -> bool:
        running.require_running()
        return herd.created() >= enough

    eventually(look, f"{enough} Jobs", within_s=60, every_s=0.01)
