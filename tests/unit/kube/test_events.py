"""Events are few, short, and never in the way."""

import asyncio

import pytest
from tests.unit.kube.scripted import (
    CREATED,
    NO_ANSWER,
    OK,
    ScriptedApi,
    for_a,
    status,
    virtually,
)

from evenkeel.core.effects import KubeEvent
from evenkeel.kube.api import Reply
from evenkeel.kube.events import PATIENCE_S, QUEUE_LIMIT, Events


def told(
    reason="Missed", message="one", *, uid="uid-report", warning=True, ns="shop", **more
) -> KubeEvent:
    return KubeEvent(uid, ns, "report", warning, reason, message, **more)


def tell(*events, answers=(CREATED,), seconds=600.0, busy=lambda: False, every_s=0.0):
    api, dropped = ScriptedApi(answers if callable(answers) else list(answers)), []

    async def scenario(clock):
        it = Events(api, clock, busy=busy, dropped=lambda: dropped.append(1))

        async def speak():
            for each in events:
                it.tell(each)
                if every_s:
                    await asyncio.sleep(every_s)
            await asyncio.sleep(seconds)

        await for_a(seconds, it.run(), speak())

    virtually(scenario)
    return api, len(dropped)


def test_an_event_names_its_schedule():
    api, _ = tell(told())
    (call,) = api.calls
    assert call.path == "/api/v1/namespaces/shop/events"
    assert call.body["involvedObject"]["uid"] == "uid-report"
    assert call.body["involvedObject"]["kind"] == "ScheduledJob"
    assert (call.body["type"], call.body["reason"]) == ("Warning", "Missed")


def test_an_event_names_its_request():
    api, _ = tell(told(uid="uid-again", kind="RunRequest"), told())
    of_request, of_schedule = (call.body["involvedObject"] for call in api.calls)
    assert (of_request["kind"], of_request["uid"]) == ("RunRequest", "uid-again")
    assert of_request["apiVersion"] == of_schedule["apiVersion"] == "evenkeel.dev/v1alpha1"


def test_the_same_reason_within_a_minute_is_one_event_with_a_count():
    api, _ = tell(told(message="one"), told(message="two"), told(message="three"))
    assert [call.verb for call in api.calls] == ["POST", "PATCH", "PATCH"]
    assert [call.body["count"] for call in api.calls] == [1, 2, 3]
    assert api.calls[2].body["message"] == "three"
    assert api.calls[1].path.endswith(api.calls[0].body["metadata"]["name"])


def test_after_a_minute_it_is_a_new_event():
    api, _ = tell(told(), told(), every_s=61)
    assert [call.verb for call in api.calls] == ["POST", "POST"]


def test_other_reasons_and_other_schedules_are_events_of_their_own():
    api, _ = tell(told(), told("Failed"), told(uid="uid-other"))
    assert [call.verb for call in api.calls] == ["POST"] * 3


def test_no_more_than_fifty_a_second():
    api, _ = tell(*[told(uid=f"uid-{n}") for n in range(500)], seconds=2.0)
    assert 90 <= len(api.calls) <= 101


def test_what_exceeds_the_queue_is_dropped_and_counted():
    _, dropped = tell(*[told(uid=f"uid-{n}") for n in range(QUEUE_LIMIT + 7)], seconds=0.5)
    assert dropped == 7


def test_an_event_that_is_not_taken_is_dropped_and_counted():
    api, dropped = tell(told(), told("Failed"), answers=[NO_ANSWER, status(403), OK])
    assert dropped == 2
    assert len(api.calls) == 2


def test_events_wait_while_creates_do():
    api, _ = tell(told(), busy=lambda: True, seconds=30)
    assert api.calls == []


def test_an_event_whose_object_is_gone_is_sent_anew():
    gone = status(404, "NotFound")
    api, dropped = tell(told(), told(message="two"), answers=(CREATED, gone, CREATED))
    assert [call.verb for call in api.calls] == ["POST", "PATCH", "POST"]
    assert api.calls[-1].body["message"] == "two"
    assert dropped == 0


def test_an_event_that_cannot_be_counted_up_is_counted_as_dropped():
    _, dropped = tell(told(), told(), answers=(CREATED, status(403, "Forbidden")))
    assert dropped == 1


# --- Normal Events --------------------------------------------------------------------------------


def created(message="one", *, uid="uid-report"):
    return told("SuccessfulCreate", message, uid=uid, warning=False)


def test_of_normal_events_one_a_minute_is_sent_and_counts_the_others():
    """A schedule that is due every ten seconds, for three minutes."""
    api, _ = tell(*[created(f"{n}") for n in range(18)], every_s=10)
    assert [call.verb for call in api.calls] == ["POST", "PATCH", "PATCH"]
    assert [call.body["count"] for call in api.calls] == [1, 7, 13]
    assert [call.body["message"] for call in api.calls] == ["0", "6", "12"]
    assert [round(call.at) for call in api.calls] == [0, 60, 120]


