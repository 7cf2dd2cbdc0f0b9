"""What a request is told of the past of its schedule, against what happened.

Pasts of any kind are written to a real file: runs, ranges of due times, due times of which nothing
is recorded, runs of two requests, other timings. Old rows are folded now and then, and the last
rows still wait in the outbox. The truth is kept beside, due time by due time.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import MONDAY
from tests.unit.ledger.books import every

from evenkeel.core.effects import AskRuns
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import PastRun, RunsTold
from evenkeel.core.schedule.planning import wanted_dues
from evenkeel.ledger import open_store
from evenkeel.ledger.outbox import Outbox, Teller
from evenkeel.ledger.questions import Questions
from evenkeel.ledger.reckoning import timing_text
from evenkeel.ledger.rows import (
    UNRECORDED,
    Batch,
    MarkRow,
    Range,
    Retention,
    RunRow,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.ledger.store import RunStore
from evenkeel.model import BY_SCHEDULE, DAY_S, Include, Instant, RunId, RunState

UID, KEY = "uid-report", "shop/report"
HOUR_S = 3600
BEGAN = MONDAY + HOUR_S // 2
KINDS = ("q0first", "q0other")
STATES = (RunState.SUCCEEDED, RunState.FAILED, RunState.SKIPPED, RunState.LOST)


@dataclass
class World:
    """One schedule, the store, and the truth."""

    store: RunStore
    outbox: Outbox = field(default_factory=lambda: Outbox(limit=1000))
    cursor: Instant = BEGAN
    hours: int = 2
    dues: list[Instant] = field(default_factory=list)
    runs: dict[tuple[Instant, str], PastRun] = field(default_factory=dict)
    unrecorded: set[Instant] = field(default_factory=set)
    claimed: set[Instant] = field(default_factory=set)
    """Due times of range rows that had a run between them, and those runs."""
    waits: bool = False
    """What is written waits in the outbox."""
    revision: int = 0

    async def write(self, *writes: Write) -> None:
        if not self.waits:
            batch = Batch(float(self.cursor), (*writes, MarkRow(UID, KEY, self.cursor)))
            written = await self.store.write(batch, term=1)
            assert written.accepted == len(batch.writes)
            return
        self.revision += 1
        for write in writes:
            kind = write.run.kind if isinstance(write, RunRow) else BY_SCHEDULE
            self.outbox.hold(Teller(UID, kind), write, revision=self.revision, now_m=0.0)
        if self.revision % 3 == 0:  # a status tells of some; the others are held
            mark = MarkRow(UID, KEY, self.cursor)
            self.outbox.tell(mark, revision=self.revision - 1, now_m=0.0)
            self.outbox.tell_request(UID, KINDS[0], revision=self.revision - 1)

    def next_dues(self, count: int) -> list[Instant]:
        found = []
        for _ in range(count):
            step = self.hours * HOUR_S
            self.cursor = (self.cursor // step + 1) * step
            found.append(self.cursor)
        self.dues += found
        return found

    async def retime(self, hours: int) -> None:
        self.hours = hours
        await self.write(TimingRow(UID, KEY, self.cursor, timing_text(every(hours * HOUR_S))))

    async def run(self, due: Instant, kind: str, state: RunState, *, begun: bool) -> None:
        if (due, kind) in self.runs:  # an end never changes
            return
        run, job = RunId(UID, due, kind), f"report-{kind}-{due}" if begun else ""
        if begun:
            await self.write(RunRow(run, KEY, RunState.RUNNING, job=job))
        await self.write(RunRow(run, KEY, state))
        self.runs[due, kind] = PastRun(due, kind, state, begun)

    async def span(self, count: int, reason: str, *, what: str, claimed: bool) -> None:
        dues = self.next_dues(count)
        if claimed and len(dues) > 2:
            self.claimed |= set(dues)
            await self.run(dues.pop(1), BY_SCHEDULE, RunState.FAILED, begun=True)
        if what == UNRECORDED:
            self.unrecorded |= set(dues)
        counts = {what: len(dues)}
        await self.write(SpanRow(UID, KEY, dues[0], dues[-1] + 1, counts, reason))

    async def suspend(self, count: int) -> None:
        opened = SpanRow(UID, KEY, self.cursor + 1, None, {}, "suspended", Range.OPEN)
        await self.write(opened)
        if count:
            await self.span(count, "suspended", what="skipped", claimed=False)
            await self.write(SpanClosed(UID, KEY, "suspended", self.cursor))
        else:
            self.next_dues(2)  # it is suspended still
            await self.write()

    async def fold(self, days: float, keep_runs: int) -> None:
        if not self.waits:
            kept = Retention(keep_s=days * DAY_S, keep_runs=keep_runs)
            while (await self.store.retain(float(self.cursor), kept)).more:
                pass

    async def kept(self) -> set[Instant]:
        """Due times that have a row of a run by schedule, or that a verdict covers still."""
        books = [book async for book in self.store.books(0, self.cursor + 1, uids=(UID,))]
        (book,) = books
        waiting = self.outbox.all_of(UID)
        found = {due for due, _ in book.runs}
        rows = [row.run for row in waiting if isinstance(row, RunRow)]
        found |= {run.due for run in rows if run.kind == BY_SCHEDULE}
        spans = [*book.spans, *(row for row in waiting if isinstance(row, SpanRow))]
        covers = [row for row in spans if row.kind in (Range.VERDICT, Range.OPEN)]
        return found | {
            due
            for due in self.dues
            for row in covers
            if row.first <= due and (row.end is None or due < row.end)
        }

    async def ask(self, first: Instant, end: Instant) -> RunsTold:
        inbox = Inbox(size=10)

        async def store() -> RunStore:
            return self.store

        questions = Questions(inbox, self.outbox, store, observe=lambda what, number: None)
        questions.ask(AskRuns("request", UID, KEY, first, end))
        while not (found := inbox.drain(1)):
            await asyncio.sleep(0.001)
        (told,) = found
        assert isinstance(told, RunsTold)
        assert told.has_ledger
        assert not told.away
        return told


COUNT = st.integers(1, 6)
EVENT = st.one_of(
    st.tuples(st.just("run"), st.sampled_from(STATES), st.booleans()),
    st.tuples(st.just("run"), st.sampled_from(STATES), st.booleans()),
    st.tuples(
        st.just("request"), st.integers(0, 40), st.sampled_from(KINDS), st.sampled_from(STATES)
    ),
    st.tuples(st.just("span"), COUNT, st.booleans()),
    st.tuples(st.just("unrecorded"), COUNT, st.booleans()),
    st.tuples(st.just("suspend"), COUNT),
    st.tuples(st.just("retime"), st.sampled_from((1, 2, 5, 11))),
)
FOLD = st.tuples(st.just("fold"), st.sampled_from((0.5, 1.0, 3.0)), st.sampled_from((1, 4, 99)))


@st.composite
def events(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """Some that are written, with folds between them, and some that wait."""
    found = draw(st.lists(EVENT, min_size=1, max_size=12))
    for fold in draw(st.lists(FOLD, max_size=3)):
        found.insert(draw(st.integers(len(found) // 2, len(found))), fold)
    found += [("wait",), *draw(st.lists(EVENT, max_size=4))]
    if draw(st.booleans()):
        found.append(("suspend", 0))
    return found


async def play(world: World, past: Iterable[tuple[object, ...]]) -> None:
    await world.retime(2)
    for event in past:
        match event:
            case ("run", RunState() as state, bool(begun)):
                (due,) = world.next_dues(1)
                await world.run(due, BY_SCHEDULE, state, begun=begun)
            case ("request", int(back), str(kind), RunState() as state):
                if world.dues:
                    due = world.dues[-1 - back % len(world.dues)]
                    await world.run(due, kind, state, begun=state is not RunState.SKIPPED)
            case ("span", int(count), bool(claimed)):
                await world.span(count, "superseded", what="missed", claimed=claimed)
            case ("unrecorded", int(count), bool(claimed)):
                await world.span(count, UNRECORDED, what=UNRECORDED, claimed=claimed)
            case ("suspend", int(count)):
                await world.suspend(count)
            case ("retime", int(hours)):
                await world.retime(hours)
            case ("fold", float(days), int(keep_runs)):
                await world.fold(days, keep_runs)
            case ("wait",):
                world.waits = True


def is_known(told: RunsTold, due: Instant) -> bool:
    named = any((run.due, run.kind) == (due, BY_SCHEDULE) for run in told.runs)
    lost = any(first <= due < end for first, end in told.unknown)
    return due > told.since and (named or not lost)


def succeeded(runs: Iterable[PastRun]) -> set[Instant]:
    return {run.due for run in runs if run.state is RunState.SUCCEEDED}


def had_jobs(runs: Iterable[PastRun]) -> set[Instant]:
    return {run.due for run in runs if run.had_job}


async def check(world: World, first: Instant, end: Instant) -> None:
    told = await world.ask(first, end)
    asked = [due for due in world.dues if first <= due < end]
    known = [due for due in asked if is_known(told, due)]
    truth = [run for run in world.runs.values() if run.due in known]
    assert len(told.runs) == len(set(told.runs))
    assert {run for run in told.runs if run.due in known} == set(truth)
    assert not set(known) & world.unrecorded, "nobody knows of them"
    for include, done in (
        (Include.NOT_SUCCEEDED, succeeded(truth)),
        (Include.NOT_RUN, had_jobs(truth)),
        (Include.ALL, set[Instant]()),
    ):
        assert wanted_dues(known, include, told.runs) == tuple(
            due for due in known if due not in done
        )
    kept = await world.kept() - world.unrecorded
    needless = [due for due in asked if due not in known and due in kept - world.claimed]
    later = [due for due in needless if due > told.since]
    assert not later, "it is known, and was told to be unknown"
    if needless:
        assert told.since not in kept - world.claimed, "more was told to be unknown than is"


@settings(max_examples=250, deadline=None)
@given(past=events(), first=st.integers(0, 20), count=st.integers(1, 60))
def test_what_is_told_of_the_past_is_what_happened(
    past: list[tuple[object, ...]], first: int, count: int
) -> None:
    async def run(folder: str) -> None:
        store = await open_store(f"sqlite://{folder}/ledger.db", within_s=60)
        try:
            world = World(store)
            await play(world, past)
            if world.dues:
                begin = world.dues[first % len(world.dues)]
                last = world.dues[min(first % len(world.dues) + count, len(world.dues)) - 1]
                await check(world, begin, last + 1)
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
