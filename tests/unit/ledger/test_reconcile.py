"""What a ledger lacks of a schedule is filled in from the status that tells of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.ledger.model import MemoryStore, Tables
from tests.unit.ledger.books import KEY, UID, every
from tests.unit.ledger.pasts import BEGAN, Past, pasts

from evenkeel.core.effects import ScheduleKnown
from evenkeel.ledger.audit import Found, audit
from evenkeel.ledger.reckoning import timing_text
from evenkeel.ledger.reconcile import fill, time_lacking
from evenkeel.ledger.rows import (
    UNRECORDED,
    Batch,
    Book,
    MarkRow,
    Range,
    RunRow,
    SpanRow,
    TimingRow,
    Write,
    Written,
)
from evenkeel.model import ENDED, Attempt, RunId, RunState
from evenkeel.reasons import Reason
from evenkeel.resource.record import RecentRun, ToldSpan


class Ledger:
    """A store in memory, called as the syncer calls it."""

    def __init__(self, writes: Sequence[Write] = ()) -> None:
        self.store = MemoryStore(Tables())
        self.write(writes)

    def write(self, writes: Sequence[Write]) -> Written:
        return asyncio.run(self.store.write(Batch(0.0, tuple(writes)), term=1))

    def lacking(
        self, known: ScheduleKnown, told: Sequence[Write] = (), held: Sequence[Write] = ()
    ) -> tuple[Write, ...]:
        return asyncio.run(self._lacking(known, told, held))

    async def _lacking(
        self, known: ScheduleKnown, told: Sequence[Write], held: Sequence[Write]
    ) -> tuple[Write, ...]:
        books: list[Book] = []
        async for row in self.store.schedules():
            first, end = time_lacking(known, row)
            books = [book async for book in self.store.books(first, end, uids=[UID])]
        unfinished = await self.store.unfinished(UID)
        book = books[0] if books else None
        return fill(known, book, unfinished=unfinished, told=told, held=held)

    def fill(
        self, known: ScheduleKnown, told: Sequence[Write] = (), held: Sequence[Write] = ()
    ) -> None:
        writes = self.lacking(known, told, held)
        assert self.write(writes) == Written(accepted=len(writes))

    def audit(self) -> Found:
        return asyncio.run(audit(self.store, 0, 1 << 20)).found

    def states(self) -> dict[int, RunState]:
        return {run.due: cold.row.state for run, cold in self.store.tables.runs.items()}

    def spans(self) -> list[SpanRow]:
        return [span.row for span in self.store.tables.spans]

    def row(self, due: int) -> RunRow:
        return self.store.tables.runs[RunId(UID, due)].row


def told_past(*steps: Callable[[Past], None]) -> Past:
    """Due every ten seconds from 110 on."""
    past = Past(every(10))
    past.told()
    for step in steps:
        step(past)
    past.told()
    return past


def runs(number: int) -> Callable[[Past], None]:
    def step(past: Past) -> None:
        for _ in range(number):
            past.run()

    return step


# --- one by one -----------------------------------------------------------------------------------


def test_a_schedule_that_the_store_does_not_know_begins_at_its_mark():
    past = told_past(runs(3))
    ledger = Ledger()
    ledger.fill(past.known())

    assert ledger.states() == dict.fromkeys([110, 120, 130], RunState.SUCCEEDED)
    assert ledger.audit() == replace(ledger.audit(), expected=0, recorded=0, missing=0, extra=0)
    (row,) = ledger.store.tables.schedules.values()
    assert (row.row.since, row.mark) == (130, 130)


def test_a_store_that_was_lost_and_written_to_since_does_not_know_the_schedule():
    past = told_past(runs(5))
    ledger = Ledger([row for row in past.writes[-4:] if not isinstance(row, TimingRow)])
    assert sorted(ledger.states()) == [140, 150]
    ledger.fill(past.known())

    assert sorted(ledger.states()) == [110, 120, 130, 140, 150]
    (row,) = ledger.store.tables.schedules.values()
    assert (row.row.since, row.mark) == (150, 150)


def test_runs_that_the_status_tells_of_get_their_rows():
    past = told_past(runs(4))
    ledger = Ledger(past.writes[:4])  # the first of them was written
    ledger.fill(past.known())

    assert ledger.states() == dict.fromkeys([110, 120, 130, 140], RunState.SUCCEEDED)
    assert ledger.row(140).job == "report-140"
    assert ledger.audit() == replace(ledger.audit(), expected=4, recorded=4, unrecorded=0)


def test_what_nobody_knows_any_more_is_one_range_row():
    past = told_past(runs(9))
    ledger = Ledger(past.writes[:4])
    ledger.fill(past.known(recent=2))

    assert ledger.spans() == [SpanRow(UID, KEY, 120, 171, {UNRECORDED: 6}, UNRECORDED)]
    assert ledger.audit() == replace(ledger.audit(), expected=9, recorded=9, unrecorded=6)


def test_unrecorded_rows_lie_between_the_rows_of_verdicts():
    past = told_past(runs(2), lambda past: past.span(3, claimed=None), runs(2))
    ledger = Ledger(past.writes[:2])
    ledger.fill(past.known(recent=0))

    assert sorted((row.first, row.end, dict(row.counts)) for row in ledger.spans()) == [
        (110, 121, {UNRECORDED: 2}),
        (130, 151, {"missed": 3}),
        (160, 171, {UNRECORDED: 2}),
    ]


def test_a_row_of_recent_that_stands_for_a_span_is_no_run():
    past = told_past(lambda past: past.span(3, claimed=None))
    ledger = Ledger(past.writes[:2])
    ledger.fill(past.known())

    assert ledger.states() == {}
    assert [dict(row.counts) for row in ledger.spans()] == [{"missed": 3}]


def test_the_same_where_the_span_is_stored_and_its_mark_is_not():
    past = told_past(lambda past: past.span(3, claimed=None))
    ledger = Ledger(past.writes[:-1])
    ledger.fill(past.known(spans=0))

    assert ledger.states() == {}
    assert ledger.audit().unrecorded == 0


def test_of_a_span_that_began_before_the_store_was_made_the_rest_is_told():
    past = told_past(lambda past: past.span(5, claimed=None))
    known = past.known()
    ledger = Ledger([TimingRow(UID, KEY, 130, timing_text(known.timing)), MarkRow(UID, KEY, 130)])
    ledger.fill(known)

    assert ledger.spans() == [SpanRow(UID, KEY, 140, 151, {"missed": 2}, known.spans[0].reason)]
    assert ledger.audit() == replace(ledger.audit(), expected=2, recorded=2, unrecorded=0)


def test_a_run_inside_a_stored_span_that_nobody_knows_is_unrecorded():
    past = told_past(lambda past: past.span(4, claimed=1))
    lost = {RunId(UID, 120)}
    ledger = Ledger([row for row in past.writes if getattr(row, "run", None) not in lost][:-1])
    ledger.fill(past.known(recent=0))

    assert ledger.audit() == replace(ledger.audit(), expected=4, recorded=4, unrecorded=1)


def test_a_run_that_lives_is_told_of_by_others_and_holds_the_mark():
    past = told_past(runs(1), Past.begin, runs(1))
    ledger = Ledger(past.writes[:2])
    known = past.known()
    ledger.fill(known)

    assert ledger.states() == dict.fromkeys([110, 130], RunState.SUCCEEDED)
    assert ledger.store.tables.schedules[UID].mark == 119
    ledger.write([*past.alive, MarkRow(UID, KEY, known.mark)])
    assert ledger.audit() == replace(ledger.audit(), expected=3, recorded=3, unrecorded=0)


def test_a_run_whose_row_waits_holds_the_mark_as_well():
    """Before that row is written the process may die, and the status tell of it no more."""
    past = told_past(runs(1), Past.begin, runs(1))
    ended = RunRow(past.alive[0].run, KEY, RunState.LOST)
    ledger = Ledger(past.writes[:2])
    ledger.fill(past.known(), held=[ended])
    assert ledger.store.tables.schedules[UID].mark == 119


def test_a_verdict_on_what_was_over_before_the_schedule_began_is_written_as_well():
    past = told_past()
    told = ToldSpan(50, 50, 1, RunState.MISSED, Reason.PAST)
    ledger = Ledger(past.writes)
    ledger.fill(replace(past.known(), spans=(told,)))

    assert [(row.first, row.end, row.reason) for row in ledger.spans()] == [(50, 51, "past")]
    assert ledger.audit().differences == ()


def test_a_row_without_an_end_gets_the_one_that_the_status_tells():
    past = told_past(lambda past: past.run(state=RunState.FAILED))
    ledger = Ledger(past.writes[:3])
    assert ledger.states() == {110: RunState.RUNNING}
    ledger.fill(past.known())
    assert ledger.states() == {110: RunState.FAILED}


def test_a_row_whose_end_nobody_knows_is_lost_whatever_its_attempt():
    past = told_past(runs(1))
    row = RunRow(RunId(UID, 110), KEY, RunState.RUNNING, attempt=3, job="report-110-retry2")
    ledger = Ledger([*past.writes[:2], row, MarkRow(UID, KEY, 110)])
    ledger.fill(past.known(recent=0))

    found = ledger.row(110)
    assert (found.state, found.reason, found.attempt) == (RunState.LOST, "outcome_unknown", 3)


def test_a_requested_run_is_left_as_it_is():
    run = RunId(UID, 105, "q0abcdef")
    past = told_past(runs(1))
    ledger = Ledger([*past.writes, RunRow(run, KEY, RunState.SCHEDULED, due_at=500.0)])
    ledger.fill(past.known())
    assert ledger.store.tables.runs[run].row.state is RunState.SCHEDULED


def test_a_timing_that_was_not_written_counts_from_its_place():
    past = told_past(runs(1), lambda past: past.retime(every(7)), runs(2))
    ledger = Ledger(past.writes[:4])
    ledger.fill(past.known())

    assert sorted(ledger.store.tables.schedules[UID].timings) == [BEGAN, 110]
    assert ledger.audit() == replace(ledger.audit(), expected=3, recorded=3, unrecorded=0)


def test_a_timing_that_came_and_went_leaves_no_run_that_was_never_due():
    past = told_past(
        runs(1),
        lambda past: past.retime(every(7)),
        runs(3),
        lambda past: past.retime(every(10)),
        runs(1),
    )
    ledger = Ledger(past.writes[:4])
    ledger.fill(past.known())
    assert ledger.audit().differences == ()


def test_a_timing_that_no_status_told_of_is_taken_back():
    """The process that saw the edit died; the next one reckons by the old timing up to now."""
    past = told_past(runs(5))
    untold = TimingRow(UID, KEY, 120, timing_text(every(7)))
    ledger = Ledger([*past.writes[:6], untold])
    ledger.fill(past.known())

    assert ledger.audit() == replace(ledger.audit(), expected=5, recorded=5, unrecorded=0)


def test_a_timing_that_follows_is_not_taken_back():
    past = told_past(runs(3))
    later = TimingRow(UID, KEY, 130, timing_text(every(7)))
    ledger = Ledger(past.writes[:4])
    ledger.fill(past.known(), held=[later])
    ledger.write([later])
    assert ledger.store.tables.schedules[UID].timings[130] == later.fields


def test_an_open_row_that_was_closed_meanwhile_covers_nothing_any_more():
    past = told_past(Past.suspend, lambda past: past.resume(0), runs(2))
    ledger = Ledger(past.writes[:3])
    assert [row.kind for row in ledger.spans()] == [Range.OPEN]
    ledger.fill(past.known())

    assert ledger.spans() == []
    assert ledger.audit() == replace(ledger.audit(), expected=2, recorded=2, unrecorded=0)


def test_an_open_row_stays_while_the_schedule_is_suspended():
    past = told_past(runs(1), Past.suspend)
    ledger = Ledger(past.writes)
    assert ledger.lacking(past.known()) == ()


def test_a_verdict_closes_the_row_that_was_open():
    past = told_past(Past.suspend, lambda past: past.resume(3), runs(1))
    ledger = Ledger(past.writes[:3])
    ledger.fill(past.known())

    assert [row.kind for row in ledger.spans()] == [Range.VERDICT]
    assert ledger.audit() == replace(ledger.audit(), expected=4, recorded=4, unrecorded=0)


def test_a_verdict_on_lost_runs_is_no_range_row_for_they_have_rows():
    past = told_past(runs(1), lambda past: past.span(2, claimed=None, state=RunState.LOST))
    ledger = Ledger(past.writes[:2])
    ledger.fill(past.known(recent=0))
    assert [dict(row.counts) for row in ledger.spans()] == [{UNRECORDED: 3}]


def test_a_mark_ahead_of_the_clock_is_not_believed():
    """The core goes on from where the clock is."""
    past = told_past(runs(3))
    ledger = Ledger(past.writes[:2])
    ledger.fill(replace(past.known(), mark=99_999))
    assert ledger.store.tables.schedules[UID].mark == 130


def test_a_run_is_written_with_all_that_the_status_tells_of_it():
    row = RecentRun(
        110,
        RunState.FAILED,
        started=111,
        finished=113,
        reason="BackoffLimitExceeded",
        attempt=2,
        job="report-110-retry1",
        exit_code=3,
        exit_reason="Error",
    )
    past = told_past(runs(1))
    ledger = Ledger(past.writes[:2])
    ledger.fill(replace(past.known(), recent=(row,)))

    found = ledger.row(110)
    assert found == replace(
        found,
        started=111,
        finished=113,
        reason="BackoffLimitExceeded",
        exit_code=3,
        exit_reason="Error",
        attempts=(
            Attempt(
                2, "report-110-retry1", None, started=111, finished=113, exit_code=3, reason="Error"
            ),
        ),
    )


def test_a_status_that_tells_nothing_new_changes_nothing():
    past = told_past(runs(3), lambda past: past.span(3, claimed=1))
    ledger = Ledger(past.writes)
    assert ledger.lacking(past.known()) == ()


# --- whatever was lost ----------------------------------------------------------------------------


def lost_dues(writes: Collection[Write]) -> int:
    """How many due times these tell of."""
    counted = sum(sum(row.counts.values()) for row in writes if isinstance(row, SpanRow))
    return counted + len({row.run for row in writes if isinstance(row, RunRow)})


def knows_timings(lost: Collection[Write]) -> bool:
    """Whether the status still tells of every timing that is lost: it tells of one."""
    return sum(isinstance(row, TimingRow) for row in lost) <= 1


KEPT = st.integers(0, 4)


@given(pasts(), st.data(), KEPT, KEPT)
def test_whatever_a_crash_lost_the_audit_balances(
    past: Past, data: st.DataObject, recent: int, spans: int
):
    """All from some write on was lost, and the process that filled it died once, too."""
    stored = data.draw(st.integers(0, len(past.writes)))
    known = past.known(recent=recent, spans=spans)
    ledger = Ledger(past.writes[:stored])
    first = ledger.lacking(known)
    ledger.write(first[: data.draw(st.integers(0, len(first)))])
    ledger.fill(known)

    assert ledger.lacking(known) == ()
    ledger.write([*past.alive, MarkRow(UID, KEY, known.mark)])
    found = ledger.audit()
    assert found.differences == ()
    if knows_timings(past.writes[stored:]):
        assert found.unrecorded <= lost_dues(past.writes[stored:])
    assert all(
        state in ENDED
        for due, state in ledger.states().items()
        if due not in {row.run.due for row in past.alive}
    )


@given(pasts(), st.data())
def test_what_the_status_tells_is_not_unrecorded(past: Past, data: st.DataObject):
    stored = data.draw(st.integers(0, len(past.writes)))
    assume(knows_timings(past.writes[stored:]))
    ledger = Ledger(past.writes[:stored])
    ledger.fill(past.known(recent=1000, spans=1000))
    ledger.write([*past.alive, MarkRow(UID, KEY, past.cursor)])
    assert ledger.audit().unrecorded == 0
    assert ledger.audit().differences == ()


@given(pasts(), st.data(), KEPT, KEPT)
def test_whatever_was_dropped_the_audit_balances(
    past: Past, data: st.DataObject, recent: int, spans: int
):
    """Too many rows waited: runs and verdicts were dropped, and what still waits follows."""
    stored = data.draw(st.integers(1, len(past.writes)))
    dropped: list[Write] = []
    waiting: list[Write] = []
    for write in past.writes[stored:]:
        is_verdict = isinstance(write, SpanRow) and write.kind is Range.VERDICT
        if isinstance(write, MarkRow):
            continue
        if (is_verdict or isinstance(write, RunRow)) and data.draw(st.booleans()):
            dropped.append(write)
        else:
            waiting.append(write)
    known = past.known(recent=recent, spans=spans)
    ledger = Ledger(past.writes[:stored])
    split = data.draw(st.integers(0, len(waiting)))
    ledger.fill(known, waiting[:split], waiting[split:])
    ledger.write([*waiting, *past.alive, MarkRow(UID, KEY, known.mark)])

    found = ledger.audit()
    assert found.differences == ()
    assert found.unrecorded <= lost_dues(dropped)
