"""Which image kind makes a node of, and the one that is built where none can be pulled.

Where kind and a Docker engine are, a node is made of the latter; elsewhere a script plays docker.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster.harness import kind, kind_node_image, start, stop
from tests.cluster.test_node import run_a_pod

OWN = f"kindest/node:v1.37.0@sha256:{'0' * 64}"


class Engine:
    """A kind that holds a name, and an engine with some images that may reach a registry."""

    def __init__(self, fake: Callable[..., Path], directory: Path) -> None:
        self._images = directory / "images"
        self._images.write_text("")
        fake("kind", f"# {OWN}")
        self._fake = fake
        self.reaches_a_registry(True)

    def reaches_a_registry(self, does: bool) -> None:
        pull = f'echo "$2" >> {self._images}' if does else "exit 1"
        script = f'case "$1" in image) grep -qxF "$3" {self._images} ;; pull) {pull} ;; esac'
        self._calls = self._fake("docker", script)
        self._calls.touch()

    def has(self, image: str) -> None:
        self._images.write_text(f"{image}\n")

    @property
    def pulls(self) -> list[str]:
        return [line for line in self._calls.read_text().splitlines() if line.startswith("pull")]


@pytest.fixture
def engine(fake: Callable[..., Path], tmp_path: Path) -> Engine:
    return Engine(fake, tmp_path)


def test_kinds_own_image_is_pulled_once(engine: Engine) -> None:
    assert kind_node_image.chosen() == ""
    assert kind_node_image.chosen() == ""

    assert engine.pulls == [f"pull {OWN}"]


def test_the_one_that_was_built_here_is_taken_without_asking_a_registry(engine: Engine) -> None:
    engine.reaches_a_registry(False)
    engine.has(kind_node_image.name())

    assert kind_node_image.chosen() == kind_node_image.name()
    assert engine.pulls == []


def test_kinds_own_is_preferred_to_the_one_that_was_built_here(engine: Engine) -> None:
    engine.has(f"{kind_node_image.name()}\n{OWN}")

    assert kind_node_image.chosen() == ""


def test_a_kind_that_does_not_hold_the_name_is_left_to_itself(
    engine: Engine, fake: Callable[..., Path]
) -> None:
    fake("kind", "exec somewhere/else/kind")

    assert kind_node_image.chosen() == ""
    assert engine.pulls == []


def test_its_name_changes_with_every_file_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = tmp_path / "files"
    shutil.copytree(kind_node_image.FILES, files)
    monkeypatch.setattr(kind_node_image, "FILES", files)
    names = {kind_node_image.name()}

    for path in [path for path in files.rglob("*") if path.is_file()]:
        path.write_text(path.read_text() + "\n")
        assert kind_node_image.name() not in names
        names.add(kind_node_image.name())


@pytest.mark.timeout(1800)  # kubeadm may have to be built
def test_a_node_of_the_image_that_is_built_here_runs_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    if not kind.available():
        pytest.skip("no kind, or no Docker engine answers")
    monkeypatch.setattr(kind_node_image, "chosen", kind_node_image.built)
    name = f"test-{secrets.token_hex(3)}"
    try:
        cluster = start(name, "node")

        run_a_pod(cluster)

        told = cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo}").stdout
        assert "containerd://2.4.2" in told
    finally:
        stop(name)
