"""The RunRequests of a namespace: what a test makes of them, and what it sees of them.

Called by the tests of requests and by their benchmark. Not guaranteed: that what was read is still
so.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from tests.cluster.world import (
    GROUP,
    MERGE,
    PATIENCE_S,
    Json,
    World,
    due,
    eventually,
    moment,
    names,
    seconds,
)

from evenkeel.model import kind_of_request
from evenkeel.resource.job_name import due_of

REQUEST = "evenkeel.dev/request"
OVER = ("Succeeded", "Failed", "Refused")


class Requests:
    def __init__(self, world: World, ns: str) -> None:
        self.world = world
        self.ns = ns

    def path(self, name: str = "") -> str:
        found = f"{GROUP}/namespaces/{self.ns}/runrequests"
        return f"{found}/{name}" if name else found

    # --- what is done ---------------------------------------------------------------------------

    def create(self, name: str, schedule: str, **spec: Any) -> Json:
        return self.world.call("POST", self.path(), run_request(name, schedule, **spec))

    def create_by_kubectl(self, name: str, schedule: str, **spec: Any) -> Json:
        """As people do; the object as the server keeps it."""
        body = json.dumps(run_request(name, schedule, **spec))
        words = ("create", "-n", self.ns, "-f", "-", "-o", "json")
        made: Json = json.loads(self.world.cluster.kubectl(*words, input=body).stdout)
        return made

    def edit(self, name: str, **spec: Any) -> Json:
        return self.world.call("PATCH", self.path(name), {"spec": spec}, MERGE)

    def delete(self, name: str) -> None:
        self.world.call("DELETE", self.path(name))

    # --- what is seen ---------------------------------------------------------------------------

    def items(self) -> list[Json]:
        return self.world.items(self.path())

    def names(self) -> list[str]:
        return names(self.items())

    def get(self, name: str) -> Json:
        return self.world.get(self.path(name))

    def status(self, name: str) -> Json:
        found: Json = self.get(name).get("status") or {}
        return found

    def state(self, name: str) -> str:
        return str(self.status(name).get("state", ""))

    def condition(self, name: str, kind: str) -> Json:
        """A condition, or an empty one while it is not there."""
        return condition_of(self.status(name), kind)

    def events(self, name: str, reason: str) -> list[Json]:
        """The Events on this request with this reason."""
        chosen = f"involvedObject.kind=RunRequest,involvedObject.name={name},reason={reason}"
        return self.world.items(
            f"/api/v1/namespaces/{self.ns}/events?fieldSelector={quote(chosen)}"
        )

    def jobs(self, name: str) -> list[Json]:
        """The Jobs that this request asked for, by due time."""
        return [job for job in self.world.jobs(self.ns) if asked_by(job) == name]

    def dues(self, name: str) -> list[str]:
        """The due times of these Jobs."""
        return [due(job) for job in self.jobs(name)]

    def began(self, name: str) -> list[str]:
        """The same, in the order in which the API server received the creates, those of Jobs that
        are gone included; of a server of our own."""
        kind = kind_of(self.get(name))
        made = [job for job in self.world.created(self.ns) if f"-{kind}-" in job]
        return [moment(due_in_name(job)) for job in made]

    # --- what is waited for ---------------------------------------------------------------------

    def ended(self, name: str, state: str, *, within_s: float = PATIENCE_S) -> Json:
        """The status, once it is in this final state."""

        def look() -> Json | None:
            status = self.status(name)
            found = status.get("state")
            assert found == state, {key: status.get(key) for key in SHORT}
            return status

        return eventually(look, f"{name} is {state}", within_s=within_s) or {}

    def waits(self, name: str, reason: str) -> str:
        """The sentence, once it says that it waits for that."""

        def look() -> Json | None:
            ready = self.condition(name, "Ready")
            assert (ready["status"], ready["reason"]) == ("Unknown", reason), ready
            return ready

        return str((eventually(look, f"{name} waits: {reason}") or {})["message"])


SHORT = ("state", "done", "total", "counts", "active", "conditions")


def run_request(name: str, schedule: str, **spec: Any) -> Json:
    """The manifest. `annotations` go to its metadata."""
    metadata: Json = {"name": name}
    if "annotations" in spec:
        metadata["annotations"] = spec.pop("annotations")
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "RunRequest",
        "metadata": metadata,
        "spec": {"schedule": schedule, **spec},
    }


def condition_of(status: Json, kind: str) -> Json:
    """A condition, or an empty one where it is not there."""
    for each in status.get("conditions") or ():
        if each["type"] == kind:
            found: Json = each
            return found
    return {"type": kind, "status": "", "reason": "", "message": ""}


def counted(status: Json) -> dict[str, int]:
    """How many of its runs came to which end, without the ends that none came to."""
    return {end: count for end, count in (status.get("counts") or {}).items() if count}


def asked_by(job: Json) -> str:
    """The name of the request that a Job is for; empty: it is by schedule."""
    return str((job["metadata"].get("annotations") or {}).get(REQUEST, ""))


def kind_of(request: Json) -> str:
    return kind_of_request(request["metadata"]["uid"])


def due_in_name(job: str) -> int:
    found = due_of(job)
    assert found is not None, f"{job} is no name of ours"
    return found


def hours(first: int, end: int, *, now: float) -> tuple[Json, list[str]]:
    """The range from so many full hours before `now` to so many, and the full hours in it."""
    last = int(now) // 3600 * 3600
    return (
        {"from": moment(last - first * 3600), "to": moment(last - end * 3600)},
        [moment(last - number * 3600) for number in range(first, end, -1)],
    )


def twice(made: list[str]) -> dict[str, int]:
    """What is more than once among the names of Jobs that were created."""
    return {name: count for name, count in Counter(made).items() if count > 1}


def most_at_once(jobs: list[Json]) -> int:
    """How many of these Jobs were there and had not ended, at the fullest second."""
    found = 0
    for job in jobs:
        began = seconds(job["metadata"]["creationTimestamp"])
        found = max(found, sum(lives_at(other, began) for other in jobs))
    return found


def lives_at(job: Json, instant: float) -> bool:
    """Whether it was there through that second; times of the API server are whole seconds."""
    ended = (job.get("status") or {}).get("completionTime")
    began = seconds(job["metadata"]["creationTimestamp"])
    return began <= instant and (ended is None or seconds(ended) > instant)
