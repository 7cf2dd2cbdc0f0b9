"""What `evenkeel advise` writes is taken by a real API server, and by kubectl's kustomize."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click.testing
import pytest
import yaml
from tests.cluster.harness import Cluster
from tests.unit.cli.clusters import as_list, cron_jobs

from evenkeel.cli.advise import advise
from evenkeel.manifests.cronjob import from_cronjob
from evenkeel.manifests.yaml_text import document
from evenkeel.model import Schedule
from evenkeel.resource.read import read

Json = dict[str, Any]


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Cluster:
    cluster.install_crd()
    return cluster


def in_namespace(objects: list[Json], ns: str) -> list[Json]:
    return [{**each, "metadata": {**each["metadata"], "namespace": ns}} for each in objects]


def written(objects: list[Json], form: str) -> str:
    result = click.testing.CliRunner().invoke(
        advise,
        ["-f", "-", "--from", "2026-11-18T00:00:00Z", "--daily", "-o", form],
        input=as_list(objects),
    )
    assert result.exit_code == 0
    return result.stdout


def as_scheduled_jobs(objects: list[Json]) -> list[Json]:
    """The same schedules, as ScheduledJobs with fixed times, in files."""
    found = [from_cronjob(each) for each in objects if each["spec"]["schedule"][:6] != "@every"]
    for each in found:
        each["metadata"] = {name: each["metadata"][name] for name in ("name", "namespace")}
    return found


@pytest.mark.parametrize(
    ("seed", "count"),
    [
        (1, 60),
        *(pytest.param(seed, 900, marks=pytest.mark.long) for seed in range(10)),
    ],
)
def test_every_changed_manifest_is_taken(
    server: Cluster, namespace: str, seed: int, count: int
) -> None:
    text = written(in_namespace(cron_jobs(seed, count), namespace), "manifests")
    changed = list(yaml.safe_load_all(text))
    assert len(changed) > count / 4
    done = server.kubectl("apply", "--dry-run=server", "-f", "-", input=text, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("created (server dry run)") == len(changed)


def test_a_scheduled_job_with_fixed_times_is_changed_by_apply_and_by_kustomize(
    server: Cluster, namespace: str, tmp_path: Path
) -> None:
    objects = as_scheduled_jobs(in_namespace(cron_jobs(2, 40), namespace))
    server.kubectl("apply", "-f", "-", input="---\n".join(map(document, objects)))
    text = written(objects, "manifests")
    done = server.kubectl("apply", "-f", "-", input=text, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

    even = tmp_path / "even"
    even.mkdir()
    (tmp_path / "base.yaml").write_text("---\n".join(map(document, objects)))
    (tmp_path / "kustomization.yaml").write_text("resources: [base.yaml]\ncomponents: [even]\n")
    (even / "kustomization.yaml").write_text(written(objects, "patch"))
    patched = by_name(yaml.safe_load_all(server.kubectl("kustomize", str(tmp_path)).stdout))
    whole = by_name(yaml.safe_load_all(text))
    stored = by_name(
        json.loads(server.kubectl("get", "sj", "-n", namespace, "-o", "json").stdout)["items"]
    )
    assert len(whole) > 10
    for name, schedule in whole.items():
        assert patched[name] == schedule
        assert (stored[name].timing, stored[name].placement) == (
            schedule.timing,
            schedule.placement,
        )
    others = by_name(objects)
    assert {name: patched[name] for name in patched if name not in whole} == {
        name: others[name] for name in others if name not in whole
    }


def by_name(objects: Any) -> dict[str, Schedule]:
    found = {}
    for each in objects:
        schedule = read(each)
        assert isinstance(schedule, Schedule), schedule
        found[schedule.name] = schedule
    return found
