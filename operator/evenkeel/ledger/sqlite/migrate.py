"""Brings the tables of a file to this program's form. Called when a file is opened.

Not guaranteed: that a program finds the form unchanged later. One that is too old is refused when
it opens the file, and never again.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from evenkeel.ledger.sql_files import Migration, migrations, statements
from evenkeel.ledger.store import BadStore

SQL = statements("evenkeel.ledger.sqlite")


def migrate(connection: sqlite3.Connection, file: Path, *, now: float) -> None:
    """Apply the migrations that are lacking, in one transaction. BadStore: the file is somebody
    else's, or a newer program has changed it too much."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables = {name for (name,) in connection.execute(SQL["tables"])}
        if not tables:
            connection.execute(SQL["make_migration"])
        applied = _applied(connection, file, tables or {"migration"})
        for each in known():
            if each.number not in applied:
                _apply(connection, each, now)
        connection.execute(SQL["begin_meta"], {"at": now})
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_readable(connection: sqlite3.Connection, file: Path) -> None:
    """BadStore: the file is no ledger of a form that this program reads."""
    tables = {name for (name,) in connection.execute(SQL["tables"])}
    applied = _applied(connection, file, tables)
    if max(applied, default=0) < known()[-1].number:
        raise BadStore(
            f"store.url: the tables of {file} have an older form: open it for writing first, as"
            " the operator does"
        )


def known() -> tuple[Migration, ...]:
    """The migrations that this program knows."""
    return migrations("evenkeel.ledger.sqlite")


def _applied(connection: sqlite3.Connection, file: Path, tables: set[str]) -> set[int]:
    if "migration" not in tables:
        raise BadStore(f"store.url: {file} is a database of another program: name another file")
    ours = known()[-1].number
    numbers = set()
    for number, name, oldest_writer in connection.execute(SQL["applied"]):
        if number > ours and oldest_writer > ours:
            raise BadStore(
                f"store.url: a newer program has changed {file} (migration {number:04}_{name}), and"
                " this one must not write to it: install the newer program, or name another file"
            )
        numbers.add(number)
    return numbers


def _apply(connection: sqlite3.Connection, migration: Migration, now: float) -> None:
    for statement in _split(migration.text):
        connection.execute(statement)
    connection.execute(
        SQL["note_migration"],
        {
            "number": migration.number,
            "name": migration.name,
            "oldest_writer": migration.oldest_writer,
            "at": now,
        },
    )


def _split(text: str) -> Iterator[str]:
    """Statement by statement: `executescript` would commit before the first."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "a migration ends with a semicolon"
