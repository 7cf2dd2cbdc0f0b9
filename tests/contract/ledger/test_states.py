"""What a write makes of the row that is stored."""

from __future__ import annotations

import itertools

from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    exported,
    later,
    opened,
    run,
    run_id,
    the_run,
    timing,
    verdict,
    write,
)

from evenkeel.ledger.rows import Batch, MarkRow, Minute, Written
from evenkeel.ledger.store import RunStore
from evenkeel.model import ENDED, Attempt, RunState


async def test_every_step_from_every_state_is_taken_or_refused(store: RunStore) -> None:
    wrong = []
    cells = enumerate(itertools.product([None, *RunState], RunState))
    for number, (stored, new) in cells:
        due = 60 * number
        if stored is not None:
            assert await write(store, run(due, stored)) == Written(accepted=1)
        written = await write(store, run(due, new))
        legal = stored not in ENDED or stored is new
        expected = (Written(accepted=1) if legal else Written(illegal=1), new if legal else stored)
        state = (await store.states([run_id(due)]))[run_id(due)]
        if (written, state) != expected:
            wrong.append((stored, new, written, state))

    assert wrong == []


async def test_an_older_attempt_is_refused(store: RunStore) -> None:
    await write(store, run("10:00", RunState.RUNNING, attempt=2, job="a-retry1"))

    written = await write(store, run("10:00", RunState.FAILED, attempt=1))

    assert written == Written(illegal=1)
    assert (await the_run(store, run_id("10:00"))).state is RunState.RUNNING


async def test_a_write_that_does_not_know_the_attempt_leaves_it(store: RunStore) -> None:
    await write(
        store, later("09:00", "10:00", attempt=2), run("10:00", RunState.RUNNING, attempt=3)
    )

    written = await write(
        store,
        later("09:00", "10:30", attempt=0),
        run("10:00", RunState.SUCCEEDED, attempt=0),
        later("11:00", "12:00", attempt=0),
    )

    assert written == Written(accepted=3)
    assert (await the_run(store, run_id("10:00"))).attempt == 3
    assert (await the_run(store, run_id("09:00"))).attempt == 2
    assert [row.attempt for row in await store.deferred()] == [2, 1]


async def test_the_same_batch_again_changes_nothing(store: RunStore) -> None:
    batch = Batch(
        1000.0,
        (
            timing("00:00"),
            run("10:00", RunState.RUNNING, job="a-1", attempts=(Attempt(1, "a-1", 36000.5),)),
            run("10:00", RunState.SUCCEEDED, finished=instant("10:01")),
            later("11:00", "11:05", attempt=2),
            opened("12:00"),
            verdict("12:00", "14:00"),
            opened("15:00"),
            MarkRow("a", "default/a", instant("14:00")),
        ),
        (Minute(instant("10:00"), {"succeeded": 1}, (1, 0)),),
    )
    first = await store.write(batch, term=1)
    before = await exported(store)

    again = await store.write(batch, term=1)

    assert first == Written(accepted=8)
    assert again.accepted + again.illegal == 8
    assert await exported(store) == before


async def test_an_end_never_changes(store: RunStore) -> None:
    end = run("10:00", RunState.FAILED, reason="job_failed", exit_code=3, attempt=2)
    await write(store, end)

    same = run("10:00", RunState.FAILED, reason="refused", exit_code=4, attempt=2, container="main")
    assert await write(store, same) == Written(accepted=1)
    assert await write(store, run("10:00", RunState.LOST, attempt=2)) == Written(illegal=1)

    row = await the_run(store, run_id("10:00"))
    assert (row.state, row.reason, row.exit_code) == (RunState.FAILED, "job_failed", 3)
    assert row.container == "main", "what was empty is filled"


async def test_empty_fields_leave_what_is_stored(store: RunStore) -> None:
    told = run(
        "10:00",
        RunState.RUNNING,
        job="a-1",
        taken_up=1.5,
        created=2.5,
        started=instant("10:00"),
        generation=4,
        template_hash="abc",
        request="wish",
        requested_by="ann",
        message="words",
        exit_code=0,
        exit_reason="Error",
        container="main",
    )
    await write(store, told)

    await write(store, run("10:00", RunState.RUNNING))

    assert await the_run(store, run_id("10:00")) == told


