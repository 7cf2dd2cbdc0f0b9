"""Deferred runs: each goes to exactly one of all callers, and none is lost with a caller."""

from __future__ import annotations

import asyncio
from itertools import chain

from tests.builders import instant
from tests.contract.ledger.rows import (
    exported,
    later,
    run,
    run_id,
    the_run,
    write,
)
from tests.contract.ledger.stores import Opener

from evenkeel.ledger.rows import Deferred, Holder, Promoted, RunRow, ScheduleEnded
from evenkeel.ledger.store import RunStore
from evenkeel.model import RunId, RunState

HOLDER = Holder(1, "one")
NOON = float(instant("12:00"))


def runs_of(promoted: Promoted) -> list[RunId]:
    return [row.run for row in promoted.rows]


async def test_what_is_due_comes_by_due_time_then_priority(store: RunStore) -> None:
    await write(
        store,
        later("10:00", "12:01", priority=9),
        later("09:00", "11:00"),
        later("09:00", "11:00", "b", priority=5),
        later("08:00", "11:00"),
        later("07:00", "10:59", priority=-1),
        later("06:00", "12:00"),
        later("08:00", "11:00", kind="q0abcdef"),
    )

    promoted = await store.promote_due(NOON, 100, HOLDER)

    assert runs_of(promoted) == [
        run_id("07:00"),
        run_id("09:00", "b"),
        run_id("08:00", kind="q0abcdef"),
        run_id("08:00"),
        run_id("09:00"),
        run_id("06:00"),
    ]
    assert {row.state for row in promoted.rows} == {RunState.PENDING}


async def test_a_promoted_row_says_what_its_write_said(store: RunStore) -> None:
    await write(store, later("10:00", 36_000.25, priority=3, attempt=2, request="wish"))

    promoted = await store.promote_due(NOON, 1, HOLDER)

    due_at = float(instant(36_000.25))
    assert promoted.rows == (
        Deferred(
            run_id("10:00"), "default/a", due_at, 3, RunState.PENDING, attempt=2, request="wish"
        ),
    )
    assert await store.deferred() == promoted.rows


async def test_what_was_promoted_is_not_due_any_more(place: Opener) -> None:
    store = await place()
    await write(store, *(later(60 * number, 60 * number) for number in range(10)))

    taken = [runs_of(await store.promote_due(NOON, 4, HOLDER)) for _ in range(4)]

    await store.close()
    assert [len(runs) for runs in taken] == [4, 4, 2, 0]
    assert sorted(chain(*taken)) == [run_id(60 * number) for number in range(10)]


async def test_each_goes_to_exactly_one_of_eight_callers(place: Opener) -> None:
    """With callers of a dead process, whose rows come back unless they have a Job."""
    count = 200
    store = await place()
    await write(store, *(later(number, number % 7) for number in range(count)))

    async def drain(holder: Holder, times: int) -> list[RunId]:
        got: list[RunId] = []
        for _ in range(times):
            got += runs_of(await store.promote_due(NOON, 7, holder))
        return got

    dead = [*chain(*await asyncio.gather(*(drain(Holder(1, "dead"), 2) for _ in range(4))))]
    launched = {(run, 1) for run in dead[::3]}
    assert await store.requeue(process="dead", launched=launched) == len(dead) - len(launched)
    alive = [*chain(*await asyncio.gather(*(drain(Holder(1, "alive"), 8) for _ in range(8))))]
    left = await store.promote_due(NOON, count, HOLDER)
    pending = await store.deferred()
    await store.close()

    assert len(dead) == len(set(dead)) == 4 * 2 * 7
    reported = [run for run, _ in launched] + alive
    assert sorted(reported) == [run_id(number) for number in range(count)]
    assert left == Promoted()
    assert {row.state for row in pending} == {RunState.PENDING}


async def test_rows_of_an_older_term_are_put_back_for_the_next_process(place: Opener) -> None:
    store = await place()
    await write(store, later("09:00", "10:00"), later("09:30", "10:00", attempt=2))
    first = await store.promote_due(NOON, 10, Holder(1, "dead"))
    await store.close()

    store = await place()
    term = await store.take_term()
    nothing = await store.promote_due(NOON, 10, Holder(term, "alive"))
    count = await store.requeue(below_term=term)
    waiting = await store.deferred()
    again = await store.promote_due(NOON, 10, Holder(term, "alive"))
    await store.close()

    assert nothing == Promoted()
    assert count == 2
    assert [row.state for row in waiting] == [RunState.SCHEDULED, RunState.RETRYING]
    assert again == first


