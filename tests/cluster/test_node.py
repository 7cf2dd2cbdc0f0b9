"""A real node of the harness: what its Pods can do, and that nothing of it remains."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import (
    Cluster,
    HarnessError,
    cgroups,
    control_plane,
    enclosure,
    images,
    node,
    packages,
    start,
    stop,
)
from tests.cluster.harness import state as states
from tests.cluster.harness.enclosure import INNER, LINK
from tests.cluster.harness.enclosure_init import KERNEL
from tests.cluster.harness.state import State
from tests.cluster.starters import killed_at_the_end, swept
from tests.cluster.world import eventually

pytestmark = pytest.mark.timeout(
    600
)  # a cluster with a node starts in 6 s, and in 40 on a busy day

SETTINGS = (*KERNEL, "net/ipv4/ip_forward")  # of the machine, which a node might like to change


@pytest.fixture
def name() -> Iterator[str]:
    name = f"test-{secrets.token_hex(3)}"
    yield name
    stop(name)


@pytest.fixture
def own_node_possible(node_cluster: Cluster) -> None:
    """The tests below are about a node of our own, where there can be one."""
    if why := node.impossible():
        pytest.skip(f"no real node: {why}")


class TestPods:
    def test_reach_the_api_server_and_each_other_by_service_addresses(
        self, node_cluster: Cluster, namespace: str
    ) -> None:
        serve = "mkdir /tmp/www; echo hello > /tmp/www/index.html; exec busybox httpd -f -p 80 -h "
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": {"name": "web"}, "ports": [{"port": 80}]},
        }
        apply(node_cluster, pod(namespace, "web", f"{serve} /tmp/www"), service)
        address = "jsonpath={.spec.clusterIP}"
        ip = node_cluster.kubectl("-n", namespace, "get", "service", "web", "-o", address).stdout
        ask = f"until wget -q -O - http://{ip}/; do sleep 0.2; done; "
        # A server that expects TLS says no to plain words: it is there.
        plain = r"printf 'GET / HTTP/1.0\r\n\r\n'; sleep 5"
        ask += f"({plain}) | busybox nc $KUBERNETES_SERVICE_HOST 443 | busybox head -c 12"
        apply(node_cluster, pod(namespace, "client", ask))

        eventually(
            lambda: phase(node_cluster, namespace, "client") == "Succeeded",
            "the client is done",
            within_s=150,
        )

        said = node_cluster.kubectl("-n", namespace, "logs", "client").stdout
        assert said == "hello\nHTTP/1.0 400"

    def test_cannot_leave_the_machine(self, node_cluster: Cluster, namespace: str) -> None:
        if node_cluster.kind != "built":
            pytest.skip("only a node of our own is cut off")
        apply(node_cluster, pod(namespace, "out", "wget -O - http://192.0.2.1/; exit 0"))

        eventually(
            lambda: phase(node_cluster, namespace, "out") == "Succeeded", "it gave up", within_s=150
        )

        said = node_cluster.kubectl("-n", namespace, "logs", "out").stdout
        assert "Network is unreachable" in said


@pytest.mark.usefixtures("own_node_possible")
class TestRemains:
    def test_stop_leaves_nothing_of_a_node_with_a_running_pod(self, name: str) -> None:
        before = settings()
        cluster = start(name, "node", own=True)
        run_a_pod(cluster)
        at_work = loaded(name)
        marks, inside = marks_of(cluster, at_work), world_inside(at_work)
        assert {"containerd", "containerd-shim"} <= set(inhabitants(inside))
        # All that it ever has outside its own namespaces, and the search finds it.
        assert {kind for kind, found in traces(marks).items() if found} == {"links", "cgroups"}
        assert taken_over(before, at_work) == []

        cluster.stop()

        assert name not in states.names()
        assert inhabitants(inside) == []
        assert list(filter(None, traces(marks).values())) == []

    def test_what_a_killed_starter_leaves_is_swept_away(self, name: str) -> None:
        with killed_at_the_end(
            "from tests.cluster.harness import start",
            "from tests.cluster.test_node import run_a_pod",
            f"run_a_pod(start({name!r}, 'node', own=True))",
        ):
            at_work = loaded(name)
            marks, inside = marks_of(control_plane.attach(at_work), at_work), world_inside(at_work)
            assert inhabitants(inside)

        swept(name)

        assert inhabitants(inside) == []
        assert list(filter(None, traces(marks).values())) == []

    def test_two_nodes_run_side_by_side(self, node_cluster: Cluster, name: str) -> None:
        other = start(name, "node", own=True)

        run_a_pod(other)

        assert node_cluster.kubectl("get", "nodes").stdout != other.kubectl("get", "nodes").stdout
        other.stop()
        assert "Ready" in node_cluster.kubectl("get", "nodes").stdout


class TestWhereItCannotBe:
    def test_the_reason_is_one_sentence_and_pods_are_fake(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
    ) -> None:
        monkeypatch.setattr(node, "impossible", lambda: "real Pods need root.")

        cluster = start(name, "node", own=True)

        assert cluster.pods == "kwok"
        assert "kwok-0" in cluster.kubectl("get", "nodes").stdout
        said = capsys.readouterr().err
        assert "harness: real Pods need root. Pods run on a fake node here" in said

    def test_it_needs_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)

        assert node.impossible() == "real Pods need root."

    def test_all_that_is_missing_and_cannot_be_installed_is_named_at_once(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(packages, "PATH", str(tmp_path))

        with pytest.raises(HarnessError, match="a real node needs runc, nft, and only root with"):
            packages.ensure("runc", "nft", why="a real node")

    def test_an_api_server_listens_on_loopback_where_no_real_node_was_asked_for(
        self, own_cluster: Cluster
    ) -> None:
        assert own_cluster.server.startswith("https://127.0.0.1:")


@dataclass(frozen=True)
class Marks:
    """How the things of one node are known among all that a machine has: other programs' things
    come and go while we look."""

    name: str
    words: frozenset[str]
    link: str
    address: str


def marks_of(cluster: Cluster, found: State) -> Marks:
    pods = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json").stdout)["items"]
    asked = [*enclosure.inside(found), *node.ctr(found, "containers", "list", "--quiet")]
    containers = subprocess.run(
        asked, env=node.environment(found), capture_output=True, text=True, check=True
    ).stdout.split()
    private = Path(f"/proc/{found.processes[INNER].pid}/root/run/containerd")
    namespaces = [name for _, _, names in os.walk(private) for name in names if "cni-" in name]
    assert pods and containers and namespaces
    words = [found.token, str(found.directory), *containers, *namespaces]
    words += [pod["metadata"]["uid"] for pod in pods]
    return Marks(found.name, frozenset(words), LINK.format(found.link), found.address)


def traces(marks: Marks) -> dict[str, list[str]]:
    """What this machine has of the node, outside the node's own namespaces, by kind."""
    links = [link["ifname"] for link in json.loads(output("ip", "-json", "link"))]
    groups = [str(path) for root in cgroups.hierarchies() for path in directories(root)]
    rules = output("nft", "list", "ruleset").splitlines()

    def ours(found: list[str]) -> list[str]:
        return [each for each in found if any(word in each for word in marks.words)]

    others = [
        other for name in states.names() if name != marks.name if (other := states.load(name))
    ]
    inherited = marks.address in {other.address for other in others}  # by the next node to start
    return {
        "mounts": ours(Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": ours(output("ip", "netns").splitlines()),
        "cgroups": ours(groups),
        "links": [link for link in links if link == marks.link and not inherited],
        "rules": [
            rule for rule in rules if re.search(rf"\b{marks.address}\b", rule) and not inherited
        ],
    }


def settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text().strip() for name in SETTINGS}


