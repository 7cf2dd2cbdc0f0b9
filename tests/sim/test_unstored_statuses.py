"""Statuses that cannot be stored for longer than a Job lives, and a kill: no run happens twice.

Jobs are counted by the answers to their creates, not by those that exist: a ttl takes them away.
"""

from __future__ import annotations

from collections import Counter

import pytest
from tests.sim import modes, unstored
from tests.sim.controllers import Fate
from tests.sim.network import Rule, Scripted
from tests.sim.outcome import Outcome
from tests.sim.play import Trouble, play
from tests.sim.scenario import right, world
from tests.sim.world import NEW_YEAR, UNSTORED_FROM, World, create, every, template

from evenkeel import rfc3339

BEGIN_S, END_S = 25.0, 25.0 + unstored.UNSTORED_S

HANGS = Rule("PATCH", "scheduledjobs/", "lost request", from_s=BEGIN_S, until_s=END_S)
FORBIDDEN = Rule("PATCH", "scheduledjobs/", unstored.FORBIDDEN, from_s=BEGIN_S, until_s=END_S)


def three(ttl_s: int) -> World:
    """One that runs all it missed, one that runs the latest, and one that runs once."""
    job = template(ttlSecondsAfterFinished=ttl_s)
    once = {"at": rfc3339.show(NEW_YEAR + 40), "jobTemplate": job}
    return world(
        create(1, "all", every(20, missedRuns="All", jobTemplate=job)),
        create(1, "latest", every(60, offset=30, jobTemplate=job)),
        create(1, "once", once),
        lasts_s=END_S + 120,
        fate=lambda job: Fate(0.3, 1),
    )


def created(outcome: Outcome) -> Counter[str]:
    """How often the server took a create of each name."""
    return Counter(
        request.note
        for request in outcome.server.requests
        if request.status == 201 and "/jobs" in request.path and request.note
    )


@pytest.mark.parametrize("ttl_s", unstored.TTLS)
@pytest.mark.parametrize("fault", [FORBIDDEN, HANGS], ids=["the right is gone", "a webhook hangs"])
@pytest.mark.parametrize("kill_s", [60.0, 200.0, END_S - 3, END_S + 1])
def test_no_run_is_created_twice(ttl_s: int, fault: Rule, kill_s: float) -> None:
    outcome = right(
        play(three(ttl_s), Trouble(kills=((kill_s, 2.0),)), weather=lambda number: Scripted(fault))
    )

    twice = {name: count for name, count in created(outcome).items() if count > 1}
    assert twice == {}
    assert set(outcome.specs) == set(outcome.statuses)


@pytest.mark.parametrize("ttl_s", unstored.TTLS)
def test_when_statuses_can_be_stored_again_runs_are_on_time_again(ttl_s: int) -> None:
    outcome = right(play(three(ttl_s), weather=lambda number: Scripted(FORBIDDEN)))

    late = [job.at - job.due for job in outcome.jobs_of("all") if job.due > NEW_YEAR + END_S + 60]
    assert len(late) >= 3
    assert max(late) < 0.5


@pytest.mark.parametrize("first", range(UNSTORED_FROM, UNSTORED_FROM + 60, 20))
def test_and_with_kills_at_any_moment(first: int) -> None:
    wrong = {
        seed: found[:1] for seed in range(first, first + 20) if (found := modes.storm(seed)[0])
    }
    assert wrong == {}
