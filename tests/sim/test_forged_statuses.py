"""Somebody with rights on one namespace's statuses writes nonsense, and the operator starts anew.

The process lives, all others are on time, the status can be written again, and the schedule goes
on. What the forged schedule itself counts is its owner's affair.
"""

from __future__ import annotations

import pytest
from tests.sim import modes
from tests.sim.controllers import Fate
from tests.sim.oracles import violations
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.scenario import right, world
from tests.sim.server import Json
from tests.sim.world import FORGED_FROM, NEW_YEAR, Deed, World, create, every, template

from evenkeel import rfc3339

FORGED_S = 40.0

ON_TIME_S = 0.5

RESTARTS_S = 3.0
"""From the operator's end until the next one is ready."""


def victim_and_forged(status: Json | None = None, *, seed: int = 0, **spec: object) -> World:
    """`b` is a schedule of another namespace; `a` has its status forged."""
    deed = Deed(FORGED_S, "forge status", "a", status or {}, value=seed)
    other = create(1, "b", every(10), ns="other")
    return world(create(1, "a", every(10, **spec)), other, deed, lasts_s=215)


def moment(second: int) -> str:
    return rfc3339.show(NEW_YEAR + int(FORGED_S) + second)


def lateness_of_b(outcome: Outcome) -> dict[int, float]:
    """By due time; what came due while nobody ran is left out."""
    return {
        job.due - NEW_YEAR: job.at - job.due
        for job in outcome.jobs_of("b")
        if not FORGED_S <= job.due - NEW_YEAR < FORGED_S + RESTARTS_S
    }


def test_a_run_that_waits_for_a_retry_and_was_never_begun_ends_no_process() -> None:
    """As found on a real API server: the process ended 38 s after each start."""
    status: Json = {
        "mark": moment(80_000),
        "waiting": [moment(-3_700), moment(-10)],
        "recent": [
            {
                "due": moment(-3_700),
                "state": "retrying",
                "reason": "held",
                "attempt": 1,
                "finished": moment(0),
            },
            {"due": moment(-10), "state": "pending", "reason": "held", "attempt": 1},
        ],
        "conditions": [
            {
                "type": f"X{number}",
                "status": "True",
                "reason": "Foreign",
                "message": "",
                "lastTransitionTime": moment(0),
            }
            for number in range(16)
        ],
    }
    both = status | {"internal": {key: status[key] for key in ("mark", "waiting")}}
    story = victim_and_forged(
        both,
        startingDeadlineSeconds=3_600,
        retry={"limit": 1, "delaySeconds": 3_600},
        jobTemplate=template(ttlSecondsAfterFinished=60),
    )

    outcome = right(play(story))

    assert len(outcome.processes) == 2
    assert sorted(lateness_of_b(outcome)) == [10, 20, 30, *range(50, 211, 10)]
    assert max(lateness_of_b(outcome).values()) < ON_TIME_S


@pytest.mark.parametrize("reason", ["queued", "held", ""])
def test_a_run_that_waits_for_a_retry_with_a_reason_of_others_keeps_no_place(reason: str) -> None:
    row = {
        "due": moment(-10),
        "state": "retrying",
        "reason": reason,
        "attempt": 1,
        "finished": moment(-5),
    }
    waiting: Json = {"due": moment(-10), "attempt": 1, "reason": reason}
    status = {"recent": [row], "waiting": [moment(-10)], "internal": {"waiting": [waiting]}}
    story = victim_and_forged(status, concurrencyPolicy="Forbid", retry={"limit": 1})

    outcome = right(play(story))

    assert [job.due - NEW_YEAR for job in outcome.jobs_of("a")][-3:] == [190, 200, 210]


@pytest.mark.parametrize("failures", [2**63 - 1, 2**53])
def test_one_more_failure_than_a_number_can_hold_is_written(failures: int) -> None:
    story = victim_and_forged({"consecutiveFailures": failures})
    failing = World(
        story.name, story.deeds, story.lasts_s, fate=lambda job: Fate(0.5, 3, succeeds=False)
    )

    outcome = right(play(failing))

    assert outcome.status("a")["counts"]["failed"] >= 15


@pytest.mark.parametrize("seed", range(60))
def test_nonsense_of_any_kind_disturbs_no_other_schedule(seed: int) -> None:
    outcome = play(victim_and_forged(seed=seed, concurrencyPolicy="Queue", retry={"limit": 1}))

    assert violations(outcome) == []
    assert len(outcome.processes) == 2
    assert max(lateness_of_b(outcome).values()) < ON_TIME_S


@pytest.mark.parametrize("first", range(FORGED_FROM, FORGED_FROM + 100, 25))
def test_and_in_a_storm(first: int) -> None:
    wrong = {
        seed: found[:1] for seed in range(first, first + 25) if (found := modes.storm(seed)[0])
    }
    assert wrong == {}


def test_and_a_restart_goes_by_what_was_forged() -> None:
    """Or these tests would show nothing: a process that lives goes by what it knows."""
    status: Json = {"pause": {"since": moment(-5), "by": "nobody", "reason": "forged"}}

    outcome = play(victim_and_forged(status), Trouble(kills=((100.0, 1.0),)))

    assert [job.due - NEW_YEAR for job in outcome.jobs_of("a")] == [10, 20, 30]
