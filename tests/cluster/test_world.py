"""What the tests of the operator rely on when the machine is so busy that a create comes late."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.cluster.faults.stage import in_time, times
from tests.cluster.harness import Cluster
from tests.cluster.world import TooLateError, World, moment, once


@pytest.fixture
def world(cluster: Cluster) -> Iterator[World]:
    cluster.install_crd()
    found = World(cluster)
    yield found
    found.leave()
    found.close()


def test_a_schedule_created_after_its_only_due_time_is_no_silent_miss(world: World) -> None:
    ns = world.namespace("late")

    with pytest.raises(TooLateError):
        world.create(ns, "once", at=moment(time.time() - 1))
    rule = times(3)
    time.sleep(2.1)
    with pytest.raises(TooLateError):
        world.create(ns, "thrice", **rule)

    assert world.create(ns, "in-time", at=once(due_in=30))["spec"]["at"]


def test_a_scene_that_came_too_late_is_set_anew_in_another_namespace(world: World) -> None:
    tried: list[str] = []

    def slow_at_first(world: World, ns: str) -> None:
        tried.append(ns)
        at = once(due_in=0 if len(tried) == 1 else 30)
        time.sleep(2 if len(tried) == 1 else 0)
        world.create(ns, "it", at=at)

    found = in_time(world, slow_at_first)

    assert [found] == tried[1:]
    assert world.schedule(found, "it")["spec"]["at"]
