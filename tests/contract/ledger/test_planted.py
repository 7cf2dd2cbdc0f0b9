"""Two stores with a planted mistake: the contract must notice each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.contract.ledger import test_promotion as promotion
from tests.contract.ledger.stores import Opener
from tests.ledger.model import MemoryStore, Tables

from evenkeel.ledger.rows import Holder, Promoted
from evenkeel.model import RunState


class LeavesSomeDue(MemoryStore):
    """Takes rows out of what is due while it walks through it, and so passes over every second one:
    what it passes over stays due although it is told as promoted."""

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        due = [hot for hot in self._in_order() if hot.row.due_at <= before]
        due = [hot for hot in due if hot.row.state is not RunState.PENDING][:limit]
        rows = tuple(hot.row for hot in due)
        for hot in due:
            promoted = await super().promote_due(hot.row.due_at, 1, holder)
            assert promoted
            due.remove(hot)
        return Promoted(rows)


class LosesTheUnreported(MemoryStore):
    """Forgets a row as soon as it is promoted: what its caller did not report is lost with it."""

    async def promote_due(self, before: float, limit: int, holder: Holder) -> Promoted:
        promoted = await super().promote_due(before, limit, holder)
        for row in promoted.rows:
            del self.tables.hot[row.run]
        return promoted


def opener(kind: type[MemoryStore]) -> Opener:
    tables = Tables()

    async def open_again(*, readonly: bool = False) -> MemoryStore:
        return kind(tables, readonly=readonly)

    return open_again


Check = Callable[[Opener], Awaitable[None]]
DUE_NO_MORE: Check = promotion.test_what_was_promoted_is_not_due_any_more
EXACTLY_ONE: Check = promotion.test_each_goes_to_exactly_one_of_eight_callers
NEXT_PROCESS: Check = promotion.test_rows_of_an_older_term_are_put_back_for_the_next_process


@pytest.mark.parametrize("check", [DUE_NO_MORE, EXACTLY_ONE, NEXT_PROCESS])
async def test_the_model_itself_is_sound(check: Check) -> None:
    await check(opener(MemoryStore))


@pytest.mark.parametrize("check", [DUE_NO_MORE, EXACTLY_ONE])
async def test_a_store_that_leaves_promoted_rows_due_fails(check: Check) -> None:
    with pytest.raises(AssertionError):
        await check(opener(LeavesSomeDue))


@pytest.mark.parametrize("check", [EXACTLY_ONE, NEXT_PROCESS])
async def test_a_store_that_loses_what_nobody_reported_fails(check: Check) -> None:
    with pytest.raises(AssertionError):
        await check(opener(LosesTheUnreported))
