"""Turns our objects, as kopf's watch or a list shows them, into messages for the scheduler.

`watch` shows a listener what kopf sees, in kopf's thread; `pruner` shows it what that watch missed.
There is one listener of each resource. It remembers the generation and the version of each object:
a status is believed at the first sight alone, and the scheduler's own writes of the status come
back as modifications.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import Message, RequestGone, RequestSeen, ScheduleGone, ScheduleSeen
from evenkeel.resource.names import NOTE_TRIGGER
from evenkeel.resource.read import read
from evenkeel.resource.request_read import read_request
from evenkeel.resource.request_status import parse_request
from evenkeel.resource.status import parse

Sight = Callable[[str | None, Mapping[str, Any]], None]
"""`Listener.see`: the kind of event, or None for an object of a list, and the object."""


class Listener(ABC):
    """Of one resource. `see` is called in kopf's thread, and reads the object there."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        hand_over: Callable[..., object],
        namespaces: tuple[str, ...] = (),
    ) -> None:
        """`hand_over` is the main loop's call_soon_threadsafe."""
        self._inbox = inbox
        self._hand_over = hand_over
        self._namespaces = namespaces
        self._seen: dict[str, tuple[int, str]] = {}
        """The generation of each object, and what it asks for beside its spec."""
        self._versions: dict[str, int] = {}

    def version(self, uid: str) -> int:
        """The newest resourceVersion seen of an object, our own writes of its status included; 0:
        none. Called in the scheduler's thread."""
        return self._versions.get(uid, 0)

    def forget_all(self) -> None:
        """The resource was removed. Called while nobody watches it."""
        self._seen.clear()
        self._versions.clear()

    def see(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """One object as the watch gave it; `kind` is None in the first list."""
        metadata = raw.get("metadata") or {}
        uid = str(metadata.get("uid", ""))
        if self._namespaces and metadata.get("namespace") not in self._namespaces:
            return
        # Deleted in the foreground it stays until its Jobs are gone, and must not create new ones.
        if kind == "DELETED" or metadata.get("deletionTimestamp"):
            self._seen.pop(uid, None)
            self._versions.pop(uid, None)
            self._hand_over(self._inbox.hint, uid, self._gone(uid))
            return
        version = str(metadata.get("resourceVersion", ""))
        newest = self._versions.get(uid, 0)
        if version.isdecimal():  # a list may be older than what the watch has shown
            self._versions[uid] = max(int(version), newest)
        sight, known = (metadata.get("generation", 0), self._asks(metadata)), self._seen.get(uid)
        if known is not None and sight[0] < known[0]:
            return  # an older list: it would take the place of the newer sight in the inbox
        if kind is not None and sight == known:
            return  # our own status write, come back
        if known is not None and version.isdecimal() and int(version) < newest:
            return  # an older list, too: the generation does not tell of annotations
        self._seen[uid] = sight
        self._hand_over(self._inbox.hint, uid, self._read(raw, version))

    def _asks(self, metadata: Mapping[str, Any]) -> str:
        """What it asks for beside its spec: the generation does not tell of it."""
        return ""

    @abstractmethod
    def _read(self, raw: Mapping[str, Any], version: str) -> Message:
        """It was added or modified."""

    @abstractmethod
    def _gone(self, uid: str) -> Message:
        """It was deleted."""


class ScheduleListener(Listener):
    """Of ScheduledJobs."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        hand_over: Callable[..., object],
        min_interval_s: int,
        namespaces: tuple[str, ...] = (),
    ) -> None:
        super().__init__(inbox, hand_over=hand_over, namespaces=namespaces)
        self._min_interval_s = min_interval_s

    def _asks(self, metadata: Mapping[str, Any]) -> str:
        annotations = metadata.get("annotations")
        return str(annotations.get(NOTE_TRIGGER, "")) if isinstance(annotations, Mapping) else ""

    def _read(self, raw: Mapping[str, Any], version: str) -> Message:
        schedule = read(raw, min_interval_s=self._min_interval_s)
        return ScheduleSeen(schedule, parse(raw.get("status"), version=version))

    def _gone(self, uid: str) -> Message:
        return ScheduleGone(uid)


class RequestListener(Listener):
    """Of RunRequests."""

    def _read(self, raw: Mapping[str, Any], version: str) -> Message:
        return RequestSeen(read_request(raw), parse_request(raw.get("status"), version=version))

    def _gone(self, uid: str) -> Message:
        return RequestGone(uid)
