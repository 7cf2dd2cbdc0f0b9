"""What several files ask of a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.world import World


@pytest.fixture(scope="module")
def world(kwok_cluster: Cluster) -> Iterator[World]:
    """The cluster on whose fake node Jobs finish, with the CRD."""
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.close()
