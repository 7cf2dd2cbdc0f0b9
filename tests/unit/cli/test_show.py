"""Bars and times, as a terminal shows them."""

import pytest

from evenkeel.cli import show


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        pytest.param(0, "", id="nothing draws nothing"),
        pytest.param(1, "▏", id="the least load still shows"),
        pytest.param(400, "████", id="half is half the columns"),
        pytest.param(450, "████▌", id="half a column is half a block"),
        pytest.param(800, "████████", id="the fullest fills all columns"),
    ],
)
def test_bar(value: int, drawn: str) -> None:
    assert show.bar(value, full=800, columns=8, blocks=True) == drawn


def test_bar_without_blocks_is_ascii() -> None:
    assert show.bar(450, full=800, columns=8, blocks=False) == "####"
    assert show.bar(1, full=800, columns=8, blocks=False) == "#"


def test_a_bar_of_no_load_is_empty() -> None:
    assert show.bar(0, full=0, columns=8, blocks=True) == ""
    assert show.spark([0, 0], full=0, blocks=True) == "  "


def test_spark_has_a_column_for_each_value() -> None:
    assert show.spark([0, 1, 4, 8], full=8, blocks=True) == " ▂▅█"
    assert show.spark([0, 1, 4, 8], full=8, blocks=False) == ""


def test_stamps_are_twenty_characters_to_the_end_of_time() -> None:
    assert show.stamp(0) == "1970-01-01T00:00:00Z"
    assert show.stamp(253_402_300_799) == "9999-12-31T23:59:59Z"
