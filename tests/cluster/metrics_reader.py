"""A token whose holder may read /metrics/schedules, as the chart's ClusterRole lets Prometheus."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.world import World

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULE = {"nonResourceURLs": ["/metrics/schedules"], "verbs": ["get"]}


@contextmanager
def reader(world: World, ns: str) -> Iterator[str]:
    """The token; the right goes at the end."""
    name = f"metrics-reader-{secrets.token_hex(3)}"
    token = world.token(ns, name)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": ns}
    made = {"metadata": {"name": name}, "rules": [RULE]}
    bound = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
    world.call("POST", f"{RBAC}/clusterroles", made)
    world.call("POST", f"{RBAC}/clusterrolebindings", bound)
    try:
        yield token
    finally:
        world.call("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        world.call("DELETE", f"{RBAC}/clusterroles/{name}")
