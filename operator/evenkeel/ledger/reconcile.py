"""What a ledger lacks of one schedule, from what the status of the schedule tells. Pure.

The ledger's syncer calls `fill` at the first sight of a schedule, and where rows of it were
dropped. The status tells of the last runs, and of the last spans that got a verdict. What lies
further back nobody knows any more: it becomes range rows that are `unrecorded`. What is there
already stays, so filling twice changes nothing.

Not guaranteed: a timing that came and went between two statuses is not known here. Its runs get no
row, and what would have been due by the timing before it is unrecorded.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from evenkeel.core.effects import ScheduleKnown
from evenkeel.ledger.matching import Missing, match
from evenkeel.ledger.ranges import last_of, overlap
from evenkeel.ledger.reckoning import count_due, timing_text
from evenkeel.ledger.rows import (
    UNRECORDED,
    Book,
    MarkRow,
    Range,
    RunRow,
    ScheduleEnded,
    ScheduleRow,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import BY_SCHEDULE, ENDED, Attempt, Instant, RunId, RunState
from evenkeel.reasons import Reason
from evenkeel.resource.record import RecentRun, ToldSpan

ATTEMPT_AS_STORED = 0


def time_lacking(known: ScheduleKnown, row: ScheduleRow) -> tuple[Instant, Instant]:
    """[first, end) of the book that `fill` needs of a schedule that the store knows."""
    last = max([known.mark, known.after, row.mark, *(run.due for run in known.recent)])
    return min(row.mark, known.mark) + 1, last + 2


def fill(
    known: ScheduleKnown,
    book: Book | None,
    *,
    unfinished: Collection[RunId] = (),
    told: Sequence[Write] = (),
    held: Sequence[Write] = (),
) -> tuple[Write, ...]:
    """What is to be written, in this order, before the rows that wait. Its mark follows `told`.

    `book`: what the store has in `time_lacking`; None: it does not know the schedule. `unfinished`:
    runs whose rows in the store have no end. `told` and `held`: rows of the schedule that follow,
    and those that no stored status tells of yet.
    """
    if not known.told:
        return ()
    return tuple(_Filling(known, book, told=told, held=held).writes(unfinished))


class _Filling:
    """What the store has of a schedule and what waits to be written, and what is lacking then."""

    def __init__(
        self,
        known: ScheduleKnown,
        book: Book | None,
        *,
        told: Sequence[Write],
        held: Sequence[Write],
    ) -> None:
        self._known = known
        # A store that was lost may have got rows of it before that was noticed.
        self._is_new = book is None or not book.timings
        # By a clock that was ahead, a status may tell of a mark that is still to come.
        self._mark = min(known.mark, known.after)
        if book is None:
            schedule = ScheduleRow(known.uid, known.key, since=known.after, mark=0)
            book = Book(schedule, (), (), (), known.after + 1, known.after + 1)
        elif self._is_new:
            book = replace(book, schedule=replace(book.schedule, since=known.after, mark=0))
        self._stored_mark = book.schedule.mark
        self._stored_timings = book.timings
        self._book = _followed_by(book, told)
        self._with_rows = {due for due, _ in self._book.runs}
        """Due times of the runs that have rows once the mark is written."""
        self._book = _followed_by(self._book, held)
        self._waiting = {write.run for write in (*told, *held) if isinstance(write, RunRow)}

    def writes(self, unfinished: Collection[RunId]) -> Iterator[Write]:
        yield from self._with(self._timing())
        yield from self._with(self._runs())
        yield from self._with(self._ends(unfinished))
        yield from self._with(self._spans())
        stale = self._with(self._close_open())
        yield from stale
        alive = {run.due for run in self._known.alive if run.kind == BY_SCHEDULE}
        if stale or self._mark > self._stored_mark:
            yield from self._unrecorded(alive)
        # The rows of these may get lost as well.
        follows = alive | {run.due for run in self._waiting if run.kind == BY_SCHEDULE}
        mark = min([self._mark, *(due - 1 for due in follows - self._with_rows)])
        if mark > self._stored_mark:
            yield MarkRow(self._known.uid, self._known.key, mark)

    def _with(self, writes: Iterable[Write]) -> Sequence[Write]:
        """What follows goes on from these."""
        writes = list(writes)
        self._book = _followed_by(self._book, writes)
        self._with_rows |= {write.run.due for write in writes if isinstance(write, RunRow)}
        return writes

    def _timing(self) -> Iterator[TimingRow]:
        known, timings = self._known, self._book.timings
        text, after = timing_text(known.timing), known.after
        if not self._is_new:
            after = max(known.timing_since, timings[0].after)
            in_force = max(0, bisect_right(timings, after, key=lambda row: row.after) - 1)
            told = next((row for row in timings[in_force:] if row.fields == text), None)
            if told is not None:
                yield from self._take_back(max(told.after, after), text)
                return
            yield from self._take_back(after, text)
        if after > 0 or text:  # of a schedule that was never accepted nothing was due
            yield TimingRow(known.uid, known.key, after, text)

    def _take_back(self, after: Instant, text: str) -> Iterator[TimingRow]:
        """Timings that the store has, and of which the process died before a status told: they are
        reckoned not to have been."""
        for row in self._stored_timings:
            if row.after > after and row.fields != text:
                yield replace(row, fields=text)

    # --- runs -------------------------------------------------------------------------------------

    def _runs(self) -> Iterator[RunRow]:
        """The runs that the status tells of and that have no row."""
        there = {due for due, _ in self._book.runs}
        for row in sorted(self._known.recent, key=lambda row: row.due):
            passed = row.due <= self._stored_mark
            if row.due in there or passed or row.state not in ENDED or self._is_of_span(row):
                continue
            if row.due <= self._book.schedule.since or self._were_due(row.due, row.due, 1):
                yield row_of_recent(RunId(self._known.uid, row.due), self._known.key, row)

    def _is_of_span(self, row: RecentRun) -> bool:
        """Whether it stands for a span in `recent`: a row that names its last due time alone."""
        if row.job or row.state not in (RunState.SKIPPED, RunState.MISSED):
            return False
        told = ((span.last, span.state) for span in self._known.spans)
        stored = ((span.end, state) for span in self._book.spans for state in span.counts)
        return (row.due, row.state) in told or (row.due + 1, row.state) in stored

    def _ends(self, unfinished: Collection[RunId]) -> Iterator[RunRow]:
        """Runs whose ends the store was not told: nobody else will tell them."""
        known = self._known
        recent = {row.due: row for row in known.recent if row.state in ENDED}
        for run in sorted(unfinished):
            told_yet = run in known.alive or run in self._waiting or run.due > self._mark
            if run.kind != BY_SCHEDULE or told_yet:  # nobody but the store knows requested ones
                continue
            if run.due in recent:
                yield row_of_recent(run, known.key, recent[run.due])
            else:
                lost, reason = RunState.LOST, Reason.OUTCOME_UNKNOWN
                yield RunRow(run, known.key, lost, reason, attempt=ATTEMPT_AS_STORED)

    # --- spans ------------------------------------------------------------------------------------

    def _spans(self) -> Iterator[SpanRow]:
        """The verdicts on spans that have no row. Of runs whose Jobs vanished (lost) the runs
        themselves have rows."""
        known = self._known
        there = [row for row in self._book.spans if _is_verdict(row)]
        for told in known.spans:
            span = self._from_since(told)
            # No mark passes what was over before the schedule began.
            before = span.last <= self._book.schedule.since
            passed = span.last <= self._stored_mark and span.reason is not Reason.PAST
            if passed or span.state is RunState.LOST:
                continue
            row = SpanRow(
                known.uid,
                known.key,
                span.first,
                span.last + 1,
                {span.state.value: span.count},
                span.reason.value,
            )
            claimed = self._claimed(span.first, span.last)
            if not any(overlap(row, other) for other in there) and (
                before or self._were_due(span.first, span.last, span.count + claimed)
            ):
                there.append(row)
                yield row

    def _from_since(self, span: ToldSpan) -> ToldSpan:
        """The part of a span that is later than the store's knowledge of the schedule: all due
        times in it that are no runs have the verdict of the span."""
        since = self._book.schedule.since
        if not span.first <= since < span.last:
            return span
        count = count_due(self._book.timings, since + 1, span.last + 1) - self._claimed(
            since + 1, span.last
        )
        if not 0 < count <= span.count:
            return span
        first = self._first_due(since + 1, span.last)
        return replace(span, first=first, count=count)

    def _first_due(self, first: Instant, last: Instant) -> Instant:
        """The first due time in [first, last], in which there is one."""
        while first < last:
            middle = (first + last) // 2
            if count_due(self._book.timings, first, middle + 1):
                last = middle
            else:
                first = middle + 1
        return first

    def _claimed(self, first: Instant, last: Instant) -> int:
        """How many due times in [first, last] are runs."""
        return sum(first <= due <= last for due, _ in self._book.runs)

    def _were_due(self, first: Instant, last: Instant, count: int) -> bool:
        """Whether so many due times may have been there. Not by a timing that nobody knows."""
        timings = self._book.timings
        ends = all(count_due(timings, due, due + 1) for due in (first, last))
        return ends and count_due(timings, first, last + 1) >= count

    def _close_open(self) -> Iterator[SpanClosed]:
        """Open rows of which it was not told that they are closed: they would cover everything."""
        known = self._known
        for row in self._book.spans:
            if _is_open(row) and row.reason not in known.open_as:
                yield SpanClosed(known.uid, known.key, row.reason, self._mark)

    # --- the rest ---------------------------------------------------------------------------------

    def _unrecorded(self, alive: set[Instant]) -> Iterator[SpanRow]:
        """One range row for all due times between two others that nothing tells of."""
        book = self._book
        runs = dict.fromkeys(alive, RunState.RUNNING) | dict(book.runs)
        schedule = replace(book.schedule, mark=self._mark)
        end = max(book.end, self._mark + 1)
        asked = replace(book, schedule=schedule, runs=tuple(sorted(runs.items())), end=end)
        verdicts = sorted(
            (row for row in book.spans if _is_verdict(row)), key=lambda row: row.first
        )
        pieces: dict[tuple[int, int], list[Missing]] = {}
        for missing in match(asked).missing:
            place = bisect_right(verdicts, missing.first, key=lambda row: row.first)
            inside = place > 0 and missing.first <= last_of(verdicts[place - 1])
            pieces.setdefault((place, missing.first if inside else 0), []).append(missing)
        for several in pieces.values():
            first, end = several[0].first, several[-1].last + 1
            counts = {UNRECORDED: sum(each.count for each in several)}
            yield SpanRow(self._known.uid, self._known.key, first, end, counts, UNRECORDED)


def row_of_recent(run: RunId, key: str, row: RecentRun) -> RunRow:
    """The row of a run that has ended, as a status tells of it."""
    attempts: tuple[Attempt, ...] = ()
    if row.job:
        attempts = (
            Attempt(
                row.attempt,
                row.job,
                started=row.started,
                finished=row.finished,
                exit_code=row.exit_code,
                reason=row.exit_reason,
            ),
        )
    return RunRow(
        run,
        key,
        row.state,
        row.reason,
        attempt=row.attempt,
        job=row.job,
        started=row.started,
        finished=row.finished,
        exit_code=row.exit_code,
        exit_reason=row.exit_reason,
        attempts=attempts,
    )


def _is_verdict(row: SpanRow) -> bool:
    return row.kind is Range.VERDICT


def _is_open(row: SpanRow) -> bool:
    return row.kind is Range.OPEN and row.end is None


def _followed_by(book: Book, writes: Iterable[Write]) -> Book:
    """The book as it is once these are written."""
    runs, spans = dict(book.runs), list(book.spans)
    timings = {row.after: row for row in book.timings}
    schedule = book.schedule
    for write in writes:
        match write:
            case RunRow(run=run, state=state):
                if run.kind == BY_SCHEDULE:
                    runs[run.due] = state
            case SpanRow():
                spans = [*(row for row in spans if not _closes(write, row)), write]
            case SpanClosed(reason=reason):
                spans = [row for row in spans if not (_is_open(row) and row.reason == reason)]
            case TimingRow(after=after):
                timings[after] = write
            case ScheduleEnded(until=until):
                schedule = replace(schedule, until=until)
            case MarkRow():
                pass
    return replace(
        book,
        schedule=schedule,
        timings=tuple(timings[after] for after in sorted(timings)),
        spans=tuple(sorted(spans, key=lambda row: row.first)),
        runs=tuple(sorted(runs.items())),
    )


def _closes(write: SpanRow, row: SpanRow) -> bool:
    """Whether a verdict ends what was open, or stands there already."""
    if not _is_open(row):
        return row == write
    return row.reason == write.reason and _is_verdict(write) and row.first <= last_of(write)
