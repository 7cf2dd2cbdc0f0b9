"""Kubernetes' own specs of CronJob, against ScheduledJobs: as the documentation says of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.e2e.cronjob_specs import give_image, run, scheduled_jobs, specs, table

PAGE = Path(__file__).parents[2] / "docs" / "cronjob.md"
_ROW = re.compile(r"^\| `(.+)` \| (passes|cannot pass)", re.MULTILINE)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_kubernetes_own_specs_of_cronjob_pass_as_far_as_a_custom_resource_can(
    node_cluster: Cluster, cronjob_specs: Path, tmp_path: Path
) -> None:
    give_image(node_cluster)
    names = specs(tmp_path)
    documented = dict(_ROW.findall(PAGE.read_text()))
    assert sorted(documented) == sorted(names)

    with scheduled_jobs(node_cluster, tmp_path) as kubeconfig:
        outcomes = run(kubeconfig, names, tmp_path)

    found = {
        each.spec: "passes" if each.passed else "cannot pass" if each.cannot_pass else "fails"
        for each in outcomes
    }
    assert found == documented, table(outcomes)
