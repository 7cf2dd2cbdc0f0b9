"""What kopf's thread is shown becomes messages."""

from typing import Any

import pytest
from tests.unit.kube.scripted import Desk
from tests.unit.resource.cases import DAILY, Json, scheduled_job, spec

from evenkeel.core.messages import (
    Message,
    RequestGone,
    RequestSeen,
    ScheduleGone,
    ScheduleSeen,
)
from evenkeel.kube.listener import RequestListener, ScheduleListener
from evenkeel.model import Rejection, Request


def raw(**metadata: Any) -> Json:
    found = scheduled_job(spec(**DAILY))
    found["metadata"] |= metadata
    return found


def triggered(trigger: object, **metadata: Any) -> Json:
    return raw(annotations={"evenkeel.dev/trigger": trigger}, **metadata)


def seen(*sights: tuple[str | None, Json], namespaces: tuple[str, ...] = ()) -> list[Message]:
    desk = Desk()
    it = ScheduleListener(
        desk.inbox,
        hand_over=lambda call, *told: call(*told),
        min_interval_s=1,
        namespaces=namespaces,
    )
    told: list[Message] = []
    for kind, each in sights:
        it.see(kind, each)
        told += desk.reports()
    return told


def test_our_own_status_write_that_comes_back_is_not_read_again():
    first, again = raw(generation=1), raw(generation=1, resourceVersion="99")
    assert len(seen((None, first), ("MODIFIED", again))) == 1
    assert len(seen((None, first), ("MODIFIED", raw(generation=2)))) == 2


def test_what_a_new_list_shows_is_passed_on_whether_known_or_not():
    assert len(seen((None, raw(generation=1)), (None, raw(generation=1)))) == 2


def test_schedules_of_other_namespaces_are_ignored():
    ours, theirs = raw(namespace="ours"), raw(namespace="theirs", uid="uid-theirs")
    told = seen((None, theirs), ("ADDED", ours), ("DELETED", theirs), namespaces=("ours",))
    (only,) = told
    assert isinstance(only, ScheduleSeen)
    assert only.schedule.ns == "ours"


def test_one_that_was_gone_and_comes_again_under_its_generation_is_seen_again():
    kinds = ("ADDED", "DELETED", "ADDED")
    told = seen(*((kind, raw(generation=1)) for kind in kinds))
    assert [type(each) for each in told] == [ScheduleSeen, ScheduleGone, ScheduleSeen]


def test_an_older_list_does_not_take_the_place_of_a_newer_sight():
    told = seen(("MODIFIED", raw(generation=3)), (None, raw(generation=2)))
    assert [each.schedule.generation for each in told if isinstance(each, ScheduleSeen)] == [3]


def test_the_newest_version_is_known_whoever_wrote_it():
    """A status written by somebody else is no news of the spec, and may take ours back."""
    it = ScheduleListener(Desk().inbox, hand_over=lambda call, *told: call(*told), min_interval_s=1)
    uid = raw()["metadata"]["uid"]
    assert it.version(uid) == 0
    it.see(None, raw(generation=1, resourceVersion="98"))
    it.see("MODIFIED", raw(generation=1, resourceVersion="102"))
    it.see(None, raw(generation=1, resourceVersion="99"))  # an older list
    assert it.version(uid) == 102
    it.see("DELETED", raw(generation=1, resourceVersion="103"))
    assert it.version(uid) == 0


# --- triggers ---------------------------------------------------------------------------------


def test_another_trigger_is_news_although_the_generation_is_the_same():
    """The generation does not tell of annotations."""
    told = seen(
        (None, raw(generation=1, resourceVersion="98")),
        ("MODIFIED", triggered("42", generation=1, resourceVersion="99")),
        ("MODIFIED", triggered("42", generation=1, resourceVersion="100")),  # our status
        ("MODIFIED", triggered("43", generation=1, resourceVersion="101")),
    )
    triggers = [each.schedule.trigger for each in told if isinstance(each, ScheduleSeen)]
    assert triggers == ["", "42", "43"]


def test_an_older_list_does_not_bring_an_older_trigger_back():
    """It would make a request for it once more."""
    told = seen(
        ("MODIFIED", triggered("43", generation=1, resourceVersion="101")),
        (None, triggered("42", generation=1, resourceVersion="99")),
    )
    triggers = [each.schedule.trigger for each in told if isinstance(each, ScheduleSeen)]
    assert triggers == ["43"]


@pytest.mark.parametrize("annotations", [None, [], "trigger"], ids=repr)
def test_annotations_of_any_shape_are_read(annotations):
    assert len(seen((None, raw(annotations=annotations)))) == 1


# --- requests ---------------------------------------------------------------------------------


def request(spec: object, **metadata: Any) -> Json:
    known = {"uid": "uid-again", "name": "again", "namespace": "shop", "generation": 1}
    return {"metadata": known | metadata, "spec": spec, "status": {"observedGeneration": 1}}


WISH = {"schedule": "report"}


def seen_requests(*sights: tuple[str | None, Json]) -> list[Message]:
    desk = Desk()
    it = RequestListener(desk.inbox, hand_over=lambda call, *told: call(*told))
    told: list[Message] = []
    for kind, each in sights:
        it.see(kind, each)
        told += desk.reports()
    return told


def test_a_request_is_read_with_its_status_and_its_version():
    (told,) = seen_requests((None, request(WISH, resourceVersion="7")))
    assert isinstance(told, RequestSeen)
    assert isinstance(told.request, Request)
    assert (told.request.key, told.request.schedule) == ("shop/again", "report")
    assert (told.memory.generation, told.memory.version) == (1, "7")


def test_a_request_that_cannot_be_read_is_told_with_a_sentence():
    (told,) = seen_requests(("ADDED", request({"schedule": 7})))
    assert isinstance(told, RequestSeen)
    assert isinstance(told.request, Rejection)
    assert told.request.uid == "uid-again"


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [("DELETED", {}), ("MODIFIED", {"deletionTimestamp": "2026-03-02T10:00:00Z"})],
    ids=["gone", "being deleted"],
)
def test_a_request_that_is_deleted_is_gone(kind, metadata):
    told = seen_requests(("ADDED", request(WISH)), (kind, request(WISH, **metadata)))
    assert told[-1] == RequestGone("uid-again")


def test_the_status_of_a_request_that_we_wrote_is_no_news():
    told = seen_requests(
        ("ADDED", request(WISH, resourceVersion="7")),
        ("MODIFIED", request(WISH, resourceVersion="8")),
        ("MODIFIED", request(WISH, resourceVersion="9", generation=2)),
    )
    assert len(told) == 2
