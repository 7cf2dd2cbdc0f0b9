"""What distinguishes the two CustomResourceDefinitions: names, print columns, schemas, defaults.

`crd` makes a manifest of each.
"""

from collections.abc import Callable
from dataclasses import dataclass

from evenkeel.reasons import ConditionReason, ConditionType, RequestCondition, RequestReason
from evenkeel.resource.names import KIND, NOTE_REQUESTED_BY, PLURAL, REQUEST_KIND, REQUEST_PLURAL
from evenkeel.resource.record import NOT_SEEN_MESSAGE, NOT_SEEN_STATE
from evenkeel.resource.request_record import NO_REQUEST_STATUS
from evenkeel.resource.request_rules import RULES as REQUEST_RULES
from evenkeel.resource.request_rules import fixed_fields
from evenkeel.resource.request_v1alpha1 import RequestSpec
from evenkeel.resource.request_v1alpha1_status import RequestStatus
from evenkeel.resource.rules import RULES
from evenkeel.resource.structural import Json, structural
from evenkeel.resource.template_schema import job_template_schema
from evenkeel.resource.v1alpha1 import Spec
from evenkeel.resource.v1alpha1_status import Status

Column = tuple[str, str, str, str]
"""Name, type, path, description."""

AGE: Column = ("Age", "date", ".metadata.creationTimestamp", "")


@dataclass(frozen=True, slots=True)
class Definition:
    """One kind of object."""

    kind: str
    plural: str
    short_name: str
    categories: tuple[str, ...]
    description: str
    columns: tuple[Column, ...]
    wide_columns: tuple[Column, ...]
    spec: Callable[[], Json]
    status: Callable[[], Json]
    not_seen_yet: Json


def _not_seen_yet(state: str, condition: str, reason: str) -> Json:
    """The status of an object that the operator has not looked at yet. Without it whatever waits
    for a new object (`helm install --wait`, `kubectl wait`) would find no condition that is not
    met, and go on."""
    return {
        "state": state,
        "conditions": [
            {
                "type": condition,
                "status": "Unknown",
                "reason": reason,
                "message": NOT_SEEN_MESSAGE,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            }
        ],
    }


NOT_SEEN_YET = _not_seen_yet(
    NOT_SEEN_STATE, ConditionType.READY.value, ConditionReason.PENDING.value
)
REQUEST_NOT_SEEN_YET = _not_seen_yet(
    NO_REQUEST_STATUS.state.value, RequestCondition.READY.value, RequestReason.PENDING.value
)


# --- ScheduledJob -------------------------------------------------------------------------------


def _schedule_spec() -> Json:
    out = structural(Spec.model_json_schema(by_alias=True))
    described = out["properties"]["jobTemplate"]["description"]
    out["properties"]["jobTemplate"] = {"description": described, **job_template_schema()}
    out["x-kubernetes-validations"] = [rule.published() for rule in RULES]
    return out


SCHEDULED_JOB = Definition(
    kind=KIND,
    plural=PLURAL,
    short_name="sj",
    categories=("evenkeel", "all"),
    description="Creates Jobs on a schedule and keeps the load even.",
    columns=(
        ("Schedule", "string", ".status.scheduleText", "When it runs"),
        ("State", "string", ".status.state", "How the schedule stands"),
        # not a date: kubectl prints dates in the future as <invalid>
        ("Next", "string", ".status.nextRunTime", "The next due time"),
        ("Last", "date", ".status.lastScheduleTime", "Time since the last due time launched"),
        ("Result", "string", ".status.lastResult", "How the last run ended"),
        ("Active", "integer", ".status.activeCount", "Runs that are active"),
        AGE,
    ),
    wide_columns=(
        ("Zone", "string", ".spec.timeZone", "Time zone"),
        ("Next Local", "string", ".status.nextLocal", "The next due time in the time zone"),
        ("Slot", "string", ".status.placement.slot", "Where the operator placed it"),
        ("Priority", "integer", ".spec.priority", "Of runs due together, higher starts first"),
        ("Images", "string", ".status.images", "The images of the template's containers"),
    ),
    spec=_schedule_spec,
    status=lambda: structural(Status.model_json_schema(by_alias=True)),
    not_seen_yet=NOT_SEEN_YET,
)


# --- RunRequest ---------------------------------------------------------------------------------


def _request_spec() -> Json:
    out = structural(RequestSpec.model_json_schema(by_alias=True))
    out["x-kubernetes-validations"] = [
        *(rule.published() for rule in REQUEST_RULES),
        *fixed_fields(),
    ]
    return out


RUN_REQUEST = Definition(
    kind=REQUEST_KIND,
    plural=REQUEST_PLURAL,
    short_name="rr",
    # Not `all`: `kubectl delete all --all` is for what runs, and a request is a record as well.
    categories=("evenkeel",),
    description="Asks for runs of a ScheduledJob outside its timing: one run, or a backfill.",
    columns=(
        ("Schedule", "string", ".spec.schedule", "The ScheduledJob"),
        ("State", "string", ".status.state", "How the request stands"),
        ("Done", "integer", ".status.done", "Runs that have ended"),
        ("Of", "integer", ".status.total", "Runs that are wanted"),
        AGE,
    ),
    wide_columns=(
        ("Include", "string", ".spec.include", "Which due times of the range run"),
        ("Failed", "integer", ".status.counts.failed", "Runs that failed"),
        (
            "Requested By",
            "string",
            f".metadata.annotations.{NOTE_REQUESTED_BY.replace('.', chr(92) + '.')}",
            "Who says that they asked for it",
        ),
    ),
    spec=_request_spec,
    status=lambda: structural(RequestStatus.model_json_schema(by_alias=True)),
    not_seen_yet=REQUEST_NOT_SEEN_YET,
)

DEFINITIONS = (SCHEDULED_JOB, RUN_REQUEST)
