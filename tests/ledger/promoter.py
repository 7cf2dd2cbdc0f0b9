"""A process that promotes due runs by eight callers, and reports each that it got:
`python -m tests.ledger.promoter PROCESS TERM REPORT`, the store's URL in EVENKEEL_STORE_URL.

A report is one line of the file a run, and what one call got is appended at once. The process goes
on until it is ended, mostly by SIGKILL: in the middle of a call, or between its answer and the
report.
"""

from __future__ import annotations

import asyncio
import os
import sys

from evenkeel.ledger import open_store
from evenkeel.ledger.rows import Holder
from evenkeel.ledger.store import RunStore

CALLERS = 8
LIMIT = 20
ALL = 1e12


async def main(process: str, term: int, report: str) -> None:
    store = await open_store(os.environ["EVENKEEL_STORE_URL"], within_s=60)
    file = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    async with asyncio.TaskGroup() as callers:
        for _ in range(CALLERS):
            callers.create_task(_call(store, Holder(term, process), file))


async def _call(store: RunStore, holder: Holder, file: int) -> None:
    while True:
        promoted = await store.promote_due(ALL, LIMIT, holder)
        lines = [f"{row.run.uid} {row.run.due} {row.attempt}\n" for row in promoted.rows]
        if lines:
            os.write(file, "".join(lines).encode())
        await asyncio.sleep(0 if lines else 0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
