"""A namespace whose webhook hangs or asks for pauses: what becomes of the creates of others."""

import asyncio

import pytest
from tests.builders import every, instant
from tests.unit.kube.scripted import (
    CREATED,
    NO_ANSWER,
    Desk,
    ScriptedApi,
    launcher,
    status,
    virtually,
)

from evenkeel.core.effects import Launch, Withdraw
from evenkeel.core.messages import CreateResult, PutBack
from evenkeel.kube.api import Reply
from evenkeel.kube.launch_queue import STUCK
from evenkeel.model import RunId


def launch(name: str, *, ns: str, second: int = 0) -> Launch:
    schedule = every(60, name=name, ns=ns)
    return Launch(RunId(schedule.uid, instant("10:01") + second), 1, schedule)


class Server:
    """Creates in namespace `hangs` get no answer within ten seconds; others are done at once."""

    def __init__(self, *, takes_s: float = 0.005) -> None:
        self.takes_s = takes_s
        self.begun: dict[str, float] = {}
        self.hanging = 0
        self.most_hanging: list[tuple[float, int]] = []

    async def call(self, verb, path, *, body=None, **_):
        now = asyncio.get_running_loop().time()
        if verb == "GET":  # a Job by its name
            return status(404, "NotFound")
        if "/hangs/" not in path:
            self.begun[f"{path} {len(self.begun)}"] = now
            await asyncio.sleep(self.takes_s)
            return CREATED
        self.hanging += 1
        self.most_hanging.append((now, self.hanging))
        await asyncio.sleep(10)
        self.hanging -= 1
        raise NO_ANSWER

    def watch(self, path, params):
        raise AssertionError


def test_creates_of_others_are_in_time_while_those_of_a_namespace_hang():
    """Sixty schedules there, due every ten seconds, for three minutes."""
    server, desk = Server(), Desk(size=100_000)
    late_s: list[float] = []

    async def scenario(clock):
        it = launcher(server, clock, desk)
        for second in range(180):
            if second % 10 == 0:
                for number in range(60):
                    it.launch(launch(f"s{number}", ns="hangs", second=second))
            due = asyncio.get_running_loop().time()
            it.launch(launch("it", ns="quiet", second=second))
            await asyncio.sleep(0.5)
            late_s.append(max(server.begun.values()) - due)
            await asyncio.sleep(0.5)
            assert second < 2 or not it.busy

    virtually(scenario)
    assert len(server.begun) == 180
    assert max(late_s) < 0.1
    assert max(count for at, count in server.most_hanging if at > 12) <= STUCK


def test_several_of_others_due_at_once_begin_though_a_namespace_took_all_places_before():
    server, desk = Server(), Desk(size=100_000)

    async def scenario(clock):
        it = launcher(server, clock, desk)
        for number in range(200):
            it.launch(launch(f"s{number}", ns="hangs"))
        for number in range(8):
            it.launch(launch("it", ns=f"quiet-{number}"))
        await asyncio.sleep(0.05)
        assert len(server.begun) == 8
        for number in range(100):
            it.launch(launch(f"s{number}", ns="quiet"))
        await asyncio.sleep(1.5)
        assert len(server.begun) == 108

    virtually(scenario)


def test_an_api_server_that_is_slow_for_all_is_not_taken_for_a_namespace_that_hangs():
    server, desk = Server(takes_s=1.5), Desk(size=100_000)

    async def scenario(clock):
        it = launcher(server, clock, desk)
        for number in range(480):
            it.launch(launch(f"s{number}", ns="shop"))
        await asyncio.sleep(480 / 48 * 1.5 + 1)
        assert len(desk.reports()) == 480

    virtually(scenario)


def test_nothing_is_kept_of_runs_withdrawn_while_a_namespace_hangs():
    server, desk = Server(), Desk(size=100_000)

    async def scenario(clock):
        it = launcher(server, clock, desk)
        for number in range(200):
            it.launch(launch(f"s{number}", ns="hangs"))
        for number in range(100):
            one = launch(f"s{number}", ns="quiet")
            it.launch(one)
            it.withdraw(Withdraw(one.run, 1))
            other = launch(f"not-launched-{number}", ns="quiet")
            it.withdraw(Withdraw(other.run, 1))
            await asyncio.sleep(0.1)
        assert it._unwanted == set()

    virtually(scenario)
    put_back = [report for report in desk.reports() if isinstance(report, PutBack)]
    assert len(put_back) == 100  # the launched ones: nothing was sent for them yet


DENIED = 'admission webhook "tenant.example" denied the request: no'


def busy(message: str = "") -> Reply:
    """For a minute, as long as is believed; without a message in plain text."""
    minute = {"Retry-After": "60"}
    return status(429, "", message, **minute) if message else Reply(429, b"Too many", minute)


PAUSES = {
    "one webhook": (busy(DENIED), ["one"], False),
    "webhooks of two": (busy(DENIED), ["one", "two"], False),
    "nobody is named, and one hears it": (busy("slow down"), ["one"], False),
    "nobody is named, and two hear it": (busy("slow down"), ["one", "two"], True),
    "the API server's own limit": (busy(), ["one"], True),
}


@pytest.mark.parametrize(("refusal", "hear_it", "all_wait"), PAUSES.values(), ids=PAUSES)
def test_whose_creates_a_429_holds_back(refusal, hear_it, all_wait):
    def answer(call):
        heard = call.at < 59.9 and any(f"/{ns}/" in call.path for ns in hear_it)
        return refusal if heard else CREATED

    api, desk = ScriptedApi(answer), Desk()

    async def scenario(clock):
        it = launcher(api, clock, desk)
        for ns in hear_it:
            it.launch(launch("it", ns=ns))
        await asyncio.sleep(1)
        it.launch(launch("again", ns="one", second=1))
        it.launch(launch("it", ns="quiet"))
        await asyncio.sleep(100)

    virtually(scenario)
    (quiet,) = [call.at for call in api.calls if "/quiet/" in call.path]
    assert (quiet > 59.9) == all_wait
    assert [call.at > 59.9 for call in api.calls if "/one/" in call.path] == [False, True]
    assert sum(isinstance(report, CreateResult) for report in desk.reports()) == len(hear_it) + 2
