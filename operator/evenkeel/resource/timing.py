"""A timing as a status stores it: an older timing can be reckoned with after its spec is gone.

`status` reads and writes it. The fields have the spec's names, normalised, so that equal timings
have equal hashes however their specs were written. Pure.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from evenkeel import rfc3339
from evenkeel.model import At, Cron, DayMatch, Fold, Gap, Hourly, Interval, Rule, Timing

KINDS_OF_TIMING = ("schedule", "dayMatch", "hourly", "interval", "at", "startTime", "endTime")
"""Fields of which a timing has some."""


def timing_hash(timing: Timing) -> str:
    """Equal for timings that are due alike: `60m` and `1h` are one timing."""
    return hashlib.sha256(orjson.dumps(timing_fields(timing))).hexdigest()[:16]


def timing_fields(timing: Timing) -> dict[str, Any]:
    """The spec's names, normalised."""
    fields: dict[str, Any] = {}
    match timing.rule:
        case Cron(text=text, day_match=day_match):
            fields["schedule"] = text
            if day_match is not DayMatch.OR:
                fields["dayMatch"] = day_match.value
        case Hourly(minute=minute):
            fields["hourly"] = {"minute": minute}
        case Interval(every_s=every_s, offset_s=offset_s, anchor=anchor):
            interval: dict[str, Any] = {"every": f"{every_s}s"}
            if offset_s is not None:
                interval["offset"] = f"{offset_s}s"
            if anchor is not None:
                interval["anchor"] = rfc3339.show(anchor)
            fields["interval"] = interval
        case At(instant=instant):
            fields["at"] = rfc3339.show(instant)
    fields["timeZone"] = timing.zone
    fields["dst"] = {"gap": timing.gap.value, "fold": timing.fold.value}
    if timing.start is not None:
        fields["startTime"] = rfc3339.show(timing.start)
    if timing.end is not None:
        fields["endTime"] = rfc3339.show(timing.end)
    return fields


def timing_patch(timing: Timing) -> dict[str, Any]:
    """Hash and fields, for a merge patch, which keeps what it does not name: the fields of the
    timing that stood there before are null."""
    fields = dict.fromkeys(KINDS_OF_TIMING) | timing_fields(timing)
    if fields["interval"]:
        fields["interval"] = dict.fromkeys(("offset", "anchor")) | fields["interval"]
    return {"hash": timing_hash(timing), "fields": fields}


def timing_from_fields(raw: object) -> Timing | None:
    """The timing that `timing_fields` wrote; None when it was not written by it."""
    if not isinstance(raw, Mapping):
        return None
    try:
        return _timing(raw)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def seconds(text: object) -> int:
    """`300s`, as this module writes durations; ValueError for anything else."""
    if not isinstance(text, str) or not text.endswith("s") or not text[:-1].isdecimal():
        raise ValueError("not seconds")
    return int(text[:-1])


def _timing(fields: Mapping[str, Any]) -> Timing | None:
    rule: Rule
    if "schedule" in fields:
        rule = Cron(str(fields["schedule"]), DayMatch(fields.get("dayMatch", "Or")))
    elif "hourly" in fields:
        rule = Hourly(int(fields["hourly"]["minute"]))
    elif "interval" in fields:
        interval = fields["interval"]
        rule = Interval(
            seconds(interval["every"]),
            seconds(interval["offset"]) if "offset" in interval else None,
            rfc3339.read(interval.get("anchor")),
        )
    elif (instant := rfc3339.read(fields.get("at"))) is not None:
        rule = At(instant)
    else:
        return None
    dst = fields.get("dst") or {}
    return Timing(
        rule,
        zone=str(fields.get("timeZone", "UTC")),
        gap=Gap(dst.get("gap", "Shift")),
        fold=Fold(dst.get("fold", "First")),
        start=rfc3339.read(fields.get("startTime")),
        end=rfc3339.read(fields.get("endTime")),
    )
