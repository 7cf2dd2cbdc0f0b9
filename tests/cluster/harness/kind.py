"""A cluster by kind, where a Docker engine answers.

Called by choose.py under the lock of the cluster's name. kind's own name for it is evenkeel-NAME,
its kubeconfig lies in our state directory, and the user's own kubeconfig is not touched. Not
guaranteed: that the cluster of an earlier version of kind-config.yaml is made anew; that a cluster
is deleted whose Docker engine does not answer any more (a sentence says how to delete it).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from . import existing, kind_node_image, processes, state
from .cluster import Cluster
from .report import HarnessError, say
from .state import State

CONFIG = Path(__file__).parents[3] / "kind-config.yaml"
LABEL = "io.x-k8s.kind.cluster"  # on every container of a cluster
READY_SECONDS = 180
ANSWER_SECONDS = 60  # a cluster on a busy machine must not be taken for one that stands still
ORPHAN_SECONDS = 30


def available() -> bool:
    """kind is there, and a Docker engine answers (a `docker` command alone proves nothing)."""
    if not (shutil.which("kind") and shutil.which("docker")):
        return False
    return bool(_docker("info", "--format", "{{.ServerVersion}}"))


def asks() -> dict[str, Any]:
    return {"config": CONFIG.name}


def prepare() -> None:
    """What takes minutes once: the node image is pulled or built, and kubectl, if there is none."""
    existing.kubectl()
    kind_node_image.chosen()


def start(found: State) -> Cluster:
    image = kind_node_image.chosen()
    say(f"creating a cluster by kind, {_name(found)}: half a minute or more")
    # What an earlier run left under this name, its state lost with /tmp at a restart.
    _delete(found)
    _kind(
        *("create", "cluster", "--name", _name(found), "--config", str(CONFIG)),
        *("--kubeconfig", str(_kubeconfig(found))),
        *(("--image", image) if image else ()),
    )
    cluster = KindCluster(found)
    # Not `kind create --wait`: it succeeds when the time is up, whether the node is ready or not.
    # Without kube-proxy no Pod reaches the API server.
    for ready in (
        ("wait", "node", "--all", "--for=condition=Ready"),
        ("-n", "kube-system", "rollout", "status", "daemonset", "-l", "k8s-app=kube-proxy"),
    ):
        wait = (*ready, f"--timeout={READY_SECONDS}s")
        waited = cluster.kubectl(*wait, check=False, timeout=READY_SECONDS + 60)
        if waited.returncode != 0:
            raise HarnessError(
                f"the node of {_name(found)} was not ready after {READY_SECONDS} seconds:"
                f" {waited.stderr.strip()}"
            )
    return cluster


def usable(found: State) -> bool:
    """Its node runs and its API server answers: kind lists clusters that stand still as well."""
    if not available() or not _kubeconfig(found).is_file():
        return False
    cluster = KindCluster(found)
    deadline = time.monotonic() + ANSWER_SECONDS
    while _docker("ps", "--quiet", "--filter", f"label={LABEL}={_name(found)}"):
        asked = cluster.kubectl("get", "--raw", "/readyz", "--request-timeout=10s", check=False)
        if asked.returncode == 0:
            return True
        if time.monotonic() > deadline:
            break
        time.sleep(1)
    return False


def attach(found: State) -> Cluster:
    return KindCluster(found)


def destroy(found: State) -> None:
    processes.kill(found.guests.values())
    if available():
        _delete(found)
    else:  # to fail here would keep every cluster of this name from starting
        say(
            f"no kind or no Docker engine answers: the cluster {_name(found)} is forgotten, not"
            f" deleted. Later: kind delete cluster --name {_name(found)}"
        )
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


def _delete(found: State) -> None:
    _kind("delete", "cluster", "--name", _name(found), "--kubeconfig", str(_kubeconfig(found)))


def _docker(*arguments: str) -> str:
    """What docker says; nothing, if it fails or an engine does not answer."""
    command = ["docker", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _kind(*arguments: str) -> None:
    words = f"`kind {' '.join(arguments[:2])}`"
    try:
        with subprocess.Popen(
            ["kind", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own: Ctrl-C in a terminal does not reach it
        ) as process:
            try:
                said = process.communicate()[1]
            except BaseException:
                _end(process)
                raise
    except FileNotFoundError as error:
        raise HarnessError("no `kind` command here any more.") from error
    if process.returncode != 0:
        raise HarnessError(f"{words} failed.\n{said.strip()}")


def _end(process: subprocess.Popen[str]) -> None:
    """Ends kind, then waits for what it has begun: a `docker run` that has asked the engine for a
    container would have it after kind has deleted all that it found."""
    process.terminate()
    process.wait()
    deadline = time.monotonic() + ORPHAN_SECONDS
    try:
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the last of the group has ended
