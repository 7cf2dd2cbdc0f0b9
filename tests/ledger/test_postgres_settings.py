"""What an operator's administrator meets: two installs in one database, rights, versions, names and
passwords."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from tests.ledger.postgres import NOON, batch_of, opened, run_row
from tests.ledger.postgres_server import PASSWORD, PostgresServer

from evenkeel.ledger import open_store
from evenkeel.ledger.postgres.statements import known_migrations, program_number
from evenkeel.ledger.rows import Batch, Holder, Retention, RunQuery
from evenkeel.ledger.store import BadStore, StoreAway
from evenkeel.model import RunState

REPOSITORY = Path(__file__).parents[2]


def role(server: PostgresServer, database: str) -> str:
    """An ordinary role that may do nothing but connect."""
    name = f"role_{database}"
    server.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'its own'")
    return name


def url_of(server: PostgresServer, database: str, name: str, **query: str) -> str:
    return server.url(database, user=name, password="its own", **query)


async def tables(url: str, schema: str) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables of a schema."""
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", schema
        )
        return {
            name: sorted(map(tuple, await connection.fetch(f'SELECT * FROM {schema}."{name}"')))
            for (name,) in names
        }
    finally:
        await connection.close()


class TestTwoInstallsInOneDatabase:
    async def test_do_not_touch_each_others_rows(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        url = postgres_server.url(database)
        async with opened(url) as one, opened(f"{url}&schema=second") as other:
            await other.take_term(7)
            await other.write(batch_of(20), term=7)
            before = await tables(url, "second")

            term = await one.take_term()
            await one.write(
                Batch(1.0, tuple(run_row(n, RunState.FAILED) for n in range(20))), term=term
            )
            await one.promote_due(NOON + 1e6, 100, Holder(term, "one"))
            await one.requeue(below_term=100)
            await one.retain(NOON + 1e9, Retention(keep_runs=0, max_bytes=0))

            assert term == 1
            assert await tables(url, "second") == before
            assert (await one.facts()).born != (await other.facts()).born
            states = {row.state for row in (await other.runs(RunQuery())).items}
            assert states == {RunState.RUNNING}

    async def test_nothing_is_put_elsewhere(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        async with opened(postgres_server.url(database, schema="mine")) as store:
            await store.write(batch_of(3), term=0)

        schemas = postgres_server.sql(
            "SELECT DISTINCT relnamespace::regnamespace FROM pg_class"
            " WHERE oid >= 16384 AND relnamespace <> 'pg_toast'::regnamespace",
            database,
        )
        assert schemas == "mine"

    async def test_many_may_open_a_new_schema_at_once(
        self, postgres_server: PostgresServer, database: str, pgbouncer: int
    ) -> None:
        url = postgres_server.url(database, port=pgbouncer)

        stores = await asyncio.gather(*(open_store(url, within_s=60) for _ in range(8)))

        born = {(await store.facts()).born for store in stores}
        await asyncio.gather(*(store.close() for store in stores))
        assert len(born) == 1


class TestRights:
    async def test_a_role_that_may_not_create_a_schema_is_told_the_grant(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        name = role(postgres_server, database)
        with pytest.raises(BadStore) as refused:
            await open_store(url_of(postgres_server, database, name))

        grant = str(refused.value).partition("GRANT ")[2]
        assert grant == f'CREATE ON DATABASE "{database}" TO "{name}"'
        postgres_server.sql(f"GRANT {grant}")  # what was printed is enough
        async with opened(url_of(postgres_server, database, name)) as store:
            await store.write(batch_of(1), term=0)

    async def test_a_role_that_may_not_use_a_schema_made_for_it_is_told_the_grant(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        name = role(postgres_server, database)
        postgres_server.sql("CREATE SCHEMA evenkeel", database)
        with pytest.raises(BadStore) as refused:
            await open_store(url_of(postgres_server, database, name))

        grant = str(refused.value).partition("GRANT ")[2]
        assert grant == f'USAGE, CREATE ON SCHEMA "evenkeel" TO "{name}"'
        postgres_server.sql(f"GRANT {grant}", database)
        async with opened(url_of(postgres_server, database, name)) as store:
            await store.write(batch_of(1), term=0)

    async def test_another_role_needs_grants_on_what_the_first_one_made(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        async with opened(postgres_server.url(database)) as store:
            await store.write(batch_of(1), term=0)
        name = role(postgres_server, database)
        url = url_of(postgres_server, database, name)
        for grants in ("USAGE", "SELECT, INSERT, UPDATE, DELETE"):
            with pytest.raises(BadStore, match=f"GRANT {grants} ON ") as refused:
                await open_store(url)
            postgres_server.sql(f"GRANT {str(refused.value).partition('GRANT ')[2]}", database)

        async with opened(url) as store:
            await store.write(batch_of(2, uid="another"), term=await store.take_term())
            await store.retain(1e12, Retention())

    async def test_a_reader_needs_no_right_to_write(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        async with opened(postgres_server.url(database)) as store:
            await store.write(batch_of(1), term=0)
        name = role(postgres_server, database)
        postgres_server.sql(
            f"GRANT USAGE ON SCHEMA evenkeel TO {name};"
            f"GRANT SELECT ON ALL TABLES IN SCHEMA evenkeel TO {name}",
            database,
        )
        async with opened(url_of(postgres_server, database, name), readonly=True) as store:
            assert len((await store.runs(RunQuery())).items) == 1
            with pytest.raises(BadStore, match="opened for reading only"):
                await store.write(batch_of(1), term=0)

    async def test_a_reader_makes_nothing(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        with pytest.raises(BadStore, match="there is no ledger in this schema"):
            await open_store(postgres_server.url(database), readonly=True)

        assert await tables(postgres_server.url(database), "evenkeel") == {}

    async def test_a_schema_of_something_else_is_refused(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        postgres_server.sql("CREATE TABLE public.theirs (a int)", database)

        with pytest.raises(BadStore, match="tables that are not a ledger's"):
            await open_store(postgres_server.url(database, schema="public"))

    async def test_what_the_settings_say_wrong_ends_the_process(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        for wrong, sentence in (
            (postgres_server.url("nowhere"), 'database "nowhere" does not exist'),
            (postgres_server.url(database, user="nobody"), "authentication failed"),
            (postgres_server.url(database, password="no"), "authentication failed"),
        ):
            with pytest.raises(BadStore, match=sentence):
                await open_store(wrong)

    async def test_a_database_that_is_not_in_utf8_is_refused(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        other = f"{database}_latin"
        postgres_server.sql(
            f"CREATE DATABASE {other} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
        )
        with pytest.raises(BadStore, match="encoding is LATIN1"):
            await open_store(postgres_server.url(other))
        postgres_server.drop_database(other)

    async def test_nobody_listening_is_away_and_not_wrong(self) -> None:
        with pytest.raises(StoreAway, match=r"127\.0\.0\.1"):
            await open_store("postgresql://me:secret@127.0.0.1:1/db?sslmode=disable")


class TestVersions:
    async def test_a_newer_programs_tables_are_taken_where_its_migration_allows_it(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        url = postgres_server.url(database)
        async with opened(url) as store:
            await store.write(batch_of(1), term=0)
        newer, known = program_number() + 1, program_number()
        insert = "INSERT INTO evenkeel.migration (number, name, oldest_writer)"
        postgres_server.sql(f"{insert} VALUES ({newer}, 'more', {known})", database)

        async with opened(url) as store:
            assert (await store.facts()).migration == newer
        async with opened(url, readonly=True) as store:
            assert len((await store.runs(RunQuery())).items) == 1

        postgres_server.sql(f"UPDATE evenkeel.migration SET oldest_writer = {newer}", database)
        for readonly in (False, True):
            with pytest.raises(BadStore, match="a newer Evenkeel has changed the tables"):
                await open_store(url, readonly=readonly)

    async def test_tables_of_an_older_program_are_not_read_before_they_are_changed(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        url = postgres_server.url(database)
        async with opened(url):
            pass
        postgres_server.sql("DELETE FROM evenkeel.migration", database)

        with pytest.raises(BadStore, match="an older form"):
            await open_store(url, readonly=True)

    def test_migrations_are_numbered_without_a_gap(self) -> None:
        found = known_migrations()

        assert [one.number for one in found] == list(range(1, len(found) + 1))
        assert all(1 <= one.oldest_writer <= one.number for one in found)


class TestPasswords:
    """The password has what a URL escapes; whatever begins as it does is a leak."""

    def leaks(self, text: str) -> bool:
        return PASSWORD[:5] in text or "it%20is" in text or "it+is" in text or "secret" in text

    async def test_no_error_and_no_log_line_holds_it(
        self,
        postgres_server: PostgresServer,
        database: str,
        pgbouncer: int,
        caplog: pytest.LogCaptureFixture,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        caplog.set_level(logging.DEBUG)
        right = postgres_server.url(database)
        said = []
        for url in (
            postgres_server.url("nowhere"),
            postgres_server.url("nowhere", port=pgbouncer),
            postgres_server.url(database, user="nobody"),
            postgres_server.url(database, user="nobody", port=pgbouncer),
            postgres_server.url(database, port=1),
            postgres_server.url(database, sslmode="verify-full"),
            f"{right}&shema=x",
            right.replace("127.0.0.1", "[127.0.0.1"),
            right.replace(f":{postgres_server.port}", ":port"),
        ):
            with pytest.raises((BadStore, StoreAway)) as failed:
                await open_store(url)
            error: BaseException | None = failed.value
            while error is not None:
                said += [str(error), repr(error)]
                error = error.__cause__
        async with opened(right) as store:
            said += [repr(store), repr(await store.facts()), repr(vars(store))]

        said += [caplog.text, *capfd.readouterr()]
        assert len(said) > 20
        assert [text for text in said if self.leaks(text)] == []

    async def test_neither_the_process_nor_the_server_shows_it(
        self, postgres_server: PostgresServer, database: str
    ) -> None:
        code = (
            "import asyncio, os\n"
            "from evenkeel.ledger import open_store\n"
            "async def main():\n"
            "    store = await open_store(os.environ['EVENKEEL_STORE_URL'])\n"
            "    print(open('/proc/self/cmdline').read(), open('/proc/self/comm').read())\n"
            "    await store.close()\n"
            "asyncio.run(main())"
        )
        done = subprocess.run(  # noqa: ASYNC221
            [sys.executable, "-c", code],
            cwd=REPOSITORY,
            env={"EVENKEEL_STORE_URL": postgres_server.url(database)},
            capture_output=True,
            text=True,
            check=True,
        )
        async with opened(postgres_server.url(database)) as store:
            await store.facts()
            shown = postgres_server.sql(
                "SELECT application_name, query FROM pg_stat_activity WHERE datname IS NOT NULL"
            )

        assert "asyncio" in done.stdout
        assert "evenkeel|" in shown
        assert not self.leaks(done.stdout + done.stderr + shown)


async def test_without_asyncpg_the_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    for name in [name for name in sys.modules if name.startswith("evenkeel.ledger.postgres.")]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(BadStore, match=r"pip install 'evenkeel-operator\[postgres\]'"):
        await open_store("postgresql://me@there/db")


async def test_tls_is_chosen_by_the_url(postgres_server: PostgresServer, database: str) -> None:
    certificate = str(postgres_server.certificate)
    url = postgres_server.url(database, sslmode="verify-full", sslrootcert=certificate)
    async with opened(url):
        answer = postgres_server.sql(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
            " WHERE application_name = 'evenkeel' AND state IS NOT NULL"
            f" AND datname = '{database}'"
        )

    assert answer == "t"
