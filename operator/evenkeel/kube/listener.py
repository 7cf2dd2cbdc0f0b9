"""Turns ScheduledJobs, as kopf's watch or a list shows them, into messages for the scheduler.

`watch` shows it what kopf sees, in kopf's thread; `pruner` shows it what that watch missed. It
remembers the generation and the version of each schedule: a status is believed at the first sight
alone, and the scheduler's own writes of the status come back as modifications.
"""

from collections.abc import Callable, Mapping
from typing import Any

from evenkeel.core.inbox import Inbox
from evenkeel.core.messages import ScheduleGone, ScheduleSeen
from evenkeel.resource.read import read
from evenkeel.resource.status import parse

Sight = Callable[[str | None, Mapping[str, Any]], None]
"""`ScheduleListener.see`: the kind of event, or None for an object of a list, and the object."""


class ScheduleListener:
    """`see` is called in kopf's thread, and reads the object there."""

    def __init__(
        self,
        inbox: Inbox,
        *,
        hand_over: Callable[..., object],
        min_interval_s: int,
        namespaces: tuple[str, ...] = (),
    ) -> None:
        """`hand_over` is the main loop's call_soon_threadsafe."""
        self._inbox = inbox
        self._hand_over = hand_over
        self._min_interval_s = min_interval_s
        self._namespaces = namespaces
        self._generations: dict[str, int] = {}
        self._versions: dict[str, int] = {}

    def version(self, uid: str) -> int:
        """The newest resourceVersion seen of a schedule, our own writes of its status included; 0:
        none. Called in the scheduler's thread."""
        return self._versions.get(uid, 0)

    def forget_all(self) -> None:
        """The resource was removed. Called while nobody watches it."""
        self._generations.clear()
        self._versions.clear()

    def see(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """One object as the watch gave it; `kind` is None in the first list."""
        metadata = raw.get("metadata") or {}
        uid = str(metadata.get("uid", ""))
        if self._namespaces and metadata.get("namespace") not in self._namespaces:
            return
        # Deleted in the foreground it stays until its Jobs are gone, and must not create new ones.
        if kind == "DELETED" or metadata.get("deletionTimestamp"):
            self._generations.pop(uid, None)
            self._versions.pop(uid, None)
            self._hand_over(self._inbox.hint, uid, ScheduleGone(uid))
            return
        version = str(metadata.get("resourceVersion", ""))
        if version.isdecimal():  # a list may be older than what the watch has shown
            self._versions[uid] = max(int(version), self._versions.get(uid, 0))
        generation, known = metadata.get("generation", 0), self._generations.get(uid)
        if known is not None and generation < known:
            return  # an older list: it would take the place of the newer sight in the inbox
        if kind is not None and generation == known:
            return  # our own status write, come back
        self._generations[uid] = generation
        schedule = read(raw, min_interval_s=self._min_interval_s)
        memory = parse(raw.get("status"), version=version)
        self._hand_over(self._inbox.hint, uid, ScheduleSeen(schedule, memory))
