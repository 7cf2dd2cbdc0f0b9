"""A store in memory: the specification that the real stores are compared with.

It is slow and does one thing at a time. It never waits, starts no thread and reads no clock, so the
simulator uses it too: a crash there keeps the `Tables`, and the next process opens them again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

from evenkeel.ledger import fold
from evenkeel.ledger.cleaning import clean, clean_text, storable
from evenkeel.ledger.exports import (
    COLUMNS,
    attempts_of,
    attempts_text,
    counts_of,
    counts_text,
    lateness_of,
    lateness_text,
)
from evenkeel.ledger.merge import WAITING, Hot, cancelled, defer, merge, put_back
from evenkeel.ledger.pages import (
    Place,
    page,
    read_cursor,
    run_place,
    span_place,
    wants_span,
    wants_spans,
)
from evenkeel.ledger.ranges import Fits, fits, last_of, overlap, widen
from evenkeel.ledger.rows import (
    Batch,
    Book,
    Deferred,
    Exported,
    Facts,
    Folded,
    Holder,
    MarkRow,
    Minute,
    Page,
    Promoted,
    Range,
    Retention,
    RunQuery,
    RunRow,
    ScheduleEnded,
    ScheduleRow,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
    Written,
)
from evenkeel.ledger.store import BadStore, OlderTerm
from evenkeel.model import BY_SCHEDULE, ENDED, Instant, RunId, RunState

BYTES_A_ROW = 200


@dataclass(slots=True)
class Schedule:
    number: int
    uid: str
    key: str
    mark: Instant = 0
    ended_at: Instant | None = None
    until: Instant | None = None
    phase: str = ""
    timings: dict[Instant, str] = field(default_factory=dict)

    @property
    def row(self) -> ScheduleRow:
        since = min(self.timings, default=0)
        return ScheduleRow(
            self.uid, self.key, since, self.mark, self.ended_at, self.until, self.phase
        )


@dataclass(slots=True)
class Cold:
    """A row with its time of recording."""

    row: RunRow
    recorded: float


@dataclass(slots=True)
class Span:
    row: SpanRow
    recorded: float


@dataclass(slots=True)
class Tables:
    """All that is kept; it outlives the store that writes it."""

    born: str = "born"
    since: float = 0.0
    written_at: float = 0.0
    term: int = 0
    numbers: int = 0
    schedules: dict[str, Schedule] = field(default_factory=dict)
    runs: dict[RunId, Cold] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    hot: dict[RunId, Hot] = field(default_factory=dict)
    minutes: dict[Instant, Minute] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return BYTES_A_ROW * (len(self.runs) + len(self.spans) + len(self.hot) + len(self.minutes))


class MemoryStore:
    """A `RunStore` over `Tables`."""

    def __init__(self, tables: Tables, *, readonly: bool = False) -> None:
        self.tables = tables
        self.readonly = readonly

    # --- writing ----------------------------------------------------------------------------------

    async def write(self, batch: Batch, *, term: int) -> Written:
        self._guard(term)
        accepted = illegal = bad = 0
        for write in batch.writes:
            cleaned = clean(write)
            if not storable(cleaned):
                bad += 1
            elif self._write(cleaned, batch.at, term):
                accepted += 1
            else:
                illegal += 1
        for minute in batch.minutes:
            self._write_minute(clean(minute))
        self.tables.written_at = batch.at
        return Written(accepted, illegal, bad)

    def _guard(self, term: int) -> None:
        self._refuse_when_readonly()
        if term < self.tables.term:
            raise OlderTerm(f"term {self.tables.term} has been taken since term {term}")
        self.tables.term = term

    def _refuse_when_readonly(self) -> None:
        if self.readonly:
            raise BadStore("store.url: the store was opened for reading only")

    def _write(self, write: Write, at: float, term: int) -> bool:
        uid = write.run.uid if isinstance(write, RunRow) else write.uid
        schedule = self._schedule(uid, write.key)
        match write:
            case RunRow():
                return self._write_run(schedule, write, at, term)
            case SpanRow(kind=Range.OPEN):
                if schedule.ended_at is None:
                    self._open(write, at)
            case SpanRow():
                return self._write_verdict(schedule, write, at)
            case SpanClosed():
                for span in self._open_rows(uid):
                    if span.row.reason == write.reason:
                        self.tables.spans.remove(span)
            case TimingRow():
                schedule.timings[write.after] = write.fields
            case MarkRow():
                schedule.mark = write.mark
            case ScheduleEnded():
                self._end(schedule, write, at)
        return True

    def _schedule(self, uid: str, key: str) -> Schedule:
        found = self.tables.schedules.get(uid)
        if found is None:
            self.tables.numbers += 1
            found = self.tables.schedules[uid] = Schedule(self.tables.numbers, uid, key)
        return found

    def _write_run(self, schedule: Schedule, new: RunRow, at: float, term: int) -> bool:
        cold = self.tables.runs.get(new.run)
        if cold is None and self._is_folded(schedule, new.run, new.run.due):
            return True
        merged = merge(cold.row if cold else None, new)
        if merged is None:
            return False
        merged = replace(merged, key=schedule.key, due_at=None, priority=0)
        if cold is None or cold.row != merged:
            self.tables.runs[new.run] = Cold(merged, at)
        known = replace(new, key=schedule.key)
        if hot := defer(self.tables.hot.get(new.run), known, term=term):
            self.tables.hot[new.run] = hot
        else:
            self.tables.hot.pop(new.run, None)
        return True

    def _is_folded(self, schedule: Schedule, run: RunId, last: Instant) -> bool:
        """What was due up to the mark and lies in a folded row is counted there."""
        return (
            run.kind == BY_SCHEDULE
            and last <= schedule.mark
            and any(
                span.row.kind in (Range.DAY, Range.MONTH)
                and span.row.first <= run.due
                and last <= last_of(span.row)
                for span in self._spans(schedule.uid)
            )
        )

    def _spans(self, uid: str) -> list[Span]:
        return [span for span in self.tables.spans if span.row.uid == uid]

    def _open_rows(self, uid: str) -> list[Span]:
        return [
            span
            for span in self._spans(uid)
            if span.row.kind is Range.OPEN and span.row.end is None
        ]

    def _open(self, new: SpanRow, at: float) -> None:
        if all(span.row.reason != new.reason for span in self._open_rows(new.uid)):
            self._add_span(new, at)

    def _add_span(self, new: SpanRow, at: float) -> None:
        row = replace(new, key=self.tables.schedules[new.uid].key, counts=dict(new.counts))
        self.tables.spans.append(Span(row, at))

    def _write_verdict(self, schedule: Schedule, new: SpanRow, at: float) -> bool:
        touched = [span for span in self._spans(new.uid) if overlap(span.row, new)]
        verdicts = [span.row for span in touched if span.row.kind is Range.VERDICT]
        match fits(new, verdicts):
            case Fits.REFUSED:
                return False
            case Fits.NEW if not self._is_folded(schedule, RunId(new.uid, new.first), last_of(new)):
                self._add_span(new, at)
        for span in touched:
            if span.row.kind is Range.OPEN and span.row.reason == new.reason:
                self.tables.spans.remove(span)
        return True

    def _end(self, schedule: Schedule, write: ScheduleEnded, at: float) -> None:
        if schedule.ended_at is None:
            schedule.ended_at, schedule.until = write.at, write.until
        schedule.phase = schedule.phase or write.phase
        for span in self._open_rows(schedule.uid):
            if write.until < span.row.first:
                self.tables.spans.remove(span)
            else:
                span.row, span.recorded = replace(span.row, end=write.until + 1), at
        for run, cold in self.tables.runs.items():
            if run.uid == schedule.uid and cold.row.state not in ENDED:
                cold.row, cold.recorded = cancelled(cold.row, at=write.at), at
        for run in [run for run in self.tables.hot if run.uid == schedule.uid]:
            del self.tables.hot[run]

    def _write_minute(self, minute: Minute) -> None:
        hour = self.tables.minutes.get(fold.hour_of(minute.at))
        if storable(minute) and (hour is None or hour.span_s == minute.span_s):
            self.tables.minutes[minute.at] = minute

    async def take_term(self, at_least: int = 1) -> int:
        self._refuse_when_readonly()
        self.tables.term = max(self.tables.term + 1, at_least)
        return self.tables.term

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        self._guard(holder.term)
        due = [
            hot for hot in self._in_order() if hot.row.state in WAITING and hot.row.due_at <= before
        ]
        rows, stale = [], 0
        for hot in due[:limit]:
            if self._is_stale(hot.row):
                del self.tables.hot[hot.row.run]
                stale += 1
            else:
                row = replace(hot.row, state=RunState.PENDING)
                self.tables.hot[row.run] = Hot(row, holder)
                rows.append(row)
        return Promoted(tuple(rows), stale)

    def _in_order(self) -> list[Hot]:
        def order(hot: Hot) -> tuple[float, int, int, Instant, str]:
            row = hot.row
            number = self.tables.schedules[row.run.uid].number
            return row.due_at, -row.priority, number, row.run.due, row.run.kind

        return sorted(self.tables.hot.values(), key=order)

    def _is_stale(self, row: Deferred) -> bool:
        cold = self.tables.runs.get(row.run)
        ended = cold is not None and cold.row.state in ENDED
        return ended or self.tables.schedules[row.run.uid].ended_at is not None

    async def requeue(
        self,
        *,
        below_term: int = 0,
        process: str = "",
        launched: Collection[tuple[RunId, int]] = (),
    ) -> int:
        self._refuse_when_readonly()
        count = 0
        for run, hot in list(self.tables.hot.items()):
            holder = hot.holder
            if holder is None or (run, hot.row.attempt) in launched:
                continue
            if holder.term < below_term or (process and holder.process == process):
                self.tables.hot[run] = Hot(put_back(hot.row))
                count += 1
        return count

    # --- retention --------------------------------------------------------------------------------

    async def retain(self, now: float, retention: Retention) -> Folded:
        self._refuse_when_readonly()
        runs = self._fold_runs(self._old_runs(now, retention))
        spans = self._fold_spans(now, retention)
        minutes = self._fold_minutes(now - retention.minutes_s)
        by_age = sorted(self._ended(), key=lambda cold: (cold.row.run.due, cold.row.run.kind))
        while self.tables.bytes > retention.max_bytes and by_age:
            runs += self._fold_runs([by_age.pop(0)])
        self._forget_schedules(now - retention.days_s)
        return Folded(runs, spans, minutes)

    def _ended(self) -> list[Cold]:
        return [cold for cold in self.tables.runs.values() if cold.row.state in ENDED]

    def _old_runs(self, now: float, retention: Retention) -> list[Cold]:
        before = now - retention.keep_s
        old = [
            cold for cold in self._ended() if cold.recorded < before and cold.row.run.due < before
        ]
        for uid in self.tables.schedules:
            of_one = [
                cold
                for run, cold in self.tables.runs.items()
                if (run.uid, run.kind) == (uid, BY_SCHEDULE)
            ]
            of_one.sort(key=lambda cold: (cold.row.run.due, cold.row.run.kind), reverse=True)
            old += [
                cold
                for cold in of_one[retention.keep_runs :]
                if cold.row.state in ENDED and cold not in old
            ]
        return old

    def _fold_runs(self, old: Iterable[Cold]) -> int:
        count = 0
        for cold in old:
            row = cold.row
            del self.tables.runs[row.run]
            self.tables.hot.pop(row.run, None)
            for day in fold.day_rows(
                row.run.uid, row.key, [(row.run.due, row.run.kind, row.state)]
            ):
                self._add_folded(day)
            count += 1
        return count

    def _add_folded(self, new: SpanRow) -> None:
        for span in self._spans(new.uid):
            if (span.row.kind, span.row.first) == (new.kind, new.first):
                span.row = fold.add(span.row, new)
                return
        self.tables.spans.append(Span(new, float(new.first)))

    def _fold_spans(self, now: float, retention: Retention) -> int:
        before, days_before = now - retention.keep_s, now - retention.days_s
        count = 0
        for span in list(self.tables.spans):
            row = span.row
            if row.kind is Range.VERDICT and span.recorded < before and last_of(row) < before:
                self.tables.spans.remove(span)
                self._add_folded(fold.day_row(row))
                count += 1
        for span in list(self.tables.spans):
            if span.row.kind is Range.DAY and last_of(span.row) < days_before:
                self.tables.spans.remove(span)
                self._add_folded(fold.month_row(span.row))
                count += 1
        return count

    def _fold_minutes(self, before: float) -> int:
        hours: dict[Instant, list[Minute]] = {}
        for at, minute in sorted(self.tables.minutes.items()):
            hour = fold.hour_of(at)
            if minute.span_s < fold.HOUR_S and hour + fold.HOUR_S <= before:
                hours.setdefault(hour, []).append(minute)
        for hour, minutes in hours.items():
            for minute in minutes:
                del self.tables.minutes[minute.at]
            self.tables.minutes[hour] = fold.hour(minutes)
        return sum(len(minutes) for minutes in hours.values())

    def _forget_schedules(self, before: float) -> None:
        kept = {run.uid for run in self.tables.runs} | {
            span.row.uid for span in self.tables.spans if span.row.kind is Range.VERDICT
        }
        for uid, schedule in list(self.tables.schedules.items()):
            if schedule.ended_at is not None and schedule.ended_at < before and uid not in kept:
                del self.tables.schedules[uid]
                self.tables.spans = [span for span in self.tables.spans if span.row.uid != uid]
                for run in [run for run in self.tables.hot if run.uid == uid]:
                    del self.tables.hot[run]

    # --- reading ----------------------------------------------------------------------------------

    async def runs(self, query: RunQuery) -> Page:
        after = read_cursor(query.cursor)
        runs = [
            (run_place(row, self._number(row.run.uid)), row)
            for row in (self._shown(cold.row) for cold in self.tables.runs.values())
            if _wants_key(query, row.key) and _wants_run(query, row)
        ]
        spans = [
            (span_place(span.row, self._number(span.row.uid)), span.row)
            for span in self.tables.spans
            if wants_spans(query)
            and _wants_key(query, span.row.key)
            and wants_span(query, span.row)
        ]
        return page(query, _newest_first(runs, after), _newest_first(spans, after))

    def _number(self, uid: str) -> int:
        return self.tables.schedules[uid].number

    def _shown(self, row: RunRow) -> RunRow:
        hot = self.tables.hot.get(row.run)
        return (
            replace(row, due_at=hot.row.due_at, priority=hot.row.priority)
            if hot is not None
            else row
        )

    async def states(self, runs: Sequence[RunId]) -> dict[RunId, RunState]:
        return {run: self.tables.runs[run].row.state for run in runs if run in self.tables.runs}

    async def unfinished(self, uid: str) -> tuple[RunId, ...]:
        return tuple(
            sorted(
                run
                for run, cold in self.tables.runs.items()
                if run.uid == uid and cold.row.state not in ENDED
            )
        )

    async def deferred(self) -> tuple[Deferred, ...]:
        return tuple(hot.row for hot in self._in_order())

    async def schedules(self) -> AsyncIterator[ScheduleRow]:
        for schedule in sorted(self.tables.schedules.values(), key=_key_and_uid):
            yield schedule.row

    async def books(
        self, first: Instant, end: Instant, *, uids: Sequence[str] = ()
    ) -> AsyncIterator[Book]:
        for schedule in sorted(self.tables.schedules.values(), key=_key_and_uid):
            if not uids or schedule.uid in uids:
                yield self._book(schedule, first, end)

    def _book(self, schedule: Schedule, first: Instant, end: Instant) -> Book:
        spans: list[SpanRow] = []
        while True:
            touched = [
                span.row
                for span in self._spans(schedule.uid)
                if span.row.first < end and last_of(span.row) >= first
            ]
            first, end = widen(first, end, touched)
            if len(touched) == len(spans):
                break
            spans = touched
        return Book(
            schedule=schedule.row,
            timings=tuple(
                TimingRow(schedule.uid, schedule.key, after, fields)
                for after, fields in sorted(schedule.timings.items())
            ),
            spans=tuple(sorted(spans, key=_by_first)),
            runs=tuple(
                sorted(
                    (run.due, cold.row.state)
                    for run, cold in self.tables.runs.items()
                    if run.uid == schedule.uid
                    and run.kind == BY_SCHEDULE
                    and first <= run.due < end
                )
            ),
            first=first,
            end=end,
        )

    async def minutes(self, first: Instant, end: Instant) -> tuple[Minute, ...]:
        return tuple(
            minute for at, minute in sorted(self.tables.minutes.items()) if first <= at < end
        )

    async def facts(self) -> Facts:
        tables = self.tables
        return Facts(
            kind="memory",
            where="memory",
            born=tables.born,
            since=tables.since,
            written_at=tables.written_at,
            term=tables.term,
            migration=2,
            bytes=tables.bytes,
        )

    # --- the tools --------------------------------------------------------------------------------

    async def check(self) -> list[str]:
        stale = [hot.row for hot in self.tables.hot.values() if self._is_stale(hot.row)]
        return [f"run {row.run} is deferred, and has ended" for row in stale] + [
            sentence
            for schedule in self.tables.schedules.values()
            for sentence in self._check_spans(schedule)
        ]

    def _check_spans(self, schedule: Schedule) -> list[str]:
        spans = [span.row for span in self._spans(schedule.uid)]
        empty = [span for span in spans if span.end is not None and span.end <= span.first]
        verdicts = [span for span in spans if span.kind is Range.VERDICT]
        clashes = [
            (one, other)
            for one, other in combinations(verdicts, 2)
            if overlap(one, other) and fits(one, [other]) is Fits.REFUSED
        ]
        key = schedule.key
        return [f"{key}: the range row at {one.first} ends before it begins" for one in empty] + [
            f"{key}: the range rows at {one.first} and {other.first} overlap"
            for one, other in clashes
        ]

    async def export(self) -> AsyncIterator[Exported]:
        for table in COLUMNS:
            rows = self._exported(table)
            yield Exported(table, len(rows), tuple(rows))

    def _exported(self, table: str) -> list[Mapping[str, object]]:
        tables = self.tables
        schedules = sorted(tables.schedules.values(), key=lambda one: one.uid)
        match table:
            case "schedule":
                return [
                    {name: getattr(one, name) for name in COLUMNS["schedule"]} for one in schedules
                ]
            case "timing":
                return [
                    {"uid": one.uid, "after": after, "fields": fields}
                    for one in schedules
                    for after, fields in sorted(one.timings.items())
                ]
            case "run":
                ordered = sorted(tables.runs.items(), key=lambda item: item[0])
                return [_run_out(cold) for _, cold in ordered]
            case "span":
                ordered_spans = sorted(
                    tables.spans, key=lambda span: (span.row.uid, *_by_first(span.row))
                )
                return [_span_out(span) for span in ordered_spans]
            case "deferred":
                return [_hot_out(hot) for _, hot in sorted(tables.hot.items())]
            case _:
                return [_minute_out(minute) for _, minute in sorted(tables.minutes.items())]

    async def restore(self, chunk: Exported) -> int:
        self._refuse_when_readonly()
        return sum(self._restore(chunk.table, dict(row)) for row in chunk.rows)

    def _restore(self, table: str, row: dict[str, Any]) -> bool:
        tables = self.tables
        if table == "minute":
            if row["at"] in tables.minutes:
                return False
            tables.minutes[row["at"]] = _minute_in(row)
            return True
        uid = row["uid"]
        if table == "schedule":
            if uid in tables.schedules:
                return False
            schedule = self._schedule(uid, row["key"])
            schedule.mark, schedule.ended_at = row["mark"], row["ended_at"]
            schedule.until, schedule.phase = row["until"], row["phase"]
            return True
        schedule = tables.schedules[uid]
        if table == "timing":
            new = row["after"] not in schedule.timings
            schedule.timings.setdefault(row["after"], row["fields"])
            return new
        if table == "span":
            span = _span_in(schedule, row)
            same = (span.row.kind, span.row.first, span.row.reason)
            if any(
                (one.row.kind, one.row.first, one.row.reason) == same for one in self._spans(uid)
            ):
                return False
            tables.spans.append(span)
            return True
        run = RunId(uid, row["due"], row["kind"])
        if table == "run":
            new = run not in tables.runs
            tables.runs.setdefault(run, _run_in(schedule, run, row))
            return new
        new = run not in tables.hot
        tables.hot.setdefault(run, _hot_in(schedule, run, row))
        return new

    async def close(self) -> None:
        """Nothing is held open."""


def opener(tables: Tables) -> Callable[..., Any]:
    """Opens these tables again and again, as `open_store` opens a file."""

    async def open_again(*, readonly: bool = False) -> MemoryStore:
        return MemoryStore(tables, readonly=readonly)

    return open_again


def _key_and_uid(schedule: Schedule) -> tuple[str, str]:
    return schedule.key, schedule.uid


def _by_first(span: SpanRow) -> tuple[Instant, str, str]:
    return span.first, span.kind, span.reason


def _newest_first(placed: list[tuple[Place, Any]], after: Place | None) -> list[tuple[Place, Any]]:
    return sorted(
        (one for one in placed if after is None or one[0] < after),
        key=lambda one: one[0],
        reverse=True,
    )


def _run_out(cold: Cold) -> dict[str, object]:
    row = cold.row
    own = {name: getattr(row, name) for name in COLUMNS["run"] if hasattr(row, name)}
    return own | {
        "uid": row.run.uid,
        "kind": row.run.kind,
        "due": row.run.due,
        "state": str(row.state),
        "attempts": attempts_text(row.attempts),
        "recorded": cold.recorded,
    }


def _run_in(schedule: Schedule, run: RunId, row: dict[str, Any]) -> Cold:
    own = {
        name: value
        for name, value in row.items()
        if name not in ("uid", "kind", "due", "state", "attempts", "recorded")
    }
    return Cold(
        RunRow(
            run=run,
            key=schedule.key,
            state=RunState(row["state"]),
            attempts=attempts_of(row["attempts"]),
            **own,
        ),
        row["recorded"],
    )


def _span_out(span: Span) -> dict[str, object]:
    row = span.row
    return {
        "uid": row.uid,
        "kind": str(row.kind),
        "first": row.first,
        "end": row.end,
        "counts": counts_text(row.counts),
        "reason": row.reason,
        "recorded": span.recorded,
    }


def _span_in(schedule: Schedule, row: dict[str, Any]) -> Span:
    span = SpanRow(
        schedule.uid,
        schedule.key,
        row["first"],
        row["end"],
        counts_of(row["counts"]),
        row["reason"],
        Range(row["kind"]),
    )
    return Span(span, row["recorded"])


def _hot_out(hot: Hot) -> dict[str, object]:
    row = hot.row
    return {
        "uid": row.run.uid,
        "kind": row.run.kind,
        "due": row.run.due,
        "due_at": row.due_at,
        "priority": row.priority,
        "state": str(row.state),
        "attempt": row.attempt,
        "request": row.request,
        "term": hot.holder.term if hot.holder else None,
        "process": hot.holder.process if hot.holder else None,
    }


def _hot_in(schedule: Schedule, run: RunId, row: dict[str, Any]) -> Hot:
    holder = None if row["term"] is None else Holder(row["term"], row["process"])
    deferred = Deferred(
        run,
        schedule.key,
        row["due_at"],
        row["priority"],
        RunState(row["state"]),
        row["attempt"],
        row["request"],
    )
    return Hot(deferred, holder)


def _minute_out(minute: Minute) -> dict[str, object]:
    return asdict(minute) | {
        "ended": counts_text(minute.ended),
        "lateness": lateness_text(minute.lateness),
    }


def _minute_in(row: dict[str, Any]) -> Minute:
    texts = {"ended": counts_of(row["ended"]), "lateness": lateness_of(row["lateness"])}
    return Minute(**(row | texts))


def _wants_key(query: RunQuery, key: str) -> bool:
    namespace, _, name = key.partition("/")
    return query.namespace in ("", namespace) and query.name in ("", name)


def _is_requested_by(request: str, row: RunRow) -> bool:
    return row.run.kind != BY_SCHEDULE and row.request == clean_text(request)


def _wants_run(query: RunQuery, row: RunRow) -> bool:
    """Whether a run is one that the query asks for, whatever its place."""
    return (
        (not query.states or row.state in query.states)
        and (not query.reasons or row.reason in query.reasons)
        and (not query.kinds or row.run.kind in query.kinds)
        and (not query.request or _is_requested_by(query.request, row))
        and (query.since is None or row.run.due >= query.since)
        and (query.until is None or row.run.due < query.until)
    )
