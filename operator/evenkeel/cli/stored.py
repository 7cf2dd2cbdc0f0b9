"""Opens the store that a command reads, and ends it in order.

`runs` and `ledger` call it. A wrong URL ends a command with exit code 2, a store that cannot be
read with 1; neither sentence holds a password.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from evenkeel import settings
from evenkeel.ledger import open_store, where
from evenkeel.ledger.opening import NONE
from evenkeel.ledger.store import BadStore, RunStore

WITHIN_S = 30.0
"""No call of a command waits longer for a store that is read page by page."""

WHOLE_WITHIN_S = 3600.0
"""A check waits so long: it reads all of a store in one call, which takes minutes where there are
ten million rows."""

store_option = click.option(
    "--store",
    "url",
    metavar="URL",
    envvar="EVENKEEL_STORE_URL",
    show_envvar=True,
    help="The store: sqlite:///path/to/file.db, or postgresql://user@host/database. A password is "
    "better kept in PGPASSWORD or ~/.pgpass: other users of the machine see a command's "
    "arguments.  [default: the file that `evenkeel run` keeps]",
)


@asynccontextmanager
async def opened(
    url: str, *, readonly: bool = True, within_s: float = WITHIN_S
) -> AsyncIterator[RunStore]:
    """A store, closed at the end. It is opened for reading unless the caller says otherwise."""
    if url == NONE:
        raise BadStore("there is no store: its URL is none, so no ledger is kept")
    store = await open_store(url, readonly=readonly, within_s=within_s)
    try:
        yield store
    finally:
        await store.close()


def url_of(given: str | None) -> str:
    """The URL that was given, or that of the store which `evenkeel run` keeps here."""
    return given or where.url_of(settings.load(file=None))
