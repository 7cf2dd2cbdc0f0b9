"""Jobs that go: by a user's hand, by themselves before a list shows them, by Replace. And one that
somebody makes look like another run's."""

from __future__ import annotations

import pytest
from tests.sim.controllers import Fate
from tests.sim.network import Rule
from tests.sim.play import Trouble, play
from tests.sim.scenario import JOBS, counts, dues, right, with_faults, world
from tests.sim.world import NEW_YEAR, Deed, create, every, template

from evenkeel import rfc3339


def test_24_a_job_deleted_by_hand_is_lost_and_its_place_is_free() -> None:
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Forbid")),
        Deed(30, "delete job", "a"),
        fate=lambda job: Fate(1, 1_000),
        tags=frozenset({"deleted jobs"}),
    )

    outcome = right(play(story))

    assert dues(outcome) == [20, 40]
    assert counts(outcome)["lost"] == 1


@pytest.mark.parametrize("kills", [(), ((30.5, 1.0),)], ids=["", "and a new process finds it"])
def test_24_a_running_job_whose_annotations_are_edited_is_followed_to_its_end(
    kills: tuple[tuple[float, float], ...],
) -> None:
    """Under Forbid nothing would ever run again."""
    theirs = {"evenkeel.dev/due": "2026-03-02T09:00:00Z", "evenkeel.dev/attempt": "7"}
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Forbid")),
        Deed(30, "edit job", "a", {"metadata": {"annotations": theirs}}),
        fate=lambda job: Fate(1, 11),
    )

    outcome = right(play(story, trouble=Trouble(kills=kills)))

    assert dues(outcome) == [20, 40, 60, 80]
    assert counts(outcome) == {"succeeded": 4}


def test_24_a_job_that_vanished_before_a_list_older_than_its_create_blocks_nobody() -> None:
    """The list is asked for before the create, and answered when the Job has gone again."""
    vanishing = every(60, offset=33, concurrencyPolicy="Forbid")
    vanishing["jobTemplate"] = template(ttlSecondsAfterFinished=0)
    once = {"at": rfc3339.show(NEW_YEAR + 29), "jobTemplate": template()}

    outcome = with_faults(
        world(create(1, "a", vanishing), create(1, "b", once), lasts_s=125),
        Rule("EVENT", "", "cut", times=1, from_s=28.9),  # of b's Job
        Rule("WATCH", JOBS, "410 in stream", times=1, from_s=28.9),
        Rule("GET", "/apis/batch/v1/jobs", "slow:9", times=1, from_s=28.9),
    )

    assert dues(outcome) == [33, 93]
    assert counts(outcome) == {"lost": 1, "succeeded": 1}


def test_24_a_cancelled_job_stays_until_a_status_tells_of_its_run() -> None:
    """Gone without a trace, the next process would launch the run again."""
    story = world(
        create(1, "a", every(20, concurrencyPolicy="Replace")), fate=lambda job: Fate(1, 30)
    )
    silent = Rule("PATCH", "a/status", "500", from_s=15, until_s=41)

    outcome = with_faults(story, silent, trouble=Trouble(kills=((40.5, 1.0),)))

    assert dues(outcome) == [20, 40, 60, 80]
