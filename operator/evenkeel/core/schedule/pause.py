"""A schedule pauses itself after so many failed runs in a row. How a pause ends, `halt` says."""

from evenkeel import rfc3339
from evenkeel.core.schedule import account
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Instant
from evenkeel.reasons import ConditionReason, ConditionType, EventReason, Reason
from evenkeel.resource.record import Pause


def wanted(entry: Entry) -> bool:
    """Whether pauseAfterFailures is reached."""
    limit = entry.pause_after
    return limit is not None and entry.record.consecutive_failures >= limit and entry.pause is None


def begin(turn: Turn, entry: Entry, due: Instant) -> None:
    """The run due then was one failure too many."""
    reason = (
        f"{entry.record.consecutive_failures} runs in a row failed, the last due "
        f"{rfc3339.show(due)}; edit the timing or the template, or set suspend and take it back, "
        "to go on"
    )
    entry.pause = Pause(turn.second, "evenkeel", reason)
    account.opened(turn, entry, Reason.PAUSED)
    if entry.schedule is not None and not entry.schedule.suspend:
        turn.condition(entry, ConditionType.ACTIVE, "False", ConditionReason.PAUSED, reason)
    turn.event(entry, EventReason.PAUSED, reason, warning=True)
    turn.log("schedule paused", level="warning", schedule=entry.key, reason=reason)
