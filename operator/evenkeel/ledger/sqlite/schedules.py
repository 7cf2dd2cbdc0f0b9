"""The numbers of schedules, remembered: each write would ask for one otherwise.

They are forgotten when another connection has written to the file, and when a transaction was
undone.
"""

import sqlite3

from evenkeel.ledger.sqlite.migrate import SQL


class Schedules:
    """Numbers and keys by uid, of one connection that writes."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}
        self._version: tuple[int, int] | None = None

    def begin(self, connection: sqlite3.Connection, opening: int) -> None:
        """In the beginning of each transaction."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if (opening, version) != self._version:
            self.forget()
            self._version = (opening, version)

    def forget(self) -> None:
        self._known.clear()

    def find(self, connection: sqlite3.Connection, uid: str) -> tuple[int, str] | None:
        """Number and key of a schedule that there is."""
        found = self._known.get(uid)
        if found is None:
            row = connection.execute(SQL["schedule_id"], {"uid": uid}).fetchone()
            if row is None:
                return None
            found = self._known[uid] = (row[0], row[1])
        return found

    def know(self, connection: sqlite3.Connection, uid: str, key: str) -> tuple[int, str]:
        """Number and key of a schedule, which is added if there is none. Its key never changes."""
        found = self.find(connection, uid)
        if found is None:
            added = connection.execute(SQL["add_schedule"], {"uid": uid, "key": key})
            assert added.lastrowid is not None
            found = self._known[uid] = (added.lastrowid, key)
        return found
