"""What a test sees and does of a cluster's objects, fast enough to be asked ten times a second.

kubectl is for what people do; it costs a tenth of a second of a core a call. Here is one kept
connection instead. Called by the tests of the operator. Not guaranteed: that what was read is
still so.
"""

from __future__ import annotations

import datetime as dt
import http.client
import json
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from tests.cluster.harness import Cluster
from tests.unit.resource.cases import TEMPLATE

from evenkeel.kube import credentials

Json = dict[str, Any]
T = TypeVar("T")
GROUP = "/apis/evenkeel.dev/v1alpha1"
BATCH = "/apis/batch/v1"
MERGE = "application/merge-patch+json"
PATIENCE_S = 90.0  # for what should take a second, on a machine full of tests
IDLE_S = 60.0  # an API server closes a connection that was not used for 90 s; a POST would be lost
GARBAGE_PATIENCE_S = 150.0  # the garbage collector learns of new kinds of owners twice a minute
ENDS = ("succeeded", "failed", "skipped", "missed", "cancelled", "lost")


class RefusedError(AssertionError):
    """The API server said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class TooLateError(AssertionError):
    """A due time was past when its schedule was created: it is missed, and no run comes of it."""


class World:
    def __init__(self, cluster: Cluster, kubeconfig: Path | None = None) -> None:
        """As the cluster's administrator, or as whom this kubeconfig names."""
        self.cluster = cluster
        self._credentials = credentials.load(kubeconfig or cluster.kubeconfig)
        self._connection: http.client.HTTPSConnection | None = None
        self._used_at = 0.0
        self._made: list[str] = []

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- any object -----------------------------------------------------------------------------

    def call(self, verb: str, path: str, body: object = None, kind: str = "") -> Json:
        """One request, and once more on a connection that the server has closed meanwhile."""
        headers = {"Accept": "application/json", "User-Agent": "tests"}
        headers |= self._credentials.headers()
        text = None
        if body is not None:
            text = json.dumps(body)
            headers["Content-Type"] = kind or "application/json"
        for attempt in (1, 2):
            connection = self._connected()
            try:
                connection.request(verb, path, body=text, headers=headers)
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self.close()
                if attempt == 2 or verb == "POST":
                    raise
                continue
            if answer.status == 429:  # in plain text
                raise RefusedError(answer.status, content.decode())
            found: Json = json.loads(content) if content else {}
            if answer.status >= 300:
                raise RefusedError(answer.status, str(found.get("message", "")))
            return found
        raise AssertionError

    def _connected(self) -> http.client.HTTPSConnection:
        if time.monotonic() - self._used_at > IDLE_S:
            self.close()
        self._used_at = time.monotonic()
        if self._connection is None:
            host = urlsplit(self._credentials.server)
            self._connection = http.client.HTTPSConnection(
                host.hostname or "", host.port or 443, context=self._credentials.context, timeout=20
            )
        return self._connection

    def get(self, path: str) -> Json:
        return self.call("GET", path)

    def items(self, path: str) -> list[Json]:
        found: list[Json] = self.get(path)["items"]
        return found

    def token(self, ns: str, name: str) -> str:
        """A token of a ServiceAccount, which is created."""
        path = f"/api/v1/namespaces/{ns}/serviceaccounts"
        self.call("POST", path, {"metadata": {"name": name}})
        made = self.call("POST", f"{path}/{name}/token", {"spec": {"expirationSeconds": 3600}})
        return str(made["status"]["token"])

    # --- ours -----------------------------------------------------------------------------------

    def namespace(self, word: str) -> str:
        name = f"{word}-{secrets.token_hex(3)}"
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self._made.append(name)
        return name

    def leave(self, namespaces: Iterable[str] | None = None) -> None:
        """Gone in a few seconds, which nobody waits for; those made here, if none are named."""
        for ns in self._made if namespaces is None else namespaces:
            try:
                self.call("DELETE", f"/api/v1/namespaces/{ns}")
            except RefusedError as error:
                if error.status != 404:
                    raise

    def create(self, ns: str, name: str, **spec: Any) -> Json:
        """A ScheduledJob; of a Job that does nothing, unless `jobTemplate` is given."""
        path = f"{GROUP}/namespaces/{ns}/scheduledjobs"
        made = self.call("POST", path, manifest(name, **spec))
        created_at, first = made["metadata"]["creationTimestamp"], first_of_few(spec)
        if first is not None and first <= seconds(created_at):
            raise TooLateError(f"{name} was created at {created_at}, and due at {moment(first)}")
        return made

    def edit(self, ns: str, name: str, **spec: Any) -> Json:
        return self.call("PATCH", _schedule(ns, name), {"spec": spec}, MERGE)

    def delete(self, ns: str, name: str) -> None:
        self.call("DELETE", _schedule(ns, name))

    def schedule(self, ns: str, name: str) -> Json:
        return self.get(_schedule(ns, name))

    def status(self, ns: str, name: str) -> Json:
        found: Json = self.schedule(ns, name).get("status") or {}
        return found

    def internal(self, ns: str, name: str) -> Json:
        """What the operator keeps in the status for its next process; empty before the first."""
        found: Json = self.status(ns, name).get("internal") or {}
        return found

    def waiting(self, ns: str, name: str) -> list[Json]:
        """The runs that a status names before their Jobs exist: announced, held, queued, retrying.

        Empty as well while nothing was written yet."""
        return self.internal(ns, name).get("waiting") or []

    def condition(self, ns: str, name: str, kind: str) -> Json:
        """A condition, or an empty one while it is not there."""
        for each in self.status(ns, name).get("conditions") or ():
            if each["type"] == kind:
                found: Json = each
                return found
        return {"type": kind, "status": "", "reason": "", "message": ""}

    def counts(self, ns: str, name: str) -> dict[str, int]:
        """How many runs came to which end, without the ends that none came to."""
        found = self.status(ns, name).get("counts") or {}
        return {end: found[end] for end in ENDS if found.get(end)}

    def recent(self, ns: str, name: str, state: str = "") -> list[Json]:
        """The newest runs, newest first; of one state, if one is named."""
        found = self.status(ns, name).get("recent") or ()
        return [row for row in found if not state or row["state"] == state]

    def events(self, ns: str, name: str, reason: str) -> list[Json]:
        """The Events on a ScheduledJob with this reason: the Job controller has some of the same
        on Jobs."""
        chosen = f"involvedObject.kind=ScheduledJob,involvedObject.name={name},reason={reason}"
        return self.items(f"/api/v1/namespaces/{ns}/events?fieldSelector={quote(chosen)}")

    def jobs(self, ns: str, name: str = "") -> list[Json]:
        """The Jobs of a namespace, or those of one ScheduledJob, by due time."""
        found = [
            job
            for job in self.items(f"{BATCH}/namespaces/{ns}/jobs")
            if not name or owner(job).get("name") == name
        ]
        return sorted(found, key=lambda job: (due(job), job["metadata"]["name"]))

    def tries(self, ns: str) -> list[tuple[str, int]]:
        """Every create of a Job there and its answer, by the log of a server of our own: of Jobs
        that are gone too, and of those that never came to be. Not those only for show."""
        return [
            (event["objectRef"].get("name", ""), event["responseStatus"]["code"])
            for event in self.cluster.audited(f'"{ns}"')
            if (event["verb"], event["objectRef"]["resource"]) == ("create", "jobs")
            and "dryRun" not in event["requestURI"]
        ]

    def created(self, ns: str) -> list[str]:
        """The Jobs that ever came to be there."""
        return [name for name, code in self.tries(ns) if code == 201]


