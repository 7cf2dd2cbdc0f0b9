"""Range rows, marks, the end of a schedule, and the books that an audit reads."""

from __future__ import annotations

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    exported,
    key_of,
    later,
    opened,
    run,
    run_id,
    spans,
    the_run,
    timing,
    verdict,
    write,
)
from tests.contract.ledger.stores import Opener

from evenkeel.ledger.rows import (
    UNRECORDED,
    Book,
    MarkRow,
    Range,
    ScheduleEnded,
    ScheduleRow,
    SpanClosed,
    SpanRow,
    Written,
)
from evenkeel.ledger.store import RunStore
from evenkeel.model import RunState


def closed(last: str | float, uid: str = "a", *, reason: str = "suspended") -> SpanClosed:
    return SpanClosed(uid, key_of(uid), reason, instant(last))


def mark(at: str | float, uid: str = "a") -> MarkRow:
    return MarkRow(uid, key_of(uid), instant(at))


def deleted(
    at: str | float, uid: str = "a", *, until: str | float | None = None, phase: str = ""
) -> ScheduleEnded:
    return ScheduleEnded(
        uid, key_of(uid), instant(at), instant(at if until is None else until), phase
    )


async def book(store: RunStore, first: str | float, end: str | float, uid: str = "a") -> Book:
    (found,) = [book async for book in store.books(instant(first), instant(end), uids=[uid])]
    return found


async def schedule(store: RunStore, uid: str = "a") -> ScheduleRow:
    (found,) = [one async for one in store.schedules() if one.uid == uid]
    return found


# --- verdicts -------------------------------------------------------------------------------------


async def test_a_verdict_is_kept_as_it_was_told(store: RunStore) -> None:
    told = verdict("10:00", "12:00", counts={"skipped": 3, "missed": 1})

    assert await write(store, told) == Written(accepted=1)
    assert await write(store, told) == Written(accepted=1)

    assert await spans(store) == [told]


@pytest.mark.parametrize(
    "other",
    [
        verdict("11:59", "13:00"),
        verdict("09:00", "10:01"),
        verdict("10:30", "10:40"),
        verdict("09:00", "13:00"),
        verdict("10:00", "12:00", counts={"missed": 9}),
        verdict("10:00", "11:00"),
        verdict("11:00", "12:00", reason="other"),
    ],
)
async def test_a_verdict_that_overlaps_another_is_refused(store: RunStore, other: SpanRow) -> None:
    told = verdict("10:00", "12:00")
    await write(store, told)

    assert await write(store, other) == Written(illegal=1)

    assert await spans(store) == [told]


async def test_verdicts_may_touch_and_other_schedules_have_their_own(store: RunStore) -> None:
    written = await write(
        store,
        verdict("10:00", "12:00"),
        verdict("12:00", "13:00"),
        verdict("09:00", "10:00"),
        verdict("10:00", "12:00", "b"),
    )

    assert written == Written(accepted=4)


async def test_an_unrecorded_row_may_overlap_verdicts(store: RunStore) -> None:
    unknown = verdict("09:00", "15:00", counts={UNRECORDED: 4}, reason=UNRECORDED)

    written = await write(store, verdict("10:00", "12:00"), unknown, verdict("13:00", "14:00"))

    assert written == Written(accepted=3)
    beside = verdict("14:30", "16:00", counts={UNRECORDED: 1}, reason=UNRECORDED)
    assert await write(store, beside) == Written(illegal=1)


@pytest.mark.parametrize(
    "row",
    [
        verdict("10:00", "10:00"),
        verdict("10:00", "09:00"),
        verdict("10:00", "11:00", counts={}),
        verdict("10:00", "11:00", counts={"eaten": 1}),
        verdict("10:00", "11:00", counts={"skipped": 0}),
        SpanRow("a", "default/a", 0, None, {"skipped": 1}),
        SpanRow("a", "default/a", 0, 86_400, {"skipped": 1}, kind=Range.DAY),
        SpanRow("a", "default/a", 0, 86_400, {}, kind=Range.OPEN),
        SpanRow("a", "default/a", 0, None, {"skipped": 1}, kind=Range.OPEN),
    ],
)
async def test_a_range_that_is_none_is_bad(store: RunStore, row: SpanRow) -> None:
    assert await write(store, row) == Written(bad=1)

    assert await spans(store) == []


