"""What a scrape of 5,000 schedules costs the loop: /metrics, and /metrics/schedules.

The scheduler on its own loop and clock, without an API server: crons and intervals that nobody
launches meanwhile. While texts are made, one after the other, a timer of the same loop measures how
late it fires, as the operator's own metric `evenkeel_loop_pulse_seconds` does.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvloop
from prometheus_client import generate_latest
from tests.bench._measure import percentile

from evenkeel.clock import SystemClock
from evenkeel.core.messages import JobsListed, ScheduleSeen, SchedulesListed
from evenkeel.core.scheduler import Scheduler
from evenkeel.loop import Loop
from evenkeel.model import Cron, Instant, Interval, Rule, Schedule, Timing
from evenkeel.process import PULSE_S
from evenkeel.resource.record import EMPTY
from evenkeel.settings import Settings
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_metrics import ScheduleMetrics

COUNT = 5_000
ROUNDS = 20


def rows() -> Iterator[dict[str, Any]]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measured())
    for what in ("nothing", "/metrics", "/metrics/schedules"):
        for name in ("p99", "max"):
            yield {
                "name": f"loop lag beside scrapes of {what}, {name}",
                "value": found[what].pop(name),
                "unit": "ms",
                "beside": dict(found[what]),
            }


async def measured() -> dict[str, dict[str, float]]:
    clock = SystemClock()
    scheduler = Scheduler(Settings(), stopwatch=time.perf_counter)
    loop = Loop(scheduler, clock, lambda effect: None)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    now = int(clock.now())
    scheduler.inbox.hint("jobs", JobsListed((), now))
    for number in range(COUNT):
        scheduler.inbox.hint(f"s-{number}", seen(number, now))
    scheduler.inbox.hint("schedules", SchedulesListed(frozenset(), clock.monotonic() - 60))
    while len(scheduler.state.entries) < COUNT or scheduler.state.index_dirty:
        await asyncio.sleep(0.1)

    gc.collect()
    gc.freeze()  # as the operator does when it is ready
    metrics = Metrics(monotonic=clock.monotonic)
    metrics.gauges("x", "x", "state", scheduler.state.schedules_by_state)
    text = ScheduleMetrics(scheduler.state, metrics, clock, "On")

    async def nothing() -> bytes:
        await asyncio.sleep(0.1)
        return b""

    async def by_number() -> bytes:
        return generate_latest(metrics.registry)

    async def by_schedule() -> bytes:
        text._rendered_m = float("-inf")  # each scrape anew
        return await text.text()

    found = {}
    for what, scrape in (
        ("nothing", nothing),
        ("/metrics", by_number),
        ("/metrics/schedules", by_schedule),
    ):
        found[what] = await beside(scrape)
    loop.stop()
    await running
    return found


async def beside(scrape: Callable[[], Awaitable[bytes]]) -> dict[str, float]:
    lags_ms: list[float] = []
    took_ms: list[float] = []

    async def pulse() -> None:
        while True:
            expected = time.perf_counter() + PULSE_S
            await asyncio.sleep(PULSE_S)
            lags_ms.append((time.perf_counter() - expected) * 1e3)

    pulsing = asyncio.create_task(pulse())
    size = 0
    for _ in range(ROUNDS):
        began = time.perf_counter()
        size = len(await scrape())
        took_ms.append((time.perf_counter() - began) * 1e3)
        await asyncio.sleep(0.1)
    pulsing.cancel()
    lags_ms.sort()
    return {
        "p99": percentile(lags_ms, 99),
        "max": lags_ms[-1],
        "first_ms": took_ms[0],
        "median_ms": percentile(sorted(took_ms), 50),
        "kilobytes": size / 1e3,
        "pulses": len(lags_ms),
    }


def seen(number: int, now: Instant) -> ScheduleSeen:
    rules: list[Rule] = [
        Cron(f"{number % 60} * * * *"),
        Cron(f"*/5 9-17 * * {number % 5 + 1}"),
        Interval(60 * (number % 50 + 5), number % 60),
        Cron(f"{number % 60} {number % 24} * * *"),
    ]
    schedule = Schedule(
        uid=f"s-{number}",
        ns=f"team-{number % 40}",
        name=f"schedule-{number}",
        created=now,
        generation=1,
        timing=Timing(rules[number % len(rules)], "Europe/Berlin" if number % 2 else "UTC"),
        template=b"{}",
        template_hash="same",
    )
    return ScheduleSeen(schedule, EMPTY)
