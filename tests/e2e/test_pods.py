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
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import ENDS, World, due, eventually, every, once

Json = dict[str, Any]
PATIENCE_S = 150  # a Pod takes 2 s to run, on a machine full of tests far longer


@dataclass
class Stage:
    world: World
    ns: str
    at: str
    operator: OperatorProcess

    def kubectl(self, *arguments: str) -> str:
        return self.world.cluster.kubectl("-n", self.ns, *arguments).stdout

    def pod(self, name: str) -> Json:
        """The only Pod of the only Job of that ScheduledJob."""
        (job,) = self.world.jobs(self.ns, name)
        (pod,) = self.pods(job)
        return pod

    def pods(self, job: Json) -> list[Json]:
        selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
        found = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))
        return list(found["items"])

    def running(self, name: str) -> str:
        """The name of that Pod, once it runs and its run is known to."""
        eventually(
            lambda: self.world.status(self.ns, name).get("activeCount") == 1,
            f"{name} is known to run",
            within_s=PATIENCE_S,
        )
        (job,) = self.world.jobs(self.ns, name)
        found = eventually(
            lambda: [pod for pod in self.pods(job) if pod["status"]["phase"] == "Running"],
            f"the Pod of {name} runs",
            within_s=PATIENCE_S,
        )
        return str(found[0]["metadata"]["name"])

    def ended(self, name: str, state: str = "") -> Json:
        """The run, once it has its final state: this one, if it is named."""
        ends = (state,) if state else ENDS
        rows = eventually(
            lambda: [row for row in self.world.recent(self.ns, name) if row["state"] in ends],
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
    with operator(
        node_cluster.kubeconfig,
        directory=directory,
        flags=["--namespace", ns],
        settings={"POD_START_WARNING": "15"},
    ) as running:
        at = once(due_in=15)
        of_due = {"fieldRef": {"fieldPath": "metadata.annotations['evenkeel.dev/due']"}}
        greeting = container("echo", '"hello, due at $DUE"')
        greeting["env"] = [{"name": "DUE", "valueFrom": of_due}]
        world.create(ns, "greets", at=at, jobTemplate=template(greeting))
        failing = container("echo", "the disk is full;", "exit", "3")
        world.create(ns, "fails", at=at, jobTemplate=template(failing))
        missing = {**container("true"), "image": "nowhere.test/missing:1"}
        missing["imagePullPolicy"] = "IfNotPresent"
        # On a busy machine it takes its time until the node has tried to pull the image.
        world.create(ns, "stuck", at=at, jobTemplate=template(missing), pendingDeadlineSeconds=40)
        world.create(ns, "replaced", at=at, jobTemplate=template(until_told(), backoffLimit=1))
        for name, spec in ENDS_BADLY.items():
            world.create(ns, name, at=at, jobTemplate=spec)
        yield Stage(world, ns, at, running)
    world.leave([ns])
    world.close()


def test_a_pod_runs_to_its_end_and_its_log_can_be_read(stage: Stage) -> None:
    run = stage.ended("greets")

    assert (run["state"], run["due"]) == ("succeeded", stage.at)
    assert stage.world.counts(stage.ns, "greets") == {"succeeded": 1}
    status = stage.world.status(stage.ns, "greets")
    (job,) = stage.world.jobs(stage.ns, "greets")
    assert status["lastScheduleTime"] == stage.at
    assert status["lastSuccessfulTime"] == job["status"]["completionTime"]
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
    said = f"the run due {stage.at}: its Pod cannot start: image nowhere.test/missing:1"
    events = eventually(
        lambda: stage.world.events(stage.ns, "stuck", "PodNotStarted"), "it was told before"
    )
    assert any(said in event["message"] for event in events), events


# What a run says that failed: reason of the Job, exit code and reason of the container, and a part
# of the sentence of its Event. Kubernetes deletes the Pod of a Job that took too long.
WHY = {
    "fails": ("BackoffLimitExceeded", 3, "Error", "container work exited with code 3 (Error)"),
    "hungry": ("BackoffLimitExceeded", 137, "OOMKilled", "exited with code 137 (OOMKilled)"),
    "speaks": ("BackoffLimitExceeded", 4, "Error", "code 4 (Error): no key for the vault"),
    "logs": ("BackoffLimitExceeded", 5, "Error", "code 5 (Error): the disk is full"),
    "slow": ("DeadlineExceeded", None, None, "DeadlineExceeded: Job was active longer than"),
    "restarts": ("BackoffLimitExceeded", 6, "Error", "container work exited with code 6 (Error)"),
}


@pytest.mark.parametrize("name", WHY)
def test_a_failed_run_says_why_in_its_status_its_event_and_the_log(stage: Stage, name: str) -> None:
    reason, code, word, sentence = WHY[name]
    run = stage.ended(name, "failed")

    assert run["reason"] == reason
    if name == "slow":  # killed, if its Pod was seen before it went
        assert (run.get("exitCode"), run.get("exitReason")) in ((None, None), (137, "Error"))
    else:
        assert (run["exitCode"], run["exitReason"]) == (code, word)
    described = eventually(
        lambda: (text := stage.kubectl("describe", "sj", name)) and "RunFailed" in text and text,
        f"the Event of {name}",
    )
    assert sentence in " ".join(described.split())
    key = f"{stage.ns}/{name}"
    (line,) = [line for line in stage.operator.events("run failed") if line["schedule"] == key]
    assert line["reason"] == reason
    assert (line.get("exit_code"), line.get("exit_reason")) == (
        run.get("exitCode"),
        run.get("exitReason"),
    )
    assert "vault" not in stage.operator.text()
    assert stage.world.condition(stage.ns, name, "Ready")["status"] == "True"
    stalled = stage.world.status(stage.ns, name)["conditions"]
    assert "Stalled" not in [condition["type"] for condition in stalled]


def test_a_pod_deleted_by_hand_is_replaced_by_its_job_and_the_run_is_still_one(
    stage: Stage,
) -> None:
    first = stage.running("replaced")
    told = {"metadata": {"name": "told"}, "data": {"end": "yes"}}
    stage.world.call("POST", f"/api/v1/namespaces/{stage.ns}/configmaps", told)

    stage.kubectl("delete", "pod", first, "--wait=false")

    run = stage.ended("replaced")
    assert (run["state"], run["due"], run["attempt"]) == ("succeeded", stage.at, 1)
    assert stage.world.counts(stage.ns, "replaced") == {"succeeded": 1}
    (job,) = stage.world.jobs(stage.ns, "replaced")
    assert (job["status"]["succeeded"], job["status"]["failed"]) == (1, 1)
    assert run["job"] == job["metadata"]["name"]


def test_a_job_deleted_by_hand_is_lost_with_its_pod_and_a_later_run_takes_its_place(
    stage: Stage,
) -> None:
    hangs = template(container("sleep", "3600"))
    rule = {"interval": every(10), "concurrencyPolicy": "Forbid"}
    stage.world.create(stage.ns, "removed", **rule, jobTemplate=hangs)
    pod = stage.running("removed")
    (job,) = stage.world.jobs(stage.ns, "removed")

    stage.kubectl("delete", "job", job["metadata"]["name"], "--wait=false")

    run = stage.ended("removed", "lost")
    assert (run["due"], run["reason"]) == (due(job), "job_deleted")
    eventually(
        lambda: [each for each in stage.world.jobs(stage.ns, "removed") if due(each) > due(job)],
        "a later run takes its place",
        within_s=PATIENCE_S,
    )
    assert stage.world.counts(stage.ns, "removed")["lost"] == 1
    eventually(lambda: pod not in stage.kubectl("get", "pods", "-o", "name"), "its Pod is gone")


def template(one: Json, *, restarts: str = "Never", **job: Any) -> Json:
    pod = {"restartPolicy": restarts, "containers": [one], "terminationGracePeriodSeconds": 1}
    return {"spec": {"backoffLimit": 0, **job, "template": {"spec": pod}}}


def until_told() -> Json:
    """A container that ends only if there was a certain ConfigMap when it began."""
    told = {"configMapKeyRef": {"name": "told", "key": "end", "optional": True}}
    one = container('test "$END" || sleep 3600')
    return {**one, "env": [{"name": "END", "valueFrom": told}]}


def container(*words: str) -> Json:
    return {
        "name": "work",
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", " ".join(words)],
    }


HUNGRY = {"resources": {"limits": {"memory": "16Mi"}}}
LOGS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
SPEAKING = "echo 'no key for the vault' > /dev/termination-log; exit 4"

ENDS_BADLY = {
    "hungry": template({**container("tail /dev/zero"), **HUNGRY}),
    "speaks": template(container(SPEAKING)),
    "logs": template({**container("echo the disk is full; exit 5"), **LOGS}),
    "slow": template(container("sleep 3600"), activeDeadlineSeconds=5),
    "restarts": template(container("exit 6"), restarts="OnFailure", backoffLimit=1),
}
