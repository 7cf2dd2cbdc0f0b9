"""Schedules made anew, edited, suspended and resumed, at the instant where it hurts most."""

from __future__ import annotations

import pytest
from tests.sim.controllers import Fate
from tests.sim.network import Rule
from tests.sim.outcome import Outcome
from tests.sim.play import play
from tests.sim.scenario import TWENTY, counts, dues, right, with_faults, world
from tests.sim.server import JOB
from tests.sim.world import NEW_YEAR, create, delete, every, patch, template


def test_13_a_schedule_made_anew_within_a_second_has_runs_of_its_own() -> None:
    story = world(
        create(1, "a", TWENTY),
        delete(30, "a"),
        create(30.5, "a", TWENTY),
        fate=lambda job: Fate(0.5, 25),
    )

    outcome = right(play(story))

    (old, new) = sorted(outcome.specs)
    assert {job.uid for job in outcome.jobs_of("a") if job.due > NEW_YEAR + 30} == {new}
    assert [job.due - NEW_YEAR for job in outcome.jobs.values() if job.uid == old] == [20]
    assert counts(outcome) == {"succeeded": 2}
    names = {item["metadata"]["ownerReferences"][0]["uid"] for item in objects(outcome)}
    assert names == {new}


def objects(outcome: Outcome) -> list[dict]:  # type: ignore[type-arg]
    return list(outcome.server.objects[JOB].values())


def test_13_the_old_ones_status_does_not_land_on_the_new_one() -> None:
    """Its last write hangs while the schedule is deleted and made anew."""
    outcome = with_faults(
        world(create(1, "a", TWENTY), delete(40.5, "a"), create(41, "a", every(20, offset=5))),
        Rule("PATCH", "a/status", "slow:5", times=1, from_s=40),
    )

    assert counts(outcome) == {"succeeded": 3}
    assert [due for due in dues(outcome) if due > 41] == [45, 65, 85]


@pytest.mark.parametrize("at_s", [39.9, 40.0, 40.001, 40.004, 40.4])
def test_14_an_edit_at_the_due_second_uses_one_spec_whole(at_s: float) -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(at_s, "a", interval={"every": "30s"}, jobTemplate=template(2)),
    )

    outcome = right(play(story))

    by_old = {20, 40} if at_s >= 40 else {20}
    assert images(outcome) == dict.fromkeys(by_old, "work:1") | {60: "work:2", 90: "work:2"}


@pytest.mark.parametrize("at_s", [30.0, 39.9, 40.0, 40.001, 40.004, 40.4])
def test_14_what_is_due_after_an_edit_of_its_image_has_the_new_one(at_s: float) -> None:
    """Bodies are rendered ten seconds ahead: that of 40 is there when the image is edited."""
    story = world(create(1, "a", TWENTY), patch(at_s, "a", jobTemplate=template(2)))

    at_40 = "work:1" if at_s >= 40 else "work:2"
    assert images(right(play(story))) == {20: "work:1", 40: at_40, 60: "work:2", 80: "work:2"}


def images(outcome: Outcome) -> dict[int, str]:
    return {job.due - NEW_YEAR: job.image for job in outcome.jobs_of("a")}


def test_14_suspended_and_resumed_at_the_due_second_it_runs_once_at_most() -> None:
    story = world(
        create(1, "a", TWENTY),
        patch(40, "a", suspend=True),
        patch(40.001, "a", suspend=False),
    )

    outcome = right(play(story))

    assert len(set(dues(outcome))) == len(dues(outcome))
    assert set(dues(outcome)) >= {20, 60, 80}


def test_a_timing_edited_just_before_a_due_time_counts_from_its_first_sight() -> None:
    """Runs prepared ten seconds ahead must not take the new timing's due times with them."""
    story = world(create(1, "a", every(60)), patch(52, "a", interval={"every": "10s"}))

    assert dues(right(play(story))) == [60, 70, 80, 90]
