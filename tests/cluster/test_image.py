"""The operator's image at work: in a Pod, as an ordinary user, on a read-only root, without rights.

What it may do in the cluster is what `RULES` says and no more. It serves one namespace, so that it
does not mind the operators of other tests.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.chart.rendered import RULES
from tests.cluster.harness import Cluster, HarnessError, image
from tests.cluster.world import World, eventually, once

from evenkeel import release

pytestmark = pytest.mark.timeout(900)  # the image may have to be built: a minute on a busy machine

Json = dict[str, Any]


@dataclass
class Installed:
    world: World
    ns: str
    pod: str

    def python(self, program: str) -> str:
        """What a program says in the operator's container; it has no shell."""
        command = ["exec", self.pod, "--", "/usr/bin/python3.11", "-c", program]
        return self.world.cluster.kubectl("-n", self.ns, *command).stdout


@pytest.fixture(scope="module")
def archive() -> Path:
    return image.built()


@pytest.fixture(scope="module")
def installed(node_cluster: Cluster, archive: Path) -> Iterator[Installed]:
    try:
        node_cluster.load_image(archive)
    except HarnessError as error:
        if node_cluster.kind != "named":
            raise
        pytest.skip(str(error))
    node_cluster.install_crd()
    world = World(node_cluster)
    ns = world.namespace("image")
    node_cluster.kubectl("-n", ns, "apply", "-f", "-", input=json.dumps(manifests(ns)))
    wait = ["wait", "pod/evenkeel", "--for=condition=Ready", "--timeout=180s"]
    waited = node_cluster.kubectl("-n", ns, *wait, check=False, timeout=210)
    log = node_cluster.kubectl("-n", ns, "logs", "evenkeel", check=False).stdout
    assert waited.returncode == 0, f"the operator's Pod is not ready; its log:\n{log}"
    yield Installed(world, ns, "evenkeel")
    world.leave([ns])
    world.close()


def test_it_creates_a_job_by_the_rights_of_its_service_account(installed: Installed) -> None:
    world, ns = installed.world, installed.ns
    at = once(due_in=10)
    world.create(ns, "once", at=at)

    (job,) = eventually(lambda: world.jobs(ns, "once"), "there is a Job")

    assert job["metadata"]["annotations"]["evenkeel.dev/due"] == at
    eventually(lambda: world.status(ns, "once").get("lastScheduleTime") == at, "it says when")
    eventually(lambda: "once" in events(world, ns), "it tells of it in an Event")


def test_it_tells_the_commit_it_was_built_from(installed: Installed) -> None:
    said = installed.python("from evenkeel import release; print(release.commit())").strip()
    assert said == release.commit()
    assert image.described()["Labels"]["org.opencontainers.image.revision"] == said


def test_it_is_nobody_and_can_write_nowhere(installed: Installed) -> None:
    assert installed.python("import os; print(os.getuid(), os.getgid())") == "65532 65532\n"
    status = installed.python("print(open('/proc/1/status').read())")
    capabilities = [line.split()[1] for line in status.splitlines() if line.startswith("Cap")]
    assert set(capabilities) == {"0000000000000000"}
    refused = installed.python(
        "try: open('/x', 'w')\nexcept OSError as error: print(error.strerror)"
    )
    assert refused == "Read-only file system\n"


def test_it_can_keep_a_ledger_in_a_file_and_in_a_database(installed: Installed) -> None:
    strict_tables = "sqlite3.sqlite_version_info >= (3, 37)"
    said = installed.python(f"import asyncpg, sqlite3; print(asyncpg.__name__, {strict_tables})")
    assert said == "asyncpg True\n"


def test_it_holds_no_shell_and_no_package_manager(archive: Path) -> None:
    files = contents(archive)

    assert "usr/local/bin/evenkeel" in files
    programs = {path for path in files if path.startswith(("bin/", "sbin/", "usr/bin/"))}
    assert programs == {"usr/bin/python3", "usr/bin/python3.11"}
    assert not [path for path in files if "/dist-packages/pip/" in path]
    assert not [path for path in files if "/dist-packages/pytest/" in path]  # the dev group


def test_its_python_compiles_nothing_at_the_start(archive: Path) -> None:
    """The root is read-only: every start would compile all of it again."""
    files = contents(archive)
    package = "usr/local/lib/python3.11/dist-packages/evenkeel/"

    sources = {path for path in files if path.startswith(package) and path.endswith(".py")}
    assert sources
    for path in sources:
        directory, _, name = path.rpartition("/")
        assert f"{directory}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc" in files


def contents(archive: Path) -> set[str]:
    with tarfile.open(archive) as outer:
        (manifest,) = json.load(outer.extractfile("manifest.json"))  # type: ignore[arg-type]
        found: set[str] = set()
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                found |= {name.removeprefix("./") for name in inner.getnames()}
    return found


def events(world: World, ns: str) -> list[str]:
    found = world.items(f"/api/v1/namespaces/{ns}/events")
    return [event["involvedObject"]["name"] for event in found]


def manifests(ns: str) -> Json:
    account = {"kind": "ServiceAccount", "name": "evenkeel", "namespace": ns}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "evenkeel"}
    rbac = "rbac.authorization.k8s.io/v1"
    named: Json = {"name": "evenkeel"}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named},
            {"apiVersion": rbac, "kind": "Role", "metadata": named, "rules": RULES},
            {
                "apiVersion": rbac,
                "kind": "RoleBinding",
                "metadata": named,
                "subjects": [account],
                "roleRef": role,
            },
            {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": pod(ns)},
        ],
    }


def pod(ns: str) -> Json:
    return {
        "serviceAccountName": "evenkeel",
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "evenkeel",
                "image": image.name(),
                "imagePullPolicy": "Never",
                "args": ["run", "--namespace", ns, "--health-listen", "0.0.0.0:8081"],
                "readinessProbe": {
                    "httpGet": {"path": "/readyz", "port": 8081},
                    "periodSeconds": 1,
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
            }
        ],
    }
