"""The seven alerts, each provoked for real and judged by Prometheus' promtool.

What is real: the API server, the operators, what happens to them, and every value of every series,
as scraped. What is laid out: the time. The scrapes of some seconds stand on a time line of an hour
and a half, the first for five minutes, the last to the end; of a watch that is silent the silence
goes on growing there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cluster.fault_proxy import Call, Fault, Silent, fault_proxy
from tests.cluster.metrics_reader import reader
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import (
    TooLateError,
    World,
    eventually,
    every,
    moment,
    seconds,
    template,
)
from tests.promtool import Story

from evenkeel.web.schedule_metrics import PATH

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}

LATE_S = 66
"""A run is late after a minute."""

QUIET_S = 300
"""On the time line: before it happens."""

MINUTE_S = 60
LASTS_S = QUIET_S + 75 * MINUTE_S

MISSED = {"alertname": "EvenkeelRunsMissed", "reason": "superseded"}
LATE = {"alertname": "EvenkeelRunsLate", "cause": "restart"}
DEAF = {"alertname": "EvenkeelOperatorDeaf"}
BEHIND = {"alertname": "EvenkeelLedgerBehind"}

NOBODY = "postgresql://evenkeel@127.0.0.1:1/history"
"""A store that nobody answers for."""


@dataclass(frozen=True)
class Scraped:
    """What an operator answered before and after it happened: /metrics and /metrics/schedules."""

    before: tuple[str, str]
    after: tuple[str, str]


@dataclass(frozen=True)
class Stage:
    ns: str
    lively: Scraped
    """An operator that sees all that users do wrong."""
    missing: Scraped
    """An operator that was away when runs were due, and whose watch of Jobs is silent."""
    behind: Scraped
    """An operator whose ledger is not written."""


@pytest.fixture(scope="module")
def stage(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("alerts")
    away, ns = world.namespace("alerts-away"), world.namespace("alerts")
    empty = world.namespace("alerts-empty")
    world.create(away, "missed", interval=every(10))
    due_at = create_due_soon(world, away)
    with ExitStack() as stack:
        token = stack.enter_context(reader(world, ns))
        lively = provoke(stack, world, ns, token, directory)
        behind = write_no_ledger(stack, world, empty, directory)
        time.sleep(max(0.0, due_at + LATE_S - time.time()))
        missing = come_back(stack, world, away, token, directory)
        yield Stage(ns, lively, missing, Scraped(lively.before, behind))
    world.leave([away, ns, empty])


def create_due_soon(world: World, ns: str) -> float:
    """When `late` is due. Where it was created too late for that, nothing would be."""
    for first_in in (3, 10, 30):
        rule = every(3600, first_in=first_in)
        due_at = seconds(rule["anchor"]) + 3600
        try:
            world.create(ns, "late", interval=rule, endTime=moment(due_at + 1))
        except TooLateError:
            world.delete(ns, "late")
            continue
        return due_at
    raise AssertionError("the machine is too busy to create a schedule within half a minute")


def provoke(stack: ExitStack, world: World, ns: str, token: str, directory: Path) -> Scraped:
    running = stack.enter_context(
        operator(
            world.cluster.kubeconfig,
            directory=directory,
            settings=SETTINGS,
            flags=("--namespace", ns),
            name="lively",
        )
    )
    world.create(ns, "works", interval=every(3600))
    eventually(lambda: 'schedule="works"' in scrape(running, token)[1], "it is read")
    before = scrape(running, token)
    fails = template(fate="fail")
    hangs = template(fate="hang")
    world.create(ns, "fails", interval=every(1), jobTemplate=fails)
    world.create(ns, "pauses", interval=every(1), jobTemplate=fails, pauseAfterFailures=1)
    world.create(ns, "impossible", schedule="0 0 31 2 *")
    world.create(ns, "template", schedule="@yearly", jobTemplate=refused_by_the_api_server())
    world.create(ns, "hangs", interval=every(1), jobTemplate=hangs, concurrencyPolicy="Forbid")

    def happened() -> bool:
        text = scrape(running, token)[1]
        return all(
            value_of(text, name, schedule) >= least
            for name, schedule, least in (
                ("consecutive_failures", "fails", 3),
                ("paused", "pauses", 1),
                ("stalled", "impossible", 1),
                ("stalled", "template", 1),
                ("due_times_without_success", "hangs", 2),
            )
        )

    eventually(happened, "all of it has happened", every_s=1)
    return Scraped(before, scrape(running, token))


def come_back(stack: ExitStack, world: World, ns: str, token: str, directory: Path) -> Scraped:
    def rule(call: Call) -> Fault | None:
        return Silent() if call.path.endswith("/jobs") and call.is_watch else None

    proxy = stack.enter_context(fault_proxy(world.cluster, directory=directory))
    proxy.rule = rule
    running = stack.enter_context(
        operator(
            proxy.kubeconfig,
            directory=directory,
            settings=SETTINGS,
            flags=("--namespace", ns),
            name="missing",
        )
    )
    held = "evenkeel_runs_missed_not_yet_counted"
    missed = 'evenkeel_runs_missed_total{reason="superseded"}'
    first, text = running.metrics(), running.get("/metrics")[1]
    assert (first[missed], first[held] >= 3) == (0, True)
    eventually(lambda: running.metrics()[missed] >= 3, "what was missed is counted")
    assert running.metrics()[held] == 0
    eventually(lambda: late_runs(running) >= 1, "the run that was late is counted")
    eventually(
        lambda: running.metrics()["evenkeel_watch_silence_seconds"] > 3, "the watch is silent"
    )
    # This proxy's operator has no certificate to ask with: who may read is not asked here.
    return Scraped((text, ""), (running.get("/metrics")[1], ""))


def write_no_ledger(stack: ExitStack, world: World, ns: str, directory: Path) -> tuple[str, str]:
    running = stack.enter_context(
        operator(
            world.cluster.kubeconfig,
            directory=directory,
            settings={**SETTINGS, "STORE_URL": NOBODY},
            flags=("--namespace", ns),
            name="behind",
        )
    )
    eventually(lambda: running.metrics()["evenkeel_ledger_degraded"], "the store is away")
    return running.get("/metrics")[1], ""


def late_runs(running: OperatorProcess) -> float:
    """By more than a minute, because of a restart."""
    found, family = running.metrics(), "evenkeel_run_delay_seconds"
    in_time = found[f'{family}_bucket{{cause="restart",le="60.0"}}']
    return found[f'{family}_count{{cause="restart"}}'] - in_time


def scrape(running: OperatorProcess, token: str) -> tuple[str, str]:
    status, by_schedule = running.get(PATH, token=token)
    assert status == 200, by_schedule
    return running.get("/metrics")[1], by_schedule


def value_of(text: str, name: str, schedule: str) -> float:
    found = [line for line in text.splitlines() if line.startswith(f"evenkeel_schedule_{name}{{")]
    values = [line.split()[-1] for line in found if f'schedule="{schedule}"' in line]
    return float(values[0]) if values else -1


def refused_by_the_api_server() -> dict[str, object]:
    """No schema can know it: the volume that is mounted is not there."""
    mount = {"name": "nothing", "mountPath": "/nothing"}
    container = {"name": "main", "image": "busybox", "volumeMounts": [mount]}
    return template(pod={"restartPolicy": "Never", "containers": [container]})


def laid_out(scraped: Scraped, *, growing: tuple[str, ...] = ()) -> Story:
    story = Story(LASTS_S, growing)
    story.add(0, *scraped.before)
    story.add(QUIET_S, *scraped.after)
    return story


def test_what_people_do_wrong_raises_the_alerts_that_name_their_schedules(
    stage: Stage, tmp_path: Path
) -> None:
    def of(alert: str, *schedules: str) -> list[dict[str, str]]:
        return [
            {"alertname": alert, "namespace": stage.ns, "schedule": schedule}
            for schedule in schedules
        ]

    failing = of("EvenkeelScheduleFailing", "fails", "pauses")
    stopped = of("EvenkeelScheduleRefusedOrPaused", "impossible", "pauses", "template")
    silent = of("EvenkeelScheduleSilent", "fails", "hangs")

    story = laid_out(stage.lively)
    story.expect(QUIET_S - 15)
    story.expect(QUIET_S + 15, *failing)
    story.expect(QUIET_S + 4 * MINUTE_S, *failing)
    story.expect(QUIET_S + 6 * MINUTE_S, *failing, *stopped)
    story.expect(QUIET_S + 59 * MINUTE_S, *failing, *stopped)
    story.expect(QUIET_S + 61 * MINUTE_S, *failing, *stopped, *silent)
    story.judge(tmp_path)


def test_what_happened_while_the_operator_was_away_raises_alerts(
    stage: Stage, tmp_path: Path
) -> None:
    story = laid_out(stage.missing)
    story.expect(QUIET_S - 15)
    story.expect(QUIET_S + 15, MISSED, LATE)
    story.expect(QUIET_S + 14 * MINUTE_S, MISSED, LATE)
    story.expect(QUIET_S + 16 * MINUTE_S)
    story.judge(tmp_path)


def test_an_operator_that_hears_nothing_raises_an_alert(stage: Stage, tmp_path: Path) -> None:
    story = laid_out(stage.missing, growing=("evenkeel_watch_silence_seconds",))
    story.expect(QUIET_S + MINUTE_S, MISSED, LATE)
    story.expect(QUIET_S + 5 * MINUTE_S, MISSED, LATE, DEAF)
    story.judge(tmp_path)


def test_an_operator_that_is_gone_raises_an_alert(stage: Stage, tmp_path: Path) -> None:
    story = laid_out(Scraped(stage.lively.before, stage.lively.before))
    story.gone(QUIET_S + MINUTE_S)
    story.expect(QUIET_S + MINUTE_S)
    story.expect(QUIET_S + 10 * MINUTE_S, DEAF)
    story.judge(tmp_path)


def test_a_ledger_that_is_not_written_raises_an_alert(stage: Stage, tmp_path: Path) -> None:
    story = laid_out(stage.behind)
    story.expect(QUIET_S + 4 * MINUTE_S)
    story.expect(QUIET_S + 6 * MINUTE_S, BEHIND)
    story.judge(tmp_path)
