"""Writes a batch, row after row, inside one transaction. What a row makes of the stored one is
decided in `merge` and `ranges`."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from evenkeel.ledger import fold
from evenkeel.ledger.cleaning import clean, storable
from evenkeel.ledger.halving import Halving
from evenkeel.ledger.merge import SCHEDULE_DELETED, WAITING, defer, merge
from evenkeel.ledger.ranges import OPEN_LAST, Fits, fits, last_of
from evenkeel.ledger.rows import (
    Batch,
    MarkRow,
    Minute,
    Range,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
    Written,
    uid_of,
)
from evenkeel.ledger.sqlite.columns import (
    hot_of,
    hot_values,
    minute_values,
    run_of,
    run_values,
    span_of,
    span_values,
)
from evenkeel.ledger.sqlite.errors import ROW_ERRORS, Meaning, meaning
from evenkeel.ledger.sqlite.migrate import SQL
from evenkeel.ledger.sqlite.schedules import Schedules
from evenkeel.ledger.store import OlderTerm
from evenkeel.model import BY_SCHEDULE, Instant, RunState


def guard(connection: sqlite3.Connection, term: int) -> None:
    """OlderTerm: another process has taken a newer one. A lower one is that of a new file."""
    stored, *_ = connection.execute(SQL["meta"]).fetchone()
    if term < stored:
        raise OlderTerm(f"term {stored} has been taken since term {term}")
    if term > stored:
        connection.execute(SQL["take_over_term"], {"term": term})


def write(
    connection: sqlite3.Connection, schedules: Schedules, batch: Batch, *, term: int
) -> tuple[Written, set[int]]:
    """What became of the batch, and the numbers of schedules of which runs were written."""
    guard(connection, term)
    writer = _Writer(connection, schedules, batch.at, term)
    cleaned = [clean(one) for one in batch.writes]
    whole = [one for one in cleaned if storable(one)]
    accepted, refused = _each(writer, whole)
    minutes = [clean(one) for one in batch.minutes]
    _each(writer, [one for one in minutes if storable(one)])
    connection.execute(SQL["note_written"], {"at": batch.at})
    bad = len(cleaned) - len(whole) + refused
    return Written(accepted, len(cleaned) - accepted - bad, bad), writer.written


def _each(writer: "_Writer", rows: Sequence[Write | Minute]) -> tuple[int, int]:
    """How many were accepted, and how many the store refused for their own sake."""
    accepted = 0
    connection = writer.connection
    for part in (halving := Halving(rows)):
        connection.execute("SAVEPOINT part")
        try:
            accepted += sum([writer.write(one) for one in part])
        except ROW_ERRORS as error:
            if meaning(error) is not Meaning.BAD_ROW:
                raise
            connection.execute("ROLLBACK TO part")
            writer.schedules.forget()
            halving.refused(part)
        connection.execute("RELEASE part")
    return accepted, len(halving.bad)


class _Writer:
    """Writes the rows of one batch."""

    def __init__(
        self, connection: sqlite3.Connection, schedules: Schedules, at: float, term: int
    ) -> None:
        self.connection = connection
        self.schedules = schedules
        self.written: set[int] = set()
        """Numbers of schedules of which a run was written."""
        self._at = at
        self._term = term

    def write(self, write: Write | Minute) -> bool:
        """Whether the row is legal."""
        if isinstance(write, Minute):
            self._write_minute(write)
            return True
        schedule, key = self.schedules.know(self.connection, uid_of(write), write.key)
        match write:
            case RunRow():
                return self._write_run(schedule, key, write)
            case SpanRow(kind=Range.OPEN):
                self._open(schedule, write)
            case SpanRow():
                return self._write_verdict(schedule, key, write)
            case SpanClosed():
                for first, reason in self._open_rows(schedule):
                    if reason == write.reason:
                        self._drop_span(schedule, Range.OPEN, first, reason)
            case TimingRow():
                values = {"schedule": schedule, "after": write.after, "fields": write.fields}
                self.connection.execute(SQL["put_timing"], values)
            case MarkRow():
                self.connection.execute(SQL["set_mark"], {"schedule": schedule, "mark": write.mark})
            case ScheduleEnded():
                self._end(schedule, write)
        return True

    # --- runs -------------------------------------------------------------------------------------

    def _write_run(self, schedule: int, key: str, new: RunRow) -> bool:
        place = (schedule, new.run.due, new.run.kind)
        found = self.connection.execute(SQL["run"], place).fetchone()
        if found is None and self._is_folded(schedule, new.run.kind, new.run.due, new.run.due):
            return True
        stored = run_of(new.run, key, found) if found else None
        merged = merge(stored, new)
        if merged is None:
            return False
        values = run_values(merged)
        if stored is None:
            self.connection.execute(SQL["add_run"], (*values, self._at, *place))
        elif values != found:
            self.connection.execute(SQL["change_run"], (*values, self._at, *place))
        self.written.add(schedule)
        self._defer(place, key, new)
        return True

    def _defer(self, place: tuple[int, Instant, str], key: str, new: RunRow) -> None:
        if new.state not in (*WAITING, RunState.PENDING):
            self.connection.execute(SQL["drop_hot"], place)
            return
        found = self.connection.execute(SQL["hot"], place).fetchone()
        stored = hot_of(new.run, key, found) if found else None
        hot = defer(stored, new, term=self._term)
        if hot is not None and hot != stored:
            self.connection.execute(SQL["put_hot"], (*place, *hot_values(hot)))

    def _is_folded(self, schedule: int, kind: str, first: Instant, last: Instant) -> bool:
        """What was due up to the mark and lies in a folded row is counted there."""
        values = {"schedule": schedule, "first": first, "last": last}
        return (
            kind == BY_SCHEDULE
            and self.connection.execute(SQL["is_folded"], values).fetchone() is not None
        )

    # --- ranges -----------------------------------------------------------------------------------

    def _open_rows(self, schedule: int) -> list[tuple[Instant, str]]:
        values = {"schedule": schedule, "open_last": OPEN_LAST}
        return self.connection.execute(SQL["open_spans"], values).fetchall()

    def _open(self, schedule: int, new: SpanRow) -> None:
        asked = {"schedule": schedule}
        if self.connection.execute(SQL["has_ended"], asked).fetchone() is not None:
            return
        if all(reason != new.reason for _, reason in self._open_rows(schedule)):
            self._put_span(schedule, new)

    def _put_span(self, schedule: int, span: SpanRow) -> None:
        values = span_values(span) | {"schedule": schedule, "recorded": self._at}
        self.connection.execute(SQL["put_span"], values)

    def _drop_span(self, schedule: int, kind: Range, first: Instant, reason: str) -> None:
        values = {"schedule": schedule, "kind": kind.value, "first": first, "reason": reason}
        self.connection.execute(SQL["drop_span"], values)

    def _write_verdict(self, schedule: int, key: str, new: SpanRow) -> bool:
        last = last_of(new)
        asked = {"schedule": schedule, "first": new.first, "last": last}
        touched = [
            span_of(new.uid, key, *row)
            for row in self.connection.execute(SQL["touched_spans"], asked)
        ]
        match fits(new, [span for span in touched if span.kind is Range.VERDICT]):
            case Fits.REFUSED:
                return False
            case Fits.NEW if not self._is_folded(schedule, BY_SCHEDULE, new.first, last):
                self._put_span(schedule, new)
        for span in touched:
            if span.kind is Range.OPEN and span.reason == new.reason:
                self._drop_span(schedule, Range.OPEN, span.first, span.reason)
        return True

    # --- the rest ---------------------------------------------------------------------------------

    def _end(self, schedule: int, write: ScheduleEnded) -> None:
        self.written.add(schedule)
        values = {
            "schedule": schedule,
            "at": write.at,
            "until": write.until,
            "phase": write.phase,
            "reason": SCHEDULE_DELETED,
            "recorded": self._at,
        }
        for first, reason in self._open_rows(schedule):
            self._drop_span(schedule, Range.OPEN, first, reason)
            if first <= write.until:
                span = SpanRow(write.uid, write.key, first, write.until + 1, {}, reason)
                self._put_span(schedule, replace(span, kind=Range.OPEN))
        for name in ("end_schedule", "cancel_unfinished", "drop_hot_of_schedule"):
            self.connection.execute(SQL[name], values)

    def _write_minute(self, minute: Minute) -> None:
        values = minute_values(minute) | {"hour": fold.hour_of(minute.at)}
        self.connection.execute(SQL["put_minute"], values)
