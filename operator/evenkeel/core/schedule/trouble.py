"""What is wrong with a schedule for the moment: its condition Degraded says the gravest of it.

Each kind of trouble is told and taken back by itself: a create that succeeds tells nothing of a Pod
that cannot start. Defects of ours are not kept here: `accept` and `route` tell them.
"""

from collections.abc import Mapping

from evenkeel.core.schedule.entry import Entry, Trouble
from evenkeel.core.schedule.ready import DEFECTS
from evenkeel.core.schedule.run import Run, Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import JobState
from evenkeel.reasons import ConditionReason, ConditionType, Reason
from evenkeel.resource.record import Condition

NOT_STARTED = {
    Reason.IMAGE: ConditionReason.IMAGE_NOT_PULLED,
    Reason.UNSCHEDULABLE: ConditionReason.UNSCHEDULABLE,
    Reason.POD_REFUSED: ConditionReason.POD_REFUSED,
    Reason.PENDING: ConditionReason.POD_PENDING,
}
"""Why no Pod starts, as the condition says it."""

NOT_SEEN_MESSAGE = (
    "the API server has told nothing of Jobs for minutes: ends of runs are not seen, and what "
    "concurrencyPolicy decides may be outdated"
)

_KINDS: dict[str, Trouble] = {
    ConditionReason.PODS_UNREADABLE: Trouble.PODS,
    **dict.fromkeys(NOT_STARTED.values(), Trouble.START),
}


def remembered(conditions: Mapping[str, Condition]) -> dict[Trouble, tuple[ConditionReason, str]]:
    """What the stored status tells of; whoever finds that it has gone takes it back."""
    degraded = conditions.get(ConditionType.DEGRADED)
    if degraded is None or degraded.status != "True" or degraded.reason in DEFECTS:
        return {}
    try:
        reason = ConditionReason(degraded.reason)
    except ValueError:  # of another version, or written by hand
        return {}
    return {_KINDS.get(reason, Trouble.CREATE): (reason, degraded.message)}


def say(turn: Turn, entry: Entry, kind: Trouble, reason: ConditionReason, message: str) -> None:
    """There is such trouble."""
    entry.troubles[kind] = reason, message
    show(turn, entry)


def end(turn: Turn, entry: Entry, kind: Trouble) -> None:
    """There is no such trouble any more."""
    entry.troubles.pop(kind, None)
    show(turn, entry)


def show(turn: Turn, entry: Entry) -> None:
    """Have the condition say the gravest."""
    for kind in Trouble:
        if kind in entry.troubles:
            turn.condition(entry, ConditionType.DEGRADED, "True", *entry.troubles[kind])
            return
    if turn.silent:
        not_seen = ConditionReason.ENDS_NOT_SEEN
        turn.condition(entry, ConditionType.DEGRADED, "True", not_seen, NOT_SEEN_MESSAGE)
        return
    turn.condition(entry, ConditionType.DEGRADED, "False", ConditionReason.AS_EXPECTED)


def let_go(turn: Turn, entry: Entry, run: Run) -> None:
    """A Pod of the run has started, or the run waits for none any more."""
    run.stuck = ""
    forget_start(turn, entry, but=run)


def forget_start(turn: Turn, entry: Entry, *, but: Run | None = None) -> None:
    """No Pod is waited for, unless it is that of another run than `but`."""
    if Trouble.START in entry.troubles and not any(
        run is not but and _may_be_stuck(run) for run in entry.runs.values()
    ):
        end(turn, entry, Trouble.START)


def _may_be_stuck(run: Run) -> bool:
    return run.stage is Stage.RUNNING and run.job_state is JobState.WAITING and not run.pod_started
