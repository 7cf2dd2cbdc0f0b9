"""The status of a request gives back after a restart how far it is, and believes nothing."""

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.world import merge_patch
from tests.unit.resource.test_status import INSTANTS, JUNK, TIMINGS

from evenkeel.model import Interval, RequestState, RunState, Timing
from evenkeel.reasons import Reason, RequestCondition
from evenkeel.resource.record import (
    CONDITION_COUNT,
    LARGEST_COUNT,
    MOST_ATTEMPTS,
    Condition,
    RecentRun,
)
from evenkeel.resource.request_record import (
    MOST_DUES,
    NO_REQUEST_STATUS,
    REQUEST_ACTIVE_COUNT,
    REQUEST_COUNTED,
    ActiveRun,
    Plan,
    RequestMemory,
    RequestRecord,
    RequestShown,
)
from evenkeel.resource.request_status import parse_request, render_request
from evenkeel.settings import Settings

HOURLY = Timing(Interval(3600, 0))
WAITS = [Reason.LAUNCHING, Reason.QUEUED, Reason.HELD, Reason.RETRYING, Reason.TAKEN_UP]


def bits_of(count: int) -> st.SearchStrategy[bytes]:
    return st.integers(0, 2**count - 1).map(
        lambda number: (number << (-count % 8)).to_bytes((count + 7) // 8, "big")
    )


def plans() -> st.SearchStrategy[Plan]:
    ranges = st.integers(0, 100).flatmap(
        lambda count: st.builds(Plan, st.just(count), bits_of(count), TIMINGS)
    )
    return ranges | st.builds(Plan, st.just(1), st.sampled_from([b"\x80", b"\x00"]))


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
ROWS = st.builds(
    RecentRun,
    INSTANTS,
    st.sampled_from(RunState),
    started=st.none() | INSTANTS,
    finished=st.none() | INSTANTS,
    reason=TEXT,
    attempt=st.integers(1, MOST_ATTEMPTS),
    job=TEXT,
    exit_code=st.none() | st.integers(0, 255),
    exit_reason=TEXT,
)
RECORDS = st.builds(
    RequestRecord,
    counts=st.dictionaries(st.sampled_from(REQUEST_COUNTED), st.integers(1, MOST_DUES)),
    recent=st.lists(ROWS, max_size=10, unique_by=lambda row: row.due),
    consecutive_failures=st.integers(0, MOST_DUES),
)
ACTIVE = st.builds(
    ActiveRun,
    INSTANTS,
    st.integers(1, MOST_ATTEMPTS),
    st.none() | st.sampled_from(WAITS),
    TEXT,
    TEXT,
    st.none() | INSTANTS,
)
CONDITIONS = st.dictionaries(
    st.sampled_from([kind.value for kind in RequestCondition]),
    st.builds(
        Condition,
        st.sampled_from(["True", "False", "Unknown"]),
        TEXT,
        TEXT,
        INSTANTS,
        st.integers(0, 9),
    ),
)


@st.composite
def memories(draw: st.DrawFn) -> RequestMemory:
    plan = draw(st.none() | plans())
    return RequestMemory(
        generation=draw(st.integers(0, 9)),
        state=draw(st.sampled_from(RequestState)),
        schedule_uid=draw(TEXT),
        plan=plan,
        mark=draw(st.none() | INSTANTS) if plan else None,
        active=tuple(draw(st.lists(ACTIVE, max_size=5, unique_by=lambda row: row.due))),
        record=draw(RECORDS),
        started=draw(st.none() | INSTANTS),
        finished=draw(st.none() | INSTANTS),
        conditions=draw(CONDITIONS),
    )


SHOWN = st.builds(
    RequestShown,
    total=st.none() | st.integers(0, MOST_DUES),
    dues=st.lists(INSTANTS, max_size=30).map(tuple),
)


@given(memories(), SHOWN)
@settings(deadline=None)
def test_what_is_written_is_read_back(memory: RequestMemory, shown: RequestShown) -> None:
    stored = orjson.loads(orjson.dumps(merge_patch({}, render_request(memory, shown))))
    assert parse_request(stored) == memory


@given(memories(), memories(), SHOWN)
@settings(deadline=None)
def test_a_patch_leaves_nothing_of_what_stood_there(
    before: RequestMemory, after: RequestMemory, shown: RequestShown
) -> None:
    stored = merge_patch({}, render_request(before, RequestShown(3, (0,))))
    stored = merge_patch(stored, render_request(after, shown))
    assert parse_request(stored) == after
    assert stored == merge_patch({}, render_request(after, shown))


def test_an_empty_status_remembers_nothing() -> None:
    assert parse_request(None) == parse_request({}) == NO_REQUEST_STATUS
    assert parse_request({}, version="7").version == "7"


FIELDS = [
    "observedGeneration", "state", "scheduleUid", "counts", "recent", "active",
    "consecutiveFailures", "startedAt", "finishedAt", "plan", "conditions",
]  # fmt: skip


@given(JUNK | st.dictionaries(st.sampled_from(FIELDS), JUNK))
def test_no_status_makes_it_raise(status: Any) -> None:
    memory = parse_request(status)
    assert all(0 <= count <= LARGEST_COUNT for count in memory.record.counts.values())


@given(JUNK)
def test_no_inner_field_makes_it_raise(inner: Any) -> None:
    good = {"count": 9, "bits": "AAA=", "timing": {"fields": {"interval": {"every": "60s"}}}}
    for field in ("count", "bits", "mark", "timing"):
        parse_request({"plan": {**good, field: inner}})
    parse_request({"plan": {**good, "timing": {"fields": inner}}})
    parse_request({"active": [inner, {"due": inner}, {"due": "2026-01-01T00:00:00Z", "x": inner}]})
    for field in ("attempt", "reason", "job", "jobUid", "retryAt"):
        parse_request({"active": [{"due": "2026-01-01T00:00:00Z", field: inner}]})


def stored_plan(**changes: Any) -> Any:
    memory = RequestMemory(plan=Plan(9, b"\xff\x80", HOURLY), mark=3600)
    status = render_request(memory, RequestShown(9))
    status["plan"] |= changes
    return merge_patch({}, status)


@pytest.mark.parametrize(
    "changes",
    [
        {"count": 8},
        {"count": 17},
        {"count": -1},
        {"count": True},
        {"count": "9"},
        {"count": MOST_DUES + 1, "bits": base64.b64encode(b"x" * 1251).decode()},
        {"count": 10**400},
        {"bits": "/4A"},
        {"bits": "/4A=\n"},
        {"bits": "not base64!"},
        {"bits": "\ud800"},
        {"bits": None},
        {"bits": 7},
        {"timing": {"fields": {}}},
        {"timing": []},
        {"timing": "hourly"},
        {"timing": None},
    ],
    ids=lambda changes: " ".join(f"{name} {str(value)[:12]}" for name, value in changes.items()),
)
def test_a_plan_that_somebody_edited_is_no_plan(changes: Any) -> None:
    whole = parse_request(stored_plan())
    assert (whole.plan, whole.mark) == (Plan(9, b"\xff\x80", HOURLY), 3600)
    status = stored_plan()
    status["plan"] |= changes
    edited = parse_request(status)
    assert (edited.plan, edited.mark) == (None, None)


def test_a_range_of_one_due_time_whose_timing_is_lost_is_no_single_run() -> None:
    """Its due time would be the request's creation then."""
    single = {"count": 1, "bits": "gA==", "mark": None}
    assert parse_request({"plan": single}).plan == Plan(1, b"\x80")
    for timing in ({}, {"fields": {"interval": {}}}, "hourly"):
        assert parse_request({"plan": {**single, "timing": timing}}).plan is None


def test_bits_behind_the_last_due_time_are_none() -> None:
    status = stored_plan(bits=base64.b64encode(b"\xff\xff").decode())
    assert parse_request(status).plan == Plan(9, b"\xff\x80", HOURLY)


def test_a_run_stands_in_active_once() -> None:
    rows = [
        {"due": "2026-01-01T00:00:00Z", "job": "a"},
        {"due": "2026-01-01T01:00:00Z", "job": "b"},
        {"due": "2026-01-01T00:00:00Z", "job": "c"},
    ]
    assert sorted(row.job for row in parse_request({"active": rows}).active) == ["a", "b"]


def test_no_more_runs_are_active_than_a_request_may_have() -> None:
    rows = [{"due": f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z"} for n in range(200)]
    assert len(parse_request({"active": rows}).active) == REQUEST_ACTIVE_COUNT


def test_a_wait_that_only_a_newer_version_knows_is_a_wait() -> None:
    row = {"due": "2026-01-01T00:00:00Z", "reason": "newer"}
    assert parse_request({"active": [row]}).active[0].reason is Reason.HELD
    assert parse_request({"active": [{**row, "reason": None}]}).active[0].reason is None


def test_what_is_shown_of_the_due_times_is_cut() -> None:
    status = render_request(RequestMemory(), RequestShown(300, tuple(range(300))))
    assert status["total"] == status["dues"]["count"] == 300
    assert len(status["dues"]["first"]) == 20
    assert render_request(RequestMemory(), RequestShown())["dues"] is None
    assert render_request(RequestMemory(), RequestShown(0))["dues"] == {"count": 0, "first": None}


def test_conditions_of_others_do_not_displace_ours() -> None:
    row = Condition("True", "R", "", 0)
    foreign = {f"a-{number}": row for number in range(CONDITION_COUNT)}
    ours = dict.fromkeys(RequestCondition, row)
    status = render_request(RequestMemory(conditions=foreign | ours), RequestShown())
    shown = {each["type"] for each in status["conditions"]}
    assert len(shown) == CONDITION_COUNT
    assert shown >= set(RequestCondition)


def test_the_largest_plan_fits_the_setting() -> None:
    assert Settings().requests_max_dues <= MOST_DUES
