"""Requests are made for triggers, read again and deleted."""

import asyncio

import orjson
import pytest
from tests.unit.kube.scripted import (
    NO_ANSWER,
    NOBODY_THERE,
    OK,
    PAGES,
    Desk,
    ScriptedApi,
    status,
    virtually,
)

from evenkeel.core.effects import DeleteRequest, MakeRequest, ReadRequest
from evenkeel.core.messages import RequestGone, RequestSeen, TriggerMade
from evenkeel.kube.api import Reply
from evenkeel.kube.request_errands import RequestErrands
from evenkeel.model import Request

TRIGGER = MakeRequest("uid-report", "shop", "report", "report-abcdefgh", "42")
MADE = Reply(201, b'{"kind": "RunRequest", "metadata": {"uid": "uid-made"}}')
THERE = status(409, "AlreadyExists", 'runrequests "report-abcdefgh" already exists')
PATH = "/apis/evenkeel.dev/v1alpha1/namespaces/shop/runrequests"


def run(answers, *effects, seconds=300.0, then=lambda errands: None, busy=lambda: False):
    """The API that was asked, and what was reported."""
    desk, api = Desk(), ScriptedApi(answers)

    async def scenario(clock):
        errands = RequestErrands(api, desk.inbox, clock, busy=busy)
        for effect in effects:
            {
                MakeRequest: errands.make,
                ReadRequest: errands.read,
                DeleteRequest: errands.delete,
            }[type(effect)](effect)
        await asyncio.sleep(0.1)
        then(errands)
        await asyncio.sleep(seconds)
        errands.stop()
        await asyncio.sleep(0.1)
        assert seconds < 300 or not any(errands.sizes().values())

    virtually(scenario)
    return api, desk.reports()


# --- triggers ---------------------------------------------------------------------------------


def test_a_trigger_makes_a_request_that_tells_who_asked_and_goes_after_a_day():
    api, reports = run([MADE], TRIGGER)
    (call,) = api.calls
    assert (call.verb, call.path) == ("POST", PATH)
    assert call.body == {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "RunRequest",
        "metadata": {
            "name": "report-abcdefgh",
            "namespace": "shop",
            "annotations": {
                "evenkeel.dev/requested-by": "annotation evenkeel.dev/trigger=42",
            },
        },
        "spec": {"schedule": "report", "ttlSecondsAfterFinished": 86400},
    }
    assert reports == [TriggerMade("uid-report", "42", True)]


def test_one_that_is_there_already_is_as_good():
    api, reports = run([NO_ANSWER, THERE], TRIGGER)
    assert len(api.calls) == 2
    assert reports == [TriggerMade("uid-report", "42", True)]


@pytest.mark.parametrize("code", [403, 422])
def test_one_that_is_refused_is_told_with_the_sentence_and_not_tried_again(code):
    refusal = status(code, "Forbidden", "exceeded quota: few")
    api, reports = run([refusal], TRIGGER)
    assert len(api.calls) == 1
    assert reports == [TriggerMade("uid-report", "42", False, "exceeded quota: few")]


NOT_THE_SERVERS_WORD = {
    "nobody there": NOBODY_THERE,
    "no answer": NO_ANSWER,
    "too many": status(429, "TooManyRequests"),
    "server error": status(500),
    "conflict": status(409, "Conflict"),
    "no such resource": Reply(404, b"404 page not found"),
    "namespace gone": status(404, "NotFound"),
    **{f"page: {name}": page for name, page in PAGES.items()},
}


@pytest.mark.parametrize("answer", NOT_THE_SERVERS_WORD.values(), ids=NOT_THE_SERVERS_WORD)
def test_what_proves_nothing_is_tried_again_later_each_time(answer):
    api, reports = run([answer, answer, answer, MADE], TRIGGER)
    assert reports == [TriggerMade("uid-report", "42", True)]
    assert len(api.calls) == 4
    waits = [later.at - call.at for call, later in zip(api.calls, api.calls[1:], strict=False)]
    assert waits[2] > waits[0]


