"""The first status of a spec goes before other statuses and before creates, 50 a second at most."""

import asyncio

from tests.unit.kube.scripted import status
from tests.unit.kube.test_status_sync import change, sync, written

from evenkeel.kube.write_turns import AWAITED_A_SECOND, LAG_LIMIT_S


class Writing:
    """An API server that takes some time for each write, and refuses some at first."""

    def __init__(self, *, takes_s: float = 0.0, refuses: int = 0) -> None:
        self.takes_s = takes_s
        self.refuses = refuses
        self.at: dict[str, float] = {}
        self.order: list[str] = []

    async def call(self, verb, path, **_):
        await asyncio.sleep(self.takes_s)
        if self.refuses:
            self.refuses -= 1
            return status(500, "InternalError")
        name = path.split("/")[-2]
        self.at.setdefault(name, asyncio.get_running_loop().time())
        self.order.append(name)
        return written()

    def watch(self, path, params):
        raise AssertionError


def awaited(it, documents, uid):
    documents.revisions[uid] = documents.revisions.get(uid, 0) + 1
    it.dirty(uid, awaited=True)


def test_it_goes_before_creates():
    api = Writing()

    async def scenario(it, documents):
        change(it, documents, "uid-old")
        awaited(it, documents, "uid-new")

    sync(api, scenario, busy=lambda: True)
    assert api.at["new"] < 0.1
    assert api.at["old"] >= LAG_LIMIT_S


def test_it_goes_before_what_has_waited_longer_in_its_namespace_and_in_others():
    api = Writing(takes_s=0.1)

    async def scenario(it, documents):
        for number in range(50):
            change(it, documents, f"uid-{number}")
            change(it, documents, f"bank/uid-of-bank-{number}")
        await asyncio.sleep(0.05)
        awaited(it, documents, "uid-new")

    sync(api, scenario)
    assert api.at["new"] < 0.5


def test_a_status_that_waits_already_becomes_awaited():
    api = Writing()

    async def scenario(it, documents):
        change(it, documents, "uid-report")
        await asyncio.sleep(5)
        awaited(it, documents, "uid-report")

    sync(api, scenario, busy=lambda: True)
    assert 4.9 <= api.at["report"] < 5.1


def test_a_thousand_at_once_do_not_make_creates_late():
    api = Writing()

    async def scenario(it, documents):
        for number in range(1000):
            awaited(it, documents, f"uid-{number}")

    sync(api, scenario, busy=lambda: True)
    for second in range(1, 10):
        assert sum(at < second for at in api.at.values()) <= AWAITED_A_SECOND * (second + 1) + 1
    assert sum(at < 1 for at in api.at.values()) >= AWAITED_A_SECOND
    assert len(api.at) == 1000


def test_a_thousand_at_once_do_not_keep_others_from_being_written():
    api = Writing(takes_s=0.01)

    async def scenario(it, documents):
        change(it, documents, "bank/uid-old")
        for number in range(1000):
            awaited(it, documents, f"uid-{number}")

    sync(api, scenario)
    assert api.at["old"] < 0.5


def test_a_refused_write_is_tried_again_and_forgotten_when_it_is_stored():
    api = Writing(refuses=1)

    async def scenario(it, documents):
        awaited(it, documents, "uid-new")
        await asyncio.sleep(30)
        change(it, documents, "uid-new")
        await asyncio.sleep(30)
        assert it.waiting == 0
        it.forget("uid-new")
        assert not any(it.sizes().values())

    sync(api, scenario)
    assert api.order == ["new", "new"]
