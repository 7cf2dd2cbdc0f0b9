"""What a disk can do to an SQLite store, on the real store and on real file systems.

Whatever happens, each call ends with its result or StoreAway, no batch is there in part, and the
store works again once the trouble is over: with all rows, or as a new store (another `born`) beside
the damaged file.
"""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.ledger.disks import (
    AS_ROOT,
    HAS_BINDFS,
    HAS_VOLUMES,
    NOBODY,
    as_nobody,
    bindfs,
    flip,
    locked,
    open_files,
    remount,
    tmpfs,
    volume,
)
from tests.ledger.filling import (
    in_time,
    opened,
    whole,
    write,
    write_in_the_end,
    write_until_away,
)

from evenkeel.ledger import open_store
from evenkeel.ledger.store import BadStore, RunStore, StoreAway

REPOSITORY = Path(__file__).parents[2]
BATCHES = 40
"""Enough rows for a page in the middle that is neither the first nor the last."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "evenkeel.db"


def url(file: Path) -> str:
    return f"sqlite://{file}"


async def born(store: RunStore) -> str:
    return (await in_time(store.facts())).born


# --- locked ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("held_s", [3.0, pytest.param(30.0, marks=pytest.mark.long)])
async def test_while_another_process_has_the_lock_writes_are_refused_and_reads_answered(
    file: Path, held_s: float
) -> None:
    async with opened(url(file), within_s=1.0) as store:
        await write(store, 0)
        before = await born(store)
        with locked(file):
            async with asyncio.timeout(60 + held_s):
                until = asyncio.get_running_loop().time() + held_s
                while asyncio.get_running_loop().time() < until:
                    with pytest.raises(StoreAway, match="lock"):
                        await write(store, 1)
            assert await whole(store) == {0}

        await write_in_the_end(store, 1)
        assert await whole(store) == {0, 1}
        assert await born(store) == before


async def test_a_short_lock_is_waited_for(file: Path) -> None:
    async with opened(url(file), within_s=30.0) as store:
        with locked(file):
            writing = asyncio.create_task(write(store, 0))
            await asyncio.sleep(0.5)
            assert not writing.done()
        await writing


async def test_a_store_that_is_locked_when_it_is_opened_may_be_opened_later(file: Path) -> None:
    async with opened(url(file)) as store:
        await write(store, 0)
    with locked(file), pytest.raises(StoreAway):
        async with opened(url(file), within_s=1.0) as store:
            await write(store, 1)
    async with opened(url(file)) as store:
        await write(store, 1)
        assert await whole(store) == {0, 1}


# --- full, stopped, read-only ---------------------------------------------------------------------


@AS_ROOT
async def test_a_full_disk_refuses_whole_batches_and_says_how_full_it_is(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "data", kib=2048) as data:
        ballast = data / "ballast"
        ballast.write_bytes(bytes(512 << 10))
        async with opened(url(data / "evenkeel.db")) as store:
            before = await born(store)
            number, why = await write_until_away(store, 0, text="x" * 500)
            assert "MiB left of 2 MiB" in why
            assert number > 0, "nothing could be written at all"
            assert await whole(store) == set(range(number))

            ballast.unlink()
            await write_in_the_end(store, number)
            assert await whole(store) == set(range(number + 1))
            assert await born(store) == before
            assert await in_time(store.check()) == []


@AS_ROOT
async def test_a_disk_that_is_full_from_the_beginning_may_have_room_later(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "data", kib=1024) as data:
        ballast = data / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(bytes(2 << 20))
        with pytest.raises(StoreAway):
            async with opened(url(data / "evenkeel.db")):
                pass
        ballast.unlink()
        async with opened(url(data / "evenkeel.db")) as store:
            await write(store, 0)


@HAS_VOLUMES
async def test_a_disk_that_does_not_answer_makes_no_call_wait_longer_than_its_time(
    tmp_path: Path,
) -> None:
    with volume(tmp_path / "data") as disk:
        async with opened(url(disk.at / "evenkeel.db"), within_s=1.0) as store:
            await write(store, 0)
            with disk.frozen():
                for _ in range(3):
                    with pytest.raises(StoreAway):
                        await write(store, 1)
            await write_in_the_end(store, 1)
            await write_in_the_end(store, 2)
            assert await whole(store) == {0, 1, 2}


@HAS_VOLUMES
async def test_a_disk_that_fails_and_is_mended_is_written_again(tmp_path: Path) -> None:
    with volume(tmp_path / "data") as disk:
        async with opened(url(disk.at / "evenkeel.db"), within_s=5.0) as store:
            await write(store, 0)
            disk.fail()
            number, _ = await write_until_away(store, 1)
            disk.mend()
            await write_in_the_end(store, number)
            assert number in await whole(store)
        async with opened(url(disk.at / "evenkeel.db")) as store:
            assert number in await whole(store)
            assert await in_time(store.check()) == []


@AS_ROOT
async def test_a_data_directory_that_is_mounted_read_only_is_a_wrong_setting(
    tmp_path: Path,
) -> None:
    with tmpfs(tmp_path / "data", kib=4096) as data:
        async with opened(url(data / "evenkeel.db")) as store:
            await write(store, 0)
        remount(data, "ro")
        with pytest.raises(BadStore, match=r"mounted read-only: name a file on a volume"):
            await in_time(open_store(url(data / "evenkeel.db")))
        remount(data, "rw")
        async with opened(url(data / "evenkeel.db")) as store:
            assert await whole(store) == {0}


@HAS_BINDFS
async def test_a_file_on_a_fuse_file_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    with (
        bindfs(tmp_path / "real", tmp_path / "fuse") as fuse,
        pytest.raises(BadStore, match=r"lies on fuse.*use PostgreSQL"),
    ):
        await in_time(open_store(url(fuse / "evenkeel.db")))
    assert list((tmp_path / "real").iterdir()) == []


# --- damaged --------------------------------------------------------------------------------------

Damage = Callable[[Path], None]


def wal(file: Path) -> Path:
    return Path(f"{file}-wal")


def page_at(file: Path, share: float) -> int:
    pages = file.stat().st_size // 4096
    return 4096 * int(pages * share)


def cut(file: Path, share: float) -> None:
    with file.open("r+b") as opened:
        opened.truncate(int(file.stat().st_size * share))


DAMAGES: dict[str, Damage] = {
    "header": lambda file: flip(file, at=0, count=100),
    "the word that says what it is": lambda file: flip(file, at=0, count=16),
    "first page": lambda file: flip(file, at=100, count=3996),
    "page in the middle": lambda file: flip(file, at=page_at(file, 0.5), count=4096),
    "half of all": lambda file: flip(file, at=page_at(file, 0.5), count=file.stat().st_size),
    "tail": lambda file: flip(file, at=-4096, count=4096),
    "cut tail": lambda file: cut(file, 0.6),
    "cut inside a page": lambda file: cut(file, 0.61),
    "nothing left": lambda file: cut(file, 0),
}
MUST_BE_NEW = {"header", "the word that says what it is", "first page"}


@pytest.mark.parametrize("what", DAMAGES)
async def test_a_file_that_was_damaged_while_it_was_closed(file: Path, what: str) -> None:
    async with opened(url(file)) as store:
        for number in range(BATCHES):
            await write(store, number)
        before = await born(store)
    DAMAGES[what](file)
    damaged = file.read_bytes()

    await work_on(file, BATCHES)

    async with opened(url(file)) as store:
        after = await born(store)
    kept = [
        path for path in file.parent.glob("evenkeel.db.damaged-*") if path.suffix[-4:] != "-wal"
    ]
    if what in MUST_BE_NEW:
        assert after != before
        assert [path.read_bytes() for path in kept] == [damaged], "the damaged file is not kept"
    elif what != "nothing left":
        assert (after != before) == bool(kept)


@pytest.mark.parametrize("what", DAMAGES)
async def test_a_file_that_is_damaged_while_it_is_open(file: Path, what: str) -> None:
    async with opened(url(file)) as store:
        for number in range(BATCHES):
            await write(store, number)
        settle(file)
        DAMAGES[what](file)
        for number in range(BATCHES, BATCHES + 20):
            await write_in_the_end(store, number)
    await work_on(file, BATCHES + 20)


@pytest.mark.parametrize("at", [0, 32, 32 + 24 + 100, -4096])
async def test_a_log_that_is_damaged_while_it_is_open(file: Path, at: int) -> None:
    async with opened(url(file)) as store:
        for number in range(5):
            await write(store, number)
        flip(wal(file), at=at, count=24)
        for number in range(5, 10):
            await write_in_the_end(store, number)
    await work_on(file, 10)


@pytest.mark.parametrize("at", [0, 32, 32 + 24 + 100, -4096])
async def test_a_log_that_was_damaged_after_a_kill(file: Path, tmp_path: Path, at: int) -> None:
    """The store goes on from a state that it had before, and no batch is there in part."""
    async with opened(url(file)) as store:
        for number in range(5):
            await write(store, number)
        killed = tmp_path / "killed"
        killed.mkdir()
        for path in (file, wal(file)):
            shutil.copy(path, killed)
    flip(wal(killed / file.name), at=at, count=24)

    await work_on(killed / file.name, 5)


async def work_on(file: Path, first: int) -> None:
    """A store on a file that may be damaged is opened, read and written; what it found damaged, it
    finds once."""
    for number in range(first, first + 3):
        async with opened(url(file)) as store:
            await write_in_the_end(store, number)
            for _ in range(3):
                try:
                    assert number in await whole(store)
                except StoreAway:
                    await write_in_the_end(store, number)
                else:
                    break
            else:
                raise AssertionError("it is away again and again")


def settle(file: Path) -> None:
    """The rows go from the log to the file, where the damage will be."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert file.stat().st_size > 10 * 4096


