"""With a retention, neither the tables of PostgreSQL nor the process grow over a million rows."""

from __future__ import annotations

import asyncpg
import pytest
from tests.ledger.million import MILLION, count_all, memory_mib, write_and_fold
from tests.ledger.postgres import opened
from tests.ledger.postgres_server import PostgresServer


@pytest.mark.timeout(900)
async def test_size_and_memory_are_flat_over_a_million_rows(
    postgres_server: PostgresServer, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = postgres_server.url(database)
    part = MILLION // 10
    series = []
    lines = [f"{'rows':>9} {'tables MiB':>10} {'memory MiB':>10}"]
    async with opened(url) as store:
        server = await asyncpg.connect(url)
        try:
            for written in range(part, MILLION + 1, part):
                await write_and_fold(store, written - part, part)
                # As autovacuum does by itself, for which the test is too fast.
                await server.execute("VACUUM evenkeel.run, evenkeel.span")
                row = ((await store.facts()).bytes / 2**20, memory_mib())
                lines.append(f"{written:>9} {row[0]:>10.1f} {row[1]:>10.1f}")
                series.append(row)
            kept = await server.fetchval("SELECT count(*) FROM evenkeel.run")
            counted = await count_all(store)
        finally:
            await server.close()

    with capsys.disabled():
        print("", *lines, sep="\n")
    early, late = series[1:4], series[-3:]
    assert kept == 100_000
    assert counted == MILLION, "what was folded is counted"
    # A vacuum cuts off the end of a table only while nothing lives there: every other time.
    assert max(size for size, _ in late) <= 1.25 * max(size for size, _ in early)
    assert max(memory for _, memory in late) <= max(memory for _, memory in early) + 64
