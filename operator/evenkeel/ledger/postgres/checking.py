"""Looks for what is wrong with what is stored. Pure, but for asking."""

from evenkeel.ledger.postgres.connections import Connection
from evenkeel.ledger.postgres.statements import Statements
from evenkeel.model import RunId


async def check(connection: Connection, sql: Statements) -> list[str]:
    """A sentence for each thing that is wrong; at most 100 of a kind."""
    wrong = [
        f"run {RunId(record['uid'], record['due'], record['kind'])} is deferred, and has ended"
        for record in await connection.fetch(sql["check_deferred"])
    ]
    wrong += [
        f"{record['key']}: the range row at {record['first']} ends before it"
        for record in await connection.fetch(sql["check_ranges"])
    ]
    wrong += [
        f"{record['key']}: the range rows at {record['first']} and {record['before']} overlap"
        for record in await connection.fetch(sql["check_overlaps"])
    ]
    wrong += [
        f"{record['count']} rows of {record['rows']} belong to no schedule"
        for record in await connection.fetch(sql["check_orphans"])
        if record["count"]
    ]
    return wrong
