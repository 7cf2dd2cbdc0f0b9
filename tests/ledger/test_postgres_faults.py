"""PostgreSQL goes, stalls, refuses and comes back: every call ends within its time-out, nothing is
half written, and the same store works again afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import asyncpg
import pytest
from tests.ledger.forwarder import Forwarder, forwarding_to
from tests.ledger.postgres import NOON, batch_of, opened, run_row
from tests.ledger.postgres_server import PostgresServer, missing

from evenkeel.ledger.rows import Batch, Exported, Holder, MarkRow, Retention, RunQuery, SpanRow
from evenkeel.ledger.store import OlderTerm, RunStore, StoreAway
from evenkeel.model import RunId, RunState

SHORT_S = 1.0
MUCH_LATER_S = 60.0
"""A call that knows no time-out would wait longer. A busy machine takes its time."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    if sentence := missing():
        pytest.skip(sentence)
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
async def forwarder(postgres_server: PostgresServer) -> AsyncIterator[Forwarder]:
    async with forwarding_to(postgres_server.port) as forwarder:
        yield forwarder


async def drain(found: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in found]


CALLS: dict[str, Callable[[RunStore], Coroutine[Any, Any, Any]]] = {
    "write": lambda store: store.write(batch_of(3), term=1),
    "take_term": lambda store: store.take_term(),
    "promote_due": lambda store: store.promote_due(1.0, 1, Holder(1, "me")),
    "requeue": lambda store: store.requeue(process="me"),
    "retain": lambda store: store.retain(1.0, Retention()),
    "runs": lambda store: store.runs(RunQuery()),
    "states": lambda store: store.states([RunId("u", NOON)]),
    "unfinished": lambda store: store.unfinished("u"),
    "deferred": lambda store: store.deferred(),
    "schedules": lambda store: drain(store.schedules()),
    "books": lambda store: drain(store.books(0, NOON)),
    "minutes": lambda store: store.minutes(0, NOON),
    "facts": lambda store: store.facts(),
    "check": lambda store: store.check(),
    "export": lambda store: drain(store.export()),
    "restore": lambda store: store.restore(Exported("run", 0, ())),
}


async def all_are_away(store: RunStore) -> None:
    """Every call of the protocol ends in StoreAway, in time."""
    began = time.monotonic()
    answers = await asyncio.gather(
        *(call(store) for call in CALLS.values()), return_exceptions=True
    )
    assert time.monotonic() - began < MUCH_LATER_S
    wrong = {
        name: answer
        for name, answer in zip(CALLS, answers, strict=True)
        if not isinstance(answer, StoreAway)
    }
    assert wrong == {}


async def works(store: RunStore, *, first: int) -> None:
    """The store takes a batch again, perhaps not at the first try."""
    ends = time.monotonic() + MUCH_LATER_S
    while True:
        try:
            await store.write(batch_of(10, first=first), term=1)
            break
        except StoreAway:
            assert time.monotonic() < ends
            await asyncio.sleep(0.1)
    runs = [run_row(first + number).run for number in range(10)]
    assert len(await store.states(runs)) == 10
    assert await store.check() == []


async def test_a_server_that_was_stopped_and_started(server: PostgresServer) -> None:
    async with opened(server.url("postgres"), within_s=SHORT_S) as store:
        await works(store, first=0)
        for number, end in enumerate((server.stop, server.kill), start=1):
            end()
            await all_are_away(store)
            server.start()
            await works(store, first=100 * number)

        assert len((await store.runs(RunQuery())).items) == 30


async def test_idle_connections_that_were_cut_are_made_again_unseen(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database)) as store:
        for first in (0, 100, 200):
            await asyncio.gather(*(store.facts() for _ in range(8)))
            postgres_server.cut_connections(database)
            written = await store.write(batch_of(10, first=first), term=1)
            assert written.accepted == 10


