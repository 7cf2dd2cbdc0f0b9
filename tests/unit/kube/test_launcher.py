"""Many creates: lanes, 429, what is let go, bodies rendered ahead, a full inbox, shutdown."""

import asyncio
from dataclasses import replace

import pytest
from tests.builders import edited, every, instant
from tests.unit.kube.scripted import CREATED, OK, Desk, ScriptedApi, launcher, status, virtually

from evenkeel.core.effects import Launch, Prepare, Withdraw
from evenkeel.core.messages import CreateResult, PutBack
from evenkeel.model import RunId, Verdict

SEEN = every(60)
RUN = RunId(SEEN.uid, instant("10:01"))


def launches(count: int, name: str = "report") -> list[Launch]:
    return [
        Launch(RunId(SEEN.uid, instant("10:01") + k), 1, every(60, name=name)) for k in range(count)
    ]


@pytest.mark.parametrize(("strict", "asked"), [(True, "Strict"), (False, "Warn")])
def test_a_create_says_what_becomes_of_fields_that_the_api_server_does_not_know(strict, asked):
    desk, api = Desk(), ScriptedApi([CREATED])

    async def scenario(clock):
        launcher(api, clock, desk, strict=strict).launch(launches(1)[0])
        await asyncio.sleep(1)

    virtually(scenario)
    assert api.calls[0].params == {"fieldValidation": asked}


def test_creates_in_flight_are_bounded():
    desk, most = Desk(), []

    async def scenario(clock):
        flying = 0

        async def call(verb, path, **_):
            nonlocal flying
            flying += 1
            most.append(flying)
            await asyncio.sleep(0.1)
            flying -= 1
            return CREATED

        api = ScriptedApi([OK])
        api.call = call
        it = launcher(api, clock, desk, in_flight=3)
        for effect in launches(10):
            it.launch(effect)
        assert it.busy
        await asyncio.sleep(5)
        assert not it.busy and it.creating == 0

    virtually(scenario)
    assert max(most) == 3
    assert len(desk.reports()) == 10


