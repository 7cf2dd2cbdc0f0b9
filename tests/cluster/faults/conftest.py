"""One operator for each file of faults, as a user with no more rights than it needs.

Schedules stand in a namespace of their own for every test, prepared together before the first, so
that what must be waited for passes for all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cluster.faults.stage import (
    IN_A_NAMESPACE,
    RBAC,
    RIGHTS,
    SCENES,
    USER,
    Prepare,
    binding,
    has_right,
    in_time,
    put,
)
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import RefusedError, World, eventually

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}


@pytest.fixture(scope="module")
def limited(world: World) -> Iterator[Path]:
    """A kubeconfig of a user who may do what the operator does, but create Jobs nowhere yet."""
    roles = {USER: RIGHTS}
    roles |= {f"{USER}-{name}": rules for name, rules in IN_A_NAMESPACE.items()}
    for name, rules in roles.items():
        put(world, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    put(world, f"{RBAC}/clusterrolebindings", binding(USER))
    yield world.cluster.user_kubeconfig(USER)
    for name in roles:
        try:
            world.call("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        except RefusedError as error:
            if error.status != 404:
                raise
        world.call("DELETE", f"{RBAC}/clusterroles/{name}")


@pytest.fixture(scope="module")
def running(
    world: World,
    limited: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    directory = tmp_path_factory.mktemp("faults")
    # It does not start without the right to create Jobs; afterwards each scene gives and takes it.
    everywhere = f"{RBAC}/clusterrolebindings"
    world.call("POST", everywhere, binding(f"{USER}-creates"))
    asked = ("--kubeconfig", str(limited), "auth", "can-i", "create", "jobs.batch", "-A")
    eventually(lambda: world.cluster.kubectl(*asked, check=False).returncode == 0, "it may create")
    with operator(limited, directory=directory, settings=SETTINGS) as found:
        world.call("DELETE", f"{everywhere}/{USER}-creates")
        yield found


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, world: World, running: OperatorProcess
) -> Iterator[dict[str, str]]:
    wanted = {
        item.originalname
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    }
    chosen = {name: prepare for name, prepare in SCENES.items() if name in wanted}

    def set_up(part: tuple[str, Prepare]) -> tuple[str, str]:
        name, prepare = part
        mine = World(world.cluster)

        def when_allowed(world: World, ns: str) -> None:
            for name in IN_A_NAMESPACE:
                eventually(lambda name=name: has_right(world, ns, name), f"{name} is in force")
            prepare(world, ns)

        ns = in_time(mine, when_allowed)
        mine.close()
        return name, ns

    with ThreadPoolExecutor(4) as pool:
        found = dict(pool.map(set_up, chosen.items()))
    yield found
    world.leave(found.values())


@pytest.fixture
def ns(
    request: pytest.FixtureRequest, stage: dict[str, str], running: OperatorProcess
) -> Iterator[str]:
    assert isinstance(request.node, pytest.Function)
    yield stage[request.node.originalname]
    running.require_running()
