"""The outbox against a list of all that went in: order, bounds, and nothing lost or doubled."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from evenkeel.ledger.outbox import MOST_HELD, Outbox, Teller
from evenkeel.ledger.rows import (
    MarkRow,
    Range,
    RunRow,
    ScheduleEnded,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import BY_SCHEDULE, RunId, RunState

LIMIT = 5
UIDS = st.sampled_from("abc")
KINDS = st.sampled_from(["q0first", "q0other"])
"""Of requested runs."""


def a_run(uid: str, number: int, kind: str = BY_SCHEDULE) -> Write:
    return RunRow(RunId(uid, number, kind), f"shop/{uid}", RunState.SUCCEEDED)


def a_verdict(uid: str, number: int) -> Write:
    return SpanRow(uid, f"shop/{uid}", number, number + 1, {"missed": 1})


def an_open_range(uid: str, number: int) -> Write:
    return SpanRow(uid, f"shop/{uid}", number, None, kind=Range.OPEN)


def a_timing(uid: str, number: int) -> Write:
    return TimingRow(uid, f"shop/{uid}", number, "{}")


DROPPABLE = (a_run, a_verdict)
ANY = st.sampled_from((a_run, a_run, a_run, a_verdict, an_open_range, a_timing))


class Row:
    """One that went in, and what became of it."""

    def __init__(self, uid: str, write: Write, revision: int, since_m: float) -> None:
        self.uid, self.write, self.revision, self.since_m = uid, write, revision, since_m
        self.kind = write.run.kind if isinstance(write, RunRow) else BY_SCHEDULE
        self.written = self.dropped = False

    @property
    def is_requested(self) -> bool:
        return self.kind != BY_SCHEDULE


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_m = 0.0
        self.number = 0
        self.outbox = Outbox(limit=LIMIT)
        self.rows: list[Row] = []
        self.told = dict.fromkeys("abc", 0)
        self.marks = dict.fromkeys("abc", 0)
        self.before_mark: dict[tuple[str, int], list[Row]] = {}
        """What the status had told of when it told this mark first."""
        self.written_marks = dict.fromkeys("abc", 0)
        self.ended: set[str] = set()
        self.told_requests: dict[tuple[str, str], int] = {}
        self.before_end: dict[str, list[Row]] = {}
        """Rows of the requests of a schedule when it was deleted."""
        self.lacking: set[str] = set()
        self.filled = 0

    def of(self, uid: str, kind: str = BY_SCHEDULE) -> list[Row]:
        return [row for row in self.rows if (row.uid, row.kind) == (uid, kind)]

    @rule(uid=UIDS, make=ANY, ahead=st.integers(0, 3))
    def hold(self, uid, make, ahead):
        if uid in self.ended:
            return
        last = max([row.revision for row in self.of(uid)], default=self.told[uid])
        self.number += 1
        row = Row(uid, make(uid, self.number), max(last, self.told[uid] + ahead), self.now_m)
        self.rows.append(row)
        self.outbox.hold(Teller(uid), row.write, revision=row.revision, now_m=self.now_m)
        self.note_drops()

    @rule(uid=UIDS, kind=KINDS, ahead=st.integers(0, 3))
    def hold_of_a_request(self, uid, kind, ahead):
        rows, told = self.of(uid, kind), self.told_requests.get((uid, kind), 0)
        last = max([row.revision for row in rows], default=told)
        self.number += 1
        write = a_run(uid, self.number, kind)
        row = Row(uid, write, max(last, told + ahead, 1), self.now_m)
        self.rows.append(row)
        self.outbox.hold(Teller(uid, kind), write, revision=row.revision, now_m=self.now_m)
        self.note_drops()

    @rule(uid=UIDS, kind=KINDS, more=st.integers(0, 4))
    def tell_of_a_request(self, uid, kind, more):
        told = self.told_requests.get((uid, kind), 0) + more
        self.told_requests[uid, kind] = told
        self.outbox.tell_request(uid, kind, revision=told)

    @rule(uid=UIDS, kind=KINDS)
    def delete_or_read_a_request_again(self, uid, kind):
        for row in self.of(uid, kind):
            row.revision = -1  # none waits any more for the status of its request
        self.told_requests[uid, kind] = 0
        self.outbox.release_request(uid, kind)

    @rule(uid=UIDS, more=st.integers(0, 4), moves=st.booleans())
    def tell(self, uid, more, moves):
        if uid in self.ended:
            return
        self.told[uid] += more
        self.number += moves
        mark = self.mark(uid)
        self.outbox.tell(mark, revision=self.told[uid], now_m=self.now_m)
        self.note_drops()

    def mark(self, uid: str) -> MarkRow:
        if self.number > self.marks[uid]:
            self.marks[uid] = self.number
            rows = [row for row in self.of(uid) if row.revision <= self.told[uid]]
            self.before_mark[uid, self.number] = rows
        return MarkRow(uid, f"shop/{uid}", self.marks[uid])

    @rule(uid=UIDS)
    def end_schedule(self, uid):
        if uid in self.ended:
            return
        self.ended.add(uid)
        end = ScheduleEnded(uid, f"shop/{uid}", self.number, self.number)
        requested = [row for row in self.rows if row.uid == uid and row.is_requested]
        for row in requested:
            row.revision = -1
            self.told_requests[uid, row.kind] = 0
        self.rows.append(Row(uid, end, 0, self.now_m))
        self.before_end[uid] = requested
        self.outbox.end(uid, end, now_m=self.now_m)
        self.note_drops()

    @rule(seconds=st.sampled_from((1.0, 20.0, 3_600.0)))
    def time_passes(self, seconds):
        self.now_m += seconds

    @rule(uid=UIDS)
    def lose(self, uid):
        self.outbox.open_gap(uid)
        self.lacking.add(uid)

    @precondition(lambda self: list(self.outbox.gaps()))
    @rule(late=st.booleans())
    def fill(self, late):
        uid, gap = next(self.outbox.gaps())
        assert uid in self.lacking
        if late:  # while it was found what is lacking, more was lost
            self.outbox.open_gap(uid)
        self.filled += 1
        lacked = SpanRow(uid, f"shop/{uid}", -self.filled, 0, {"unrecorded": 1})
        mark = MarkRow(uid, f"shop/{uid}", self.marks[uid])
        filled = self.outbox.fill(uid, gap, [lacked, mark], upto=self.marks[uid], now_m=self.now_m)
        assert filled is not late
        if filled:
            self.lacking.discard(uid)
            waits = [row for row in self.of(uid) if not row.written and not row.dropped]
            at = self.rows.index(waits[0]) if waits else len(self.rows)
            self.rows.insert(at, Row(uid, lacked, 0, self.now_m))

    @rule(limit=st.integers(1, 5), times=st.integers(1, 2))
    def write(self, limit, times):
        writes = self.outbox.take(limit)
        for _ in range(times - 1):  # one whose answer is lost is written again as it was
            assert self.outbox.take(limit + 1) == writes
        for write in writes:
            self.see(write)
        self.outbox.written()

    def see(self, write: Write) -> None:
        uid = write.run.uid if isinstance(write, RunRow) else write.uid
        rows = self.of(uid)
        if isinstance(write, MarkRow):
            assert write.mark >= self.written_marks[uid]
            self.written_marks[uid] = write.mark
            told_before = self.before_mark.get((uid, write.mark), [])
            assert all(row.written or row.dropped for row in told_before)
            return
        (row,) = [row for row in self.rows if row.write is write]
        assert not row.written
        if row.is_requested:
            rows = self.of(uid, row.kind)
            assert row.revision <= self.told_requests.get((uid, row.kind), 0)
        else:
            assert uid not in self.lacking or row.since_m == self.now_m
            assert row.revision <= self.told[uid] or uid in self.ended
        if isinstance(write, ScheduleEnded):
            assert all(each.written or each.dropped for each in self.before_end[uid])
        row.written = True
        later = rows[rows.index(row) + 1 :]
        assert not any(each.written for each in later)

    def waiting(self) -> list[Write]:
        box = self.outbox
        found = [each.write for each in (*box._queue.values(), *box._taken)]
        return found + [
            each.write for lane in box._lanes.values() for each in (*lane.aside, *lane.held)
        ]

    def note_drops(self) -> None:
        waiting = {id(write) for write in self.waiting()}
        self.lacking |= set(self.outbox._gaps)
        for row in self.rows:
            if not (row.written or row.dropped or id(row.write) in waiting):
                row.dropped = True
                assert row.uid in self.lacking or row.is_requested

    @invariant()
    def every_row_is_somewhere_once(self):
        waiting = [id(write) for write in self.waiting()]
        assert len(waiting) == len(set(waiting))
        written = sum(row.written for row in self.rows)
        assert len(self.rows) == written + len(waiting) + self.outbox.dropped
        assert self.outbox.dropped == sum(row.dropped for row in self.rows)
        assert self.outbox.sizes()["rows that wait"] == len(waiting)

    @invariant()
    def rows_are_bounded_and_only_runs_and_verdicts_are_dropped(self):
        kept = [row for row in self.rows if not self.may_be_dropped(row)]
        waiting = {id(write) for write in self.waiting()}
        assert all(row.written or id(row.write) in waiting for row in kept)
        filling = sum(1 for row in self.rows if row.revision == 0)
        essential = len([row for row in kept if not row.written])
        assert len(waiting) <= LIMIT + essential + filling

    def may_be_dropped(self, row: Row) -> bool:
        write = row.write
        return isinstance(write, RunRow) or (
            isinstance(write, SpanRow) and write.kind is Range.VERDICT
        )

    def teardown(self):
        """Once all is told and filled, nothing is left behind."""
        for uid in "abc":
            self.told[uid] += 100
            if uid not in self.ended:
                mark = self.mark(uid)
                self.outbox.tell(mark, revision=self.told[uid], now_m=self.now_m)
        for uid, kind in {(row.uid, row.kind) for row in self.rows if row.is_requested}:
            self.delete_or_read_a_request_again(uid, kind)
        while self.outbox.ready or self.outbox.sizes()["schedules with a gap"]:
            if list(self.outbox.gaps()):
                self.fill(False)
            self.write(5, 1)
        left = {what: size for what, size in self.outbox.sizes().items() if size}
        assert set(left) <= {"told marks", "told requests"}
        assert len(self.outbox) == 0
        assert self.outbox.oldest_m is None


def held_back(number: int) -> Outbox:
    """So many runs of one schedule, none of which a status told of."""
    outbox = Outbox(limit=10 * MOST_HELD)
    for revision in range(1, number + 1):
        outbox.hold(Teller("a"), a_run("a", revision), revision=revision, now_m=0.0)
    return outbox


def test_a_row_waits_for_its_status_however_long_that_takes():
    outbox = held_back(1)
    assert outbox.take(10) == ()
    outbox.tell(MarkRow("a", "shop/a", 1), revision=1, now_m=86_400.0)
    assert outbox.take(10) == (a_run("a", 1), MarkRow("a", "shop/a", 1))


def test_a_schedule_whose_status_is_refused_for_ever_takes_no_more_room_than_it_may():
    outbox = held_back(MOST_HELD + 200)
    assert outbox.sizes()["rows that wait"] == MOST_HELD
    assert outbox.dropped == 200


def test_the_gap_of_a_row_that_no_status_told_of_is_filled_once_one_does():
    """Filled before, the mark of that status would pass the row that was dropped."""
    outbox = held_back(MOST_HELD + 1)
    assert list(outbox.gaps()) == []
    outbox.tell(MarkRow("a", "shop/a", MOST_HELD + 1), revision=MOST_HELD + 1, now_m=1.0)
    assert outbox.take(MOST_HELD + 2) == ()  # set aside until what is lacking is found
    assert [uid for uid, _ in outbox.gaps()] == ["a"]


def test_all_that_waits_of_a_schedule_is_told_its_requests_too():
    outbox = Outbox(limit=10)
    held, told = a_run("a", 1), a_run("a", 2, "q0first")
    outbox.hold(Teller("a"), held, revision=1, now_m=0.0)
    outbox.hold(Teller("a", "q0first"), told, revision=1, now_m=0.0)
    outbox.hold(Teller("a", "q0first"), a_run("a", 3, "q0first"), revision=2, now_m=0.0)
    outbox.hold(Teller("b"), a_run("b", 4), revision=1, now_m=0.0)
    outbox.tell_request("a", "q0first", revision=1)
    assert outbox.take(10) == (told,)
    assert outbox.all_of("a") == [told, held, a_run("a", 3, "q0first")]


def test_requested_rows_do_not_wait_for_the_gap_of_their_schedule_and_make_none():
    outbox = Outbox(limit=1)
    outbox.open_gap("a")
    outbox.tell_request("a", "q0first", revision=9)
    outbox.tell_request("b", "q0first", revision=9)
    outbox.hold(Teller("a", "q0first"), a_run("a", 1, "q0first"), revision=1, now_m=0.0)
    assert outbox.take(10) == (a_run("a", 1, "q0first"),)
    outbox.written()
    for number in (1, 2):
        outbox.hold(Teller("b", "q0first"), a_run("b", number, "q0first"), revision=1, now_m=0.0)
    assert outbox.dropped == 1
    assert not outbox.has_gap("b")
    outbox.tell(MarkRow("b", "shop/b", 5), revision=1, now_m=0.0)
    assert outbox.take(10) == (a_run("b", 2, "q0first"), MarkRow("b", "shop/b", 5))


TestOutbox = Machine.TestCase
TestOutbox.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
