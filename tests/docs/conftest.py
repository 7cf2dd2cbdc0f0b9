from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import operator
from tests.cluster.world import World
from tests.docs.reader import Reader


@pytest.fixture
def reader(kwok_cluster: Cluster, tmp_path: Path) -> Iterator[Reader]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("docs")
    kubeconfig = yaml.safe_load(kwok_cluster.kubeconfig.read_text())
    for context in kubeconfig["contexts"]:
        context["context"]["namespace"] = ns
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    with operator(
        kwok_cluster.kubeconfig, directory=tmp_path, flags=("--namespace", ns)
    ) as running:
        yield Reader(world, running, ns, tmp_path)
    world.leave([ns])
    world.close()
