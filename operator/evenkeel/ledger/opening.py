"""The one way to a store: `open_store` for the operator, the tools and tests.

It knows the forms of a URL and nothing of what is behind them. `sqlite:///srv/a.db` names
/srv/a.db, and four slashes mean the same, as SQLAlchemy writes it.
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from evenkeel.ledger.store import BadStore, RunStore

NONE = "none"
"""The URL of no store at all."""

CALL_WITHIN_S = 10.0
"""No call waits longer for its store."""


async def open_store(
    url: str, *, readonly: bool = False, within_s: float = CALL_WITHIN_S
) -> RunStore:
    """Open a store, and bring its tables to this program's form unless it is only read.

    BadStore: the URL or what is behind it is wrong, and stays wrong. StoreAway: it cannot be
    reached now."""
    scheme = url.partition(":")[0].lower()  # the rest may be no URL at all
    if scheme == "sqlite":
        from evenkeel.ledger.sqlite import open_sqlite

        return await open_sqlite(_path(url), readonly=readonly, within_s=within_s)
    if scheme in ("postgresql", "postgres"):
        from evenkeel.ledger.postgres import open_postgres

        return await open_postgres(url, readonly=readonly, within_s=within_s)
    raise BadStore(
        "store.url: write sqlite:///path/to/file.db, postgresql://user@host/database, or none"
    )


def _path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or not parts.path.strip("/") or parts.query or parts.fragment:
        raise BadStore("store.url: write three slashes and a path, as in sqlite:///srv/evenkeel.db")
    return Path("/" + unquote(parts.path).lstrip("/"))
