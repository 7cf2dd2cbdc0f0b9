"""A namespace whose admission webhook hangs delays its own schedules, and nobody else's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.hostile_webhook import denial, hostile_webhook, wait_until_in_force
from tests.cluster.operator_process import operator
from tests.cluster.world import Json, World, due, eventually, every, seconds

SETTINGS = {"MIN_INTERVAL": "1"}
EVERY_S = 2
WATCHED_S = 24


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.leave()
    found.close()


def test_statuses_of_others_are_written_while_a_namespaces_own_hang(
    world: World, tmp_path: Path
) -> None:
    victims, hostile = world.namespace("victims"), world.namespace("hostile")
    with (
        operator(world.cluster.kubeconfig, directory=tmp_path, settings=SETTINGS) as running,
        hostile_webhook(world, hostile, directory=tmp_path, of="scheduledjobs/status") as webhook,
    ):
        world.create(victims, "it", interval=every(EVERY_S))
        eventually(lambda: world.counts(victims, "it").get("succeeded", 0), "its first run")
        for number in range(40):
            world.create(hostile, f"s{number}", interval=every(3600), suspend=True)
        wait_until_in_force(webhook)

        lags_s = []
        until = time.monotonic() + WATCHED_S
        while time.monotonic() < until:
            last = seconds(world.status(victims, "it")["lastScheduleTime"])
            lags_s.append(time.time() - last - EVERY_S)
            time.sleep(0.25)

        assert max(lags_s) < 5
        assert running.metrics()["evenkeel_status_waiting"] >= 30  # they hang all the time
        assert running.ready()


@pytest.mark.parametrize(
    ("schedules", "answer"),
    [(60, None), (1, denial(429, retry_after_s=60))],
    ids=["that hangs", "that asks for a pause"],
)
def test_jobs_of_others_are_created_in_time_beside_a_webhook(
    world: World, tmp_path: Path, schedules: int, answer: Json | None
) -> None:
    victims, hostile = world.namespace("victims"), world.namespace("hostile")
    with (
        operator(world.cluster.kubeconfig, directory=tmp_path, settings=SETTINGS) as running,
        hostile_webhook(world, hostile, directory=tmp_path, of="jobs") as webhook,
    ):
        webhook.answer = answer
        for number in range(schedules):
            world.create(hostile, f"s{number}", interval=every(10, first_in=3))
        wait_until_in_force(webhook)
        world.create(victims, "it", interval=every(EVERY_S), successfulJobsHistoryLimit=100)
        time.sleep(WATCHED_S)

        jobs = world.jobs(victims, "it")
        assert len(jobs) >= WATCHED_S / EVERY_S - 2
        late_s = [seconds(job["metadata"]["creationTimestamp"]) - seconds(due(job)) for job in jobs]
        assert max(late_s) <= 1  # both are whole seconds
        assert not world.jobs(hostile)
        assert running.ready()
