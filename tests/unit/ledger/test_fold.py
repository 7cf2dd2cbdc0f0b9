"""Which rows of days, months and hours old rows become."""

from __future__ import annotations

import pytest

from evenkeel import rfc3339
from evenkeel.ledger import fold
from evenkeel.ledger.rows import Range, SpanRow
from evenkeel.model import DAY_S


def at(text: str) -> int:
    moment = rfc3339.read(text)
    assert moment is not None
    return moment


@pytest.mark.parametrize(
    ("instant", "month", "after"),
    [
        ("2026-01-31T23:59:59Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ],
)
def test_months_begin_and_end_where_the_calendar_says(instant: str, month: str, after: str) -> None:
    assert fold.month_of(at(instant)) == at(month)
    assert fold.month_after(at(month)) == at(after)


def test_a_day_that_reaches_into_the_next_month_is_folded_whole() -> None:
    first = at("2026-01-31T00:00:00Z")
    day = SpanRow("a", "default/a", first, first + 3 * DAY_S, {"skipped": 9}, kind=Range.DAY)

    month = fold.month_row(day)

    assert (month.first, month.end) == (at("2026-01-01T00:00:00Z"), first + 3 * DAY_S)
    assert month.counts == {"skipped": 9}


def test_a_range_that_ends_with_its_day_stays_in_it() -> None:
    first = at("2026-01-31T10:00:00Z")
    end = at("2026-02-01T00:00:00Z")

    day = fold.day_row(SpanRow("a", "default/a", first, end, {"missed": 1}))

    assert (day.first, day.end) == (end - DAY_S, end)
