"""`evenkeel load` of what kubectl reads from a cluster shows the load that the operator has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import World, eventually, manifest

from evenkeel.cli.load import load


@pytest.fixture
def running(world: World, namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    with operator(
        world.cluster.kubeconfig, directory=tmp_path, flags=("--namespace", namespace)
    ) as found:
        yield found


def test_load_shows_the_load_of_a_live_cluster(
    kwok_cluster: Cluster, world: World, namespace: str, running: OperatorProcess
) -> None:
    """The anchors of the statuses, and the figures of /metrics."""
    specs: list[dict[str, Any]] = [
        *[
            {"interval": {"every": f"{n % 6 + 1}h"}, "placement": {"weight": n % 4 + 1}}
            for n in range(24)
        ],
        *[{"schedule": "0 */2 * * *"} for _ in range(3)],
        {"interval": {"every": "1h"}, "suspend": True},
    ]
    objects = [manifest(f"job-{n}", **spec) for n, spec in enumerate(specs)]
    kwok_cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(objects))

    def agrees() -> bool:
        shown = running.metrics()
        text = kwok_cluster.kubectl("get", "sj,cj", "-n", namespace, "-o", "yaml").stdout
        items = yaml.safe_load(text)["items"]
        result = click.testing.CliRunner().invoke(load, ["-f", "-", "-o", "json"], input=text)
        assert result.exit_code == 0
        assert result.stderr == f"suspended, so never due: {namespace}/job-27\n"
        found = json.loads(result.stdout)
        anchors = {
            f"{namespace}/{each['metadata']['name']}": each["status"]["placement"]["anchor"]
            for each in items
            if "placement" in each.get("status", {})
        }
        assert len(anchors) == 24
        assert {each["schedule"]: each["anchor"] for each in found["placements"]} == anchors
        assert found["one_by_one"]["slots"] == found["slots"]
        return (
            found["distribution_score"] == pytest.approx(shown["scheduler_distribution_score"])
            and found["busiest_minute"]["starts"] == shown["evenkeel_busiest_minute_starts"]
            and found["busiest_second"]["starts"] == shown["evenkeel_busiest_second_starts"]
        )

    # The picture that /metrics shows is at most five seconds old, and the set moves once meanwhile.
    eventually(agrees, "load and /metrics agree", every_s=1, within_s=180)
