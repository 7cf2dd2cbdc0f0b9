"""A scene for each test: what must be there before it begins, prepared for all of a file together.

The fixtures that set the stage are in conftest.py; here is what the tests themselves need of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.cluster.world import Json, World, every, moment, seconds

USER = "evenkeel-operator"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TRIES_LIMIT = 10  # in two minutes, by pauses of 1, 2, 4, 8, 16, 30, 30, 30 s
MANY = {"successfulJobsHistoryLimit": 100, "failedJobsHistoryLimit": 100}

Prepare = Callable[[World, str], object]
SCENES: dict[str, Prepare] = {}


def scene(prepare: Prepare) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What must be there when the test below begins, in the namespace that it gets as `ns`."""

    def of(test: Callable[..., None]) -> Callable[..., None]:
        SCENES[test.__name__] = prepare
        return test

    return of


def times(count: int, *, seconds_apart: int = 1) -> Json:
    """A rule with that many due times, the first in a second or two."""
    rule = every(seconds_apart, first_in=1)
    end = seconds(rule["anchor"]) + seconds_apart * count + 1
    return {"interval": rule, "endTime": moment(end)}


def binding(role: str, *, name: str = "") -> Json:
    return {
        "metadata": {"name": name or role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }


def may_create(world: World, ns: str) -> None:
    bound = binding(f"{USER}-creates", name="creates")
    world.call("POST", f"{RBAC}/namespaces/{ns}/rolebindings", bound)


def assert_no_storm(world: World, ns: str) -> None:
    """Of what could not be created. Each pause is twice as long as the one before it; without
    pauses there would be hundreds of tries in the seconds that a test takes."""
    tried = Counter(name for name, _ in world.tries(ns))
    assert tried, "the log tells of no create"
    assert max(tried.values()) <= TRIES_LIMIT, f"a storm of creates: {tried.most_common(3)}"
