"""From `make image` and plain manifests to the first line of a Pod, by the words of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, image
from tests.cluster.world import World, eventually
from tests.docs.blocks import REPOSITORY, block
from tests.docs.words import said

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("helm")]

NS = "evenkeel"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The repository as the commands of the page need it, and room for the file that they write."""
    for name in ("charts", "crds"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    return tmp_path


@pytest.fixture
def cluster(node_cluster: Cluster, folder: Path) -> Iterator[Cluster]:
    if node_cluster.kind != "named":  # what other tests applied is not what a page begins with
        node_cluster.remove_crds()
    yield node_cluster
    print(node_cluster.kubectl("-n", NS, "logs", "deployment/evenkeel", check=False).stdout)
    manifests = folder / "evenkeel.yaml"
    if manifests.exists():
        node_cluster.kubectl("delete", "--ignore-not-found", "-f", str(manifests))
    node_cluster.kubectl("delete", "namespace", NS, "--ignore-not-found")


def test_plain_manifests_install_it_and_the_first_scheduled_job_runs(
    cluster: Cluster, namespace: str, folder: Path
) -> None:
    assert str(image.built()) in said("image", cluster).splitlines()
    cluster.load_image(image.built())

    assert "successfully rolled out" in said("install-manifests", cluster, folder=folder)

    (folder / "sweep.yaml").write_text(block("file sweep.yaml").text)
    cluster.kubectl("-n", namespace, "apply", "-f", str(folder / "sweep.yaml"))
    world = World(cluster)
    # As the README says it of the Pods.
    logs = ("-n", namespace, "logs", "-l", "evenkeel.dev/schedule=sweep")
    eventually(lambda: world.recent(namespace, "sweep", "succeeded"), "a run", within_s=240)
    (run,) = world.recent(namespace, "sweep", "succeeded")
    world.close()
    assert cluster.kubectl(*logs).stdout == f"due at {run['due']}\n"

    said("uninstall-crds", cluster, folder=folder)

    assert "evenkeel.dev" not in cluster.kubectl("get", "crd").stdout
