"""File locks between processes and between threads of one process.

Called by build.py (one build of a part at a time) and by choose.py (one start or stop of a
cluster name at a time). The kernel releases a lock when its holder dies, so a crash never leaves
one behind. Not guaranteed: fairness among waiters, and anything at all on a network file system.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .report import say


@contextmanager
def held(path: Path, *, waiting_for: str) -> Iterator[None]:
    """Waits for the lock as long as it takes and says so every 15 seconds."""
    asked = said = time.monotonic()
    while (descriptor := _try(path)) is None:
        now = time.monotonic()
        if now - said >= 15:
            said = now
            say(f"waiting for {waiting_for} ({now - asked:.0f} s)")
        time.sleep(0.1)
    try:
        yield
    finally:
        _release(path, descriptor)


@contextmanager
def held_if_free(path: Path) -> Iterator[bool]:
    """Yields whether the lock was free, in which case it is held inside the block."""
    descriptor = _try(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            _release(path, descriptor)


def _try(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder may have deleted the file between our open and our lock: a lock on a
        # deleted file excludes nobody.
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _release(path: Path, descriptor: int) -> None:
    path.unlink(missing_ok=True)  # still held: whoever opened it before sees the difference in _try
    os.close(descriptor)
