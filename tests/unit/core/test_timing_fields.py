"""Which fields of a spec are its timing: an edit of those counts from its first sight, and an edit
of any other takes nothing away of what was missed."""

from dataclasses import replace

import pytest
from tests.builders import cron, edited, instant
from tests.unit.core.world import World

from evenkeel.model import (
    Concurrency,
    Cron,
    DayMatch,
    Fold,
    Gap,
    MissedRuns,
    Parameter,
    PlacementWish,
    Retry,
    Schedule,
    Timing,
)

HOURLY = "0 * * * *"

NOT_TIMING = {
    "suspend, blinking": {"suspend": False},
    "startingDeadlineSeconds": {"starting_deadline_s": 3600},
    "missedRuns": {"missed_runs": MissedRuns.ALL},
    "catchUpLimit": {"catch_up_limit": 1},
    "concurrencyPolicy": {"concurrency": Concurrency.FORBID},
    "maxQueued": {"max_queued": 1},
    "priority": {"priority": 7},
    "placement.weight": {"placement": PlacementWish(weight=9)},
    "retry": {"retry": Retry(limit=3)},
    "pauseAfterFailures": {"pause_after_failures": 2},
    "pendingDeadlineSeconds": {"pending_deadline_s": 60},
    "successfulJobsHistoryLimit": {"keep_succeeded": 0},
    "failedJobsHistoryLimit": {"keep_failed": 0},
    "jobTemplate, its images": {"images": ("app:2",), "template_hash": "second"},
    "jobTemplate, its requests": {"weight_by_requests": 20, "template_hash": "second"},
    "jobTemplate": {"template": b'{"spec":{"template":{}}}', "template_hash": "second"},
    "parameters": {"parameters": (Parameter("DAY", "today"),), "template_hash": "second"},
    "the annotation trigger": {"trigger": "monday"},
    "ttlSecondsAfterFinished": {"ttl_s": 600, "template_hash": "second"},
}

TIMING = {
    "schedule": {"rule": Cron("0 */2 * * *")},
    "dayMatch": {"rule": Cron(HOURLY, DayMatch.AND)},
    "timeZone": {"zone": "Asia/Kathmandu"},
    "dst.gap": {"gap": Gap.SKIP},
    "dst.fold": {"fold": Fold.BOTH},
    "startTime": {"start": instant("09:00")},
    "endTime": {"end": instant("23:00")},
}


def test_every_field_of_a_schedule_is_in_one_of_the_two_tables():
    named = {field for change in NOT_TIMING.values() for field in change}
    identity = {"uid", "ns", "name", "created", "generation", "timing"}
    assert named | identity == set(Schedule.__slots__)
    assert {field for change in TIMING.values() for field in change} == set(Timing.__slots__)


@pytest.mark.parametrize("change", NOT_TIMING.values(), ids=NOT_TIMING)
def test_no_other_field_moves_since_or_voids_what_was_missed(change):
    seen = cron(HOURLY)
    world = World().see(seen).run_until("10:30")
    world.schedules[seen.uid] = edited(seen, **change)
    world.crash(for_s=45 * 60)
    assert world.status()["observedGeneration"] == 2
    assert world.status()["internal"]["timing"]["since"] == "2026-03-02T10:00:00Z"
    assert world.started() == ["11:00:00"]


@pytest.mark.parametrize("change", TIMING.values(), ids=TIMING)
def test_each_field_of_the_timing_counts_from_its_first_sight(change):
    seen = cron(HOURLY)
    world = World().see(seen).run_until("10:30")
    world.see(retimed(seen, change)).run_until("10:30:05")
    assert world.status()["internal"]["timing"]["since"] == "2026-03-02T10:30:00Z"


@pytest.mark.parametrize("change", TIMING.values(), ids=TIMING)
def test_what_a_new_timing_was_due_before_its_first_sight_never_runs(change):
    """Nobody had seen the edit when the process died, so by the old one 11:00 is missed: it is
    caught up with or counted, and nothing of the new one is before 11:15."""
    seen = cron(HOURLY)
    world = World().see(seen).run_until("10:30")
    world.schedules[seen.uid] = retimed(seen, change)
    world.crash(for_s=45 * 60)
    assert world.status()["internal"]["timing"]["since"] == "2026-03-02T11:15:00Z"
    assert world.verdicts() + len(world.alive()) == 1


def retimed(seen: Schedule, change) -> Schedule:
    return replace(seen, generation=2, timing=replace(seen.timing, **change))
