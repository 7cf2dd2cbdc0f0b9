"""What the tools do: export and restore, check, and opening for reading only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    exported,
    later,
    opened,
    run,
    timing,
    verdict,
    write,
    write_minutes,
)
from tests.contract.ledger.stores import STORES, Opener, place_of

from evenkeel.ledger.rows import (
    UNRECORDED,
    Batch,
    Exported,
    Holder,
    MarkRow,
    Minute,
    Retention,
    ScheduleEnded,
)
from evenkeel.ledger.store import BadStore, RunStore
from evenkeel.model import Attempt, RunState


async def fill(store: RunStore) -> None:
    """Some of everything."""
    await write(
        store,
        timing("00:00"),
        timing("01:00", "", "b"),
        run("01:00", RunState.SUCCEEDED, taken_up=1.25, attempts=(Attempt(1, "a-1", 2.5),)),
        run("02:00", RunState.FAILED, exit_code=0, message="é", generation=3),
        run("02:00", RunState.RUNNING, "b", kind="q0abcdef", request="wish", requested_by="ann"),
        later("03:00", "04:00", attempt=2, priority=5),
        later("03:00", "04:30", "b"),
        verdict("05:00", "06:00", counts={"skipped": 1, "missed": 2}),
        verdict("05:30", "06:30", counts={UNRECORDED: 1}, reason=UNRECORDED),
        opened("06:00"),
        MarkRow("a", "default/a", instant("06:00")),
        ScheduleEnded("c", "default/c", 10, 9, '{"offset":1}'),
        at="06:00",
    )
    await store.promote_due(float(instant("04:10")), 10, Holder(1, "one"))
    await write_minutes(store, Minute(instant("01:00"), {"failed": 1}, (1, 2), 3, 0.5, 4, 5))
    await write(store, *(run(number, RunState.SUCCEEDED, "d") for number in range(5)), at=0)
    await store.retain(float(instant("06:00")), Retention(keep_runs=2, max_bytes=1 << 40))


@pytest.mark.parametrize("to", STORES)
async def test_a_copy_has_all_there_is_and_copying_again_adds_nothing(
    place: Opener, to: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = await place()
    await fill(source)
    (tmp_path / "to").mkdir()
    async with place_of(to, request)(tmp_path / "to") as opener:
        target = await opener()
        counts = []
        for _ in range(2):
            copied, total = 0, 0
            async for chunk in source.export():
                copied += await target.restore(chunk)
                total += len(chunk.rows)
            counts.append((copied, total))
        same = await exported(target) == await exported(source)
        rows = await all_rows(target)
        wrong = await target.check()
        await target.close()
    expected = await all_rows(source)
    await source.close()

    (copied, total), (again, _) = counts
    assert copied == total > 15
    assert again == 0
    assert same
    assert wrong == []
    assert len(rows) == len(expected)
    assert all(row in expected for row in rows)


async def test_what_is_there_stays_when_other_rows_are_restored(store: RunStore) -> None:
    await fill(store)
    chunks = [chunk async for chunk in store.export()]
    await write(store, run("02:00", RunState.CANCELLED, "b", kind="q0abcdef"))
    before = await exported(store)

    for chunk in chunks:
        assert await store.restore(chunk) == 0

    assert await exported(store) == before


async def test_chunks_say_how_many_rows_there_are(store: RunStore) -> None:
    count = 2_500
    await write(store, *(run(number, RunState.SUCCEEDED) for number in range(count)))

    chunks = [chunk async for chunk in store.export() if chunk.table == "run"]

    assert {chunk.total for chunk in chunks} == {count}
    assert sum(len(chunk.rows) for chunk in chunks) == count
    assert chunks[0].rows[0].keys() >= {"uid", "kind", "due", "state", "attempts", "recorded"}


async def test_a_sound_store_has_nothing_wrong(store: RunStore) -> None:
    await fill(store)

    assert await store.check() == []


async def test_planted_damage_is_found(store: RunStore) -> None:
    await fill(store)
    row: dict[str, object] = {
        "uid": "a",
        "kind": "verdict",
        "counts": '{"skipped":1}',
        "recorded": 0.0,
    }
    overlapping = row | {"first": instant("05:10"), "end": instant("05:20"), "reason": "x"}
    backwards = row | {"first": 500, "end": 400, "reason": "y"}
    stale = {
        "uid": "a",
        "kind": "s",
        "due": instant("02:00"),
        "due_at": 5.0,
        "priority": 0,
        "state": "scheduled",
        "attempt": 1,
        "request": "",
        "requested_by": "",
        "term": None,
        "process": None,
    }
    await store.restore(Exported("span", 2, (overlapping, backwards)))
    await store.restore(Exported("deferred", 1, (stale,)))

    wrong = await store.check()

    assert any("overlap" in sentence and "default/a" in sentence for sentence in wrong), wrong
    assert any("500" in sentence for sentence in wrong), wrong
    assert any("deferred" in sentence for sentence in wrong), wrong


async def test_a_store_that_is_opened_for_reading_refuses_writes(place: Opener) -> None:
    store = await place()
    await fill(store)
    before = await exported(store)
    await store.close()

    reading = await place(readonly=True)
    chunk = Exported("minute", 0, ())
    for refused in (
        reading.write(Batch(0.0), term=9),
        reading.take_term(),
        reading.promote_due(0.0, 1, Holder(9, "one")),
        reading.requeue(process="one"),
        reading.retain(0.0, Retention()),
        reading.restore(chunk),
    ):
        with pytest.raises(BadStore, match="read"):
            await refused
    after = await exported(reading)
    facts = await reading.facts()
    await reading.close()

    assert after == before
    assert facts.term == 1
