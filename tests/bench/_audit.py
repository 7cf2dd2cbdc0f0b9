"""When the API server received each of our creates, from its audit log: microseconds, no client.

The due time is in the Job's name, so nothing has to be asked of anybody.
"""

import datetime as dt
import json
from pathlib import Path

from evenkeel.resource.job import due_of


class Creates:
    """The creates of one user that the log gains while this is alive."""

    def __init__(self, log: Path, user: str) -> None:
        self._log = log
        self._user = user
        self._offset = log.stat().st_size if log.exists() else 0

    def lateness_s(self, *, due_from: float = 0.0, due_before: float = float("inf")) -> list[float]:
        """Request received minus due, ascending, for due times in that span; each Job once."""
        first: dict[str, float] = {}
        with self._log.open("rb") as lines:
            lines.seek(self._offset)
            for line in lines:
                if b'"create"' not in line or b"/jobs" not in line or not line.endswith(b"}\n"):
                    continue
                event = json.loads(line)
                name = self._created(event)
                due = due_of(name) if name else None
                if due is not None and due_from <= due < due_before:
                    received = dt.datetime.fromisoformat(event["requestReceivedTimestamp"])
                    first.setdefault(name, received.timestamp() - due)
        return sorted(first.values())

    def _created(self, event: dict[str, object]) -> str:
        """The name of the Job, if this is about a real create that we sent and that succeeded."""
        user, status = event.get("user"), event.get("responseStatus")
        reference = event.get("objectRef")
        assert isinstance(user, dict) and isinstance(status, dict) and isinstance(reference, dict)
        ours = (event["verb"], reference.get("resource")) == ("create", "jobs")
        ours = ours and user.get("username") == self._user and status.get("code") == 201
        if not ours or "dryRun" in str(event["requestURI"]):
            return ""
        return str(reference.get("name", ""))
