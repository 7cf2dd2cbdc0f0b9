"""Requested runs as real Pods: what their containers see, and what kubectl says of those that fail.

The operator runs on the host and serves one namespace; both requests are created together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.cluster.harness import Cluster, images
from tests.cluster.operator_process import operator
from tests.cluster.printed import flat
from tests.cluster.requests import Requests, condition_of
from tests.cluster.world import World, eventually

Json = dict[str, Any]
PATIENCE_S = 240  # a Pod takes 2 s to run, on a machine full of tests far longer
TUESDAY = "2026-01-06T03:00:00Z"
LITERAL = "$(SECRET) $$ $SECRET"
SHOW = 'echo "$REGION|$DEPTH|$NOTE|$DUE|$REQUEST"'


@dataclass
class Stage:
    requests: Requests

    def kubectl(self, *arguments: str) -> str:
        return self.requests.world.cluster.kubectl("-n", self.requests.ns, *arguments).stdout

    def ended(self, name: str, state: str) -> Json:
        return self.requests.ended(name, state, within_s=PATIENCE_S)

    def pod(self, name: str) -> str:
        """The name of the only Pod of the request's only Job."""
        (job,) = self.requests.jobs(name)
        selector = f"batch.kubernetes.io/job-name={job['metadata']['name']}"
        (pod,) = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        return str(pod["metadata"]["name"])


@pytest.fixture(scope="module")
def stage(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    node_cluster.install_crd()
    world = World(node_cluster)
    ns = world.namespace("requested")
    directory = tmp_path_factory.mktemp("operator")
    with operator(node_cluster.kubeconfig, directory=directory, flags=["--namespace", ns]):
        requests = Requests(world, ns)
        parameters = [
            {"name": "REGION", "value": "north", "enum": ["north", "south"]},
            {"name": "DEPTH", "value": "3"},
            {"name": "NOTE", "value": ""},
        ]
        pod = {
            "initContainers": [container("first", SHOW)],
            "containers": [container("work", SHOW)],
        }
        rare = {"schedule": "0 0 1 1 *"}
        world.create(ns, "shows", **rare, parameters=parameters, jobTemplate=template(pod))
        given = [{"name": "REGION", "value": "south"}, {"name": "NOTE", "value": LITERAL}]
        requests.create("shows-tuesday", "shows", at=TUESDAY, parameters=given)
        failing = {"containers": [container("work", "echo no room left; exit 3")]}
        world.create(ns, "fails", **rare, jobTemplate=template(failing))
        requests.create("fails-tuesday", "fails", at=TUESDAY)
        yield Stage(requests)
    world.leave([ns])
    world.close()


@pytest.mark.parametrize("name", ["first", "work"])
def test_a_container_sees_the_values_and_the_due_time_that_were_asked_for(
    stage: Stage, name: str
) -> None:
    stage.ended("shows-tuesday", "Succeeded")

    told = stage.kubectl("logs", stage.pod("shows-tuesday"), "-c", name)

    assert told == f"south|3|{LITERAL}|{TUESDAY}|shows-tuesday\n"


def test_describe_says_which_requested_run_failed_and_why(stage: Stage) -> None:
    status = stage.ended("fails-tuesday", "Failed")

    (row,) = status["recent"]
    assert (row["due"], row["state"]) == (TUESDAY, "failed")
    assert (row["exitCode"], row["exitReason"]) == (3, "Error")
    assert condition_of(status, "Failed")["reason"] == "RunsFailed"
    described = eventually(
        lambda: (text := flat(stage.kubectl("describe", "rr", "fails-tuesday"))) and text,
        "its description",
    )
    for words in (TUESDAY, "RunsFailed", "Exit Code: 3", "Exit Reason: Error"):
        assert words in described
    assert eventually(
        lambda: [
            event
            for event in stage.requests.events("fails-tuesday", "Failed")
            if "failed" in event["message"]
        ],
        "its Event",
    )


def container(name: str, script: str) -> Json:
    """It has variables of its own: one whose text no parameter may pull in, and two of the Pod."""
    notes = {"DUE": "evenkeel.dev/due", "REQUEST": "evenkeel.dev/request"}
    return {
        "name": name,
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "env": [
            {"name": "SECRET", "value": "hidden"},
            {"name": "REGION", "value": "of the template"},
            *(
                {
                    "name": variable,
                    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}},
                }
                for variable, key in notes.items()
            ),
        ],
    }


def template(pod: Json) -> Json:
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **pod}
    return {"spec": {"backoffLimit": 0, "template": {"spec": spec}}}
