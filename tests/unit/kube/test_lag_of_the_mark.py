"""In a herd the mark may lag its create by 60 s at most: whoever reads a status meanwhile reads
what was true a minute ago, and a crash finds the rest by the names of the Jobs."""

import asyncio

import pytest
from tests.unit.kube.scripted import Desk, for_a, virtually

from evenkeel.kube.api import Reply
from evenkeel.kube.status_sync import StatusSync
from evenkeel.settings import Settings

AT_MOST_S = 60
A_WRITE_S = 0.02

WRITTEN = Reply(200, b'{"metadata": {"resourceVersion": "9"}}')


@pytest.mark.parametrize("schedules", [1, 2_000])
def test_while_creates_wait_no_mark_lags_by_more_than_a_minute(schedules):
    """The launcher has creates waiting all the time."""
    begun: dict[str, float] = {}

    class Api:
        async def call(self, verb, path, **_):
            begun.setdefault(path, asyncio.get_running_loop().time())
            await asyncio.sleep(A_WRITE_S)
            return WRITTEN

    async def herd(clock):
        it = StatusSync(
            Api(),
            Desk().inbox,
            clock,
            lambda uid: ("shop", uid, {}, 1),
            in_flight=Settings().status_in_flight,
            busy=lambda: True,
            namespace=lambda uid: "shop",
        )
        for number in range(schedules):
            it.dirty(f"s{number}")
        await for_a(2 * AT_MOST_S, it.run())

    virtually(herd)
    assert len(begun) == schedules
    assert max(begun.values()) <= AT_MOST_S
