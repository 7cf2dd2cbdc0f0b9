"""Makes books for audits: of one schedule, due every ten seconds from 100 on, unless a test says
otherwise."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from evenkeel.ledger.rows import Book, Range, ScheduleRow, SpanRow, TimingRow
from evenkeel.model import Instant, Interval, RunState, Timing
from evenkeel.resource.timing import timing_fields

UID, KEY = "uid-report", "default/report"


def every(seconds: int, *, offset: int = 0, anchor: Instant | None = None) -> Timing:
    return Timing(Interval(seconds, offset, anchor))


def timing(after: Instant, made: Timing | None) -> TimingRow:
    fields = orjson.dumps(timing_fields(made)).decode() if made else ""
    return TimingRow(UID, KEY, after, fields)


def span(
    first: Instant,
    end: Instant | None,
    kind: Range = Range.VERDICT,
    reason: str = "",
    **counts: int,
) -> SpanRow:
    return SpanRow(UID, KEY, first, end, counts, reason, kind)


def book(
    *spans: SpanRow,
    runs: Iterable[Instant] = (),
    timings: Iterable[TimingRow] = (timing(99, every(10)),),
    since: Instant = 99,
    mark: Instant = 200,
    until: Instant | None = None,
    first: Instant = 0,
    end: Instant = 300,
) -> Book:
    rows = tuple(sorted(spans, key=lambda row: row.first))
    return Book(
        ScheduleRow(UID, KEY, since, mark, ended_at=until, until=until),
        tuple(timings),
        rows,
        tuple((due, RunState.SUCCEEDED) for due in sorted(runs)),
        first,
        end,
    )
