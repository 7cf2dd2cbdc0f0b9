"""What a test does to the disk under an SQLite store: small, read-only and FUSE file systems,
damaged bytes, rights that are gone, a lock that another process holds.

All but the last need root. Mounts are undone with their block, whatever happened in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HAS_VOLUMES = pytest.mark.skipif(
    os.geteuid() != 0
    or not Path("/dev/loop-control").exists()
    or not all(map(shutil.which, ("mkfs.ext4", "fsfreeze", "findmnt"))),
    reason="no loop devices, or no right to mount them",
)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change users")
HAS_BINDFS = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("bindfs") is None or not Path("/dev/fuse").exists(),
    reason="no bindfs, or no right to mount with it",
)
NOBODY = 65534

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA busy_timeout = 20000")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
connection.close()
"""


@contextmanager
def tmpfs(at: Path, *, kib: int) -> Iterator[Path]:
    """A file system in memory of this size, mounted at a new directory."""
    at.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=0755", "tmpfs", at)
    try:
        yield at
    finally:
        _unmount(at)


def remount(at: Path, how: str) -> None:
    """`ro` or `rw`. Read-only is refused while a file is open for writing."""
    _run("mount", "-o", f"remount,{how}", at)


class Volume:
    """A small ext4 of its own, which can be stopped and broken while files on it are open."""

    def __init__(self, at: Path) -> None:
        self.at = at
        self._image = at.with_name(f"{at.name}.img")

    def mount(self) -> None:
        _run("mount", "-o", "loop", self._image, self.at)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Whoever writes waits, and no signal ends that."""
        _run("fsfreeze", "--freeze", self.at)
        try:
            yield
        finally:
            _run("fsfreeze", "--unfreeze", self.at)

    def fail(self) -> None:
        """As after an error of the disk: from now on it is read-only."""
        device = Path(_said("findmnt", "--noheadings", "--output", "SOURCE", self.at)).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("a test\n")

    def mend(self) -> None:
        """Unmounted, checked and mounted again, as an administrator would."""
        _unmount(self.at)
        self.mount()


@contextmanager
def volume(at: Path, *, mib: int = 16) -> Iterator[Volume]:
    """A volume at a new directory."""
    at.mkdir()
    image = at.with_name(f"{at.name}.img")
    with image.open("wb") as opened:
        opened.truncate(mib << 20)
    _run("mkfs.ext4", "-q", "-e", "remount-ro", image)
    found = Volume(at)
    found.mount()
    try:
        yield found
    finally:
        _unmount(at)


@contextmanager
def bound(source: Path, at: Path) -> Iterator[Path]:
    """A directory, seen at a second place."""
    at.mkdir(exist_ok=True)
    _run("mount", "--bind", source, at)
    try:
        yield at
    finally:
        _unmount(at)


@contextmanager
def bindfs(source: Path, at: Path) -> Iterator[Path]:
    """A directory, seen through a FUSE file system."""
    at.mkdir()
    _run("bindfs", "--no-allow-other", source, at)
    try:
        yield at
    finally:
        _unmount(at)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another process has begun to write to this SQLite file, and does not end."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdin is not None and holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
    finally:
        holder.communicate()


def flip(file: Path, *, at: int, count: int) -> None:
    """Turn every bit of `count` bytes; a negative `at` counts from the end."""
    with file.open("r+b") as opened:
        begin = at if at >= 0 else opened.seek(0, os.SEEK_END) + at
        opened.seek(begin)
        found = opened.read(count)
        assert found, f"{file} has no byte {at}"
        opened.seek(begin)
        opened.write(bytes(byte ^ 0xFF for byte in found))


@contextmanager
def as_nobody() -> Iterator[None]:
    """This whole process, all its threads, has no rights but those that everybody has."""
    user = os.geteuid()
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def open_files() -> int:
    """How many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))


def _unmount(at: Path) -> None:
    # Lazily: what a failed test left open must not keep the mount.
    _run("umount", "--lazy", at)


def _run(*words: str | Path) -> None:
    subprocess.run(words, check=True, timeout=60)


def _said(*words: str | Path) -> str:
    return subprocess.run(
        words, check=True, timeout=60, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
