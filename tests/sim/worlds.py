"""Small worlds for exhaustive crashes: each shows one rule, and leaves it room.

Everything that a policy decides by the clock (does the last Job still run when the next is due, is
an edit before or after a due time) is further apart than a crash and its restart take, so that the
end must be the same wherever the crash falls.
"""

from __future__ import annotations

from tests.sim.controllers import Fate, run_of
from tests.sim.server import Json
from tests.sim.world import (
    EVER,
    Deed,
    World,
    create,
    delete,
    denied_by_policy,
    every,
    exceeded_quota,
    patch,
    request,
    template,
)

from evenkeel.kube.api import Reply
from evenkeel.resource.job import LABEL_SCHEDULE, NOTE_DUE


def _by_name(**fates: Fate):
    def fate(job: Json) -> Fate:
        return fates[job["metadata"]["labels"][LABEL_SCHEDULE]]

    return fate


def _fails_until(attempt: int):
    def fate(job: Json) -> Fate:
        run = run_of(job)
        return Fate(0.5, 2, succeeds=run is not None and run[2] >= attempt)

    return fate


def _full(begin_s: float, end_s: float):
    def admission(at_s: float, job: Json) -> Reply | None:
        return exceeded_quota() if begin_s <= at_s < end_s else None

    return admission


def _denied(*dues: str):
    def admission(at_s: float, job: Json) -> Reply | None:
        due = job["metadata"]["annotations"][NOTE_DUE]
        return denied_by_policy() if due in dues else None

    return admission


STOOD_STILL = Deed(49, "block", value=200)
"""The machine: from 49 to 249. Of the due times 60, 80, ... 240 five are later than 100 s then."""

THREE = {"from": "2026-12-31T23:57:00Z", "to": "2027-01-01T00:00:00Z"}
"""Of every minute."""

SOME = {"from": "2026-12-31T23:58:40Z", "to": "2027-01-01T00:00:20Z"}
"""Of every thirty seconds: three."""

