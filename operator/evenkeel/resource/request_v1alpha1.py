"""The spec of a RunRequest: all fields, with bounds, defaults and descriptions.

`crd` makes the CRD from these models, and `request_read` checks objects with them. They check
single fields only: `request_rules` checks fields that depend on one another. What needs the
schedule (which parameters it has, which due times are in a range) the scheduler checks.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from evenkeel.model import Include, Meeting, Order
from evenkeel.resource.parameter_fields import (
    PARAMETERS_MAX,
    NamesDiffer,
    ParameterName,
    ParameterValue,
)
from evenkeel.resource.request_record import MOST_DUES, REQUEST_ACTIVE_COUNT
from evenkeel.resource.text import Text, cel, cel_text, refusal
from evenkeel.resource.v1alpha1 import SECONDS_MAX, Moment, Part

NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
NAME_SENTENCE = (
    "write the name of a ScheduledJob: small letters, digits, - and ., with a letter or digit at"
    " each end"
)
SAME_NAMESPACE = (
    "names a ScheduledJob of the same namespace: write its name alone, and create the request in"
    " its namespace"
)


@dataclass(frozen=True, slots=True)
class ScheduleName(Text):
    """The name of a ScheduledJob, without a namespace."""

    longest: int = 253

    def check(self, value: str) -> str:
        if "/" in value:
            raise refusal(SAME_NAMESPACE)
        if re.fullmatch(NAME_PATTERN, value) is None:
            raise refusal(NAME_SENTENCE)
        return value

    def published(self) -> dict[str, Any]:
        formed = f"self.contains('/') || self.matches({cel_text(NAME_PATTERN)})"
        return {
            "x-kubernetes-validations": [
                cel("!self.contains('/')", SAME_NAMESPACE),
                cel(formed, NAME_SENTENCE),
            ]
        }


class RangeSpec(Part):
    """A part of the past."""

    first: Moment = Field(alias="from", description="The first due time that may run.")
    to: Moment = Field(
        description="Due times from here on do not run. It must have passed when the request is "
        "accepted."
    )


class GivenParameter(Part):
    """Another value for a parameter of the schedule."""

    name: ParameterName = Field(description="Name of a parameter of the schedule.")
    value: ParameterValue = Field(description="The value that the requested runs get.")


GivenParameters = Annotated[list[GivenParameter], Field(max_length=PARAMETERS_MAX), NamesDiffer()]


class RequestSpec(Part):
    """Which runs are wanted. Only suspend and maxActive can be changed."""

    schedule: Annotated[str, ScheduleName()] = Field(
        description="Name of the ScheduledJob to run, in the same namespace."
    )
    at: Moment | None = Field(
        default=None,
        description="One run with this due time, as an RFC 3339 time. In the future: the run waits "
        "for it. Without at and range: one run, due at the creation of the request.",
    )
    range: RangeSpec | None = Field(
        default=None,
        description="A backfill: the schedule's due times from from until before to, by its timing "
        "when the request is accepted.",
    )
    include: Annotated[Include, Field(strict=False)] = Field(
        default=Include.NOT_SUCCEEDED,
        description="Which due times of range run: NotSucceeded (those without a run that "
        "succeeded), NotRun (those without a run that had a Job), or All. Never one whose run is "
        "active.",
    )
    order: Annotated[Order, Field(strict=False)] = Field(
        default=Order.OLDEST_FIRST, description="In which order the due times of range run."
    )
    max_active: int = Field(
        default=1,
        ge=1,
        le=REQUEST_ACTIVE_COUNT,
        description="Of range: most runs at once. It can be changed.",
    )
    overlap: Annotated[Meeting, Field(strict=False)] = Field(
        default=Meeting.WAIT,
        description="When another run of the schedule is active: Wait until concurrencyPolicy "
        "leaves room, Allow both, or do what concurrencyPolicy says of a due time (Policy).",
    )
    stop_after_failures: int = Field(
        default=3,
        ge=0,
        le=MOST_DUES,
        description="Of range: so many failed runs in a row end the request. 0: never.",
    )
    suspend: bool = Field(
        default=False, description="No further run begins. It can be changed at any time."
    )
    parameters: GivenParameters | None = Field(
        default=None, description="Other values for parameters of the schedule."
    )
    force: bool = Field(
        default=False, description="Run although the schedule is suspended or paused."
    )
    dry_run: bool = Field(
        default=False, description="Nothing runs; the status says what would run."
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=SECONDS_MAX,
        description="The request is deleted so long after its end. Without it the request stays: "
        "what Git holds must not be deleted, or it would be applied again.",
    )
