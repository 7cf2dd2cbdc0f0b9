"""An API server without room for creates, by its own priority and fairness: 429, Retry-After."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import (
    BATCH,
    Json,
    RefusedError,
    World,
    due,
    eventually,
    install,
    moment,
    once,
    seconds,
    template,
)

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
USER = "evenkeel-without-room"
HERD = 60
INSTANTS = 3
IN_FLIGHT = 8
RETRY_AFTER_S = 1
"""What the API server says."""


@pytest.fixture
def user(kwok_cluster: Cluster) -> Iterator[Path]:
    """An administrator whom fair queuing counts: those of system:masters it lets pass."""
    world = World(kwok_cluster)
    install(kwok_cluster)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": USER}, "roleRef": role, "subjects": [subject]}
    world.call("POST", f"{RBAC}/clusterrolebindings", body)
    yield kwok_cluster.user_kubeconfig(USER)
    world.call("DELETE", f"{RBAC}/clusterrolebindings/{USER}")
    world.close()


@contextmanager
def no_room(world: World, user: Path) -> Iterator[None]:
    """For creates of Jobs by that user, until the end of the block."""
    level: Json = {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 0,
            "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        },
    }
    schema = {
        "matchingPrecedence": 1,
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
    for kind, spec in kinds.items():
        world.call("POST", f"{FLOW}/{kind}", {"metadata": {"name": USER}, "spec": spec})
    mine = World(world.cluster, user)
    try:
        eventually(lambda: answer(mine) == 429, "creates are refused")
        yield
    finally:
        mine.close()
        for kind in reversed(kinds):
            world.call("DELETE", f"{FLOW}/{kind}/{USER}")


def answer(mine: World) -> int:
    """What a create is answered with; it is not one that could succeed."""
    try:
        mine.call("POST", f"{BATCH}/namespaces/default/jobs?dryRun=All", {})
    except RefusedError as error:
        return error.status
    return 201


@pytest.mark.timeout(360)
@pytest.mark.parametrize("closed_s", [15, pytest.param(60, marks=pytest.mark.long)])
def test_a_herd_without_room_asks_seldom_and_then_goes_on(
    user: Path, kwok_cluster: Cluster, tmp_path: Path, closed_s: int
) -> None:
    world = World(kwok_cluster)
    ns = world.namespace("no-room")
    settings = {"CREATES_IN_FLIGHT": str(IN_FLIGHT)}
    with operator(
        user, directory=tmp_path, settings=settings, flags=("--namespace", ns)
    ) as running:
        first = seconds(once(due_in=12))
        for number in range(HERD):
            at = moment(first + number % INSTANTS)
            world.create(ns, f"run-{number:02}", at=at, jobTemplate=template())
        with no_room(world, user):
            eventually(lambda: held(running.metrics()) > 0, "creates are held", within_s=60)
            before = held(running.metrics())
            time.sleep(closed_s)
            tries = held(running.metrics()) - before
            assert not world.jobs(ns)
        # All pause for as long as the server said, not each for itself.
        assert 0 < tries <= IN_FLIGHT * (closed_s / RETRY_AFTER_S + 2)
        eventually(lambda: len(world.jobs(ns)) == HERD, "all are launched", within_s=90)
        names = [f"run-{number:02}" for number in range(HERD)]
        eventually(
            lambda: all(world.counts(ns, name) == {"succeeded": 1} for name in names),
            "late, and none is missed or has two",
            within_s=90,
            every_s=1.0,
        )
    jobs = world.jobs(ns)
    assert len({job["metadata"]["ownerReferences"][0]["uid"] for job in jobs}) == HERD
    assert {seconds(due(job)) - first for job in jobs} == set(range(INSTANTS))
    world.leave()
    world.close()


def held(metrics: dict[str, float]) -> float:
    return metrics.get('evenkeel_creates_total{verdict="held"}', 0)
