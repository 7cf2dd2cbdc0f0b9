"""A million runs through a store's own write path, of which a retention keeps a tenth."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.builders import MONDAY

from evenkeel.ledger.rows import Batch, Retention, RunRow
from evenkeel.ledger.store import RunStore
from evenkeel.model import Attempt, RunId, RunState

MILLION = 1_000_000
SCHEDULES = 1_000
EVERY_S = 600
BATCH = 500

KEPT = Retention(keep_s=1e9, keep_runs=100, days_s=1e9)
"""Of a thousand schedules: 100,000 rows."""


def runs(first: int, count: int) -> Iterator[RunRow]:
    """As most runs are: one attempt, which succeeded."""
    for number in range(first, first + count):
        schedule = number % SCHEDULES
        due = MONDAY + EVERY_S * (number // SCHEDULES)
        job = f"schedule-{schedule}-{due // 60}"
        attempt = Attempt(1, job, due + 0.01, due + 1, due + 30, 0)
        yield RunRow(
            RunId(f"0f8fad5b-d9cb-469f-a165-{schedule:012}", due),
            f"namespace-{schedule % 50}/schedule-{schedule}",
            RunState.SUCCEEDED if number % 20 else RunState.FAILED,
            "" if number % 20 else "job_failed",
            job=job,
            created=due + 0.01,
            started=due + 1,
            finished=due + 30,
            exit_code=0,
            generation=1,
            attempts=(attempt,),
        )


async def write_and_fold(store: RunStore, first: int, count: int) -> None:
    for start in range(first, first + count, BATCH):
        batch = Batch(float(MONDAY + start), tuple(runs(start, BATCH)))
        assert (await store.write(batch, term=1)).accepted == BATCH
    while (await store.retain(float(MONDAY), KEPT)).more:
        pass


async def count_all(store: RunStore) -> int:
    """All runs that have a row or are counted by a range row."""
    counted = 0
    async for book in store.books(MONDAY, MONDAY + EVERY_S * MILLION // SCHEDULES):
        counted += len(book.runs) + sum(sum(span.counts.values()) for span in book.spans)
    return counted


def memory_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
