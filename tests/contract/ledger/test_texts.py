"""Texts that a store cannot keep as they are, and rows that no store can keep."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    dues,
    opened,
    run,
    run_id,
    the_run,
    timing,
    verdict,
    write,
    write_minutes,
)

from evenkeel.ledger.rows import MarkRow, Minute, ScheduleEnded, SpanClosed, Write, Written
from evenkeel.ledger.store import RunStore
from evenkeel.model import Attempt, RunState

TOO_LARGE = 1 << 63


async def test_text_is_cleaned_of_nul_and_lone_surrogates(store: RunStore) -> None:
    dirty = "a\0b\ud800c\udfff"
    told = run(
        "10:00",
        RunState.FAILED,
        reason=dirty,
        message=dirty,
        container=dirty,
        job=dirty,
        attempts=(Attempt(1, dirty, reason=dirty),),
    )

    written = await write(
        store, told, opened("11:00", reason=dirty), timing("00:00", dirty), run("12:00", told.state)
    )

    assert written == Written(accepted=4)
    row = await the_run(store, run_id("10:00"))
    clean = "a\ufffdb?c?"
    assert (row.reason, row.message, row.container, row.job) == (clean,) * 4
    assert row.attempts == (Attempt(1, clean, reason=clean),)
    assert row in await all_rows(store, reasons=frozenset({clean}))


async def test_any_other_text_is_kept_to_the_letter(store: RunStore) -> None:
    text = "'; DROP TABLE run; -- \"%_\\ \t\r\n é ß 漢字 🚀 \u202e \x01 $1 :at {schema}"
    told = run("10:00", RunState.FAILED, message=text, reason=text, template_hash=text)

    await write(store, told)

    assert await the_run(store, run_id("10:00")) == told
    assert await all_rows(store, reasons=frozenset({text})) == [told]


@pytest.mark.parametrize(
    "row",
    [
        run(TOO_LARGE, RunState.FAILED),
        run("10:00", RunState.FAILED, exit_code=TOO_LARGE),
        run("10:00", RunState.FAILED, created=float("nan")),
        run("10:00", RunState.FAILED, taken_up=float("inf")),
        run("10:00", RunState.FAILED, attempt=-1),
        run("10:00", RunState.FAILED, attempts=(Attempt(1, started=TOO_LARGE),)),
        run("10:00", RunState.SCHEDULED, due_at=float("-inf")),
        verdict(0, TOO_LARGE),
        opened(-TOO_LARGE * 2),
        timing(TOO_LARGE),
        MarkRow("a", "default/a", TOO_LARGE),
        SpanClosed("a", "default/a", "suspended", TOO_LARGE),
        ScheduleEnded("a", "default/a", 0, TOO_LARGE),
    ],
    ids=lambda row: type(row).__name__,
)
async def test_a_row_that_no_store_can_keep_costs_only_itself(store: RunStore, row: Write) -> None:
    good = [run(number, RunState.SUCCEEDED, f"s{number}") for number in range(499)]

    written = await write(store, *good[:321], row, *good[321:])

    assert written == Written(accepted=499, bad=1)
    assert len(dues(await all_rows(store, limit=1000))) == 499


async def test_a_minute_that_no_store_can_keep_costs_only_itself(store: RunStore) -> None:
    good = Minute(instant("10:00"), {"succeeded": 1})

    await write_minutes(store, replace(good, at=TOO_LARGE), good, Minute(0, score=float("nan")))

    assert await store.minutes(0, 1 << 60) == (good,)


async def test_long_text_is_kept(store: RunStore) -> None:
    told = run("10:00", RunState.FAILED, message="m" * 100_000)

    await write(store, told)

    assert await the_run(store, run_id("10:00")) == told
