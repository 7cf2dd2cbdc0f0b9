"""Places on real file systems where an SQLite file can, or cannot, be."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.ledger.disks import (
    AS_ROOT,
    HAS_BINDFS,
    NOBODY,
    as_nobody,
    bindfs,
    bound,
    remount,
    tmpfs,
)

from evenkeel.ledger.sqlite.files import prepare
from evenkeel.ledger.store import BadStore


@HAS_BINDFS
def test_a_fuse_file_system_is_refused_also_behind_a_link_and_a_second_mount(
    tmp_path: Path,
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fuse" / "new")
    with bindfs(tmp_path / "real", tmp_path / "fuse") as fuse, bound(fuse, tmp_path / "second"):
        for place in (fuse, fuse / "new", tmp_path / "link", tmp_path / "second"):
            with pytest.raises(BadStore, match=r"lies on fuse.*a local disk .*or use PostgreSQL"):
                prepare(place / "evenkeel.db", readonly=False)
    assert list((tmp_path / "real").iterdir()) == []


@HAS_BINDFS
def test_a_local_directory_inside_a_fuse_file_system_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "local").mkdir()
    with (
        bindfs(tmp_path / "real", tmp_path / "fuse") as fuse,
        bound(tmp_path / "local", fuse / "inner") as inner,
    ):
        prepare(inner / "evenkeel.db", readonly=False)


@AS_ROOT
def test_a_volume_that_is_mounted_read_only_is_refused(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "volume", kib=64) as volume:
        remount(volume, "ro")
        for place in (volume, volume / "new"):
            with pytest.raises(BadStore, match=r"[Rr]ead-only"):
                prepare(place / "evenkeel.db", readonly=False)


@AS_ROOT
@pytest.mark.parametrize("what", ["directory", "file"])
def test_what_another_user_owns_is_refused(what: str) -> None:
    with TemporaryDirectory() as directory:  # below directories that all may enter
        file = Path(directory) / "evenkeel.db"
        file.touch(mode=0o600)
        file.parent.chmod(0o777 if what == "file" else 0o755)
        refused = file if what == "file" else file.parent

        with (
            as_nobody(),
            pytest.raises(BadStore, match=f"{refused} may not be written by user {NOBODY}: change"),
        ):
            prepare(file, readonly=False)
