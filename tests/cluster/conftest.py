"""What several files of this directory ask for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.world import World


@pytest.fixture(scope="module")
def world(kwok_cluster: Cluster) -> Iterator[World]:
    """The cluster on whose fake node Jobs finish, with the CRD."""
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.close()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Puts a shell script first on the PATH; returns the file that its calls are written to."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def make(command: str, script: str) -> Path:
        calls = tmp_path / f"{command}.calls"
        program = tmp_path / command
        program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
        program.chmod(0o755)
        return calls

    return make
