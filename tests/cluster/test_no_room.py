"""An API server without room for creates, by its own priority and fairness: 429, Retry-After."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import (
    Json,
    RefusedError,
    World,
    due,
    eventually,
    moment,
    once,
    owner,
    seconds,
    template,
)

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
USER = "evenkeel-without-room"
INSTANTS = 3
IN_FLIGHT = 8
RETRY_AFTER_S = 1
"""What the API server says."""


@pytest.fixture
def user(kwok_cluster: Cluster) -> Iterator[Path]:
    """An administrator whom fair queuing counts: those of system:masters it lets pass."""
    kwok_cluster.install_crd()
    binding = ("clusterrolebinding", USER)
    kwok_cluster.kubectl("create", *binding, "--clusterrole=cluster-admin", f"--user={USER}")
    theirs = kwok_cluster.user_kubeconfig(USER)
    asked = ("--kubeconfig", str(theirs), "auth", "can-i", "create", "jobs.batch", "-A")
    eventually(lambda: kwok_cluster.kubectl(*asked, check=False).returncode == 0, "it may create")
    yield theirs
    kwok_cluster.kubectl("delete", *binding)


@contextmanager
def no_room(world: World, user: Path) -> Iterator[None]:
    """For creates of Jobs by that user, or hardly any, until the end of the block."""
    level: Json = {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    }
    schema = {
        "matchingPrecedence": 10,
        "priorityLevelConfiguration": {"name": USER},
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": USER}}],
                "resourceRules": [
                    {
                        "verbs": ["create"],
                        "apiGroups": ["batch"],
                        "resources": ["jobs"],
                        "namespaces": ["*"],
                    }
                ],
            }
        ],
    }
    kinds = {"prioritylevelconfigurations": level, "flowschemas": schema}
    try:
        for kind, spec in kinds.items():
            world.call("POST", f"{FLOW}/{kind}", {"metadata": {"name": USER}, "spec": spec})
        eventually(lambda: in_force(world), "it is in force")
        yield
    finally:
        for kind in reversed(kinds):
            with suppress(RefusedError):  # the one that could not be made
                world.call("DELETE", f"{FLOW}/{kind}/{USER}")


def in_force(world: World) -> bool:
    conditions = world.get(f"{FLOW}/flowschemas/{USER}").get("status", {}).get("conditions", [])
    return any(each["type"] == "Dangling" and each["status"] == "False" for each in conditions)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("herd", [12, pytest.param(60, marks=pytest.mark.long)])
def test_a_herd_that_hardly_gets_through_asks_seldom_and_comes_through(
    user: Path, kwok_cluster: Cluster, tmp_path: Path, herd: int
) -> None:
    """With no seat at all the server still serves one create at a time, and refuses all beside."""
    world = World(kwok_cluster)
    ns = world.namespace("no-room")
    settings = {"CREATES_IN_FLIGHT": str(IN_FLIGHT)}
    names = [f"run-{number:02}" for number in range(herd)]
    with (
        operator(user, directory=tmp_path, settings=settings, flags=("--namespace", ns)) as running,
        no_room(world, user),
    ):
        first = seconds(once(due_in=15 + herd / 5))
        for number, name in enumerate(names):
            at = moment(first + number % INSTANTS)
            world.create(ns, name, at=at, jobTemplate=template())
        assert time.time() < first, "this machine is too slow for so many"
        eventually(lambda: len(world.jobs(ns)) == herd, "all are launched", within_s=240)
        took_s = time.time() - first
        # All pause for as long as the server said, not each for itself.
        assert 0 < held(running.metrics()) <= IN_FLIGHT * (took_s / RETRY_AFTER_S + 2)
        eventually(
            lambda: all(world.counts(ns, name) == {"succeeded": 1} for name in names),
            "late, and none is missed or has two",
            within_s=180,
            every_s=1.0,
        )
    jobs = world.jobs(ns)
    assert len({owner(job)["uid"] for job in jobs}) == len(jobs) == herd
    assert {seconds(due(job)) - first for job in jobs} == set(range(INSTANTS))
    world.leave()
    world.close()


def held(metrics: dict[str, float]) -> float:
    return metrics.get('evenkeel_creates_total{verdict="held"}', 0)
