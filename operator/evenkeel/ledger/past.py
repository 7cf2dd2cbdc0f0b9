"""What the ledger knows of the past of one schedule: which runs there were, and of which due times
nobody knows. Pure; `questions` calls it for a request that plans a range.

A due time is known where a run has a row for it, where a range row says that it was missed or
skipped, and where the ledger has kept a row for each run. Folding takes the rows of old runs: of a
due time in a row of a day or month that has no row of its own, only the number is left.

Not guaranteed: that the row of an old requested run is still there. It is dropped with age, and
where the store is too large; the due time then counts as what its scheduled run tells.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from evenkeel.core.effects import AskRuns
from evenkeel.core.messages import PastRun, RunsTold
from evenkeel.ledger.merge import merge
from evenkeel.ledger.ranges import is_unrecorded, last_of
from evenkeel.ledger.reckoning import Stretch, count_due, stretches
from evenkeel.ledger.rows import Book, Range, RunRow, SpanRow, TimingRow, Write
from evenkeel.model import BY_SCHEDULE, DAY_S, Instant, RunId

WINDOW_S = 7 * DAY_S
"""So much of a folded time is reckoned at once, the newest first: mostly the first holds the due
time that is looked for."""


class Past:
    """Gathers what there is of a schedule in the asked time: rows that wait to be written, rows of
    the store page by page, and at last the book."""

    def __init__(self, asked: AskRuns, waiting: Sequence[Write]) -> None:
        """`waiting`: rows that may not be stored yet, taken before the first page is read."""
        self._asked = asked
        self._waiting = waiting
        self._merged: dict[RunId, RunRow | None] = {
            write.run: None for write in waiting if isinstance(write, RunRow)
        }
        """The runs that wait, as they are once all that waits is written."""
        self._runs: list[PastRun] = []
        """All others."""

    def add(self, page: Iterable[RunRow | SpanRow]) -> None:
        """Rows of the store. A large range has many pages: this is done between two of them."""
        for row in page:
            if not isinstance(row, RunRow) or row.run.uid != self._asked.uid:
                continue
            if row.run in self._merged:
                self._merged[row.run] = row
            else:
                self._runs.append(_past(row))

    def told(self, book: Book | None, *, mark_stands: bool) -> RunsTold:
        """The answer. `book`: read after all pages, so that a row that was folded in between is not
        missed; None: the store does not know the schedule. `mark_stands`: it could not be found
        what the ledger lacks of the schedule after its mark."""
        runs = [*self._runs, *self._waiting_runs()]
        known = _Known(book, self._waiting)
        dues = {run.due for run in runs if run.kind == BY_SCHEDULE}
        return RunsTold(
            self._asked.request,
            runs=tuple(runs),
            since=known.since(self._asked, dues),
            unknown=tuple(sorted(known.unknown(self._asked, mark_stands=mark_stands))),
        )

    def _waiting_runs(self) -> Iterator[PastRun]:
        for write in self._waiting:
            if isinstance(write, RunRow):
                row = merge(self._merged[write.run], write)
                self._merged[write.run] = row or self._merged[write.run]
        for run, row in self._merged.items():
            if row is not None and self._asked.first <= run.due < self._asked.end:
                yield _past(row)


def _past(row: RunRow) -> PastRun:
    had_job = bool(row.job) or any(attempt.job for attempt in row.attempts)
    return PastRun(row.run.due, row.run.kind, row.state, had_job)


# --- of which due times nobody knows --------------------------------------------------------------


class _Known:
    """The book, and what waits to be written of it."""

    def __init__(self, book: Book | None, waiting: Iterable[Write]) -> None:
        self.mark = book.schedule.mark if book else 0
        self.dues = {due for due, _ in book.runs} if book else set[Instant]()
        """Of the runs by schedule in the time of the range rows."""
        self.spans = list(book.spans if book else ())
        timings = {one.after: one for one in book.timings} if book else {}
        for write in waiting:
            if isinstance(write, SpanRow):
                self.spans.append(write)
            elif isinstance(write, TimingRow):
                timings[write.after] = write
        self.timings = [timings[after] for after in sorted(timings)]

    def unknown(self, asked: AskRuns, *, mark_stands: bool) -> Iterator[tuple[Instant, Instant]]:
        """Spans in the asked time that are unrecorded."""
        for span in self.spans:
            if is_unrecorded(span) and span.kind is Range.VERDICT:
                first, end = max(span.first, asked.first), min(last_of(span) + 1, asked.end)
                if first < end:
                    yield first, end
        if mark_stands and self.mark + 1 < asked.end:
            yield max(self.mark + 1, asked.first), asked.end

    def since(self, asked: AskRuns, dues: Collection[Instant]) -> Instant:
        """Each due time later than this in the asked time is known, unless it is unrecorded.
        `dues`: those of the runs by schedule in the asked time."""
        if not self.timings:
            return asked.end - 1
        return max(self.timings[0].after, self._last_folded(asked, dues))

    def _last_folded(self, asked: AskRuns, dues: Collection[Instant]) -> Instant:
        """The last due time that has no row because its row was folded; 0: there is none."""
        folded = [row for row in self.spans if row.kind in (Range.DAY, Range.MONTH)]
        if not folded:
            return 0
        last, reckoning = 0, _Reckoning(self.timings, self.spans, self.dues.union(dues))
        for row in sorted(folded, key=last_of, reverse=True):
            first, end = max(row.first, asked.first, last + 1), min(last_of(row) + 1, asked.end)
            last = max(last, reckoning.last_bare(first, end))
        return last


class _Reckoning:
    """Finds due times without a row."""

    def __init__(
        self,
        timings: Sequence[TimingRow],
        spans: Iterable[SpanRow],
        with_rows: Collection[Instant],
    ) -> None:
        """`with_rows`: due times of runs by schedule in the asked time, and in all of `spans`."""
        self._timings = timings
        self._with_rows = np.fromiter(sorted(with_rows), np.int64, len(with_rows))
        self._verdicts = [row for row in spans if self._tells_of_all(row)]

    def _tells_of_all(self, row: SpanRow) -> bool:
        """Whether a range row tells of all due times in it that have no row. It does not where
        runs stood between them, and were folded."""
        if row.kind is not Range.VERDICT or row.end is None:
            return row.kind is Range.OPEN
        runs = np.searchsorted(self._with_rows, (row.first, row.end))
        bare = count_due(self._timings, row.first, row.end) - int(runs[1] - runs[0])
        return not is_unrecorded(row) and bare <= sum(row.counts.values())

    def last_bare(self, first: Instant, end: Instant) -> Instant:
        """The last due time in [first, end) that nothing tells of; 0: all are told of."""
        while first < end:
            begin = max(first, end - WINDOW_S)
            parts = list(stretches(self._timings, begin, end))
            if found := max(map(self._last_bare_of, parts), default=0):
                return found
            end = begin
        return 0

    def _last_bare_of(self, stretch: Stretch) -> Instant:
        if stretch.due is None:
            return stretch.end - 1
        bare = stretch.due[~np.isin(stretch.due, self._with_rows)]
        for row in self._verdicts:
            bare = bare[(bare < row.first) | (bare > last_of(row))]
        return int(bare[-1]) if len(bare) else 0
