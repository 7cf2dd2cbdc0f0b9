"""The only module that may read time or randomness; everything else takes them as parameters.

The shell calls it. Tests run the shell on an event loop whose time is virtual, and pass a `Clock`
of their own.
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from typing import Protocol


class Clock(Protocol):
    """What the shell knows of time."""

    def now(self) -> float:
        """Wall-clock seconds since the epoch: decides what is due."""

    def monotonic(self) -> float:
        """Seconds that never jump: measures how long something took."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


async def sleep(seconds: float) -> None:
    """Sleep on the running loop, whose time may be virtual."""
    await asyncio.sleep(max(0.0, seconds))


async def tries(
    first_s: float, longest_s: float, *, count: int | None = None
) -> AsyncIterator[None]:
    """Try at once, then after ever longer, jittered pauses; for ever unless `count` is given."""
    pause_s = first_s
    for number in itertools.count(1):
        yield
        if number == count:
            return
        await sleep(jitter(pause_s))
        pause_s = min(longest_s, pause_s * 2)


def jitter(seconds: float) -> float:
    """0.5 to 1.5 times it: clients that lost one server must not return all at once."""
    return seconds * (0.5 + random.random())