async def test_rows_of_the_own_term_and_of_other_processes_stay(store: RunStore) -> None:
    await write(store, later("09:00", "10:00"))
    await store.promote_due(NOON, 10, Holder(1, "one"))

    assert await store.requeue(below_term=1, process="two") == 0
    assert await store.requeue() == 0
    assert await store.promote_due(NOON, 10, Holder(1, "two")) == Promoted()


async def test_a_launched_attempt_stays_and_another_attempt_does_not(store: RunStore) -> None:
    await write(store, later("09:00", "10:00", attempt=2), later("09:30", "10:00", attempt=2))
    await store.promote_due(NOON, 10, Holder(1, "one"))

    launched = [(run_id("09:00"), 2), (run_id("09:30"), 1)]
    assert await store.requeue(process="one", launched=launched) == 1

    assert runs_of(await store.promote_due(NOON, 10, HOLDER)) == [run_id("09:30")]


async def test_a_run_that_begins_or_ends_leaves_the_hot_table(store: RunStore) -> None:
    await write(store, later("09:00", "10:00"), later("09:30", "10:00"), later("09:45", "10:00"))

    await write(
        store,
        run("09:00", RunState.RUNNING),
        run("09:30", RunState.CANCELLED),
        run("09:45", RunState.PENDING),
    )

    assert [(row.run, row.state) for row in await store.deferred()] == [
        (run_id("09:45"), RunState.PENDING)
    ]
    assert await store.promote_due(NOON, 10, HOLDER) == Promoted()


async def test_a_run_that_waits_without_a_time_has_no_hot_row(store: RunStore) -> None:
    await write(store, run("09:00", RunState.PENDING), run("10:00", RunState.SCHEDULED))

    assert await store.deferred() == ()


async def test_a_write_that_is_repeated_promotes_nobody_twice(store: RunStore) -> None:
    told = later("09:00", "10:00", attempt=2)
    await write(store, told)
    await store.promote_due(NOON, 10, HOLDER)

    await write(store, told)

    assert await store.promote_due(NOON, 10, HOLDER) == Promoted()


async def test_the_next_attempt_is_due_again(store: RunStore) -> None:
    await write(store, later("09:00", "10:00", attempt=2))
    await store.promote_due(NOON, 10, HOLDER)

    await write(store, later("09:00", "11:00", attempt=3))

    promoted = await store.promote_due(NOON, 10, HOLDER)
    assert [(row.run, row.attempt) for row in promoted.rows] == [(run_id("09:00"), 3)]


async def test_a_run_that_only_waits_for_its_create_is_put_back_after_a_crash(
    store: RunStore,
) -> None:
    """It was never promoted: the core began it by its own agenda."""
    await write(store, later("09:00", "10:00"))
    await write(store, run("09:00", RunState.PENDING, reason="held"))
    term = await store.take_term()

    assert await store.requeue(below_term=term) == 1

    promoted = await store.promote_due(NOON, 10, Holder(term, "next"))
    assert runs_of(promoted) == [run_id("09:00")]


async def test_stale_rows_are_dropped_and_counted(store: RunStore) -> None:
    """A row may outlive its run where rows were copied, or come after its schedule was deleted."""
    await write(store, later("09:00", "10:00"), later("09:30", "10:00"))
    copied = [chunk async for chunk in store.export() if chunk.table == "deferred"]
    await write(
        store,
        run("09:00", RunState.SUCCEEDED),
        ScheduleEnded("b", "default/b", at=instant("09:00"), until=instant("09:00")),
        later("09:00", "10:00", "b"),
    )
    for chunk in copied:
        await store.restore(chunk)

    promoted = await store.promote_due(NOON, 10, HOLDER)

    assert promoted.stale == 2
    assert runs_of(promoted) == [run_id("09:30")]
    assert [row.run for row in await store.deferred()] == [run_id("09:30")]


async def test_a_run_shows_when_it_is_due_again(store: RunStore) -> None:
    told = later("09:00", "10:00", attempt=2, priority=4)
    await write(store, told)

    assert await the_run(store, run_id("09:00")) == told
    await write(store, run("09:00", RunState.RUNNING, attempt=2))
    row: RunRow = await the_run(store, run_id("09:00"))
    assert (row.due_at, row.priority) == (None, 0)
    assert "deferred" not in await exported(store)
