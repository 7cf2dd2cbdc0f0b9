"""A ScheduledJob that is being deleted is as good as gone, though it may stay for a while."""

import asyncio
from typing import Any

import orjson
from tests.unit.resource.cases import DAILY, Json, scheduled_job, spec

from evenkeel.clock import SystemClock
from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import ScheduleGone, SchedulesListed
from evenkeel.kube.api import Reply
from evenkeel.kube.listener import ScheduleListener
from evenkeel.kube.pruner import Pruner

KEPT_BY_A_FINALIZER = {
    "deletionTimestamp": "2026-01-02T00:00:00Z",
    "finalizers": ["foregroundDeletion"],
}


def being_deleted() -> Json:
    raw = scheduled_job(spec(**DAILY))
    raw["metadata"] |= KEPT_BY_A_FINALIZER
    return raw


def test_it_is_gone_whether_the_list_or_the_watch_tells() -> None:
    raw = being_deleted()
    for kind in (None, "ADDED", "MODIFIED"):
        inbox = Inbox(size=10)
        ScheduleListener(inbox, hand_over=lambda call, *told: call(*told), min_interval_s=1).see(
            kind, raw
        )

        assert inbox.drain(10) == [ScheduleGone(raw["metadata"]["uid"])]


class OneOfTwoIsBeingDeleted:
    async def call(self, *_: Any, **__: Any) -> Reply:
        items = [
            {"metadata": {"uid": "stays"}},
            {"metadata": {"uid": "goes"} | KEPT_BY_A_FINALIZER},
        ]
        return Reply(200, orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": items}))


def test_nobody_waits_for_it_to_be_known() -> None:
    """Else the operator would not be ready before the deletion is done."""
    inbox = Inbox(size=10)
    pruner = Pruner(
        OneOfTwoIsBeingDeleted(),
        inbox,
        clock=SystemClock(),
        known=bool,
        namespaces=(),
        every_s=600,  # type: ignore[arg-type]
    )

    asyncio.run(pruner.list_once())

    (listed,) = inbox.drain(10)
    assert isinstance(listed, SchedulesListed)
    assert listed.uids == {"stays"}
