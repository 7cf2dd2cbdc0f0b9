"""The status of a ScheduledJob: what the CRD declares of it.

Every level keeps fields it does not know, so that during a rolling upgrade an older operator's
CRD does not prune what a newer operator needs. Texts such as states are no enums for the same
reason. Only `crd` uses these models; what is written and read stands in `status`.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema
from pydantic.alias_generators import to_camel

from evenkeel.resource.record import (
    ACTIVE_COUNT,
    DURATIONS_COUNT,
    RECENT_COUNT,
    SPANS_COUNT,
    WAITING_COUNT,
)
from evenkeel.resource.v1alpha1 import PRESERVE


class Known(BaseModel):
    """A part of the status: what we know, beside what a newer operator may have written."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="allow", frozen=True, json_schema_extra=PRESERVE
    )


Time = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
BY_TYPE: dict[str, JsonValue] = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
"""Of conditions: two writers of different types do not overwrite each other."""

Anything = Annotated[dict[str, Any], WithJsonSchema({"type": "object", **PRESERVE})]


class JobReference(Known):
    """An ObjectReference to a Job, as in a CronJob's status."""

    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class RecentRun(Known):
    """A run, as short as the status can tell it."""

    due: Time
    started: Time | None = None
    finished: Time | None = None
    state: str | None = None
    reason: str | None = None
    attempt: int | None = None
    job: str | None = None
    exit_code: int | None = None
    exit_reason: str | None = None


class Counts(Known):
    """Runs by how they ended, since countsSince."""

    succeeded: int | None = None
    failed: int | None = None
    skipped: int | None = None
    missed: int | None = None
    cancelled: int | None = None
    lost: int | None = None


class TimingStatus(Known):
    """The timing that is in force, so that a restart knows whether an edit came meanwhile."""

    hash: str | None = None
    since: Time | None = None
    fields: Anything | None = None


class WaitingRun(Known):
    """A run that the mark has passed and that has no Job yet, or none any more."""

    due: Time
    attempt: int | None = None
    reason: str | None = None
    retry_at: Time | None = None


class ToldSpan(Known):
    """Due times that got one verdict as a whole."""

    first: Time
    last: Time
    count: int
    state: str
    reason: str


class Internal(Known):
    """What the operator's rules need to survive a restart. For the operator alone."""

    mark: Time | None = Field(
        default=None, description="Every due time up to here has a verdict or stands in waiting."
    )
    timing: TimingStatus | None = Field(default=None, description="The timing in force.")
    suspended_since: Time | None = Field(default=None, description="First sight of suspend: true.")
    resumed_at: Time | None = Field(
        default=None, description="First sight of suspend: false after it."
    )
    waiting: list[WaitingRun] | None = Field(
        default=None,
        max_length=WAITING_COUNT,
        description="Runs that are announced, queued, held or between two attempts.",
    )
    unnamed_active: int | None = Field(
        default=None,
        description="Of the active runs up to the mark, those that active has no room for.",
    )
    durations: list[int] | None = Field(
        default=None,
        max_length=DURATIONS_COUNT,
        description="Seconds of the last runs that succeeded.",
    )
    spans: list[ToldSpan] | None = Field(
        default=None,
        max_length=SPANS_COUNT,
        description="The last due times that got one verdict as a whole, for the ledger.",
    )
    template_hash: str | None = Field(
        default=None, description="The template TemplateAccepted speaks of."
    )
    trigger: str | None = Field(
        default=None, description="The last evenkeel.dev/trigger whose RunRequest exists."
    )


class Pause(Known):
    """Who or what paused the schedule."""

    since: Time | None = None
    by: str | None = None
    reason: str | None = None


class PlacementWindow(Known):
    """The window the placement was found in."""

    start: str | None = None
    end: str | None = None


class PlacementStatus(Known):
    """Where the operator put an interval without offset."""

    anchor: Time | None = None
    slot: str | None = None
    every: str | None = None
    window: PlacementWindow | None = None
    weight: int | None = None
    placed_at: Time | None = None
    reason: str | None = None
    load: float | None = None
    expected_seconds: int | None = Field(
        default=None, description="How long a run is expected to last, learned from earlier ones."
    )


class Condition(Known):
    """A condition, typed as everywhere in Kubernetes."""

    type: str = Field(max_length=316)
    status: str = Field(json_schema_extra={"enum": ["True", "False", "Unknown"]})
    observed_generation: int | None = Field(default=None, ge=0)
    last_transition_time: Time
    reason: str = Field(max_length=1024)
    message: str = Field(max_length=32768)


class Status(Known):
    """What the operator says about a ScheduledJob, and what the rules need after a restart."""

    observed_generation: int | None = Field(
        default=None, description="The spec this status speaks of."
    )
    state: str | None = Field(default=None, description="How the schedule stands, in one word.")
    schedule_text: str | None = Field(default=None, description="When it runs, in words.")
    images: str | None = Field(default=None, description="The images of the template's containers.")
    next_run_time: Time | None = Field(default=None, description="The next due time.")
    next_local: str | None = Field(
        default=None, description="The next due time in the schedule's time zone."
    )
    upcoming: list[Time] | None = Field(
        default=None, max_length=5, description="The next due times."
    )
    last_schedule_time: Time | None = Field(default=None, description="The last due time launched.")
    last_successful_time: Time | None = Field(
        default=None, description="When a run last succeeded."
    )
    last_failure_time: Time | None = Field(default=None, description="When a run last failed.")
    last_result: str | None = Field(default=None, description="How the last run ended.")
    active: list[JobReference] | None = Field(
        default=None,
        max_length=ACTIVE_COUNT,
        description="Jobs that are running; activeCount counts them all.",
    )
    active_count: int | None = Field(default=None, description="How many runs are active.")
    recent: list[RecentRun] | None = Field(
        default=None, max_length=RECENT_COUNT, description="The last runs."
    )
    consecutive_failures: int | None = Field(default=None, description="Failed runs in a row.")
    counts: Counts | None = Field(
        default=None, description="Runs by final state, since countsSince."
    )
    counts_since: Time | None = Field(default=None, description="When counting began.")
    pause: Pause | None = Field(
        default=None, description="Set while the operator or a person paused it."
    )
    placement: PlacementStatus | None = Field(
        default=None, description="Where the operator placed it."
    )
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        description="Ready, Stalled, ScheduleAccepted, TemplateAccepted, Active, Degraded.",
        json_schema_extra=BY_TYPE,
    )
    internal: Internal | None = Field(
        default=None, description="What the operator needs after a restart."
    )
