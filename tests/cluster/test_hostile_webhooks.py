"""A namespace whose admission webhook hangs delays its own schedules, and nobody else's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.hostile_webhook import (
    HostileWebhook,
    denial,
    hostile_webhook,
    wait_until_in_force,
)
from tests.cluster.operator_process import operator
from tests.cluster.world import (
    BATCH,
    Json,
    RefusedError,
    World,
    due,
    eventually,
    every,
    seconds,
    template,
)

SETTINGS = {"MIN_INTERVAL": "1"}
EVERY_S = 2
WATCHED_S = 24
BUSY_S = 8.0
"""So late a machine full of tests may be. A request that hangs takes ten seconds, and a pause that
a webhook asks for a minute."""


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
            asked_at = time.time()  # this process may stand still as well
            last = seconds(world.status(victims, "it")["lastScheduleTime"])
            lags_s.append(asked_at - last - EVERY_S)
            time.sleep(0.25)

        assert max(lags_s) < BUSY_S
        assert running.metrics()["evenkeel_status_waiting"] >= 30  # they hang all the time
        eventually(running.ready, "it is ready")


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
        eventually(lambda: asks(world, hostile, webhook), "the webhook is in force")
        before = webhook.asked
        for number in range(schedules):
            world.create(hostile, f"s{number}", interval=every(10, first_in=3))
        eventually(lambda: webhook.asked > before, "the webhook is asked by the operator")
        world.create(victims, "it", interval=every(EVERY_S), successfulJobsHistoryLimit=100)
        time.sleep(WATCHED_S)

        until = time.time()

        def launched() -> list[Json]:
            return [job for job in world.jobs(victims, "it") if seconds(due(job)) <= until]

        eventually(lambda: len(launched()) >= WATCHED_S / EVERY_S - 2, "its runs", within_s=BUSY_S)
        jobs = launched()
        late_s = [seconds(job["metadata"]["creationTimestamp"]) - seconds(due(job)) for job in jobs]
        assert median(late_s) <= 1  # both are whole seconds
        assert max(late_s) <= BUSY_S
        assert not world.jobs(hostile)
        eventually(running.ready, "it is ready")


def asks(world: World, ns: str, webhook: HostileWebhook) -> bool:
    """Whether the API server asks the webhook about a Job there."""
    body = {"metadata": {"name": "probe"}, "spec": template()["spec"]}
    with suppress(RefusedError):  # it hangs for the second, or denies
        world.call("POST", f"{BATCH}/namespaces/{ns}/jobs?dryRun=All&timeout=1s", body)
    return webhook.asked > 0
