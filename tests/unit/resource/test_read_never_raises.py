"""Whatever stands in an object, `read` answers: hand-edited, hostile, or from the schema's edges.

The strategies come from the CRD itself (after Acto): for each field right values, the values at
and beyond its bounds, wrong types, null, and absence.
"""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.resource.cases import TEMPLATE, Json, scheduled_job, spec

from evenkeel.model import Rejection, Schedule
from evenkeel.resource.crd import crd
from evenkeel.resource.read import read

SPEC_SCHEMA: Json = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1, 10**5000]),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        ["\ud800", "\x00", "9" * 5000, "٣٣", "-", "", " ", "9999-12-31T23:59:59-23:59"]
    ),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.just({1: 2}),
    st.binary(max_size=3),
)

TEXTS = {
    "schedule": ["*/5 * * * *", "@daily", "H H * * *", "0 0 31 2 *", "5L * * * *", "0 0 * * 5#6"],
    "every": ["1d", "25m", "1w", "0s", "9" * 31 + "w"],
    "offset": ["0s", "5m", "400d"],
    "timeZone": ["UTC", "Europe/Berlin", "Nowhere/Land", "posix"],
    "start": ["22:00"],
    "end": ["06:00", "22:00"],
    "name": ["DAY", "SIZE"],
    "value": ["10", "$(SECRET)"],
}
TIMES = [
    "2030-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2030-02-31T00:00:00Z",
]


def right(name: str, schema: Json) -> st.SearchStrategy[Any]:
    """Values that the schema takes, those at its bounds first."""
    if name == "jobTemplate":
        return st.just(TEMPLATE)
    if "properties" in schema:
        required = schema.get("required", [])
        parts = {key: field(key, part) for key, part in schema["properties"].items()}
        return st.fixed_dictionaries(
            {key: part for key, part in parts.items() if key in required},
            optional={key: part for key, part in parts.items() if key not in required},
        )
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return st.sampled_from([low, high, low - 1, high + 1]) | st.integers(low, high)
    if schema["type"] == "boolean":
        return st.booleans()
    if schema["type"] == "array":
        return st.lists(field(name, schema["items"]), max_size=3)
    if name in ("at", "anchor", "startTime", "endTime"):
        return st.sampled_from(TIMES)
    # an array's entries have no name of their own
    return st.sampled_from(TEXTS.get(name, ["10"])) | st.text(max_size=schema["maxLength"] + 1)


def field(name: str, schema: Json) -> st.SearchStrategy[Any]:
    """Mostly right, now and then of any type at all."""
    return st.integers(0, 15).flatmap(lambda die: WRONG if die == 0 else right(name, schema))


def one_kind(drawn: tuple[str, Json]) -> Json:
    """Nearly every combination breaks the one-of rule; keep one kind, to get past it."""
    kept, fields = drawn
    return {
        name: value
        for name, value in fields.items()
        if name == kept or name not in ("schedule", "hourly", "interval", "at")
    }


SPECS = st.one_of(
    right("spec", SPEC_SCHEMA),
    st.tuples(
        st.sampled_from(["schedule", "hourly", "interval", "at"]), right("spec", SPEC_SCHEMA)
    ).map(one_kind),
    WRONG,
)


@given(SPECS)
@settings(max_examples=600, deadline=None)
def test_any_spec_is_understood_or_refused_with_a_sentence(drawn: Any) -> None:
    result = read(scheduled_job(drawn))
    if isinstance(result, Rejection):
        assert result.reason != "Unreadable", "the last resort is for what nobody foresaw"
        assert result.sentence
        assert result.field.startswith("spec")
        assert len(result.field) + len(result.sentence) < 1024, "it must fit a condition"


METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("n") | WRONG,
        "namespace": st.just("ns") | WRONG,
        "uid": st.just("u") | WRONG,
        "generation": st.just(1) | WRONG,
        "creationTimestamp": st.just("2026-01-01T00:00:00Z") | WRONG,
    },
)


@given(metadata=METADATA | WRONG, whole=st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_metadata_is_understood_or_refused(metadata: Any, whole: bool) -> None:
    raw = {"metadata": metadata, **({"spec": spec(schedule="@daily")} if whole else {})}
    result = read(raw)
    assert isinstance(result, Schedule | Rejection)
    assert not isinstance(result, Rejection) or result.reason != "Unreadable"


@given(WRONG | st.dictionaries(st.text(max_size=3), WRONG))
@settings(max_examples=200, deadline=None)
def test_what_is_no_object_at_all_is_refused(raw: Any) -> None:
    assert isinstance(read(raw), Rejection)


def nested(depth: int) -> Json:
    inner: Json = {}
    for _ in range(depth):
        inner = {"deeper": inner}
    return inner


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        pytest.param({"spec": {"template": nested(100_000)}}, "JSON", id="nested without end"),
        pytest.param({"spec": {"template": {"n": 2**64}}}, "JSON", id="an integer of 65 bits"),
        pytest.param({"spec": {"template": {"n": "\ud800"}}}, "JSON", id="half a surrogate pair"),
        pytest.param({"spec": {"template": {1: 2}}}, "JSON", id="a key that is no string"),
        pytest.param({"spec": {"template": []}}, "is required", id="a list as the Pod"),
        pytest.param({"spec": "x" * 1_400_000}, "is required", id="1.4 MB of text as the Job"),
    ],
)
def test_a_template_that_cannot_be_kept_is_refused(template: Json, sentence: str) -> None:
    result = read(scheduled_job(spec(schedule="@daily", jobTemplate=template)))
    assert isinstance(result, Rejection)
    assert result.field.startswith("spec.jobTemplate")
    assert sentence in result.sentence
    assert result.reason == "Invalid"


def test_a_template_of_a_quarter_of_a_megabyte_is_kept() -> None:
    template = {"spec": {"template": {"env": ["x" * 1000] * 256}}}
    result = read(scheduled_job(spec(schedule="@daily", jobTemplate=template)))
    assert isinstance(result, Schedule)
    assert len(result.template) > 256_000


@pytest.mark.parametrize("ttl", [None, "60", -1, True, 1.5, math.nan, [60]])
def test_a_lifetime_that_is_no_number_is_no_lifetime(ttl: Any) -> None:
    template = {"spec": {**TEMPLATE["spec"], "ttlSecondsAfterFinished": ttl}}
    result = read(scheduled_job(spec(schedule="@daily", jobTemplate=template)))
    assert isinstance(result, Schedule)
    assert result.ttl_s is None
