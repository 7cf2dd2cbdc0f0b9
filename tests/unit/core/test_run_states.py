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