def test_normal_events_of_other_schedules_and_reasons_are_sent():
    other = told("SawCompletedJob", warning=False)
    api, _ = tell(created(), other, created(uid="uid-other"), created())
    assert [call.verb for call in api.calls] == ["POST"] * 3


def test_a_normal_event_long_after_the_last_is_a_new_one():
    api, _ = tell(created(), created(), every_s=700, seconds=2000)
    assert [(call.verb, call.body["count"]) for call in api.calls] == [("POST", 1), ("POST", 1)]


# --- namespaces -----------------------------------------------------------------------------------


def test_a_namespace_whose_events_hang_stops_nobody_elses():
    sent: list[tuple[float, str]] = []

    class Hanging:
        async def call(self, verb, path, **_):
            sent.append((asyncio.get_running_loop().time(), path))
            if "/hangs/" in path:
                await asyncio.sleep(10)
                raise NO_ANSWER
            return CREATED

        def watch(self, path, params):
            raise AssertionError

    async def scenario(clock):
        it = Events(Hanging(), clock, busy=lambda: False)

        async def speak():
            for n in range(QUEUE_LIMIT):
                it.tell(told(uid=f"uid-{n}", ns="hangs"))
            for n in range(100):
                it.tell(told(uid=f"uid-{n}", ns="quiet"))
                await asyncio.sleep(1)
            assert it.behind(60) == {"hangs"}

        await for_a(100.5, it.run(), speak())

    virtually(scenario)
    quiet = [at for at, path in sent if "/quiet/" in path]
    assert len(quiet) == 100
    assert max(at - n for n, at in enumerate(quiet)) < 0.1
    assert len(sent) - len(quiet) <= 11


def test_a_full_queue_drops_of_the_namespace_that_fills_it():
    many = [told(uid=f"uid-{n}", ns="many") for n in range(QUEUE_LIMIT)]
    api, dropped = tell(*many, told(ns="few"), seconds=0.5)
    assert dropped == 1
    assert "/few/" in api.calls[1].path


@pytest.mark.parametrize(
    ("message", "others_at"),
    [('admission webhook "x" denied the request: busy', 0), ("", 29.9)],
    ids=["its own webhook", "the API server itself"],
)
def test_whom_a_429_to_an_event_holds_back(message, others_at):
    plain = Reply(429, b"Too many requests", {"Retry-After": "30"})
    busy = status(429, "", message, **{"Retry-After": "30"}) if message else plain

    def answers(call):
        return busy if "/shop/" in call.path and call.at < 29.9 else CREATED

    events = [told(), told("Failed"), told(ns="bank", uid="uid-other")]
    api, _ = tell(*events, answers=answers, every_s=1)
    (bank,) = [call.at for call in api.calls if "/bank/" in call.path]
    assert bank >= others_at
    assert [call.at > 29.9 for call in api.calls if "/shop/" in call.path] == [False, True]


def test_events_wait_for_creates_but_not_for_ever():
    api, _ = tell(told(), busy=lambda: True, seconds=PATIENCE_S + 1)
    assert len(api.calls) == 1


# --- namespaces whose Events are not written ------------------------------------------------------

FORBIDDEN = status(403, "Forbidden", "events is forbidden")
TERMINATING = status(
    403,
    "Forbidden",
    "unable to create new content in namespace shop because it is being terminated",
)
DENIALS = {
    "may not be created": (lambda call: FORBIDDEN, {"shop", "bank"}),
    "get no answer": (lambda call: NO_ANSWER, {"shop", "bank"}),
    "may not be created in one": (
        lambda call: FORBIDDEN if "/shop/" in call.path else CREATED,
        {"shop"},
    ),
    "may not be created for a moment": (
        lambda call: FORBIDDEN if call.at < 30 else CREATED,
        set(),
    ),
    "are of namespaces that end": (lambda call: TERMINATING, set()),
}


@pytest.mark.parametrize(("answer", "behind"), DENIALS.values(), ids=DENIALS)
def test_namespaces_are_behind_whose_events_were_not_taken_for_a_minute(answer, behind):
    found = []

    async def scenario(clock):
        it = Events(ScriptedApi(answer), clock, busy=lambda: False)

        async def speak():
            for number in range(9):
                assert number > 5 or not it.behind(60.0)
                it.tell(told(f"Missed{number}"))
                it.tell(told(f"Missed{number}", ns="bank"))
                await asyncio.sleep(10)
            found.append(it.behind(60.0))
            await asyncio.sleep(400)
            found.append(it.behind(60.0))

        await for_a(600, it.run(), speak())

    virtually(scenario)
    assert found == [behind, set()]  # nothing is known of namespaces where nothing is told
