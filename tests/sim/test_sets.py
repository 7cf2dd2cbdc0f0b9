"""Schedules that arrive together, and what happens to them before their set is improved: restarts,
edits, deletions, and others that keep coming."""

from __future__ import annotations

import pytest
from tests.sim.controllers import Fate
from tests.sim.outcome import Outcome
from tests.sim.play import CALM, Trouble, play
from tests.sim.scenario import counts, dues, right
from tests.sim.server import Json
from tests.sim.world import Deed, World, create, delete, patch, template

EVERY_S = (420, 300, 360, 120, 240, 420, 180, 300, 360, 120, 240, 60)
"""The long ones first: placed one by one, the short ones find what they left."""
NAMES = tuple(f"job-{number:02}" for number in range(len(EVERY_S)))
ARRIVED_S = 2.2
IMPROVED_S = ARRIVED_S + 5
"""No other one has come for five seconds."""
LASTS_S = 560
IMPROVED = "improved before its first run"


def interval(every_s: int, **spec: object) -> Json:
    return {"interval": {"every": f"{every_s}s"}, "jobTemplate": template(), **spec}


def world(*deeds: Deed, arrive_every_s: float = 0.1) -> World:
    arrivals = [
        create(1 + number * arrive_every_s, name, interval(EVERY_S[number]))
        for number, name in enumerate(NAMES)
    ]
    return World("a set", (*arrivals, *deeds), LASTS_S, fate=lambda job: Fate(0.5, 3))


def improved(outcome: Outcome) -> list[str]:
    """Whose status tells of it."""
    there = {item["metadata"]["name"]: item for item in outcome.schedules.values()}
    return [
        name
        for name in NAMES
        if IMPROVED in there[name].get("status", {}).get("placement", {}).get("reason", "")
    ]


def assert_runs_by_its_phase(outcome: Outcome, name: str) -> None:
    """Once at each of its due times, and at no other time."""
    every_s, due = EVERY_S[NAMES.index(name)], dues(outcome, name)
    assert due == list(range(due[0], due[-1] + 1, every_s))
    assert due[0] <= ARRIVED_S + every_s + 3  # a kill delays its first sight
    assert due[-1] + every_s > LASTS_S - 12
    assert counts(outcome, name)["succeeded"] >= len(due) - 1


def test_undisturbed_a_set_is_improved_and_each_runs_by_its_last_phase() -> None:
    outcome = right(play(world()))

    assert len(improved(outcome)) >= 3
    for name in NAMES:
        assert_runs_by_its_phase(outcome, name)


@pytest.mark.parametrize(
    "killed_at_s", [1.55, ARRIVED_S, 4, IMPROVED_S, IMPROVED_S + 0.05, IMPROVED_S + 1, 10]
)
def test_a_kill_at_any_time_loses_and_doubles_no_run(killed_at_s: float) -> None:
    outcome = right(play(world(), Trouble(kills=((killed_at_s, 1.5),))))

    for name in NAMES:
        assert_runs_by_its_phase(outcome, name)


@pytest.mark.parametrize("killed_at_s", [IMPROVED_S - 0.2, IMPROVED_S + 2])
def test_a_restart_ends_the_set(killed_at_s: float) -> None:
    """What has a phase keeps it, improved or not."""
    outcome = right(play(world(), Trouble(kills=((killed_at_s, 1.0),))))

    assert bool(improved(outcome)) is (killed_at_s > IMPROVED_S)


AT_S = [ARRIVED_S + 1, IMPROVED_S - 0.01, IMPROVED_S, IMPROVED_S + 0.02]


@pytest.mark.parametrize("at_s", AT_S)
def test_edits_in_between_are_followed_by_the_new_spec_alone(at_s: float) -> None:
    outcome = right(
        play(
            world(
                patch(at_s, "job-00", interval={"every": "200s"}),
                patch(at_s, "job-01", interval={"every": "300s", "offset": "0s"}),
                patch(at_s, "job-02", suspend=True),
                patch(at_s + 30, "job-02", suspend=False),
                patch(at_s, "job-03", jobTemplate=template(2)),
                patch(at_s, "job-05", placement={"pinned": True}),
                delete(at_s, "job-06"),
                patch(at_s, "job-07", placement={"weight": 30}),
            )
        )
    )

    assert len({due % 200 for due in dues(outcome, "job-00")}) == 1
    assert dues(outcome, "job-01") == [300]
    assert dues(outcome, "job-06") == []
    for name in ("job-03", "job-04", "job-05", "job-07", "job-08", "job-09", "job-10", "job-11"):
        assert_runs_by_its_phase(outcome, name)


@pytest.mark.parametrize("trouble", [CALM, Trouble(kills=((38, 2),)), Trouble(stops=((33, 2),))])
def test_a_set_that_others_join_all_the_time_is_improved_after_half_a_minute(
    trouble: Trouble,
) -> None:
    outcome = right(play(world(arrive_every_s=4), trouble))

    assert outcome.world.deeds[-1].at_s > 31 + 4
    if trouble is CALM:
        assert improved(outcome)
    due = {name: dues(outcome, name) for name in NAMES}
    for number, name in enumerate(NAMES):
        assert due[name][0] <= 1 + 4 * number + EVERY_S[number] + 1
        assert {moment % EVERY_S[number] for moment in due[name]} == {
            due[name][0] % EVERY_S[number]
        }
