"""The chart as a package in a registry: packaged, pushed, installed from there."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, build, ports
from tests.cluster.harness.helm import CHART, Helm

from evenkeel.release import VERSION

LINES = 20


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry on this machine, without encryption and without users."""
    address = f"127.0.0.1:{ports.free(taken=set())}"
    config = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "content")}},
        "http": {"addr": address},
    }
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    log = tmp_path / "registry.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(build.built("registry") / "registry"), "serve", str(tmp_path / "config.yaml")],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 60
        while b"listening on" not in log.read_bytes():
            said = log.read_text().splitlines()[-LINES:]
            assert process.poll() is None, "\n".join(said)
            assert time.monotonic() < deadline, "\n".join(said)
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)


def test_it_is_packaged_pushed_and_installed_from_a_registry(
    registry: str, helm: Helm, own_cluster: Cluster, tmp_path: Path
) -> None:
    helm("package", str(CHART), "--destination", str(tmp_path))
    package = tmp_path / f"evenkeel-{VERSION}.tgz"
    helm("push", str(package), f"oci://{registry}/charts", "--plain-http")

    chart = (f"oci://{registry}/charts/evenkeel", "--plain-http", "--version", VERSION)
    shown = helm("show", "chart", *chart).stdout
    assert f"appVersion: {VERSION}" in shown
    # The CRD is left out: this API server has it for other tests.
    ns = f"registry-{secrets.token_hex(3)}"
    there = {"kubeconfig": own_cluster.kubeconfig}
    helm(
        *("install", "evenkeel", *chart, "--namespace", ns, "--create-namespace"),
        *("--set", "crds.enabled=false"),
        **there,
    )
    found = own_cluster.kubectl("get", "deployment/evenkeel", "-n", ns, "-o", "name").stdout
    assert found == "deployment.apps/evenkeel\n"
    helm("uninstall", "evenkeel", "--namespace", ns, **there)
    own_cluster.kubectl("delete", "namespace", ns, "--wait=false")
