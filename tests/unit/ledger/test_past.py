"""Of which due times nobody knows: a schedule due every ten seconds from 100 on, and its old rows
were folded. What is told as a whole: tests/ledger/test_past.py."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.ledger.books import KEY, UID, book, every, span, timing

from evenkeel.core.effects import AskRuns
from evenkeel.core.messages import RunsTold
from evenkeel.ledger.past import Past
from evenkeel.ledger.rows import UNRECORDED, Book, Range, RunRow, SpanRow, Write
from evenkeel.model import RunId, RunState

FOLDED = span(0, 200, Range.DAY, succeeded=3)


def told(
    of: Book | None, *waiting: Write, first: int = 100, end: int = 200, mark_stands: bool = False
) -> RunsTold:
    """What is told of the runs by schedule that the book has."""
    past = Past(AskRuns("request", UID, KEY, first, end), waiting)
    runs = of.runs if of else ()
    past.add([RunRow(RunId(UID, due), KEY, state) for due, state in runs if first <= due < end])
    return past.told(of, mark_stands=mark_stands)


def test_due_times_before_the_first_timing_are_not_known():
    assert told(book(runs=[100, 110])).since == 99
    assert told(None, timing(150, every(10))).since == 150
    assert told(None).since == 199


def test_the_last_due_time_without_a_row_was_folded():
    assert told(book(FOLDED, runs=[160, 170, 180, 190])).since == 150
    assert told(book(FOLDED, runs=[160, 170, 180, 190]), first=155).since == 99


def test_a_row_that_was_folded_after_its_page_was_read_is_known():
    before, after = book(runs=[190]), book(FOLDED)
    past = Past(AskRuns("request", UID, KEY, 190, 200), ())
    past.add([RunRow(RunId(UID, due), KEY, state) for due, state in before.runs])
    assert past.told(after, mark_stands=False).since == 99


def test_range_rows_tell_of_due_times_in_a_folded_day():
    missed = span(140, 171, missed=4)
    assert told(book(FOLDED, missed, runs=[180, 190])).since == 130
    suspended = span(180, None, Range.OPEN)
    assert told(book(FOLDED, missed, suspended)).since == 130


def test_a_range_row_between_whose_due_times_a_run_was_folded_tells_of_none():
    """It cannot be said which of them it was."""
    missed = span(140, 171, missed=3)
    assert told(book(FOLDED, missed, runs=[180, 190])).since == 170
    assert told(book(FOLDED, missed, runs=[150, 180, 190])).since == 130


def test_runs_beyond_the_asked_time_stand_between_the_due_times_of_a_range_row_too():
    missed = span(140, 201, missed=5)
    assert told(book(FOLDED, missed, runs=[180, 200]), end=175).since == 130


def test_rows_that_wait_tell_as_those_that_are_stored():
    spans = [SpanRow(UID, KEY, 140, 200, {"missed": 6})]
    assert told(book(FOLDED), *spans).since == 130
    assert told(book(FOLDED), *spans, timing(135, every(20))).since == 130
    faster = [replace(spans[0], counts={"missed": 3}), timing(135, every(20))]
    assert told(book(FOLDED), *faster).since == 130
    row = RunRow(RunId(UID, 190), KEY, RunState.RUNNING)
    assert told(book(FOLDED), row, first=190).since == 99


def test_after_a_timing_that_cannot_be_read_nothing_in_a_folded_day_is_known():
    broken = replace(timing(149, every(10)), fields='{"hourly":{}}')
    assert told(book(FOLDED, timings=[timing(99, every(10)), broken])).since == 199


def test_unrecorded_spans_are_told_as_far_as_they_were_asked_for():
    lost = span(120, 141, reason=UNRECORDED, unrecorded=3)
    assert told(book(lost)).unknown == ((120, 141),)
    assert told(book(lost), first=130, end=135).unknown == ((130, 135),)
    assert told(book(lost), first=150).unknown == ()
    assert told(book(), lost).unknown == ((120, 141),)


def test_where_it_could_not_be_found_what_is_lacking_nothing_after_the_mark_is_known():
    assert told(book(mark=150), mark_stands=True).unknown == ((151, 200),)
    assert told(book(mark=250), mark_stands=True).unknown == ()
    assert told(None, mark_stands=True).unknown == ((100, 200),)
