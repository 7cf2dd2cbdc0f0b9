"""The audit: what was expected is recorded, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.unit.ledger.books import KEY, UID, book, every, span, timing
from tests.unit.ledger.naive_audit import naive_audit

from evenkeel.ledger.audit import Difference, Found, Wrong, audit_book
from evenkeel.ledger.matching import FIRST_FEW
from evenkeel.ledger.rows import UNRECORDED, Book, Range, SpanRow, TimingRow
from evenkeel.model import At, Cron, Timing

EVERY_TEN = range(100, 201, 10)


def wrong(found: Found) -> dict[Wrong, tuple[int, tuple[int, ...]]]:
    return {one.wrong: (one.count, one.instants) for one in found.differences}


def test_every_due_time_up_to_the_mark_has_a_run():
    found = audit_book(book(runs=EVERY_TEN))
    assert found == Found(expected=11, recorded=11, not_yet=9)
    assert found.balanced


def test_what_lies_above_the_mark_is_expected_of_nobody_yet():
    found = audit_book(book(runs=[*EVERY_TEN, 220]))
    assert found == Found(expected=12, recorded=12, not_yet=8)


def test_what_is_after_the_end_of_a_schedule_is_never_expected():
    found = audit_book(book(runs=range(100, 150, 10), until=145))
    assert found == Found(expected=5, recorded=5)


def test_a_run_after_the_end_of_a_schedule_was_due_all_the_same():
    found = audit_book(book(runs=range(100, 160, 10), until=145))
    assert found == Found(expected=6, recorded=6)


def test_a_due_time_without_a_row_is_missing():
    found = audit_book(book(runs=[due for due in EVERY_TEN if due != 150]))
    assert (found.expected, found.recorded, found.missing) == (11, 10, 1)
    assert found.differences == (Difference(UID, KEY, Wrong.MISSING, 1, (150,)),)


def test_a_run_that_was_never_due_is_extra():
    found = audit_book(book(runs=[*EVERY_TEN, 151]))
    assert (found.expected, found.recorded, found.extra) == (11, 12, 1)
    assert wrong(found) == {Wrong.EXTRA: (1, (151,))}


def test_a_run_before_the_ledger_began_is_neither():
    found = audit_book(book(runs=[50, 55, *EVERY_TEN]))
    assert found == Found(expected=11, recorded=11, not_yet=9)


def test_a_missing_run_and_an_extra_one_do_not_cancel_out():
    found = audit_book(book(runs=[151, *(due for due in EVERY_TEN if due != 150)]))
    assert (found.expected, found.recorded) == (11, 11)
    assert wrong(found) == {Wrong.MISSING: (1, (150,)), Wrong.EXTRA: (1, (151,))}


def test_a_range_row_counts_the_due_times_without_a_run():
    found = audit_book(book(span(120, 151, missed=3), runs=[100, 110, 130, *range(160, 201, 10)]))
    assert found == Found(expected=11, recorded=11, not_yet=9)


def test_a_range_row_that_counts_too_few_hides_nothing():
    found = audit_book(book(span(120, 151, missed=2), runs=[100, 110, *range(160, 201, 10)]))
    assert wrong(found) == {Wrong.MISSING: (2, (140, 150))}


def test_a_range_row_that_counts_too_many_is_extra():
    found = audit_book(book(span(120, 151, missed=6), runs=[100, 110, *range(160, 201, 10)]))
    assert wrong(found) == {Wrong.EXTRA: (2, (120,))}


def test_range_rows_of_two_places_do_not_make_up_for_each_other():
    rows = span(100, 131, missed=5), span(140, 171, missed=3)
    found = audit_book(book(*rows, runs=[180, 190, 200]))
    assert wrong(found) == {Wrong.MISSING: (1, (170,)), Wrong.EXTRA: (1, (100,))}


def test_range_rows_that_lie_over_each_other_share_their_due_times():
    """A day is folded while a row of a verdict still lies over its end."""
    rows = span(100, 151, Range.DAY, succeeded=4), span(130, 201, skipped=7)
    assert audit_book(book(*rows)) == Found(expected=11, recorded=11, not_yet=9)


def test_unrecorded_due_times_are_recorded_and_counted_by_themselves():
    row = span(100, 151, missed=1, **{UNRECORDED: 5})
    found = audit_book(book(row, runs=range(160, 201, 10)))
    assert found == Found(expected=11, recorded=11, unrecorded=5, not_yet=9)


def test_an_open_range_row_covers_everything_from_its_first_second():
    found = audit_book(book(span(141, None, Range.OPEN, "suspended"), runs=range(100, 141, 10)))
    assert found == Found(expected=5, recorded=5)


def test_an_open_range_row_of_a_schedule_that_was_deleted_covers_all_up_to_its_end():
    opened = span(141, 181, Range.OPEN, "suspended")
    found = audit_book(book(opened, runs=range(100, 141, 10), until=180))
    assert found == Found(expected=5, recorded=5)


def test_a_run_in_an_open_range_row_is_recorded_and_must_have_been_due():
    opened = span(141, None, Range.OPEN, "suspended")
    found = audit_book(book(opened, runs=[*range(100, 151, 10), 155]))
    assert (found.expected, found.recorded) == (6, 7)
    assert wrong(found) == {Wrong.EXTRA: (1, (155,))}


def test_each_timing_counts_until_the_next_one_inclusive():
    timings = timing(99, every(10)), timing(150, every(7)), timing(170, None)
    runs = [*range(100, 151, 10), 154, 161, 168]
    assert audit_book(book(timings=timings, runs=runs)) == Found(expected=9, recorded=9)


def test_a_schedule_without_a_timing_has_nothing_to_answer_for():
    assert audit_book(book(timings=(), runs=[101])) == Found()


@pytest.mark.parametrize("fields", ["{", "{}", '{"interval": {"every": "10s"}}', "[]"])
def test_a_timing_that_cannot_be_read_is_told_and_makes_nothing_missing_or_extra(fields: str):
    unreadable = replace(timing(150, every(10)), fields=fields)
    timings = timing(99, every(10)), unreadable, timing(180, every(10))
    rows = span(140, 171, missed=9), span(172, 175, missed=3)
    found = audit_book(book(*rows, timings=timings, runs=[100, 110, 120, 130, 161, 190, 200]))
    assert wrong(found) == {Wrong.UNREADABLE: (1, (150,))}
    assert not found.balanced


def test_a_zone_that_is_gone_cannot_be_reckoned_with():
    gone = timing(99, Timing(Cron("* * * * *"), zone="Mars/Phobos"))
    assert wrong(audit_book(book(timings=[gone]))) == {Wrong.UNREADABLE: (1, (99,))}


def test_the_hash_in_a_cron_text_is_that_of_the_schedule():
    hashed = timing(99, Timing(Cron("H * * * *")))
    asked = book(timings=[hashed], mark=7_300, end=7_300)
    (at,) = {due % 3600 for due in wrong(audit_book(asked))[Wrong.MISSING][1]}
    assert audit_book(replace(asked, runs=tuple((due, 0) for due in (at, at + 3600)))).balanced


def test_more_than_a_week_is_audited_piece_by_piece():
    day, end = 86_400, 40 * 86_400
    hourly = timing(99, every(3600))
    runs = [due for due in range(3600, end, 3600) if not 9 * day <= due < 25 * day]
    row = span(9 * day, 25 * day, missed=16 * 24)
    found = audit_book(book(row, timings=[hourly], runs=runs, mark=end, end=end))
    assert found == Found(expected=959, recorded=959)


def test_one_due_time_ever():
    once = timing(99, Timing(At(150)))
    assert audit_book(book(timings=[once], runs=[150])) == Found(expected=1, recorded=1)


def test_a_difference_names_the_first_few_only():
    found = audit_book(book())
    assert wrong(found) == {Wrong.MISSING: (11, tuple(EVERY_TEN[:FIRST_FEW]))}


def test_a_row_that_begins_before_the_ledger_did_may_count_more():
    """It counts runs as well that the ledger does not answer for."""
    row = span(50, 131, Range.DAY, succeeded=9)
    assert audit_book(book(row, runs=range(140, 201, 10))).balanced


INSTANTS = st.integers(0, 60)
COUNTS = st.dictionaries(st.sampled_from(["missed", "skipped", UNRECORDED]), st.integers(0, 4))


@st.composite
def timings(draw: st.DrawFn) -> list[TimingRow]:
    afters = sorted(draw(st.sets(INSTANTS, min_size=1, max_size=4)))
    seconds = st.integers(1, 12)
    made = st.none() | st.builds(lambda s, o: every(s, offset=o % s), seconds, seconds)
    return [
        timing(after, draw(made | st.builds(Timing, st.builds(At, INSTANTS)))) for after in afters
    ]


@st.composite
def books(draw: st.DrawFn) -> Book:
    rows = draw(timings())
    closed = st.builds(
        lambda first, length, counts: span(first, first + length, **counts),
        INSTANTS,
        st.integers(1, 25),
        COUNTS,
    )
    opened = st.builds(lambda first: span(first, None, Range.OPEN), INSTANTS)
    spans = draw(st.lists(closed, max_size=4)) + draw(st.lists(opened, max_size=1))
    runs = draw(st.sets(INSTANTS, max_size=25))
    return book(
        *spans,
        runs=runs,
        timings=rows,
        since=rows[0].after,
        mark=draw(INSTANTS),
        until=draw(st.none() | INSTANTS),
        end=draw(st.integers(0, 90)),
    )


def _may_be_left_over(row: SpanRow, asked: Book) -> bool:
    """It begins before the book does, and another row counts due times of the same time: which of
    the two is left over is open, and it is wrong for the other one alone."""
    others = (other for other in asked.spans if other is not row and other.kind is not Range.OPEN)
    return row.first <= asked.schedule.since and any(
        other.first < (row.end or 0) and row.first < (other.end or 0) for other in others
    )


@given(books())
def test_it_finds_what_a_naive_audit_finds(asked: Book):
    assume(not any(_may_be_left_over(row, asked) for row in asked.spans))
    assert replace(audit_book(asked), differences=()) == naive_audit(asked)


@given(books())
def test_what_it_counts_adds_up(asked: Book):
    found = audit_book(asked)
    assert found.expected - found.missing == found.recorded - found.extra
    assert found.balanced == (found.missing == found.extra == 0)
