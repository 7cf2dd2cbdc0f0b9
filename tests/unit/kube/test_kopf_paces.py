"""Kopf repeats at once what ends at once, and ends over a login that fails; its sessions do not."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import yarl
from kubernetes import client as kubernetes_client
from tests.unit.kube.scripted import virtually

from evenkeel import clock as clocks
from evenkeel.errors import CannotStart
from evenkeel.kube import daemon_worker, kopf_session
from evenkeel.kube.credentials import Credentials
from evenkeel.kube.kopf_session import LASTS_S, KopfSessions

LIST = "http://a/apis/evenkeel.dev/v1alpha1/scheduledjobs?limit=500"
WATCH = "http://a/apis/evenkeel.dev/v1alpha1/scheduledjobs?watch=true"


def login() -> Credentials:
    return Credentials("http://127.0.0.1:1", None, kubernetes_client.Configuration())


def sent_at(*urls: str, lasting_s: float = 0.0) -> list[float]:
    """When each of these was sent, one as soon as the one before had ended."""
    sent: list[float] = []

    async def send(_: Any) -> Any:
        sent.append(asyncio.get_running_loop().time())
        await asyncio.sleep(lasting_s)
        return SimpleNamespace(ok=True, status=200, content=None)

    async def scenario(_: Any) -> None:
        sessions = KopfSessions(login, namespaces=())
        for url in urls:
            await sessions.send(SimpleNamespace(url=yarl.URL(url)), send)  # type: ignore[arg-type]

    virtually(scenario)
    return sent


def test_watches_that_close_empty_at_once_are_no_hot_loop() -> None:
    assert sent_at(*[WATCH] * 100)[-1] >= 99


def test_a_410_for_ever_is_no_hot_loop() -> None:
    assert sent_at(*[LIST, WATCH] * 100)[-1] >= 99


def test_a_watch_that_lasted_is_taken_up_again_at_once() -> None:
    assert sent_at(*[WATCH] * 3, lasting_s=300) == [0, 300, 600]


def test_nothing_waits_for_what_is_another_list() -> None:
    """The pages of one, the watch that follows it, other namespaces."""
    other = LIST.replace("scheduledjobs", "namespaces/shop/scheduledjobs")
    assert max(sent_at(LIST, f"{LIST}&continue=a", f"{LIST}&continue=b", WATCH, other)) == 0


async def logins(count: int, *, lasting_s: float, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before them."""
    pauses: list[float] = []
    loop = asyncio.get_running_loop()
    passed_s = 0.0

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(clocks, "sleep", sleep)
    monkeypatch.setattr(clocks, "jitter", lambda seconds: seconds)
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + passed_s, raising=False)
    sessions = KopfSessions(login, namespaces=())
    for _ in range(count):
        await (await sessions.open()).aiohttp_session.close()
        passed_s += lasting_s
    return pauses


async def test_a_401_for_ever_is_no_hot_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await logins(7, lasting_s=0, monkeypatch=monkeypatch) == [1, 2, 4, 8, 10, 10]


async def test_a_token_that_lived_is_replaced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await logins(3, lasting_s=LASTS_S + 1, monkeypatch=monkeypatch) == []


async def test_a_login_goes_on_until_there_are_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over a kubeconfig that is half written, a program that hangs, a token that is not there."""
    monkeypatch.setattr(clocks, "jitter", lambda _: 0)
    monkeypatch.setattr(kopf_session, "LOGIN_WITHIN_S", 0.1)
    monkeypatch.setattr(daemon_worker, "GIVE_UP_S", 0.05)
    hanging = threading.Event()
    tries: list[str] = []

    class NoToken(Credentials):
        def headers(self) -> dict[str, str]:
            raise FileNotFoundError("token")

    def load() -> Credentials:
        tries.append("")
        match len(tries):
            case 1:
                raise CannotStart("cannot use kubeconfig: line 3 is not YAML")
            case 2:
                hanging.wait()
            case 3:
                return NoToken("http://127.0.0.1:1", None, kubernetes_client.Configuration())
        return login()

    session = await KopfSessions(load, namespaces=()).open()
    await session.aiohttp_session.close()
    hanging.set()
    assert len(tries) == 4


async def test_each_namespace_has_a_connection_for_its_watch() -> None:
    """Beyond the last connection watches would wait for others to end, and their schedules too."""
    session = await KopfSessions(login, namespaces=tuple(f"ns-{n}" for n in range(50))).open()
    connector = session.aiohttp_session.connector
    assert connector is not None and connector.limit > 50
    await session.aiohttp_session.close()
