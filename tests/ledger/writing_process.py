"""`python -m tests.ledger.writing_process URL FIRST`: write batch after batch until killed.

Prints the number of each batch once the store has taken it. Called by tests that kill it.
"""

from __future__ import annotations

import asyncio
import sys

from tests.ledger.filling import opened, write_in_the_end


async def main(url: str, first: int) -> None:
    async with opened(url) as store:
        number = first
        while True:
            await write_in_the_end(store, number)
            print(number, flush=True)
            number += 1


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
