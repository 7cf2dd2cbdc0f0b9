"""What else happens in a cluster: Jobs run and end, expired ones go, orphans are collected.

Only a Job that fails has a Pod, from the moment at which it begins to fail: nobody asks for others.

A Job's fate is asked of the world when it is created; it must depend on what the Job is, not on
when it was made, so that a run with faults and one without can be compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.server import JOB, POD, SCHEDULED_JOB, Change, Json, Server

from evenkeel import rfc3339
from evenkeel.resource.job import owner_uid, read_job

SEEN_S = 0.02
"""Until the Job controller has written a new Job's start."""

COLLECTED_S = 0.5
"""Until the garbage collector has taken what belonged to a deleted object."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a Job."""

    start_s: float = 1.0
    """Until a container runs; infinite: never."""
    run_s: float = 5.0
    """From there to its end; infinite: it hangs."""
    succeeds: bool = True
    reason: str = "BackoffLimitExceeded"


ENDING_S = 0.2
"""So long a Job that fails ends its Pods, before it says that it has failed."""


def exit_code(attempt: int) -> int:
    """Of the container of that attempt's Job, where it fails: another one for each attempt."""
    return 10 + attempt


class Controllers:
    """Does what the Job, ttl and garbage controllers do when an object changes."""

    def __init__(self, server: Server, fate: Callable[[Json], Fate]) -> None:
        self._server = server
        self._fate = fate
        self._schedules: set[str] = set()
        server.listeners.append(self._changed)

    def _changed(self, change: Change) -> None:
        uid = change.object["metadata"]["uid"]
        if change.kind is SCHEDULED_JOB:
            if change.type == "ADDED":
                self._schedules.add(uid)
            elif change.type == "DELETED":
                self._schedules.discard(uid)
                self._later(COLLECTED_S, self._collect_jobs_of, uid)
        elif change.kind is JOB and change.type == "ADDED":
            owner = owner_uid(change.object["metadata"])
            if owner is not None and owner not in self._schedules:
                self._later(COLLECTED_S, self._collect_jobs_of, owner)
            if not (change.object.get("spec") or {}).get("suspend"):
                self._run(change.object)
        elif change.kind is JOB and change.type == "DELETED":
            metadata = change.object["metadata"]
            self._later(COLLECTED_S, self._collect_pod, metadata["namespace"], metadata["name"])

    def _run(self, job: Json) -> None:
        fate = self._fate(job)
        key = (job["metadata"]["namespace"], job["metadata"]["name"], job["metadata"]["uid"])
        self._later(SEEN_S, self._started, *key)
        self._later(SEEN_S + fate.start_s, self._ready, *key)
        ends_s = SEEN_S + fate.start_s + fate.run_s
        self._later(ends_s, self._ended, *key, fate)
        if not fate.succeeds:
            self._later(max(0.0, ends_s - ENDING_S), self._failing, *key)

    def _started(self, ns: str, name: str, uid: str) -> None:
        if self._alive(ns, name, uid):
            self._write(ns, name, {"startTime": self._moment(), "active": 1, "ready": 0})

    def _ready(self, ns: str, name: str, uid: str) -> None:
        if self._alive(ns, name, uid):
            self._write(ns, name, {"active": 1, "ready": 1})

    def _failing(self, ns: str, name: str, uid: str) -> None:
        job = self._alive(ns, name, uid)
        run = run_of(job) if job is not None else None
        if run is None:
            return
        ended = {"exitCode": exit_code(run[2]), "reason": "Error", "finishedAt": self._moment()}
        status = {"containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}
        labels = {"batch.kubernetes.io/job-name": name}
        if (ns, f"{name}-pod") not in self._server.objects[POD]:
            pod = {"metadata": {"labels": labels}, "status": status}
            self._server.put(POD, ns, f"{name}-pod", pod)
        condition = {"type": "FailureTarget", "status": "True"}
        self._write(ns, name, {"conditions": [condition]})

    def _collect_pod(self, ns: str, name: str) -> None:
        """Unless a Job of that name is there again."""
        path = f"/api/v1/namespaces/{ns}/pods/{name}-pod"
        if (ns, name) not in self._server.objects[JOB]:
            self._server.handle("DELETE", path, who="gc")

    def _ended(self, ns: str, name: str, uid: str, fate: Fate) -> None:
        job = self._alive(ns, name, uid)
        if job is None:
            return
        moment = self._moment()
        condition = {"type": "Complete", "status": "True", "lastTransitionTime": moment}
        if fate.succeeds:
            status: Json = {"active": 0, "ready": 0, "succeeded": 1, "completionTime": moment}
        else:
            status = {"active": 0, "ready": 0, "failed": 1}
            condition |= {"type": "Failed", "reason": fate.reason, "message": "as was its fate"}
        before = [] if fate.succeeds else [{"type": "FailureTarget", "status": "True"}]
        self._write(ns, name, {**status, "conditions": [*before, condition]})
        ttl_s = (job.get("spec") or {}).get("ttlSecondsAfterFinished")
        if ttl_s is not None:
            self._later(ttl_s, self._delete, ns, name, uid)

    def _collect_jobs_of(self, owner: str) -> None:
        if owner in self._schedules:
            return
        for (ns, name), job in list(self._server.objects[JOB].items()):
            if owner_uid(job["metadata"]) == owner:
                self._delete(ns, name, job["metadata"]["uid"])

    def _delete(self, ns: str, name: str, uid: str) -> None:
        if self._alive(ns, name, uid) is not None:
            self._server.handle("DELETE", f"/apis/batch/v1/namespaces/{ns}/jobs/{name}", who="gc")

    def _alive(self, ns: str, name: str, uid: str) -> Json | None:
        job = self._server.objects[JOB].get((ns, name))
        return job if job is not None and job["metadata"]["uid"] == uid else None

    def _write(self, ns: str, name: str, status: Json) -> None:
        self._server.write_status(JOB, ns, name, status)

    def _moment(self) -> str:
        return rfc3339.show(int(self._server.now()))

    def _later(self, delay_s: float, act: Callable[..., None], *args: object) -> None:
        if delay_s < 10_000_000:
            asyncio.get_running_loop().call_later(delay_s, act, *args)


def run_of(job: Json) -> tuple[str, int, int] | None:
    """Owner uid, due time and attempt of a Job of ours; None: it is not ours."""
    fact = read_job(job)
    return None if fact is None else (fact.run.uid, fact.run.due, fact.attempt)


def kind_of(job: Json) -> str:
    """Of its run: whether the timing or a request made it due. Empty: it is not ours."""
    fact = read_job(job)
    return "" if fact is None else fact.run.kind
