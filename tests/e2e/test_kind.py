"""Installing into a kind cluster, word for word. Only where kind and a Docker engine are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, existing, helm, kind, kind_node_image
from tests.docs.blocks import block
from tests.docs.words import commands, said

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("helm"),
    pytest.mark.skipif(not kind.available(), reason="no kind, or no Docker engine"),
]

CLUSTER = "evenkeel"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """The kubeconfig that kind will write, and the cluster deleted afterwards."""
    listed = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True)
    if CLUSTER in listed.stdout.split():
        pytest.fail(f"a kind cluster {CLUSTER!r} is somebody's here")
    found = Cluster(
        kind="kind",
        pods="node",
        kubeconfig=tmp_path / "kubeconfig",
        server="",
        kubectl=existing.kubectl(),
    )
    yield found
    delete = ["kind", "delete", "cluster", "--name", CLUSTER]
    environment = {**os.environ, "KUBECONFIG": str(found.kubeconfig)}
    subprocess.run(delete, env=environment, capture_output=True, check=False)


def test_it_is_installed_into_a_kind_cluster_by_the_words_of_the_page(cluster: Cluster) -> None:
    assert commands("kind")[0].startswith("kind create cluster")
    # The block of README.md is the same but for the cluster, which it takes as there already.
    front = [command.line for command in block("e2e front-door-install").commands]
    assert front == [line.replace(f" --name {CLUSTER}", "") for line in commands("kind")[1:]]
    # Where kind's own node image cannot be pulled, another one is built.
    image = kind_node_image.chosen()
    given = f'if [ "$1" = create ]; then set -- "$@" --image {image}; fi'
    own = f'kind() {{ {given}; command kind "$@"; }}'

    assert "STATUS: deployed" in said("kind", cluster, begin=own if image else "")

    helm.helm("uninstall", "evenkeel", "-n", "evenkeel", kubeconfig=cluster.kubeconfig)
