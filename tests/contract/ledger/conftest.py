"""A place for rows of each kind of store, and a store that has it open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contract.ledger.stores import STORES, Opener, place_of
from tests.ledger.postgres_server import PostgresServer

from evenkeel.ledger.store import RunStore


@pytest.fixture(scope="session")
def shared_database(postgres_server: PostgresServer) -> Iterator[str]:
    """A database for many schemas: a schema is made faster than a database."""
    name = postgres_server.new_database()
    yield name
    postgres_server.drop_database(name)


@pytest.fixture(params=STORES)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    async with place_of(request.param, request)(tmp_path) as opener:
        yield opener


@pytest.fixture
async def store(place: Opener) -> AsyncIterator[RunStore]:
    opened = await place()
    try:
        yield opened
    finally:
        await opened.close()
