"""/metrics/schedules of a running operator: who may read it, by an API server, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cluster.harness import Cluster
from tests.cluster.metrics_reader import RBAC, reader
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import World, eventually, every, seconds, template
from tests.docs.words import said

from evenkeel.web.schedule_metrics import PATH

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}


@dataclass(frozen=True)
class Stage:
    world: World
    ns: str
    running: OperatorProcess
    token: str
    """Of somebody who may."""
    other: str
    """Of somebody who may not."""

    def series(self) -> dict[tuple[str, str], float]:
        """By the family's last words and the schedule; of a label `state` or `result` its value."""
        status, text = self.running.get(PATH, token=self.token)
        assert status == 200, text
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.labels["namespace"] == self.ns and "schedule" in sample.labels:
                    word = sample.labels.get("state") or sample.labels.get("result") or ""
                    name = sample.name.removeprefix("evenkeel_schedule_")
                    found[f"{name} {word}".strip(), sample.labels["schedule"]] = sample.value
        return found


@pytest.fixture(scope="module")
def stage(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("schedule-metrics")
    ns = world.namespace("schedule-metrics")
    world.create(ns, "works", interval=every(2))
    world.create(ns, "fails", interval=every(2), jobTemplate=template(fate="fail"))
    world.create(ns, "impossible", schedule="0 0 31 2 *")
    world.create(ns, "suspended", schedule="@daily", suspend=True)
    with ExitStack() as stack:
        token = stack.enter_context(reader(world, ns))
        flags = ("--namespace", ns)
        running = stack.enter_context(
            operator(world.cluster.kubeconfig, directory=directory, settings=SETTINGS, flags=flags)
        )
        yield Stage(world, ns, running, token, world.token(ns, "somebody"))
    world.leave([ns])


def test_the_holder_of_the_right_reads_it_and_nobody_else(stage: Stage) -> None:
    """The operator itself, an administrator with a certificate, must not speak for the caller."""
    eventually(
        lambda: stage.running.get(PATH, token=stage.token)[0] == 200, "the right is in force"
    )
    assert stage.running.get(PATH)[0] == 401
    assert stage.running.get(PATH, token="nobody's")[0] == 401
    status, text = stage.running.get(PATH, token=stage.other)
    assert (status, "works" in text) == (403, False)
    assert stage.token not in stage.running.text()


def test_the_command_of_the_documentation_gives_the_right(
    stage: Stage, kwok_cluster: Cluster
) -> None:
    world = stage.world
    said("metrics by schedule", kwok_cluster)
    try:
        bound = world.get(f"{RBAC}/clusterrolebindings/prometheus-evenkeel")
        assert bound["roleRef"]["name"] == "evenkeel-metrics"
    finally:
        world.call("DELETE", f"{RBAC}/clusterrolebindings/prometheus-evenkeel")


def test_an_administrator_gives_the_right_where_the_chart_cannot(
    stage: Stage, kwok_cluster: Cluster
) -> None:
    world = stage.world
    world.call("POST", "/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
    said("right to metrics", kwok_cluster)
    try:
        token = world.token("monitoring", "prometheus")
        eventually(lambda: stage.running.get(PATH, token=token)[0] == 200, "it may")
    finally:
        for kind in ("clusterrolebindings", "clusterroles"):
            world.call("DELETE", f"{RBAC}/{kind}/evenkeel-schedule-metrics")
        world.leave(["monitoring"])


def test_a_schedule_that_works_says_when_it_succeeded(stage: Stage) -> None:
    eventually(lambda: stage.series().get(("last_result succeeded", "works")), "it has succeeded")
    eventually(lambda: stage.world.status(stage.ns, "works").get("lastSuccessfulTime"), "stored")
    found = stage.series()
    created = stage.world.schedule(stage.ns, "works")["metadata"]["creationTimestamp"]
    assert found["last_success_timestamp_seconds", "works"] >= seconds(created)
    assert found["next_run_timestamp_seconds", "works"] > seconds(created)
    assert found["expected_period_seconds", "works"] == 2
    assert found["consecutive_failures", "works"] == 0


def test_a_schedule_that_fails_says_how_often(stage: Stage) -> None:
    eventually(
        lambda: stage.series()["consecutive_failures", "fails"] >= 2, "it has failed twice in a row"
    )
    found = stage.series()
    assert found["due_times_without_success", "fails"] >= 2
    assert ("last_success_timestamp_seconds", "fails") not in found


def test_schedules_that_do_nothing_say_why(stage: Stage) -> None:
    eventually(lambda: stage.series().get(("state Refused", "impossible")) == 1, "it is refused")
    eventually(lambda: stage.series().get(("state Suspended", "suspended")) == 1, "it is suspended")
    found = stage.series()
    assert (found["stalled", "impossible"], found["stalled", "suspended"]) == (1, 0)
    assert ("next_run_timestamp_seconds", "suspended") not in found
    metrics = stage.running.metrics()
    assert metrics['evenkeel_schedules{state="Refused"}'] == 1
    assert metrics['evenkeel_schedules{state="Suspended"}'] == 1
    assert metrics['evenkeel_schedules{state="Paused"}'] == 0


def test_off_is_off(stage: Stage, tmp_path: Path) -> None:
    settings = SETTINGS | {"METRICS_SCHEDULES": "Off"}
    flags = ("--namespace", stage.ns)
    kubeconfig = stage.world.cluster.kubeconfig
    with operator(kubeconfig, directory=tmp_path, settings=settings, flags=flags) as running:
        assert running.get(PATH, token=stage.token)[0] == 404
