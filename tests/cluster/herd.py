"""300 runs due at one second, on a real API server, to do harm to an operator in.

Called by the tests that kill it and by the benchmark of its restart.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

from tests.cluster.harness import Cluster
from tests.cluster.many import WORKERS, create_all
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import BATCH, GROUP, TooLateError, World, due, eventually, once, owner

HERD = 300
SETTLE_S = 180.0  # 300 Pods come and go on a machine that is full of tests


class Herd:
    """300 schedules of one namespace, all due at `at`."""

    def __init__(self, cluster: Cluster) -> None:
        self.world = World(cluster)
        self.ns = self.world.namespace("herd")
        began = time.monotonic()
        self._create_all("probe", range(WORKERS * 3), suspend=True, hourly={"minute": 0})
        took_s = (time.monotonic() - began) / (WORKERS * 3) * HERD
        # An instant that is past at creation is never launched: all must be there before. On a
        # machine that is slower now than a moment ago they are created once more, for later.
        for factor in (2.5, 5, 10):
            self.world.call("DELETE", f"{GROUP}/namespaces/{self.ns}/scheduledjobs")
            self.at = once(due_in=5 + factor * took_s)
            try:
                self._create_all("run", range(HERD), at=self.at)
            except TooLateError:
                continue
            return
        raise AssertionError("this machine is slower and slower")

    def _create_all(self, word: str, numbers: range, **spec: Any) -> None:
        specs = {f"{word}-{number:03}": spec for number in numbers}
        create_all(self.world.cluster, self.ns, specs)

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
            and not status["internal"].get("waiting")
            and [(row["due"], row["state"]) for row in status["recent"]] == [(self.at, "succeeded")]
            and {end: count for end, count in status["counts"].items() if count} == {"succeeded": 1}
            for status in self.statuses()
        )

    def assert_complete(self) -> None:
        try:
            eventually(self.is_told, "all statuses are right", within_s=SETTLE_S, every_s=0.5)
        except AssertionError:
            told = Counter(
                json.dumps({key: status.get(key) for key in ("counts", "activeCount", "internal")})
                for status in self.statuses()
            )
            raise AssertionError(f"statuses: {told}; Jobs: {self.created()}") from None
        jobs = self.world.jobs(self.ns)
        assert len(jobs) == HERD
        assert len({owner(job)["uid"] for job in jobs}) == HERD, "a schedule has two Jobs"
        assert {due(job) for job in jobs} == {self.at}
        assert self.deletions() == [], "a Job was created, deleted, created again"

    def deletions(self) -> list[str]:
        return [
            event["objectRef"]["name"]
            for event in self.world.cluster.audited(f'"{self.ns}"')
            if event["verb"] == "delete" and event["objectRef"]["resource"] == "jobs"
        ]


def wait_for_jobs(herd: Herd, enough: int, running: OperatorProcess) -> None:
    def look() -> bool:
        running.require_running()
        return herd.created() >= enough

    eventually(look, f"{enough} Jobs", within_s=120, every_s=0.01)