WORLDS = (
    World(
        "Jobs come and go, and history is kept short",
        (
            create(1, "a", every(20, successfulJobsHistoryLimit=1)),
            create(2, "b", every(20, offset=7, failedJobsHistoryLimit=0)),
        ),
        lasts_s=95,
        fate=_by_name(a=Fate(0.5, 4), b=Fate(0.5, 4, succeeds=False)),
    ),
    World(
        "Forbid skips every other due time",
        (create(1, "a", every(20, concurrencyPolicy="Forbid")),),
        lasts_s=115,
        fate=lambda job: Fate(1, 30),
    ),
    World(
        "Replace cancels what still runs",
        (create(1, "a", every(20, concurrencyPolicy="Replace")),),
        lasts_s=75,
        fate=lambda job: Fate(1, 30),
    ),
    World(
        "Queue keeps the order and drops what is too much",
        (create(1, "a", every(20, concurrencyPolicy="Queue", maxQueued=1)),),
        lasts_s=135,
        fate=lambda job: Fate(1, 45),
    ),
    World(
        "a failed run is tried again",
        (create(1, "a", every(60, retry={"limit": 2, "delaySeconds": 8, "factor": 1})),),
        lasts_s=115,
        fate=_fails_until(3),
    ),
    World(
        "a run fails when no attempt is left, and pauses the schedule",
        (create(1, "a", every(30, retry={"limit": 1, "delaySeconds": 5}, pauseAfterFailures=2)),),
        lasts_s=115,
        fate=_fails_until(9),
    ),
    World(
        "a retry holds its place under Forbid",
        (
            create(
                1,
                "a",
                every(20, concurrencyPolicy="Forbid", retry={"limit": 1, "delaySeconds": 26}),
            ),
        ),
        lasts_s=95,
        fate=_fails_until(2),
    ),
    World(
        "timing, template and suspension are edited",
        (
            create(1, "a", every(20)),
            patch(30, "a", jobTemplate=template(2)),
            patch(49, "a", interval={"every": "30s"}),
            patch(71, "a", suspend=True),
            patch(100, "a", suspend=False),
        ),
        lasts_s=135,
        fate=lambda job: Fate(0.5, 3),
    ),
    World(
        "a schedule is deleted, and another made of the same name",
        (
            create(1, "a", every(20)),
            delete(30, "a"),
            create(31, "a", every(20, offset=5)),
        ),
        lasts_s=75,
        fate=lambda job: Fate(0.5, 15),
        settings={"prune_s": 10},
    ),
    World(
        "Jobs that vanish soon are marked first",
        (create(1, "a", every(30, jobTemplate=template(ttlSecondsAfterFinished=10))),),
        lasts_s=80,
        fate=lambda job: Fate(0.5, 3),
    ),
    World(
        "a Job that does not start is ended",
        (create(1, "a", every(30, pendingDeadlineSeconds=8)),),
        lasts_s=85,
        fate=lambda job: Fate(EVER, EVER),
    ),
    World(
        "cron, hourly and one-shot schedules",
        (
            create(1, "c", {"schedule": "* * * * *", "jobTemplate": template()}),
            create(1, "h", {"hourly": {"minute": 1}, "jobTemplate": template()}),
            create(1, "o", {"at": "2027-01-01T00:00:40Z", "jobTemplate": template()}),
        ),
        lasts_s=85,
        fate=lambda job: Fate(0.5, 3),
    ),
    World(
        "a quota is full, and has room again within grace",
        (create(1, "a", every(20)),),
        lasts_s=124,  # the last create is nobody's to disturb: it tells that all is well again
        fate=lambda job: Fate(0.5, 1),
        admission=_full(39, 46),
    ),
    World(
        "a policy denies one run",
        (create(1, "a", every(20, retry={"limit": 2, "delaySeconds": 1})),),
        lasts_s=95,
        fate=lambda job: Fate(0.5, 3),
        admission=_denied("2027-01-01T00:00:40Z"),
    ),
    World(
        "All runs the newest of what was missed, and none beyond its deadline",
        (
            create(
                1, "a", every(20, missedRuns="All", catchUpLimit=3, startingDeadlineSeconds=100)
            ),
            STOOD_STILL,
        ),
        lasts_s=285,
        fate=lambda job: Fate(0.5, 3),
    ),
    World(
        "Skip runs none of what was missed, and tells which were beyond their deadline",
        (create(1, "a", every(20, missedRuns="Skip", startingDeadlineSeconds=100)), STOOD_STILL),
        lasts_s=285,
        fate=lambda job: Fate(0.5, 3),
    ),
    World(
        "what is asked for runs beside what is due",
        (
            create(1, "a", every(30)),
            request(36, "three", "a", range=SOME, include="All", maxActive=2),
            request(38, "later", "a", at="2027-01-01T00:01:15Z", ttlSecondsAfterFinished=3),
        ),
        lasts_s=115,
        fate=lambda job: Fate(0.5, 4),
    ),
    World(
        "what is asked for waits for the place, and is announced before its create",
        (
            create(
                1,
                "a",
                every(
                    60,
                    concurrencyPolicy="Forbid",
                    jobTemplate=template(ttlSecondsAfterFinished=300),
                ),
            ),
            request(61.5, "three", "a", range=THREE, include="All"),
        ),
        lasts_s=145,
        fate=lambda job: Fate(0.5, 4),
    ),
)

ENDS = {
    "a quota is full, and has room again within grace": {"succeeded": 6},
    "a policy denies one run": {"succeeded": 3, "failed": 1},
    "All runs the newest of what was missed, and none beyond its deadline": {
        "succeeded": 7,
        "missed: deadline": 5,
        "missed: catch_up_limit": 2,
    },
    "Skip runs none of what was missed, and tells which were beyond their deadline": {
        "succeeded": 4,
        "missed: deadline": 5,
        "missed: not_in_time": 5,
    },
}
"""What becomes of all due times, where nothing else than its rule disturbs a world."""
