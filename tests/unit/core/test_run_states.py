"""The life of a run: legal steps only."""

import pytest

from evenkeel.core.entry import IllegalStepError, Run
from evenkeel.model import ENDED, NEXT_STATES, RunId, RunState


@pytest.mark.parametrize("before", RunState)
def test_only_legal_steps_are_taken(before):
    for after in RunState:
        run = Run(RunId("uid", 1), taken_at=0.0, state=before)
        if after is before or after in NEXT_STATES.get(before, ()):
            run.move(after)
            assert run.state is after
        else:
            with pytest.raises(IllegalStepError):
                run.move(after)


def test_an_end_has_no_next():
    assert not ENDED & NEXT_STATES.keys()
    assert ENDED | NEXT_STATES.keys() == set(RunState)


STEPS_OF_A_RUN = """
scheduled -> pending skipped missed cancelled
pending -> scheduled running failed skipped missed cancelled lost
running -> succeeded failed retrying cancelled lost
retrying -> pending failed cancelled
"""


def test_the_legal_steps_are_those_of_the_specification():
    rows = [line.split(" -> ") for line in STEPS_OF_A_RUN.strip().splitlines()]
    assert {before.value: {*map(str, after)} for before, after in NEXT_STATES.items()} == {
        before: set(after.split()) for before, after in rows
    }
