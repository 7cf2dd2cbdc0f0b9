"""Requested runs on every store: who asked for them, how they are found, and that nobody expects
them."""

from __future__ import annotations

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    key_of,
    later,
    run,
    run_id,
    the_run,
    timing,
    verdict,
    write,
)

from evenkeel.ledger.audit import audit
from evenkeel.ledger.reckoning import timing_text
from evenkeel.ledger.rows import Holder, MarkRow, RunRow, ScheduleEnded
from evenkeel.ledger.store import RunStore
from evenkeel.model import Cron, RunState, Timing

KIND = "q0abcdef"
ASKED = {"kind": KIND, "request": "again", "requested_by": "ann@shop"}


async def test_who_asked_for_a_run_is_kept_once_it_is_known(store: RunStore) -> None:
    await write(store, run("10:00", RunState.RUNNING, **ASKED))
    await write(store, run("10:00", RunState.SUCCEEDED, kind=KIND))
    await write(store, run("11:00", RunState.SUCCEEDED, kind=KIND))
    await write(store, run("11:00", RunState.SUCCEEDED, **ASKED))

    for due in ("10:00", "11:00"):
        row = await the_run(store, run_id(due, kind=KIND))
        assert (row.state, row.request, row.requested_by) == (
            RunState.SUCCEEDED,
            "again",
            "ann@shop",
        )


async def test_a_requested_run_stands_beside_that_of_the_schedule(store: RunStore) -> None:
    await write(store, run("10:00", RunState.FAILED), run("10:00", RunState.SUCCEEDED, **ASKED))

    states = await store.states([run_id("10:00"), run_id("10:00", kind=KIND)])

    assert states == {
        run_id("10:00"): RunState.FAILED,
        run_id("10:00", kind=KIND): RunState.SUCCEEDED,
    }


@pytest.mark.parametrize(
    "of", [{}, {"namespace": "default"}, {"name": "a"}], ids=["all", "ns", "a"]
)
async def test_the_runs_of_a_request_are_found_by_its_name(
    store: RunStore, of: dict[str, str]
) -> None:
    wanted = [run(due, RunState.SUCCEEDED, **ASKED) for due in ("12:00", "11:00", "10:00")]
    await write(
        store,
        *wanted,
        run("10:00", RunState.SUCCEEDED),
        run("10:00", RunState.FAILED, kind="q0bcdefg", request="other"),
        verdict("13:00", "15:00"),
    )

    assert await all_rows(store, request="again", limit=2, **of) == wanted
    assert await all_rows(store, request="again", states=frozenset({"failed"}), **of) == []
    assert await all_rows(store, request="nobody", **of) == []


async def test_a_run_for_later_is_promoted_put_back_and_goes_when_it_begins(
    store: RunStore,
) -> None:
    await write(store, later("10:00", "10:00", **ASKED))
    promoted = await store.promote_due(float(instant("10:00")), 10, Holder(1, "one"))
    assert [(row.run.kind, row.request) for row in promoted.rows] == [(KIND, "again")]

    assert await store.requeue(process="one") == 1
    (hot,) = await store.deferred()
    assert (hot.state, hot.request) == (RunState.SCHEDULED, "again")

    await write(store, run("10:00", RunState.RUNNING, **ASKED))
    assert await store.deferred() == ()


@pytest.mark.parametrize("reason", ["request_deleted", "schedule_deleted"])
async def test_a_run_for_later_goes_with_what_it_was_for(store: RunStore, reason: str) -> None:
    await write(store, later("10:00", "10:00", **ASKED))
    gone = (
        ScheduleEnded("a", key_of("a"), instant("09:00"), instant("09:00"))
        if reason == "schedule_deleted"
        else run("10:00", RunState.CANCELLED, kind=KIND, reason=reason)
    )

    await write(store, gone)

    assert await store.deferred() == ()
    row = await the_run(store, run_id("10:00", kind=KIND))
    assert (row.state, row.reason, row.request) == (RunState.CANCELLED, reason, "again")


async def test_an_audit_expects_no_requested_run_and_finds_none_too_many(store: RunStore) -> None:
    """At due times that ran, that were skipped as a whole, and that never were."""
    dues = ("01:00", "02:00", "03:00", "04:00", "05:00", "05:30")
    await write(
        store,
        timing("00:00", timing_text(Timing(Cron("@hourly")))),
        run("01:00", RunState.SUCCEEDED),
        verdict("02:00", "04:00"),
        run("04:00", RunState.FAILED),
        run("05:00", RunState.SKIPPED),
        MarkRow("a", key_of("a"), instant("05:00")),
    )
    before = await audit(store, instant("00:00"), instant("06:00"))

    await write(store, *(run(due, RunState.SUCCEEDED, **ASKED) for due in dues))

    assert before.balanced
    assert before.found.expected == 5
    assert await audit(store, instant("00:00"), instant("06:00")) == before
    assert await store.check() == []
    rows = await all_rows(store, request="again")
    assert all(isinstance(row, RunRow) for row in rows)
    assert len(rows) == len(dues)
