"""The connections to one file: one that writes, and one for each thread that reads.

The file is opened when it is first needed, and again after it was damaged, deleted or swapped; a
damaged one is kept beside the new one. All of this blocks, so the store's threads do it (`worker`).
A reader that meets damage leaves it to the next write to set the file aside.
"""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from evenkeel.clock import Clock
from evenkeel.ledger.sqlite import files
from evenkeel.ledger.sqlite.errors import Meaning, is_about_space, is_of_the_disk, meaning
from evenkeel.ledger.sqlite.migrate import migrate, require_readable
from evenkeel.ledger.sqlite.worker import Job
from evenkeel.ledger.store import BadStore, StoreAway

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

BUSY_SHARE = 0.5
"""How much of a call's time a statement waits for a lock: SQLite cannot be interrupted while it
waits. With less, a process would be refused while others write without a pause."""
_WRITER_CACHE_KIB = 32_768
_READER_CACHE_KIB = 4_096
_LOG_BYTES = 64 << 20
_RESET_WITHIN_S = 5.0


class _Reader:
    """The connection of one thread that reads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None


class Connections:
    """All that is open of one file."""

    def __init__(self, path: Path, *, readonly: bool, within_s: float, clock: Clock) -> None:
        self.path = path
        self.readonly = readonly
        self._busy_s = within_s * BUSY_SHARE
        self._clock = clock
        self._file = path
        self._writer: sqlite3.Connection | None = None
        self._watch: files.Watch | None = None
        self._damage = ""
        self._gate = threading.Lock()
        """Held while no reader may open the file."""
        self._readers: list[_Reader] = []
        self._own = threading.local()
        self.openings = 0
        """How often the file was opened for writing: what is remembered of it is forgotten then."""

    # --- writing: one thread alone ----------------------------------------------------------------

    def open(self) -> None:
        """Open the file now, so that a wrong one is told at once."""
        try:
            self._file = files.prepare(self.path, readonly=self.readonly)
            if self.readonly:
                connection = self._connect_reader()
                try:
                    require_readable(connection, self._file)
                finally:
                    connection.close()
            else:
                with self._gate:
                    self._open_writer()
        except sqlite3.Error as error:
            if meaning(error) is Meaning.DAMAGED:
                raise BadStore(
                    f"store.url: {self._file} is damaged, or no database of SQLite ({error}): name"
                    " another file"
                ) from error
            raise self._told(error) from error

    def write(self, job: Job, work: Work[T]) -> T:
        """Do work in one transaction, all of it or nothing."""
        if self.readonly:
            raise BadStore("store.url: the store was opened for reading only")
        connection: sqlite3.Connection | None = None
        try:
            connection = self._open_for_writing()
            job.use(connection)
            connection.execute("BEGIN IMMEDIATE")
            answer = work(connection)
            job.commit()
            connection.execute("COMMIT")
            return answer
        except sqlite3.Error as error:
            self._roll_back(connection)
            if meaning(error) is Meaning.DAMAGED:
                self._damage = str(error)
                self._set_aside()
            elif is_of_the_disk(error):
                # An open file would keep an administrator from mending the disk.
                self.close()
            raise self._told(error) from error
        except BaseException:
            self._roll_back(connection)
            raise

    def _open_for_writing(self) -> sqlite3.Connection:
        if self._damage:
            self._set_aside()
        if self._watch is not None and (gone := self._watch.gone()) is not None:
            watch = self._watch
            with self._gate:
                self._close_all()
                watch.drop_log()
                self._reopen_writer()
            raise StoreAway(f"{gone} was deleted or swapped under the store, which was begun anew")
        if self._writer is None:
            with self._gate:
                self._reopen_writer()
        assert self._writer is not None
        return self._writer

    def _reopen_writer(self) -> None:
        try:
            self._file = files.prepare(self.path, readonly=False)
            self._open_writer()
        except BadStore as error:
            # The place was right when the store was opened, and an administrator can mend it.
            raise StoreAway(str(error)) from error

    def _open_writer(self) -> None:
        try:
            self._try_to_open()
        except sqlite3.Error as error:
            if meaning(error) is not Meaning.DAMAGED:
                raise
            if not files.was_database(self._file):
                raise BadStore(
                    f"store.url: {self._file} is no database of SQLite: name another file"
                ) from error
            files.set_aside(self._file, now=self._clock.now(), why=str(error))
            self._try_to_open()

    def _try_to_open(self) -> None:
        watch = files.Watch(self._file)
        connection = self._connect(
            "rwc",
            f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}",
            f"PRAGMA journal_size_limit = {_LOG_BYTES}",
            # What a power cut may cost is the end of the log, never the file.
            "PRAGMA synchronous = NORMAL",
        )
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise BadStore(
                    f"store.url: {self._file} lies where SQLite cannot keep a write-ahead log: name"
                    " a file on a local disk"
                )
            migrate(connection, self._file, now=self._clock.now())
        except BaseException:
            connection.close()
            raise
        watch.gone()  # learns of the log that SQLite has made
        self._writer, self._watch = connection, watch
        self.openings += 1

    def _set_aside(self) -> None:
        why, self._damage = self._damage, ""
        with self._gate:
            self._close_all()
            files.set_aside(self._file, now=self._clock.now(), why=why)

    def _roll_back(self, connection: sqlite3.Connection | None) -> None:
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._close_writer()  # whatever it holds goes with it

    # --- reading: several threads -----------------------------------------------------------------

    def read(self, job: Job, work: Work[T]) -> T:
        """Do work on one view of the file."""
        reader = self._own_reader()
        with reader.lock:
            try:
                if reader.connection is None:
                    with self._gate:
                        reader.connection = self._connect_reader()
                connection = reader.connection
                job.use(connection)
                connection.execute("BEGIN")
                try:
                    return work(connection)
                finally:
                    job.let_go()
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                self._close_reader(reader)
                if meaning(error) is Meaning.DAMAGED:
                    self._damage = str(error)
                raise self._told(error) from error

    def _own_reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._own.reader = _Reader()
            self._readers.append(reader)
        return reader

    def _connect_reader(self) -> sqlite3.Connection:
        options = (
            f"PRAGMA cache_size = -{_READER_CACHE_KIB}",
            "PRAGMA query_only = ON",
        )
        if not self.readonly:
            return self._connect("rw", *options)
        if os.access(self._file.parent, os.W_OK, effective_ids=True) or os.path.exists(
            f"{self._file}-wal"
        ):
            return self._connect("ro", *options)
        # Nobody can have it open who writes, and SQLite could not make the log that it reads.
        return self._connect("ro&immutable=1", *options)

    # --- both -------------------------------------------------------------------------------------

    def _connect(self, mode: str, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self._file))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=self._busy_s,
            cached_statements=256,
        )
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(self._busy_s * 1000)}")
            connection.execute("PRAGMA temp_store = MEMORY")
            for pragma in pragmas:
                connection.execute(pragma)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Give back all connections."""
        with self._gate:
            self._close_all()

    def _close_all(self) -> None:
        for reader in self._readers:
            if reader.connection is not None:
                reader.connection.interrupt()
            # One that does not end keeps the file open: SQLite's locks still hold. Whoever waits
            # for the gate has no connection.
            if reader.lock.acquire(timeout=_RESET_WITHIN_S):
                self._close_reader(reader)
                reader.lock.release()
        self._close_writer()

    @staticmethod
    def _close_reader(reader: _Reader) -> None:
        if reader.connection is not None:
            reader.connection.close()
            reader.connection = None

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = self._watch = None

    def _told(self, error: sqlite3.Error) -> StoreAway:
        room = f"; {files.space(self._file)}" if is_about_space(error) else ""
        return StoreAway(f"{self._file}: {error}{room}")
