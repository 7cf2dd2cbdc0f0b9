"""Statuses that somebody wrote by hand harm their own schedules at most, and only for moments.

Whoever may write statuses in one namespace may write anything that the schema takes, and the next
process of the operator reads it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import (
    GROUP,
    MERGE,
    Json,
    World,
    due,
    eventually,
    every,
    moment,
    seconds,
    template,
)

GRACE_S = 12
"""The runs that a status claims as held were given up, and ended the process, after that."""
SETTINGS = {"MIN_INTERVAL": "1", "GRACE": f"{GRACE_S}"}
EVERY_S, VICTIM_EVERY_S = 10, 2
WATCHED_S = 25
BUSY_S = 10.0  # a run in time, on a machine full of tests
LARGEST = 2**63 - 1


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.leave()
    found.close()


def waiting(due_in: int, **row: object) -> Json:
    return {"due": moment(time.time() + due_in), "attempt": 1, **row}


def statuses() -> dict[str, Json]:
    """What no operator writes, by the name of the schedule that gets it."""
    now = time.time()
    claims_held = {
        "recent": [
            {
                "due": moment(now - 3700),
                "state": "retrying",
                "reason": "held",
                "attempt": 1,
                "finished": moment(now),
            },
            {"due": moment(now - 10), "state": "pending", "reason": "held", "attempt": 1},
        ],
    }
    return {
        "claims-first-attempts-retrying": claims_held
        | {
            "internal": {
                "mark": moment(now + 80_000),
                "waiting": [waiting(-3700, reason="retrying"), waiting(-10, reason="held")],
            },
        },
        "claims-a-retry-that-is-queued": claims_held
        | {
            "internal": {
                "mark": moment(now + 80_000),
                "waiting": [
                    waiting(-3700, reason="queued", attempt=2),
                    waiting(-10, reason="retrying", attempt=21, retryAt="9999-01-01T00:00:00Z"),
                ],
            },
        },
        "counts-to-the-end": {
            "consecutiveFailures": LARGEST,
            "activeCount": LARGEST,
            "counts": {"failed": LARGEST, "succeeded": LARGEST},
            "placement": {"expectedSeconds": LARGEST},
            "internal": {
                "mark": "9999-12-31T23:59:59Z",
                "resumedAt": "9999-12-31T23:59:59Z",
                "durations": [LARGEST, -LARGEST],
            },
        },
    }


def forge(world: World, ns: str, name: str, status: Json) -> None:
    """Write a status in place of the operator's, with as many conditions as the schema takes."""
    conditions = [
        {
            "type": f"X{number}",
            "status": "True",
            "reason": "Forged",
            "message": "",
            "lastTransitionTime": moment(time.time()),
        }
        for number in range(16)
    ]
    path = f"{GROUP}/namespaces/{ns}/scheduledjobs/{name}/status"
    world.call("PATCH", path, {"status": status | {"conditions": conditions}}, MERGE)


def test_a_forged_status_ends_no_process_and_delays_nobody_else(
    world: World, tmp_path: Path
) -> None:
    victims, hostile = world.namespace("victims"), world.namespace("hostile")
    spec = {
        "startingDeadlineSeconds": 3600,
        "retry": {"limit": 1, "delaySeconds": 3600},
        "jobTemplate": template(ttlSecondsAfterFinished=60),
    }
    forged = statuses()
    with operator(world.cluster.kubeconfig, directory=tmp_path, settings=SETTINGS) as running:
        keep = {"successfulJobsHistoryLimit": 100}
        world.create(victims, "it", interval=every(VICTIM_EVERY_S), **keep)
        for name in forged:
            world.create(hostile, name, interval=every(EVERY_S), **spec)
        eventually(lambda: world.counts(victims, "it").get("succeeded"), "the victim runs")
        for name in forged:
            eventually(lambda name=name: world.status(hostile, name).get("state"), "a status")
        running.kill()
        for name, status in forged.items():
            forge(world, hostile, name, status)

        running.start()
        started_at = time.time()
        for name in forged:
            eventually(
                lambda name=name: world.condition(hostile, name, "Ready")["status"],
                f"a status of {name} is stored again",
            )
        stored_s = time.time() - started_at
        time.sleep(max(0.0, started_at + WATCHED_S - time.time()))
        running.require_running()
        for name in forged:
            eventually(
                lambda name=name: [
                    job for job in world.jobs(hostile, name) if seconds(due(job)) > started_at
                ],
                f"the runs of {name} go on",
            )

        until = time.time()
        eventually(
            lambda: seconds(due(world.jobs(victims, "it")[-1])) > until, "the victim runs on"
        )
        assert_all_in_time(world.jobs(victims, "it"), after=started_at, until=until)
        assert stored_s < WATCHED_S
        running.require_running()


def assert_all_in_time(jobs: list[Json], *, after: float, until: float) -> None:
    """Of a schedule whose Jobs all stay: none is missing, and none is late."""
    later = [job for job in jobs if after < seconds(due(job)) <= until]
    assert len(later) >= WATCHED_S // VICTIM_EVERY_S - 2
    gaps = {seconds(due(b)) - seconds(due(a)) for a, b in pairwise(later)}
    assert gaps == {VICTIM_EVERY_S}, "a due time was left out"
    late_s = [seconds(job["metadata"]["creationTimestamp"]) - seconds(due(job)) for job in later]
    assert max(late_s) <= BUSY_S
