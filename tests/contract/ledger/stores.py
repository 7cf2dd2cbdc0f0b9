"""The stores that fulfil the contract. A store that is added to `STORES` is tested by all of it.

A store is given as a context: it makes a place (tables, a file, a schema) in the directory that it
is given or on the PostgreSQL server of the tests, and answers with an `Opener`, which opens that
place again and again. `place_of` finds a store by its name.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
from tests.ledger.model import Tables, opener
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger import open_store
from evenkeel.ledger.store import RunStore


class Opener(Protocol):
    async def __call__(self, *, readonly: bool = False) -> RunStore: ...


Place = Callable[[Path], AbstractAsyncContextManager[Opener]]


@asynccontextmanager
async def memory(at: Path) -> AsyncIterator[Opener]:
    yield opener(Tables())


@asynccontextmanager
async def sqlite(at: Path) -> AsyncIterator[Opener]:
    url = f"sqlite://{at}/ledger.db"

    async def open_again(*, readonly: bool = False) -> RunStore:
        return await open_store(url, readonly=readonly, within_s=60)

    yield open_again


EMPTY = """
DELETE FROM {0}.run; DELETE FROM {0}.span; DELETE FROM {0}.deferred; DELETE FROM {0}.timing;
DELETE FROM {0}.minute; DELETE FROM {0}.schedule; UPDATE {0}.term SET term = 0;
UPDATE {0}.meta SET value = '0' WHERE name = 'written_at';
"""
_emptied: list[str] = []
"""Schemas that a test is done with: emptied, they serve the next one sooner than new ones."""


def postgres(server: PostgresServer, database: str, *, port: int | None = None) -> Place:
    """A schema of its own; `port`: that of PgBouncer."""

    @asynccontextmanager
    async def schema(at: Path) -> AsyncIterator[Opener]:
        name = _emptied.pop() if _emptied else f"test_{secrets.token_hex(6)}"
        url = server.url(database, port=port, schema=name)

        async def open_again(*, readonly: bool = False) -> RunStore:
            return await open_store(url, readonly=readonly, within_s=60)

        await (await open_again()).close()
        yield open_again
        server.sql(EMPTY.format(name), database)
        _emptied.append(name)

    return schema


STORES = ("memory", "pgbouncer", "postgresql", "sqlite")


def place_of(name: str, request: pytest.FixtureRequest) -> Place:
    """The place of one of STORES. A machine that has no PostgreSQL skips the test."""
    if name == "memory":
        return memory
    if name == "sqlite":
        return sqlite
    server = request.getfixturevalue("postgres_server")
    database = request.getfixturevalue("shared_database")
    port = request.getfixturevalue("pgbouncer") if name == "pgbouncer" else None
    return postgres(server, database, port=port)