async def test_connections_that_are_cut_in_the_middle(
    postgres_server: PostgresServer, database: str
) -> None:
    """Batches of a run, a range and a mark: each is there as a whole or not at all."""

    def batch(number: int) -> Batch:
        uid = f"u{number % 7}"
        span = SpanRow(uid, f"shop/{uid}", number * 10, number * 10 + 5, {"missed": 1}, "r")
        rows = (run_row(number, uid=uid), span, MarkRow(uid, f"shop/{uid}", number))
        return Batch(float(number), rows)

    answered: dict[int, bool] = {}

    async def write(number: int) -> None:
        try:
            await store.write(batch(number), term=1)
            answered[number] = True
        except StoreAway:
            answered[number] = False

    async def cut() -> None:
        while len(answered) < 300:
            await asyncio.to_thread(postgres_server.cut_connections, database)

    async with opened(postgres_server.url(database)) as store:
        cutting = asyncio.ensure_future(cut())
        for first in range(0, 300, 6):
            await asyncio.gather(*(write(number) for number in range(first, first + 6)))
        await cutting

        runs = {run.due - NOON for uid in range(7) for run in await store.unfinished(f"u{uid}")}
        books = await drain(store.books(0, NOON + 1000))
        spans = {span.first // 10 for book in books for span in book.spans}
        assert runs == spans
        assert {number for number, done in answered.items() if done} <= runs
        assert {number for number, done in answered.items() if not done}, "nothing was cut"
        for number in range(300):  # the same batches again
            await store.write(batch(number), term=1)
        assert sum(len(book.runs) for book in await drain(store.books(0, NOON + 1000))) == 300


async def test_a_server_that_is_paused(server: PostgresServer) -> None:
    async with opened(server.url("postgres"), within_s=SHORT_S) as store:
        await works(store, first=0)
        server.pause()
        try:
            await all_are_away(store)
        finally:
            server.resume()
        await works(store, first=100)


async def test_a_connection_that_stalls(
    postgres_server: PostgresServer, database: str, forwarder: Forwarder
) -> None:
    url = postgres_server.url(database, port=forwarder.port)
    async with opened(url, within_s=SHORT_S) as store:
        await works(store, first=0)
        forwarder.stall()
        await all_are_away(store)
        forwarder.go_on()
        await works(store, first=100)


async def test_a_stalled_store_closes_in_time(
    postgres_server: PostgresServer, database: str, forwarder: Forwarder
) -> None:
    began = time.monotonic()
    url = postgres_server.url(database, port=forwarder.port)
    async with opened(url, within_s=SHORT_S) as store:
        await asyncio.gather(*(store.facts() for _ in range(8)))
        forwarder.stall()

    assert time.monotonic() - began < MUCH_LATER_S


async def test_a_stalled_server_does_not_keep_a_store_from_being_refused(
    postgres_server: PostgresServer, database: str, forwarder: Forwarder
) -> None:
    forwarder.stall()

    with pytest.raises(StoreAway, match="no answer within 1 s"):
        async with opened(postgres_server.url(database, port=forwarder.port), within_s=SHORT_S):
            pass


async def test_a_writer_that_stops_in_the_middle_locks_nobody_out_for_long(
    postgres_server: PostgresServer, database: str, forwarder: Forwarder
) -> None:
    """Its transaction holds the term: another one is taken as soon as the server ends it."""
    url = postgres_server.url(database, port=forwarder.port)
    other = await asyncpg.connect(postgres_server.url(database))
    async with (
        opened(url, within_s=8) as stopped,
        opened(postgres_server.url(database)) as next_one,
    ):
        await works(stopped, first=0)
        async with other.transaction():
            await other.execute("SELECT FROM evenkeel.meta FOR UPDATE")
            writing = asyncio.ensure_future(stopped.write(batch_of(3, first=100), term=1))
            while not await waits_for_a_lock(postgres_server, database):
                await asyncio.sleep(0.02)
            forwarder.stall()  # the server finishes the statement, and nothing follows it
        await other.close()

        assert await next_one.take_term() == 2

        with pytest.raises(StoreAway):
            await writing
        with pytest.raises(OlderTerm):
            await next_one.write(batch_of(3), term=1)
        assert await next_one.states([run_row(100).run]) == {}


FAIL = """
CREATE SEQUENCE public.tries;
CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('public.tries') < {times} THEN RAISE SQLSTATE '{code}'; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER fail AFTER INSERT ON evenkeel.run FOR EACH STATEMENT EXECUTE FUNCTION public.fail();
"""


@pytest.mark.parametrize("code", ["40001", "40P01"])
async def test_failures_to_serialize_are_tried_again(
    postgres_server: PostgresServer, database: str, code: str
) -> None:
    async with opened(postgres_server.url(database)) as store:
        postgres_server.sql(FAIL.format(times=4, code=code), database)

        assert (await store.write(batch_of(10), term=1)).accepted == 10
        assert int(postgres_server.sql("SELECT last_value FROM public.tries", database)) == 4


async def test_those_that_never_end_are_not_tried_for_ever(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database)) as store:
        postgres_server.sql(FAIL.format(times=1_000_000, code="40001"), database)

        with pytest.raises(StoreAway):
            await store.write(batch_of(10), term=1)
        assert await store.states([run_row(0).run]) == {}


async def test_a_deadlock_is_survived(postgres_server: PostgresServer, database: str) -> None:
    lock = (
        "SELECT FROM evenkeel.run r JOIN evenkeel.schedule s ON s.id = r.schedule"
        " WHERE s.uid = $1 FOR UPDATE OF r"
    )
    async with opened(postgres_server.url(database)) as store:
        both = Batch(1.0, (run_row(1, uid="a"), run_row(1, uid="b")))
        await store.write(both, term=1)
        other = await asyncpg.connect(postgres_server.url(database))
        try:
            async with other.transaction():
                await other.execute("SET LOCAL deadlock_timeout = '60s'")  # the store's ends first
                await other.fetch(lock, "b")
                ended = Batch(
                    2.0,
                    (
                        run_row(1, RunState.SUCCEEDED, uid="a"),
                        run_row(1, RunState.SUCCEEDED, uid="b"),
                    ),
                )
                writing = asyncio.ensure_future(store.write(ended, term=1))
                while not await waits_for_a_lock(postgres_server, database):
                    await asyncio.sleep(0.02)
                await other.fetch(lock, "a")
        finally:
            await other.close()

        assert (await writing).accepted == 2