def test_a_429_holds_back_all_creates_for_as_long_as_it_says():
    desk = Desk()
    busy = status(429, "TooManyRequests", **{"Retry-After": "7"})
    api = ScriptedApi([busy, CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        for effect in launches(3):
            it.launch(effect)
        await asyncio.sleep(30)

    virtually(scenario)
    assert [call.at >= 7 for call in api.calls] == [False, True, True]
    assert [report.verdict for report in desk.reports()] == [
        Verdict.HELD,
        Verdict.CREATED,
        Verdict.CREATED,
    ]


def test_who_waited_in_closed_lanes_beyond_his_starting_deadline_is_put_back():
    desk = Desk()
    busy = status(429, "TooManyRequests", **{"Retry-After": "7"})
    api = ScriptedApi([busy, CREATED])
    first, late, in_time = launches(3)

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        now = int(clock.now())
        it.launch(first)
        it.launch(replace(late, latest=now + 6))
        it.launch(replace(in_time, latest=now + 7))
        await asyncio.sleep(30)

    virtually(scenario)
    put_back = [report.run for report in desk.reports() if isinstance(report, PutBack)]
    assert put_back == [late.run]
    assert len(api.calls) == 2


def test_a_retry_after_of_a_day_is_not_believed():
    assert status(429, **{"Retry-After": "86400"}).retry_after_s == 60


def test_a_run_let_go_while_it_waits_is_not_created():
    desk, api = Desk(), ScriptedApi([1.0, CREATED, 1.0, CREATED, CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        first, second = launches(2)
        it.launch(first)
        it.launch(second)
        it.withdraw(Withdraw(second.run, 1))
        await asyncio.sleep(10)

    virtually(scenario)
    assert len(api.calls) == 1
    assert PutBack(launches(2)[1].run, 1) in desk.reports()


def test_a_run_let_go_in_the_step_that_launched_it_is_not_created():
    """A catch-up of a hundred runs under Replace launches each, and cancels all but the last."""
    desk, api = Desk(), ScriptedApi([CREATED])
    *replaced, last = launches(100)

    async def scenario(clock):
        it = launcher(api, clock, desk)
        for effect in replaced:
            it.launch(effect)
            it.withdraw(Withdraw(effect.run, 1))
        it.launch(last)
        await asyncio.sleep(10)
        assert it.sizes()["withdrawn creates"] == 0

    virtually(scenario)
    reports = desk.reports()
    assert {report.run for report in reports if isinstance(report, PutBack)} == {
        effect.run for effect in replaced
    }
    assert [report.run for report in reports if isinstance(report, CreateResult)] == [last.run]
    assert len(api.calls) == 1


def test_a_run_let_go_while_its_status_is_being_stored_is_not_created():
    """A catch-up under Replace: each run but the last was cancelled before its Job was created."""
    desk, api = Desk(), ScriptedApi([CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, mark_takes_s=2)
        first, second = (replace(effect, announced=1) for effect in launches(2))
        it.launch(first)
        it.launch(second)
        await asyncio.sleep(1)
        it.withdraw(Withdraw(first.run, 1))
        await asyncio.sleep(10)
        assert it.sizes()["withdrawn creates"] == 0

    virtually(scenario)
    gone, wanted = (effect.run for effect in launches(2))
    told = {type(report): report.run for report in desk.reports()}
    assert told == {PutBack: gone, CreateResult: wanted}
    assert len(api.calls) == 1


def test_a_run_whose_status_is_stored_beyond_its_starting_deadline_is_put_back():
    desk, api = Desk(), ScriptedApi([CREATED])
    effect = replace(launches(1)[0], announced=1)

    async def scenario(clock):
        it = launcher(api, clock, desk, mark_takes_s=9)
        it.launch(replace(effect, latest=int(clock.now()) + 5))
        await asyncio.sleep(20)

    virtually(scenario)
    assert desk.reports() == [PutBack(effect.run, 1)]
    assert api.calls == []


def test_a_run_let_go_and_wanted_again_while_others_wait_is_created():
    desk = Desk()
    api = ScriptedApi(lambda call: CREATED)

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        others, wanted = launches(3), launches(4)[3]
        for effect in others:
            it.launch(effect)
        it.prepare(Prepare(wanted.run, 1, wanted.schedule))
        it.withdraw(Withdraw(wanted.run, 1))  # suspended
        it.prepare(Prepare(wanted.run, 1, wanted.schedule))  # and resumed
        it.launch(wanted)
        await asyncio.sleep(10)
        created = [report for report in desk.reports() if isinstance(report, CreateResult)]
        assert wanted.run in {report.run for report in created}

    virtually(scenario)


def test_bodies_are_rendered_before_the_instant_and_the_newest_template_wins():
    desk, api = Desk(), ScriptedApi([OK])
    new = edited(SEEN, template=b'{"spec":{"template":{},"backoffLimit":3}}')

    async def scenario(clock):
        it = launcher(api, clock, desk)
        it.prepare(Prepare(RUN, 1, SEEN))
        it.prepare(Prepare(RUN, 1, new))
        it.launch(Launch(RUN, 1, new))
        await asyncio.sleep(5)

    virtually(scenario)
    created = next(call for call in api.calls if call.verb == "POST")
    assert created.body["spec"]["backoffLimit"] == 3


def test_connections_are_warmed_when_a_run_is_prepared():
    desk, api = Desk(), ScriptedApi([OK])

    async def scenario(clock):
        launcher(api, clock, desk).prepare(Prepare(RUN, 1, SEEN))
        await asyncio.sleep(1)

    virtually(scenario)
    assert {call.path for call in api.calls} == {"/version"}


def test_a_full_inbox_makes_results_wait_and_loses_none():
    desk = Desk(size=10)
    api = ScriptedApi([CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=50)
        for effect in launches(25):
            it.launch(effect)
        got = []
        for _ in range(5):
            await asyncio.sleep(1)
            got += desk.reports()
        assert len({report.run for report in got}) == 25

    virtually(scenario)


def test_a_shutdown_puts_back_what_waits_and_finishes_what_flies():
    desk, api = Desk(), ScriptedApi([2.0, CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        for effect in launches(3):
            it.launch(effect)
        await asyncio.sleep(0.1)
        await it.stop(within_s=10)

    virtually(scenario)
    reports = desk.reports()
    assert [type(report) for report in reports] == [PutBack, PutBack, CreateResult]
    assert len(api.calls) == 1


def test_waiting_creates_go_by_namespace_in_turn_then_by_priority_then_by_due_time():
    desk, api = Desk(), ScriptedApi([1.0, CREATED] * 8)
    wishes = [  # in the order in which they are launched
        ("shop", "first", 0, 0),
        ("shop", "a-late", 0, 2),
        ("shop", "z-early", 0, 1),
        ("shop", "urgent", 5, 3),
        ("bank", "other", -5, 3),
    ]

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=1)
        for ns, name, priority, second in wishes:
            schedule = every(60, ns=ns, name=name, priority=priority)
            it.launch(Launch(RunId(schedule.uid, instant("10:01") + second), 1, schedule))
        await asyncio.sleep(20)

    virtually(scenario)
    owners = [call.body["metadata"]["ownerReferences"][0]["name"] for call in api.calls]
    assert owners == ["first", "urgent", "other", "z-early", "a-late"]


def test_a_shorter_429_does_not_shorten_a_longer_one():
    desk = Desk()
    long, short = (status(429, "TooManyRequests", **{"Retry-After": s}) for s in ("20", "2"))
    api = ScriptedApi([long, short, CREATED])

    async def scenario(clock):
        it = launcher(api, clock, desk, in_flight=2)
        for effect in launches(3):
            it.launch(effect)
        await asyncio.sleep(60)

    virtually(scenario)
    assert [call.at >= 20 for call in api.calls] == [False, False, True]


def test_what_comes_after_the_stop_is_put_back():
    desk = Desk()

    async def scenario(clock):
        it = launcher(ScriptedApi([CREATED]), clock, desk)
        await it.stop(within_s=5)
        it.launch(launches(1)[0])
        await asyncio.sleep(1)

    virtually(scenario)
    assert desk.reports() == [PutBack(RUN, 1)]
