"""What /metrics/schedules tells of one schedule, as far as it costs nothing to read. Pure.

The due times themselves are only handed on: whoever renders the text reckons with them, away from
the loop.
"""

from typing import NamedTuple

from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.view import state_of
from evenkeel.model import Instant, ScheduleState
from evenkeel.reasons import ConditionType
from evenkeel.when import DueTimes


class Figures(NamedTuple):
    """A schedule at one moment."""

    uid: str
    ns: str
    name: str
    state: ScheduleState
    dues: DueTimes | None = None
    """None: nothing may start now."""
    since: Instant = 0
    """Due times after it count as without a success: the last success, or when the schedule was
    created, got its timing or was resumed, whichever is the latest."""
    last_success: Instant | None = None
    last_result: str = ""
    failures: int = 0
    """In a row."""
    active: int = 0
    paused: bool = False
    stalled: bool = False


def figures(entry: Entry) -> Figures:
    """Read them."""
    record = entry.record
    stalled = entry.conditions.get(ConditionType.STALLED)
    return Figures(
        uid=entry.uid,
        ns=entry.ns,
        name=entry.name,
        state=state_of(entry),
        dues=None if entry.halted else entry.dues,
        since=max(entry.created, entry.since, entry.resumed_at or 0, record.last_success or 0),
        last_success=record.last_success,
        last_result=record.last_result,
        failures=record.consecutive_failures,
        active=sum(run.has_job for run in entry.runs.values()),
        paused=entry.pause is not None,
        stalled=stalled is not None and stalled.status == "True",
    )
