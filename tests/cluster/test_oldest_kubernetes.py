"""Kubernetes 1.30, the oldest that Evenkeel claims, judges the CRD and objects with mistakes.

It differs from newer ones: until 1.32 a status is refused with the spec's old mistakes, unless the
rule itself lets pass what did not change. The validation is that of its API server (the program
crdvalidator), without a control plane. No test of this file starts a cluster.
"""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.harness.crd_validator import Asked, CrdValidator
from tests.mistakes import CRON_TEXTS, GOOD, MISTAKES, Mistake, Where, refused_since_lately
from tests.unit.resource.request_cases import (
    GOOD_REQUESTS,
    REQUESTS_REFUSED_BY_BOTH,
    REQUESTS_REFUSED_IN_OTHER_WORDS,
    backfill,
    run_request,
    wish,
)
from tests.unit.when.test_cron import MEANS, REFUSED
from tests.unit.when.test_other_programs import VALIDITY

from evenkeel.errors import BadField
from evenkeel.model import DayMatch
from evenkeel.resource.crd import crd
from evenkeel.resource.definitions import RUN_REQUEST
from evenkeel.resource.request_rules import FIXED
from evenkeel.when.cron import parse_cron

Json = dict[str, Any]
CRD = crd()
REQUEST_CRD = crd(RUN_REQUEST)
BAD_REQUESTS = (
    *REQUESTS_REFUSED_BY_BOTH,
    *(bad for bad, _ in REQUESTS_REFUSED_IN_OTHER_WORDS),
)
BACKWARDS = "runs backwards"
ENTRIES = (
    *("0", "5", "07", "59", "60", "24", "31", "32", "*", "?", "L", "W", "15W", "R", "R/5", "H"),
    *("H(0-29)", "H(5-3)", "H(0-40)/7", "H/15", "H(", "H()", "H(5)", "H(A-B)", "H(1-99)", "H/0"),
    *("H(29-31)", "H((1-2)", "H(1-2))", "H(SUN-FRI)", "H(6-7)", "HH", "*/0", "*/5", "*/05", "*/"),
    *("5/", "1-5", "5-1", "22-2", "1-", "-5", "-", "1-5/2", "5-1/2", "1--2", "1-5-7", "1/2/3"),
    *("MON", "mon-fri", "FRI-SUN", "Monday", "JAN", "DEC-JAN", "JUL", "JUL/2", "7", "7-2", "0-7"),
    *("5#2", "5#6", "MON#1", "5#", "#2", "2#2#2", "5#2/3", "5L", "MONL", "9L", "XL", "L-3", "5L/2"),
    *(
        "",
        "é",
        "@daily",
        "TZ=UTC",
        "'",
        "\\",
        "00",
        "0" * 40 + "5",
        "9" * 30,
        "1e1",
        "+5",
        "a" * 50,
    ),
)
SPACES = st.sampled_from((" ", "  ", "\t", "\n", " \r\n"))
FIELDS = st.one_of(
    st.just("*"), st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=3).map(",".join)
)
CRON = st.one_of(
    st.builds(str.join, SPACES, st.lists(FIELDS, min_size=5, max_size=5)),
    st.builds(str.join, SPACES, st.lists(FIELDS, max_size=8)),
    st.builds("{}{}{}".format, SPACES, st.sampled_from(("@daily", "@Every", "@x", "@")), FIELDS),
    st.text(max_size=30),
).map(lambda text: text.encode(errors="replace").decode()[:256])


def scheduled(text: str) -> Asked:
    made = copy.deepcopy(GOOD)
    made["spec"]["schedule"] = text
    return Asked(made)


def with_label(manifest: Json) -> Json:
    changed = copy.deepcopy(manifest)
    changed["metadata"]["labels"] = {"team": "shop"}
    return changed


def with_status(manifest: Json) -> Json:
    return {**copy.deepcopy(manifest), "status": {"state": "Refused", "observedGeneration": 1}}


def said(refusal: str) -> str:
    """The sentence alone, without field and value."""
    return refusal.partition('Invalid value: "string": ')[2]


def python_says(text: str) -> str:
    """The sentence of the parser; empty if it takes the text."""
    try:
        parse_cron(text, day_match=DayMatch.OR, seed="default/nightly")
    except BadField as mistake:
        return mistake.sentence
    return ""


def differs(text: str, refusals: list[str]) -> bool:
    """Whether the API server refuses what the parser takes, or says something else."""
    ours, theirs = python_says(text), [said(each) for each in refusals]
    if BACKWARDS in ours:  # of one field, the API server names other mistakes before this one
        return not theirs
    return ours not in theirs if ours else bool(theirs)


def test_the_crd_is_taken(crdvalidator: CrdValidator) -> None:
    assert crdvalidator.judge(CRD, [Asked(GOOD)]) == ([], [[]])


def test_a_mistake_is_refused_where_the_table_says(crdvalidator: CrdValidator) -> None:
    known = [each for each in MISTAKES if "unknown field" not in each.says]
    _, answers = crdvalidator.judge(CRD, [Asked(each.manifest()) for each in known])
    wrong = [
        (each.name, refusals)
        for each, refusals in zip(known, answers, strict=True)
        if bool(refusals) != (each.where is Where.APPLY)
        or (refusals and not any(each.says in refusal for refusal in refusals))
    ]
    assert not wrong


