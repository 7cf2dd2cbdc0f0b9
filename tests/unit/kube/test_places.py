"""Places: what one namespace may take, and what is left for the others."""

import asyncio

from tests.unit.kube.scripted import virtually

from evenkeel.kube.places import Place, Places


def places(count=8, *, kept=2, stuck=3, old_in_all=100, each=None) -> Places:
    return Places(count, kept=kept, stuck=stuck, old_in_all=old_in_all, each=each)


def fill(it: Places, ns: str) -> list[Place]:
    """As many requests as may begin."""
    begun = []
    while it.free_for(ns):
        begun.append(it.take(ns))
    return begun


def test_places_are_kept_for_namespaces_that_hold_none():
    async def scenario(_):
        it = places()
        assert len(fill(it, "many")) == 8
        assert [len(fill(it, ns)) for ns in ("one", "two", "three")] == [1, 1, 0]

    virtually(scenario)


def test_a_request_older_than_a_second_gives_its_place_back():
    async def scenario(_):
        it = places()
        fill(it, "hangs")
        await asyncio.sleep(0.9)
        assert len(fill(it, "quiet")) == 1
        await asyncio.sleep(0.2)
        assert len(fill(it, "quiet")) == 7

    virtually(scenario)


def test_a_namespace_none_of_whose_requests_come_back_may_have_few_in_flight():
    async def scenario(_):
        it = places()
        begun = fill(it, "hangs")
        await asyncio.sleep(1.1)
        assert fill(it, "hangs") == []
        for place in begun:
            place.give_back(answered=False)
        assert len(fill(it, "hangs")) == 3

    virtually(scenario)


def test_one_answer_is_enough_to_go_on():
    """An API server that is slow for all must not be taken for one that hangs."""

    async def scenario(_):
        it = places()
        begun = fill(it, "slow")
        await asyncio.sleep(1.1)
        begun[0].give_back(answered=True)
        assert len(fill(it, "slow")) == 8

    virtually(scenario)


def test_what_has_no_place_is_bounded():
    async def scenario(_):
        it = places(old_in_all=10)
        for number in range(10):
            for place in fill(it, f"ns-{number}"):
                assert not place.old
            await asyncio.sleep(1.1)
        assert (it.old, it.young <= 8 + 2) == (10, True)
        await asyncio.sleep(60)
        assert it.old == 10

    virtually(scenario)


def test_a_limit_for_each_namespace_holds_for_old_requests_too():
    async def scenario(_):
        it = places(each=1)
        assert len(fill(it, "hangs")) == 1
        await asyncio.sleep(30)
        assert fill(it, "hangs") == []
        assert len(fill(it, "quiet")) == 1

    virtually(scenario)


def test_who_waits_for_a_place_waits_in_turn_with_other_namespaces():
    order: list[str] = []

    async def scenario(_):
        it = places(1, kept=0)

        async def work(ns: str, name: str) -> None:
            async with it.hold(ns):
                order.append(name)
                await asyncio.sleep(0.1)

        many = [asyncio.create_task(work("many", f"many {n}")) for n in range(5)]
        await asyncio.sleep(0.05)
        few = asyncio.create_task(work("few", "few"))
        await asyncio.gather(*many, few)
        assert (it.young, it.old) == (0, 0)

    virtually(scenario)
    assert order.index("few") <= 2
    assert sorted(order) == ["few", *(f"many {n}" for n in range(5))]


def test_who_gives_up_waiting_takes_no_place():
    async def scenario(_):
        it = places(1, kept=0)
        first = it.take("shop")

        async def work() -> None:
            async with it.hold("shop"):
                raise AssertionError

        waiting = [asyncio.create_task(work()) for _ in range(2)]
        await asyncio.sleep(0.1)
        waiting[0].cancel()
        first.give_back(answered=True)  # handed on to the second, which is cancelled then
        waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (it.young, it.old) == (0, 0)
        assert it.free_for("shop")

    virtually(scenario)


def test_who_gives_up_last_leaves_the_places_to_whoever_comes():
    async def scenario(_):
        it = places(1, kept=0, each=1)
        first = it.take("shop")

        async def work() -> None:
            async with it.hold("shop"):
                pass

        gives_up = asyncio.create_task(work())
        await asyncio.sleep(0.1)
        first.give_back(answered=True)  # handed to one that is cancelled before it goes on
        gives_up.cancel()
        await asyncio.gather(gives_up, return_exceptions=True)
        async with asyncio.timeout(1):
            await work()

    virtually(scenario)


def test_what_failed_in_a_place_is_no_answer():
    async def scenario(_):
        it = places(2, kept=0, stuck=1)

        async def work(seconds: float) -> None:
            async with it.hold("hangs"):
                await asyncio.sleep(seconds)
                raise OSError

        await asyncio.gather(*(work(2) for _ in range(2)), return_exceptions=True)
        assert len(fill(it, "hangs")) == 1

    virtually(scenario)
