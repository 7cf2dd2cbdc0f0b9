"""Converts a CronJob manifest into the ScheduledJob that it becomes.

`manifest` calls `from_cronjob`, so `evenkeel plan` and `load` show what a set of CronJobs would do
here. All fields of the CronJob are copied; fields that it does not set get the defaults of a
ScheduledJob, so daylight saving is not treated exactly as CronJob treats it (that would be
`dst: {gap: Skip, fold: Both}`). The result is not checked here: `read` does that.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from evenkeel.errors import BadField
from evenkeel.reasons import ConditionReason
from evenkeel.resource.names import API_VERSION, KIND
from evenkeel.when import format_duration

CRONJOB_KIND = "CronJob"
CRONJOB_VERSIONS = ("batch/v1", "batch/v1beta1")

SAME_FIELDS = (
    "timeZone",
    "startingDeadlineSeconds",
    "concurrencyPolicy",
    "suspend",
    "jobTemplate",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
)
"""The fields that CronJob and ScheduledJob have with the same meaning. CronJob has no other but
`schedule`."""

_EVERY = re.compile(r"\s*@every\s+(\S+)\s*", re.ASCII)
_GO_DURATION = re.compile(r"\+?(?:[0-9]{1,12}(?:\.[0-9]{0,9})?(?:h|ms|m|s))+", re.ASCII)
_GO_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?)(h|ms|m|s)", re.ASCII)
_UNIT_S = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("0.001")}


def is_cronjob(raw: Mapping[str, Any]) -> bool:
    """Whether this is a CronJob of a known version."""
    return raw.get("kind") == CRONJOB_KIND and raw.get("apiVersion") in CRONJOB_VERSIONS


def from_cronjob(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The ScheduledJob. BadField if the CronJob has a schedule that a ScheduledJob cannot have."""
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        raise BadField("spec", "must be an object")
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": raw.get("metadata"),
        "spec": {**_when(spec), **{name: spec[name] for name in SAME_FIELDS if name in spec}},
    }


def _when(spec: Mapping[str, Any]) -> dict[str, Any]:
    text = spec.get("schedule")
    if text is None:
        raise BadField("spec.schedule", "is required")
    if not isinstance(text, str) or not text.lstrip().startswith("@every"):
        return {"schedule": text}
    return {"interval": {"every": _every(text)}}


def _every(text: str) -> str:
    """`@every 1h30m` as interval.every. Fractions of a second are dropped, as CronJob does."""
    match = _EVERY.fullmatch(text)
    if match is None or _GO_DURATION.fullmatch(match[1]) is None:
        raise BadField(
            "spec.schedule",
            "@every needs a duration such as 1h30m",
            reason=ConditionReason.INVALID_SCHEDULE,
        )
    parts = _GO_PART.findall(match[1])
    seconds = sum((Decimal(number) * _UNIT_S[unit] for number, unit in parts), Decimal(0))
    return format_duration(max(1, int(seconds)))
