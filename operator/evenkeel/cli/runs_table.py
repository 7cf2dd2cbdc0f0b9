"""Rows of the ledger as lines of a table, for people.

The first page decides how wide the columns are; a later, longer word moves the rest of its own line
only. A name is never cut.
"""

from collections.abc import Sequence

from evenkeel.cli import show
from evenkeel.ledger.rows import Range, RunRow, SpanRow
from evenkeel.model import Instant
from evenkeel.when import format_duration

TITLES = ("DUE", "SCHEDULE", "STATE", "REASON", "ATTEMPT", "LATE", "LASTED", "JOB", "REQUEST")

EXACT_BELOW_S = 10
"""A lateness below it is shown to the millisecond."""


class RunsTable:
    """Lines under one title."""

    def __init__(self) -> None:
        self._widths: list[int] = []

    def lines(self, rows: Sequence[RunRow | SpanRow]) -> str:
        """The lines of one page, the title first."""
        if not rows:
            return ""
        cells = [_of_run(row) if isinstance(row, RunRow) else _of_range(row) for row in rows]
        made = []
        if not self._widths:
            runs = [each for each, row in zip(cells, rows, strict=True) if isinstance(row, RunRow)]
            self._widths = [max(map(len, column)) for column in zip(TITLES, *runs, strict=True)]
            names = max(len(each[1]) for each in cells)
            self._widths[1] = max(self._widths[1], names)
            made.append(show.title(self._line(TITLES)))
        made += [self._line(each) for each in cells]
        return "\n".join([*made, ""])

    def _line(self, cells: Sequence[str]) -> str:
        padded = [f"{cell:<{width}}" for cell, width in zip(cells, self._widths, strict=False)]
        return "  ".join(padded).rstrip()


def _of_run(row: RunRow) -> tuple[str, ...]:
    return (
        show.stamp(row.run.due),
        row.key,
        str(row.state),
        str(row.reason),
        str(row.attempt),
        _late(row.lateness_s),
        _lasted(row.started, row.finished),
        row.job,
        row.request,
    )


def _of_range(row: SpanRow) -> tuple[str, ...]:
    """First due time, schedule, and the rest in words."""
    counts = ", ".join(f"{count:,} {state}" for state, count in sorted(row.counts.items()))
    until = "goes on" if row.end is None else f"until {show.stamp(row.end)}"
    why = str(row.reason) if row.kind in (Range.VERDICT, Range.OPEN) else f"of the {row.kind}"
    return (show.stamp(row.first), row.key, ", ".join(filter(None, [counts, why, until])))


def _late(lateness_s: float | None) -> str:
    if lateness_s is None:
        return ""
    return f"{lateness_s:.3f}s" if lateness_s < EXACT_BELOW_S else format_duration(int(lateness_s))


def _lasted(started: Instant | None, finished: Instant | None) -> str:
    if started is None or finished is None:
        return ""
    return format_duration(max(0, finished - started))
