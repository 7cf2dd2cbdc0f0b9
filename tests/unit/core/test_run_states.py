"""The life of a run: legal steps only."""

import itertools

import pytest

from evenkeel.core.schedule.run import NEXT, IllegalStepError, Run, Stage, state_of
from evenkeel.model import ENDED, RunId, RunState

ANYTHING = [*Stage, *sorted(ENDED)]


@pytest.mark.parametrize(
    ("before", "after"),
    list(itertools.product(Stage, ANYTHING)),
    ids=lambda step: step.value,
)
def test_only_legal_steps_are_taken(before, after):
    run = Run(RunId("uid", 1), taken_m=0.0, stage=before)
    if after is before or after in NEXT[before]:
        run.move(after)
        assert run.stage is (after if isinstance(after, Stage) else before)
    else:
        with pytest.raises(IllegalStepError):
            run.move(after)


def test_every_stage_has_a_next_and_every_end_is_reached():
    assert NEXT.keys() == set(Stage)
    assert {step for steps in NEXT.values() for step in steps} == set(Stage) | ENDED


STEPS_OF_A_RUN = """
scheduled -> pending skipped missed cancelled
pending -> scheduled running failed skipped missed cancelled lost
running -> succeeded failed retrying cancelled lost
retrying -> pending failed cancelled
"""


def test_the_steps_that_people_see_are_those_of_the_specification():
    rows = [line.split(" -> ") for line in STEPS_OF_A_RUN.strip().splitlines()]
    specified = {before: set(after.split()) for before, after in rows}
    seen: dict[str, set[str]] = {}
    for before, steps in NEXT.items():
        for after in steps:
            state = state_of(after) if isinstance(after, Stage) else after
            if state is not state_of(before):
                seen.setdefault(state_of(before).value, set()).add(state.value)
    assert seen == specified


def test_a_living_run_is_in_one_of_the_states_that_are_no_end():
    assert {state_of(stage) for stage in Stage} == set(RunState) - ENDED
