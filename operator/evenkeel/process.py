"""The process around an operator: credentials, kopf's thread, the health server, signals.

`cli.run` calls `main`, and tests use `operating`. A caller that leaves `operating` without having
called `stop` and awaited `ended` ends the operator at once: creates under way are then unanswered,
and statuses unwritten.
"""

import asyncio
import math
import os
import platform
import resource
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from evenkeel import clock as clocks
from evenkeel.app import Operator
from evenkeel.clock import Clock, SystemClock
from evenkeel.core.messages import ResourceRemoved
from evenkeel.kube import credentials
from evenkeel.kube.client import KubeClient
from evenkeel.kube.crd_schema import CrdSchema
from evenkeel.kube.listener import RequestListener, ScheduleListener
from evenkeel.kube.resource_watch import ResourceWatch, Watched
from evenkeel.kube.reviews import Reviews
from evenkeel.kube.surroundings import check_surroundings
from evenkeel.ledger import open_store, where
from evenkeel.ledger.first_try import FirstTry
from evenkeel.ledger.opening import NONE
from evenkeel.log import log
from evenkeel.settings import Settings
from evenkeel.web import schedule_metrics
from evenkeel.web.access import Access, Decision
from evenkeel.web.health import ALIVE_WITHIN_S, BEHIND_S, HealthServer, Signs
from evenkeel.web.metrics import Metrics
from evenkeel.web.schedule_metrics import handler
from evenkeel.when import zone_data_version

MORE_CONNECTIONS = 256
"""For requests that gave their places back, each of which holds a connection, and for small calls.
Where there is none left, requests of all namespaces wait for those that hang."""

MOST_FILES = 1_048_576
"""Programs that print credentials inherit the limit, and some close each file there might be."""

PULSE_S = 0.02
"""The lag of the event loop is measured this often: 50 times a second cost 0.1 % of a core."""


async def _measure_lag(clock: Clock, observe: Callable[[float], None]) -> None:
    """Measure how late the event loop is. In contrast to the lag of steps, this measures everything
    that delays the loop, also kopf's thread while it holds the interpreter lock."""
    while True:
        expected = clock.monotonic() + PULSE_S
        await clocks.sleep(PULSE_S)
        observe(max(0.0, clock.monotonic() - expected))


def _signs(operator: Operator | None, api: KubeClient, watch: ResourceWatch) -> Signs:
    if operator is None:
        return Signs(listed=False, idle_s=0.0, installed=watch.installed)
    writers = (operator.status_sync, operator.request_sync, operator.events)
    behind = set[str]().union(*(writer.behind(BEHIND_S) for writer in writers))
    return Signs(
        listed=operator.scheduler.ready,
        idle_s=operator.clock.monotonic() - operator.loop.stepped_at,
        unanswered_s=max(reflector.unanswered_s for reflector in operator.jobs),
        silence_s=min(reflector.silence_s for reflector in operator.jobs),
        answering_s=api.answering_s,
        behind=len(behind),
        installed=watch.installed,
        schedules_unanswered_s=watch.unanswered_s,
        schedules_silence_s=watch.silence_s,
    )


async def _review(reviews: Reviews, token: str) -> Decision:
    try:
        allowed = await reviews.may_get(schedule_metrics.PATH, token)
    except OSError:
        return Decision.AWAY
    if allowed is None:
        return Decision.UNKNOWN
    return Decision.ALLOWED if allowed else Decision.REFUSED


