"""The score and the two bounds, compared with all possible arrangements of a few runs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.balance.score import (
    distribution_score,
    least_unevenness,
    peak_bound,
    peak_to_mean,
    unevenness,
)

A_FEW_SLOTS = 4


def by_weight(weights: list[int]) -> np.ndarray:
    return np.bincount(np.array(weights, np.int64), minlength=1001)


def arranged(weights: list[int], slots: list[int], *, count: int) -> np.ndarray:
    return np.bincount(np.array(slots), weights=weights, minlength=count).astype(np.int64)


def every_arrangement(weights: list[int]) -> list[np.ndarray]:
    return [
        arranged(weights, list(slots), count=A_FEW_SLOTS)
        for slots in itertools.product(range(A_FEW_SLOTS), repeat=len(weights))
    ]


@pytest.mark.parametrize(
    ("slots", "weights", "score"),
    [
        pytest.param([0] * 96, [], 1.0, id="nothing runs"),
        pytest.param([5, *[0] * 95], [5], 1.0, id="one run cannot be more even"),
        pytest.param([96, *[0] * 95], [1] * 96, 0.0, id="all in one slot"),
        pytest.param([1] * 96, [1] * 96, 1.0, id="one in every slot"),
        pytest.param([5, 3, *[0] * 94], [5, 3], 1.0, id="two unequal ones, apart"),
        pytest.param([1000, 2, *[1] * 94], [1000, *[1] * 96], 1.0, id="a heavy one by itself"),
        pytest.param([2] * 4 + [1] * 92, [1] * 100, 1.0, id="100 runs, no slot more than two"),
        pytest.param([3, 2, 2] + [1] * 92 + [1], [1] * 100, 93 / 94, id="one too many"),
        pytest.param([7, 7, 7] + [0] * 93, [7, 7, 7], 1.0, id="three runs in three slots"),
    ],
)
def test_the_score_of(slots: list[int], weights: list[int], score: float) -> None:
    found = distribution_score(np.array(slots, np.int64), by_weight(weights))
    assert 0 <= found <= 1
    if score in (0.0, 1.0):
        assert found == score
    else:
        assert 0.9 < found < 1


weights_of_a_few = st.lists(st.sampled_from([1, 2, 3, 5, 6, 10, 100]), min_size=1, max_size=5)


@given(weights_of_a_few)
def test_no_arrangement_is_more_even_than_the_bound(weights: list[int]) -> None:
    histogram = by_weight(weights)
    bound = least_unevenness(A_FEW_SLOTS, sum(weights), histogram)
    assert min(map(unevenness, every_arrangement(weights))) >= bound


@given(weights_of_a_few)
def test_no_arrangement_has_a_lower_peak_than_the_bound(weights: list[int]) -> None:
    bound = peak_bound(A_FEW_SLOTS, by_weight(weights))
    assert min(map(peak_to_mean, every_arrangement(weights))) >= bound - 1e-12


@given(st.lists(st.integers(0, 95), max_size=300), st.data())
def test_a_score_lies_in_0_to_1_and_1_means_as_even_as_whole_runs_can_be(
    slots: list[int], data: st.DataObject
) -> None:
    weights = data.draw(st.lists(st.integers(1, 1000), min_size=len(slots), max_size=len(slots)))
    load = arranged(weights, slots, count=96) if slots else np.zeros(96, np.int64)
    histogram = by_weight(weights)
    score = distribution_score(load, histogram)
    assert 0 <= score <= 1
    if score == 1:
        assert unevenness(load) <= least_unevenness(96, sum(weights), histogram)


@pytest.mark.parametrize("runs", [1, 50, 96, 97, 100, 191, 192, 1000])
def test_equal_runs_spread_over_all_slots_score_1(runs: int) -> None:
    load = arranged([3] * runs, [n % 96 for n in range(runs)], count=96)
    assert distribution_score(load, by_weight([3] * runs)) == 1
    assert peak_to_mean(load) == pytest.approx(peak_bound(96, by_weight([3] * runs)))


def test_the_heaviest_run_bounds_the_peak() -> None:
    assert peak_bound(96, by_weight([1000, *[1] * 96])) == pytest.approx(1000 * 96 / 1096)
