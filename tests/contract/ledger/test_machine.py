"""Any sequence of operations: every store answers as the model does."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.builders import MONDAY
from tests.contract.ledger.rows import exported
from tests.contract.ledger.stores import STORES, Place, memory, place_of

from evenkeel.errors import EvenkeelError
from evenkeel.ledger.rows import (
    UNRECORDED,
    Batch,
    Exported,
    Folded,
    Holder,
    MarkRow,
    Minute,
    Range,
    Retention,
    RunQuery,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
)
from evenkeel.ledger.store import RunStore
from evenkeel.model import Attempt, RunId, RunState

UIDS = ("a", "b", "ab", "é")
KEYS = {"a": "default/a", "b": "prod/b", "ab": "default/ab", "é": "Z/é"}
KINDS = ("s", "s", "s", "q0abcdef", "q0bcdefg")
REASONS = ("", "overlap", "é", "Z", "suspended")
STATES = [*map(str, RunState), UNRECORDED]

uids = st.sampled_from(UIDS)
kinds = st.sampled_from(KINDS)
reasons = st.sampled_from(REASONS)
instants = st.integers(0, 60).map(lambda number: MONDAY + number * 6 * 3600)
times = st.none() | st.integers(0, 50).map(lambda number: MONDAY + number / 4)
numbers = st.none() | st.integers(0, 3)
texts = st.sampled_from(["", "", "one", "two", "with\0nul", "lone\ud800"])


@st.composite
def run_rows(draw: st.DrawFn) -> RunRow:
    uid = draw(uids)
    return RunRow(
        RunId(uid, draw(instants), draw(kinds)),
        KEYS[uid],
        draw(st.sampled_from(RunState)),
        reason=draw(reasons),
        attempt=draw(st.integers(0, 3)),
        job=draw(texts),
        taken_up=draw(times),
        created=draw(times),
        started=draw(numbers),
        finished=draw(numbers),
        exit_code=draw(numbers),
        message=draw(texts),
        generation=draw(st.integers(0, 2)),
        request=draw(texts),
        requested_by=draw(texts),
        attempts=tuple(draw(st.lists(attempts, max_size=2))),
        due_at=draw(times),
        priority=draw(st.integers(-1, 1)),
    )


attempts = st.builds(
    Attempt,
    number=st.integers(1, 3),
    job=texts,
    created=times,
    started=numbers,
    exit_code=numbers,
    reason=texts,
)


@st.composite
def span_rows(draw: st.DrawFn) -> SpanRow:
    uid, first, reason = draw(uids), draw(instants), draw(reasons)
    if draw(st.integers(0, 3)) == 0:
        return SpanRow(uid, KEYS[uid], first, None, {}, reason, Range.OPEN)
    counts = draw(
        st.dictionaries(st.sampled_from(["skipped", "missed", UNRECORDED]), st.integers(0, 3))
    )
    return SpanRow(uid, KEYS[uid], first, first + draw(st.integers(0, 200_000)), counts, reason)


def of_schedule(kind: type, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return uids.flatmap(
        lambda uid: st.builds(kind, uid=st.just(uid), key=st.just(KEYS[uid]), **fields)
    )


writes = (
    run_rows()
    | run_rows()
    | span_rows()
    | of_schedule(SpanClosed, reason=reasons, last=instants)
    | of_schedule(TimingRow, after=instants, fields=texts)
    | of_schedule(MarkRow, mark=instants)
)
endings = of_schedule(ScheduleEnded, at=instants, until=instants, phase=texts)
minutes = st.builds(
    Minute,
    at=st.integers(0, 200).map(lambda number: MONDAY + number * 60),
    ended=st.dictionaries(st.sampled_from(["failed", "lost"]), st.integers(1, 3)),
    lateness=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    load=st.integers(0, 5),
    score=st.none() | st.sampled_from([0.25, 0.5, 1.0]),
)
queries = st.builds(
    RunQuery,
    namespace=st.sampled_from(["", "", "default", "Z"]),
    name=st.sampled_from(["", "", "a", "é"]),
    states=st.frozensets(st.sampled_from(STATES), max_size=3),
    reasons=st.frozensets(reasons, max_size=2),
    kinds=st.frozensets(kinds, max_size=2),
    request=st.sampled_from(["", "", "", "one", "with\0nul"]),
    since=st.none() | instants,
    until=st.none() | instants,
    ranges=st.booleans(),
    limit=st.integers(1, 7),
)

Call = Callable[[RunStore], Awaitable[Any]]


class Machine(RuleBasedStateMachine):
    """The same calls to the model and to one other store."""

    other: Place

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._open = contextlib.AsyncExitStack()
        self._now = float(MONDAY)
        self.term = 1

    def both(self, call: Call) -> Any:
        """The answer of both, which must be the same."""
        expected, found = self._runner.run(self._call_both(call))
        assert found == expected
        return found

    async def _call_both(self, call: Call) -> tuple[Any, Any]:
        return await _answer(call, self.model), await _answer(call, self.store)

    @initialize()
    def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._runner.run(self._begin())

    async def _begin(self) -> None:
        at = Path(self._folder.name)
        tables = await self._open.enter_async_context(memory(at))
        self._opener = await self._open.enter_async_context(type(self).other(at))
        self.model, self.store = await tables(), await self._opener()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self._runner.run(self._end())
            self._folder.cleanup()
        self._runner.close()

    async def _end(self) -> None:
        await self.store.close()
        await self._open.aclose()

    # --- operations -------------------------------------------------------------------------------

    @rule(rows=st.lists(writes, min_size=1, max_size=8), minutes=st.lists(minutes, max_size=3))
    def write(self, rows: list[Any], minutes: list[Minute]) -> None:
        batch = Batch(self._now, tuple(rows), tuple(minutes))
        self.both(lambda store: store.write(batch, term=self.term))

    @rule(rows=st.lists(writes, max_size=3), ending=endings)
    def write_again_with_an_end(self, rows: list[Any], ending: ScheduleEnded) -> None:
        batch = Batch(self._now, (*rows, ending, *rows))
        self.both(lambda store: store.write(batch, term=self.term))

    @rule(row=run_rows())
    def write_with_an_older_term(self, row: RunRow) -> None:
        self.both(lambda store: store.write(Batch(self._now, (row,)), term=self.term - 1))

    @rule(at_least=st.integers(0, 4))
    def take_term(self, at_least: int) -> None:
        self.term = self.both(lambda store: store.take_term(at_least))

    @rule(before=times, limit=st.integers(1, 5), process=st.sampled_from(["one", "two"]))
    def promote(self, before: float | None, limit: int, process: str) -> None:
        due = MONDAY + 1000.0 if before is None else before
        self.both(lambda store: store.promote_due(due, limit, Holder(self.term, process)))

    @rule(process=st.sampled_from(["", "one"]), below=st.booleans(), keep=st.integers(0, 3))
    def requeue(self, process: str, below: bool, keep: int) -> None:
        launched = [(row.run, row.attempt) for row in self.both(lambda store: store.deferred())]
        self.both(
            lambda store: store.requeue(
                below_term=self.term if below else 0, process=process, launched=launched[:keep]
            )
        )

    @rule(days=st.integers(0, 20))
    def pass_time(self, days: int) -> None:
        self._now += days * 86_400.0

    @rule(keep_runs=st.sampled_from([0, 2, 1000]), max_bytes=st.sampled_from([1, 1 << 40, 1 << 40]))
    def retain(self, keep_runs: int, max_bytes: int) -> None:
        retention = replace(
            Retention(days_s=60 * 86_400.0), keep_runs=keep_runs, max_bytes=max_bytes
        )
        self.both(lambda store: _retain(store, self._now, retention))

    @rule()
    def open_again(self) -> None:
        self._runner.run(self._open_again())

    async def _open_again(self) -> None:
        await self.store.close()
        self.store = await self._opener()

    @rule()
    def restore_into_itself(self) -> None:
        async def again(store: RunStore) -> int:
            chunks: list[Exported] = [chunk async for chunk in store.export()]
            return sum([await store.restore(chunk) for chunk in chunks])

        assert self.both(again) == 0

    # --- questions --------------------------------------------------------------------------------

    @rule(query=queries)
    def ask_for_runs(self, query: RunQuery) -> None:
        self.both(lambda store: _pages(store, query))

    @rule(first=instants, length=st.integers(1, 400_000), chosen=st.lists(uids, max_size=2))
    def ask_for_books(self, first: int, length: int, chosen: list[str]) -> None:
        async def books(store: RunStore) -> list[Any]:
            return [book async for book in store.books(first, first + length, uids=chosen)]

        self.both(books)

    @rule(first=instants, runs=st.lists(st.builds(RunId, uids, instants, kinds), max_size=5))
    def ask_for_the_rest(self, first: int, runs: list[RunId]) -> None:
        async def rest(store: RunStore) -> list[Any]:
            return [
                await store.states(runs),
                *[await store.unfinished(uid) for uid in UIDS],
                await store.minutes(first, first + 7200),
                [schedule async for schedule in store.schedules()],
                (await store.facts()).term,
                (await store.facts()).written_at,
                bool(await store.check()),
            ]

        self.both(rest)

    @invariant()
    def the_same_is_kept(self) -> None:
        if hasattr(self, "store"):
            self.both(lambda store: store.deferred())
            self.both(exported)


async def _answer(call: Call, store: RunStore) -> Any:
    try:
        return await call(store)
    except EvenkeelError as error:
        return type(error)


async def _retain(store: RunStore, now: float, retention: Retention) -> int:
    """How many runs were folded; how many parts that took is the store's own affair."""
    runs = 0
    while True:
        done: Folded = await store.retain(now, retention)
        runs += done.runs
        if not done.more:
            return runs


async def _pages(store: RunStore, query: RunQuery) -> list[Any]:
    pages, cursor = [], ""
    while True:
        page = await store.runs(replace(query, cursor=cursor))
        pages.append(page.items)
        if not (cursor := page.next):
            return pages


def _run(other: Place, *, examples: int, steps: int) -> None:
    machine = type("MachineOf", (Machine,), {"other": staticmethod(other)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


REAL = [name for name in STORES if name != "memory"]


@pytest.mark.parametrize("name", REAL)
def test_a_store_answers_as_the_model_does(name: str, request: pytest.FixtureRequest) -> None:
    # PgBouncer passes on the same statements.
    _run(place_of(name, request), examples=10 if name == "pgbouncer" else 40, steps=30)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", REAL)
def test_a_store_answers_as_the_model_does_for_long(
    name: str, request: pytest.FixtureRequest
) -> None:
    _run(place_of(name, request), examples=2_000, steps=60)