def test_a_newer_trigger_takes_the_place_of_one_that_has_no_answer():
    newer = MakeRequest("uid-report", "shop", "report", "report-newer", "43")
    api, reports = run([NOBODY_THERE, MADE], TRIGGER, then=lambda errands: errands.make(newer))
    assert reports == [TriggerMade("uid-report", "43", True)]
    assert [call.body["metadata"]["name"] for call in api.calls][1:] == ["report-newer"]


def test_nobody_waits_for_the_trigger_of_a_schedule_that_is_gone():
    api, reports = run(
        [NOBODY_THERE], TRIGGER, then=lambda errands: errands.forget_schedule("uid-report")
    )
    assert reports == []
    assert len(api.calls) <= 2


def test_a_trigger_that_is_told_twice_is_asked_once():
    api, reports = run([0.5, MADE], TRIGGER, TRIGGER)
    assert len(api.calls) == len(reports) == 1


# --- reading ----------------------------------------------------------------------------------

READ = ReadRequest("uid-again", "shop", "again")


def stored(**metadata):
    body = {
        "kind": "RunRequest",
        "metadata": {
            "name": "again",
            "namespace": "shop",
            "uid": "uid-again",
            "resourceVersion": "7",
            "generation": 1,
            "creationTimestamp": "2026-03-02T10:00:00Z",
        }
        | metadata,
        "spec": {"schedule": "report"},
        "status": {"observedGeneration": 1, "state": "Running"},
    }
    return Reply(200, orjson.dumps(body))


def test_one_that_is_there_is_read_with_its_status():
    api, reports = run([NO_ANSWER, PAGES["nothing here"], PAGES["sign in"], stored()], READ)
    assert len(api.calls) == 4
    assert api.calls[0].path == f"{PATH}/again"
    (seen,) = reports
    assert isinstance(seen, RequestSeen)
    assert isinstance(seen.request, Request)
    assert seen.request.schedule == "report"
    assert (seen.memory.generation, seen.memory.version) == (1, "7")


GONE = {
    "absent": status(404, "NotFound"),
    "another one": stored(uid="uid-other"),
    "being deleted": stored(deletionTimestamp="2026-03-02T10:00:00Z"),
}


@pytest.mark.parametrize("answer", GONE.values(), ids=GONE)
def test_one_that_is_not_there_is_gone(answer):
    _, reports = run([answer], READ)
    assert reports == [RequestGone("uid-again")]


# --- deleting ---------------------------------------------------------------------------------

DELETE = DeleteRequest("uid-again", "shop", "again")


def test_it_is_deleted_with_its_uid():
    api, reports = run([OK], DELETE, DELETE)
    (call,) = api.calls
    assert (call.verb, call.path) == ("DELETE", f"{PATH}/again")
    assert call.body["preconditions"] == {"uid": "uid-again"}
    assert reports == []  # the watch tells it


@pytest.mark.parametrize(
    "answer", [status(404, "NotFound"), status(409, "Conflict")], ids=["gone", "another one"]
)
def test_gone_or_another_ones_is_as_good_as_deleted_and_told(answer):
    api, reports = run([NO_ANSWER, PAGES["nothing here"], answer], DELETE)
    assert len(api.calls) == 3
    assert reports == [RequestGone("uid-again")]


def test_a_deletion_that_is_refused_for_ever_is_given_up_and_said(caplog):
    api, _ = run([status(403, "Forbidden")], DELETE, seconds=1200)
    assert 10 < len(api.calls) < 60
    (said,) = [record for record in caplog.records if record.message == "request not deleted"]
    assert said.fields["request"] == "shop/again"


def test_they_wait_for_creates_but_not_for_ever():
    api, _ = run([OK], DELETE, busy=lambda: True)
    assert api.calls[0].at >= 20
