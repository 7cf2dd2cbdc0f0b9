"""/metrics/schedules as it is asked for: who gets an answer, and where there are too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from tests.builders import every
from tests.unit.core.world import World
from tests.unit.test_health import WELL

from evenkeel.clock import SystemClock
from evenkeel.model import RunState
from evenkeel.web import schedule_metrics
from evenkeel.web.access import Access, Decision
from evenkeel.web.health import HealthServer
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_metrics import KEPT_S, PATH, Mode, ScheduleMetrics, handler

TOKEN = {"Authorization": "Bearer prometheus"}


@dataclass
class Machine(SystemClock):
    """A scheduler that knows two schedules, its clock, and the word of the API server."""

    mode: Mode = "Auto"
    says: Decision = Decision.ALLOWED
    at: float = 1_000.0
    world: World = field(default_factory=lambda: World().see(every(60)).see(every(60, name="b")))

    def __post_init__(self) -> None:
        self.metrics = Metrics(monotonic=self.monotonic)
        self.world.run_until("10:02")

    def now(self) -> float:
        return self.world.now

    def monotonic(self) -> float:
        return self.at

    async def serving(self, ask: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
        async def review(token: str) -> Decision:
            assert token == "prometheus"
            return self.says

        self.text = ScheduleMetrics(self.world.scheduler.state, self.metrics, self, self.mode)
        access = Access(review, monotonic=self.monotonic)
        server = HealthServer(
            "127.0.0.1:0",
            CollectorRegistry(),
            signs=lambda: WELL,
            more={PATH: handler(lambda: self.text, access)},
        )
        async with server, aiohttp.ClientSession(f"http://{server.address}") as session:
            await ask(session)

    def answer(self, headers: dict[str, str] = TOKEN) -> tuple[int, str]:
        found: list[tuple[int, str]] = []

        async def ask(session: aiohttp.ClientSession) -> None:
            answer = await session.get(PATH, headers=headers)
            found.append((answer.status, await answer.text()))

        asyncio.run(self.serving(ask))
        return found[0]


@pytest.mark.parametrize(
    ("says", "status"),
    [
        (Decision.ALLOWED, 200),
        (Decision.REFUSED, 403),
        (Decision.UNKNOWN, 401),
        (Decision.AWAY, 503),
    ],
)
def test_the_word_of_the_api_server_decides(says: Decision, status: int) -> None:
    found, text = Machine(says=says).answer()
    assert found == status
    assert ("report" in text) == (status == 200)


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer "}]
)
def test_without_a_bearer_token_nobody_is_asked(headers: dict[str, str]) -> None:
    found, text = Machine().answer(headers)
    assert found == 401
    assert "Bearer" in text


def test_both_schedules_are_told_of_and_the_runs_of_their_namespace() -> None:
    machine = Machine()
    machine.metrics.counts.was_scraped()
    machine.at += 6
    machine.metrics.ended("shop", RunState.FAILED, None, 3)
    _, text = machine.answer()
    assert 'evenkeel_schedule_active{namespace="shop",schedule="report"} 2\n' in text
    assert 'evenkeel_schedule_active{namespace="shop",schedule="b"} 2\n' in text
    assert 'evenkeel_namespace_runs_total{namespace="shop",state="failed"} 3\n' in text
    assert 'evenkeel_namespace_runs_total{namespace="shop",state="missed"} 0\n' in text


def test_off_is_not_found() -> None:
    assert Machine(mode="Off").answer()[0] == 404


@pytest.mark.parametrize(("mode", "named"), [("Auto", False), ("On", True)])
def test_above_the_limit_one_line_says_so_unless_it_is_on(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, named: bool
) -> None:
    monkeypatch.setattr(schedule_metrics, "MOST", 1)
    status, text = Machine(mode=mode).answer()
    assert status == 200
    assert ("report" in text) is named
    if not named:
        assert text.splitlines() == [
            "# 2 schedules are more than 1: no metrics by schedule are served; "
            "the setting metrics.schedules: On serves them"
        ]


def test_one_text_serves_the_scrapes_of_some_seconds() -> None:
    machine = Machine(mode="On")

    async def ask(session: aiohttp.ClientSession) -> None:
        async def active() -> bool:
            answer = await session.get(PATH, headers=TOKEN)
            return 'schedule="report"} 3\n' in await answer.text()

        assert not await active()
        machine.world.run_until("10:03")
        assert not await active()
        machine.at += KEPT_S
        assert await active()

    asyncio.run(machine.serving(ask))


async def test_only_a_scrape_of_metrics_counts_as_one() -> None:
    scrapes: list[str] = []
    server = HealthServer(
        "127.0.0.1:0",
        CollectorRegistry(),
        signs=lambda: WELL,
        scraped=lambda: scrapes.append("scraped"),
    )
    async with server, aiohttp.ClientSession(f"http://{server.address}") as session:
        for path in ("/livez", "/readyz"):
            await session.get(path)
        assert scrapes == []
        assert (await session.get("/metrics")).status == 200
    assert scrapes == ["scraped"]