def taken_over(before: dict[str, str], found: State) -> list[str]:
    """The settings of the machine that are the node's now, and were not."""
    ask = [
        *enclosure.inside(found),
        "grep",
        "--no-filename",
        "",
        *(f"/proc/sys/{name}" for name in before),
    ]
    said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()
    theirs = dict(zip(before, said, strict=True))
    return [name for name, now in settings().items() if now != before[name] and now == theirs[name]]


def directories(root: Path) -> Iterator[Path]:
    for directory, names, _ in os.walk(root):
        yield from (Path(directory, name) for name in names)


def output(*command: str) -> str:
    program = packages.found(command[0])
    assert program
    return subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, check=True
    ).stdout


def world_inside(found: State) -> str:
    """The process namespace of a node."""
    return os.readlink(f"/proc/{found.processes[INNER].pid}/ns/pid")


def inhabitants(namespace: str) -> list[str]:
    """The processes in it, by what they are called."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended while we looked
            if os.readlink(process / "ns" / "pid") == namespace:
                found.append((process / "comm").read_text().strip())
    return found


def loaded(name: str) -> State:
    found = states.load(name)
    assert found
    return found


def run_a_pod(cluster: Cluster) -> None:
    """One that goes on, with a volume in memory: that is a mount."""
    sleeper = pod("default", "sleeper", "sleep 600")
    sleeper["spec"]["volumes"] = [{"name": "memory", "emptyDir": {"medium": "Memory"}}]
    sleeper["spec"]["containers"][0]["volumeMounts"] = [{"name": "memory", "mountPath": "/memory"}]
    apply(cluster, sleeper)
    eventually(lambda: phase(cluster, "default", "sleeper") == "Running", "it runs", within_s=150)


def pod(ns: str, name: str, script: str) -> dict[str, Any]:
    work = {
        "name": "work",
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns, "labels": {"name": name}},
        "spec": {"restartPolicy": "Never", "containers": [work]},
    }


def apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    document = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(document))


def phase(cluster: Cluster, ns: str, name: str) -> str:
    found = cluster.kubectl("-n", ns, "get", "pod", name, "-o", "jsonpath={.status.phase}")
    return found.stdout
