"""What a batch makes of the rows it concerns: they are read first, changed here, and written
together. Pure.

`writing` reads what `Needs` names, and writes alone: nothing else changes these rows meanwhile but
the promotion of deferred runs, whose rows are locked.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from evenkeel.ledger.merge import Hot, cancelled, defer, merge
from evenkeel.ledger.ranges import Fits, fits, last_of, overlap
from evenkeel.ledger.rows import (
    MarkRow,
    Range,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
    uid_of,
)
from evenkeel.model import BY_SCHEDULE, ENDED, Instant, RunId

SpanId = tuple[str, str, Instant, str]
"""uid, kind, first and reason of a range row."""


def span_id(span: SpanRow) -> SpanId:
    return span.uid, str(span.kind), span.first, span.reason


@dataclass(slots=True)
class Stretch:
    """The range rows that a batch needs of one schedule."""

    first: Instant
    last: Instant
    all_kinds: bool
    """Else those that are folded."""


@dataclass(slots=True)
class Needs:
    """Which stored rows a batch concerns."""

    keys: dict[str, str] = field(default_factory=dict)
    """Of schedules by uid, in the order in which the batch names them."""
    runs: dict[RunId, None] = field(default_factory=dict)
    stretches: dict[str, Stretch] = field(default_factory=dict)
    ended: dict[str, None] = field(default_factory=dict)
    """Uids of schedules that were deleted: all that is unfinished of them is needed."""

    def add(self, write: Write) -> None:
        uid = uid_of(write)
        self.keys.setdefault(uid, write.key)
        match write:
            case RunRow():
                self.runs[write.run] = None
                if write.run.kind == BY_SCHEDULE:
                    self._stretch(uid, write.run.due, write.run.due, all_kinds=False)
            case SpanRow():
                last = write.first if write.end is None else write.end - 1
                self._stretch(uid, write.first, last, all_kinds=True)
            case SpanClosed():
                self._stretch(uid, write.last, write.last, all_kinds=True)
            case ScheduleEnded():
                self._stretch(uid, write.until, write.until, all_kinds=True)
                self.ended[uid] = None

    def _stretch(self, uid: str, first: Instant, last: Instant, *, all_kinds: bool) -> None:
        known = self.stretches.get(uid)
        if known is None:
            self.stretches[uid] = Stretch(first, last, all_kinds)
        else:
            known.first, known.last = min(known.first, first), max(known.last, last)
            known.all_kinds |= all_kinds


@dataclass(slots=True)
class Known:
    """A schedule as it is stored."""

    id: int
    key: str
    mark: Instant
    ended_at: Instant | None
    until: Instant | None
    phase: str


@dataclass(slots=True)
class Changes:
    """Rows as they are stored, and what was changed since they were read."""

    schedules: dict[str, Known]
    runs: dict[RunId, RunRow]
    hot: dict[RunId, Hot]
    spans: dict[SpanId, SpanRow]
    new_runs: set[RunId] = field(default_factory=set)
    changed_schedules: set[str] = field(default_factory=set)
    changed_runs: set[RunId] = field(default_factory=set)
    changed_hot: set[RunId] = field(default_factory=set)
    dropped_hot: set[RunId] = field(default_factory=set)
    changed_spans: set[SpanId] = field(default_factory=set)
    dropped_spans: set[SpanId] = field(default_factory=set)
    """Dropped before the changed ones are put: one may be both."""
    timings: dict[tuple[str, Instant], str] = field(default_factory=dict)
    _spans_of: dict[str, set[SpanId]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for known in self.spans:
            self._spans_of.setdefault(known[0], set()).add(known)

    def apply(self, write: Write, *, term: int) -> bool:
        """Whether the write is legal; what it changes is remembered."""
        match write:
            case RunRow():
                return self._write_run(write, term)
            case SpanRow(kind=Range.OPEN):
                if self.schedules[write.uid].ended_at is None:
                    self._open(write)
            case SpanRow():
                return self._write_verdict(write)
            case SpanClosed():
                for span in self._open_rows(write.uid):
                    if span.reason == write.reason:
                        self._drop_span(span)
            case TimingRow():
                self.timings[write.uid, write.after] = write.fields
            case MarkRow():
                schedule = self.schedules[write.uid]
                if schedule.mark != write.mark:
                    schedule.mark = write.mark
                    self.changed_schedules.add(write.uid)
            case ScheduleEnded():
                self._end(write)
        return True

    # --- runs ----------------------------------------------------------------------------------

    def _write_run(self, new: RunRow, term: int) -> bool:
        stored = self.runs.get(new.run)
        if stored is None and self._is_folded(new.run, new.run.due):
            return True
        merged = merge(stored, new)
        if merged is None:
            return False
        key = self.schedules[new.run.uid].key
        if merged.key != key or merged.due_at is not None or merged.priority:
            merged = replace(merged, key=key, due_at=None, priority=0)
        if stored is None:
            self.new_runs.add(new.run)
        elif merged != stored and new.run not in self.new_runs:
            self.changed_runs.add(new.run)
        self.runs[new.run] = merged
        self._defer(new if new.key == key else replace(new, key=key), term)
        return True

    def _defer(self, new: RunRow, term: int) -> None:
        known = self.hot.get(new.run)
        hot = defer(known, new, term=term)
        if hot is None:
            if known is not None:
                self._drop_hot(new.run)
        elif hot != known:
            self.hot[new.run] = hot
            self.changed_hot.add(new.run)
            self.dropped_hot.discard(new.run)

    def _drop_hot(self, run: RunId) -> None:
        del self.hot[run]
        self.changed_hot.discard(run)
        self.dropped_hot.add(run)

    def _is_folded(self, run: RunId, last: Instant) -> bool:
        """What was due up to the mark and lies in a folded row is counted there."""
        return (
            run.kind == BY_SCHEDULE
            and last <= self.schedules[run.uid].mark
            and any(
                span.kind in (Range.DAY, Range.MONTH)
                and span.first <= run.due
                and last <= last_of(span)
                for span in self._spans(run.uid)
            )
        )

    # --- ranges --------------------------------------------------------------------------------

    def _spans(self, uid: str) -> list[SpanRow]:
        return [self.spans[known] for known in self._spans_of.get(uid, ())]

    def _open_rows(self, uid: str) -> list[SpanRow]:
        return [span for span in self._spans(uid) if span.kind is Range.OPEN and span.end is None]

    def _open(self, new: SpanRow) -> None:
        if all(span.reason != new.reason for span in self._open_rows(new.uid)):
            self._put_span(new)

    def _write_verdict(self, new: SpanRow) -> bool:
        touched = [span for span in self._spans(new.uid) if overlap(span, new)]
        verdicts = [span for span in touched if span.kind is Range.VERDICT]
        match fits(new, verdicts):
            case Fits.REFUSED:
                return False
            case Fits.NEW if not self._is_folded(RunId(new.uid, new.first), last_of(new)):
                self._put_span(new)
        for span in touched:
            if span.kind is Range.OPEN and span.reason == new.reason:
                self._drop_span(span)
        return True

    def _put_span(self, new: SpanRow) -> None:
        known = span_id(new)
        key = self.schedules[new.uid].key
        self.spans[known] = replace(new, key=key, counts=dict(new.counts))
        self._spans_of.setdefault(new.uid, set()).add(known)
        self.changed_spans.add(known)

    def _drop_span(self, old: SpanRow) -> None:
        known = span_id(old)
        del self.spans[known]
        self._spans_of[old.uid].discard(known)
        self.changed_spans.discard(known)
        self.dropped_spans.add(known)

    # --- the end of a schedule -----------------------------------------------------------------

    def _end(self, write: ScheduleEnded) -> None:
        schedule = self.schedules[write.uid]
        if schedule.ended_at is None:
            schedule.ended_at, schedule.until = write.at, write.until
        schedule.phase = schedule.phase or write.phase
        self.changed_schedules.add(write.uid)
        for span in self._open_rows(write.uid):
            if write.until < span.first:
                self._drop_span(span)
            else:
                self._put_span(replace(span, end=write.until + 1))
        for run in _of(write.uid, self.runs):
            if self.runs[run].state not in ENDED:
                self.runs[run] = cancelled(self.runs[run], at=write.at)
                if run not in self.new_runs:
                    self.changed_runs.add(run)
        for run in _of(write.uid, self.hot):
            self._drop_hot(run)


def _of(uid: str, runs: Iterable[RunId]) -> list[RunId]:
    return [run for run in runs if run.uid == uid]
