"""Pages of rows: the order in which they stand, the cursor from one to the next, and runs merged
with ranges. All stores ask here. Pure.

Newest first: by due time, a range row by its last instant; then by the number that the store gave
the schedule; then runs before ranges; then by name, the greatest first: in the order of code
points, which is that of UTF-8 bytes. A row that is inserted while somebody
turns pages is on a later page or on none; no row is on two.
"""

import base64
import binascii
import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import orjson

from evenkeel.ledger.ranges import COUNTED, last_of
from evenkeel.ledger.rows import Page, Range, RunQuery, RunRow, SpanRow
from evenkeel.ledger.store import BadCursor
from evenkeel.model import BY_SCHEDULE

LONGEST_PAGE = 10_000


class Place(NamedTuple):
    """Where a row stands; newer rows are greater."""

    at: int
    schedule: int
    """The store's number of the schedule."""
    is_run: int
    name: str
    """Kind of the run, or kind and reason of the range."""
    first: int = 0


def run_place(row: RunRow, schedule: int) -> Place:
    return Place(row.run.due, schedule, 1, row.run.kind)


def span_place(row: SpanRow, schedule: int) -> Place:
    return Place(last_of(row), schedule, 0, f"{row.kind}/{row.reason}", row.first)


Placed = tuple[Place, RunRow | SpanRow]


def page(query: RunQuery, runs: Iterable[Placed], spans: Iterable[Placed]) -> Page:
    """The first rows of two streams, each from its newest row on, without those before the
    cursor."""
    limit = max(1, min(query.limit, LONGEST_PAGE))
    merged: Iterator[Placed] = heapq.merge(runs, spans, key=lambda placed: placed[0], reverse=True)
    found = list(islice(merged, limit + 1))
    following = write_cursor(found[limit - 1][0]) if len(found) > limit else ""
    return Page(tuple(row for _, row in found[:limit]), following)


def write_cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(list(place))).decode().rstrip("=")


def read_cursor(text: str) -> Place | None:
    """The place after which the page begins; None: it is the first page. BadCursor."""
    if not text:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        raw = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError, ValueError) as error:
        raise BadCursor("cursor: not one that a page ended with: begin without one") from error
    kinds = (int, int, int, str, int)
    if (
        not isinstance(raw, list)
        or len(raw) != len(kinds)
        or any(type(value) is not kind for value, kind in zip(raw, kinds, strict=True))
        or any(type(value) is int and abs(value) > 1 << 62 for value in raw)
    ):
        raise BadCursor("cursor: not one that a page ended with: begin without one")
    return Place(*raw)


def wants_spans(query: RunQuery) -> bool:
    """Whether range rows may be on a page. They stand for due times of the timing, which no request
    asked for."""
    return (
        query.ranges
        and not query.request
        and (not query.kinds or BY_SCHEDULE in query.kinds)
        and (not query.states or bool(query.states & COUNTED))
    )


def wants_span(query: RunQuery, row: SpanRow) -> bool:
    """Whether a range row is one that the query asks for. An open one is, from its first instant
    on, at any time."""
    if query.states and not query.states & row.counts.keys():
        return False
    if query.reasons and row.reason not in query.reasons:
        return False
    if row.kind is Range.OPEN and row.end is None:
        return query.until is None or row.first < query.until
    last = last_of(row)
    return (query.since is None or last >= query.since) and (
        query.until is None or last < query.until
    )
