"""The process around an operator: credentials, kopf's thread, the health server, signals.

`cli.run` calls `main`, and tests use `operating`. A caller that leaves `operating` without having
called `stop` and awaited `ended` ends the operator at once: creates under way are then unanswered,
and statuses unwritten.
"""

import asyncio
import math
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from evenkeel import clock as clocks
from evenkeel.app import Operator
from evenkeel.clock import Clock, SystemClock
from evenkeel.errors import CannotStart
from evenkeel.kube import credentials
from evenkeel.kube.client import KubeClient
from evenkeel.kube.crd_schema import CrdSchema
from evenkeel.kube.listener import ScheduleListener
from evenkeel.kube.surroundings import check_surroundings
from evenkeel.kube.watch import KopfThread
from evenkeel.log import log
from evenkeel.settings import Settings
from evenkeel.web.health import ALIVE_WITHIN_S, BEHIND_S, HealthServer, Signs
from evenkeel.when import zone_data_version

MORE_CONNECTIONS = 256
"""For requests that gave their places back, each of which holds a connection, and for small calls.
Where there is none left, requests of all namespaces wait for those that hang."""

PULSE_S = 0.02
"""The lag of the event loop is measured this often: 50 times a second cost 0.1 % of a core."""


async def _measure_lag(clock: Clock, observe: Callable[[float], None]) -> None:
    """Measure how late the event loop is. In contrast to the lag of steps, this measures everything
    that delays the loop, also kopf's thread while it holds the interpreter lock."""
    while True:
        expected = clock.monotonic() + PULSE_S
        await clocks.sleep(PULSE_S)
        observe(max(0.0, clock.monotonic() - expected))


def _signs(operator: Operator, api: KubeClient) -> Signs:
    behind = operator.status_sync.behind(BEHIND_S) | operator.events.behind(BEHIND_S)
    return Signs(
        listed=operator.scheduler.ready,
        idle_s=operator.clock.monotonic() - operator.loop.stepped_at,
        unanswered_s=max(reflector.unanswered_s for reflector in operator.jobs),
        silence_s=min(reflector.silence_s for reflector in operator.jobs),
        answering_s=api.answering_s,
        behind=len(behind),
    )


@asynccontextmanager
async def operating(kubeconfig: Path | None, settings: Settings) -> AsyncIterator[Operator]:
    """A running operator. Leaving the context ends it at once; call `stop` and await `ended` first
    to end it in order."""
    load = partial(credentials.load, kubeconfig)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(
            KubeClient(
                load,
                timeout_s=settings.request_timeout_s,
                # The watch of each namespace keeps one connection.
                connections=settings.creates_in_flight
                + settings.status_in_flight
                + len(settings.namespaces)
                + MORE_CONNECTIONS,
            )
        )
        served = await check_surroundings(api, settings.namespaces)
        settings = settings.model_copy(update={"namespaces": served})
        operator = Operator(api, clock, settings)
        health = await stack.enter_async_context(
            HealthServer(
                settings.health_listen,
                operator.metrics.registry,
                signs=lambda: _signs(operator, api),
                alive_within_s=ALIVE_WITHIN_S + settings.loop_interval_s,
            )
        )
        log("listening", address=health.address, zone_data=zone_data_version())
        for sentence in settings.warnings():
            log("setting", level="warning", sentence=sentence)
        loop = asyncio.get_running_loop()
        listener = ScheduleListener(
            operator.scheduler.inbox,
            hand_over=loop.call_soon_threadsafe,
            min_interval_s=settings.min_interval_s,
            namespaces=settings.namespaces,
        )
        kopf_thread = KopfThread(
            load,
            listener.see,
            namespaces=settings.namespaces,
            on_death=lambda error: loop.call_soon_threadsafe(
                operator.fail, CannotStart(f"the watch of ScheduledJobs ended: {error}")
            ),
        )
        operator.pruner.see = listener.see
        operator.status_sync.seen_version = listener.version
        schema = CrdSchema(api)
        operator.metrics.gauge(
            "evenkeel_crd_schema_match",
            "Whether the CRD in the cluster is that of this operator; NaN: it cannot be told",
            lambda: math.nan if schema.matches is None else float(schema.matches),
        )
        kopf_thread.start()
        running = asyncio.create_task(operator.run())
        beside = [
            asyncio.create_task(_measure_lag(clock, operator.metrics.pulse_s.observe)),
            asyncio.create_task(schema.run()),
        ]
        try:
            yield operator
        finally:
            for task in (running, *beside):
                task.cancel()
            await asyncio.gather(running, *beside, return_exceptions=True)
            await asyncio.to_thread(kopf_thread.stop)


async def main(kubeconfig: Path | None, settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT, which may arrive while it still starts."""
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        # First of all: a signal without a handler does not reach the first process of a container.
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    ending = asyncio.create_task(asked.wait())
    async with AsyncExitStack() as stack:
        starting = asyncio.create_task(stack.enter_async_context(operating(kubeconfig, settings)))
        await asyncio.wait([starting, ending], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            operator = starting.result()
            ending.add_done_callback(lambda _: operator.stop())
            await operator.ended
        else:
            starting.cancel()
            await asyncio.wait([starting])
    log("stopped")
