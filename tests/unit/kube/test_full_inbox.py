"""A full inbox makes what small calls found wait, and loses none of it."""

import asyncio

from tests.unit.kube.scripted import Desk, ScriptedApi, virtually

from evenkeel.core.effects import ConfirmTime
from evenkeel.core.messages import SchedulesChanged, TimeConfirmed
from evenkeel.kube.api import Reply
from evenkeel.kube.errands import Errands

TIME = Reply(200, b"{}", {"Date": "Mon, 02 Mar 2026 10:00:00 GMT"})


def test_what_an_errand_found_gets_through_a_full_inbox_in_the_end():
    desk = Desk(size=10)
    while desk.inbox.offer(SchedulesChanged()):
        pass

    async def scenario(clock):
        errands = Errands(ScriptedApi([TIME]), desk.inbox, clock, busy=lambda: False)
        errands.confirm_time(ConfirmTime())
        await asyncio.sleep(60)
        assert desk.reports() == [SchedulesChanged()] * 10
        await asyncio.sleep(1)

    virtually(scenario)
    (found,) = desk.reports()
    assert isinstance(found, TimeConfirmed)
