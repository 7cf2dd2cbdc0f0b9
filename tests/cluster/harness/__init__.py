"""A real Kubernetes for tests and for people: `start()` finds one or makes one.

    from tests.cluster.harness import start

    cluster = start(name="mine", pods="kwok")
    cluster.kubectl("get", "nodes")
    cluster.stop()

choose.py says where it comes from. From a shell: `python -m tests.cluster.harness up`.
"""

from .choose import prepare, start, stop, sweep
from .cluster import Cluster, Options
from .report import HarnessError

__all__ = ["Cluster", "HarnessError", "Options", "prepare", "start", "stop", "sweep"]
