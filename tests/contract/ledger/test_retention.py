"""What is old is folded, and nothing of it goes uncounted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.builders import MONDAY, instant
from tests.contract.ledger.rows import (
    DAY_S,
    all_rows,
    dues,
    later,
    opened,
    run,
    run_id,
    spans,
    timing,
    verdict,
    write,
    write_minutes,
)
from tests.contract.ledger.stores import Opener

from evenkeel.ledger.rows import (
    LATENESS_BOUNDS_S,
    Folded,
    Holder,
    MarkRow,
    Minute,
    Range,
    Retention,
    RunRow,
    ScheduleEnded,
    SpanRow,
    Written,
)
from evenkeel.ledger.store import RunStore
from evenkeel.model import DAY_S as A_DAY
from evenkeel.model import RunState

KEPT = Retention(keep_s=30 * DAY_S, keep_runs=1000, days_s=365 * DAY_S, max_bytes=1 << 40)
LONG_AFTER = MONDAY + 40 * DAY_S
DAY = SpanRow("a", "default/a", MONDAY, MONDAY + A_DAY, {}, kind=Range.DAY)


async def retain(store: RunStore, now: float, retention: Retention = KEPT) -> Folded:
    """Until there is no more to fold."""
    total = Folded()
    for _ in range(10_000):
        done = await store.retain(now, retention)
        total = Folded(
            total.runs + done.runs, total.spans + done.spans, total.minutes + done.minutes
        )
        if not done.more:
            return total
    raise AssertionError("retain never came to an end")


async def test_old_runs_become_one_row_of_their_day(store: RunStore) -> None:
    await write(
        store,
        run("01:00", RunState.SUCCEEDED),
        run("02:00", RunState.SUCCEEDED),
        run("23:59:59", RunState.FAILED),
        run("+1d 00:00", RunState.LOST),
        run("01:00", RunState.SKIPPED, "b"),
        at="+1d 00:00",
    )

    done = await retain(store, LONG_AFTER)

    assert done == Folded(runs=5)
    assert dues(await all_rows(store)) == []
    assert sorted(await spans(store), key=lambda row: (row.uid, row.first)) == [
        replace(DAY, counts={"succeeded": 2, "failed": 1}),
        replace(DAY, first=MONDAY + A_DAY, end=MONDAY + 2 * A_DAY, counts={"lost": 1}),
        replace(DAY, uid="b", key="default/b", counts={"skipped": 1}),
    ]


async def test_rows_are_added_to_the_day_that_is_there(store: RunStore) -> None:
    await write(store, run("01:00", RunState.SUCCEEDED), at="01:00")
    await retain(store, LONG_AFTER)
    await write(store, run("02:00", RunState.SUCCEEDED), verdict("03:00", "05:00"), at="02:00")

    await retain(store, LONG_AFTER)

    assert await spans(store) == [replace(DAY, counts={"succeeded": 2, "skipped": 2})]


async def test_what_was_recorded_lately_stays_however_old_its_due_time(store: RunStore) -> None:
    await write(store, run("01:00", RunState.SUCCEEDED), verdict("02:00", "03:00"), at="+39d 00:00")
    await write(store, run("+39d 00:00", RunState.SUCCEEDED), at="01:00")

    assert await retain(store, LONG_AFTER) == Folded()

    assert len(await all_rows(store)) == 3


async def test_what_has_no_end_stays(store: RunStore) -> None:
    await write(
        store,
        run("01:00", RunState.RUNNING),
        later("02:00", "+90d 00:00"),
        opened("03:00"),
        at="02:00",
    )

    assert await retain(store, LONG_AFTER, replace(KEPT, keep_runs=0, max_bytes=1)) == Folded()

    assert len(await all_rows(store)) == 3
    assert len(await store.deferred()) == 1


async def test_requested_runs_go_uncounted(store: RunStore) -> None:
    await write(store, run("01:00", RunState.SUCCEEDED, kind="q0abcdef"), at="01:00")

    assert await retain(store, LONG_AFTER) == Folded(runs=1)

    assert await all_rows(store) == []


async def test_each_schedule_keeps_its_newest_runs(store: RunStore) -> None:
    await write(
        store,
        *(run(MONDAY + 60 * number, RunState.SUCCEEDED) for number in range(10)),
        run(MONDAY, RunState.FAILED, "b"),
        run(MONDAY + 120, RunState.RUNNING, "c"),
        *(run(MONDAY + 200 + number, RunState.SUCCEEDED, "c") for number in range(4)),
    )

    done = await retain(store, MONDAY + 1000, replace(KEPT, keep_runs=3))

    assert done == Folded(runs=8)
    left = dues(await all_rows(store))
    assert sorted(left) == [
        *(("a", MONDAY + 60 * number) for number in (7, 8, 9)),
        ("b", MONDAY),
        ("c", MONDAY + 120),
        *(("c", MONDAY + 200 + number) for number in (1, 2, 3)),
    ]
    counts = {row.uid: row.counts for row in await spans(store)}
    assert counts == {"a": {"succeeded": 7}, "c": {"succeeded": 1}}


async def test_requested_runs_push_no_runs_by_schedule_out_and_are_not_pushed_out(
    store: RunStore,
) -> None:
    """What a backfill has run itself would look as if it had not run."""
    await write(
        store,
        *(run(MONDAY + 60 * number, RunState.SUCCEEDED) for number in range(4)),
        *(run(MONDAY + 60 * number, RunState.SUCCEEDED, kind="q0abcdef") for number in range(9)),
    )

    assert await retain(store, MONDAY + 1000, replace(KEPT, keep_runs=3)) == Folded(runs=1)

    rows = await all_rows(store, ranges=False)
    kinds = [row.run.kind for row in rows if isinstance(row, RunRow)]
    assert (kinds.count("s"), kinds.count("q0abcdef")) == (3, 9)


async def test_a_run_that_ends_after_newer_ones_is_folded_too(store: RunStore) -> None:
    narrow = replace(KEPT, keep_runs=1)
    await write(
        store,
        run("01:00", RunState.RUNNING),
        run("02:00", RunState.SUCCEEDED),
        run("01:00", RunState.RUNNING, "b"),
        run("02:00", RunState.SUCCEEDED, "b"),
    )
    assert await retain(store, MONDAY, narrow) == Folded()

    await write(store, run("01:00", RunState.FAILED))
    await write(store, ScheduleEnded("b", "default/b", instant("03:00"), instant("03:00")))

    assert await retain(store, MONDAY, narrow) == Folded(runs=2)


async def test_another_retention_looks_at_all_schedules_again(place: Opener) -> None:
    store = await place()
    await write(store, *(run(MONDAY + 60 * number, RunState.SUCCEEDED) for number in range(10)))
    await retain(store, MONDAY, replace(KEPT, keep_runs=8))
    await write(store, run(MONDAY + 3600, RunState.SUCCEEDED, "b"))
    await retain(store, MONDAY, replace(KEPT, keep_runs=5))
    narrower = len(dues(await all_rows(store, name="a")))
    await store.close()
    store = await place()
    await retain(store, MONDAY, replace(KEPT, keep_runs=2))
    reopened = len(dues(await all_rows(store, name="a")))
    await store.close()

    assert (narrower, reopened) == (5, 2)


async def test_a_run_that_was_folded_is_not_counted_again(store: RunStore) -> None:
    told = (
        run("01:00", RunState.SUCCEEDED),
        verdict("02:00", "+1d 05:00", counts={"skipped": 7}),
        MarkRow("a", "default/a", instant("+1d 05:00")),
    )
    await write(store, *told, at="+1d 05:00")
    await retain(store, LONG_AFTER)
    before = await all_rows(store)

    written = await write(store, *told, run("+1d 06:00", RunState.LOST), at="+40d 00:00")

    assert written == Written(accepted=4)
    assert [row for row in await all_rows(store) if row not in before] == [
        run("+1d 06:00", RunState.LOST)
    ]


async def test_a_range_over_several_days_is_folded_into_its_first(store: RunStore) -> None:
    await write(
        store,
        verdict("22:00", "+2d 03:00", counts={"skipped": 20, "missed": 1}),
        run("01:00", RunState.SUCCEEDED),
        at="+2d 03:00",
    )

    assert await retain(store, LONG_AFTER) == Folded(runs=1, spans=1)

    (day,) = await spans(store)
    assert (day.first, day.end) == (MONDAY, MONDAY + 3 * A_DAY)
    assert day.counts == {"skipped": 20, "missed": 1, "succeeded": 1}


async def test_days_become_months_after_a_year(store: RunStore) -> None:
    """March has 31 days."""
    for day in range(40):
        await write(store, run(f"+{day}d 01:00", RunState.SUCCEEDED), at=f"+{day}d 01:00")
    await retain(store, MONDAY + 80 * DAY_S)
    assert len(await spans(store)) == 40

    await retain(store, MONDAY + (365 + 35) * DAY_S)

    kinds = Counter(row.kind for row in await spans(store))
    assert kinds == {Range.MONTH: 2, Range.DAY: 5}
    months = [row for row in await spans(store) if row.kind is Range.MONTH]
    assert [(row.first, row.end, row.counts) for row in months] == [
        (instant("2026-04-01T00:00:00Z"), instant("2026-05-01T00:00:00Z"), {"succeeded": 5}),
        (instant("2026-03-01T00:00:00Z"), instant("2026-04-01T00:00:00Z"), {"succeeded": 30}),
    ]


async def test_the_oldest_go_while_the_store_is_too_large(store: RunStore) -> None:
    await write(
        store,
        *(run(MONDAY + 60 * number, RunState.SUCCEEDED) for number in range(20)),
        run(MONDAY, RunState.RUNNING, "b"),
    )
    assert (await store.facts()).bytes > 0

    done = await retain(store, MONDAY + 2000, replace(KEPT, max_bytes=1))

    assert done.runs == 20
    (left,) = [row for row in await all_rows(store) if isinstance(row, RunRow)]
    assert left.state is RunState.RUNNING
    assert [row.counts for row in await spans(store)] == [{"succeeded": 20}]


async def test_a_schedule_that_was_deleted_long_ago_is_forgotten(store: RunStore) -> None:
    for uid in ("a", "b"):
        await write(
            store, timing("00:00", uid=uid), run("01:00", RunState.SUCCEEDED, uid), at="01:00"
        )
    await write(store, ScheduleEnded("a", "default/a", instant("02:00"), instant("02:00")))
    await write(store, later("03:00", "04:00"))

    await retain(store, MONDAY + 360 * DAY_S)
    assert [one.uid async for one in store.schedules()] == ["a", "b"]

    await store.promote_due(MONDAY + DAY_S, 10, Holder(1, "one"))
    await write(store, run("03:00", RunState.CANCELLED), at="03:00")
    await retain(store, MONDAY + 366 * DAY_S)
    await retain(store, MONDAY + 366 * DAY_S)

    assert [one.uid async for one in store.schedules()] == ["b"]
    assert {row.key for row in await all_rows(store)} == {"default/b"}
    await write(store, run("01:00", RunState.SUCCEEDED))
    assert await store.states([run_id("01:00")]) == {run_id("01:00"): RunState.SUCCEEDED}
    assert await store.check() == []


# --- minutes --------------------------------------------------------------------------------------


def minute(at: str | float, **fields: object) -> Minute:
    return Minute(instant(at), **fields)  # type: ignore[arg-type]


async def test_minutes_are_kept_and_the_last_word_counts(store: RunStore) -> None:
    lateness = tuple(range(len(LATENESS_BOUNDS_S) + 1))
    full = minute(
        "10:01",
        ended={"succeeded": 3, "failed": 1},
        lateness=lateness,
        load=7,
        score=0.25,
        active=2,
        index_runs=9,
    )
    await write_minutes(store, full, minute("10:00"), minute("10:02"), minute("09:59"))
    await write_minutes(store, minute("10:00", load=4))

    found = await store.minutes(instant("10:00"), instant("10:02"))

    assert found == (minute("10:00", load=4), full)


async def test_minutes_become_hours(store: RunStore) -> None:
    await write_minutes(
        store,
        minute("10:00", ended={"failed": 1}, lateness=(1, 2), load=3, score=0.5, active=1),
        minute("10:59", ended={"failed": 2, "lost": 1}, lateness=(0, 1, 4), load=9, score=0.25),
        minute("10:30", index_runs=8),
        minute("11:00", load=1),
    )

    done = await retain(store, instant("11:30") + KEPT.minutes_s)

    assert done == Folded(minutes=3)
    assert await store.minutes(instant("10:00"), instant("12:00")) == (
        minute(
            "10:00",
            ended={"failed": 3, "lost": 1},
            lateness=(1, 3, 4),
            load=9,
            score=0.375,
            active=1,
            index_runs=8,
            span_s=3600,
        ),
        minute("11:00", load=1),
    )


async def test_a_minute_of_an_hour_that_was_folded_is_not_counted_again(store: RunStore) -> None:
    told = minute("10:05", ended={"failed": 1})
    await write_minutes(store, told)
    await retain(store, instant("11:30") + KEPT.minutes_s)
    before = await store.minutes(0, instant("12:00"))

    await write_minutes(store, told, minute("10:00"))

    assert await store.minutes(0, instant("12:00")) == before
