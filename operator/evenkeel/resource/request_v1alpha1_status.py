"""The status of a RunRequest: what the CRD declares of it.

As in `v1alpha1_status` every level keeps fields it does not know, and texts such as states are no
enums. Only `definitions` uses these models; what is written and read stands in `request_status`.
"""

from pydantic import Field

from evenkeel.resource.record import CONDITION_COUNT
from evenkeel.resource.request_record import (
    DUES_SHOWN_COUNT,
    REQUEST_ACTIVE_COUNT,
    REQUEST_RECENT_COUNT,
)
from evenkeel.resource.v1alpha1_status import BY_TYPE, Anything, Condition, Known, RecentRun, Time


class RequestCounts(Known):
    """Runs by how they ended."""

    succeeded: int | None = None
    failed: int | None = None
    skipped: int | None = None
    cancelled: int | None = None
    lost: int | None = None


class Dues(Known):
    """The due times that are to run."""

    count: int | None = Field(default=None, description="How many they are.")
    first: list[Time] | None = Field(
        default=None,
        max_length=DUES_SHOWN_COUNT,
        description="The first of them, in the order of the request.",
    )


class ActiveRequestedRun(Known):
    """A run that has begun and has not ended."""

    due: Time
    attempt: int | None = None
    reason: str | None = Field(default=None, description="Why it has no Job now.")
    job: str | None = None
    job_uid: str | None = None
    retry_at: Time | None = None


class PlanTiming(Known):
    """The timing that made the due times."""

    hash: str | None = None
    fields: Anything | None = None


class PlanStatus(Known):
    """What the operator needs after a restart. For the operator alone."""

    count: int | None = Field(default=None, description="Due times in the range.")
    bits: str | None = Field(
        default=None, description="One bit for each of them, in base64: 1 for those that run."
    )
    mark: Time | None = Field(default=None, description="The due time that has begun last.")
    timing: PlanTiming | None = None


class RequestStatus(Known):
    """How far the request is, and what the operator needs after a restart."""

    observed_generation: int | None = Field(
        default=None, description="The spec this status speaks of."
    )
    state: str | None = Field(default=None, description="How the request stands, in one word.")
    schedule_uid: str | None = Field(
        default=None, description="The ScheduledJob that it was accepted for."
    )
    done: int | None = Field(default=None, description="Runs that have ended.")
    total: int | None = Field(default=None, description="Runs that are wanted.")
    counts: RequestCounts | None = Field(default=None, description="Runs by final state.")
    dues: Dues | None = Field(default=None, description="The due times that are to run.")
    recent: list[RecentRun] | None = Field(
        default=None,
        max_length=REQUEST_RECENT_COUNT,
        description="The runs that changed last.",
    )
    active: list[ActiveRequestedRun] | None = Field(
        default=None,
        max_length=REQUEST_ACTIVE_COUNT,
        description="The runs that have begun and have not ended.",
    )
    consecutive_failures: int | None = Field(default=None, description="Failed runs in a row.")
    started_at: Time | None = Field(default=None, description="When its first run began.")
    finished_at: Time | None = Field(default=None, description="When it ended.")
    plan: PlanStatus | None = Field(
        default=None, description="Which due times run. For the operator alone."
    )
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=CONDITION_COUNT,
        description="Ready, Stalled, Complete, Failed.",
        json_schema_extra=BY_TYPE,
    )
