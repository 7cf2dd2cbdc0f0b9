"""A refused batch is halved until the bad rows stand alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenkeel.ledger.halving import Halving


def written(rows: list[int], bad: set[int]) -> tuple[list[int], list[int], int]:
    """What is written in which order, what is bad, and how many parts were tried."""
    order: list[int] = []
    tries = 0
    for part in (halving := Halving(rows)):
        tries += 1
        if bad & set(part):
            halving.refused(part)
        else:
            order += part
    return order, halving.bad, tries


@given(count=st.integers(0, 60), bad=st.sets(st.integers(0, 59), max_size=5))
def test_all_other_rows_are_written_in_their_order(count: int, bad: set[int]) -> None:
    rows = list(range(count))

    order, refused, _ = written(rows, bad)

    assert order == [row for row in rows if row not in bad]
    assert refused == [row for row in rows if row in bad]


def test_one_bad_row_in_500_takes_few_tries() -> None:
    assert written(list(range(500)), {321})[2] <= 20
    assert written(list(range(500)), set())[2] == 1
    assert written([], set()) == ([], [], 0)
