"""The spec of a ScheduledJob: all fields, with bounds, defaults and descriptions.

`crd` makes the CRD from these models, and `read` checks objects with them. They check single fields
only: `rules` checks fields that depend on one another, and `evenkeel.when` checks timings. `read`
makes a smaller `model.Schedule` of a spec and does not keep the spec.

A field that a rule forbids for some kinds of schedule (dst, dayMatch) has no default in the schema:
the API server would fill the default in, and the rule would refuse objects whose owner did not set
the field.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema, model_validator
from pydantic.alias_generators import to_camel

from evenkeel.model import Concurrency, DayMatch, Fold, Gap, MissedRuns
from evenkeel.resource.cron_rules import cron_rules
from evenkeel.resource.parameter_fields import (
    CHOICES_MAX,
    PARAMETERS_MAX,
    NamesDiffer,
    ParameterName,
    ParameterValue,
)
from evenkeel.resource.text import (
    CLOCK_PATTERN,
    DURATION_PATTERN,
    InstantText,
    PatternText,
    RuledText,
    cel,
    refusal,
)
from evenkeel.resource.zone_rules import zone_rules
from evenkeel.when.cron_words import LONGEST_TEXT as LONGEST_CRON_TEXT

KINDS = ("schedule", "hourly", "interval", "at")
"""A spec has exactly one of these."""

SECONDS_MAX = 2_147_483_647
"""int32, as for the seconds of the Job API: 68 years."""

HISTORY_MAX = 10_000
"""Most Jobs kept for a schedule. Each is an object in etcd and takes memory in the operator."""

DURATION_SENTENCE = "write numbers with units, such as 25m, 1h30m, 3d or 2w"
CLOCK_SENTENCE = "write a time of day from 00:00 to 23:59, such as 22:00"
PRESERVE: dict[str, JsonValue] = {"x-kubernetes-preserve-unknown-fields": True}
VALUE_IN_ENUM = "value must be one of the values in enum: a run by schedule gets it"
_FILLED_IN: dict[str, JsonValue] = {
    "default": {}
}  # the API server then fills in the defaults inside


class Part(BaseModel):
    """A part of the spec. Unknown fields are ignored: a newer CRD may have more fields."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        """The API server removes nulls before it fills in defaults; a file still has them."""
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data


Duration = Annotated[str, PatternText(32, DURATION_PATTERN, DURATION_SENTENCE)]
ClockTime = Annotated[str, PatternText(5, CLOCK_PATTERN, CLOCK_SENTENCE)]
Moment = Annotated[str, InstantText()]
CronText = Annotated[str, RuledText(LONGEST_CRON_TEXT, cron_rules)]
ZoneName = Annotated[str, RuledText(64, zone_rules)]


# --- spec -------------------------------------------------------------------------------------


class HourlySpec(Part):
    """Once an hour."""

    minute: int = Field(
        ge=0, le=59, description="Minute of the hour, by the clock of timeZone, at which to run."
    )


class IntervalSpec(Part):
    """Runs at equal distances."""

    every: Duration = Field(
        description="Time between runs, 1s to 366d. Elapsed time; whole days or weeks with a "
        "timeZone count local calendar days."
    )
    offset: Duration | None = Field(
        default=None,
        description="Runs are at anchor + offset + k * every for k = 1, 2, ... Without it the "
        "operator places the schedule where the load is least.",
    )
    anchor: Moment | None = Field(
        default=None, description="Where offset counts from; the Unix epoch unless given."
    )


class DstSpec(Part):
    """What becomes of fixed times when the clock changes."""

    gap: Annotated[Gap, Field(strict=False)] = Field(
        default=Gap.SHIFT,
        description="Fixed times that the clock jumps over: run at the first valid instant after "
        "the gap, or not at all.",
    )
    fold: Annotated[Fold, Field(strict=False)] = Field(
        default=Fold.FIRST,
        description="Fixed times that the clock shows twice: run the first time, or both.",
    )


class WindowSpec(Part):
    """A time of day."""

    start: ClockTime = Field(description="First time of day, in timeZone, such as 22:00.")
    end: ClockTime = Field(description="End of the window; before start: on the next day.")


class PlacementSpec(Part):
    """What this schedule asks of its placement."""

    weight: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Cost of one run, compared with others. Without it: 1, or what the CPU "
        "requests of the template say (setting placement.weigh).",
    )
    window: WindowSpec | None = Field(
        default=None,
        description="Time of day to be placed in; for intervals of whole days without offset.",
    )
    pinned: bool = Field(default=False, description="Rebalancing leaves this schedule where it is.")


class RetrySpec(Part):
    """New attempts of a failed run."""

    limit: int = Field(default=0, ge=0, le=20, description="Attempts after the first.")
    delay_seconds: int = Field(
        default=10, ge=0, le=604_800, description="Pause before the second attempt."
    )
    factor: int = Field(
        default=2, ge=1, le=10, description="Each further pause is this times longer."
    )
    max_delay_seconds: int = Field(default=3600, ge=0, le=604_800, description="Longest pause.")


class ParameterSpec(Part):
    """An environment variable of each container."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(
                    "!has(self.enum) || self.enum.size() == 0 || self.value in self.enum",
                    VALUE_IN_ENUM,
                )
            ]
        }
    )

    name: ParameterName = Field(description="Name of the environment variable.")
    value: ParameterValue = Field(
        description="What it holds, literally: $(NAME) in it is not replaced."
    )
    enum: Annotated[list[ParameterValue], Field(max_length=CHOICES_MAX)] | None = Field(
        default=None,
        description="The values that a RunRequest may give instead. Without it: any value.",
    )

    @model_validator(mode="after")
    def _value_is_in_enum(self) -> "ParameterSpec":
        if self.enum and self.value not in self.enum:
            raise refusal(VALUE_IN_ENUM)
        return self


