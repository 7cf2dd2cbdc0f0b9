"""What the API server received of us and when, from its audit log: microseconds, no client.

The due time is in a Job's name, so nothing has to be asked of anybody.
"""

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenkeel.resource.job import due_of


class _Log:
    """What the log gains while this is alive, of one user."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._offset = log.stat().st_size if log.exists() else 0

    def done(self, verb: str, resource: str, *, subresource: str = "") -> Iterator[tuple[str, Any]]:
        """Names and events of what succeeded; not of what was asked only for show."""
        needle = f'"{verb}"'.encode()
        with self._log.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if needle not in line or b"responseStatus" not in line or not line.endswith(b"}\n"):
                    continue
                event = json.loads(line)
                reference = event.get("objectRef") or {}
                if (
                    event["verb"] == verb
                    and reference.get("resource") == resource
                    and reference.get("subresource", "") == subresource
                    and event["user"].get("username") == self._user
                    and event["responseStatus"].get("code") in (200, 201)
                    and "dryRun" not in event["requestURI"]
                ):
                    yield str(reference.get("name", "")), event


class Creates(_Log):
    """The creates of Jobs."""

    def received_s(self) -> dict[str, float]:
        """By the Job's name, in the order of the log; each Job once."""
        first: dict[str, float] = {}
        for name, event in self.done("create", "jobs"):
            first.setdefault(name, received(event))
        return first

    def lateness_s(
        self, *, due_from: float = 0.0, due_before: float = float("inf"), of: str = ""
    ) -> list[float]:
        """Request received minus due, ascending, for due times in that span and Jobs whose names
        begin like that."""
        found = []
        for name, instant in self.received_s().items():
            due = due_of(name)
            if name.startswith(of) and due is not None and due_from <= due < due_before:
                found.append(instant - due)
        return sorted(found)


class StatusPatches(_Log):
    """The patches of statuses."""

    def received_s(self) -> dict[str, list[float]]:
        """By the name of the ScheduledJob, ascending."""
        found: dict[str, list[float]] = defaultdict(list)
        for name, event in self.done("patch", "scheduledjobs", subresource="status"):
            found[name].append(received(event))
        return {name: sorted(instants) for name, instants in found.items()}


def received(event: Any) -> float:
    return dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
