"""What a ledger has of an operator's runs, beside what the cluster has of them.

Called by tests, which are not on an event loop: each look opens the store, reads and closes it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tests.cluster.world import World

from evenkeel.ledger import open_store
from evenkeel.ledger.audit import Audit, audit
from evenkeel.ledger.rows import RunQuery, RunRow
from evenkeel.ledger.store import RunStore, StoreAway
from evenkeel.model import BY_SCHEDULE

T = TypeVar("T")
BEFORE_S = 3600


@dataclass(frozen=True)
class Ledger:
    """One look at a store."""

    audit: Audit
    born: str
    counts: dict[str, Counter[str]]
    """By `namespace/name`: due times by state, those of ranges included."""

    @property
    def is_settled(self) -> bool:
        """Every due time has its row, and none has two."""
        return self.audit.balanced and self.audit.found.not_yet == 0


def ledger(url: str) -> Ledger:
    """The last hour of a store."""
    return _asked(url, _look)


def runs(url: str, ns: str, name: str) -> list[RunRow]:
    """The rows of one schedule's runs, newest first."""

    async def look(store: RunStore) -> list[RunRow]:
        query = RunQuery(namespace=ns, name=name, ranges=False, limit=500)
        page = await store.runs(query)
        return [row for row in page.items if isinstance(row, RunRow)]

    return _asked(url, look)


def rows_of_requests(url: str, ns: str, name: str) -> Counter[str]:
    """The runs of one schedule that requests asked for, by state."""

    async def look(store: RunStore) -> Counter[str]:
        found: Counter[str] = Counter()
        query = RunQuery(namespace=ns, name=name, ranges=False, limit=500)
        while True:
            page = await store.runs(query)
            found.update(
                row.state.value
                for row in page.items
                if isinstance(row, RunRow) and row.run.kind != BY_SCHEDULE
            )
            if not page.next:
                return found
            query = replace(query, cursor=page.next)

    return _asked(url, look)


def differences(world: World, ns: str, names: list[str], found: Ledger) -> dict[str, object]:
    """The schedules whose status counts other ends than the ledger has; empty: they agree."""
    told = {name: world.counts(ns, name) for name in names}
    kept = {name: dict(found.counts.get(f"{ns}/{name}", {})) for name in names}
    return {name: (told[name], kept[name]) for name in names if told[name] != kept[name]}


async def _look(store: RunStore) -> Ledger:
    now = int(time.time())
    first, end = now - BEFORE_S, now + BEFORE_S
    counts: dict[str, Counter[str]] = {}
    async for book in store.books(first, end):
        of_one = counts.setdefault(book.schedule.key, Counter())
        of_one.update(state.value for _, state in book.runs)
        for span in book.spans:
            of_one.update(span.counts)
    return Ledger(await audit(store, first, end), (await store.facts()).born, counts)


def _asked(url: str, look: Callable[[RunStore], Awaitable[T]]) -> T:
    async def ask() -> T:
        store = await open_store(url, readonly=True)
        try:
            return await look(store)
        finally:
            await store.close()

    try:
        return asyncio.run(ask())
    except StoreAway as error:  # `eventually` looks again
        raise AssertionError(str(error)) from error
