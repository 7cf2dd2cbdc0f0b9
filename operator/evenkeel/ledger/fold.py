"""Which old rows become rows of days, months and hours. All stores ask here. Pure.

A row of a day begins with its UTC day and ends with it, or with the day in which the last of the
range rows ends that were folded into it: nobody knows how the due times of a range are spread over
its days.
"""

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evenkeel.ledger.rows import Minute, Range, SpanRow
from evenkeel.model import BY_SCHEDULE, DAY_S, Instant, RunState

HOUR_S = 3600


def day_of(instant: Instant) -> Instant:
    """Where the UTC day of an instant begins."""
    return instant - instant % DAY_S


def month_of(instant: Instant) -> Instant:
    """Where the UTC month of an instant begins."""
    day = dt.datetime.fromtimestamp(instant, dt.UTC)
    return int(dt.datetime(day.year, day.month, 1, tzinfo=dt.UTC).timestamp())


def month_after(month: Instant) -> Instant:
    """Where the month after this one begins."""
    return month_of(month + 32 * DAY_S)


def day_rows(uid: str, key: str, runs: Iterable[tuple[Instant, str, RunState]]) -> list[SpanRow]:
    """What becomes of runs (due, kind, state) of a schedule. Requested runs only go: no due time
    asked for them."""
    days: dict[Instant, Counter[str]] = {}
    for due, kind, state in runs:
        if kind == BY_SCHEDULE:
            days.setdefault(day_of(due), Counter())[state] += 1
    return [
        SpanRow(uid, key, day, day + DAY_S, dict(counts), kind=Range.DAY)
        for day, counts in sorted(days.items())
    ]


def day_row(span: SpanRow) -> SpanRow:
    """What becomes of a VERDICT row."""
    assert span.end is not None
    day = day_of(span.first)
    end = day_of(span.end - 1) + DAY_S
    return SpanRow(span.uid, span.key, day, end, dict(span.counts), kind=Range.DAY)


def month_row(span: SpanRow) -> SpanRow:
    """What becomes of a DAY row."""
    assert span.end is not None
    month = month_of(span.first)
    end = max(month_after(month), span.end)
    return SpanRow(span.uid, span.key, month, end, dict(span.counts), kind=Range.MONTH)


def add(one: SpanRow | None, other: SpanRow) -> SpanRow:
    """Two rows of the same day or month as one."""
    if one is None:
        return other
    assert one.end is not None
    assert other.end is not None
    counts = dict(Counter(one.counts) + Counter(other.counts))
    return SpanRow(
        one.uid, one.key, one.first, max(one.end, other.end), counts, one.reason, one.kind
    )


def hour_of(instant: Instant) -> Instant:
    """Where the hour of an instant begins."""
    return instant - instant % HOUR_S


def hour(minutes: Sequence[Minute]) -> Minute:
    """Minutes of one hour, ascending, as one row: sums of runs, the largest of what is counted at
    one moment, the mean score."""
    scores = [one.score for one in minutes if one.score is not None]
    return Minute(
        at=hour_of(minutes[0].at),
        ended=_sum(one.ended for one in minutes),
        lateness=_columns(one.lateness for one in minutes),
        load=max(one.load for one in minutes),
        score=sum(scores) / len(scores) if scores else None,
        active=max(one.active for one in minutes),
        index_runs=max(one.index_runs for one in minutes),
        span_s=HOUR_S,
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _columns(rows: Iterable[Sequence[int]]) -> tuple[int, ...]:
    total: list[int] = []
    for row in rows:
        total += [0] * (len(row) - len(total))
        for place, count in enumerate(row):
            total[place] += count
    return tuple(total)
