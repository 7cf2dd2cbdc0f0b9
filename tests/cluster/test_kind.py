"""Clusters by kind, without kind: a script plays it and hands out a control plane of ours.

What a real kind makes, tests/e2e runs on, and every test that asks for `cluster`, where Docker is.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster, HarnessError, images, kind, packages, start, stop
from tests.cluster.harness import __main__ as command_line
from tests.cluster.harness import state as states
from tests.cluster.starters import REPOSITORY, killed_at_the_end
from tests.cluster.world import eventually


@dataclass
class FakeKind:
    """A kind whose cluster is one of ours, and the Docker engine that it asks."""

    fake: Callable[..., Path]
    config: Path  # the kubeconfig of that cluster

    def __post_init__(self) -> None:
        self.engine_answers()
        self.calls = self.does()

    def does(self, *, create: str = "true", delete: str = "true") -> Path:
        """That before it creates and deletes the cluster `$name`."""
        words = 'while [ "$1" != --kubeconfig ]; do shift; done; kubeconfig=$2'
        return self.fake(
            "kind",
            f'command=$1 name=$4; ({words}; case "$command" in'
            f" create) {create}; cp {self.config} $kubeconfig ;; delete) {delete} ;; esac)",
        )

    def engine_answers(self) -> None:
        """And runs every container that one could ask it about."""
        self.fake("docker", "echo 29.0")

    def engine_is_gone(self) -> None:
        self.fake("docker", "exit 1")

    def node_has_stopped(self) -> None:
        self.fake("docker", '[ "$1" != info ] || echo 29.0')

    @property
    def called(self) -> list[str]:
        return [" ".join(line.split()[:2]) for line in self.calls.read_text().splitlines()]


@pytest.fixture
def fake_kind(fake: Callable[..., Path], kwok_cluster: Cluster) -> FakeKind:
    return FakeKind(fake, kwok_cluster.kubeconfig)


@pytest.fixture
def name(fake_kind: FakeKind) -> Iterator[str]:
    """A cluster name of the test's own; whatever it leaves there is stopped."""
    mine = f"test-{secrets.token_hex(3)}"
    yield mine
    fake_kind.engine_answers()
    fake_kind.does()
    stop(mine)


@pytest.mark.parametrize(("engine", "available"), [("echo 29.0", True), ("exit 1", False)])
def test_kind_is_for_where_a_docker_engine_answers(
    fake: Callable[..., Path], engine: str, available: bool
) -> None:
    fake("docker", engine)
    fake("kind", "exit 0")

    assert kind.available() is available


def test_it_makes_finds_and_deletes_its_cluster(
    fake_kind: FakeKind, kwok_cluster: Cluster, name: str
) -> None:
    first = start(name)
    second = start(name)
    second.stop()

    assert (first.kind, first.server) == ("kind", kwok_cluster.server)
    assert fake_kind.called == [
        "delete cluster",  # a leftover of that name, whose state was lost
        "create cluster",
        "delete cluster",
    ]
    assert f"--config {REPOSITORY}/kind-config.yaml" in fake_kind.calls.read_text()
    assert name not in states.names()


def test_a_cluster_whose_node_has_stopped_is_made_anew(fake_kind: FakeKind, name: str) -> None:
    start(name)
    fake_kind.node_has_stopped()

    assert f"{name}: not running, kind" in status(name)
    start(name)

    assert fake_kind.called.count("create cluster") == 2


def test_a_node_that_does_not_get_ready_is_an_error_and_is_deleted(
    fake: Callable[..., Path], own_cluster: Cluster, name: str
) -> None:
    without_a_node = FakeKind(fake, own_cluster.kubeconfig)

    with pytest.raises(HarnessError, match=f"the node of evenkeel-{name} was not ready"):
        start(name)

    assert without_a_node.called == ["delete cluster", "create cluster", "delete cluster"]
    assert name not in states.names()


def test_where_the_engine_is_gone_the_cluster_is_forgotten_and_one_of_ours_is_started(
    fake_kind: FakeKind, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with killed_at_the_end(
        "from tests.cluster.harness import start",
        f"start({name!r}, keep=True)",
    ):
        fake_kind.engine_is_gone()
        assert f"{name}: not running, kind" in status(name)
        with pytest.raises(HarnessError, match="another process uses the cluster"):
            start(name)

    assert start(name).kind == "built"

    assert f"Later: kind delete cluster --name evenkeel-{name}" in capsys.readouterr().err
    assert fake_kind.called == ["delete cluster", "create cluster"]


def test_an_interrupted_start_deletes_what_kind_has_begun(
    fake_kind: FakeKind, name: str, tmp_path: Path
) -> None:
    """When kind has ended, `docker run` still makes the container that it has asked for."""
    begun, container = tmp_path / "begun", tmp_path / "container"
    fake_kind.does(
        create=f"(touch {begun}; sleep 1; touch {container}) & sleep 5",
        delete=f"rm -f {container}",
    )
    program = f"from tests.cluster.harness import start; start({name!r})"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as starter:
        eventually(begun.exists, "kind has begun")
        os.killpg(starter.pid, signal.SIGINT)  # as a terminal does
        starter.wait(timeout=60)

    time.sleep(1.5)  # the container would be there by now
    assert not container.exists()
    assert fake_kind.called[-1] == "delete cluster"
    assert name not in states.names()


def test_without_a_static_busybox_the_node_pulls_the_image_itself(
    fake_kind: FakeKind,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = start(name)
    monkeypatch.setattr(packages, "PATH", "")

    images.give_busybox(cluster)

    assert "no static busybox" in capsys.readouterr().err
    assert "load image-archive" not in fake_kind.called


def test_down_goes_on_after_a_cluster_that_cannot_be_ended(
    fake_kind: FakeKind,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    start(name)
    start(f"{name}-b")
    # Not those of other tests.
    monkeypatch.setattr(states, "names", lambda: [name, f"{name}-b"])
    fake_kind.does(delete=f'[ "$name" != evenkeel-{name} ] || exit 1')

    assert command_line.main(["down"]) == 1

    assert "`kind delete cluster` failed." in capsys.readouterr().err
    assert states.load(name)
    assert states.load(f"{name}-b") is None


def status(name: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.harness", "status", "--name", name],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
