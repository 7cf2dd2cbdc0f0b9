"""Creates of requested runs go behind scheduled ones, and leave room for them."""

import asyncio

import orjson
import pytest
from tests.builders import every, instant
from tests.unit.kube.scripted import CREATED, Desk, ScriptedApi, launcher, virtually

from evenkeel.core.effects import Launch
from evenkeel.core.messages import CreateResult, PutBack
from evenkeel.kube.launch_queue import FEW
from evenkeel.model import Parameter, Request, RunId, Verdict, kind_of_request
from evenkeel.resource.parameters import bake

DUE = instant("10:01")


def request(name="again", ns="shop", **changes):
    return Request(f"uid-{name}", ns, name, DUE, 1, "report", **changes)


def scheduled(count, *, ns="shop"):
    schedules = [every(60, name=f"on-time-{number}", ns=ns) for number in range(count)]
    return [Launch(RunId(each.uid, DUE), 1, each) for each in schedules]


def requested(count, *, ns="shop", name="again"):
    it, schedule = request(name, ns), every(60, name=f"wished-{ns}", ns=ns)
    kind = kind_of_request(it.uid)
    return [
        Launch(RunId(schedule.uid, DUE + number, kind), 1, schedule, request=it)
        for number in range(count)
    ]


def is_requested(name):
    return "wished" in name


class SlowServer:
    """Each create takes a second."""

    def __init__(self):
        self.began = []
        self.flying = []
        self.most_requested = 0

    async def call(self, verb, path, *, body=None, **_):
        name = orjson.loads(body)["metadata"]["name"] if body else ""
        if verb != "POST":
            return CREATED
        self.began.append((path.split("/")[5], name))
        self.flying.append(name)
        self.most_requested = max(self.most_requested, sum(map(is_requested, self.flying)))
        await asyncio.sleep(0.9)
        self.flying.remove(name)
        return CREATED


def create(*effects, in_flight=8, api=None, seconds=60.0):
    """The server, and what was reported."""
    server, desk = api or SlowServer(), Desk()

    async def scenario(clock):
        it = launcher(server, clock, desk, in_flight=in_flight)
        for effect in effects:
            it.launch(effect)
        await asyncio.sleep(seconds)

    virtually(scenario)
    return server, desk.reports()


def test_those_that_wait_begin_after_all_scheduled_ones():
    others = requested(4, ns="bank", name="theirs")
    server, reports = create(*requested(6), *others, *scheduled(20), in_flight=4)
    late = [is_requested(name) for _, name in server.began]
    assert late[0]  # it found a place before the others came
    assert late[1:21] == [False] * 20
    assert all(late[21:])
    created = [each for each in reports if isinstance(each, CreateResult)]
    assert {each.verdict for each in created} == {Verdict.CREATED}
    assert len(created) == 30


@pytest.mark.parametrize(("in_flight", "most"), [(8, 2), (48, 12), (4, 1), (2, 1), (1, 1)])
def test_they_hold_a_quarter_of_the_places_at_most_and_one_at_least(in_flight, most):
    server, reports = create(*requested(40), in_flight=in_flight)
    assert server.most_requested == most
    assert len(reports) == 40


def test_a_herd_finds_the_other_places_free_while_they_hang():
    class Hangs(SlowServer):
        async def call(self, verb, path, *, body=None, **more):
            if body and is_requested(orjson.loads(body)["metadata"]["name"]):
                await asyncio.sleep(3600)
            return await super().call(verb, path, body=body, **more)

    wishes = [wish for ns in "abcdefgh" for wish in requested(30, ns=ns, name=ns)]
    server, desk = Hangs(), Desk()

    async def scenario(clock):
        it = launcher(server, clock, desk, in_flight=48)
        for effect in wishes:
            it.launch(effect)
        await asyncio.sleep(30)
        for effect in scheduled(36):
            it.launch(effect)
        await asyncio.sleep(0.5)
        assert len(server.flying) == 36
        await asyncio.sleep(10)

    virtually(scenario)
    assert len(server.began) == 36


def test_a_place_that_is_kept_for_a_namespace_is_not_for_them():
    """Or the one whose turn comes next, which is scheduled, would not find it."""
    server, _ = create(
        *scheduled(12), *requested(3, ns="bank"), *scheduled(1, ns="club"), in_flight=6
    )
    assert server.began.index(("club", server.began[6][1])) == 6
    assert all(is_requested(name) for _, name in server.began[-3:])


def test_their_namespaces_take_turns():
    server, _ = create(
        *requested(3, ns="shop", name="ours"), *requested(3, ns="bank", name="theirs"), in_flight=4
    )
    first, *others = [ns for ns, _ in server.began]  # the first found a place before others came
    assert [first, others] == ["shop", ["shop", "bank", "shop", "bank", "bank"]]


def test_nobody_gives_way_to_them():
    """Statuses, errands and Events wait while the launcher is busy; a backfill lasts for days."""

    async def scenario(clock):
        it = launcher(SlowServer(), clock, Desk(), in_flight=48)
        for effect in requested(40):
            it.launch(effect)
        await asyncio.sleep(0.5)
        assert it.creating == 12 > FEW
        assert not it.busy
        for effect in scheduled(FEW + 1):
            it.launch(effect)
        await asyncio.sleep(0.1)
        assert it.busy
        await asyncio.sleep(60)

    virtually(scenario)


def test_a_shutdown_puts_back_those_that_wait():
    desk = Desk()

    async def scenario(clock):
        it = launcher(SlowServer(), clock, desk, in_flight=4)
        for effect in requested(5):
            it.launch(effect)
        await asyncio.sleep(0.5)
        assert it.sizes()["creates that wait"] == 4
        await it.stop(within_s=5)

    virtually(scenario)
    reports = desk.reports()
    assert sum(isinstance(each, PutBack) for each in reports) == 4
    assert sum(isinstance(each, CreateResult) for each in reports) == 1


def test_its_job_names_the_request_and_has_its_parameters():
    api, wish = ScriptedApi([CREATED]), request(parameters=(("DAY", "tuesday"),))
    containers = {"spec": {"template": {"spec": {"containers": [{"name": "main"}]}}}}
    parameters = (Parameter("DAY", "today"),)
    schedule = every(60, template=orjson.dumps(bake(containers, parameters)), parameters=parameters)
    run = RunId(schedule.uid, DUE, kind_of_request(wish.uid))

    async def scenario(clock):
        it = launcher(api, clock, Desk())
        it.launch(Launch(run, 1, schedule, request=wish))
        await asyncio.sleep(1)

    virtually(scenario)
    (body,) = [call.body for call in api.calls if call.verb == "POST"]
    assert body["metadata"]["annotations"]["evenkeel.dev/request"] == "again"
    pod = body["spec"]["template"]
    assert pod["metadata"]["annotations"]["evenkeel.dev/request"] == "again"
    (container,) = pod["spec"]["containers"]
    assert container["env"] == [{"name": "DAY", "value": "tuesday"}]