async def _begin_ledger(settings: Settings, stack: AsyncExitStack) -> FirstTry | None:
    """Say what is kept where, and begin to open the store; None: there is none."""
    url = where.url_of(settings)
    if url == NONE:
        asked = settings.store_url == NONE
        log(
            "ledger",
            level="info" if asked else "warning",
            store=NONE,
            keeps="nothing but what the status of each ScheduledJob tells",
            why="" if asked else f"{where.data_folder(settings)} cannot be written",
        )
        return None
    log(
        "ledger",
        store=where.shown(url),
        keeps=f"each run for {settings.store_retention_days:g} days, at most "
        f"{settings.store_retention_runs} of one schedule, and counts of older ones",
    )
    first_try = FirstTry(partial(open_store, url))
    stack.push_async_callback(first_try.close)
    await first_try.begin()
    return first_try


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
                # The watch of Jobs keeps one connection for each namespace.
                connections=settings.creates_in_flight
                + 2 * settings.status_in_flight  # of schedules, and of requests
                + len(settings.namespaces)
                + MORE_CONNECTIONS,
            )
        )
        metrics, watch = Metrics(monotonic=clock.monotonic), ResourceWatch(api, load)
        reviews = Reviews(lambda: api.credentials, timeout_s=settings.request_timeout_s)
        stack.push_async_callback(reviews.close)
        access = Access(partial(_review, reviews), monotonic=clock.monotonic)
        operator: Operator | None = None
        # First of all, so that probes tell what it waits for.
        health = await stack.enter_async_context(
            HealthServer(
                settings.health_listen,
                metrics.registry,
                signs=lambda: _signs(operator, api, watch),
                scraped=metrics.counts.was_scraped,
                more={
                    schedule_metrics.PATH: handler(
                        lambda: operator.schedule_metrics if operator else None, access
                    )
                },
                alive_within_s=ALIVE_WITHIN_S + settings.loop_interval_s,
            )
        )
        log("listening", address=health.address, zone_data=zone_data_version())
        ledger = await _begin_ledger(settings, stack)
        await watch.wait_until_installed(settings.namespaces)
        served = await check_surroundings(api, settings.namespaces)
        settings = settings.model_copy(update={"namespaces": served})
        process = f"{platform.node()}-{os.getpid()}"
        operator = Operator(api, clock, settings, metrics, ledger, process=process)
        for sentence in settings.warnings():
            log("setting", level="warning", sentence=sentence)
        schema = CrdSchema(api)
        metrics.crd_schema_match.set_function(
            lambda: math.nan if schema.matches is None else float(schema.matches)
        )
        metrics.schedules_watch_silence_s.set_function(lambda: watch.silence_s)
        watching = asyncio.create_task(watch.run(served, *_watched(operator, settings)))
        watching.add_done_callback(partial(_end, operator))
        running = asyncio.create_task(operator.run())
        beside = [
            asyncio.create_task(_measure_lag(clock, operator.metrics.pulse_s.observe)),
            asyncio.create_task(schema.run()),
            watching,
        ]
        try:
            yield operator
        finally:
            for task in (running, *beside):
                task.cancel()
            await asyncio.gather(running, *beside, return_exceptions=True)


def _watched(operator: Operator, settings: Settings) -> tuple[Watched, Watched]:
    """Who is told of ScheduledJobs, and who of RunRequests."""
    inbox, hand_over = operator.scheduler.inbox, asyncio.get_running_loop().call_soon_threadsafe
    schedules = ScheduleListener(
        inbox,
        hand_over=hand_over,
        min_interval_s=settings.min_interval_s,
        namespaces=settings.namespaces,
    )
    requests = RequestListener(inbox, hand_over=hand_over, namespaces=settings.namespaces)

    def schedules_removed() -> None:
        schedules.forget_all()
        inbox.hint("removed", ResourceRemoved())

    def requests_removed() -> None:
        requests.forget_all()
        operator.request_pruner.list_soon()  # it finds none, and says so

    operator.pruner.see = schedules.see
    operator.status_sync.seen_version = schedules.version
    operator.request_pruner.see = requests.see
    operator.request_sync.seen_version = requests.version
    return (
        Watched(schedules.see, removed=schedules_removed, returned=operator.pruner.list_soon),
        Watched(requests.see, removed=requests_removed, returned=operator.request_pruner.list_soon),
    )


def _end(operator: Operator, watching: asyncio.Task[None]) -> None:
    """Without its watch of our resources the operator would be blind."""
    if not watching.cancelled() and (error := watching.exception()) is not None:
        operator.fail(error)


def raise_file_limit() -> None:
    """Raise the soft limit of open files to the hard one. containerd leaves it at 1,024, for
    programs that use select(); a herd of creates beside a crowd of scrapers may need more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if resource.RLIM_INFINITY in (soft, wanted) or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        log("limit of open files not raised", level="warning", soft=soft, error=str(error))
        return
    log("limit of open files raised", before=soft, now=wanted)


async def main(kubeconfig: Path | None, settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT, which may arrive while it still starts."""
    raise_file_limit()
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
