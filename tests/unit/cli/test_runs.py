"""The output of `evenkeel runs`, read from a real store in a file."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.cli.ledgers import BEGAN, CLOSE, HOUR_S, MARK, filled

from evenkeel import rfc3339
from evenkeel.cli import runs as module
from evenkeel.cli.runs import runs
from evenkeel.errors import EvenkeelError
from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Batch, RunRow
from evenkeel.ledger.store import BadStore
from evenkeel.model import RunId, RunState


async def requested(url: str) -> str:
    """The filled store, with a run that failed once more on request."""
    await filled(url)
    again = RunRow(
        RunId(CLOSE[0], BEGAN + HOUR_S, "q0abcdef"), CLOSE[1], RunState.SUCCEEDED,
        job="close-29453820-q0abcdef", created=MARK + 0.5, started=MARK + 1, finished=MARK + 4,
        request="close-again", requested_by="ann",
    )  # fmt: skip
    store = await open_store(url)
    await store.write(Batch(MARK, (again,)), term=await store.take_term())
    await store.close()
    return url


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("ledger")
    return asyncio.run(filled(f"sqlite://{directory}/evenkeel.db"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(runs, arguments)


def rows(*arguments: str) -> list[dict[str, object]]:
    done = run("-o", "json", *arguments)
    assert (done.stderr, done.exit_code) == ("", 0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def dues(found: list[dict[str, object]]) -> list[object]:
    return [row.get("due", row.get("from")) for row in found]


def test_every_row_is_one_line_of_json_and_the_newest_is_first(url: str) -> None:
    found = rows("--store", url)

    assert len(found) == 30 + 1 + 6 + 1
    ordered = [str(row["due"]) for row in found if "due" in row]
    assert ordered == sorted(ordered, reverse=True)
    assert {row["schedule"] for row in found} == {"shop/sweep", "bank/close"}


def test_rows_are_read_page_by_page_and_none_is_lost(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = rows("--store", url)
    monkeypatch.setattr(module, "PAGE", 4)

    assert rows("--store", url) == at_once


@pytest.mark.parametrize("limit", [0, 1, 5, 1000])
def test_a_limit_takes_the_newest(url: str, limit: int) -> None:
    assert rows("--store", url, "--limit", str(limit)) == rows("--store", url)[:limit]


ASKED = {
    "a name": (["close"], 7),
    "a name with its namespace": (["bank/close"], 7),
    "a namespace": (["-n", "shop"], 31),
    "a name elsewhere": (["close", "-n", "shop"], 0),
    "a state of runs": (["--state", "failed"], 1),
    "two states": (["--state", "failed", "--state", "skipped"], 2),
    "a state of a range": (["--state", "missed"], 1),
    "a reason": (["--reason", "overlap"], 1),
}


@pytest.mark.parametrize(("arguments", "count"), ASKED.values(), ids=ASKED)
def test_rows_are_chosen(url: str, arguments: list[str], count: int) -> None:
    done = run("--store", url, "-o", "json", *arguments)

    assert done.exit_code == 0
    assert done.stdout.count("\n") == count
    assert done.stderr == ("" if count else "no run matches\n")


def test_since_is_inclusive_and_until_is_not(url: str) -> None:
    since, until = rfc3339.show(MARK - HOUR_S), rfc3339.show(MARK)
    found = rows("--store", url, "sweep", "--since", since, "--until", until)

    assert (len(found), dues(found)[-1]) == (6, since)


def test_people_get_a_table(url: str) -> None:
    lines = run("--store", url, "close").stdout.splitlines()

    assert [line.split() for line in lines] == [
        ["DUE", "SCHEDULE", "STATE", "REASON", "ATTEMPT", "LATE", "LASTED", "JOB", "REQUEST"],
        *([rfc3339.show(MARK + 1), "bank/close", "suspended,", "goes", "on"],),
        *(
            [
                rfc3339.show(due),
                "bank/close",
                "succeeded",
                "1",
                "0.012s",
                "40s",
                f"close-{due // 60}",
            ]
            for due in (MARK, MARK - HOUR_S, MARK - 2 * HOUR_S, MARK - 3 * HOUR_S)
        ),
        ["2026-01-01T02:00:00Z", "bank/close", "skipped", "overlap", "1"],
        [
            *("2026-01-01T01:00:00Z", "bank/close", "failed", "BackoffLimitExceeded", "2"),
            *("0.031s", "1m23s", "close-retry1-29453820"),
        ],
    ]
    columns = {line.index("bank/close") for line in lines[1:]}
    assert columns == {lines[0].index("SCHEDULE")}


def test_runs_that_a_request_asked_for_name_it(tmp_path: Path) -> None:
    url = asyncio.run(requested(f"sqlite://{tmp_path}/evenkeel.db"))
    title, line = run("--store", url, "--request", "close-again").stdout.splitlines()

    assert title.split()[-2:] == ["JOB", "REQUEST"]
    assert line.split()[-2:] == ["close-29453820-q0abcdef", "close-again"]
    assert line.index("close-again") == title.index("REQUEST")
    assert line.split()[3:5] == ["1", "3s"], "it is hours after its due time, and not late"
    (found,) = rows("--store", url, "--request", "close-again")
    assert (found["request"], found["requestedBy"]) == ("close-again", "ann")
    assert found["latenessSeconds"] is None
    assert run("--store", url, "--request", "other").stderr == "no run matches\n"


def test_a_range_is_a_line_in_words(url: str) -> None:
    (_, line) = run("--store", url, "--state", "missed").stdout.splitlines()

    assert line == (
        "2026-01-01T02:00:00Z  shop/sweep  6 missed, not_in_time, until 2026-01-01T03:00:00Z"
    )


WRONG = {
    "a name in another namespace": (["shop/sweep", "-n", "bank"], "is not in the namespace bank"),
    "no such state": (["--state", "done"], "'done' is not one of"),
    "an end before the start": (
        ["--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z"],
        "2026-01-01T00:00:00Z is not after --since (2026-01-02T00:00:00Z)",
    ),
    "no time": (["--since", "yesterday"], "'yesterday'"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG)
def test_wrong_options_are_told_in_a_sentence(url: str, arguments: list[str], words: str) -> None:
    done = run("--store", url, *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    done = run("--store", f"sqlite://{tmp_path}/none.db")

    assert isinstance(done.exception, EvenkeelError)
    assert list(tmp_path.iterdir()) == []


def test_without_a_ledger_it_says_so() -> None:
    done = run("--store", "none")

    assert isinstance(done.exception, BadStore)
    assert "no ledger is kept" in str(done.exception)


def test_without_a_store_it_reads_the_one_that_the_operator_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_DATA", str(tmp_path))
    assert "there is no file" in str(run().exception)

    asyncio.run(filled(f"sqlite://{tmp_path}/evenkeel.db"))

    assert len(run("--limit", "3", "-o", "json").stdout.splitlines()) == 3


def test_a_database_that_does_not_answer_is_a_sentence_without_the_password() -> None:
    done = run("--store", "postgresql://evenkeel:hunter2@127.0.0.1:1/history")

    assert isinstance(done.exception, EvenkeelError)
    assert "127.0.0.1" in str(done.exception)
    assert "hunter2" not in f"{done.exception} {done.output}"
