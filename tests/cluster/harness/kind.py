"""A cluster by kind, where a Docker engine answers.

Called by choose.py under the lock of the cluster's name. kind's own name for it is evenkeel-NAME,
its kubeconfig lies in our state directory, and the user's own kubeconfig is not touched. Not
guaranteed: that the cluster of an earlier version of kind-config.yaml
is made anew.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from . import existing, processes, state
from .cluster import Cluster
from .report import HarnessError, say
from .state import State

CONFIG = Path(__file__).parents[3] / "kind-config.yaml"


def available() -> bool:
    """kind is there, and a Docker engine answers (a `docker` command alone proves nothing)."""
    if not (shutil.which("kind") and shutil.which("docker")):
        return False
    command = ["docker", "info", "--format", "{{.ServerVersion}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


def asks() -> dict[str, Any]:
    return {"config": CONFIG.name}


def start(found: State) -> Cluster:
    say(f"creating a cluster by kind, {_name(found)}: a minute or two")
    # What an earlier run left under this name, its state lost with /tmp at a restart.
    _kind("delete", "cluster", "--name", _name(found), "--kubeconfig", str(_kubeconfig(found)))
    _kind(
        *("create", "cluster", "--name", _name(found), "--config", str(CONFIG)),
        *("--kubeconfig", str(_kubeconfig(found)), "--wait", "180s"),
    )
    return attach(found)


def usable(found: State) -> bool:
    return _name(found) in _kind("get", "clusters").split() and _kubeconfig(found).is_file()


def attach(found: State) -> Cluster:
    return KindCluster(found)


def destroy(found: State) -> None:
    processes.kill(found.guests.values())
    _kind("delete", "cluster", "--name", _name(found), "--kubeconfig", str(_kubeconfig(found)))
    state.remove(found.name)


class KindCluster(Cluster):
    def __init__(self, found: State) -> None:
        self._state = found
        kubeconfig = _kubeconfig(found)
        super().__init__(
            kind="kind", pods="node", kubeconfig=kubeconfig, server="", kubectl=existing.kubectl()
        )
        view = json.loads(self.kubectl("config", "view", "--minify", "-o", "json").stdout)
        self.server = view["clusters"][0]["cluster"]["server"]

    def load_image(self, archive: Path) -> None:
        _kind("load", "image-archive", str(archive), "--name", _name(self._state))

    def stop(self) -> None:
        with state.newest(self._state) as found:
            if found:
                destroy(found)


def _name(found: State) -> str:
    return f"evenkeel-{found.name}"


def _kubeconfig(found: State) -> Path:
    return found.directory / "kubeconfig"


def _kind(*arguments: str) -> str:
    command = ["kind", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise HarnessError("no `kind` command here any more.") from error
    if done.returncode != 0:
        words = done.stderr.strip()
        raise HarnessError(f"`kind {' '.join(arguments[:2])}` failed.\n{words}")
    return done.stdout
