"""A watch of Jobs that stays open and says nothing for ever: no event, no bookmark, no error."""

from __future__ import annotations

import pytest
from tests.sim import modes
from tests.sim.network import SILENCE_S, Rule
from tests.sim.outcome import Outcome
from tests.sim.scenario import JOBS, counts, dues, with_faults, world
from tests.sim.world import NEW_YEAR, create, every

from evenkeel import rfc3339

SOON_S = 15.0
"""From there until the Jobs are listed anew, and a status tells of what the list shows."""


@pytest.mark.parametrize(
    "mute",
    [
        Rule("WATCH", JOBS, "mute", times=1),
        # The first event on the way is that of the Job's start.
        Rule("EVENT", JOBS, "mute", times=1, from_s=60),
    ],
    ids=["from its beginning", "after it worked"],
)
def test_the_ends_of_jobs_are_seen_again(mute: Rule) -> None:
    """Under Forbid nothing would ever run again."""
    story = world(create(1, "a", every(60, concurrencyPolicy="Forbid")), lasts_s=595)

    outcome = with_faults(story, mute)

    ended = min(job.ended_at for job in outcome.jobs.values())
    assert told_to_have_succeeded(outcome, due_s=60) < ended + SILENCE_S + SOON_S
    assert dues(outcome)[-5:] == [300, 360, 420, 480, 540]
    assert counts(outcome).get("skipped", 0) <= 2


def test_they_are_seen_again_each_time_a_watch_falls_mute() -> None:
    story = world(create(1, "a", every(60, concurrencyPolicy="Forbid")), lasts_s=1_195)

    outcome = with_faults(story, Rule("WATCH", JOBS, "mute", until_s=900))

    assert counts(outcome)["succeeded"] >= 6


def test_while_they_are_not_seen_no_status_says_that_all_is_as_expected() -> None:
    """The right to list and watch Jobs is taken away for seven minutes, that to create them is
    not."""
    away = [
        Rule(verb, JOBS, fault, from_s=100, until_s=520)
        for verb, fault in (("GET", "500"), ("WATCH", "500"), ("EVENT", "cut"))
    ]
    story = world(create(1, "a", every(60)), lasts_s=700)

    outcome = with_faults(story, *away)

    told = degraded(outcome)
    assert {reason for at, reason in told if 300 < at - NEW_YEAR < 500} == {"EndsNotSeen"}
    assert told[-1][1] == "AsExpected"


@pytest.mark.parametrize("seed", [60059])
def test_and_in_a_storm(seed: int) -> None:
    assert modes.storm(seed)[0] == []


def told_to_have_succeeded(outcome: Outcome, *, due_s: int) -> float:
    """When a stored status first said so."""
    (stored,) = outcome.statuses.values()
    row = rfc3339.show(NEW_YEAR + due_s), "succeeded"
    return next(
        at
        for at, status in stored
        if row in {(each["due"], each["state"]) for each in status.get("recent") or ()}
    )


def degraded(outcome: Outcome) -> list[tuple[float, str]]:
    """When a status was stored, and the reason of Degraded that it told."""
    (stored,) = outcome.statuses.values()
    return [
        (at, condition["reason"])
        for at, status in stored
        for condition in status.get("conditions") or ()
        if condition["type"] == "Degraded"
    ]
