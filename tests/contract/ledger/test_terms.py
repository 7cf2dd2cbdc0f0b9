"""Terms: an older process writes no more."""

from __future__ import annotations

import pytest
from tests.builders import instant
from tests.contract.ledger.rows import exported, later, run, write, write_minutes
from tests.contract.ledger.stores import Opener

from evenkeel.ledger.rows import Holder, Minute, Written
from evenkeel.ledger.store import OlderTerm, RunStore
from evenkeel.model import RunState


async def test_terms_ascend(place: Opener) -> None:
    store = await place()
    terms = [await store.take_term(), await store.take_term(), await store.take_term(at_least=7)]
    await store.close()
    store = await place()
    terms.append(await store.take_term(at_least=3))
    facts = await store.facts()
    await store.close()

    assert terms == [1, 2, 7, 8]
    assert facts.term == 8


async def test_an_older_term_writes_nothing(store: RunStore) -> None:
    await write(store, later("09:00", "10:00"), term=1)
    before = await exported(store)
    await store.take_term()

    with pytest.raises(OlderTerm):
        await write(store, run("10:00", RunState.RUNNING), term=1)
    with pytest.raises(OlderTerm):
        await write_minutes(store, Minute(instant("10:00")))
    with pytest.raises(OlderTerm):
        await store.promote_due(float(instant("12:00")), 10, Holder(1, "old"))

    assert await exported(store) == before
    assert await write(store, run("10:00", RunState.RUNNING), term=2) == Written(accepted=1)


async def test_equal_terms_are_colleagues(place: Opener) -> None:
    one, other = await place(), await place()
    term = await one.take_term()

    assert await write(one, run("10:00", RunState.RUNNING), term=term) == Written(accepted=1)
    assert await write(other, run("10:00", RunState.FAILED), term=term) == Written(accepted=1)
    assert await write(one, run("10:00", RunState.RUNNING), term=term) == Written(illegal=1)
    await one.close()
    await other.close()


async def test_a_store_that_was_begun_anew_takes_the_term_of_its_writer(store: RunStore) -> None:
    await write(store, run("10:00", RunState.RUNNING), term=5)

    assert (await store.facts()).term == 5
    with pytest.raises(OlderTerm):
        await write(store, run("10:00", RunState.RUNNING), term=4)
    assert await store.take_term() == 6


async def test_a_store_says_when_it_was_last_written(place: Opener) -> None:
    store = await place()
    assert (await store.facts()).written_at == 0

    await write(store, run("10:00", RunState.RUNNING), at="10:01")
    first = await store.facts()
    await store.close()
    store = await place()
    again = await store.facts()
    await store.close()

    assert first.written_at == instant("10:01")
    assert (again.born, again.written_at) == (first.born, first.written_at)
    assert first.born
