"""Real Pods of ScheduledJobs on a real node: what a container sees, and the ways it can end.

The operator runs on the host and serves one namespace; all schedules are applied together, due at
the same second, and each test looks at one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cluster.harness import Cluster, images
from tests.cluster.operator_process import operator
from tests.cluster.world import ENDS, World, eventually, once

Json = dict[str, Any]
PATIENCE_S = 60  # a Pod takes 2 s to run, on a machine full of tests far longer


@dataclass
class Stage:
    world: World
    ns: str
    at: str

    def kubectl(self, *arguments: str) -> str:
        return self.world.cluster.kubectl("-n", self.ns, *arguments).stdout

    def pod(self, name: str) -> Json:
        """The only Pod of the only Job of that ScheduledJob."""
        (job,) = self.world.jobs(self.ns, name)
        selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
        found = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        (pod,) = found
        return dict(pod)

    def ended(self, name: str) -> Json:
        """The run, once it has its final state."""
        rows = eventually(
            lambda: [row for row in self.world.recent(self.ns, name) if row["state"] in ENDS],
            f"{name} has a run that ended",
            within_s=PATIENCE_S,
        )
        return rows[0]


@pytest.fixture(scope="module")
def stage(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    node_cluster.install_crd()
    world = World(node_cluster)
    ns = world.namespace("pods")
    directory = tmp_path_factory.mktemp("operator")
    with operator(node_cluster.kubeconfig, directory=directory, flags=["--namespace", ns]):
        at = once(due_in=4)
        due = {"fieldRef": {"fieldPath": "metadata.annotations['evenkeel.dev/due']"}}
        greeting = container("echo", '"hello, due at $DUE"')
        greeting["env"] = [{"name": "DUE", "valueFrom": due}]
        world.create(ns, "greets", at=at, jobTemplate=template(greeting))
        failing = container("echo", "the disk is full;", "exit", "3")
        world.create(ns, "fails", at=at, jobTemplate=template(failing))
        missing = {**container("true"), "image": "nowhere.test/missing:1"}
        missing["imagePullPolicy"] = "IfNotPresent"
        world.create(ns, "stuck", at=at, jobTemplate=template(missing), pendingDeadlineSeconds=5)
        yield Stage(world, ns, at)
    world.leave([ns])
    world.close()


def test_a_pod_runs_to_its_end_and_its_log_can_be_read(stage: Stage) -> None:
    run = stage.ended("greets")

    assert (run["state"], run["due"]) == ("succeeded", stage.at)
    assert stage.world.counts(stage.ns, "greets") == {"succeeded": 1}
    pod = stage.pod("greets")
    assert pod["status"]["phase"] == "Succeeded"
    assert stage.kubectl("logs", pod["metadata"]["name"]) == f"hello, due at {stage.at}\n"


def test_a_pod_that_fails_fails_the_run_and_keeps_its_log(stage: Stage) -> None:
    run = stage.ended("fails")

    assert run["state"] == "failed"
    assert stage.world.counts(stage.ns, "fails") == {"failed": 1}
    pod = stage.pod("fails")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["exitCode"] == 3
    assert stage.kubectl("logs", pod["metadata"]["name"]) == "the disk is full\n"


def test_a_pod_whose_image_is_missing_fails_the_run_after_its_deadline(stage: Stage) -> None:
    run = stage.ended("stuck")

    assert (run["state"], run["reason"]) == ("failed", "image")
    assert stage.world.counts(stage.ns, "stuck") == {"failed": 1}


def template(one: Json) -> Json:
    pod = {"restartPolicy": "Never", "containers": [one]}
    return {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}


def container(*words: str) -> Json:
    return {
        "name": "work",
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", " ".join(words)],
    }
