"""How the modules of this store do something in a transaction."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from evenkeel.ledger.postgres.connections import Connection

T = TypeVar("T")


class Runner(Protocol):
    """Does work in a transaction of its own, again if another one got in its way."""

    async def __call__(
        self, work: Callable[[Connection], Awaitable[T]], *, reading: bool = False
    ) -> T: ...
