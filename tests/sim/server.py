"""An API server in memory: what a kube-apiserver does with the requests that the operator sends.

Objects with resourceVersions and generations, merge patches with a uid as precondition, a status
subresource, paged lists, dry runs, deletions with preconditions, a log of events that watches read
and that is compacted. One request is one step: nothing here waits, fails or loses anything, that is
`network.py`'s part; nothing here makes a Job run, that is `controllers.py`'s.

tests/contract holds it to a real API server, answer by answer. It knows no validation beyond the
few refusals that the operator must tell apart, no users, no API discovery.
"""

from __future__ import annotations

import base64
import email.utils
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from tests.sim.schema import defaulted, refusals, schema_of

from evenkeel import rfc3339
from evenkeel.kube.api import JSON, Reply

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API."""

    prefix: str
    plural: str
    name: str
    in_list: bool
    """Whether items of a list carry apiVersion and kind: those of custom resources do."""
    has_status: bool = True

    @property
    def version(self) -> str:
        return self.prefix.removeprefix("/apis/").removeprefix("/api/")

    @property
    def group(self) -> str:
        return self.version.split("/")[0] if "/" in self.version else ""

    @property
    def resource(self) -> str:
        """`jobs.batch`, as messages have it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


JOB = Kind("/apis/batch/v1", "jobs", "Job", in_list=False)
SCHEDULED_JOB = Kind("/apis/evenkeel.dev/v1alpha1", "scheduledjobs", "ScheduledJob", in_list=True)
RUN_REQUEST = Kind("/apis/evenkeel.dev/v1alpha1", "runrequests", "RunRequest", in_list=True)
POD = Kind("/api/v1", "pods", "Pod", in_list=False)
EVENT = Kind("/api/v1", "events", "Event", in_list=False, has_status=False)
OURS = (SCHEDULED_JOB, RUN_REQUEST)
KINDS = {(kind.prefix, kind.plural): kind for kind in (JOB, SCHEDULED_JOB, RUN_REQUEST, POD, EVENT)}

