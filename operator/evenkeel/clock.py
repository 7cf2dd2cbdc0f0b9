"""The only module that may read time or randomness; everything else takes them as parameters.

The shell calls it. Tests run the shell on an event loop whose time is virtual, and pass a `Clock`
of their own.
"""

import asyncio
import random
import time
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


def jitter(seconds: float) -> float:
    """0.5 to 1.5 times it: clients that lost one server must not return all at once."""
    return seconds * (0.5 + random.random())
