"""A cluster that somebody named by its kubeconfig file.

Called by choose.py. The file must be named; the current context of this machine is never used,
since it may be anybody's. Nothing is installed there, and `stop` leaves it as it is. Not
guaranteed: that it is a version the project supports, or that the file's user may do what a test
does.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from . import build
from .cluster import Cluster
from .report import HarnessError


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
    return shutil.which("kubectl") or str(build.built("controlplane") / "kubectl")
