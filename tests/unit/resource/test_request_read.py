"""What the guarded edge makes of right and wrong RunRequests."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.resource.cases import Bad, Json
from tests.unit.resource.request_cases import (
    GOOD_REQUESTS,
    JANUARY,
    REQUESTS_REFUSED_BY_BOTH,
    REQUESTS_REFUSED_IN_OTHER_WORDS,
    REQUESTS_REFUSED_WHILE_DECODED,
    UID,
    backfill,
    run_request,
    wish,
)

from evenkeel import rfc3339
from evenkeel.model import DueRange, Include, Meeting, Order, Rejection, Request
from evenkeel.resource.request_read import read_request

NEW_YEAR_2026 = 1_767_225_600
FEBRUARY_2026 = 1_769_904_000

ALL_BAD = (
    *REQUESTS_REFUSED_BY_BOTH,
    *(bad for bad, _ in REQUESTS_REFUSED_IN_OTHER_WORDS),
    *REQUESTS_REFUSED_WHILE_DECODED,
)


def accepted(raw: Json) -> Request:
    result = read_request(raw)
    assert isinstance(result, Request), result
    return result


def requested_by(told: Any) -> str:
    raw = run_request(wish(), annotations={"evenkeel.dev/requested-by": told})
    return accepted(raw).requested_by


@pytest.mark.parametrize("good", GOOD_REQUESTS.values(), ids=GOOD_REQUESTS)
def test_what_is_right_is_accepted(good: Json) -> None:
    accepted(run_request(good))


@pytest.mark.parametrize("bad", ALL_BAD, ids=[bad.why for bad in ALL_BAD])
def test_what_is_wrong_is_refused_with_field_and_sentence(bad: Bad) -> None:
    result = read_request(run_request(bad.spec))
    assert isinstance(result, Rejection)
    assert (result.field, result.reason) == (bad.field, bad.reason)
    assert bad.sentence in result.sentence
    assert (result.key, result.uid, result.generation) == ("shop/again", UID, 2)


def test_what_nobody_wrote_has_the_documented_default() -> None:
    assert accepted(run_request(wish())) == Request(
        uid=UID,
        ns="shop",
        name="again",
        created=NEW_YEAR_2026,
        generation=2,
        schedule="nightly",
        at=None,
        span=None,
        include=Include.NOT_SUCCEEDED,
        order=Order.OLDEST_FIRST,
        max_active=1,
        meeting=Meeting.WAIT,
        stop_after_failures=3,
        suspend=False,
        parameters=(),
        force=False,
        dry_run=False,
        ttl_s=None,
        requested_by="",
    )


def test_every_field_arrives_in_the_request() -> None:
    spec = backfill(
        include="NotRun",
        order="NewestFirst",
        maxActive=20,
        overlap="Allow",
        stopAfterFailures=0,
        suspend=True,
        parameters=[{"name": "DAY", "value": "7"}, {"name": "HOUR", "value": ""}],
        force=True,
        dryRun=True,
        ttlSecondsAfterFinished=60,
    )
    notes = {"evenkeel.dev/requested-by": "ann@example.com"}
    assert accepted(run_request(spec, annotations=notes)) == Request(
        uid=UID,
        ns="shop",
        name="again",
        created=NEW_YEAR_2026,
        generation=2,
        schedule="nightly",
        span=DueRange(NEW_YEAR_2026, FEBRUARY_2026),
        include=Include.NOT_RUN,
        order=Order.NEWEST_FIRST,
        max_active=20,
        meeting=Meeting.ALLOW,
        stop_after_failures=0,
        suspend=True,
        parameters=(("DAY", "7"), ("HOUR", "")),
        force=True,
        dry_run=True,
        ttl_s=60,
        requested_by="ann@example.com",
    )


def test_a_single_run_is_due_at_its_time_or_at_the_creation() -> None:
    assert accepted(run_request(wish(at="2026-02-01T01:00:00+01:00"))).due == FEBRUARY_2026
    assert accepted(run_request(wish())).due == NEW_YEAR_2026


def test_who_asked_is_cut_and_cannot_write_what_others_read() -> None:
    assert requested_by("x" * 5000) == "x" * 256
    assert requested_by(" ann\n2026-01-01 forged line\r\x1b[31m\u202eline ") == (
        "ann2026-01-01 forged line[31mline"
    )
    assert requested_by("Zoë (Äußere Straße)") == "Zoë (Äußere Straße)"
    assert requested_by("") == requested_by(None) == requested_by(7) == ""


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 10**400, -1, "\ud800", "\x00", "9999-12-31T23:59:59-23:59"])
    | st.floats()
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
SPECS = st.fixed_dictionaries(
    {"schedule": st.sampled_from(["nightly", "a/b", ""]) | JUNK},
    optional={
        "at": st.just("2026-01-01T00:00:00Z") | JUNK,
        "range": st.just(JANUARY)
        | st.fixed_dictionaries({"from": JUNK, "to": JUNK})
        | st.fixed_dictionaries({"from": st.just("2026-01-01T00:00:00Z"), "to": JUNK})
        | JUNK,
        "include": st.sampled_from(list(Include)) | JUNK,
        "order": st.sampled_from(list(Order)) | JUNK,
        "maxActive": st.integers(0, 101) | JUNK,
        "overlap": st.sampled_from(list(Meeting)) | JUNK,
        "stopAfterFailures": st.integers(-1, 10) | JUNK,
        "suspend": st.booleans() | JUNK,
        "parameters": st.lists(
            st.fixed_dictionaries({"name": st.just("A") | JUNK, "value": st.just("1") | JUNK}),
            max_size=3,
        )
        | JUNK,
        "force": st.booleans() | JUNK,
        "dryRun": st.booleans() | JUNK,
        "ttlSecondsAfterFinished": st.integers(-1, 10) | JUNK,
    },
)


@given(SPECS | JUNK)
@settings(max_examples=400, deadline=None)
def test_any_spec_is_understood_or_refused_with_a_sentence(drawn: Any) -> None:
    result = read_request(run_request(drawn))
    if isinstance(result, Rejection):
        assert result.reason != "Unreadable", "the last resort is for what nobody foresaw"
        assert result.sentence
        assert result.field.startswith("spec")
        assert len(result.field) + len(result.sentence) < 1024, "it must fit a condition"
    else:
        assert result.at is None or rfc3339.show(result.at)


@given(st.dictionaries(st.sampled_from(["name", "uid", "annotations", "generation"]), JUNK) | JUNK)
@settings(max_examples=200, deadline=None)
def test_any_metadata_is_understood_or_refused(metadata: Any) -> None:
    result = read_request({"metadata": metadata, "spec": wish()})
    assert isinstance(result, Request | Rejection)
    assert not isinstance(result, Rejection) or result.reason != "Unreadable"


@given(JUNK)
@settings(max_examples=100, deadline=None)
def test_what_is_no_object_at_all_is_refused(raw: Any) -> None:
    assert isinstance(read_request(raw), Rejection)
