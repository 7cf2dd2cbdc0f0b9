"""The place of an SQLite file, and a damaged file."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from evenkeel.ledger.sqlite import files
from evenkeel.ledger.sqlite.files import Watch, prepare, set_aside, space, was_database
from evenkeel.ledger.store import BadStore, StoreAway

NOON = 1_750_000_000.0  # 2025-06-15T15:06:40Z
PAGE = 4096


def test_missing_directories_are_made_and_the_last_is_nobody_elses(tmp_path: Path) -> None:
    file = tmp_path / "one" / "two" / "evenkeel.db"

    assert prepare(file, readonly=False) == file
    assert file.parent.is_dir() and not file.exists()
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_links_are_resolved_even_if_what_they_lead_to_is_missing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file.db").symlink_to(tmp_path / "link" / "other.db")

    assert prepare(tmp_path / "file.db", readonly=False) == tmp_path / "real" / "other.db"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadStore, match="is a directory: name a file in it"):
        prepare(tmp_path, readonly=False)


@pytest.mark.parametrize("path", ["/dev/null", "a-socket"])
def test_what_is_no_file_is_refused(tmp_path: Path, path: str) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "a-socket"))
        with pytest.raises(BadStore, match="a device, a pipe or a socket: name a file"):
            prepare(tmp_path / path, readonly=False)


def test_a_file_in_the_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(BadStore, match=r"no store can be at .*/file/evenkeel.db: "):
        prepare(tmp_path / "file" / "evenkeel.db", readonly=False)


@pytest.mark.parametrize("name", ["a\0b", "n" * 300])
def test_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadStore, match="no store can be at"):
        prepare(tmp_path / name, readonly=False)


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")

    with pytest.raises(BadStore, match="no store can be at"):
        prepare(tmp_path / "a" / "evenkeel.db", readonly=False)


def test_nothing_is_made_for_a_reader(tmp_path: Path) -> None:
    with pytest.raises(BadStore, match="there is no file"):
        prepare(tmp_path / "one" / "evenkeel.db", readonly=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(BadStore, match=f"may not be written by user {os.geteuid()}"):
        prepare(tmp_path / "evenkeel.db", readonly=False)


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs"])
def test_a_network_file_system_is_refused_with_what_to_use_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounted(monkeypatch, tmp_path, kind)

    with pytest.raises(BadStore, match=f"lies on {kind} .*a local disk .*or use PostgreSQL"):
        prepare(tmp_path / "data" / "new" / "evenkeel.db", readonly=False)
    assert not (tmp_path / "data").exists(), "something was made there"


def test_a_file_that_is_mounted_alone_is_refused_for_the_directory_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(monkeypatch, tmp_path, "nfs4", then=(tmp_path / "data" / "evenkeel.db", "ext4"))

    with pytest.raises(BadStore, match="lies on nfs4"):
        prepare(tmp_path / "data" / "evenkeel.db", readonly=False)


def test_a_directory_that_is_shared_with_a_host_is_warned_about_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mounted(monkeypatch, tmp_path, "virtiofs")

    with caplog.at_level(logging.WARNING):
        prepare(tmp_path / "data" / "evenkeel.db", readonly=False)

    assert [record.message for record in caplog.records] == ["store_may_be_shared"]


def test_where_mounts_cannot_be_read_any_place_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOUNTINFO", tmp_path / "missing")

    prepare(tmp_path / "evenkeel.db", readonly=False)


def mounted(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: str,
    *,
    then: tuple[Path, str] | None = None,
) -> None:
    """What the system says: this kind is mounted at data/, and perhaps another one inside it."""
    lines = ["1 0 0:1 / / rw - ext4 - rw", f"2 1 0:2 / {tmp_path}/data rw - {kind} - rw"]
    if then is not None:
        lines.append(f"3 2 0:3 / {then[0]} rw - {then[1]} - rw")
    said = tmp_path / "mountinfo"
    said.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(files, "_MOUNTINFO", said)


# --- damage --------------------------------------------------------------------------------------


def test_a_damaged_file_is_kept_under_another_name_with_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "evenkeel.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{file}{suffix}").write_text(f"old{suffix}")

    with caplog.at_level(logging.ERROR):
        kept = set_aside(file, now=NOON, why="page 3 is not a page")

    assert kept == tmp_path / "evenkeel.db.damaged-20250615T150640Z"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        kept.name: "old",
        f"{kept.name}-wal": "old-wal",
        f"{kept.name}-shm": "old-shm",
    }
    (said,) = caplog.records
    assert said.message == "store_damaged"
    fields = vars(said)["fields"]
    assert (fields["path"], fields["kept_as"]) == (str(file), str(kept))


def test_two_damaged_files_of_one_second_are_both_kept(tmp_path: Path) -> None:
    file = tmp_path / "evenkeel.db"
    kept = []
    for text in ("first", "second", "third"):
        file.write_text(text)
        kept.append(set_aside(file, now=NOON, why="damage"))

    assert [path.read_text() for path in kept] == ["first", "second", "third"]


def test_a_damaged_file_that_cannot_be_renamed_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "evenkeel.db"
    file.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StoreAway, match=r"\(page 3\) and cannot be renamed: Read-only file system"):
        set_aside(file, now=NOON, why="page 3")


@pytest.mark.parametrize(
    ("content", "was"),
    [
        (b"", True),
        (b"SQLite format 3\0" + bytes(100), True),
        (b"\xff" * PAGE * 3, True),
        (b"\xff" * (PAGE * 3 - 1), False),
        (b"root:x:0:0:root:/root:/bin/bash\n", False),
    ],
    ids=["empty", "a torn tail", "a torn header", "both", "a text"],
)
def test_only_what_may_have_been_a_database_is_taken_for_a_damaged_one(
    tmp_path: Path, content: bytes, was: bool
) -> None:
    file = tmp_path / "evenkeel.db"
    file.write_bytes(content)

    assert was_database(file) is was


# --- what happens to the file of an open store ----------------------------------------------------


def test_a_watch_makes_the_file_for_nobody_else_and_finds_it_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "evenkeel.db"
    watch = Watch(file)

    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("written to")
    assert watch.gone() is None


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_file_that_is_deleted_or_swapped_is_noticed(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / "evenkeel.db"
    watch = Watch(file)
    for each in ("-wal", "-shm"):
        Path(f"{file}{each}").touch()  # SQLite opens the store
    assert watch.gone() is None
    changed = Path(f"{file}{suffix}")

    with changed.open():  # as SQLite has it: else the next file might get the same number
        changed.unlink()
        assert watch.gone() == changed
        changed.touch()
        assert watch.gone() == changed


def test_the_log_of_an_earlier_process_may_be_replaced_when_the_file_is_opened(
    tmp_path: Path,
) -> None:
    file, wal = tmp_path / "evenkeel.db", tmp_path / "evenkeel.db-wal"
    wal.write_text("left behind")
    watch = Watch(file)

    with wal.open():
        wal.unlink()
        wal.touch()
        assert watch.gone() is None


def test_a_file_that_cannot_be_looked_at_any_more_is_gone(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    watch = Watch(directory / "evenkeel.db")

    directory.rename(tmp_path / "elsewhere")
    directory.touch()

    assert watch.gone() == directory / "evenkeel.db"


def test_a_file_that_cannot_be_made_may_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(StoreAway, match="cannot be made: No such file or directory"):
        Watch(tmp_path / "missing" / "evenkeel.db")


def test_how_much_room_is_left_is_said_in_words(tmp_path: Path) -> None:
    said = space(tmp_path / "evenkeel.db")

    words = said.split()
    assert said.startswith(f"the disk of {tmp_path} has ")
    assert 0 <= float(words[-6]) <= float(words[-2])
