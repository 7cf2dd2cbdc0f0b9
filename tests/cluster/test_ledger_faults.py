"""An operator and its ledger's store, to which everything happens, on a real API server.

Schedules are due every ten seconds, one or another of them every two. Meanwhile the store is
locked, stopped, stalled, cut off or deleted, and the operator is killed. No Job may wait for that;
afterwards every due time has one row, and the rows agree with the statuses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.ledgers import Ledger, differences, ledger
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import ENDS, Json, World, due, eventually, every, seconds, template
from tests.ledger.disks import HAS_VOLUMES, locked, volume
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger.rows import UNRECORDED

EVERY_S = 10
STEADY = 3
FAULT_S = 15.0
"""A fault lasts at least so long, and until the Jobs of its first ten seconds are there."""

Fault = Callable[[], AbstractContextManager[None]]
SETTINGS = {"GRACE": "300", "MIN_INTERVAL": "1"}
QUICK_S = 2
KILLED_AFTER_S = 40.0
"""Long enough for more runs of a quick schedule than its status tells of."""


class Scene:
    """A namespace with schedules of several fates, and what became of them."""

    def __init__(self, world: World, url: str) -> None:
        self.world, self.url, self.ns = world, url, world.namespace("ledger")
        self.began = time.time()
        self.names: list[str] = []

    def add_schedules(self) -> None:
        for number in range(STEADY):
            self.add(f"steady-{number}", first_in=4 + 2 * number)
        self.add("fails", first_in=5, fate="fail")
        self.add("forbids", first_in=7, runs_for="15s", concurrencyPolicy="Forbid")

    def add(
        self,
        name: str,
        *,
        first_in: float,
        every_s: int = EVERY_S,
        fate: str = "",
        runs_for: str = "",
        **spec: Any,
    ) -> None:
        body = template(fate=fate, runs_for=runs_for)
        kept: Json = {"successfulJobsHistoryLimit": 500, "failedJobsHistoryLimit": 500, **spec}
        rule = every(every_s, first_in=first_in)
        self.world.create(self.ns, name, interval=rule, jobTemplate=body, **kept)
        self.names.append(name)

    def due_times(self, first: float, end: float) -> set[tuple[str, int]]:
        """Those of the schedules that run each time."""
        found = set()
        for number in range(STEADY):
            name = f"steady-{number}"
            spec = self.world.schedule(self.ns, name)["spec"]
            anchor = int(seconds(spec["interval"]["anchor"]))
            low = anchor + -(-(int(first) - anchor) // EVERY_S) * EVERY_S
            found |= {(name, at) for at in range(low, int(end), EVERY_S)}
        return found

    def has_jobs(self, dues: set[tuple[str, int]]) -> bool:
        found = {
            (job["metadata"]["ownerReferences"][0]["name"], int(seconds(due(job))))
            for job in self.world.jobs(self.ns)
        }
        return dues <= found

    def runs_through(self, fault: AbstractContextManager[None], running: OperatorProcess) -> None:
        """All that is due while the fault lasts gets its Job while it lasts."""
        with fault:
            began = time.time()
            time.sleep(FAULT_S)
            wanted = self.due_times(began, began + EVERY_S)
            assert wanted, "nothing was due"
            eventually(lambda: self.has_jobs(wanted), "creates do not wait for the store")
        running.require_running()

    def halt(self) -> None:
        """Nothing new is due, and all that began has ended."""
        for name in self.names:
            self.world.edit(self.ns, name, suspend=True)
        for name in self.names:
            eventually(
                lambda name=name: (
                    self.world.condition(self.ns, name, "Active")["reason"] == "Suspended"
                    and self.world.status(self.ns, name).get("activeCount") == 0
                ),
                f"{name} has come to rest",
            )

    def settled(self) -> Ledger:
        """The ledger, once every due time has its row."""
        found: list[Ledger] = []

        def look() -> bool:
            found[:] = [ledger(self.url)]
            assert found[0].is_settled, found[0].audit
            return True

        eventually(look, "the ledger is complete", every_s=1.0)
        return found[0]

    def assert_agrees(self) -> None:
        """The statuses and the ledger count the same ends, and `kubectl get` prints them."""

        def look() -> bool:
            assert differences(self.world, self.ns, self.names, ledger(self.url)) == {}
            return True

        eventually(look, "status.counts and the ledger agree", every_s=1.0)
        self._assert_printed(ledger(self.url))

    def _assert_printed(self, found: Ledger) -> None:
        """What people see: how the last run ended, and that none is active."""
        told = self.world.cluster.kubectl("get", "scheduledjobs", "-n", self.ns).stdout
        header, *lines = told.splitlines()
        assert len(lines) == len(self.names)
        for line in lines:
            result, active = line[header.index("RESULT") :].split()[:2]
            ends = found.counts[f"{self.ns}/{line.split()[0]}"]
            assert ends[result] > 0 and active == "0"
            assert set(ends) <= set(ENDS), "a row has no end"


@contextmanager
def operated(
    cluster: Cluster, directory: Path, url: str
) -> Iterator[tuple[Scene, OperatorProcess]]:
    cluster.install_crd()
    world = World(cluster)
    scene = Scene(world, url)
    flags = ("--namespace", scene.ns)
    settings = {**SETTINGS, "STORE_URL": url}
    try:
        with operator(
            cluster.kubeconfig, directory=directory, settings=settings, flags=flags
        ) as running:
            scene.add_schedules()
            eventually(lambda: world.jobs(scene.ns), "the first Jobs are created")
            yield scene, running
    finally:
        world.leave()
        world.close()


def kill_between(running: OperatorProcess, scene: Scene) -> None:
    """While the store is there: nothing may get lost."""
    for _ in range(3):
        time.sleep(2)
        running.kill()
        running.start()


@HAS_VOLUMES
@pytest.mark.timeout(900)
def test_a_file_that_is_locked_and_a_disk_that_does_not_answer_delay_no_job_and_lose_no_row(
    kwok_cluster: Cluster, tmp_path: Path
) -> None:
    with volume(tmp_path / "data", mib=64) as disk:
        file = disk.at / "evenkeel.db"
        with operated(kwok_cluster, tmp_path, f"sqlite://{file}") as (scene, running):
            scene.runs_through(locked(file), running)
            kill_between(running, scene)
            scene.runs_through(disk.frozen(), running)
            scene.halt()
            found = scene.settled()
            assert found.audit.found.unrecorded == 0
            scene.assert_agrees()


@pytest.mark.timeout(900)
def test_a_file_that_is_deleted_is_begun_anew_from_what_the_statuses_tell(
    kwok_cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "evenkeel.db"
    with operated(kwok_cluster, tmp_path, f"sqlite://{file}") as (scene, running):
        before = eventually(lambda: ledger(scene.url), "the ledger is there").born
        time.sleep(EVERY_S)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)
        eventually(lambda: file.exists(), "a new file was begun")
        time.sleep(EVERY_S)
        kill_between(running, scene)
        scene.halt()
        found = scene.settled()
        assert found.born != before
        assert found.audit.found.unrecorded == 0, "the statuses tell of all these runs"
        scene.assert_agrees()


@pytest.mark.timeout(900)
def test_a_database_that_is_stopped_stalled_and_cut_off_delays_no_job_and_loses_no_row(
    kwok_cluster: Cluster, tmp_path: Path, postgres_server: PostgresServer, database: str
) -> None:
    with operated(kwok_cluster, tmp_path, postgres_server.url(database)) as (scene, running):
        scene.runs_through(stopped(postgres_server), running)
        kill_between(running, scene)
        scene.runs_through(stalled(postgres_server), running)
        for _ in range(5):
            postgres_server.cut_connections(database)
            time.sleep(1)
        scene.halt()
        found = scene.settled()
        assert found.audit.found.unrecorded == 0
        scene.assert_agrees()


@pytest.mark.timeout(900)
def test_a_kill_that_meets_a_store_that_is_away_costs_at_most_what_waited_for_it(
    kwok_cluster: Cluster, tmp_path: Path, postgres_server: PostgresServer, database: str
) -> None:
    with operated(kwok_cluster, tmp_path, postgres_server.url(database)) as (scene, running):
        world, ns = scene.world, scene.ns
        # No Job is left to tell of its run.
        scene.add("quick", first_in=2, every_s=QUICK_S, successfulJobsHistoryLimit=0)
        eventually(lambda: ledger(scene.url).counts.get(f"{ns}/quick"), "its runs have rows")
        began = time.time()
        with stopped(postgres_server):
            time.sleep(KILLED_AFTER_S)
            running.kill()
            waited = (time.time() - began) / QUICK_S + 2
            running.start()
        scene.halt()
        found = scene.settled()
        of_quick = found.counts[f"{ns}/quick"]
        assert 0 < of_quick[UNRECORDED] <= waited
        assert found.audit.found.unrecorded == of_quick[UNRECORDED], "the statuses tell the rest"
        for name in scene.names:
            told = sum(world.counts(ns, name).values())
            assert sum(found.counts[f"{ns}/{name}"].values()) == told


@contextmanager
def stopped(server: PostgresServer) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def stalled(server: PostgresServer) -> Iterator[None]:
    server.pause()
    try:
        yield
    finally:
        server.resume()
