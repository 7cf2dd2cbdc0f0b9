"""Clocks that are set, stand still or change by law; machines and loops that do not run."""

from __future__ import annotations

import pytest
from tests.sim.network import Rule
from tests.sim.play import Trouble, play
from tests.sim.scenario import TWENTY, YEAR_S, counts, dues, right, with_faults, world
from tests.sim.world import Deed, create, every, patch, template

from evenkeel import rfc3339


@pytest.mark.parametrize("by_s", [-7_200.0, -30.0, 30.0, 7_200.0])
def test_9_a_clock_that_is_set_doubles_nothing(by_s: float) -> None:
    story = world(
        create(1, "a", TWENTY), Deed(50, "set clock", value=by_s), tags=frozenset({"wall"})
    )

    outcome = right(play(story))

    assert len(set(dues(outcome))) == len(dues(outcome))
    if by_s == 7_200:  # an outage of that length: the newest is caught up with, the rest counted
        assert counts(outcome)["missed"] > 300
        assert len(dues(outcome)) < 8


def test_9_ten_years_ahead_holds_launches_until_the_api_server_agrees() -> None:
    story = world(
        create(1, "a", TWENTY),
        Deed(50, "set clock", value=10 * YEAR_S),
        Deed(70, "mend clock"),
        lasts_s=135,
        tags=frozenset({"wall"}),
    )

    outcome = right(play(story))

    assert max(dues(outcome)) < 200
    assert counts(outcome).get("missed", 0) <= 2


def test_9_a_clock_that_stands_still_loses_nothing_within_grace() -> None:
    story = world(
        create(1, "a", TWENTY),
        Deed(45, "stop clock"),
        Deed(70, "mend clock"),
        tags=frozenset({"wall"}),
    )

    assert dues(right(play(story))) == [20, 40, 60, 80]


def test_9_an_edit_by_a_clock_that_is_behind_does_not_reach_behind_the_creation() -> None:
    story = world(
        Deed(5, "set clock", value=-3_600.0),
        create(10, "a", TWENTY),
        patch(20, "a", interval={"every": "10s"}),
        tags=frozenset({"wall"}),
    )

    assert dues(right(play(story))) == []


def test_9_a_machine_that_stood_still_for_ten_minutes_catches_up_by_policy() -> None:
    story = world(create(1, "a", TWENTY), Deed(45, "block", value=600), lasts_s=735)

    outcome = right(play(story))

    assert counts(outcome)["missed"] == 29  # 60 to 620; one set with those within grace
    assert dues(outcome)[:3] == [20, 40, 640]


def test_27_a_loop_blocked_for_five_seconds_loses_nothing() -> None:
    story = world(create(1, "a", every(10)), Deed(38, "block", value=5.0))

    assert dues(right(play(story))) == [10, 20, 30, 40, 50, 60, 70, 80, 90]


@pytest.mark.parametrize("streams", ["kept", "cut"])
@pytest.mark.parametrize("restarts", [(), ((45.0, 1.0),)], ids=["", "and it is restarted"])
def test_27_nothing_can_be_opened_for_twenty_seconds(
    streams: str, restarts: tuple[tuple[float, float], ...]
) -> None:
    """No file, no thread, no connection is to be had: each call fails before it is sent."""
    begin_s, end_s = 38.0, 58.0
    verbs = ("POST", "PATCH", "GET", "DELETE", "WATCH")
    rules = [Rule(verb, "", "refused", from_s=begin_s, until_s=end_s) for verb in verbs]
    if streams == "cut":
        rules.append(Rule("EVENT", "", "cut", from_s=begin_s, until_s=end_s))
    story = world(create(1, "a", every(20, missedRuns="All")), create(1, "b", every(30)))

    outcome = with_faults(story, *rules, trouble=Trouble(kills=restarts))

    assert (dues(outcome, "a"), dues(outcome, "b")) == ([20, 40, 60, 80], [30, 60, 90])
    assert counts(outcome, "a") == {"succeeded": 4}
    assert counts(outcome, "b") == {"succeeded": 3}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"])
def test_the_clocks_change_while_it_runs(zone: str) -> None:
    """Wildcard schedules go by real minutes: one run a minute through gap and fold."""
    changes: dict[str, str] = {
        "Europe/Berlin": "2027-03-28T00:58:00Z",
        "Australia/Lord_Howe": "2027-04-03T14:58:00Z",
        "America/Santiago": "2027-04-04T02:58:00Z",
    }
    base = rfc3339.read(changes[zone])
    assert base is not None
    spec = {"schedule": "* * * * *", "timeZone": zone, "jobTemplate": template()}

    outcome = right(play(world(create(1, "a", spec), lasts_s=275, base=base)))

    assert dues(outcome) == [60, 120, 180, 240]
