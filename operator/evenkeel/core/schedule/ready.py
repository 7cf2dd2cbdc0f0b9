"""Whether a schedule is ready, told from its other conditions; and what a condition says where
nothing went wrong. Pure.

Ready and Stalled follow kstatus, by which Helm, Flux, Argo CD and `kubectl wait` judge: they wait
while Ready is Unknown, and give up once Stalled is True. A failed, missed or skipped run never
makes Ready False.
"""

from collections.abc import Mapping

from evenkeel.model import Instant
from evenkeel.reasons import ConditionReason, ConditionType
from evenkeel.resource.record import NOT_SEEN_MESSAGE, Condition

DECIDE_READY = (
    ConditionType.SCHEDULE_ACCEPTED,
    ConditionType.TEMPLATE_ACCEPTED,
    ConditionType.DEGRADED,
)
"""The conditions that decide whether a schedule is ready."""

NOT_PROVEN_MESSAGE = "jobTemplate: the API server is being asked whether it accepts the template"

DEFECTS = (
    ConditionReason.INTERNAL_ERROR,
    ConditionReason.NEXT_NOT_LATER,
    ConditionReason.ENDS_NOT_SEEN,
)
"""Reasons of Degraded that are no fault of the user's."""

_SAYS: Mapping[tuple[str, str], str] = {
    (ConditionType.READY, ConditionReason.SCHEDULED): "The spec is accepted.",
    (ConditionType.SCHEDULE_ACCEPTED, ConditionReason.ACCEPTED): "The schedule is accepted.",
    (ConditionType.TEMPLATE_ACCEPTED, ConditionReason.ACCEPTED): (
        "The API server accepts a Job of this template."
    ),
    (ConditionType.ACTIVE, ConditionReason.SCHEDULED): "Jobs are created when runs are due.",
    (ConditionType.ACTIVE, ConditionReason.SUSPENDED): "spec.suspend is true.",
    (ConditionType.ACTIVE, ConditionReason.ENDED): "The schedule has no due time any more.",
    (ConditionType.DEGRADED, ConditionReason.AS_EXPECTED): "Nothing keeps Jobs from being created.",
}


def renew(
    old: Condition | None, status: str, reason: str, message: str, *, now: Instant, generation: int
) -> Condition:
    """A condition as it stands now. The transition time moves only when the status does."""
    since = old.since if old is not None and old.status == status else now
    return Condition(status, reason, message, since, generation)


def sentence(kind: str, reason: str) -> str:
    """What a condition says that has nothing else to say: `kubectl describe` shows no empty
    message."""
    return _SAYS.get((kind, reason), "")


def readiness(conditions: Mapping[str, Condition]) -> tuple[str, str, str]:
    """Status, reason and message of Ready. Where it is False, the same is told as Stalled."""
    degraded = conditions.get(ConditionType.DEGRADED)
    if degraded is not None and degraded.status == "True":
        if degraded.reason == ConditionReason.INTERNAL_ERROR:
            return "Unknown", degraded.reason, degraded.message
        if degraded.reason == ConditionReason.NEXT_NOT_LATER:
            return "False", degraded.reason, degraded.message
    accepted = conditions.get(ConditionType.SCHEDULE_ACCEPTED)
    if accepted is None:
        return "Unknown", ConditionReason.PENDING, NOT_SEEN_MESSAGE
    if accepted.status == "False":
        return "False", accepted.reason, accepted.message
    template = conditions.get(ConditionType.TEMPLATE_ACCEPTED)
    if template is None:
        return "Unknown", ConditionReason.NOT_PROVEN, NOT_PROVEN_MESSAGE
    if template.status == "False":
        return "False", template.reason, f"jobTemplate: {template.message}"
    return "True", ConditionReason.SCHEDULED, ""
