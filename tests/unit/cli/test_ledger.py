"""`evenkeel ledger check`, `copy` and `audit`, on real stores in files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.ledgers import BEGAN, MARK, filled

from evenkeel import rfc3339
from evenkeel.cli.ledger import ledger
from evenkeel.cli.runs import runs
from evenkeel.errors import EvenkeelError
from evenkeel.ledger.rows import Exported
from evenkeel.ledger.sqlite.store import SqliteStore
from evenkeel.ledger.store import BadStore

SPAN = ("--from", rfc3339.show(BEGAN), "--to", rfc3339.show(MARK + 1))
BALANCED = {"expected": 42, "recorded": 42, "unrecorded": 0, "missing": 0, "extra": 0}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return asyncio.run(filled(f"sqlite://{tmp_path}/evenkeel.db"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ledger, arguments)


def all_rows(url: str) -> str:
    return CliRunner().invoke(runs, ["--store", url, "-o", "json"]).stdout


# --- audit ----------------------------------------------------------------------------------------


def test_an_audit_that_balances_says_so(url: str) -> None:
    done = run("audit", "--store", url, *SPAN)

    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "Due times of 2 schedules from 2026-01-01T00:00:00Z until 2026-01-01T06:00:01Z"
    )
    assert lines[1] == "The ledger begins at 2026-01-01T00:00:00Z."
    totals = dict(line.rsplit(None, 1) for line in lines[3:9])
    assert totals == {name: str(count) for name, count in (BALANCED | {"not yet": 0}).items()}
    assert lines[-1] == "Every due time is recorded once."


def test_an_audit_as_json_has_its_totals_and_differences(url: str) -> None:
    done = run("audit", "--store", url, *SPAN, "-o", "json")

    assert json.loads(done.stdout) == {
        "from": "2026-01-01T00:00:00Z",
        "to": "2026-01-01T06:00:01Z",
        **BALANCED,
        "not_yet": 0,
        "ledger_since": "2026-01-01T00:00:00Z",
        "differences": [],
        "differences_not_listed": 0,
    }


def test_a_difference_is_named_and_is_the_exit_code(tmp_path: Path) -> None:
    url = asyncio.run(filled(f"sqlite://{tmp_path}/evenkeel.db", without=1))

    shown = run("audit", "--store", url, *SPAN)
    found = run("audit", "--store", url, *SPAN, "-o", "json")

    assert (shown.exit_code, found.exit_code) == (1, 1)
    assert "bank/close: 1 missing: 2026-01-01T03:00:00Z" in shown.stdout.splitlines()
    assert "Every due time is recorded once." not in shown.stdout
    assert json.loads(found.stdout)["missing"] == 1
    assert json.loads(found.stdout)["differences"] == [
        {
            "schedule": "bank/close",
            "uid": "uid-close",
            "wrong": "missing",
            "count": 1,
            "instants": ["2026-01-01T03:00:00Z"],
        }
    ]


def test_an_audit_of_an_empty_span_is_refused(url: str) -> None:
    done = run("audit", "--store", url, "--from", rfc3339.show(MARK), "--to", rfc3339.show(BEGAN))

    assert done.exit_code == 2
    assert "is not after --from" in done.stderr


# --- check ----------------------------------------------------------------------------------------


def test_a_store_in_order_is_said_to_be(url: str, tmp_path: Path) -> None:
    done = run("check", "--store", url)

    assert (done.exit_code, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.startswith(f"sqlite {tmp_path}/evenkeel.db: ")
    assert first.endswith("written last at 2026-01-01T06:00:00Z")
    assert second == "Nothing is wrong."


def test_what_is_wrong_with_a_store_is_a_sentence_and_the_exit_code(
    url: str, tmp_path: Path
) -> None:
    damaged(tmp_path / "evenkeel.db")

    done = run("check", "--store", url)
    found = run("check", "--store", url, "-o", "json")

    assert (done.exit_code, found.exit_code) == (1, 1)
    assert "Nothing is wrong." not in done.stdout
    assert json.loads(found.stdout)["wrong"] == done.stdout.splitlines()[1:] != []


def damaged(file: Path) -> None:
    """A second range row of the same hours. The store itself writes none."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "INSERT INTO span SELECT schedule, kind, first + 600, reason, last, counts, recorded "
            "FROM span WHERE kind = 'verdict'"
        )


# --- copy -----------------------------------------------------------------------------------------


def test_a_copy_has_the_same_rows(url: str, tmp_path: Path) -> None:
    copy = f"sqlite://{tmp_path}/copy.db"

    done = run("copy", url, copy)

    assert done.exit_code == 0, done.stderr
    tables = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[1:]}
    assert tables["run"] == ["36", "36", "36"]
    assert tables["span"] == ["2", "2", "2"]
    assert "run: 36 rows" in done.stderr.splitlines()
    assert all_rows(copy) == all_rows(url)
    assert run("audit", "--store", copy, *SPAN).exit_code == 0


def test_a_copy_that_is_run_again_adds_nothing(url: str, tmp_path: Path) -> None:
    copy = f"sqlite://{tmp_path}/copy.db"
    run("copy", url, copy)

    again = json.loads(run("copy", url, copy, "-o", "json").stdout)

    assert {table["added"] for table in again["tables"].values()} == {0}
    assert again["tables"]["run"] == {"read": 36, "added": 0, "there": 36}
    assert again["lacking"] == []
    assert all_rows(copy) == all_rows(url)


def test_a_store_is_not_copied_into_itself(url: str) -> None:
    done = run("copy", url, url.replace("sqlite:///", "sqlite:////"))

    assert isinstance(done.exception, BadStore)
    assert str(done.exception) == "FROM and TO are the same store"


def test_a_copy_of_nothing_makes_nothing(tmp_path: Path) -> None:
    done = run("copy", f"sqlite://{tmp_path}/none.db", f"sqlite://{tmp_path}/copy.db")

    assert isinstance(done.exception, EvenkeelError)
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_lacks_rows_is_a_failure(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that says it took rows, and has not."""

    async def takes_none(store: SqliteStore, chunk: Exported) -> int:
        return len(chunk.rows)

    monkeypatch.setattr(SqliteStore, "restore", takes_none)

    done = run("copy", url, f"sqlite://{tmp_path}/copy.db")

    assert done.exit_code == 1
    assert "run: 36 rows were read, and the copy has 0" in done.stderr.splitlines()
