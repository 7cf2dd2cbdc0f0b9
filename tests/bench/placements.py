"""Ten thousand intervals to be placed arrive in one second: how late are other runs?

In this process: the real core on the real loop and the machine's clock; launches are answered at
once, so what is late is late by the scheduler. Sixty schedules have a run every second between
them. Beside the lateness stands what one placement took by the scheduler's own stopwatch. Five
seconds later the set is improved: the search runs in a thread, and then the phases change; the
runs of that time are counted apart.
"""

import asyncio
import gc
import statistics
import time
from collections.abc import Iterator
from typing import Any

import uvloop
from tests.bench._measure import percentile

from evenkeel.clock import SystemClock
from evenkeel.core.effects import Effect, Launch, Observed
from evenkeel.core.messages import CreateResult, JobsListed, ScheduleSeen, SchedulesListed
from evenkeel.core.scheduler import Scheduler
from evenkeel.loop import Loop
from evenkeel.model import Instant, Interval, JobRef, Schedule, Timing, Verdict
from evenkeel.resource.record import EMPTY
from evenkeel.settings import Settings

NEWCOMERS = 10_000
ARRIVE_S = 1.0
PULSES = 60
PERIODS_S = (1500, 3600, 5400, 6000, 21_600, 86_400)
AFTER_S = 1.0
ROUNDS = 5


def rows() -> Iterator[dict[str, Any]]:
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.freeze()  # as the operator does once it is ready
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            rounds.append(runner.run(measured()))
        gc.unfreeze()
    beside = {name: [round(each[name], 3) for each in rounds] for name in rounds[0]}
    for name, figure in (
        ("the latest run while 10,000 are placed", "latest_ms"),
        ("the latest run while a set of 10,000 is improved", "latest_while_improved_ms"),
    ):
        yield {
            "name": name,
            "value": statistics.median(each[figure] for each in rounds),
            "unit": "ms",
            "beside": beside,
        }


async def measured() -> dict[str, float]:
    scheduler = Scheduler(Settings(), stopwatch=time.perf_counter)
    clock, late_s, placed_s = SystemClock(), [], []

    def carry_out(effect: Effect) -> None:
        match effect:
            case Launch(run=run, attempt=attempt, schedule=schedule):
                late_s.append(clock.now() - run.due)
                ref = JobRef(schedule.ns, f"{schedule.name}-{run.due}", str(run))
                scheduler.inbox.offer(
                    CreateResult(run, attempt, Verdict.CREATED, ref, sent_at=clock.now())
                )
            case Observed(metric="placement", value=value):
                placed_s.append(value)

    loop = Loop(scheduler, clock, carry_out)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    now = int(clock.now())
    inbox = scheduler.inbox
    inbox.hint("jobs", JobsListed((), now))
    for number in range(PULSES):
        inbox.hint(
            f"pulse-{number}", seen(f"pulse-{number}", Interval(PULSES, number, now - 60), now)
        )
    inbox.hint("schedules", SchedulesListed(frozenset(), clock.monotonic() - 60))
    await asyncio.sleep(3)
    late_s.clear()

    began, given = clock.monotonic(), 0
    while given < NEWCOMERS:
        await asyncio.sleep(0.01)
        until = min(NEWCOMERS, round((clock.monotonic() - began) / ARRIVE_S * NEWCOMERS))
        for number in range(given, until):
            every_s = PERIODS_S[number % len(PERIODS_S)]
            inbox.hint(f"new-{number}", seen(f"new-{number}", Interval(every_s), int(clock.now())))
        given = max(given, until)
    while len(placed_s) < NEWCOMERS:
        await asyncio.sleep(0.05)
    took_s = clock.monotonic() - began
    await asyncio.sleep(AFTER_S)
    while_placed_s = sorted(late_s)
    arrivals = scheduler.state.arrivals
    while not arrivals.under_way:
        await asyncio.sleep(0.01)
    late_s.clear()
    began = clock.monotonic()
    while arrivals.under_way:
        await asyncio.sleep(0.01)
    improved_s = clock.monotonic() - began
    await asyncio.sleep(AFTER_S)
    loop.stop()
    await running
    while_improved_s = sorted(late_s)
    placed_s.sort()
    return {
        "latest_ms": while_placed_s[-1] * 1e3,
        "p50_ms": percentile(while_placed_s, 50) * 1e3,
        "runs": len(while_placed_s),
        "all_placed_after_s": took_s,
        "latest_while_improved_ms": while_improved_s[-1] * 1e3,
        "p50_while_improved_ms": percentile(while_improved_s, 50) * 1e3,
        "runs_while_improved": len(while_improved_s),
        "improved_after_s": improved_s,
        "one_placement_p50_ms": percentile(placed_s, 50) * 1e3,
        "one_placement_p99_ms": percentile(placed_s, 99) * 1e3,
    }


def seen(name: str, interval: Interval, now: Instant) -> ScheduleSeen:
    schedule = Schedule(
        uid=name,
        ns=f"team-{hash(name) % 20}",
        name=name,
        created=now,
        generation=1,
        timing=Timing(interval),
        template=b"{}",
        template_hash="same",
    )
    return ScheduleSeen(schedule, EMPTY)
