"""What pytest's workers take, of what computes and of what waits."""

from __future__ import annotations

import pytest
from tests.side_by_side import in_order, next_for, unit_of, waits

COMPUTES = unit_of("tests/unit/core/test_mark.py::test_one[a-b::c]")
SHORT = unit_of("tests/cluster/test_slice.py::test_one")
LONG = unit_of("tests/cluster/test_kills.py::test_killed[ten]")
NODE = unit_of("tests/cluster/test_node.py::TestPods::test_one")


def test_tests_that_share_a_stage_or_a_node_stay_together() -> None:
    assert unit_of("tests/cluster/test_slice.py::test_another[x]") == SHORT
    assert unit_of("tests/e2e/test_pods.py::test_another") == NODE
    assert unit_of("tests/cluster/test_kills.py::test_another") != LONG
    assert COMPUTES == "tests/unit/core/test_mark.py::test_one"
    assert waits(unit_of("tests/chart/test_api_server.py::test_one"))
    assert not waits(unit_of("tests/chart/test_objects.py::test_one"))


def test_what_is_new_waits_unless_it_is_a_unit_or_the_simulator() -> None:
    assert waits(unit_of("tests/somewhere/test_new.py::test_one"))
    assert not waits(COMPUTES)
    assert not waits(unit_of("tests/sim/test_seeds.py::test_one[1]"))


def test_the_first_worker_computes_and_the_others_begin_with_the_longest_waits() -> None:
    queue = in_order([SHORT, COMPUTES, LONG, NODE])

    assert next_for("gw0", queue) == COMPUTES
    assert next_for("gw1", queue) == LONG
    assert next_for("gw2", in_order([SHORT, COMPUTES, NODE])) == NODE


@pytest.mark.parametrize(("worker", "left"), [("gw0", SHORT), ("gw1", COMPUTES)])
def test_a_worker_that_has_run_out_helps_the_others(worker: str, left: str) -> None:
    assert next_for(worker, [left]) == left