async def test_later_words_replace_earlier_ones_but_not_those_of_the_first_attempt(
    store: RunStore,
) -> None:
    await write(
        store, run("10:00", RunState.RUNNING, job="a-1", taken_up=1.0, created=2.0, exit_code=1)
    )

    await write(
        store,
        run(
            "10:00", RunState.RUNNING, job="a-2", taken_up=8.0, created=9.0, exit_code=0, attempt=2
        ),
    )

    row = await the_run(store, run_id("10:00"))
    assert (row.job, row.attempt, row.exit_code) == ("a-2", 2, 0)
    assert (row.taken_up, row.created) == (1.0, 2.0)


async def test_a_reason_goes_with_its_state(store: RunStore) -> None:
    await write(store, run("10:00", RunState.PENDING, reason="queued"))
    await write(store, run("10:00", RunState.PENDING))
    assert (await the_run(store, run_id("10:00"))).reason == "queued"

    await write(store, run("10:00", RunState.RUNNING))

    assert (await the_run(store, run_id("10:00"))).reason == ""


async def test_attempts_are_merged_by_number(store: RunStore) -> None:
    await write(
        store,
        run(
            "10:00",
            RunState.RETRYING,
            attempts=(Attempt(2, "a-2", created=20.5), Attempt(1, "a-1", exit_code=1)),
        ),
    )
    await write(
        store,
        run(
            "10:00",
            RunState.RUNNING,
            attempt=3,
            attempts=(
                Attempt(3, "a-3"),
                Attempt(1, "other", started=11, exit_code=0),
                Attempt(2, finished=22, exit_code=0, reason="Error"),
            ),
        ),
    )

    assert (await the_run(store, run_id("10:00"))).attempts == (
        Attempt(1, "a-1", started=11, exit_code=1),
        Attempt(2, "a-2", created=20.5, finished=22, exit_code=0, reason="Error"),
        Attempt(3, "a-3"),
    )


async def test_a_run_may_be_written_twice_in_one_batch(store: RunStore) -> None:
    written = await write(
        store,
        run("10:00", RunState.RUNNING, job="a-1"),
        run("10:00", RunState.SUCCEEDED),
        run("10:00", RunState.FAILED),
    )

    assert written == Written(accepted=2, illegal=1)
    row = await the_run(store, run_id("10:00"))
    assert (row.state, row.job) == (RunState.SUCCEEDED, "a-1")


async def test_runs_of_the_same_due_time_are_told_apart_by_kind(store: RunStore) -> None:
    await write(
        store,
        run("10:00", RunState.RUNNING),
        run("10:00", RunState.FAILED, kind="q0abcdef", request="wish"),
    )

    assert await store.states([run_id("10:00"), run_id("10:00", kind="q0abcdef")]) == {
        run_id("10:00"): RunState.RUNNING,
        run_id("10:00", kind="q0abcdef"): RunState.FAILED,
    }


async def test_unfinished_runs_of_a_schedule_come_by_due_time(store: RunStore) -> None:
    await write(
        store,
        run("11:00", RunState.RUNNING),
        run("10:00", RunState.PENDING),
        run("10:00", RunState.RETRYING, kind="q0abcdef"),
        run("09:00", RunState.SUCCEEDED),
        run("08:00", RunState.RUNNING, "b"),
    )

    assert await store.unfinished("a") == (
        run_id("10:00", kind="q0abcdef"),
        run_id("10:00"),
        run_id("11:00"),
    )
    assert await store.unfinished("nobody") == ()


async def test_states_of_runs_without_a_row_are_left_out(store: RunStore) -> None:
    await write(store, run("10:00", RunState.LOST))

    asked = [run_id("09:00"), run_id("10:00"), run_id("10:00", "nobody")]
    assert await store.states(asked) == {run_id("10:00"): RunState.LOST}
    assert await store.states([]) == {}


async def test_an_empty_store_answers_everything(store: RunStore) -> None:
    assert await all_rows(store) == []
    assert await store.deferred() == ()
    assert [one async for one in store.schedules()] == []
    assert [one async for one in store.books(0, 1000)] == []
    assert await store.minutes(0, 1000) == ()
    assert await store.check() == []
    assert await exported(store) == {}
