"""Two processes of eight callers promote due runs, and are killed again and again: every run
reaches exactly one caller that lives to report it."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import pytest
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, RunRow
from evenkeel.ledger.store import RunStore
from evenkeel.model import RunId, RunState

REPOSITORY = Path(__file__).parents[3]
NOON = 1_800_014_400
SCHEDULES = 50
WITHIN_S = 240.0

Reported = Counter[tuple[RunId, int]]


def deferred_rows(count: int) -> Iterator[Batch]:
    """Runs that are due, every tenth of them a second attempt."""
    rows = []
    for number in range(count):
        uid, again = f"u{number % SCHEDULES}", number % 10 == 0
        state = RunState.RETRYING if again else RunState.SCHEDULED
        run = RunId(uid, NOON + number)
        due = float(NOON + number)
        rows.append(RunRow(run, f"shop/{uid}", state, attempt=1 + again, due_at=due))
    for first in range(0, count, 500):
        yield Batch(float(NOON), tuple(rows[first : first + 500]))


@dataclass
class Promoter:
    """A process, and the file of what it reported."""

    name: str
    report: Path
    child: asyncio.subprocess.Process

    def reported(self) -> Reported:
        lines = self.report.read_text().splitlines() if self.report.exists() else []
        words = [line.split(" ") for line in lines]
        return Counter((RunId(uid, int(due)), int(attempt)) for uid, due, attempt in words)

    @property
    def lines(self) -> int:
        return self.report.read_bytes().count(b"\n") if self.report.exists() else 0

    @property
    def ended(self) -> bool:
        """It has ended by itself."""
        return self.child.returncode is not None

    async def kill(self) -> None:
        if self.child.returncode is None:
            self.child.send_signal(signal.SIGKILL)
        await self.child.wait()


@dataclass
class Parent:
    """Starts promoters, kills them, and puts back what the dead ones held."""

    url: str
    directory: Path
    store: RunStore
    term: int
    promoters: list[Promoter] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=itertools.count)
    dead: list[Promoter] = field(default_factory=list)
    put_back: int = 0

    async def start(self) -> Promoter:
        name = f"process-{next(self.names)}"
        report = self.directory / name
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.ledger.promoter", name, str(self.term), str(report)),
            cwd=REPOSITORY,
            env={**os.environ, "EVENKEEL_STORE_URL": self.url},
        )
        promoter = Promoter(name, report, child)
        self.promoters.append(promoter)
        return promoter

    async def bury(self, promoter: Promoter) -> None:
        await promoter.kill()
        self.dead.append(promoter)
        await self.requeue(promoter)

    async def requeue(self, dead: Promoter) -> None:
        self.put_back += await self.store.requeue(
            process=dead.name, launched=dead.reported().keys()
        )

    def reported(self) -> Reported:
        return sum((each.reported() for each in self.promoters), Counter())


async def promote_all(parent: Parent, count: int, kills: int) -> None:
    """Two promoters at any time. Each of the first lives until it has reported some rows more."""
    share = count // (kills + 2)

    async def one_after_the_other(turns: int) -> None:
        for _ in range(turns):
            promoter = await parent.start()
            goal = random.randrange(1, share)
            while promoter.lines < goal and not promoter.ended:
                if sum(each.lines for each in parent.promoters) >= count:
                    break  # the others have left it nothing
                await asyncio.sleep(random.uniform(0.001, 0.02))
            await parent.bury(promoter)
        last = await parent.start()
        while len(parent.reported()) < count:
            await asyncio.sleep(0.5)
            if last.ended:  # a machine that is full lets a call end in StoreAway
                await parent.bury(last)
                last = await parent.start()

    async def bury_again() -> None:
        """A COMMIT that was on its way when its process died may be done later."""
        while len(parent.reported()) < count:
            # More often, the store would do hardly anything else.
            await asyncio.sleep(3)
            for promoter in parent.dead:
                await parent.requeue(promoter)

    try:
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(
                one_after_the_other(kills // 2),
                one_after_the_other(kills - kills // 2),
                bury_again(),
            )
    finally:
        for promoter in parent.promoters:
            await promoter.kill()


async def check(url: str, directory: Path, count: int, kills: int) -> None:
    store = await open_store(url, within_s=60)
    try:
        term = await store.take_term()
        for batch in deferred_rows(count):
            await store.write(batch, term=term)
        parent = Parent(url, directory, store, term)

        await promote_all(parent, count, kills)

        print(f"{parent.put_back} runs of dead processes were put back")
        reported = parent.reported()
        assert [run for run, times in reported.items() if times > 1] == []
        assert len(reported) == count
        rows = await store.deferred()
        assert {(row.run, row.attempt) for row in rows} == reported.keys()
        assert {row.state for row in rows} == {RunState.PENDING}
        assert await store.check() == []
    finally:
        await store.close()


sizes = pytest.mark.parametrize(
    ("count", "kills"), [(20_000, 6), pytest.param(100_000, 20, marks=pytest.mark.long)]
)


@sizes
async def test_on_sqlite(tmp_path: Path, count: int, kills: int) -> None:
    await check(f"sqlite://{tmp_path}/ledger.db", tmp_path, count, kills)


@asynccontextmanager
async def analytics(url: str) -> AsyncIterator[None]:
    """A query that holds its snapshot for five seconds: nothing that dies meanwhile can be cleaned
    up."""

    async def query() -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction(isolation="repeatable_read"):
                await connection.fetch("SELECT state, count(*) FROM evenkeel.run GROUP BY state")
                began.set()
                await connection.fetch("SELECT count(*), pg_sleep(5) FROM evenkeel.deferred")
        finally:
            await connection.close()

    began = asyncio.Event()
    running = asyncio.ensure_future(query())
    await asyncio.wait(
        [running, asyncio.ensure_future(began.wait())], return_when="FIRST_COMPLETED"
    )
    try:
        yield
    finally:
        await running


@sizes
async def test_on_postgresql_beside_a_long_query(
    postgres_server: PostgresServer, database: str, tmp_path: Path, count: int, kills: int
) -> None:
    url = postgres_server.url(database)
    await (await open_store(url)).close()
    async with analytics(url):
        await check(url, tmp_path, count, kills)


async def test_through_pgbouncer(
    postgres_server: PostgresServer, database: str, pgbouncer: int, tmp_path: Path
) -> None:
    await check(postgres_server.url(database, port=pgbouncer), tmp_path, 5_000, 4)
