"""The cgroup below which all Pods of one node live, in every hierarchy of the machine.

Called by enclosure.py. Versions 1 and 2, and both at once. Not guaranteed: that the kernel lets go
of a cgroup within the time given, when a process in it does not end.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from .report import HarnessError

GONE_SECONDS = 10  # an ended process leaves its cgroup a moment after it has left the process table


def create(name: str) -> None:
    for root in hierarchies():
        try:
            (root / name).mkdir()
            _delegate(root)
            _delegate(root / name)
        except OSError as error:
            raise HarnessError(f"cannot make a cgroup in {root}: {error.strerror}.") from error
        _inherit(root, name)


def remove(name: str) -> None:
    deadline = time.monotonic() + GONE_SECONDS
    while left := [root / name for root in hierarchies() if (root / name).exists()]:
        for top in left:
            for directory, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    Path(directory).rmdir()
        if time.monotonic() > deadline:
            raise HarnessError(f"the cgroup {left[0]} is not empty and cannot be removed.")
        time.sleep(0.02)


def hierarchies() -> list[Path]:
    """The mount points; a machine may have one of version 2, or one per controller."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            found.append(Path(where))
    return found


def _delegate(directory: Path) -> None:
    """Version 2: what is below may be limited, too."""
    offered, given = directory / "cgroup.controllers", directory / "cgroup.subtree_control"
    if offered.exists():
        words = " ".join(f"+{controller}" for controller in offered.read_text().split())
        if words:
            given.write_text(words)


def _inherit(root: Path, name: str) -> None:
    """Version 1: a new cpuset has no processors, and nothing can start in it."""
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (root / file).exists() and (root / name / "tasks").exists():
            (root / name / file).write_text((root / file).read_text())
