"""The PostgreSQL that the tests of the ledger start: what every one of them takes for granted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from tests.cluster.harness import HarnessError, packages
from tests.ledger.forwarder import forwarding_to
from tests.ledger.postgres_server import PostgresServer, missing

REPOSITORY = Path(__file__).parents[2]


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


async def answer(url: str, question: str = "SELECT 1") -> object:
    connection = await asyncpg.connect(url, statement_cache_size=0, timeout=30)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()


async def test_each_test_has_a_database_of_its_own(
    postgres_server: PostgresServer, database: str
) -> None:
    postgres_server.sql("CREATE TABLE here (a int)", database)

    other = postgres_server.new_database(template=database)

    assert await answer(postgres_server.url(other), "SELECT count(*) FROM here") == 0
    postgres_server.drop_database(other)


async def test_a_wrong_password_is_refused(postgres_server: PostgresServer, database: str) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await answer(postgres_server.url(database, password="wrong"))


async def test_the_certificate_proves_the_address(
    postgres_server: PostgresServer, database: str
) -> None:
    certificate = str(postgres_server.certificate)
    url = postgres_server.url(database, sslmode="verify-full", sslrootcert=certificate)

    assert await answer(url, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") is True


async def test_pgbouncer_shares_connections_by_transaction(
    postgres_server: PostgresServer, database: str, pgbouncer: int
) -> None:
    url = postgres_server.url(database, port=pgbouncer)

    assert await answer(url, "SELECT pg_backend_pid()") == await answer(
        url, "SELECT pg_backend_pid()"
    )
    with pytest.raises(asyncpg.PostgresError, match="unsupported startup parameter"):
        await answer(f"{url}&statement_timeout=1000")


async def test_what_was_committed_outlives_a_stop_and_a_kill(server: PostgresServer) -> None:
    server.sql("CREATE TABLE here (a int); INSERT INTO here VALUES (7)")
    for end in (server.stop, server.kill):
        end()
        with pytest.raises(OSError, match="Connect call failed"):
            await answer(server.url("postgres"))
        server.start()

        assert await answer(server.url("postgres"), "SELECT a FROM here") == 7


async def test_a_paused_server_answers_when_it_is_resumed(server: PostgresServer) -> None:
    connection = await asyncpg.connect(server.url("postgres"))
    server.pause()
    try:
        asking = asyncio.ensure_future(connection.fetchval("SELECT 1"))
        await asyncio.sleep(0.3)
        assert not asking.done()
    finally:
        server.resume()

    assert await asking == 1
    await connection.close()


async def test_a_forwarder_stalls_goes_on_and_leads_elsewhere(
    postgres_server: PostgresServer, database: str, server: PostgresServer
) -> None:
    async with forwarding_to(postgres_server.port) as forwarder:
        url = postgres_server.url(database, port=forwarder.port)
        connection = await asyncpg.connect(url)
        forwarder.stall()
        asking = asyncio.ensure_future(connection.fetchval("SELECT 1"))
        await asyncio.sleep(0.3)
        assert not asking.done()
        forwarder.go_on()
        assert await asking == 1

        await forwarder.cut()
        with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
            await connection.fetchval("SELECT 1")
        forwarder.target = server.port
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            await answer(url)


def test_a_killed_session_leaves_no_server_behind(postgres_server: PostgresServer) -> None:
    code = (
        "from tests.ledger.postgres_server import PostgresServer; import time\n"
        "s = PostgresServer(); s.start(); print(s.home, s._process.pid, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as session:
        assert session.stdout is not None
        home, pid = session.stdout.readline().split()
        session.send_signal(signal.SIGKILL)

    ends = time.monotonic() + 60
    while Path(home).exists() or Path(f"/proc/{pid}").exists():
        assert time.monotonic() < ends, "the server is still there"
        time.sleep(0.1)


def test_a_user_who_may_not_install_is_told_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setitem(packages.PACKAGES, "/usr/lib/nothing/*/bin/initdb", "nothing")

    with pytest.raises(HarnessError, match="only root with apt-get can install"):
        packages.ensure("/usr/lib/nothing/*/bin/initdb", why="the tests of the ledger")


def test_the_newest_of_several_versions_is_found(tmp_path: Path) -> None:
    for version in ("9", "15", "16"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "initdb").touch()

    assert packages.found(f"{tmp_path}/*/initdb") == f"{tmp_path}/16/initdb"
