"""Which file system a path lies on, from the text of /proc/self/mountinfo.

Pure: `files` reads the text. A path that no listed mount holds has no mount; so has every path on a
system without that text.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

_NETWORK = frozenset({"cifs", "smb3", "9p", "ceph", "lustre", "fuse"})
"""What no prefix tells. `fuseblk` is not among them: it stands for a local disk."""
_NETWORK_PREFIXES = ("nfs", "fuse.")
_SHARED = frozenset({"virtiofs"})
_ESCAPED = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo."""

    number: int
    parent: int
    point: str
    """Where the file system is mounted."""
    kind: str
    """ext4, nfs4, fuse.sshfs and so on."""

    @property
    def is_network(self) -> bool:
        """Whether files may be elsewhere: SQLite's write-ahead log needs memory that all of its
        processes share, and locks that hold, and loses rows without them."""
        return self.kind in _NETWORK or self.kind.startswith(_NETWORK_PREFIXES)

    @property
    def may_be_shared(self) -> bool:
        """Whether the host of a virtual machine has the files: right as long as only this machine
        opens them."""
        return self.kind in _SHARED


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts that a mountinfo lists; lines of another form are left out."""
    return tuple(mount for line in text.split("\n") if (mount := _mount(line)) is not None)


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that holds an absolute path without links, whether the path exists or not.

    Walks as the kernel does, from mount to mount towards the path: of nested ones the innermost
    counts, of several at one place the last, and one that a later mount hides does not count."""
    listed = tuple(mounts)
    numbers = {mount.number for mount in listed}
    on_the_way = [mount for mount in listed if _holds(mount.point, path)]
    found = None
    reached = [m for m in on_the_way if m.parent not in numbers or m.parent == m.number]
    while reached:
        found = min(reached, key=lambda mount: len(mount.point))
        on_the_way.remove(found)
        reached = [mount for mount in on_the_way if mount.parent == found.number]
    return found


def _mount(line: str) -> Mount | None:
    # Any number of optional fields stands between the sixth field and the dash.
    before, dash, after = line.partition(" - ")
    words = before.split(" ")
    if not dash or len(words) < 6 or not (words[0].isdigit() and words[1].isdigit()):
        return None
    return Mount(int(words[0]), int(words[1]), _unescaped(words[4]), after.split(" ")[0])


def _unescaped(text: str) -> str:
    """Blank, tab, newline, backslash and number sign stand in mountinfo as \\040 and so on."""
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), os.fsencode(text)))


def _holds(point: str, path: str) -> bool:
    return point in ("/", path) or path.startswith(point + "/")
