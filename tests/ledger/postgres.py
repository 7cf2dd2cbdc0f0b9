"""What tests of the PostgreSQL store share: stores that are closed at their end, and rows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, RunRow
from evenkeel.ledger.store import RunStore
from evenkeel.model import RunId, RunState

NOON = 1_800_014_400


@asynccontextmanager
async def opened(
    url: str, *, readonly: bool = False, within_s: float = 30.0
) -> AsyncIterator[RunStore]:
    store = await open_store(url, readonly=readonly, within_s=within_s)
    try:
        yield store
    finally:
        await store.close()


def run_row(number: int, state: RunState = RunState.RUNNING, *, uid: str = "u") -> RunRow:
    return RunRow(RunId(uid, NOON + number), f"shop/{uid}", state)


def batch_of(count: int, *, first: int = 0, uid: str = "u") -> Batch:
    rows = tuple(run_row(first + number, uid=uid) for number in range(count))
    return Batch(float(NOON), rows)
