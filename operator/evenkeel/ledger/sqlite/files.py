"""The file of an SQLite store: whether its place can hold one, and what becomes of a damaged one.

Called by the store, from its own threads: all of this waits for the disk. `Watch` does not notice a
file that somebody writes over in place.
"""

import datetime as dt
import os
from pathlib import Path

from evenkeel.ledger.sqlite.mounts import mount_of, parse
from evenkeel.ledger.store import BadStore, StoreAway
from evenkeel.log import log

_MOUNTINFO = Path("/proc/self/mountinfo")
_MAGIC = b"SQLite format 3\0"
_PAGE_BYTES = 4096
BESIDE = ("-wal", "-shm")
"""What SQLite puts beside a file: they belong together."""

_Identity = tuple[int, int]


def prepare(path: Path, *, readonly: bool) -> Path:
    """The file itself, links resolved, in a directory where a store can be. Makes the directory,
    unless the file is only read. BadStore: no store can be there."""
    try:
        file = Path(os.path.realpath(path))
        if file.is_dir():
            raise BadStore(f"store.url: {path} is a directory: name a file in it")
        if file.exists() and not file.is_file():
            raise BadStore(f"store.url: {path} is a device, a pipe or a socket: name a file")
        _refuse_network(file)
        if readonly:
            _require_readable(file)
        else:
            # What containers say of their failures is in the rows: for nobody else to read.
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_writable(file)
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL
        raise BadStore(f"store.url: no store can be at {path}: {_words(error)}") from error
    return file


def was_database(file: Path) -> bool:
    """Whether a file that SQLite does not take for a database may be a damaged one. What never was
    one must stay where it is: somebody has named it by mistake."""
    with file.open("rb") as opened:
        begins = opened.read(len(_MAGIC))
    return begins == _MAGIC or file.stat().st_size % _PAGE_BYTES == 0


def set_aside(file: Path, *, now: float, why: str) -> Path:
    """Rename a damaged file, with what lies beside it, and return its new path. Nothing may have it
    open. StoreAway: it cannot be renamed."""
    kept = _free_name(file, now)
    try:
        # The log first: a new file of the same name would make SQLite delete it.
        for suffix in (*BESIDE, ""):
            old = Path(f"{file}{suffix}")
            if old.exists():
                old.rename(f"{kept}{suffix}")
    except OSError as error:
        raise StoreAway(
            f"the store {file} is damaged ({why}) and cannot be renamed: {_words(error)}"
        ) from error
    log("store_damaged", level="error", path=str(file), kept_as=str(kept), error=why)
    return kept


class Watch:
    """Notices that a file of an open store was deleted or swapped: SQLite would go on writing to
    what no path leads to any more, without an error.

    Made before SQLite opens the file; asked once SQLite has written to it, and before each
    batch."""

    def __init__(self, file: Path) -> None:
        self._paths = (file, *(Path(f"{file}{suffix}") for suffix in BESIDE))
        self._known: dict[Path, _Identity] = {}
        try:
            if (found := _identity(file)) is None:
                file.touch(mode=0o600)
                found = _identity(file)
        except OSError as error:
            raise StoreAway(f"{file} cannot be made: {_words(error)}; {space(file)}") from error
        if found is not None:
            self._known[file] = found

    def gone(self) -> Path | None:
        """The first file that is not the one that it was; None: all are."""
        for path in self._paths:
            found = _identity(path)
            if found is not None:
                self._known.setdefault(path, found)
            if found != self._known.get(path):
                return path
        return None

    def drop_log(self) -> None:
        """Delete what a file that is gone has left beside the one in its place, into which SQLite
        would write it. Nothing may have the files open."""
        file, *beside = self._paths
        if _identity(file) == self._known.get(file):
            return
        for path in beside:
            if (found := _identity(path)) is not None and found == self._known.get(path):
                path.unlink()


def space(file: Path) -> str:
    """How much room is left for a file, as a part of a sentence."""
    try:
        disk = os.statvfs(file.parent)
    except OSError as error:
        return f"the disk of {file.parent} does not say how full it is: {_words(error)}"
    free, total = (blocks * disk.f_frsize / 2**20 for blocks in (disk.f_bavail, disk.f_blocks))
    return f"the disk of {file.parent} has {free:.0f} MiB left of {total:.0f} MiB"


def _require_readable(file: Path) -> None:
    if not file.exists():
        raise BadStore(f"store.url: there is no file {file}")
    if not os.access(file, os.R_OK, effective_ids=True):
        raise BadStore(f"store.url: {file} may not be read by user {os.geteuid()}")


def _require_writable(file: Path) -> None:
    # The directory too: SQLite makes its log in it.
    for place in (file.parent, file):
        if not place.exists() or os.access(place, os.W_OK, effective_ids=True):
            continue
        if os.statvfs(place).f_flag & os.ST_RDONLY:
            raise BadStore(
                f"store.url: {place} is mounted read-only: name a file on a volume that can be"
                " written"
            )
        raise BadStore(
            f"store.url: {place} may not be written by user {os.geteuid()}: change its owner or"
            " name a file elsewhere"
        )


def _refuse_network(file: Path) -> None:
    try:
        mounts = parse(os.fsdecode(_MOUNTINFO.read_bytes()))
    except OSError:  # not Linux, or no /proc: nobody can tell
        return
    # A single file may be mounted, and then its log lies on another file system.
    for mount in {mount_of(str(place), mounts) for place in (file, file.parent)}:
        if mount is None:
            continue
        if mount.is_network:
            raise BadStore(
                f"store.url: {file} lies on {mount.kind} (mounted at {mount.point}), where SQLite"
                " loses rows: name a file on a local disk or a block volume, or use PostgreSQL"
                " (postgresql://user@host/database)"
            )
        if mount.may_be_shared:
            log(
                "store_may_be_shared",
                level="warning",
                path=str(file),
                file_system=mount.kind,
                mounted_at=mount.point,
                hint="no other machine may open the file",
            )


def _free_name(file: Path, now: float) -> Path:
    stamp = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    number, kept = 1, Path(f"{file}.damaged-{stamp}")
    while any(Path(f"{kept}{suffix}").exists() for suffix in ("", *BESIDE)):
        number += 1
        kept = Path(f"{file}.damaged-{stamp}-{number}")
    return kept


def _identity(path: Path) -> _Identity | None:
    try:
        found = path.stat()
    except OSError:  # no such file, or no right to look any more
        return None
    return found.st_dev, found.st_ino


def _words(error: Exception) -> str:
    """The reason alone: the sentence around it names the path."""
    return str(getattr(error, "strerror", None) or error)