def test_a_mistake_has_one_sentence(crdvalidator: CrdValidator) -> None:
    _, answers = crdvalidator.judge(CRD, [Asked(each.manifest()) for each in MISTAKES])
    several = [
        (each.name, refusals)
        for each, refusals in zip(MISTAKES, answers, strict=True)
        if len([one for one in refusals if "some validation rules were not checked" not in one]) > 1
    ]
    assert not several


@pytest.mark.parametrize("asked", ["status", "label"])
def test_an_old_object_with_a_mistake_is_not_locked(crdvalidator: CrdValidator, asked: str) -> None:
    def changed(mistake: Mistake) -> Asked:
        old = mistake.manifest()
        if asked == "status":
            return Asked(with_status(old), old, status=True)
        return Asked(with_label(old), old)

    old = refused_since_lately()
    assert len(old) > 50
    _, answers = crdvalidator.judge(CRD, [changed(each) for each in old])
    locked = [(each.name, answer) for each, answer in zip(old, answers, strict=True) if answer]
    assert not locked


def test_an_old_object_with_a_mistake_can_be_mended(crdvalidator: CrdValidator) -> None:
    old = refused_since_lately()
    _, answers = crdvalidator.judge(CRD, [Asked(GOOD, each.manifest()) for each in old])
    assert not any(answers)


def test_another_mistake_is_refused_in_an_old_object(crdvalidator: CrdValidator) -> None:
    old, new = CRON_TEXTS[0].manifest(), CRON_TEXTS[1]
    _, (answer,) = crdvalidator.judge(CRD, [Asked(new.manifest(), old)])
    assert [said(each) for each in answer] == [new.says]


def test_the_api_server_refuses_what_the_parser_refuses_in_the_same_words(
    crdvalidator: CrdValidator,
) -> None:
    texts = [text for text, _ in (*REFUSED.values(), *MEANS.values()) if len(text) <= 256]
    texts += VALIDITY
    _, answers = crdvalidator.judge(CRD, [scheduled(text) for text in texts])
    pairs = zip(texts, answers, strict=True)
    assert not [(text, answer) for text, answer in pairs if differs(text, answer)]


@settings(max_examples=20)
@given(texts=st.lists(CRON, min_size=30, max_size=30))
def test_any_text_is_judged_alike(crdvalidator: CrdValidator, texts: list[str]) -> None:
    _, answers = crdvalidator.judge(CRD, [scheduled(text) for text in texts])
    pairs = zip(texts, answers, strict=True)
    assert not [(text, answer) for text, answer in pairs if differs(text, answer)]


# --- requests ---------------------------------------------------------------------------------


def filled_in(spec: Json) -> Json:
    """As an API server stores it: defaults, and no nulls. The validator fills nothing in."""
    properties = REQUEST_CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    fields = properties["spec"]["properties"]
    defaults = {name: part["default"] for name, part in fields.items() if "default" in part}
    return defaults | {name: value for name, value in spec.items() if value is not None}


def request(spec: Json) -> Json:
    return run_request(filled_in(spec))


def test_the_crd_of_requests_is_taken(crdvalidator: CrdValidator) -> None:
    asked = [Asked(request(spec)) for spec in GOOD_REQUESTS.values()]
    assert crdvalidator.judge(REQUEST_CRD, asked) == ([], [[]] * len(asked))


def test_a_mistake_in_a_request_has_one_sentence_at_its_field(crdvalidator: CrdValidator) -> None:
    _, answers = crdvalidator.judge(REQUEST_CRD, [Asked(request(bad.spec)) for bad in BAD_REQUESTS])
    for bad, refusals in zip(BAD_REQUESTS, answers, strict=True):
        told = [one for one in refusals if "some validation rules were not checked" not in one]
        assert len(told) == 1, (bad.why, refusals)
        assert told[0].startswith(f"{bad.field}: "), (bad.why, told)


def test_the_status_of_a_request_can_be_written(crdvalidator: CrdValidator) -> None:
    old = [request(spec) for spec in GOOD_REQUESTS.values()]
    asked = [Asked(with_status(each), each, status=True) for each in old]
    assert not any(crdvalidator.judge(REQUEST_CRD, asked)[1])


def test_a_request_changes_in_nothing_but_what_may_change(crdvalidator: CrdValidator) -> None:
    old = request(backfill(parameters=[{"name": "A", "value": "1"}]))
    right = request(backfill(parameters=[{"name": "A", "value": "1"}], suspend=True, maxActive=100))
    wrong = [
        request(backfill(parameters=[{"name": "A", "value": "2"}])),
        request(backfill()),
        request(wish(parameters=[{"name": "A", "value": "1"}])),
        request(backfill(parameters=[{"name": "A", "value": "1"}], order="NewestFirst")),
    ]
    _, (taken, *refused) = crdvalidator.judge(
        REQUEST_CRD, [Asked(new, old) for new in (right, *wrong)]
    )
    assert taken == []
    assert [len(each) for each in refused] == [1, 1, 1, 1]
    assert all(FIXED in one for each in refused for one in each)
