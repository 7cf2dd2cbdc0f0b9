"""The only module that reads time or randomness; all others get them as parameters.

The modules that do I/O call it. Tests run those modules on an event loop with virtual time, and
give them a `Clock` of their own.
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from typing import Protocol


class Clock(Protocol):
    """The two clocks that the operator uses."""

    def now(self) -> float:
        """Wall-clock time, in seconds since 1970: decides what is due. It may jump."""

    def monotonic(self) -> float:
        """Seconds from an unknown start, which never jump: measures how long something takes."""


class SystemClock:
    """The clocks of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


async def sleep(seconds: float) -> None:
    """Sleep by the time of the running event loop, which is virtual in tests."""
    await asyncio.sleep(max(0.0, seconds))


async def wait_for(event: asyncio.Event, longest_s: float) -> None:
    """Wait until the event is set, at most so long."""
    try:
        async with asyncio.timeout(longest_s):
            await event.wait()
    except TimeoutError:
        return


async def tries(
    first_s: float, longest_s: float, *, count: int | None = None
) -> AsyncIterator[None]:
    """Yield at once, then after pauses that double up to `longest_s`, each with jitter. `count`
    limits the number of tries."""
    pause_s = first_s
    for number in itertools.count(1):
        yield
        if number == count:
            return
        await sleep(jitter(pause_s))
        pause_s = min(longest_s, pause_s * 2)


def jitter(seconds: float) -> float:
    """A random time from 0.5 to 1.5 times `seconds`: clients that lost the same server must not all
    return at the same moment."""
    return seconds * (0.5 + random.random())
