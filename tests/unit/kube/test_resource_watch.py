"""The CRDs may be missing, go and come back: the watch of ScheduledJobs waits for its own, and goes
on without that of RunRequests."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.unit.kube.scripted import Call, ScriptedApi, listing

from evenkeel.errors import CannotStart
from evenkeel.kube import resource_watch, served
from evenkeel.kube.api import Reply
from evenkeel.kube.resource_watch import UNNAMED_TIMES, ResourceWatch, Watched

NOT_THERE = Reply(404, b"404 page not found")
GROUPS = Reply(200, b'{"kind":"APIGroupList","groups":[{"name":"evenkeel.dev"}]}')
NO_GROUPS = Reply(200, b'{"kind":"APIGroupList","groups":[{"name":"apps"}]}')


class Kopf:
    """A thread that ends when the test says so."""

    threads: list["Kopf"]

    def __init__(self, load: object, sights: dict, *, namespaces: object, on_death: Callable):
        self.watched = set(sights)
        self.end, self.not_found = on_death, False
        self.never_watched = False
        self.unanswered_s = self.silence_s = 1.0
        self.stopped = False
        Kopf.threads.append(self)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.stopped = True

    def find_no_name(self) -> None:
        self.never_watched = True
        self.end(CannotStart("discovery did not name each resource"))

    def lose_resource(self) -> None:
        self.not_found = True
        self.end(RuntimeError("404 page not found"))


class Cluster:
    """What its API server says of our resources."""

    def __init__(self) -> None:
        self.served = self.named = True
        self.requests_served = self.requests_named = True
        self.removals = self.returns = self.removals_of_requests = self.returns_of_requests = 0
        self.api = ScriptedApi(self._answer)
        self.watch = ResourceWatch(self.api, lambda: None)  # type: ignore[arg-type, return-value]

    def _answer(self, call: Call) -> Reply:
        if call.path == "/apis":
            return GROUPS if self.named else NO_GROUPS
        if call.path == "/apis/evenkeel.dev/v1alpha1":
            names = [
                *(["scheduledjobs"] if self.named else []),
                *(["runrequests"] if self.requests_named else []),
            ]
            rows = ",".join(f'{{"name":"{name}"}}' for name in names)
            text = f'{{"kind":"APIResourceList","resources":[{rows}]}}'
            return Reply(200, text.encode())
        if call.path.endswith("/runrequests"):
            return listing() if self.requests_served else NOT_THERE
        return listing() if self.served else NOT_THERE

    async def run(self) -> None:
        def removed() -> None:
            self.removals += 1

        def returned() -> None:
            self.returns += 1

        def requests_removed() -> None:
            self.removals_of_requests += 1

        def requests_returned() -> None:
            self.returns_of_requests += 1

        await self.watch.run(
            (),
            Watched(lambda *_: None, removed=removed, returned=returned),
            Watched(lambda *_: None, removed=requests_removed, returned=requests_returned),
        )

    async def looked(self, times: int) -> None:
        """So many looks from now."""
        until = len(self.api.calls) + times
        await seen(lambda: len(self.api.calls) >= until)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_watch, "LOOK_S", 0.001)
    monkeypatch.setattr(resource_watch, "LOOK_FOR_REQUESTS_S", 0.001)
    monkeypatch.setattr(served, "LOOK_S", 0.001)
    monkeypatch.setattr(resource_watch, "KopfThread", Kopf)
    Kopf.threads = []


async def seen(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not look():
            await asyncio.sleep(0.001)


async def test_a_resource_that_is_removed_is_waited_for_and_its_schedules_are_forgotten() -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    await seen(lambda: len(Kopf.threads) == 1)
    cluster.served = cluster.named = False
    Kopf.threads[0].lose_resource()
    await cluster.looked(30)
    assert (cluster.removals, cluster.returns) == (1, 0)
    assert not cluster.watch.installed
    assert cluster.watch.unanswered_s == 0  # nobody is to answer
    assert Kopf.threads[0].stopped

    cluster.served = True  # discovery lags behind it, and kopf reads it once
    await cluster.looked(30)
    assert len(Kopf.threads) == 1
    cluster.named = True
    await seen(lambda: len(Kopf.threads) == 2)
    assert (cluster.removals, cluster.returns) == (1, 1)
    assert cluster.watch.installed
    await end(running)
    assert Kopf.threads[1].stopped


async def test_one_that_is_back_at_once_is_watched_again() -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    await seen(lambda: len(Kopf.threads) == 1)
    Kopf.threads[0].lose_resource()
    await seen(lambda: len(Kopf.threads) == 2)
    assert (cluster.removals, cluster.returns) == (0, 1)
    await end(running)


async def test_a_proxys_404_removes_nothing() -> None:
    """Discovery, which the API server writes itself, still names the resource."""
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    await seen(lambda: len(Kopf.threads) == 1)
    cluster.served = False
    Kopf.threads[0].lose_resource()
    await cluster.looked(60)
    assert cluster.removals == 0
    await end(running)


async def test_an_end_of_kopf_for_another_reason_ends_the_process() -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    await seen(lambda: len(Kopf.threads) == 1)
    Kopf.threads[0].end(RuntimeError("a defect"))
    with pytest.raises(
        CannotStart, match="the watch of ScheduledJobs and RunRequests ended: a defect"
    ):
        await running


async def test_where_discovery_lags_behind_another_kopf_begins(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    for times in (1, 2):
        await seen(lambda times=times: len(Kopf.threads) == times)
        Kopf.threads[-1].find_no_name()
    await seen(lambda: len(Kopf.threads) == 3)
    Kopf.threads[-1].lose_resource()  # it has watched: what was counted is forgotten
    for times in (4, 5):
        await seen(lambda times=times: len(Kopf.threads) == times)
        Kopf.threads[-1].find_no_name()
    await seen(lambda: len(Kopf.threads) == 6)
    assert said(caplog).count("watch begun again") == 4
    await end(running)


async def test_a_discovery_that_never_names_a_resource_ends_the_process() -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    for times in range(1, UNNAMED_TIMES + 1):
        await seen(lambda times=times: len(Kopf.threads) == times)
        Kopf.threads[-1].find_no_name()
    with pytest.raises(CannotStart, match="discovery did not name each resource"):
        await running


async def test_a_start_waits_for_the_resource(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.served = cluster.named = False
    with caplog.at_level("INFO", logger="evenkeel"):
        starting = asyncio.create_task(cluster.watch.wait_until_installed(()))
        await cluster.looked(10)
        assert not starting.done()
        assert not cluster.watch.installed
        cluster.served = cluster.named = True
        await asyncio.wait_for(starting, 10)
    assert [record.message for record in caplog.records] == [
        "waiting for the resource",
        "the resource is installed",
    ]
    assert cluster.watch.installed


# --- RunRequests ------------------------------------------------------------------------------

ALONE, BOTH = {"scheduledjobs"}, {"scheduledjobs", "runrequests"}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


async def test_without_the_resource_of_requests_schedules_are_watched_alone_until_it_is_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.requests_served = cluster.requests_named = False
    with caplog.at_level("INFO", logger="evenkeel"):
        running = asyncio.create_task(cluster.run())
        await seen(lambda: len(Kopf.threads) == 1)
        await cluster.looked(60)
        assert Kopf.threads[0].watched == ALONE
        assert said(caplog) == ["requests are not watched"]  # once
        assert cluster.watch.installed
        assert len(Kopf.threads) == 1

        cluster.requests_served = True  # discovery lags behind it, and kopf reads it once
        await cluster.looked(30)
        assert len(Kopf.threads) == 1
        cluster.requests_named = True
        await seen(lambda: len(Kopf.threads) == 2)
    assert Kopf.threads[0].stopped
    assert Kopf.threads[1].watched == BOTH
    assert (cluster.returns, cluster.returns_of_requests) == (1, 1)
    assert said(caplog) == ["requests are not watched", "requests are watched"]
    await end(running)


async def test_a_removal_of_the_resource_of_requests_forgets_no_schedule() -> None:
    cluster = Cluster()
    running = asyncio.create_task(cluster.run())
    await seen(lambda: len(Kopf.threads) == 1)
    assert Kopf.threads[0].watched == BOTH
    cluster.requests_served = cluster.requests_named = False
    Kopf.threads[0].lose_resource()
    await seen(lambda: len(Kopf.threads) == 2)
    assert Kopf.threads[1].watched == ALONE
    assert (cluster.removals, cluster.removals_of_requests) == (0, 1)
    await end(running)


async def test_an_api_server_that_does_not_say_whether_there_are_requests_is_asked_again() -> None:
    cluster = Cluster()
    silent = Reply(503, b"")
    answer, cluster.api.answers = cluster.api.answers, [silent]
    running = asyncio.create_task(cluster.run())
    await cluster.looked(10)
    assert Kopf.threads == []
    cluster.api.answers = answer
    await seen(lambda: len(Kopf.threads) == 1)
    assert Kopf.threads[0].watched == BOTH
    await end(running)


async def end(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
