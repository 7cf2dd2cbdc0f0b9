"""The store in PostgreSQL: asyncpg, a schema of its own, correct behind PgBouncer.

asyncpg is an optional part of the installation: only this package imports it.
"""

from evenkeel.ledger.store import BadStore, RunStore


async def open_postgres(url: str, *, readonly: bool, within_s: float) -> RunStore:
    """BadStore: the settings are wrong (`faults` says what counts as that). StoreAway."""
    try:
        from evenkeel.ledger.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise BadStore(
            "store.url: a PostgreSQL store needs asyncpg: pip install 'evenkeel-operator[postgres]'"
        ) from None
    from evenkeel.ledger.postgres.address import read_address

    store = PostgresStore(read_address(url), readonly=readonly, within_s=within_s)
    await store.open()
    return store