async def waits_for_a_lock(server: PostgresServer, database: str) -> bool:
    return "1" in await asyncio.to_thread(
        server.sql, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'", database
    )


async def test_a_slow_server_is_waited_for(postgres_server: PostgresServer, database: str) -> None:
    async with opened(postgres_server.url(database), within_s=30) as store:
        postgres_server.sql(
            "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;"
            "CREATE TRIGGER slow AFTER INSERT ON evenkeel.run"
            " FOR EACH STATEMENT EXECUTE FUNCTION public.slow()",
            database,
        )
        batches = [batch_of(10, first=10 * number) for number in range(4)]
        answers = await asyncio.gather(*(store.write(batch, term=1) for batch in batches))

        assert [each.accepted for each in answers] == [10] * 4


async def test_a_slow_way_to_the_server_is_waited_for(
    postgres_server: PostgresServer, database: str, forwarder: Forwarder
) -> None:
    url = postgres_server.url(database, port=forwarder.port)
    async with opened(url, within_s=120) as store:
        forwarder.delay_s = 0.2
        assert (await store.write(batch_of(10), term=1)).accepted == 10


async def test_a_slow_one_that_is_too_slow_is_away_and_nothing_is_written(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database), within_s=SHORT_S) as store:
        await store.write(batch_of(1, first=999), term=1)
        other = await asyncpg.connect(postgres_server.url(database))
        try:
            async with other.transaction():
                await other.execute("LOCK evenkeel.run IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(StoreAway):
                    await store.write(batch_of(10), term=1)
        finally:
            await other.close()

        assert len((await store.runs(RunQuery())).items) == 1
        await works(store, first=0)


async def test_a_fail_over_to_an_empty_server_begins_anew_and_says_so(
    postgres_server: PostgresServer, database: str, server: PostgresServer, forwarder: Forwarder
) -> None:
    server.sql(f"CREATE DATABASE {database}")
    async with opened(postgres_server.url(database, port=forwarder.port), within_s=10) as store:
        await store.take_term(6)
        await works_with_term(store, 6, first=0)
        born = (await store.facts()).born
        forwarder.target = server.port
        await forwarder.cut()

        await works_with_term(store, 6, first=100)

        facts = await store.facts()
        assert facts.born != born
        assert facts.term == 6
        assert await store.states([run_row(0).run]) == {}
        postgres_server.sql("DROP SCHEMA evenkeel CASCADE", database)


async def works_with_term(store: RunStore, term: int, *, first: int) -> None:
    ends = time.monotonic() + MUCH_LATER_S
    while True:
        try:
            await store.write(batch_of(10, first=first), term=term)
            return
        except StoreAway:
            assert time.monotonic() < ends
            await asyncio.sleep(0.1)


async def test_tables_that_were_dropped_are_made_again(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database)) as store:
        born = (await store.facts()).born
        postgres_server.sql("DROP SCHEMA evenkeel CASCADE", database)

        await works(store, first=0)

        assert (await store.facts()).born != born


async def test_a_right_that_is_taken_away_later_does_not_end_the_process(
    postgres_server: PostgresServer, database: str
) -> None:
    name = f"role_{database}"
    postgres_server.sql(
        f"CREATE ROLE {name} LOGIN PASSWORD 'its own';GRANT CREATE ON DATABASE {database} TO {name}"
    )
    url = postgres_server.url(database, user=name, password="its own")
    async with opened(url) as store:
        await works(store, first=0)
        postgres_server.sql(
            f"REVOKE ALL ON ALL TABLES IN SCHEMA evenkeel FROM {name};"
            f"ALTER ROLE {name} PASSWORD 'another'",
            database,
        )
        postgres_server.cut_connections(database)
        with pytest.raises(StoreAway):
            await store.write(batch_of(1), term=1)
        postgres_server.sql(
            f"GRANT ALL ON ALL TABLES IN SCHEMA evenkeel TO {name};"
            f"ALTER ROLE {name} PASSWORD 'its own'",
            database,
        )
        await works(store, first=100)


async def test_a_call_that_is_cancelled_leaves_the_store_whole(
    postgres_server: PostgresServer, database: str
) -> None:
    async with opened(postgres_server.url(database)) as store:
        for number in range(20):
            writing = asyncio.ensure_future(store.write(batch_of(200, first=1000 * number), term=1))
            await asyncio.sleep(number / 2000)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

        await works(store, first=0)
        for number in range(20):
            runs = [run_row(1000 * number + each).run for each in range(200)]
            assert len(await store.states(runs)) in (0, 10, 200)
