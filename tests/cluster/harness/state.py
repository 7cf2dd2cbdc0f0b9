"""What the harness remembers about a cluster, on disk, so that another process finds it.

Called by choose.py, control_plane.py and kind.py, under the lock of the cluster's name. One
directory for each name, with short paths (a socket's path ends at 107 bytes): its state file,
certificates, data and logs. Not guaranteed: that what the file says is still so; `alive` asks the
kernel.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from . import locks
from .processes import Process
from .report import HarnessError

Made = Literal["kind", "built"]


@dataclass
class State:
    name: str
    made: Made
    asked: dict[str, Any]  # what the starter wanted; another wish cannot reuse the cluster
    token: str = field(default_factory=lambda: secrets.token_hex(8))  # the name may be used again
    kept: bool = False  # outlives the processes that asked for it
    ready: bool = False
    port: int = 0
    address: str = "127.0.0.1"  # where the API server listens
    link: int | None = None  # of a real node to the host (enclosure.py)
    owners: list[Process] = field(default_factory=list)
    processes: dict[str, Process] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)  # stopped by a test, to come back
    guests: dict[str, Process] = field(default_factory=dict)  # what works on it and ends with it

    @property
    def directory(self) -> Path:
        return directory(self.name)

    def save(self) -> None:
        target = self.directory / "state.json"
        draft = target.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(dataclasses.asdict(self), indent=2))
        draft.replace(target)  # a crash leaves the old file or the new one, never half of one

    @property
    def stale(self) -> bool:
        """Nobody wants it any more, or it never came up. Only true under the name's lock."""
        if not self.ready:
            return True  # the lock is free, so whoever was starting it is gone
        if self.made == "built" and not any(p.alive for p in self.processes.values()):
            return True
        return not self.kept and not any(owner.alive for owner in self.owners)


def load(name: str) -> State | None:
    try:
        found = json.loads((directory(name) / "state.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    found["owners"] = [Process(**owner) for owner in found["owners"]]
    for kind in ("processes", "guests"):
        found[kind] = {key: Process(**process) for key, process in found.get(kind, {}).items()}
    return State(**found)


def create(state: State) -> None:
    remove(state.name)
    state.directory.mkdir(mode=0o700)
    state.save()


def remove(name: str) -> None:
    shutil.rmtree(directory(name), ignore_errors=True)


def directory(name: str) -> Path:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
        raise HarnessError(f"{name!r} is no cluster name: use up to 40 of a-z, 0-9 and '-'.")
    return root() / name


def lock(name: str) -> Path:
    return directory(name).with_suffix(".lock")


def locked(name: str) -> AbstractContextManager[None]:
    """One start, stop or change of a name at a time; what `load` returns is true inside."""
    return locks.held(lock(name), waiting_for=f"another call about the cluster {name!r}")


@contextmanager
def newest(known: State) -> Iterator[State | None]:
    """Under the lock: this very cluster as it is now; None if it was stopped, though its name may
    be another's by now."""
    with locked(known.name):
        found = load(known.name)
        yield found if found and found.token == known.token else None


def names() -> list[str]:
    return sorted(entry.name for entry in root().iterdir() if entry.is_dir())


def root() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and Path(runtime).is_dir() else Path("/tmp")
    path = base / f"evenkeel-{os.geteuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    # /tmp is everybody's: keys must not be written into a directory that somebody else laid out.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise HarnessError(f"{path} is not a private directory of this user: remove it.")
    return path
