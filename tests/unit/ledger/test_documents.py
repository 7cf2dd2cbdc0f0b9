"""Rows of the ledger as the JSON that `evenkeel runs` prints."""

from __future__ import annotations

import json

from evenkeel.ledger.documents import document_of
from evenkeel.ledger.rows import UNRECORDED, Range, RunRow, SpanRow
from evenkeel.model import Attempt, RunId, RunState

DUE = 1_763_049_600  # 2025-11-13T16:00:00Z


def test_a_run_tells_all_that_is_known_of_it() -> None:
    row = RunRow(
        run=RunId("u", DUE),
        key="shop/sweep",
        state=RunState.FAILED,
        reason="BackoffLimitExceeded",
        attempt=2,
        job="sweep-retry1-29384160",
        taken_up=DUE - 10.0,
        created=DUE + 0.0124,
        started=DUE + 1,
        finished=DUE + 30,
        exit_code=137,
        exit_reason="OOMKilled",
        container="sweep",
        message="no room",
        generation=3,
        template_hash="abc",
        attempts=(
            Attempt(1, "sweep-29384160", DUE + 0.0124, DUE + 1, DUE + 4, 1, "Error"),
            Attempt(2, "sweep-retry1-29384160", created=DUE + 14.9996),
        ),
    )

    assert document_of(row) == {
        "schedule": "shop/sweep",
        "kind": "s",
        "due": "2025-11-13T16:00:00Z",
        "state": "failed",
        "reason": "BackoffLimitExceeded",
        "attempt": 2,
        "job": "sweep-retry1-29384160",
        "takenUp": "2025-11-13T15:59:50.000Z",
        "created": "2025-11-13T16:00:00.012Z",
        "started": "2025-11-13T16:00:01Z",
        "finished": "2025-11-13T16:00:30Z",
        "latenessSeconds": 0.012,
        "exitCode": 137,
        "exitReason": "OOMKilled",
        "container": "sweep",
        "message": "no room",
        "generation": 3,
        "templateHash": "abc",
        "attempts": [
            {
                "job": "sweep-29384160",
                "created": "2025-11-13T16:00:00.012Z",
                "started": "2025-11-13T16:00:01Z",
                "finished": "2025-11-13T16:00:04Z",
                "exitCode": 1,
                "reason": "Error",
            },
            {
                "job": "sweep-retry1-29384160",
                "created": "2025-11-13T16:00:15.000Z",
                "started": None,
                "finished": None,
                "exitCode": None,
                "reason": "",
            },
        ],
        "request": "",
        "requestedBy": "",
    }


def test_what_is_not_known_of_a_run_is_null_or_empty_but_there() -> None:
    known = document_of(RunRow(run=RunId("u", DUE), key="shop/sweep", state=RunState.SKIPPED))

    assert json.loads(json.dumps(known)) == known
    assert {name for name, value in known.items() if value is None} == {
        *("takenUp", "created", "started", "finished", "latenessSeconds", "exitCode"),
    }


def test_a_range_has_counts_and_no_due_time() -> None:
    counts = {RunState.MISSED: 5, UNRECORDED: 2}
    row = SpanRow("u", "shop/sweep", DUE, DUE + 3600, counts, "not_in_time")

    assert document_of(row) == {
        "schedule": "shop/sweep",
        "range": "verdict",
        "from": "2025-11-13T16:00:00Z",
        "to": "2025-11-13T17:00:00Z",
        "counts": {"missed": 5, "unrecorded": 2},
        "reason": "not_in_time",
    }


def test_a_range_that_goes_on_has_no_end() -> None:
    row = SpanRow("u", "shop/sweep", DUE, None, {}, "suspended", Range.OPEN)

    assert (document_of(row)["range"], document_of(row)["to"]) == ("open", None)
