"""Where the end of a play is not that of the same play without faults."""

from __future__ import annotations

from typing import Any

from tests.sim import forgiven
from tests.sim.outcome import Outcome
from tests.sim.reading import due_in, internal, may_vanish, timing_of, waiting_in
from tests.sim.server import JOB, RUN_REQUEST, SCHEDULED_JOB, Json

from evenkeel import rfc3339
from evenkeel.model import Instant

AFTER_LOST = ("consecutiveFailures", "lastResult", "lastScheduleTime")
REQUEST_AFTER_LOST = ("state", "condition Complete", "condition Failed")

SAME = (
    "observedGeneration",
    "scheduleText",
    "timeZone",
    "nextRunTime",
    "upcoming",
    "lastScheduleTime",
    "lastResult",
    "activeCount",
    "consecutiveFailures",
    "counts",
)

SAME_OF_REQUEST = (
    "observedGeneration",
    "state",
    "scheduleUid",
    "done",
    "total",
    "counts",
    "dues",
    "consecutiveFailures",
)


def differences(outcome: Outcome, faultless: Outcome) -> list[str]:
    """Where the final state is not that of the run without faults.

    Not compared, because a crash moves them by as long as nobody ran: instants at which something
    was seen or done (started, finished, lastSuccessfulTime, lastFailureTime, lastTransitionTime,
    timing.since, suspendedSince, resumedAt, pause.since, countsSince), uids of Jobs, messages,
    Kubernetes Events, and where in the gap between two due times the mark stands (which due times
    it has passed is checked by the counts). Where a policy decides by how long a Job still ran when
    the next was due, a world for this comparison must leave more room than the crash takes.

    One end may differ: where a Job may vanish soon (ttlSecondsAfterFinished), the mark is written
    before the create, and a crash between the two leaves the run lost (outcome_unknown). Then that
    one run is left out and the counts must add up to as many.
    """
    mine, others = _documents(outcome), _documents(faultless)
    lost = _lost_by_the_mark(outcome, faultless)
    if forgiven.lost_between_mark_and_create(outcome, lost):
        assert lost is not None
        for document in (*mine.values(), *others.values()):
            document["counts"] = sum(document["counts"].values())
            for name in (f"run due {rfc3339.show(lost)}", *AFTER_LOST, *REQUEST_AFTER_LOST):
                document.pop(name, None)
    found = []
    for key in sorted(set(mine) | set(others)):
        ours, theirs = mine.get(key), others.get(key)
        if ours is None or theirs is None:
            found.append(f"{key}: {'missing' if ours is None else 'too much'}")
            continue
        found += [
            f"{key}: {name} is {ours.get(name)}, without faults {theirs.get(name)}"
            for name in sorted(set(ours) | set(theirs))
            if ours.get(name) != theirs.get(name)
        ]
    for what, ours_, theirs_ in (
        ("exists", _jobs(outcome), _jobs(faultless)),
        ("was created", _jobs_ever(outcome), _jobs_ever(faultless)),
    ):
        found += [f"{job} {what}, and without faults not" for job in sorted(ours_ - theirs_)]
        missing = [job for job in sorted(theirs_ - ours_) if _due_of(job) != lost]
        found += [f"{job} {what} without faults only" for job in missing]
    return found


def _due_of(job: str) -> Instant:
    """Of a line that `_jobs` or `_jobs_ever` made."""
    return due_in(job.split()[0].split("/")[1])


def _lost_by_the_mark(outcome: Outcome, faultless: Outcome) -> Instant | None:
    """The due time of a run that was marked, and never created because of the crash."""
    created = {job.run for job in outcome.all_jobs.values()}
    lost = [
        job.due
        for job in faultless.all_jobs.values()
        if job.run not in created and may_vanish(faultless.schedules[job.uid])
    ]
    return lost[0] if len(lost) == 1 else None


def _documents(outcome: Outcome) -> dict[str, Json]:
    schedules = {
        f"{ns}/{name}": _comparable(item.get("status") or {})
        for (ns, name), item in outcome.server.objects[SCHEDULED_JOB].items()
    }
    requests = {
        f"request {ns}/{name}": _comparable_request(item.get("status") or {})
        for (ns, name), item in outcome.server.objects[RUN_REQUEST].items()
    }
    return schedules | requests


def _comparable_request(status: Json) -> Json:
    same: dict[str, Any] = {name: status.get(name) for name in SAME_OF_REQUEST}
    plan = status.get("plan") or {}
    same |= {f"plan {name}": plan.get(name) for name in ("count", "bits", "mark")}
    for kind in status.get("conditions") or ():
        same[f"condition {kind['type']}"] = (kind["status"], kind["reason"])
    return same


def _comparable(status: Json) -> Json:
    same: dict[str, Any] = {name: status.get(name) for name in SAME}
    kept = internal(status)
    same["waiting"] = sorted(waiting_in(status))
    same["templateHash"] = kept.get("templateHash")
    same["timing"] = timing_of(status).get("hash")
    same["suspended"] = kept.get("suspendedSince") is not None
    same["resumed"] = kept.get("resumedAt") is not None
    same["paused"] = (status.get("pause") or {}).get("reason")
    same["active"] = sorted(row["name"] for row in status.get("active") or ())
    # An adopted Job proves nothing about creates, and nothing wrong is as good as unsaid.
    for kind in status.get("conditions") or ():
        if kind["type"] == "Degraded" and kind["status"] == "False":
            continue
        same[f"condition {kind['type']}"] = (kind["status"], kind["reason"])
    for row in status.get("recent") or ():
        values = (row["state"], row.get("reason"), row.get("attempt"), row.get("job"))
        same[f"run due {row['due']}"] = values
    return same


def _jobs(outcome: Outcome) -> set[str]:
    return {
        f"{ns}/{name} {[c['type'] for c in (job['status'].get('conditions') or ())]}"
        for (ns, name), job in outcome.server.objects[JOB].items()
    }


def _jobs_ever(outcome: Outcome) -> set[str]:
    return {f"{job.ns}/{job.name}" for job in outcome.all_jobs.values()}
