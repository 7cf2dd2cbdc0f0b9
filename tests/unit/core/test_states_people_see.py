"""The states that people and the ledger see: one table, and the scheduler's stages keep to it."""

from __future__ import annotations

import pytest

from evenkeel.core.schedule.run import NEXT, Stage, state_of
from evenkeel.model import ENDED, STEPS, RunState, reaches

TABLE = """
scheduled -> pending skipped missed cancelled
pending -> scheduled retrying running failed skipped missed cancelled lost
running -> succeeded failed retrying cancelled lost
retrying -> pending failed cancelled
"""


def test_the_table_of_states_is_that_of_the_documentation() -> None:
    written = {
        line.split(" -> ")[0]: set(line.split(" -> ")[1].split())
        for line in TABLE.strip().splitlines()
    }

    assert {str(state): set(map(str, to)) for state, to in STEPS.items() if to} == written
    assert {state for state, to in STEPS.items() if not to} == ENDED
    assert STEPS.keys() == set(RunState)


def projected(to: Stage | RunState) -> RunState:
    return state_of(to) if isinstance(to, Stage) else to


@pytest.mark.parametrize(
    ("stage", "to"),
    [(stage, to) for stage, following in NEXT.items() for to in following],
    ids=str,
)
def test_each_step_of_a_stage_is_a_step_of_a_state_or_none(
    stage: Stage, to: Stage | RunState
) -> None:
    state, following = state_of(stage), projected(to)

    assert following is state or following in STEPS[state]


def test_a_state_reaches_itself_and_an_end_reaches_nothing_else() -> None:
    for state in RunState:
        assert reaches(state, state)
    for end in ENDED:
        assert [to for to in RunState if reaches(end, to)] == [end]
    for state in set(RunState) - ENDED:
        assert all(reaches(state, end) for end in ENDED)
