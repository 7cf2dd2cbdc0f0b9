"""Runs the commands that a page shows, word for word: `said("install", cluster)`.

A command stands after `$ ` in a block that names its test (blocks.py). It is run in a shell of its
own, in the repository's folder, where `helm` and `kubectl` are those of the tests and talk to that
cluster. Not guaranteed: what a command prints; the caller compares it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.cluster.harness import Cluster, helm
from tests.docs.blocks import REPOSITORY, block


def commands(name: str) -> list[str]:
    """The commands of the block `run: e2e NAME`."""
    return [command.line for command in block(f"e2e {name}").commands]


def said(
    name: str,
    cluster: Cluster,
    *,
    begin: str = "",
    more: str = "",
    folder: Path = REPOSITORY,
) -> str:
    """What the commands of a block say; `begin` is run before the first of them, and `more` added
    to the last."""
    *first, last = commands(name)
    script = "\n".join(["set -e", begin, *first, f"{last} {more}"])
    with tempfile.TemporaryDirectory() as scratch:
        for program, path in (("helm", helm.program()), ("kubectl", cluster.kubectl_program)):
            (Path(scratch) / program).symlink_to(path)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder,
            env={
                **helm.environment(cluster.kubeconfig),
                "PATH": f"{scratch}:{os.environ['PATH']}",
                "KUBERC": "off",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
