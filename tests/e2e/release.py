"""A release of the chart on a real node, as its administrator sees it, and the Jobs that it runs.

Called by the tests of this directory; the fixture `release` is in conftest.py.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from tests.cluster.harness import Cluster, images
from tests.cluster.operator_process import samples
from tests.cluster.world import World

Json = dict[str, Any]
NS = "evenkeel"


def work(**job: Any) -> Json:
    """A Job whose Pod runs and says so."""
    container = {
        "name": "work",
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["true"],
    }
    pod = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 1}
    return {"spec": {"backoffLimit": 0, **job, "template": {"spec": pod}}}


class Release:
    """The chart in a cluster, as its administrator sees it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.world = World(cluster)
        self.began_at = time.time()
        self.uninstalled_at = 0.0

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        done = self.cluster.kubectl("-n", NS, *arguments, check=check)
        return done.stdout + ("" if check else done.stderr)

    def pod(self) -> Json:
        """The operator's only Pod that is not about to go."""
        found = self.world.items(f"/api/v1/namespaces/{NS}/pods")
        (pod,) = (each for each in found if not each["metadata"].get("deletionTimestamp"))
        return pod

    def metrics(self) -> dict[str, float]:
        service = f"/api/v1/namespaces/{NS}/services/evenkeel-metrics:8081/proxy/metrics"
        return samples(self.kubectl("get", "--raw", service))

    def succeeded(self, ns: str) -> Counter[str]:
        """How many runs of each schedule there succeeded, by their statuses."""
        path = f"/apis/evenkeel.dev/v1alpha1/namespaces/{ns}/scheduledjobs"
        return Counter(
            {
                each["metadata"]["name"]: each["status"].get("counts", {}).get("succeeded", 0)
                for each in self.world.items(path)
            }
        )
