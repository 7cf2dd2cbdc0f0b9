"""Thousands at once: what is shared, what is done in bites, and who gives way to whom."""

import asyncio
import itertools

from tests.builders import every, instant
from tests.unit.kube.scripted import (
    CREATED,
    NO_ANSWER,
    OK,
    Desk,
    ScriptedApi,
    launcher,
    status,
    virtually,
)

from evenkeel.core.effects import CheckTemplate, Launch, Prepare, Withdraw
from evenkeel.core.messages import CreateResult, TemplateChecked
from evenkeel.kube.errands import Errands
from evenkeel.kube.launch_queue import FEW
from evenkeel.kube.launcher import RENDERED_AT_ONCE
from evenkeel.model import RunId


def herd(count):
    schedules = [every(60, name=f"job-{number}") for number in range(count)]
    return [Launch(RunId(each.uid, instant("10:01")), 1, each) for each in schedules]


def prepared(effect):
    return Prepare(effect.run, effect.attempt, effect.schedule)


# --- templates ------------------------------------------------------------------------------------


def proofs_of(*schedules, answers=(CREATED,), forgotten=(), seconds=300.0):
    desk, api = Desk(), ScriptedApi(list(answers))

    async def scenario(clock):
        errands = Errands(api, desk.inbox, clock, busy=lambda: False)
        for schedule in schedules:
            errands.check_template(CheckTemplate(schedule))
        for uid in forgotten:
            errands.forget(uid)
        await asyncio.sleep(seconds)
        assert errands._proofs == {} or seconds < 300

    virtually(scenario)
    found = desk.reports()
    assert all(isinstance(each, TemplateChecked) for each in found)
    return api, {each.uid: each for each in found}


def test_schedules_of_one_template_in_one_namespace_share_one_dry_run():
    many = [every(60, name=f"job-{number}") for number in range(1_000)]
    api, proofs = proofs_of(*many)
    assert len(api.calls) == 1
    assert set(proofs) == {each.uid for each in many}
    assert all(each.accepted and each.template_hash == "first" for each in proofs.values())


def test_another_namespace_and_another_template_are_proven_by_themselves():
    api, proofs = proofs_of(
        every(60, name="a", ns="shop"),
        every(60, name="b", ns="bank"),
        every(60, name="c", ns="shop", template_hash="second"),
    )
    assert len(api.calls) == len(proofs) == 3


def test_what_one_of_them_could_not_learn_none_of_them_has_learned():
    api, proofs = proofs_of(
        every(60, name="a"), every(60, name="b"), answers=[status(500)], seconds=30
    )
    assert len(api.calls) == 1
    assert [each.accepted for each in proofs.values()] == [None, None]


def test_the_others_are_proven_when_the_first_of_them_is_gone():
    first, second = every(60, name="a"), every(60, name="b")
    api, proofs = proofs_of(first, second, forgotten=[first.uid])
    assert api.calls[0].body["metadata"]["ownerReferences"][0]["name"] == "b"
    assert set(proofs) == {second.uid}


# --- readings by name -----------------------------------------------------------------------------


def test_readings_by_name_are_bounded_and_wait_as_long_as_the_server_says():
    flying, most, read_at = 0, [], []
    busy = status(429, "TooManyRequests", **{"Retry-After": "30"})

    class Api:
        async def call(self, verb, path, **_):
            nonlocal flying
            if verb == "POST":
                raise NO_ANSWER
            flying += 1
            most.append(flying)
            await asyncio.sleep(0.1)
            flying -= 1
            read_at.append(asyncio.get_running_loop().time())
            return busy if read_at[-1] < 20 else status(404, "NotFound")

    desk = Desk(size=5_000)

    async def scenario(clock):
        it = launcher(Api(), clock, desk, in_flight=48)
        for effect in herd(2_000):
            it.launch(effect)
        await asyncio.sleep(120)

    virtually(scenario)
    assert max(most) == 48
    assert sum(isinstance(report, CreateResult) for report in desk.reports()) == 2_000
    assert len([at for at in read_at if 6 < at < 30]) == 0


def test_a_429_to_a_reading_holds_back_creates_too():
    busy = status(429, "TooManyRequests", **{"Retry-After": "30"})
    api = ScriptedApi([NO_ANSWER, busy, CREATED])

    async def scenario(clock):
        it = launcher(api, clock, Desk())
        one, other = herd(2)
        it.launch(one)
        await asyncio.sleep(1)
        it.launch(other)
        await asyncio.sleep(60)

    virtually(scenario)
    assert [call.verb for call in api.calls][:2] == ["POST", "GET"]
    assert min(call.at for call in api.calls[2:]) > 29.9


# --- bodies ---------------------------------------------------------------------------------------


def test_bodies_of_a_herd_are_rendered_in_bites():
    desk, seen = Desk(), []

    async def scenario(clock):
        it = launcher(ScriptedApi([OK]), clock, desk)
        for effect in herd(1_000):
            it.prepare(prepared(effect))
        while len(it._bodies) < 1_000:
            seen.append(len(it._bodies))
            await asyncio.sleep(0)

    virtually(scenario)
    steps = [after - before for before, after in itertools.pairwise(seen)]
    assert max(steps) <= RENDERED_AT_ONCE


def test_nothing_is_kept_of_a_run_that_is_let_go_before_its_body_is_rendered():
    async def scenario(clock):
        it = launcher(ScriptedApi([OK]), clock, Desk())
        (effect,) = herd(1)
        it.prepare(prepared(effect))
        it.withdraw(Withdraw(effect.run, 1))
        await asyncio.sleep(1)
        assert (it._bodies, it._to_render) == ({}, {})

    virtually(scenario)


# --- who gives way --------------------------------------------------------------------------------


def test_whoever_can_wait_waits_until_few_creates_are_left_under_way():
    class Slow:
        async def call(self, verb, path, **_):
            await asyncio.sleep(1)
            return CREATED

    async def busy_with(count, clock):
        it = launcher(Slow(), clock, Desk())
        for effect in herd(count):
            it.launch(effect)
        await asyncio.sleep(0.5)
        was_busy = it.busy
        await asyncio.sleep(5)
        assert not it.busy
        return was_busy

    async def scenario(clock):
        assert await busy_with(FEW + 1, clock)
        assert not await busy_with(FEW, clock)

    virtually(scenario)