def eventually(
    look: Callable[[], T], what: str, *, within_s: float = PATIENCE_S, every_s: float = 0.1
) -> T:
    """What `look` returns as soon as it is true; while it fails, it is asked again."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            found = look()
            reason = f"the last look gave {found!r}"[:2000]
        except (AssertionError, OSError, http.client.HTTPException) as error:
            found, reason = None, f"the last look failed: {error}"[:2000]  # type: ignore[assignment]
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"within {within_s:.0f} s not seen: {what}; {reason}")
        time.sleep(every_s)


def manifest(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "metadata": {"name": name},
        "spec": {"jobTemplate": TEMPLATE, **spec},
    }


def template(*, fate: str = "", runs_for: str = "", pod: Json | None = None, **job: Any) -> Json:
    """A jobTemplate whose Pods kwok lets run, fail, hang or wait; `job` goes to the Job's spec."""
    notes = {"fate": fate, "runs-for": runs_for}
    annotations = {f"test.evenkeel.dev/{key}": text for key, text in notes.items() if text}
    spec = {**TEMPLATE["spec"]["template"]["spec"], **(pod or {})}
    # One Pod and its end is the Job's: the waits between a Job's own retries are not ours to test.
    job = {"backoffLimit": 0, **job}
    return {"spec": {**job, "template": {"metadata": {"annotations": annotations}, "spec": spec}}}


def every(seconds: int, *, first_in: float = 0.0) -> Json:
    """An interval whose first due time is at least `first_in` seconds (and at most 1 more) away."""
    anchor = int(time.time() + first_in) + 1 - seconds
    return {"every": f"{seconds}s", "offset": "0s", "anchor": moment(anchor)}


def once(*, due_in: float) -> str:
    """For `at`: an instant at least so many seconds away, and at most one more."""
    return moment(int(time.time() + due_in) + 1)


def first_of_few(spec: Json) -> float | None:
    """The first due time of a schedule that has only some, so that none may be missed."""
    if "at" in spec:
        return seconds(spec["at"])
    rule = spec.get("interval") or {}
    if "endTime" in spec and "anchor" in rule:
        return seconds(rule["anchor"]) + float(rule["every"].removesuffix("s"))
    return None


def moment(instant: float) -> str:
    return dt.datetime.fromtimestamp(int(instant), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def owner(job: Json) -> Json:
    found: Json = (job["metadata"].get("ownerReferences") or [{}])[0]
    return found


def due(job: Json) -> str:
    return str((job["metadata"].get("annotations") or {}).get("evenkeel.dev/due", ""))


def names(objects: Iterable[Json]) -> list[str]:
    return [each["metadata"]["name"] for each in objects]


def _schedule(ns: str, name: str) -> str:
    return f"{GROUP}/namespaces/{ns}/scheduledjobs/{name}"
