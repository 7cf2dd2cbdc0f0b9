"""Who owns the CRDs: applied before the chart, changed by it, left by it. On a real API server.

Whatever is done, a schedule that was there stays, with its uid. docs/install.md says the same.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, start
from tests.cluster.harness.cluster import CRDS
from tests.cluster.harness.helm import CHART, Helm
from tests.cluster.world import eventually
from tests.unit.resource.cases import scheduled_job, spec

CRD = "crd/scheduledjobs.evenkeel.dev"
NS = "evenkeel"
MANAGER = "--field-manager=helm"


class Server:
    """An API server without nodes: no operator runs, and helm does not wait for one."""

    def __init__(self, cluster: Cluster, helm: Helm) -> None:
        self.cluster = cluster
        self._helm = helm

    def helm(
        self, verb: str, *more: str, release: str = "evenkeel", chart: Path = CHART
    ) -> subprocess.CompletedProcess[str]:
        what = () if verb == "uninstall" else (str(chart),)
        return self._helm(
            *(verb, release, *what, "-n", NS, *more),
            kubeconfig=self.cluster.kubeconfig,
            check=False,
        )

    def does(self, verb: str, *more: str, release: str = "evenkeel", chart: Path = CHART) -> str:
        done = self.helm(verb, *more, release=release, chart=chart)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def refuses(self, verb: str, *more: str, release: str = "evenkeel", chart: Path = CHART) -> str:
        done = self.helm(verb, *more, release=release, chart=chart)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def schedule(self) -> str:
        """The uid of the only schedule, which is made on the first call."""
        kubectl = self.cluster.kubectl
        listed = ("get", "scheduledjobs.evenkeel.dev", "-A", "-o", "json")
        eventually(lambda: kubectl(*listed, check=False).returncode == 0, "the CRD is served")
        found = json.loads(kubectl(*listed).stdout)["items"]
        if not found:
            manifest = scheduled_job(spec(schedule="0 3 * * *"), ns=NS)
            manifest["metadata"] = {"name": "nightly", "namespace": NS}
            kubectl("create", "-f", "-", input=json.dumps(manifest))
            return self.schedule()
        (one,) = found
        return str(one["metadata"]["uid"])

    def columns(self) -> str:
        path = "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}"
        return self.cluster.kubectl("get", CRD, "-o", path).stdout


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    found = start(f"crds-{secrets.token_hex(3)}", own=True)
    found.kubectl("create", "namespace", NS)
    yield found
    found.stop()


@pytest.fixture
def server(cluster: Cluster, helm: Helm) -> Iterator[Server]:
    found = Server(cluster, helm)
    yield found
    for release in ("evenkeel", "other"):
        found.helm("uninstall", release=release)
    cluster.remove_crds()


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """The chart of a later version, whose CRD has other columns."""
    chart = tmp_path / "evenkeel"
    shutil.copytree(CHART, chart)
    template = chart / "templates" / "crd-scheduledjobs.yaml"
    text = template.read_text()
    assert "name: Priority" in text
    template.write_text(text.replace("name: Priority", "name: Rank"))
    return chart


def served(server: Server, *how: str) -> None:
    server.cluster.kubectl("apply", *how, "-f", str(CRDS))


def test_crds_applied_by_kubectl_are_taken_over_and_then_changed(
    server: Server, changed: Path
) -> None:
    served(server)
    before = server.schedule()
    assert "invalid ownership metadata" in server.refuses("install")
    server.does("install", "--take-ownership")
    server.does("upgrade")
    assert "conflict" in server.refuses("upgrade", chart=changed)
    assert "Priority" in server.columns()
    server.does("upgrade", "--force-conflicts", chart=changed)
    assert "Rank" in server.columns()
    server.does("upgrade")  # what was forced once is helm's
    assert "Priority" in server.columns()
    assert server.schedule() == before


def test_crds_applied_as_helm_are_taken_over_and_changed_without_a_conflict(
    server: Server, changed: Path
) -> None:
    served(server, "--server-side", MANAGER)
    before = server.schedule()
    server.does("install", "--take-ownership")
    server.does("upgrade", chart=changed)
    assert "Rank" in server.columns()
    assert server.schedule() == before


def test_a_release_of_another_name_leaves_the_crds_to_their_owner_or_takes_them(
    server: Server,
) -> None:
    server.does("install")
    before = server.schedule()
    assert "invalid ownership metadata" in server.refuses("install", release="other")
    server.does("install", "--set", "crds.enabled=false", release="other")
    server.does("uninstall", release="other")
    assert "kept due to the resource policy" in server.does("uninstall")
    assert server.schedule() == before
    assert "invalid ownership metadata" in server.refuses("install", release="other")
    server.does("install", "--take-ownership", release="other")
    assert server.schedule() == before


def test_crds_that_the_chart_lets_go_stay(server: Server) -> None:
    server.does("install")
    before = server.schedule()
    server.does("upgrade", "--set", "crds.enabled=false")
    assert server.schedule() == before
    server.does("upgrade", "--set", "crds.enabled=true")
    assert server.schedule() == before
    server.does("upgrade", "--set", "crds.enabled=false")
    server.does("uninstall")
    assert server.schedule() == before


def test_without_keep_they_go_with_the_release_and_with_it_all_schedules(server: Server) -> None:
    server.does("install", "--set", "crds.keep=false")
    server.schedule()
    assert "kept" not in server.does("uninstall")
    server.cluster.await_crds_gone()
