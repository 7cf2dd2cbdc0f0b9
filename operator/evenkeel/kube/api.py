"""How the operator calls an API server, and what answers mean: a protocol, which sends nothing."""

import email.utils
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from evenkeel.resource.names import API_VERSION, PLURAL, REQUEST_PLURAL

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""For all requests: compressing takes the API server longer than the network saves, and reading
what is compressed took a tenth of our start."""

OURS = f"/apis/{API_VERSION}"
JOBS = "/apis/batch/v1"


DEEPEST = 600
"""Levels of JSON that are read. An API server takes 10,000, but orjson reads 1,024 and the standard
library, which kopf uses for its watch, reads 1,000. The limit is above the 254 levels that orjson
writes: a template that was cut cannot be written, so it is refused and never launched."""

_NEST = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]')


def load_json(text: bytes) -> Any:
    """One object nested deeper than can be read must not hide all those beside it."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(shallow(text))


def shallow(text: bytes) -> bytes:
    """The same JSON with null for whatever lies deeper than DEEPEST. Slow: only called for text
    that may be too deep."""
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
    """The request did not reach a server: nothing was done."""


class NoAnswer(Exception):
    """The request was sent and no answer came: it may have been done."""


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
        """The body. A body that is not a JSON object, as a proxy's HTML page, counts as empty."""
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
    def from_api_server(self) -> bool:
        """Whether the API server itself has answered: each of its objects has a kind. A proxy's
        page has none, and proves nothing, whatever its HTTP status."""
        return bool(self.json().get("kind"))

    @property
    def absent(self) -> bool:
        """Whether the API server says that there is no such object. A proxy's 404 does not."""
        return self.status == 404 and self.reason == "NotFound" and self.from_api_server

    @property
    def server_time(self) -> float | None:
        """The server's clock when it answered, in whole seconds; None: it does not tell."""
        try:
            return email.utils.parsedate_to_datetime(self.headers.get("Date", "")).timestamp()
        except ValueError:
            return None

    @property
    def retry_after_s(self) -> float | None:
        """Retry-After in seconds, a minute at most: no server may stop the operator for a day."""
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


def field_validation(strict: bool) -> dict[str, str]:
    """The parameter of a create: what an unknown field in the body does. Without it the API server
    would drop the field and create what is left."""
    return {"fieldValidation": "Strict" if strict else "Warn"}


def schedules_path(ns: str = "", name: str = "") -> str:
    """The ScheduledJobs of the cluster, those of a namespace, or one of them."""
    return resource_path(PLURAL, ns, name)


def requests_path(ns: str = "", name: str = "") -> str:
    """The RunRequests of the cluster, those of a namespace, or one of them."""
    return resource_path(REQUEST_PLURAL, ns, name)


def resource_path(plural: str, ns: str = "", name: str = "") -> str:
    """The objects of one of our resources in the cluster, those of a namespace, or one of them."""
    return _path(OURS, ns, plural, name)


def _path(group: str, ns: str, resource: str, name: str) -> str:
    scope = f"{group}/namespaces/{ns}" if ns else group
    return f"{scope}/{resource}/{name}" if name else f"{scope}/{resource}"
