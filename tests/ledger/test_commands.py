"""The commands that read a ledger, on a real PostgreSQL and between it and files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from tests.ledger.postgres_server import PASSWORD, USER, PostgresServer
from tests.unit.cli.ledgers import BEGAN, MARK, filled

from evenkeel import rfc3339
from evenkeel.cli.ledger import ledger
from evenkeel.cli.runs import runs
from evenkeel.ledger.store import BadStore

SPAN = ("--from", rfc3339.show(BEGAN), "--to", rfc3339.show(MARK + 1))


def rows(url: str) -> str:
    done = CliRunner().invoke(runs, ["--store", url, "-o", "json"])
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def copied(source: str, target: str) -> dict[str, dict[str, int]]:
    done = CliRunner().invoke(ledger, ["copy", source, target, "-o", "json"])
    assert done.exit_code == 0, done.output
    tables: dict[str, dict[str, int]] = json.loads(done.stdout)["tables"]
    return tables


def test_a_ledger_moves_from_a_file_to_a_database_and_back(
    postgres_server: PostgresServer, database: str, tmp_path: Path
) -> None:
    first = asyncio.run(filled(f"sqlite://{tmp_path}/first.db"))
    second = postgres_server.url(database, schema="moved")
    third = f"sqlite://{tmp_path}/third.db"

    there = copied(first, second)
    again = copied(first, second)
    back = copied(second, third)

    assert {name: table["read"] for name, table in there.items()} == {
        name: table["there"] for name, table in back.items()
    }
    assert {table["added"] for table in again.values()} == {0}
    assert rows(first) == rows(second) == rows(third)
    for url in (second, third):
        assert CliRunner().invoke(ledger, ["audit", "--store", url, *SPAN]).exit_code == 0
        assert CliRunner().invoke(ledger, ["check", "--store", url]).exit_code == 0


def test_two_schemas_of_one_database_are_two_stores(
    postgres_server: PostgresServer, database: str
) -> None:
    one, other = (postgres_server.url(database, schema=name) for name in ("one", "other"))
    asyncio.run(filled(one))

    assert copied(one, other)["run"] == {"read": 36, "added": 36, "there": 36}

    same = CliRunner().invoke(ledger, ["copy", one, one])
    assert isinstance(same.exception, BadStore)
    assert "the same store" in str(same.exception)


@pytest.mark.parametrize("command", [["check"], ["audit"], ["copy"]], ids=" ".join)
def test_no_command_prints_the_password(
    postgres_server: PostgresServer, database: str, tmp_path: Path, command: list[str]
) -> None:
    url = asyncio.run(filled(postgres_server.url(database)))
    wrong = postgres_server.url(f"{database}_not_there")
    printed = []
    for each in (url, wrong, url.replace(USER, "nobody", 1)):
        target = [each, f"sqlite://{tmp_path}/copy.db"] if command == ["copy"] else []
        store = [] if target else ["--store", each]
        done = CliRunner().invoke(ledger, [*command, *target, *store])
        printed.append(f"{done.output}{done.exception}")

    assert database in printed[0] or command != ["check"]
    for text in printed:
        assert PASSWORD not in text
        assert quote(PASSWORD, safe="") not in text