_PATH = re.compile(
    r"(/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?(?:/(status))?"
)
_OUR_METADATA = ("uid", "resourceVersion", "generation", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log that watches read."""

    version: int
    type: str
    kind: Kind
    object: Json
    line: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked of the server: for oracles, and for the history that a failing seed prints."""

    at: float
    who: str
    verb: str
    path: str
    status: int
    created: Json | None = None
    """The object that was to be created, dry runs excepted."""

    @property
    def note(self) -> str:
        """The name in a create: its path does not tell."""
        return str((self.created or {}).get("metadata", {}).get("name", ""))


@dataclass(slots=True)
class Server:
    """The store and its verbs. `now` is the server's own clock, which is never wrong."""

    now: Callable[[], float]
    version: int = 100
    compacted: int = 0
    """A watch from before here is told 410."""
    objects: dict[Kind, dict[tuple[str, str], Json]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS.values()}
    )
    log: list[Change] = field(default_factory=list)
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    namespaces: set[str] = field(default_factory=lambda: {"default"})
    refuse: Callable[[str, Kind, str, Json], Reply | None] = lambda verb, kind, ns, item: None
    """Admission: quota, RBAC, webhooks. It is asked before every write."""
    requests: list[Request] = field(default_factory=list)
    _pages: dict[str, tuple[list[bytes], int, float]] = field(default_factory=dict)
    _uids: dict[tuple[str, str, str], int] = field(default_factory=dict)

    # --- requests ---------------------------------------------------------------------------------

    def handle(
        self,
        verb: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
        who: str = "",
    ) -> Reply:
        """One request, done."""
        params = params or {}
        item: Json = orjson.loads(body) if body else {}
        reply = self._route(verb, path, item, params, accept)
        created = item if verb == "POST" and "dryRun" not in params else None
        self.requests.append(Request(self.now(), who, verb, path, reply.status, created))
        date = email.utils.formatdate(self.now(), usegmt=True)
        return Reply(reply.status, reply.body, {"Date": date, **reply.headers})

    def _route(
        self, verb: str, path: str, body: Json, params: Mapping[str, str], accept: str
    ) -> Reply:
        if path == "/version":
            return _reply(200, {"major": "1", "minor": "36"})
        found = _PATH.fullmatch(path)
        kind = KINDS.get((found[1], found[3])) if found else None
        if found is None or kind is None:
            return _status(404, "NotFound", "the server could not find the requested resource")
        ns, name, part = found[2] or "", found[4] or "", found[5] or ""
        match verb, bool(name):
            case "GET", False:
                return self._list(kind, ns, params, accept)
            case "GET", True:
                return self._get(kind, ns, name)
            case "POST", False:
                return self._create(kind, ns, body, params)
            case "PATCH", True:
                return self._patch(kind, ns, name, part, body)
            case "DELETE", True:
                return self._delete(kind, ns, name, body)
        return _status(405, "MethodNotAllowed", f"{verb} is not supported here")

    def _get(self, kind: Kind, ns: str, name: str) -> Reply:
        item = self.objects[kind].get((ns, name))
        if item is None:
            return _not_found(kind, name)
        return _reply(200, item)

    def _create(self, kind: Kind, ns: str, item: Json, params: Mapping[str, str]) -> Reply:
        name = item["metadata"]["name"]
        if ns not in self.namespaces:
            return _status(404, "NotFound", f'namespaces "{ns}" not found')
        if (refused := self.refuse("POST", kind, ns, item)) is not None:
            return refused
        if (ns, name) in self.objects[kind]:
            return _status(409, "AlreadyExists", f'{kind.resource} "{name}" already exists')
        if kind is JOB and (refused := _invalid_job(item)) is not None:
            return refused
        created = {key: value for key, value in item.items() if key != "status"}
        if kind is JOB:
            created["status"] = {}
        if kind is RUN_REQUEST:
            schema = schema_of(kind.plural, "spec")
            if (refused := _invalid(kind, name, "spec", item["spec"])) is not None:
                return refused
            created["spec"] = defaulted(item["spec"], schema)
        if kind in OURS:
            created["status"] = schema_of(kind.plural, "status")["default"]
        # By name and count, so that it is the same in a run with faults and in one without.
        count = self._uids[kind.plural, ns, name] = self._uids.get((kind.plural, ns, name), 0) + 1
        created["metadata"] = item["metadata"] | {
            "namespace": ns,
            "uid": f"{kind.name}-{ns}-{name}-{count}",
            "creationTimestamp": rfc3339.show(int(self.now())),
        }
        if kind.has_status:
            created["metadata"]["generation"] = 1
        if params.get("dryRun") == "All":
            return _reply(201, created)
        return _reply(201, self._write("ADDED", kind, created))

    def _patch(self, kind: Kind, ns: str, name: str, part: str, patch: Json) -> Reply:
        old = self.objects[kind].get((ns, name))
        if old is None:
            return _not_found(kind, name)
        version = (patch.get("metadata") or {}).get("resourceVersion")
        if version is not None and version != old["metadata"]["resourceVersion"]:
            return _status(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been '
                "modified; please apply your changes to the latest version and try again",
            )
        if (refused := self.refuse("PATCH", kind, ns, old)) is not None:
            return refused
        if part == "status":
            status = _merged(old.get("status"), patch.get("status") or {})
            # What a patch leaves as it is, is not looked at again: as Kubernetes does.
            before = old.get("status") or {}
            changed = {key: part for key, part in status.items() if part != before.get(key)}
            if kind in OURS and (refused := _invalid(kind, name, "status", changed)) is not None:
                return refused
            new = old | {"status": status}
        else:
            wanted = {key: value for key, value in patch.items() if key != "status"}
            metadata = dict(wanted.get("metadata") or {})
            for key in _OUR_METADATA:
                metadata.pop(key, None)
            new = _merged(old, wanted | {"metadata": metadata})
        if kind.has_status and new.get("spec") != old.get("spec"):
            generation = old["metadata"]["generation"] + 1
            new["metadata"] = new["metadata"] | {"generation": generation}
        if new != old:  # a patch that changes nothing writes nothing
            new = self._write("MODIFIED", kind, new)
        return _reply(200, new)

    def _delete(self, kind: Kind, ns: str, name: str, options: Json) -> Reply:
        old = self.objects[kind].get((ns, name))
        if old is None:
            return _not_found(kind, name)
        uid = (options.get("preconditions") or {}).get("uid")
        if uid is not None and uid != old["metadata"]["uid"]:
            return _status(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {kind.resource} "{name}": Precondition failed: '
                f"UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}",
            )
        self._write("DELETED", kind, old)
        return _reply(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _list(self, kind: Kind, ns: str, params: Mapping[str, str], accept: str) -> Reply:
        limit = int(params.get("limit", 0) or 0)
        if token := params.get("continue"):
            return self._next_page(kind, token, limit)
        items = [
            _in_list(kind, item, accept)
            for (item_ns, _), item in sorted(self.objects[kind].items())
            if ns in ("", item_ns) and selected(item, params)
        ]
        return self._page(kind, items, self.version, limit)

    def _page(self, kind: Kind, items: list[bytes], version: int, limit: int) -> Reply:
        metadata: Json = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            key = f"{version}.{len(self._pages)}"
            self._pages[key] = (items[limit:], version, self.now())
            metadata["continue"] = base64.b64encode(key.encode()).decode()
            metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        head = {"kind": f"{kind.name}List", "apiVersion": kind.version, "metadata": metadata}
        body = orjson.dumps(head)[:-1] + b',"items":[' + b",".join(items) + b"]}"
        return Reply(200, body)

    def _next_page(self, kind: Kind, token: str, limit: int) -> Reply:
        items, version, _ = self._pages.get(
            base64.b64decode(token).decode(), ([], self.compacted - 1, 0.0)
        )
        if version < self.compacted:
            return _status(
                410,
                "Expired",
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter.",
            )
        return self._page(kind, items, version, limit)

    # --- watches ----------------------------------------------------------------------------------

    def changes(self, kind: Kind, ns: str, params: Mapping[str, str], since: int) -> list[Change]:
        """What a watch from `since` has to tell by now, oldest first."""
        found: list[Change] = []
        for change in reversed(self.log):
            if change.version <= since:
                break
            if self.concerns(change, kind, ns, params):
                found.append(change)
        found.reverse()
        return found

    def concerns(self, change: Change, kind: Kind, ns: str, params: Mapping[str, str]) -> bool:
        """Whether a watch of these is told of it."""
        return (
            change.kind is kind
            and ns in ("", change.object["metadata"]["namespace"])
            and selected(change.object, params)
        )

    def bookmark(self, kind: Kind) -> bytes:
        """How far the log has come."""
        metadata = {"resourceVersion": str(self.version), "creationTimestamp": None}
        item = {"kind": kind.name, "apiVersion": kind.version, "metadata": metadata}
        return orjson.dumps({"type": "BOOKMARK", "object": item})

    def too_old(self, since: int) -> bool:
        return since < self.compacted

    def compact(self) -> None:
        """Forget the log: whoever has not read it must list."""
        self.compacted = self.version
        self.log.clear()

    # --- writing ----------------------------------------------------------------------------------

    def write_status(self, kind: Kind, ns: str, name: str, status: Json) -> None:
        """What a controller of the cluster writes: it has the newest object in hand."""
        old = self.objects[kind][ns, name]
        self._write("MODIFIED", kind, {**old, "status": {**old.get("status", {}), **status}})

    def put(self, kind: Kind, ns: str, name: str, item: Json) -> None:
        """An object of a controller of the cluster."""
        metadata = {"namespace": ns, "name": name, "uid": f"{kind.name}-{ns}-{name}"}
        metadata |= item.get("metadata") or {}
        self._write("ADDED", kind, {**item, "metadata": metadata})

    def _write(self, type: str, kind: Kind, item: Json) -> Json:
        self.version += 1
        metadata = {**item["metadata"], "resourceVersion": str(self.version)}
        item = {"apiVersion": kind.version, "kind": kind.name, **item, "metadata": metadata}
        key = (metadata["namespace"], metadata["name"])
        if type == "DELETED":
            del self.objects[kind][key]
        else:
            self.objects[kind][key] = item
        line = orjson.dumps({"type": type, "object": item})
        change = Change(self.version, type, kind, item, line)
        self.log.append(change)
        for listener in list(self.listeners):
            listener(change)
        return item


def parse_watch(path: str) -> tuple[Kind, str]:
    """Which kind in which namespace a watch follows."""
    found = _PATH.fullmatch(path)
    assert found is not None and not found[4]
    return KINDS[found[1], found[3]], found[2] or ""


def gone_line(since: int, oldest: int) -> bytes:
    """410 as it comes in a stream that was answered with 200."""
    message = f"too old resource version: {since} ({oldest})"
    return orjson.dumps({"type": "ERROR", "object": _status_body(410, "Expired", message)})


def error_line(code: int, message: str) -> bytes:
    """Any other trouble in a stream."""
    return orjson.dumps({"type": "ERROR", "object": _status_body(code, "InternalError", message)})


def status_reply(code: int, reason: str, message: str, **headers: str) -> Reply:
    """A refusal as the API server words it."""
    reply = _status(code, reason, message)
    return Reply(reply.status, reply.body, {key.replace("_", "-"): v for key, v in headers.items()})


def selected(item: Json, params: Mapping[str, str]) -> bool:
    """labelSelector with `key` and `key=value`, fieldSelector with `a.b=value`."""
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, (params.get("labelSelector") or "").split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    for term in filter(None, (params.get("fieldSelector") or "").split(",")):
        path, _, value = term.partition("=")
        found: Any = item
        for step in path.split("."):
            found = (found or {}).get(step)
        if found != value:
            return False
    return True


def _merged(target: Any, patch: Json) -> Json:
    """RFC 7386: null removes, objects join, everything else replaces. What is stored stays as it
    is: watches and tests hold older versions of it."""
    new = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = _merged(new.get(key), value) if isinstance(value, dict) else value
    return new


def _in_list(kind: Kind, item: Json, accept: str) -> bytes:
    if "PartialObjectMetadataList" in accept:
        return orjson.dumps({"metadata": item["metadata"]})
    if kind.in_list:
        return orjson.dumps(item)
    return orjson.dumps({k: v for k, v in item.items() if k not in ("apiVersion", "kind")})


def _invalid_job(item: Json) -> Reply | None:
    pod = ((item.get("spec") or {}).get("template") or {}).get("spec") or {}
    if pod.get("restartPolicy") in ("Never", "OnFailure"):
        return None
    name = item["metadata"]["name"]
    return _status(
        422,
        "Invalid",
        f'Job.batch "{name}" is invalid: spec.template.spec.restartPolicy: Required value: valid '
        'values: "OnFailure", "Never"',
    )


def _invalid(kind: Kind, name: str, part: str, value: Json) -> Reply | None:
    """What the CRD's schema refuses of a spec or a status."""
    wrong = ", ".join(refusals(value, schema_of(kind.plural, part), part))
    message = f'{kind.name}.evenkeel.dev "{name}" is invalid: {wrong}'
    return _status(422, "Invalid", message) if wrong else None


def _not_found(kind: Kind, name: str) -> Reply:
    return _status(404, "NotFound", f'{kind.resource} "{name}" not found')


def _status_body(code: int, reason: str, message: str) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _status(code: int, reason: str, message: str) -> Reply:
    return _reply(code, _status_body(code, reason, message))


def _reply(code: int, body: Json) -> Reply:
    return Reply(code, orjson.dumps(body))
