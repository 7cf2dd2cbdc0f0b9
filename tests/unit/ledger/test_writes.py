"""What is written for each effect of the scheduler."""

from __future__ import annotations

import pytest
from tests.builders import MONDAY

from evenkeel.core import effects
from evenkeel.ledger.outbox import Teller
from evenkeel.ledger.rows import (
    MarkRow,
    Range,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
)
from evenkeel.ledger.writes import (
    LONGEST_REQUESTED_BY,
    Told,
    end_of,
    mark_of,
    phase_from_text,
    phase_text,
    teller_of,
    uid_of,
    write_of,
)
from evenkeel.model import (
    Attempt,
    Cause,
    Cron,
    RunId,
    RunState,
    Timing,
    Window,
    kind_of_request,
)
from evenkeel.reasons import Reason
from evenkeel.resource.record import Placed

RUN = RunId("a", MONDAY)
WANTED = RunId("a", MONDAY, "q0abcdef")
FIRST = Attempt(1, "job-1", created=MONDAY + 0.02, finished=MONDAY + 60, exit_code=1)
SECOND = Attempt(2, "job-2", created=MONDAY + 70.5)

WRITES: dict[str, tuple[Told, object]] = {
    "a timing": (
        effects.TimingBegan("a", "shop/a", MONDAY, Timing(Cron("@daily")), 1),
        TimingRow(
            "a",
            "shop/a",
            MONDAY,
            '{"schedule":"@daily","timeZone":"UTC","dst":{"gap":"Shift","fold":"First"}}',
        ),
    ),
    "an interval without a phase": (
        effects.TimingBegan("a", "shop/a", MONDAY, None, 1),
        TimingRow("a", "shop/a", MONDAY, ""),
    ),
    "a run between two attempts": (
        effects.RunWaits(
            RUN, "shop/a", RunState.RETRYING, Reason.RETRYING, 2, MONDAY + 0.01, 1,
            due_at=MONDAY + 70.0, priority=5, attempts=(FIRST,),
        ),
        RunRow(
            RUN, "shop/a", RunState.RETRYING, "retrying", 2, taken_up=MONDAY + 0.01,
            created=MONDAY + 0.02, due_at=MONDAY + 70.0, priority=5, attempts=(FIRST,),
        ),
    ),
    "a run that began": (
        effects.RunBegan(
            RUN, "shop/a", 1, "job-1", sent_at=MONDAY + 0.02, taken_at=MONDAY - 10.0,
            generation=3, template_hash="h",
        ),
        RunRow(
            RUN, "shop/a", RunState.RUNNING, "", 1, "job-1", taken_up=MONDAY - 10.0,
            created=MONDAY + 0.02, generation=3, template_hash="h",
        ),
    ),
    "a second attempt began: the run was created with its first": (
        effects.RunBegan(
            RUN, "shop/a", 2, "job-2", sent_at=MONDAY + 70.5, attempts=(FIRST, SECOND)
        ),
        RunRow(
            RUN, "shop/a", RunState.RUNNING, "", 2, "job-2", created=MONDAY + 0.02,
            attempts=(FIRST, SECOND),
        ),
    ),
    "a second attempt, the first of which nobody knows": (
        effects.RunBegan(RUN, "shop/a", 2, "job-2", sent_at=MONDAY + 70.5, attempts=(SECOND,)),
        RunRow(RUN, "shop/a", RunState.RUNNING, "", 2, "job-2", attempts=(SECOND,)),
    ),
    "a run that failed": (
        effects.RunEnded(
            RUN, "shop/a", RunState.FAILED, Reason.JOB_FAILED, 1, "job-1", MONDAY + 2, MONDAY + 60,
            message="BackoffLimitExceeded", cause=Cause("OOMKilled", "main", 137, "killed"),
            attempts=(FIRST,),
        ),
        RunRow(
            RUN, "shop/a", RunState.FAILED, "job_failed", 1, "job-1", created=MONDAY + 0.02,
            started=MONDAY + 2, finished=MONDAY + 60, exit_code=137, exit_reason="OOMKilled",
            container="main", message="killed", attempts=(FIRST,),
        ),
    ),
    "a run that was never created": (
        effects.RunEnded(
            RUN, "shop/a", RunState.SKIPPED, Reason.OVERLAP, 1, "", None, MONDAY, message="busy"
        ),
        RunRow(
            RUN, "shop/a", RunState.SKIPPED, "overlap", 1, finished=MONDAY, message="busy"
        ),
    ),
    "a run that a request wants later": (
        effects.RunWaits(
            WANTED, "shop/a", RunState.SCHEDULED, None, 1, None, 1, due_at=float(MONDAY),
            told_by=effects.ToldBy("uid", "again", "ann"),
        ),
        RunRow(
            WANTED, "shop/a", RunState.SCHEDULED, "", 1, due_at=float(MONDAY), request="again",
            requested_by="ann",
        ),
    ),
    "a requested run that began": (
        effects.RunBegan(
            WANTED, "shop/a", 1, "job-1", sent_at=MONDAY + 0.02,
            told_by=effects.ToldBy("uid", "again"),
        ),
        RunRow(
            WANTED, "shop/a", RunState.RUNNING, "", 1, "job-1", created=MONDAY + 0.02,
            request="again",
        ),
    ),
    "a requested run that ended, by somebody with much to say": (
        effects.RunEnded(
            WANTED, "shop/a", RunState.SUCCEEDED, None, 1, "job-1", MONDAY, MONDAY + 1,
            told_by=effects.ToldBy("uid", "again", "x" * 1000),
        ),
        RunRow(
            WANTED, "shop/a", RunState.SUCCEEDED, "", 1, "job-1", started=MONDAY,
            finished=MONDAY + 1, request="again", requested_by="x" * LONGEST_REQUESTED_BY,
        ),
    ),
    "runs that were lost, and that a status did not name": (
        effects.SpanEnded(
            "a", "shop/a", MONDAY, MONDAY + 60, 3, RunState.LOST, Reason.OUTCOME_UNKNOWN
        ),
        None,
    ),
    "due times that were missed as a whole": (
        effects.SpanEnded(
            "a", "shop/a", MONDAY, MONDAY + 120, 3, RunState.MISSED, Reason.SUPERSEDED
        ),
        SpanRow("a", "shop/a", MONDAY, MONDAY + 121, {"missed": 3}, "superseded"),
    ),
    "a suspended schedule": (
        effects.SpanOpened("a", "shop/a", MONDAY, Reason.SUSPENDED, 1),
        SpanRow("a", "shop/a", MONDAY, None, {}, "suspended", Range.OPEN),
    ),
    "a resumed schedule": (
        effects.SpanClosed("a", "shop/a", MONDAY, Reason.SUSPENDED, 1),
        SpanClosed("a", "shop/a", "suspended", MONDAY),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("effect", "write"), WRITES.values(), ids=WRITES)
def test_what_is_written(effect, write):
    assert write_of(effect) == write
    assert uid_of(effect) == "a"
    requested = isinstance(write, RunRow) and write.request
    assert teller_of(effect) == Teller("a", kind_of_request("uid") if requested else "s")


def test_of_a_run_whose_request_is_gone_the_status_of_the_schedule_tells():
    ended = effects.RunEnded(WANTED, "shop/a", RunState.LOST, None, 1, "job-1", None, MONDAY)
    assert teller_of(ended) == Teller("a")


def test_every_effect_that_a_status_tells_of_has_a_write():
    assert {type(effect) for effect, _ in WRITES.values()} == set(Told.__args__)


def test_a_mark_and_an_end():
    assert mark_of(effects.StatusTold("a", "shop/a", 3, MONDAY)) == MarkRow("a", "shop/a", MONDAY)
    ended = effects.ScheduleEnded("a", "shop/a", MONDAY + 5, MONDAY)
    assert end_of(ended) == ScheduleEnded("a", "shop/a", MONDAY + 5, MONDAY)


@pytest.mark.parametrize("window", [None, Window(3600, 7200)])
def test_a_phase_comes_back_as_it_was(window):
    placed = Placed(MONDAY + 17, 600, MONDAY, 5, 12, window, "the least load", 40)
    assert phase_from_text(phase_text(placed)) == placed


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"anchor": 5}'])
def test_a_phase_that_somebody_else_wrote_is_none(text):
    assert phase_from_text(text) is None
