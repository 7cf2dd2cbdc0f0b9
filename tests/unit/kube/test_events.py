"""Events are few, short, and never in the way."""

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
from evenkeel.kube.events import QUEUE_LIMIT, Events


def told(reason="Missed", message="one", *, uid="uid-report", warning=True) -> KubeEvent:
    return KubeEvent(uid, "shop", "report", warning, reason, message)


def tell(*events, answers=(CREATED,), seconds=600.0, busy=lambda: False, every_s=0.0):
    import asyncio

    api, dropped = ScriptedApi(list(answers)), []

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