Parameters = Annotated[list[ParameterSpec], Field(max_length=PARAMETERS_MAX), NamesDiffer()]


class Spec(Part):
    """What to run, and when."""

    schedule: CronText | None = Field(
        default=None,
        description="Five cron fields: minute, hour, day of month, month, day of week; or @hourly "
        "@daily @midnight @weekly @monthly @yearly @annually. Beyond plain cron: L (last day), "
        "5#2 and 5L (second, last Friday), H, H(0-29), H/15 (a stable hash of namespace/name).",
    )
    hourly: HourlySpec | None = Field(
        default=None, description="Once an hour at a minute of the hour."
    )
    interval: IntervalSpec | None = Field(default=None, description="A fixed rhythm, on any grid.")
    at: Moment | None = Field(default=None, description="One run, at this RFC 3339 time.")
    time_zone: ZoneName = Field(
        default="UTC", description="IANA time zone of schedule, hourly and days."
    )
    dst: DstSpec | None = Field(
        default=None,
        description="Daylight saving time. {gap: Shift, fold: First} unless given; "
        "{gap: Skip, fold: Both} is exactly what CronJob does.",
    )
    day_match: Annotated[DayMatch, Field(strict=False)] | None = Field(
        default=None,
        description="When day of month and day of week are both restricted: Or (as cron, unless "
        "given) or And.",
    )
    start_time: Moment | None = Field(default=None, description="No runs before this time.")
    end_time: Moment | None = Field(default=None, description="No runs at or after this time.")
    suspend: bool = Field(
        default=False, description="No runs; resuming never runs what passed meanwhile."
    )
    starting_deadline_seconds: int | None = Field(
        default=None, ge=0, le=SECONDS_MAX, description="Runs later than this are missed."
    )
    missed_runs: Annotated[MissedRuns, Field(strict=False)] = Field(
        default=MissedRuns.LATEST,
        description="What to do with due times that nobody launched in time: the latest only, "
        "none, or all in order (the newest catchUpLimit of them).",
    )
    catch_up_limit: int = Field(
        default=100, ge=1, le=1000, description="Most runs that missedRuns: All catches up at once."
    )
    concurrency_policy: Annotated[Concurrency, Field(strict=False)] = Field(
        default=Concurrency.ALLOW,
        description="When a run is due while another is there: Allow both, Forbid (skip the new "
        "one), Replace (cancel the old one), Queue (wait for it).",
    )
    max_queued: int = Field(
        default=20, ge=1, le=100, description="Most runs that wait under concurrencyPolicy: Queue."
    )
    priority: int = Field(
        default=0, ge=-1000, le=1000, description="Of runs due together, higher starts first."
    )
    placement: PlacementSpec = Field(
        default_factory=PlacementSpec,
        description="Even load: weight, window, pinned.",
        json_schema_extra=_FILLED_IN,
    )
    retry: RetrySpec = Field(
        default_factory=RetrySpec,
        description="New attempts of a failed run.",
        json_schema_extra=_FILLED_IN,
    )
    pause_after_failures: int | None = Field(
        default=None, ge=1, le=1000, description="So many failed runs in a row pause the schedule."
    )
    pending_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=SECONDS_MAX,
        description="The run fails when no Pod of its Job has started by then.",
    )
    successful_jobs_history_limit: int = Field(
        default=3, ge=0, le=HISTORY_MAX, description="Succeeded Jobs to keep."
    )
    failed_jobs_history_limit: int = Field(
        default=1, ge=0, le=HISTORY_MAX, description="Failed Jobs to keep."
    )
    parameters: Parameters | None = Field(
        default=None,
        description="Environment variables that each container of a run gets, init containers "
        "included, before its own env. A RunRequest may give other values for them.",
    )
    # `crd` puts the Job's schema here. The tree is not validated in Python: the API server has done
    # it, and it would take longer than everything else that is done with a ScheduledJob.
    job_template: Annotated[dict[str, Any], WithJsonSchema({"type": "object", **PRESERVE})] = Field(
        description="The Job to create, as in a CronJob."
    )
