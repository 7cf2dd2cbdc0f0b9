"""What kopf's thread is shown becomes messages."""

from typing import Any

from tests.unit.kube.scripted import Desk
from tests.unit.resource.cases import DAILY, Json, scheduled_job, spec

from evenkeel.core.messages import Message, ScheduleGone, ScheduleSeen
from evenkeel.kube.listener import ScheduleListener


def raw(**metadata: Any) -> Json:
    found = scheduled_job(spec(**DAILY))
    found["metadata"] |= metadata
    return found


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
