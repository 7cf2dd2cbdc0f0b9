"""The first try to open the store: it ends the process early, and never holds it up for long."""

import asyncio

import pytest
from tests.ledger.model import MemoryStore, Tables
from tests.sim.virtual import VirtualLoop

from evenkeel.ledger.first_try import FirstTry
from evenkeel.ledger.store import BadStore, StoreAway


class Counted(MemoryStore):
    closed = 0

    async def close(self):
        self.closed += 1


class Opening:
    """Opens after a while, or fails then."""

    def __init__(self, takes_s=0.0, error=None):
        self.takes_s, self.error, self.opened = takes_s, error, []

    async def __call__(self):
        await asyncio.sleep(self.takes_s)
        if self.error:
            raise self.error
        self.opened.append(Counted(Tables()))
        return self.opened[-1]


def run(work):
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def test_what_the_first_try_opened_is_given_once():
    async def opening():
        open_store = Opening()
        first = FirstTry(open_store)
        await first.begin()
        given = [await first(), await first()]
        assert given == open_store.opened
        await first.close()
        assert [store.closed for store in given] == [0, 0]

    run(opening())


def test_a_wrong_setting_ends_the_start():
    async def opening():
        first = FirstTry(Opening(error=BadStore("store.url: no such schema")))
        with pytest.raises(BadStore, match="no such schema"):
            await first.begin()
        await first.close()

    run(opening())


@pytest.mark.parametrize("error", [BadStore("store.url: no such schema"), StoreAway("away")])
def test_a_store_that_does_not_answer_soon_holds_nothing_up(error):
    async def opening():
        loop = asyncio.get_running_loop()
        first = FirstTry(Opening(60, error))
        await first.begin()
        assert loop.time() == pytest.approx(1)
        with pytest.raises(type(error)):
            await first()
        assert loop.time() == pytest.approx(60)

    run(opening())


@pytest.mark.parametrize("takes_s", [0.0, 60.0])
def test_what_nobody_asked_for_is_closed(takes_s):
    async def opening():
        open_store = Opening(takes_s)
        first = FirstTry(open_store)
        await first.begin()
        await first.close()
        assert [store.closed for store in open_store.opened] == [1] * (takes_s == 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(opening())
