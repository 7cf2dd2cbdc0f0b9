"""Lanes: namespaces take turns; inside one it goes by priority, due time and name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.core.lanes import Lanes


def lanes(*pushes: tuple[str, int, int, str]) -> list[tuple[str, int, int, str]]:
    queue: Lanes[tuple[str, int, int, str]] = Lanes()
    for push in pushes:
        ns, priority, due, name = push
        queue.push(push, ns=ns, priority=priority, due=due, name=name)
    return [queue.pop() for _ in range(len(queue))]


def test_namespaces_take_turns():
    order = lanes(*[("a", 0, 1, f"n{k}") for k in range(3)], ("b", 0, 1, "x"), ("b", 0, 1, "y"))
    assert [push[0] for push in order] == ["a", "b", "a", "b", "a"]


def test_inside_a_namespace_it_goes_by_priority_then_due_then_name():
    pushes = [("a", 0, 2, "x"), ("a", 5, 9, "x"), ("a", 0, 1, "y"), ("a", 0, 1, "x")]
    assert lanes(*pushes) == [
        ("a", 5, 9, "x"),
        ("a", 0, 1, "x"),
        ("a", 0, 1, "y"),
        ("a", 0, 2, "x"),
    ]


def test_an_empty_lane_has_nothing_to_give():
    with pytest.raises(IndexError):
        Lanes().pop()


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.integers(-2, 2), st.integers(0, 3), st.sampled_from("xy")
        ),
        max_size=40,
    )
)
def test_lanes_are_fair_complete_and_in_order(pushes):
    order = lanes(*pushes)
    assert sorted(order) == sorted(pushes)
    for ns in "abc":
        own = [(-priority, due, name) for n, priority, due, name in order if n == ns]
        assert own == sorted(own)
    waiting = {ns: sum(push[0] == ns for push in pushes) for ns in "abc"}
    for position, push in enumerate(order):
        waiting[push[0]] -= 1
        others = [ns for ns in "abc" if ns != push[0] and waiting[ns] > 0]
        upcoming = {later[0] for later in order[position + 1 : position + 1 + len(others)]}
        assert set(others) <= upcoming | {push[0]}


def test_a_namespace_that_may_not_is_passed_over_and_keeps_its_turn() -> None:
    queue: Lanes[str] = Lanes()
    for ns in ("closed", "open", "other"):
        queue.push(ns, ns=ns, priority=0, due=0, name="a")
    assert queue.pop_where(lambda ns: ns != "closed") == "open"
    assert queue.pop() == "closed"
    assert queue.pop_where(lambda ns: ns != "other") is None
    assert len(queue) == 1
