"""Folds and drops what is older than the retention, a small part at a time: whoever writes next
waits no longer than one part takes.

A round looks at all there is, and may take many calls. It remembers how far it is, so no call looks
again at rows that the calls before it have left. A process that starts begins a new round.
"""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from evenkeel.ledger import fold
from evenkeel.ledger.rows import Folded, Range, Retention, SpanRow
from evenkeel.ledger.sqlite.columns import minute_of, minute_values, span_of, span_values
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.model import ENDED, Instant, RunState

PART = 1_000
"""Rows of a part: one transaction, of some 20 ms."""
CALL_S = 0.1
"""A call begins no further part after this."""
_MINUTES = 60 * 48

T = TypeVar("T")
Transact = Callable[[Callable[[sqlite3.Connection], T]], T]
"""Does work in one transaction."""
_FIRST = -(1 << 62)


@dataclass(slots=True)
class Part:
    """What one part did."""

    runs: int = 0
    spans: int = 0
    minutes: int = 0


class Retaining:
    """The rounds of one store. `unseen` has the schedules of which runs were written since a round
    counted their runs. What another process writes is counted by that process."""

    def __init__(self) -> None:
        self.unseen: set[int] = set()
        self._keep_runs: int | None = None
        """What all schedules were last compared with; None: not all were."""
        self._retention: Retention | None = None
        self._round: Iterator[_Step] | None = None
        """The parts that are left, each to be done in one transaction."""

    def look_at_all(self) -> None:
        """Begin a new round: the file is another one, or has rows from elsewhere."""
        self._round = self._keep_runs = None

    def bite(
        self,
        transact: Transact[Part],
        now: float,
        retention: Retention,
        monotonic: Callable[[], float],
    ) -> Folded:
        """Do some parts of the round."""
        if self._round is None or retention != self._retention:
            self._retention = retention
            self._round = self._new_round(now, retention)
        done = Part()
        until = monotonic() + CALL_S
        try:
            for step in self._round:
                part = transact(step)
                done.runs += part.runs
                done.spans += part.spans
                done.minutes += part.minutes
                if monotonic() >= until:
                    return Folded(done.runs, done.spans, done.minutes, more=True)
        except BaseException:
            self._round = None
            raise
        self._round = None
        return Folded(done.runs, done.spans, done.minutes)

    def _new_round(self, now: float, retention: Retention) -> Iterator["_Step"]:
        before, days_before = now - retention.keep_s, now - retention.days_s
        yield from _until_done(_Runs(before=before, recorded_before=before))
        yield from self._too_many(retention.keep_runs)
        yield from _until_done(_Spans(Range.VERDICT, before, before))
        yield from _until_done(_Spans(Range.DAY, days_before, float("inf")))
        yield from _until_done(_Minutes(now - retention.minutes_s))
        yield from _until_done(_Runs(before=1 << 62, max_bytes=retention.max_bytes))
        yield from _until_done(_Forgotten(days_before))

    def _too_many(self, keep: int) -> Iterator["_Step"]:
        if keep != self._keep_runs:
            yield from _until_done(_Schedules(self.unseen))
        # What is written while this goes on is looked at in the next round.
        unseen, self.unseen = self.unseen, set()
        self._keep_runs = keep
        for schedule in sorted(unseen):
            yield from _until_done(_TooMany(schedule, keep))


class _Step(ABC):
    """A walk over rows that remembers where it is."""

    done = False

    @abstractmethod
    def __call__(self, connection: sqlite3.Connection) -> Part:
        """One part."""


def _until_done(step: _Step) -> Iterator[_Step]:
    while not step.done:
        yield step


class _Runs(_Step):
    """Runs that have ended, the oldest first."""

    def __init__(
        self,
        *,
        before: float,
        recorded_before: float = float("inf"),
        max_bytes: int | None = None,
    ) -> None:
        self._before = before
        self._recorded_before = recorded_before
        self._max_bytes = max_bytes
        self._at: tuple[Instant, int, str] = (_FIRST, 0, "")

    def __call__(self, connection: sqlite3.Connection) -> Part:
        if self._max_bytes is not None and _used_bytes(connection) <= self._max_bytes:
            self.done = True
            return Part()
        due, schedule, kind = self._at
        found = connection.execute(
            SQL["runs_by_age"],
            {
                "due": due,
                "schedule": schedule,
                "kind": kind,
                "before": self._before,
                "limit": PART,
            },
        ).fetchall()
        self.done = len(found) < PART
        if found:
            schedule, due, kind, *_ = found[-1]
            self._at = (due, schedule, kind)
        old = [row[:4] for row in found if row[4] < self._recorded_before]
        return Part(runs=_fold_runs(connection, old))


class _Schedules(_Step):
    """Notes all schedules: what their runs are compared with has changed."""

    def __init__(self, into: set[int]) -> None:
        self._into = into
        self._at = 0

    def __call__(self, connection: sqlite3.Connection) -> Part:
        asked = {"schedule": self._at, "limit": 10 * PART}
        found = [number for (number,) in connection.execute(SQL["schedules_after"], asked)]
        self.done = not found
        self._into.update(found)
        self._at = found[-1] if found else 0
        return Part()