# --- deleted, swapped, no rights ------------------------------------------------------------------


def delete(*suffixes: str) -> Callable[[Path], None]:
    def take(file: Path) -> None:
        for suffix in suffixes:
            Path(f"{file}{suffix}").unlink()

    return take


@pytest.mark.parametrize(
    "suffixes", [("",), ("", "-wal", "-shm"), ("-wal",), ("-shm",), ("-wal", "-shm")], ids=str
)
async def test_a_file_that_is_deleted_under_an_open_store(
    file: Path, suffixes: tuple[str, ...]
) -> None:
    async with opened(url(file)) as store:
        for number in range(5):
            await write(store, number)
        before = await born(store)
        delete(*suffixes)(file)

        await write_in_the_end(store, 5)

        assert file.exists() and 5 in await whole(store)
        assert (await born(store) != before) == ("" in suffixes)
        if "" not in suffixes:
            assert await whole(store) == set(range(6))
    async with opened(url(file)) as store:
        assert 5 in await whole(store), "it went on writing to a file that no path leads to"


async def test_a_file_that_is_swapped_under_an_open_store(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    async with opened(url(other)) as store:
        await write(store, 7)
        other_born = await born(store)
    async with opened(url(file)) as store:
        await write(store, 0)
        other.rename(file)

        await write_in_the_end(store, 1)

        assert await whole(store) == {1, 7}
        assert await born(store) == other_born
    async with opened(url(file)) as store:
        assert await whole(store) == {1, 7}


async def test_a_directory_that_is_deleted_under_an_open_store(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    async with opened(url(directory / "evenkeel.db")) as store:
        await write(store, 0)
        before = await born(store)
        shutil.rmtree(directory)

        await write_in_the_end(store, 1)

        assert await whole(store) == {1}
        assert await born(store) != before


async def test_a_file_of_somebody_else_that_is_no_database_stays_as_it_is(file: Path) -> None:
    file.write_text("root:x:0:0:root:/root:/bin/bash\n")

    with pytest.raises(BadStore):
        await in_time(open_store(url(file)))
    assert file.read_text() == "root:x:0:0:root:/root:/bin/bash\n"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@AS_ROOT
async def test_rights_that_are_lost_and_given_back() -> None:
    with TemporaryDirectory() as directory:  # below directories that all may enter
        data = Path(directory) / "data"
        data.mkdir()
        for path in (data, data.parent):
            shutil.chown(path, NOBODY)
        with as_nobody():
            async with opened(url(data / "evenkeel.db"), within_s=2.0) as store:
                await write(store, 0)
                before = await born(store)
                data.chmod(0)
                with pytest.raises(StoreAway):
                    await write(store, 1)
                data.chmod(0o700)
                await write_in_the_end(store, 1)
                assert await whole(store) == {0, 1}
                assert await born(store) == before


# --- opened and closed, killed --------------------------------------------------------------------


async def test_opening_and_closing_leaks_no_descriptor_and_no_thread(file: Path) -> None:
    async with opened(url(file)) as store:
        await write(store, 0)
    gc.collect()
    before = open_files(), threading.active_count()
    for _ in range(1_000):
        async with opened(url(file)) as store:
            await born(store)
    gc.collect()
    assert open_files() <= before[0]
    async with asyncio.timeout(30):  # the last threads end a moment after their store
        while threading.active_count() > before[1]:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.long)])
async def test_killed_in_the_middle_of_batches_each_is_there_whole_or_not_at_all(
    file: Path, kills: int
) -> None:
    said, first = 0, 0
    for _ in range(kills):
        words = [sys.executable, "-m", "tests.ledger.writing_process", url(file), str(first)]
        with subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            await asyncio.sleep(random.uniform(0, 0.3))
            writer.kill()
            told = [first, *(int(line) for line in writer.stdout)]
        async with opened(url(file)) as store:
            there = await whole(store)
        assert set(range(told[-1] + 1)) <= there, "what was acknowledged is gone"
        assert there <= set(range(told[-1] + 2)), "more is there than was written"
        said, first = said + len(told), max(there) + 1
    assert said > kills
