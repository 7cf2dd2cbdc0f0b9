"""The chart's release for the tests on a real node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.harness import Cluster, image
from tests.cluster.harness.helm import helm
from tests.e2e.release import NS, Release


@pytest.fixture
def release(node_cluster: Cluster) -> Iterator[Release]:
    node_cluster.load_image(image.built())
    if node_cluster.kind != "named":  # what other tests applied is not helm's
        node_cluster.remove_crds()
    found = Release(node_cluster)
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"metadata": {"name": NS, "labels": restricted}}
    found.world.call("POST", "/api/v1/namespaces", namespace)
    yield found
    print(found.kubectl("logs", "deployment/evenkeel", check=False))  # shown where the test failed
    helm("uninstall", "evenkeel", "-n", NS, kubeconfig=node_cluster.kubeconfig, check=False)
    found.world.leave([NS])
    found.world.leave()
    found.world.close()
    node_cluster.kubectl("wait", "--for=delete", f"namespace/{NS}", "--timeout=120s", check=False)
