"""Many ScheduledJobs at once, over several connections: one alone takes ten times as long.

Called by tests. Not guaranteed: in which order they are created.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from tests.cluster.harness import Cluster
from tests.cluster.world import Json, World

WORKERS = 6


def create_all(cluster: Cluster, ns: str, specs: Mapping[str, Json]) -> dict[str, Json]:
    """Create a schedule of each name; as the API server has them."""
    names = list(specs)

    def some(mine: list[str]) -> dict[str, Json]:
        world = World(cluster)
        made = {name: world.create(ns, name, **specs[name]) for name in mine}
        world.close()
        return made

    with ThreadPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(some, [names[first::WORKERS] for first in range(WORKERS)]))
    return {name: made for part in parts for name, made in part.items()}
