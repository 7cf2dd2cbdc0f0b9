"""Pages of runs and ranges, by every filter."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import (
    all_rows,
    dues,
    key_of,
    opened,
    run,
    run_id,
    spans,
    verdict,
    write,
)

from evenkeel.ledger.rows import RunQuery, RunRow, SpanRow
from evenkeel.ledger.store import BadCursor, RunStore
from evenkeel.model import RunState

ROWS: tuple[RunRow | SpanRow, ...] = (
    run("10:00", RunState.SUCCEEDED),
    run("10:00", RunState.FAILED, "b", reason="job_failed"),
    run("10:30", RunState.RUNNING, "c", key="prod/c"),
    run("10:30", RunState.SUCCEEDED, kind="q0abcdef"),
    run("10:30", RunState.SKIPPED, reason="overlap"),
    run("11:00", RunState.PENDING, "b", reason="queued"),
    run("11:00", RunState.MISSED, "d", reason="deadline", key="prod/a"),
    run("11:30", RunState.LOST, reason="job_deleted"),
    run("11:30", RunState.RETRYING, "b", kind="q0bcdefg"),
    run("12:00", RunState.CANCELLED, "c", key="prod/c", reason="cancelled"),
    verdict("09:00", "10:00", counts={"skipped": 4}, reason="suspended"),
    verdict("11:00", "11:31", "b", counts={"missed": 2, "skipped": 1}, reason="not_in_time"),
    opened("11:45", "d", reason="paused"),
)
FILTERS: list[dict[str, Any]] = [
    {},
    {"ranges": False},
    {"namespace": "prod"},
    {"namespace": "pro"},
    {"name": "a"},
    {"namespace": "prod", "name": "a"},
    {"namespace": "nowhere"},
    {"name": "nobody"},
    {"states": frozenset({"failed"})},
    {"states": frozenset({"succeeded"})},
    {"states": frozenset({"running", "retrying"})},
    {"states": frozenset({"missed", "skipped", "running"})},
    {"states": frozenset({"succeeded", "pending"}), "name": "b"},
    {"states": frozenset({"unrecorded"})},
    {"states": frozenset({"nonsense"})},
    {"reasons": frozenset({"overlap", "suspended"})},
    {"reasons": frozenset({"queued"}), "states": frozenset({"pending"})},
    {"reasons": frozenset({"", "paused"})},
    {"kinds": frozenset({"s"})},
    {"kinds": frozenset({"q0abcdef"})},
    {"kinds": frozenset({"q0bcdefg", "s"})},
    {"since": instant("10:30")},
    {"until": instant("10:30")},
    {"since": instant("10:00"), "until": instant("11:31")},
    {"since": instant("11:31")},
    {"until": instant("11:45"), "since": instant("11:46")},
    {"namespace": "prod", "since": instant("11:00"), "states": frozenset({"missed"})},
]


def wanted(row: RunRow | SpanRow, query: dict[str, Any]) -> bool:
    """The filters again, as a reader would say them."""
    namespace, name = row.key.split("/")
    if query.get("namespace", namespace) != namespace or query.get("name", name) != name:
        return False
    if "reasons" in query and row.reason not in query["reasons"]:
        return False
    states = {str(row.state)} if isinstance(row, RunRow) else set(row.counts)
    if "states" in query and not states & query["states"]:
        return False
    kind = row.run.kind if isinstance(row, RunRow) else "s"
    if "kinds" in query and kind not in query["kinds"]:
        return False
    if isinstance(row, SpanRow) and query.get("ranges") is False:
        return False
    since, until = query.get("since", 0), query.get("until", 1 << 40)
    if isinstance(row, SpanRow) and row.end is None:
        return bool(row.first < until)
    at = row.run.due if isinstance(row, RunRow) else (row.end or 0) - 1
    return bool(since <= at < until)


def known_as(rows: list[RunRow | SpanRow]) -> list[object]:
    return [row.run if isinstance(row, RunRow) else (row.uid, row.first) for row in rows]


def _in_words(query: dict[str, Any]) -> str:
    """Each worker of a parallel run must call it the same: the order within a set differs."""
    return " ".join(
        f"{name}={'+'.join(sorted(value)) if isinstance(value, frozenset) else value}"
        for name, value in query.items()
    )


@pytest.mark.parametrize("query", FILTERS, ids=_in_words)
async def test_a_page_has_what_is_asked_for_newest_first(
    store: RunStore, query: dict[str, Any]
) -> None:
    await write(store, *ROWS)
    everything = await all_rows(store)

    found = await all_rows(store, **query)

    assert known_as(found) == known_as([row for row in everything if wanted(row, query)])
    for limit in (1, 2, 5):
        assert await all_rows(store, **query, limit=limit) == found


async def test_all_rows_stand_by_due_time_and_range_rows_by_their_last_instant(
    store: RunStore,
) -> None:
    await write(store, *ROWS)

    assert known_as(await all_rows(store)) == [
        ("d", instant("11:45")),
        run_id("12:00", "c"),
        ("b", instant("11:00")),
        run_id("11:30", "b", kind="q0bcdefg"),
        run_id("11:30"),
        run_id("11:00", "d"),
        run_id("11:00", "b"),
        run_id("10:30", "c"),
        run_id("10:30"),
        run_id("10:30", kind="q0abcdef"),
        run_id("10:00", "b"),
        run_id("10:00"),
        ("a", instant("09:00")),
    ]


async def test_pages_neither_repeat_nor_lose_rows_while_others_are_written(
    store: RunStore,
) -> None:
    old = [run(600 * number, RunState.SUCCEEDED, "ab"[number % 2]) for number in range(60)]
    await write(store, *old)
    seen: list[RunRow | SpanRow] = []
    cursor, number = "", 0
    while True:
        page = await store.runs(RunQuery(limit=7, cursor=cursor))
        seen += page.items
        if not (cursor := page.next):
            break
        number += 1
        await write(
            store,
            run(600 * number + 300, RunState.RUNNING, "c"),
            run(100_000 + number, RunState.RUNNING, "c"),
            verdict(40_000 + number, 40_001 + number, "d"),
            opened(number, "d"),
        )

    found = dues(seen)
    assert len(found) == len(set(found))
    assert [due for _, due in found] == sorted((due for _, due in found), reverse=True)
    assert {(row.run.uid, row.run.due) for row in old} <= set(found)
    assert len(known_as(seen)) == len(set(known_as(seen)))


async def test_many_runs_of_one_instant_are_turned_over_page_by_page(store: RunStore) -> None:
    rows = [run("10:00", RunState.SUCCEEDED, f"s{number}") for number in range(25)]
    requested = [run("10:00", RunState.FAILED, "s3", kind=f"q0aaaaa{last}") for last in "abc"]
    ranges = [verdict("09:00", instant("10:00") + 1, f"s{number}") for number in range(0, 25, 5)]
    await write(store, *rows, *requested, *ranges)

    found = await all_rows(store, limit=4)

    assert len(found) == 33
    assert len(set(known_as(found))) == 33
    assert found == await all_rows(store, limit=100)
    named = await all_rows(store, namespace="default", name="s3", limit=1)
    assert [row.run.kind for row in named if isinstance(row, RunRow)] == [
        "s",
        "q0aaaaac",
        "q0aaaaab",
        "q0aaaaaa",
    ]


async def test_one_namespace_with_very_many_schedules_is_read_by_pages(store: RunStore) -> None:
    count = 230
    await write(
        store,
        *(
            run(number, RunState.SUCCEEDED, f"s{number}", key=f"crowd/s{number}")
            for number in range(count)
        ),
        *(run(number, RunState.SUCCEEDED, f"o{number}") for number in range(5)),
        verdict(0, 100, "s7"),
        verdict(0, 100, "o1"),
    )

    found = await all_rows(store, namespace="crowd", limit=50)

    assert len(dues(found)) == count
    assert [row.uid for row in found if isinstance(row, SpanRow)] == ["s7"]


@pytest.mark.parametrize(
    "cursor", ["x", "e30", "W10", "WzEsMiwzLDQsNV0", "é", '[1,2,1,"s",0]', "!!!!", "\0", "null"]
)
async def test_a_cursor_that_no_page_ended_with_is_refused(store: RunStore, cursor: str) -> None:
    await write(store, *ROWS)

    with pytest.raises(BadCursor, match="cursor"):
        await store.runs(RunQuery(cursor=cursor))


async def test_a_cursor_of_a_row_that_is_gone_goes_on_behind_it(store: RunStore) -> None:
    await write(store, opened("10:00"), run("09:00", RunState.SUCCEEDED))
    page = await store.runs(RunQuery(limit=1))
    await write(store, verdict("10:00", "11:00"))

    following = await store.runs(RunQuery(limit=5, cursor=page.next))

    assert known_as([*following.items]) == [("a", instant("10:00")), run_id("09:00")]


async def test_names_that_look_alike_are_told_apart(store: RunStore) -> None:
    keys = ["a/b", "a/bc", "a-/b", "a0/b", "aa/b", "A/b", "a%/b", "a_/b"]
    await write(
        store,
        *(
            run(number, RunState.SUCCEEDED, f"u{number}", key=key)
            for number, key in enumerate(keys)
        ),
    )

    for key in keys:
        namespace, name = key.split("/")
        found = await all_rows(store, namespace=namespace, name=name)
        assert [row.key for row in found] == [key]
    assert {row.key for row in await all_rows(store, namespace="a")} == {"a/b", "a/bc"}
    assert key_of("a") == "default/a"
    assert await spans(store) == []
