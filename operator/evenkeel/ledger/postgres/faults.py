"""What an error of PostgreSQL or of the way to it means for whoever called the store.

Decided: settings are wrong if an opening meets them (a wrong password, an unknown database, a
missing right): the process ends with a sentence at its start, as for any other setting. Once a
store was open, the same errors are StoreAway: a password is being changed, or a database is being
restored, and runs must be launched meanwhile. A server that is starting, full, read-only or silent
is away at any time, and so is one whose certificate is not trusted: certificates are renewed while
nobody looks.
"""

import asyncpg

from evenkeel.errors import EvenkeelError
from evenkeel.ledger.postgres.address import Address
from evenkeel.ledger.store import BadStore, StoreAway

TRY_AGAIN = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
"""Nothing of the transaction was done: the same one may succeed at once."""

TABLES_GONE = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError)
"""Somebody dropped them, or this is another server: one that a fail-over led to."""

ANY_ERROR = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""All that a call of asyncpg raises, but for its misuse."""

CONNECTION_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # Asked on a connection whose last words have just arrived.
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""The connection is of no use any more, or there is none."""

OTHER_SERVER = (
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.FeatureNotSupportedError,  # so a standby answers to BEGIN READ WRITE
    *CONNECTION_LOST,
)
"""All connections may lead to a server that is not the one to write to: each is made again."""

REFUSED_ROW = (asyncpg.DataError, asyncpg.ProgramLimitExceededError)
"""The statement cannot be done with these values."""

_SETTINGS = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)


def meaning(error: BaseException, address: Address, *, opening: bool) -> EvenkeelError:
    """The error that a caller of the store gets."""
    said = sentence(error, address)
    if isinstance(error, asyncpg.ClientConfigurationError):
        return BadStore(f"store.url: {said}")
    if opening and isinstance(error, _SETTINGS):
        return BadStore(f"store.url: {address.where}: {said}")
    if opening and isinstance(error, asyncpg.InsufficientPrivilegeError):
        return BadStore(f"store.url: {address.where}: {said}")
    return StoreAway(f"{address.where}: {said}")


def sentence(error: BaseException, address: Address) -> str:
    """What the server or the system said, on one line and without the password."""
    words = " ".join(str(error).split())[:300]
    return address.hide(words) or type(error).__name__
