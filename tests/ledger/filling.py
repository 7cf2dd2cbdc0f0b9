"""Batches that no two tests of faults need to invent: runs of one schedule, each batch its own.

A batch is seen in a store whole, or not at all; `whole` says which are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, MarkRow, RunRow, TimingRow
from evenkeel.ledger.store import RunStore, StoreAway
from evenkeel.model import RunId, RunState

UID, KEY = "0a1b2c3d-0000-4000-8000-000000000001", "tests/filling"
BEGIN = 1_750_000_000 // 60 * 60
SIZE = 50
PATIENCE_S = 120.0
HANG_S = 60.0
"""A call that is not back by then hangs: no time-out in these tests is longer than 10 s."""


def batch(number: int, *, text: str = "") -> Batch:
    """The runs of one hour or so. `text` makes rows larger."""
    first = BEGIN + number * SIZE * 60
    dues = [first + 60 * place for place in range(SIZE)]
    runs = (
        RunRow(
            RunId(UID, due),
            KEY,
            RunState.SUCCEEDED,
            job=f"filling-{due // 60}",
            taken_up=due - 10.0,
            created=due + 0.01,
            started=due + 1,
            finished=due + 20,
            message=text,
        )
        for due in dues
    )
    begins = TimingRow(UID, KEY, BEGIN - 60, '{"interval":{"every":"1m"}}')
    return Batch(at=dues[-1] + 1.0, writes=(begins, *runs, MarkRow(UID, KEY, dues[-1])))


@asynccontextmanager
async def opened(url: str, *, within_s: float = 10.0) -> AsyncIterator[RunStore]:
    store = await in_time(open_store(url, within_s=within_s))
    try:
        yield store
    finally:
        await in_time(store.close())


async def in_time(call):  # type: ignore[no-untyped-def]
    """What a call returns or raises; a call that hangs is a failure."""
    async with asyncio.timeout(HANG_S):
        return await call


async def write(store: RunStore, number: int, *, text: str = "") -> None:
    """One batch, at once."""
    made = batch(number, text=text)
    written = await in_time(store.write(made, term=1))
    assert (written.illegal, written.bad) == (0, 0)


async def write_until_away(store: RunStore, first: int, *, text: str = "") -> tuple[int, str]:
    """Batch after batch; the number of the one that was refused, and the sentence."""
    for number in range(first, first + 1_000):
        try:
            await write(store, number, text=text)
        except StoreAway as error:
            return number, str(error)
    raise AssertionError("the store was never away")


async def write_in_the_end(store: RunStore, number: int) -> int:
    """One batch, again and again while the store is away; how often it was."""
    deadline, away = time.monotonic() + PATIENCE_S, 0
    while True:
        try:
            await write(store, number)
        except StoreAway:
            away += 1
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)
        else:
            return away


async def whole(store: RunStore) -> set[int]:
    """The numbers of the batches that are there; a part of a batch is a failure."""
    found: list[int] = []
    async with asyncio.timeout(HANG_S):
        async for book in store.books(BEGIN, BEGIN + 1_000_000_000):
            found += [(due - BEGIN) // 60 for due, _ in book.runs]
    assert len(set(found)) == len(found)
    numbers = {place // SIZE for place in found}
    assert set(found) == {n * SIZE + place for n in numbers for place in range(SIZE)}
    return numbers