# --- open rows ------------------------------------------------------------------------------------


async def test_an_open_row_is_kept_once_for_each_reason(store: RunStore) -> None:
    written = await write(store, opened("10:00"), opened("11:00"), opened("10:30", reason="paused"))

    assert written == Written(accepted=3)
    assert await spans(store) == [opened("10:00"), opened("10:30", reason="paused")]


@pytest.mark.parametrize("last", ["09:00", "10:00", "12:00"])
async def test_an_open_row_goes_when_it_is_closed(store: RunStore, last: str) -> None:
    await write(store, opened("10:00"), opened("10:30", reason="paused"))

    assert await write(store, closed(last)) == Written(accepted=1)
    assert await write(store, closed(last)) == Written(accepted=1)

    assert await spans(store) == [opened("10:30", reason="paused")]
    await write(store, opened("13:00"))
    assert len(await spans(store)) == 2


async def test_a_verdict_takes_the_place_of_what_was_open_for_its_reason(store: RunStore) -> None:
    await write(store, opened("10:00"), opened("10:00", reason="paused"), opened("10:00", "b"))

    await write(store, verdict("10:30", "12:00"))

    assert await spans(store, name="a") == [
        opened("10:00", reason="paused"),
        verdict("10:30", "12:00"),
    ]
    assert await spans(store, name="b") == [opened("10:00", "b")]


async def test_a_verdict_before_it_leaves_an_open_row(store: RunStore) -> None:
    await write(store, opened("12:00"))

    await write(store, verdict("10:00", "12:00"))

    assert await spans(store) == [opened("12:00"), verdict("10:00", "12:00")]


# --- schedules ------------------------------------------------------------------------------------


async def test_any_write_makes_a_schedule_known(store: RunStore) -> None:
    await write(
        store,
        run("10:00", RunState.RUNNING, "a"),
        opened("10:00", "b"),
        closed("10:00", "c"),
        timing("10:00", uid="d"),
        mark("10:00", "e"),
        deleted("10:00", "f"),
    )

    known = [one.uid async for one in store.schedules()]

    assert known == ["a", "b", "c", "d", "e", "f"]


async def test_schedules_come_by_key_and_uid_as_bytes(store: RunStore) -> None:
    names = ["default/é", "default/z", "default/Z", "default/a-b", "default/a.b", "other/a", "Z/a"]
    for number, key in enumerate([*names, names[0]]):
        await write(store, MarkRow(f"uid-{number}", key, 1))

    found = [(one.key, one.uid) async for one in store.schedules()]

    assert found == sorted(found, key=lambda pair: [part.encode() for part in pair])
    assert len(found) == 8


async def test_a_schedule_is_answered_for_since_its_first_timing(store: RunStore) -> None:
    await write(store, mark("09:00"))
    assert (await schedule(store)).since == 0

    await write(store, timing("11:00"))
    await write(store, timing("10:00", "{}"))

    assert (await schedule(store)).since == instant("10:00")
    assert (await book(store, 0, 1)).timings == (timing("10:00", "{}"), timing("11:00"))


async def test_a_timing_of_the_same_instant_replaces_the_other(store: RunStore) -> None:
    await write(store, timing("10:00", "{}"), timing("10:00", ""))

    assert (await book(store, 0, 1)).timings == (timing("10:00", ""),)


async def test_the_last_mark_counts(store: RunStore) -> None:
    await write(store, mark("10:00"))
    await write(store, mark("11:00"), mark("10:30"))

    assert (await schedule(store)).mark == instant("10:30")


async def test_the_key_of_a_schedule_never_changes(store: RunStore) -> None:
    await write(store, run("10:00", RunState.RUNNING))

    await write(store, run("11:00", RunState.RUNNING, key="other/b"))

    assert {row.key for row in await all_rows(store)} == {"default/a"}