class _TooMany(_Step):
    """Runs of a schedule that has many newer ones."""

    def __init__(self, schedule: int, keep: int) -> None:
        self._schedule = schedule
        self._keep = keep
        self._at: tuple[Instant, str] = (_FIRST, "")

    def __call__(self, connection: sqlite3.Connection) -> Part:
        asked = {"schedule": self._schedule, "keep": self._keep}
        found = connection.execute(SQL["first_too_many"], asked).fetchone()
        if found is None:
            self.done = True
            return Part()
        (due, kind), (after_due, after_kind) = found, self._at
        rows = connection.execute(
            SQL["runs_too_many"],
            {
                "schedule": self._schedule,
                "after_due": after_due,
                "after_kind": after_kind,
                "due": due,
                "kind": kind,
                "limit": PART,
            },
        ).fetchall()
        self.done = len(rows) < PART
        if rows:
            self._at = (rows[-1][1], rows[-1][2])
        return Part(runs=_fold_runs(connection, [row[:4] for row in rows]))


class _Spans(_Step):
    """Old range rows of one kind."""

    def __init__(self, kind: Range, before: float, recorded_before: float) -> None:
        self._kind = kind
        self._before = before
        self._recorded_before = recorded_before
        self._at: tuple[Instant, int, Instant] = (_FIRST, 0, 0)

    def __call__(self, connection: sqlite3.Connection) -> Part:
        last, schedule, first = self._at
        found = connection.execute(
            SQL["old_spans"],
            {
                "kind": self._kind.value,
                "before": self._before,
                "last": last,
                "schedule": schedule,
                "first": first,
                "limit": PART,
            },
        ).fetchall()
        self.done = len(found) < PART
        if found:
            schedule, _, first, _, last, *_ = found[-1]
            self._at = (last, schedule, first)
        old = [row for row in found if row[6] < self._recorded_before]
        for schedule, *own, _recorded in old:
            uid, key = _uid_and_key(connection, schedule)
            span = span_of(uid, key, *own)
            connection.execute(SQL["drop_span"], span_values(span) | {"schedule": schedule})
            folded = fold.day_row(span) if self._kind is Range.VERDICT else fold.month_row(span)
            _add_folded(connection, schedule, folded)
        return Part(spans=len(old))


class _Minutes(_Step):
    """Old minutes, by whole hours."""

    def __init__(self, before: float) -> None:
        self._before = fold.hour_of(int(before))

    def __call__(self, connection: sqlite3.Connection) -> Part:
        asked = {"before": self._before, "limit": _MINUTES}
        found = [minute_of(row) for row in connection.execute(SQL["short_minutes"], asked)]
        hours = [
            (at, list(minutes))
            for at, minutes in groupby(found, key=lambda minute: fold.hour_of(minute.at))
        ]
        self.done = len(found) < _MINUTES
        if not self.done:
            hours.pop()  # it may have more minutes
        for at, minutes in hours:
            connection.execute(SQL["drop_minutes"], {"first": at, "end": at + fold.HOUR_S})
            values = minute_values(fold.hour(minutes)) | {"hour": at}
            connection.execute(SQL["put_minute"], values)
        return Part(minutes=sum(len(minutes) for _, minutes in hours))


class _Forgotten(_Step):
    """Schedules that were deleted long ago, with their range rows."""

    def __init__(self, before: float) -> None:
        self._before = before
        self._at = 0

    def __call__(self, connection: sqlite3.Connection) -> Part:
        asked = {"before": self._before, "schedule": self._at, "limit": PART // 10}
        found = [number for (number,) in connection.execute(SQL["forgettable"], asked)]
        self.done = not found
        for number in found:
            self._at = number
            for name in (
                "drop_hot_of_schedule",
                "drop_spans_of_schedule",
                "drop_timings_of_schedule",
                "drop_schedule",
            ):
                connection.execute(SQL[name], {"schedule": number})
        return Part()


def _used_bytes(connection: sqlite3.Connection) -> int:
    (used,) = connection.execute(SQL["used_bytes"]).fetchone()
    return int(used)


def _uid_and_key(connection: sqlite3.Connection, schedule: int) -> tuple[str, str]:
    uid, key = connection.execute(SQL["uid_and_key"], {"schedule": schedule}).fetchone()
    return uid, key


def _fold_runs(connection: sqlite3.Connection, rows: list[tuple[int, Instant, str, str]]) -> int:
    """Rows as schedule, due, kind, state. Those that have not ended stay."""
    ended = [row for row in rows if row[3] in ENDED]
    places = [row[:3] for row in ended]
    connection.executemany(SQL["drop_run"], places)
    connection.executemany(SQL["drop_hot"], places)
    by_schedule = sorted(ended, key=lambda row: row[0])
    for schedule, runs in groupby(by_schedule, key=lambda row: row[0]):
        uid, key = _uid_and_key(connection, schedule)
        told = ((due, kind, RunState(state)) for _, due, kind, state in runs)
        for day in fold.day_rows(uid, key, told):
            _add_folded(connection, schedule, day)
    return len(ended)


def _add_folded(connection: sqlite3.Connection, schedule: int, new: SpanRow) -> None:
    values = span_values(new) | {"schedule": schedule}
    found = connection.execute(SQL["folded"], values).fetchone()
    stored = span_of(new.uid, new.key, *found) if found else None
    values = span_values(fold.add(stored, new)) | {
        "schedule": schedule,
        "recorded": float(new.first),
    }
    connection.execute(SQL["put_span"], values)
