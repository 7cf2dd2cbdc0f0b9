"""CRDs are applied after the operator has started, deleted and applied again: nothing ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.requests import Requests
from tests.cluster.world import World, eventually, every

NOT_INSTALLED = "the ScheduledJob resource is not installed in this cluster"


@pytest.fixture
def without_requests(kwok_cluster: Cluster) -> Iterator[Cluster]:
    kwok_cluster.install_crd()
    remove_requests(kwok_cluster)
    yield kwok_cluster
    kwok_cluster.install_crd()


def remove_requests(cluster: Cluster) -> None:
    cluster.remove_crds("runrequests.evenkeel.dev")


@pytest.fixture
def without_our_resource(kwok_cluster: Cluster) -> Iterator[Cluster]:
    kwok_cluster.remove_crds()
    yield kwok_cluster
    kwok_cluster.install_crd()


def waits(running: OperatorProcess) -> bool:
    """Its probes tell what it waits for, and kubelet lets it wait."""
    running.require_running()
    return running.get("/readyz") == (503, f"{NOT_INSTALLED}\n") and running.get("/livez")[0] == 200


def runs(world: World, ns: str, name: str = "it") -> bool:
    """A schedule that is created now has a run that succeeds."""
    world.create(ns, name, interval=every(2))
    return bool(eventually(lambda: world.counts(ns, name).get("succeeded"), "a run succeeds"))


def test_the_operator_waits_for_its_resource_and_goes_on_when_it_is_back(
    without_our_resource: Cluster, tmp_path: Path
) -> None:
    cluster = without_our_resource
    world = World(cluster)
    ns = world.namespace("crd")
    settings = {"MIN_INTERVAL": "1"}
    with operator(
        cluster.kubeconfig, directory=tmp_path, settings=settings, start=False
    ) as running:
        running.start(wait=False)
        eventually(lambda: waits(running), "it waits for the resource at the start")
        (said,) = running.events("waiting for the resource")
        assert said["sentence"] == f"{NOT_INSTALLED}: kubectl apply -f crds/"
        cluster.install_crd()
        eventually(running.ready, "it has begun to watch")
        assert runs(world, ns)

        cluster.remove_crds()
        eventually(lambda: waits(running), "it waits for the resource that was removed")
        eventually(lambda: running.schedules() == 0, "they are forgotten")
        cluster.install_crd()
        eventually(running.ready, "it watches again")
        assert runs(world, ns)

        cluster.remove_crds()
        cluster.install_crd()
        eventually(lambda: running.knows_of_its_end(f"{ns}/it"), "the schedule is forgotten")
        eventually(lambda: runs(world, world.namespace("crd")), "it watches what is back at once")
        eventually(running.ready, "it is ready")
        running.require_running()
    world.leave()
    world.close()


def test_without_the_resource_of_requests_it_does_all_else_and_serves_them_once_it_is_there(
    without_requests: Cluster, tmp_path: Path
) -> None:
    cluster = without_requests
    world = World(cluster)
    ns = world.namespace("requests")
    requests = Requests(world, ns)
    with operator(
        cluster.kubeconfig, directory=tmp_path, settings={"MIN_INTERVAL": "1"}
    ) as running:
        assert runs(world, ns, "first")
        (said,) = running.events("requests are not watched")
        assert "the RunRequest resource is not installed" in said["sentence"]
        assert running.ready()

        cluster.install_crd()
        requests.create("one", "first")
        requests.ended("one", "Succeeded")
        assert runs(world, ns, "second")

        remove_requests(cluster)
        eventually(lambda: len(running.events("requests are not watched")) == 2, "it goes on")
        assert runs(world, ns, "third")
        eventually(lambda: forgets(running), "the request is forgotten")

        cluster.install_crd()
        requests.create("two", "first")
        requests.ended("two", "Succeeded")
        eventually(running.ready, "it is ready")
        running.require_running()
    world.leave()
    world.close()


def forgets(running: OperatorProcess) -> bool:
    """Whether it knows no request any more."""
    found = running.metrics().items()
    return not sum(number for name, number in found if name.startswith("evenkeel_requests{"))