async def test_the_end_of_a_schedule_cancels_what_has_no_end(store: RunStore) -> None:
    await write(
        store,
        run("10:00", RunState.RUNNING, job="a-1"),
        run("09:00", RunState.FAILED, reason="job_failed"),
        later("11:00", "12:00"),
        later("11:00", "12:00", "b"),
        opened("10:30"),
        opened("11:30", reason="paused"),
        timing("08:00"),
    )

    end = deleted("11:00", until="11:00", phase='{"offset":3}')
    assert await write(store, end) == Written(accepted=1)
    before = await exported(store)
    await write(store, end)

    assert await exported(store) == before
    cancelled = await the_run(store, run_id("10:00"))
    assert (cancelled.state, cancelled.reason) == (RunState.CANCELLED, "schedule_deleted")
    assert (cancelled.finished, cancelled.job) == (instant("11:00"), "a-1")
    assert (await the_run(store, run_id("09:00"))).reason == "job_failed"
    assert [row.run.uid for row in await store.deferred()] == ["b"]
    assert await store.unfinished("a") == ()
    ended = await schedule(store)
    assert (ended.ended_at, ended.until) == (instant("11:00"), instant("11:00"))
    assert ended.phase == '{"offset":3}'
    (left,) = await spans(store, name="a")
    assert (left.kind, left.first, left.end) == (Range.OPEN, instant("10:30"), instant("11:00") + 1)


async def test_nothing_opens_in_a_schedule_that_was_deleted(store: RunStore) -> None:
    await write(store, opened("10:00"), deleted("11:00"))
    before = await spans(store)

    again = await write(store, opened("10:00"), deleted("11:00"), opened("12:00", reason="paused"))

    assert again == Written(accepted=3)
    assert await spans(store) == before


async def test_the_first_end_of_a_schedule_counts(store: RunStore) -> None:
    await write(store, deleted("10:00"))

    await write(store, deleted("11:00", phase="{}"))

    ended = await schedule(store)
    assert (ended.ended_at, ended.until, ended.phase) == (instant("10:00"), instant("10:00"), "{}")


# --- books ----------------------------------------------------------------------------------------


async def test_a_book_has_what_lies_in_its_time(store: RunStore) -> None:
    await write(
        store,
        timing("00:00"),
        mark("14:00"),
        run("09:59", RunState.SUCCEEDED),
        run("10:00", RunState.FAILED),
        run("10:30", RunState.RUNNING, kind="q0abcdef"),
        run("11:30", RunState.SUCCEEDED),
        run("12:00", RunState.SUCCEEDED),
        verdict("10:10", "11:10"),
    )

    found = await book(store, "10:00", "12:00")

    assert (found.first, found.end) == (instant("10:00"), instant("12:00"))
    assert found.schedule == await schedule(store)
    assert found.spans == (verdict("10:10", "11:10"),)
    assert found.runs == (
        (instant("10:00"), RunState.FAILED),
        (instant("11:30"), RunState.SUCCEEDED),
    )


async def test_a_book_is_widened_until_it_cuts_no_range(store: RunStore) -> None:
    unknown = verdict("07:30", "09:00", counts={UNRECORDED: 1}, reason=UNRECORDED)
    await write(
        store,
        verdict("09:30", "10:30"),
        verdict("08:30", "09:30"),
        unknown,
        verdict("06:00", "07:00"),
        verdict("11:30", "13:00"),
        opened("11:00", reason="paused"),
        run("07:45", RunState.SUCCEEDED),
        run("12:59", RunState.SUCCEEDED),
        run("13:00", RunState.SUCCEEDED),
    )

    found = await book(store, "10:00", "12:00")

    assert (found.first, found.end) == (instant("09:30"), instant("13:00"))
    wider = await book(store, "09:00", "12:00")
    assert (wider.first, wider.end) == (instant("07:30"), instant("13:00"))
    assert wider.spans == (
        unknown,
        verdict("08:30", "09:30"),
        verdict("09:30", "10:30"),
        opened("11:00", reason="paused"),
        verdict("11:30", "13:00"),
    )
    assert [due for due, _ in wider.runs] == [instant("07:45"), instant("12:59")]


async def test_books_come_for_all_schedules_or_those_that_are_named(place: Opener) -> None:
    store = await place()
    await write(store, *(mark("10:00", uid) for uid in ("c", "a", "b")))
    every = [book.schedule.uid async for book in store.books(0, 10)]
    named = [book.schedule.uid async for book in store.books(0, 10, uids=["c", "nobody", "b"])]
    await store.close()

    assert every == ["a", "b", "c"]
    assert named == ["b", "c"]
