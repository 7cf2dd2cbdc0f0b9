"""Prepares a schema for its store: rights, tables, migrations. Called when a store is opened, and
when its tables are gone.

Two openers at once wait for each other: their lock ends with the transaction, because a pooler may
give the next one to somebody else. Not guaranteed: a migration of many rows within the time-out of
a call.
"""

from collections.abc import Collection, Mapping
from typing import Any

import asyncpg

from evenkeel.ledger.postgres.address import Address
from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.statements import (
    Statements,
    known_migrations,
    program_number,
    quoted,
)
from evenkeel.ledger.sql_files import Migration
from evenkeel.ledger.store import BadStore

OLDEST_SERVER = 130_000
_WRITING = ("SELECT", "INSERT", "UPDATE", "DELETE")
_READING = ("SELECT",)

Standing = Mapping[str, Any]
"""What the server says of itself, of the schema and of our rights."""


async def prepare(connection: Connection, address: Address, sql: Statements) -> None:
    """Bring the tables to this program's form. BadStore: they cannot be; it names the GRANT that is
    lacking."""
    await connection.fetchval(sql["lock_schema"], address.schema)
    standing = await _standing(connection, address, sql)
    if not standing["migrated"]:
        await _begin(connection, address, sql, standing)
    elif not standing["may_use"]:
        raise _lacking(address, standing, "USAGE", f"SCHEMA {quoted(address.schema)}")
    applied = await _applied(connection, address, sql, standing)
    for each in known_migrations():
        if each.number not in applied:
            await _apply(connection, address, sql, standing, each)
    if not applied:
        await connection.execute(sql["begin_meta"])
    await _require(connection, address, sql, standing, _WRITING)


async def require_readable(connection: Connection, address: Address, sql: Statements) -> None:
    """BadStore: there is no ledger of this program's form that this role may read."""
    standing = await _standing(connection, address, sql)
    if not standing["migrated"]:
        raise BadStore(f"store.url: {address.where}: there is no ledger in this schema")
    if not standing["may_use"]:
        raise _lacking(address, standing, "USAGE", f"SCHEMA {quoted(address.schema)}")
    applied = await _applied(connection, address, sql, standing)
    if not applied or max(applied) < program_number():
        raise BadStore(
            f"store.url: {address.where}: its tables have an older form: open it for writing first,"
            " as the operator does"
        )
    await _require(connection, address, sql, standing, _READING)


async def _standing(connection: Connection, address: Address, sql: Statements) -> Standing:
    standing: Standing = await connection.fetchrow(sql["standing"], address.schema)
    if standing["version"] < OLDEST_SERVER:
        raise BadStore(
            f"store.url: {address.where}: PostgreSQL 13 or newer is needed; this is"
            f" {standing['version'] // 10_000}"
        )
    if standing["encoding"] != "UTF8":
        raise BadStore(
            f"store.url: {address.where}: the database's encoding is {standing['encoding']}: make"
            " one with ENCODING 'UTF8'"
        )
    return standing


async def _begin(
    connection: Connection, address: Address, sql: Statements, standing: Standing
) -> None:
    if not standing["exists"]:
        if not standing["may_create_schema"]:
            database = quoted(standing["database"])
            raise _lacking(address, standing, "CREATE", f"DATABASE {database}")
        await connection.execute(sql["create_schema"])
    elif standing["filled"]:
        raise BadStore(
            f"store.url: {address.where}: the schema has tables that are not a ledger's: name"
            " another one with ?schema="
        )
    elif not (standing["may_use"] and standing["may_create"]):
        raise _lacking(address, standing, "USAGE, CREATE", f"SCHEMA {quoted(address.schema)}")
    await connection.execute(sql["create_migration"])


async def _applied(
    connection: Connection, address: Address, sql: Statements, standing: Standing
) -> Collection[int]:
    """Numbers of the migrations that were applied. BadStore: a newer program has applied one after
    which this one may not write."""
    try:
        rows = await connection.fetch(sql["migrations"])
    except asyncpg.InsufficientPrivilegeError:
        tables = f"ALL TABLES IN SCHEMA {quoted(address.schema)}"
        raise _lacking(address, standing, ", ".join(_WRITING), tables) from None
    oldest = max((row["oldest_writer"] for row in rows), default=0)
    if oldest > program_number():
        raise BadStore(
            f"store.url: {address.where}: a newer Evenkeel has changed the tables: this one knows"
            f" migration {program_number()}, and {oldest} is needed. Use the newer one"
        )
    return {row["number"] for row in rows}


async def _apply(
    connection: Connection,
    address: Address,
    sql: Statements,
    standing: Standing,
    migration: Migration,
) -> None:
    try:
        await connection.execute(sql.qualified(migration.text))
        await connection.execute(
            sql["add_migration"], migration.number, migration.name, migration.oldest_writer
        )
    except asyncpg.InsufficientPrivilegeError as error:
        raise BadStore(
            f"store.url: {address.where}: migration {migration.number} needs the owner of the"
            f" tables, and {standing['role']} is not: {error}"
        ) from error


async def _require(
    connection: Connection,
    address: Address,
    sql: Statements,
    standing: Standing,
    privileges: Collection[str],
) -> None:
    found = await connection.fetchrow(sql["lacking"], address.schema, list(privileges))
    if found is not None:
        tables = f"ALL TABLES IN SCHEMA {quoted(address.schema)}"
        raise _lacking(address, standing, ", ".join(privileges), tables)


def _lacking(address: Address, standing: Standing, rights: str, what: str) -> BadStore:
    return BadStore(
        f"store.url: {address.where}: a right is lacking; its owner can give it: GRANT {rights} ON"
        f" {what} TO {quoted(standing['role'])}"
    )
