"""The port to the API server: two verbs, and what their answers mean. No client, no I/O."""

import email.utils
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from evenkeel.resource.names import API_VERSION, PLURAL

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""For all requests: gzip took the API server longer than the network would have saved, and our
loop a tenth of its start."""

SCHEDULES = f"/apis/{API_VERSION}"
JOBS = "/apis/batch/v1"


DEEPEST = 600
"""Levels of JSON that are read. Every reader here ends at some thousand (orjson at 1,024, the
standard library, which kopf uses for its watch, at 1,000); an API server takes 10,000. Deeper than
the 254 that orjson writes, so what was cut is refused and never launched."""

_NEST = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]')


def load_json(text: bytes) -> Any:
    """One object nested deeper than can be read must not hide all those beside it."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(shallow(text))


def shallow(text: bytes) -> bytes:
    """What lies deeper than DEEPEST is null. Slow, and only called where it may be needed."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _NEST.finditer(text):
        match text[token.start()]:
            case 0x7B | 0x5B:
                depth += 1
                if depth == DEEPEST + 1:
                    kept += (text[begin : token.start()], b"null")
            case 0x7D | 0x5D:
                if depth == DEEPEST + 1:
                    begin = token.end()
                depth -= 1
    return b"".join((*kept, text[begin:])) if kept else text


SILENCE_S = 90.0
"""The server sends a bookmark about once a minute: a watch silent for longer is dead."""


class NotSent(Exception):
    """Nobody took the request: nothing was done."""


class NoAnswer(Exception):
    """The request went out and no answer came: it may have been done."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the API server said."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> dict[str, Any]:
        """The body; what is no JSON object is an empty one: a proxy may answer HTML."""
        try:
            content = load_json(self.body)
        except orjson.JSONDecodeError:
            return {}
        return content if isinstance(content, dict) else {}

    @property
    def reason(self) -> str:
        """`reason` of a Status."""
        return str(self.json().get("reason", ""))

    @property
    def message(self) -> str:
        """`message` of a Status, short enough for a condition."""
        return str(self.json().get("message", "") or f"HTTP {self.status}")[:1024]

    @property
    def spoken(self) -> bool:
        """The API server's own word: all it says of objects has a kind. A proxy's page has none,
        whatever its status, and proves nothing."""
        return bool(self.json().get("kind"))

    @property
    def absent(self) -> bool:
        """There is no such object. A 404 that a proxy sends says nothing of it."""
        return self.status == 404 and self.reason == "NotFound" and self.spoken

    @property
    def server_time(self) -> float | None:
        """When the server said so, by its clock, in whole seconds."""
        try:
            return email.utils.parsedate_to_datetime(self.headers.get("Date", "")).timestamp()
        except ValueError:
            return None

    @property
    def retry_after_s(self) -> float | None:
        """Retry-After in seconds, bounded: a server must not put us to sleep for a day."""
        text = self.headers.get("Retry-After", "")
        return min(float(text), 60.0) if text.isdecimal() else None


class Api(Protocol):
    """An API server."""

    async def call(
        self,
        verb: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        accept: str = JSON,
    ) -> Reply:
        """One request within the time-out. Raises NotSent or NoAnswer, nothing else."""

    def watch(self, path: str, params: Mapping[str, str]) -> AbstractAsyncContextManager["Stream"]:
        """Open a watch; lines come until it ends. Raises as `call` does."""


class Stream(Protocol):
    """An open watch."""

    status: int

    def lines(self) -> AsyncIterator[bytes]:
        """One JSON document a line. Raises NoAnswer when the connection breaks or falls silent."""

    async def reply(self) -> Reply:
        """The whole answer, when the status is not 200."""


def jobs_path(ns: str = "", name: str = "") -> str:
    """The Jobs of the cluster, those of a namespace, or one of them."""
    return _path(JOBS, ns, "jobs", name)


def schedules_path(ns: str = "", name: str = "") -> str:
    """The ScheduledJobs of the cluster, those of a namespace, or one of them."""
    return _path(SCHEDULES, ns, PLURAL, name)


def _path(group: str, ns: str, resource: str, name: str) -> str:
    scope = f"{group}/namespaces/{ns}" if ns else group
    return f"{scope}/{resource}/{name}" if name else f"{scope}/{resource}"
