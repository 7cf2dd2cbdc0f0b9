"""Durations: which texts are accepted, which refused, and how a duration is printed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import BadField
from evenkeel.when import format_duration, parse_duration

READ = {
    "45s": 45,
    "7m": 420,
    "90m": 5400,
    "100m": 6000,
    "1h30m": 5400,
    "30m1h": 5400,
    "3d": 259_200,
    "2w": 1_209_600,
    "0s": 0,
    "007m": 420,
}


@pytest.mark.parametrize(("text", "seconds"), READ.items(), ids=READ)
def test_a_duration_is_read(text, seconds):
    assert parse_duration(text, field="interval.every") == seconds


WRONG = {
    "nothing": "",
    "no unit": "25",
    "no number": "m",
    "a fraction": "1.5h",
    "a sign": "-5m",
    "a space": "1h 30m",
    "upper case": "5M",
    "a unit of Go": "100ms",
    "years": "1y",
    "Arabic digits": "\u0665m",
    "a line break at the end": "5m\n",
    "5,000 characters": "1m" * 2500,
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_a_wrong_duration_names_the_callers_field_and_an_example(text):
    with pytest.raises(BadField) as raised:
        parse_duration(text, field="interval.offset")
    assert raised.value.field == "interval.offset"
    assert "1h30m" in raised.value.sentence
    assert len(raised.value.sentence) < 200


SHOWN = {0: "0s", 59: "59s", 1500: "25m", 5400: "1h30m", 86_400: "1d", 8 * 86_400: "1w1d"}


@pytest.mark.parametrize(("seconds", "text"), SHOWN.items(), ids=SHOWN.values())
def test_a_duration_is_shown(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(0, 10**9))
def test_what_is_shown_reads_back(seconds):
    assert parse_duration(format_duration(seconds), field="interval.every") == seconds
