"""The ledger in a file of SQLite: the default, for one machine.

Its limits: one process at a time writes, some thousand rows a second; the file must lie on a local
disk (`files` refuses network file systems); a backup of a running store is `evenkeel ledger copy`,
never a copy of the file.
"""

from pathlib import Path

from evenkeel.clock import Clock, SystemClock
from evenkeel.ledger.sqlite.store import SqliteStore
from evenkeel.ledger.store import RunStore


async def open_sqlite(
    path: Path, *, readonly: bool, within_s: float, clock: Clock | None = None
) -> RunStore:
    """Open a file, or begin one."""
    store = SqliteStore(path, readonly=readonly, within_s=within_s, clock=clock or SystemClock())
    try:
        await store.open()
    except BaseException:
        await store.close()
        raise
    return store
