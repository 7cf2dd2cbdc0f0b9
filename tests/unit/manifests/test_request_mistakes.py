"""All mistakes of a RunRequest, each once; and what its schedule does not allow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.manifests.test_mistakes import TREES
from tests.unit.resource.cases import Bad, scheduled_job, spec
from tests.unit.resource.request_cases import (
    GOOD_REQUESTS,
    JANUARY,
    REQUESTS_REFUSED_BY_BOTH,
    backfill,
    run_request,
    wish,
)

from evenkeel.manifests.manifest import load
from evenkeel.manifests.request_mistakes import (
    examine_request,
    mistakes_beside,
    mistakes_of_time,
)
from evenkeel.model import Request, Schedule
from evenkeel.resource.read import read
from evenkeel.resource.text import parse_instant
from evenkeel.when import compile_timing


def said(raw: Any) -> list[str]:
    """`field: sentence` of each mistake."""
    request, mistakes = examine_request(raw)
    assert (request is None) == bool(mistakes)
    return [f"{mistake.field}: {mistake.sentence}" for mistake in mistakes]


def request_of(spec: Any) -> Request:
    request, mistakes = examine_request(run_request(spec))
    assert request is not None, mistakes
    return request


def schedule_of(**fields: Any) -> Schedule:
    found = read(scheduled_job(spec(**fields)))
    assert isinstance(found, Schedule)
    return found


@pytest.mark.parametrize("name", GOOD_REQUESTS)
def test_a_right_request_has_no_mistake(name: str) -> None:
    assert said(run_request(GOOD_REQUESTS[name])) == []


@pytest.mark.parametrize("bad", REQUESTS_REFUSED_BY_BOTH, ids=lambda bad: bad.why)
def test_whatever_the_operator_refuses_is_found(bad: Bad) -> None:
    """The path stands before the sentence, so a field that begins the sentence is left out."""
    lines = said(run_request(bad.spec))
    name = bad.field.rpartition(".")[2]
    sentence = bad.sentence.removeprefix(f"{name} ")
    assert any(line.startswith(f"{bad.field}: ") and sentence in line for line in lines), lines


def test_all_mistakes_of_a_request_are_told_each_once() -> None:
    raw = run_request(
        {
            "schedul": "shop/nightly",
            "range": {"from": "soon", "until": "2026-02-01T00:00:00Z"},
            "maxActive": 101,
            "overlap": "Alow",
            "parameters": [{"name": "DAY", "valu": "1"}, {"name": "2nd", "value": 2}],
            "backoffLimit": 1,
        },
        name="Again",
    )
    assert sorted(said(raw)) == [
        "metadata.name: must be at most 253 lowercase letters, digits, dots and hyphens, with a "
        "letter or digit at each end",
        "spec.backoffLimit: is not a field of a RunRequest",
        "spec.maxActive: must be at most 100",
        "spec.overlap: must be 'Wait', 'Allow' or 'Policy'; did you mean Allow?",
        "spec.parameters[0].valu: is not a field of a RunRequest; did you mean value?",
        "spec.parameters[1].name: write the name of an environment variable: letters, digits and "
        "_, no digit first, such as BATCH_SIZE",
        "spec.range.from: write an RFC 3339 time with a zone, such as 2030-01-31T06:00:00Z",
        "spec.range.to: is required",
        "spec.range.until: is not a field of a RunRequest",
        "spec.schedul: is not a field of a RunRequest; did you mean schedule?",
        "spec.schedule: names a ScheduledJob of the same namespace: write its name alone, and "
        "create the request in its namespace",
    ]


def test_a_name_may_be_generated() -> None:
    """`kubectl create` makes a new request each time, and that is what it is for."""
    raw = run_request(wish())
    del raw["metadata"]["name"]
    assert said(raw) == ["metadata.name: is required"]
    raw["metadata"]["generateName"] = "again-"
    assert said(raw) == []


@given(spec=TREES, metadata=st.just({"name": "a"}) | TREES)
@settings(max_examples=200, deadline=None)
def test_any_tree_is_a_request_or_has_a_mistake(spec: Any, metadata: Any) -> None:
    try:
        raw = json.loads(json.dumps({**run_request(spec), "metadata": metadata}))
    except UnicodeEncodeError:
        return
    for line in said(raw):
        assert line.partition(": ")[2]


# --- beside other things --------------------------------------------------------------------------


def test_a_range_must_be_over_at_the_time_of_the_question() -> None:
    request = request_of(backfill())
    end = parse_instant(JANUARY["to"])
    assert list(mistakes_of_time(request, end)) == []
    (mistake,) = mistakes_of_time(request, end - 1)
    assert (mistake.field, mistake.sentence) == (
        "spec.range.to",
        "2026-02-01T00:00:00Z is not over yet at 2026-01-31T23:59:59Z; a range ends in the past",
    )


def beside(request: Request, schedule: Schedule) -> list[str]:
    dues = compile_timing(schedule.timing, seed=schedule.key)
    return [f"{one.field}: {one.sentence}" for one in mistakes_beside(request, schedule, dues)]


def test_parameters_are_compared_with_those_of_the_schedule() -> None:
    schedule = schedule_of(
        schedule="@daily",
        parameters=[
            {"name": "REGION", "value": "eu", "enum": ["eu", "us"]},
            {"name": "DAY", "value": ""},
        ],
    )
    given = [
        {"name": "REGION", "value": "mars"},
        {"name": "REGON", "value": "eu"},
        {"name": "DAY", "value": "any text"},
    ]
    assert beside(request_of(wish(parameters=given)), schedule) == [
        "spec.parameters[0].value: REGION may be one of eu, us",
        "spec.parameters[1].name: REGON is no parameter of nightly, which has REGION, DAY",
    ]


def test_a_schedule_without_parameters_is_said_to_have_none() -> None:
    given = [{"name": "DAY", "value": "1"}]
    (line,) = beside(request_of(wish(parameters=given)), schedule_of(schedule="@daily"))
    assert line.endswith("DAY is no parameter of nightly, which has none")


def test_a_range_may_have_ten_thousand_due_times() -> None:
    week = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-07T22:40:00Z"}
    one_more = {**week, "to": "2026-01-07T22:40:01Z"}
    schedule = schedule_of(schedule="* * * * *")
    assert beside(request_of(wish(range=week)), schedule) == []
    (line,) = beside(request_of(wish(range=one_more)), schedule)
    assert line.startswith("spec.range: has 10001 due times of nightly, and a request may have at")


def test_of_a_schedule_without_a_phase_only_the_parameters_are_judged() -> None:
    week = {"from": "1970-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}
    schedule = schedule_of(interval={"every": "10s"})
    assert list(mistakes_beside(request_of(wish(range=week)), schedule, None)) == []


def test_requests_are_neither_schedules_nor_unknown_objects() -> None:
    """`plan`, `load` and `advise` leave them out without a word."""
    text = json.dumps(run_request({"schedul": "x"}))
    loaded = load(["-"], stdin=lambda: text, created=0)
    assert (loaded.schedules, loaded.problems, loaded.notes) == ([], [], [])
    assert len(loaded.requests) == 1
