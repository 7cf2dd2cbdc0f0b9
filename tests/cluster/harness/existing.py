"""A cluster that somebody named by its kubeconfig file, and the kubectl for clusters of others.

Called by choose.py and kind.py. The file must be named; the current context of this machine is
never used, since it may be anybody's. Nothing is installed there, and `stop` leaves it as it is.
Not guaranteed: that it is a version the project supports, or that the file's user may do what a
test does.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from pathlib import Path

from . import build
from .cluster import Cluster
from .report import HarnessError, say

OLDEST_KUBECTL = (1, 30)  # as the oldest Kubernetes that Evenkeel supports


def named(kubeconfig: Path) -> Cluster:
    if not kubeconfig.is_file():
        raise HarnessError(f"the kubeconfig {kubeconfig} is not there.")
    path = kubeconfig.resolve()  # a test may change its directory
    cluster = Cluster(kind="named", pods="node", kubeconfig=path, server="", kubectl=kubectl())
    view = json.loads(cluster.kubectl("config", "view", "--minify", "-o", "json").stdout)
    cluster.server = view["clusters"][0]["cluster"]["server"]
    return cluster


def kubectl() -> str:
    """The one on the PATH, or our own, which may first have to be built."""
    return kubectl_on_path() or str(build.built("controlplane") / "kubectl")


def kubectl_on_path() -> str | None:
    """If it is new enough."""
    program = shutil.which("kubectl")
    return program if program and _version(program) >= OLDEST_KUBECTL else None


@functools.cache
def _version(program: str) -> tuple[int, int]:
    command = [program, "version", "--client", "--output=json"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        said = ""
    found = re.search(r'"gitVersion":\s*"v(\d+)\.(\d+)', said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < OLDEST_KUBECTL:
        oldest = ".".join(map(str, OLDEST_KUBECTL))
        say(f"{program} is older than {oldest}, or does not run: the harness takes its own kubectl")
    return version
