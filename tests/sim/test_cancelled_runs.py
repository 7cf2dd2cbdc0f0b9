"""A run is cancelled before, while and after its Job is created: no Job of it is left running."""

from __future__ import annotations

import pytest
from tests.sim.controllers import Fate
from tests.sim.network import Rule
from tests.sim.play import Trouble
from tests.sim.scenario import JOBS, counts, dues, with_faults, world
from tests.sim.world import NEW_YEAR, Deed, create, every

from evenkeel.model import RunState

SLOW = Rule("POST", JOBS, "slow:5", from_s=39, until_s=41)
"""The create of the run due at 40 is done at 45."""

DUE_S = 40


@pytest.mark.parametrize(
    ("at_s", "created"),
    [(35, False), (42, True), (46, True)],
    ids=["before its create", "while it is created", "when its Job runs"],
)
@pytest.mark.parametrize("kills", [(), ((55.0, 1.0),)], ids=["", "and the process dies later"])
def test_a_run_is_cancelled(at_s: float, created: bool, kills: tuple[tuple[float, float]]) -> None:
    story = world(
        create(1, "a", every(40)),
        Deed(at_s, "cancel run", "a", value=DUE_S),
        fate=lambda job: Fate(0.5, 1_000),
    )

    outcome = with_faults(story, SLOW, trouble=Trouble(kills=kills))

    assert outcome.answers == [RunState.CANCELLED]
    assert counts(outcome) == {"cancelled": 1}
    assert dues(outcome) == ([DUE_S, 80] if created else [80])
    assert [job.due - NEW_YEAR for job in outcome.jobs.values() if job.deleted_at is None] == [80]


def test_a_run_that_waits_behind_a_closed_lane_is_cancelled_there() -> None:
    story = world(
        create(1, "a", every(40)),
        Deed(50, "cancel run", "a", value=DUE_S),
    )

    outcome = with_faults(story, Rule("POST", JOBS, "429:20", times=1, from_s=39))

    assert outcome.answers == [RunState.CANCELLED]
    assert dues(outcome) == [80]
    assert counts(outcome) == {"cancelled": 1, "succeeded": 1}


def test_a_run_is_cancelled_while_it_is_created_and_no_watch_tells_of_its_job() -> None:
    story = world(
        create(1, "a", every(40)),
        Deed(42, "cancel run", "a", value=DUE_S),
        fate=lambda job: Fate(0.5, 1_000),
    )

    outcome = with_faults(story, SLOW, Rule("WATCH", JOBS, "hang"))

    assert counts(outcome) == {"cancelled": 1}
    assert [job.due - NEW_YEAR for job in outcome.jobs.values() if job.deleted_at is None] == [80]
