"""What an error of SQLite means: the store is away, the file damaged, or the row bad. Pure."""

import enum
import sqlite3

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OF_THE_ROW = frozenset(
    {
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_TOOBIG,
    }
)
ROW_ERRORS = (sqlite3.Error, OverflowError, UnicodeEncodeError)
"""What a statement can raise for the sake of a row: some values are refused before SQLite has
them."""


class Meaning(enum.Enum):
    AWAY = "away"
    DAMAGED = "damaged"
    BAD_ROW = "bad row"


def meaning(error: BaseException) -> Meaning:
    if not isinstance(error, sqlite3.Error):
        return Meaning.BAD_ROW
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        # Raised by the module itself: a value that it cannot bind. Or the connection is closed.
        of_row = isinstance(error, sqlite3.InterfaceError | sqlite3.DataError)
        return Meaning.BAD_ROW if of_row else Meaning.AWAY
    primary = code & 0xFF
    if primary in _DAMAGED:
        return Meaning.DAMAGED
    return Meaning.BAD_ROW if primary in _OF_THE_ROW else Meaning.AWAY


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether the disk, or the network before it, failed to read or write."""
    return _primary(error) == sqlite3.SQLITE_IOERR


def is_about_space(error: sqlite3.Error) -> bool:
    """Whether it helps to say how full the disk is."""
    return _primary(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def _primary(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF
