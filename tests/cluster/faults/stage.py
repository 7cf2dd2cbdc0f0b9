"""A scene for each test: what must be there before it begins, prepared for all of a file together.

The fixtures that set the stage are in conftest.py; here is what the tests themselves need of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from tests.cluster.world import (
    Json,
    RefusedError,
    TooLateError,
    World,
    eventually,
    every,
    moment,
    seconds,
)

USER = "evenkeel-operator"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SCENE_TRIES = 5
TRIES_FIRST, TRIES_EVERY_S = 8, 30  # the pauses grow up to that, and within grace less
MANY = {"successfulJobsHistoryLimit": 100, "failedJobsHistoryLimit": 100}


RIGHTS: list[Json] = [
    {
        "apiGroups": ["evenkeel.dev"],
        "resources": ["scheduledjobs"],
        "verbs": ["get", "list", "watch"],
    },
    {
        "apiGroups": ["evenkeel.dev"],
        "resources": ["runrequests"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/status"], "verbs": ["patch"]},
    {"apiGroups": ["evenkeel.dev"], "resources": ["runrequests/status"], "verbs": ["patch"]},
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/finalizers"], "verbs": ["update"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list", "create", "patch"]},
]
IN_A_NAMESPACE: dict[str, list[Json]] = {
    "creates": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}],
    "pods": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
}
"""Rights that each scene gives to the operator, by the name of the binding. A scene may take one
away."""

Prepare = Callable[[World, str], object]
SCENES: dict[str, Prepare] = {}


def scene(prepare: Prepare) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What must be there when the test below begins, in the namespace that it gets as `ns`."""

    def of(test: Callable[..., None]) -> Callable[..., None]:
        SCENES[test.__name__] = prepare
        return test

    return of


def times(count: int, *, seconds_apart: int = 1, first_in: float = 1) -> Json:
    """A rule with that many due times, the first in so many seconds or one more."""
    rule = every(seconds_apart, first_in=first_in)
    end = seconds(rule["anchor"]) + seconds_apart * count + 1
    return {"interval": rule, "endTime": moment(end)}


def binding(role: str, *, name: str = "", user: str = USER) -> Json:
    return {
        "metadata": {"name": name or role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


def put(world: World, path: str, body: Json) -> None:
    """Create it, in place of what an earlier session may have left."""
    try:
        world.call("DELETE", f"{path}/{body['metadata']['name']}")
    except RefusedError as error:
        if error.status != 404:
            raise
    world.call("POST", path, body)


def give_right(world: World, ns: str, name: str) -> None:
    bound = binding(f"{USER}-{name}", name=name)
    world.call("POST", f"{RBAC}/namespaces/{ns}/rolebindings", bound)


def take_right(world: World, ns: str, name: str) -> None:
    """Take a right of IN_A_NAMESPACE away, and wait until that is in force."""
    world.call("DELETE", f"{RBAC}/namespaces/{ns}/rolebindings/{name}")
    eventually(lambda: not has_right(world, ns, name), f"the right {name} is taken away")


def has_right(world: World, ns: str, name: str) -> bool:
    """Whether the API server lets the operator do that: it reads bindings behind."""
    [rule] = IN_A_NAMESPACE[name]
    [group], [resource], [verb] = rule["apiGroups"], rule["resources"], rule["verbs"]
    wanted = {"namespace": ns, "verb": verb, "group": group, "resource": resource}
    review = {"spec": {"user": USER, "resourceAttributes": wanted}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(world.call("POST", path, review)["status"]["allowed"])


def in_time(world: World, prepare: Prepare) -> str:
    """The namespace of a scene; a scene that came too late on a busy machine is set anew."""
    for _ in range(SCENE_TRIES):
        ns = world.namespace("faults")
        for name in IN_A_NAMESPACE:
            give_right(world, ns, name)
        try:
            prepare(world, ns)
        except TooLateError:
            world.leave([ns])
        else:
            return ns
    raise AssertionError(f"{SCENE_TRIES} times the first due time was past before it was created")


def assert_no_storm(world: World, ns: str) -> None:
    """Of what could not be created. Each pause is twice as long as the one before it; without
    pauses there would be hundreds of tries in the seconds that a test takes."""
    tried = Counter(name for name, _ in world.tries(ns))
    assert tried, "the log tells of no create"
    space = world.get(f"/api/v1/namespaces/{ns}")
    age_s = time.time() - seconds(space["metadata"]["creationTimestamp"])
    limit = TRIES_FIRST + age_s / TRIES_EVERY_S
    assert max(tried.values()) <= limit, f"a storm of creates: {tried.most_common(3)}"
