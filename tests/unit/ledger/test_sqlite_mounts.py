"""On which file system a path lies."""

from __future__ import annotations

import pytest

from evenkeel.ledger.sqlite.mounts import Mount, mount_of, parse

A_NODE = r"""
23 29 0:22 / /sys rw,nosuid - sysfs sysfs rw
29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 29 0:35 / /media/disk rw shared:5 master:2 - nfs4 files:/home rw,vers=4.2
41 40 254:0 /scratch /media/disk/scratch rw - ext4 /dev/vda rw
42 29 0:36 / /media/my\040books rw - fuse.sshfs books:/ rw
43 29 0:37 / /media/back\134slash rw - cifs //host/share rw
44 29 0:38 / /media/tab\011line\012end rw - tmpfs - rw
45 29 0:39 / /media/stick rw - fuseblk /dev/sdb1 rw
46 29 254:0 /srv/data /bound rw - ext4 /dev/vda rw
47 29 0:40 / /bound\054not rw - 9p host rw
"""
HIDING = """
29 1 254:0 / / rw - ext4 /dev/vda rw
50 29 0:50 / /a/b rw - nfs4 files:/ rw
51 29 0:51 / /a rw - xfs /dev/vdb rw
60 29 0:60 / /twice rw - ceph mon:/ rw
61 60 0:61 / /twice rw - xfs /dev/vdc rw
"""
CHANGED_ROOT = "70 12 254:7 /volumes/1 /srv rw - ext4 /dev/vda rw\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/srv/evenkeel.db", "ext4"),
        ("/media/disk", "nfs4"),
        ("/media/disk/anna/not/there/yet.db", "nfs4"),
        ("/media/disk/scratch/evenkeel.db", "ext4"),
        ("/media/disks/evenkeel.db", "ext4"),
        ("/media/my books/evenkeel.db", "fuse.sshfs"),
        ("/media/back\\slash/evenkeel.db", "cifs"),
        ("/media/tab\tline\nend/evenkeel.db", "tmpfs"),
        ("/media/stick/evenkeel.db", "fuseblk"),
        ("/bound/evenkeel.db", "ext4"),
        ("/bound,not/evenkeel.db", "9p"),
    ],
)
def test_the_innermost_mount_holds_a_path(path: str, kind: str) -> None:
    found = mount_of(path, parse(A_NODE))

    assert found is not None and found.kind == kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/a/b/evenkeel.db", "xfs"), ("/a/evenkeel.db", "xfs"), ("/twice/evenkeel.db", "xfs")],
)
def test_a_mount_that_a_later_one_hides_does_not_count(path: str, kind: str) -> None:
    found = mount_of(path, parse(HIDING))

    assert found is not None and found.kind == kind


def test_where_the_root_is_no_mount_of_its_own_paths_beside_the_mounts_have_none() -> None:
    mounts = parse(CHANGED_ROOT)

    assert mount_of("/evenkeel.db", mounts) is None
    found = mount_of("/srv/evenkeel.db", mounts)
    assert found is not None and found.kind == "ext4"


def test_a_root_that_is_its_own_parent_is_one() -> None:
    found = mount_of("/a", parse("1 1 0:1 / / rw - rootfs rootfs rw\n"))

    assert found == Mount(1, 1, "/", "rootfs")


@pytest.mark.parametrize("line", ["", "text", "1 2 3", "a b 0:1 / / rw - ext4 - rw", "1 2 0:1 / /"])
def test_a_line_of_another_form_is_left_out(line: str) -> None:
    assert parse(line) == ()


def test_a_name_that_is_not_utf_8_and_one_with_an_odd_line_end_are_read() -> None:
    text = "1 0 0:1 / / rw - ext4 - rw\n2 1 0:2 / /a\udcff\x85b rw - nfs x rw\n"

    found = mount_of("/a\udcff\x85b/c", parse(text))

    assert found is not None and found.kind == "nfs"


@pytest.mark.parametrize(
    ("kind", "is_network"),
    [
        ("nfs", True),
        ("nfs4", True),
        ("cifs", True),
        ("smb3", True),
        ("fuse", True),
        ("fuse.sshfs", True),
        ("fuse.glusterfs", True),
        ("9p", True),
        ("ceph", True),
        ("lustre", True),
        ("fuseblk", False),
        ("virtiofs", False),
        ("ext4", False),
        ("xfs", False),
        ("btrfs", False),
        ("zfs", False),
        ("overlay", False),
        ("tmpfs", False),
    ],
)
def test_the_kinds_of_network_file_systems(kind: str, is_network: bool) -> None:
    assert Mount(1, 0, "/", kind).is_network is is_network


def test_only_virtiofs_may_be_shared_with_the_host_of_a_virtual_machine() -> None:
    assert [k for k in ("virtiofs", "ext4", "nfs4") if Mount(1, 0, "/", k).may_be_shared] == [
        "virtiofs"
    ]
