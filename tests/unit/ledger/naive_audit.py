"""An audit that takes every due time by itself: slow, and simple enough to be believed.

Each range row is as many places as it counts due times. Due times and places are matched one by
one; the due times that must be recorded are matched first, and a matched one stays matched, so no
other choice of places records more of either kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import orjson

from evenkeel.ledger.audit import Found
from evenkeel.ledger.rows import UNRECORDED, Book, Range
from evenkeel.model import Instant
from evenkeel.resource.timing import timing_from_fields
from evenkeel.when import compile_timing

Place = tuple[int, int]
"""A range row by its number, and which of the due times that it counts."""


def naive_audit(book: Book) -> Found:
    """The numbers of `audit_book`, without its differences."""
    schedule = book.schedule
    told = schedule.mark if schedule.until is None else min(schedule.mark, schedule.until)
    dues = [due for due in due_times(book) if due > schedule.since and book.first <= due < book.end]
    runs = {due for due, _ in book.runs if due > schedule.since and book.first <= due < book.end}
    bare = [due for due in dues if due not in runs]
    must = [due for due in bare if due <= told and not _is_open(book, due)]
    may = [due for due in bare if due not in must]

    matched: dict[Place, Instant] = {}
    missing = [due for due in must if not _find_place(book, due, matched, set())]
    idle = [due for due in may if not _find_place(book, due, matched, set())]
    matched_runs = len(runs & set(dues))
    surplus = [
        (number, nth)
        for number, nth in _places(book)
        if (number, nth) not in matched and book.spans[number].first > schedule.since
    ]
    extra = len(runs) - matched_runs + len(surplus)
    recorded = matched_runs + len(matched)
    last = schedule.until if schedule.until is not None else max([*dues, 0])
    return Found(
        expected=recorded + len(missing),
        recorded=recorded + extra,
        unrecorded=sum(row.counts.get(UNRECORDED, 0) for row in book.spans),
        missing=len(missing),
        extra=extra,
        not_yet=sum(told < due <= last and not _is_open(book, due) for due in idle),
    )


def due_times(book: Book) -> Iterator[Instant]:
    """Second by second."""
    for row, following in pairwise([*book.timings, None]):
        assert row is not None
        timing = timing_from_fields(orjson.loads(row.fields)) if row.fields else None
        if timing is None:
            continue
        dues = compile_timing(timing, seed=row.key)
        last = following.after if following else book.end
        for second in range(max(row.after + 1, book.first), min(last + 1, book.end)):
            if dues.count(second, second + 1):
                yield second


def _is_open(book: Book, due: Instant) -> bool:
    return any(row.kind is Range.OPEN and row.first <= due for row in book.spans)


def _places(book: Book) -> Iterator[Place]:
    for number, row in enumerate(book.spans):
        for nth in range(sum(row.counts.values())):
            yield number, nth


def _find_place(book: Book, due: Instant, matched: dict[Place, Instant], tried: set[Place]) -> bool:
    """Give the due time a place, and those that stand in its way others."""
    for place in _places(book):
        row = book.spans[place[0]]
        if place in tried or row.end is None or not row.first <= due < row.end:
            continue
        tried.add(place)
        if place not in matched or _find_place(book, matched[place], matched, tried):
            matched[place] = due
            return True
    return False
