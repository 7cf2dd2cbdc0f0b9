"""Which tests run at the same time, where pytest has several workers: what waits beside what
computes.

Tests of a real cluster wait for most of their time, those of units and the simulator compute all of
theirs. So the first worker takes from what computes, the others from what waits, and whoever runs
out helps the rest. Called by pytest-xdist through conftest.py (`make test`); without `-n` tests run
one after the other, as ever. Each worker has clusters of its own, started when a test there first
asks. Not guaranteed: that two tests never meet; what workers share (ports, the names of clusters
and links, apt-get, builds) the harness locks between any two processes.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

COMPUTE = (
    "tests/unit/",
    "tests/sim/",
    "tests/chart/",
    "tests/contract/ledger/",
    "tests/test_newer_python.py",
)

# A cluster takes seconds to start, kind's half a minute. These files have one together. They begin
# first, and so does what waits for the next minute again and again.
TOGETHER = {
    "a real node": ("tests/cluster/test_image.py", "tests/cluster/test_node.py", "tests/e2e/"),
    "the next minute": ("tests/cluster/test_handover.py",),
    "requests": ("tests/cluster/test_requests.py",),
    "an API server": (
        "tests/chart/test_api_server.py",
        "tests/chart/test_registry.py",
        "tests/cluster/test_crd.py",
        "tests/cluster/test_harness.py",
        "tests/cluster/test_kind.py",
        "tests/cluster/test_renaming_proxy.py",
        "tests/cluster/test_world.py",
        "tests/contract/test_api_server.py",
    ),
}

# Long tests that share no stage: any worker may take one of them. They begin first, or the last of
# them would be waited for by all.
LONG = (
    "tests/cluster/test_api_server_faults.py",
    "tests/cluster/test_kills.py",
    "tests/cluster/test_ledger_faults.py",
    "tests/cluster/test_ledger_runs.py",
    "tests/cluster/test_balance.py",
    "tests/cluster/test_sets.py",
    "tests/cluster/test_no_room.py",
    "tests/cluster/test_requests_faults.py",
)


def unit_of(test: str) -> str:
    """The tests that go to one worker together have one word: a function with all its parameters
    where they compute, a file where they wait and may share a stage."""
    file = test.partition("::")[0]
    for cluster, files in TOGETHER.items():
        if file.startswith(files):
            return cluster
    if file.startswith(COMPUTE) or file.startswith(LONG):
        return test.partition("[")[0]
    return file


def waits(unit: str) -> bool:
    return not unit.startswith(COMPUTE)


def in_order(units: list[str]) -> list[str]:
    """As they should begin: the longest of what waits first; among equals as they come, which is at
    random."""

    return sorted(units, key=lambda unit: unit not in TOGETHER and not unit.startswith(LONG))


def next_for(worker: str, queue: list[str]) -> str:
    """The unit that this worker should take."""
    preferred = [unit for unit in queue if waits(unit) != (worker == "gw0")]
    return (preferred or queue)[0]


class SideBySide(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        queue = in_order(list(self.workqueue))
        self.workqueue.move_to_end(next_for(node.gateway.id, queue), last=False)
        super()._assign_work_unit(node)
