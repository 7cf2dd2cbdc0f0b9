"""ScheduledJobs that are right and wrong, for tests of the reader and of a real API server.

One table for both: whatever the schema and CEL refuse, `read` must refuse as well, with the same
sentence. Each row is named by a sentence.
"""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

POD: Json = {
    "restartPolicy": "Never",
    "containers": [{"name": "main", "image": "busybox:1", "command": ["true"]}],
}
TEMPLATE: Json = {"spec": {"template": {"spec": POD}}}
DAILY: Json = {"interval": {"every": "1d"}}
NIGHT: Json = {"start": "22:00", "end": "06:00"}


def spec(**fields: Any) -> Json:
    """A spec with the usual Job template."""
    return {"jobTemplate": TEMPLATE, **fields}


def scheduled_job(spec: Any, *, name: str = "nightly", ns: str = "shop") -> Json:
    """A ScheduledJob as the API server hands it out."""
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "metadata": {
            "name": name,
            "namespace": ns,
            "uid": "0f8c5d5e-58a2-4f55-a4a1-0d9a4a5b8a11",
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": spec,
    }


@dataclass(frozen=True)
class Bad:
    """A spec that is refused: at `field`, with `sentence` in the refusal."""

    why: str
    spec: Json
    field: str
    sentence: str
    reason: str = "Invalid"


GOOD: dict[str, Json] = {
    "a cron schedule": spec(schedule="*/5 * * * *"),
    "a cron schedule with tabs and a line feed around it": spec(schedule=" 0\t3 * * 1-5 \n"),
    "an alias": spec(schedule="@daily"),
    "hashed fields": spec(schedule="H(0-29) H/6 * * *"),
    "days joined by And": spec(schedule="0 0 13 * 5", dayMatch="And"),
    "hourly": spec(hourly={"minute": 17}),
    "an interval that the operator places": spec(interval={"every": "25m"}),
    "an interval at an offset": spec(interval={"every": "100m", "offset": "0s"}),
    "an interval from an anchor": spec(
        interval={"every": "3d", "offset": "6h", "anchor": "2026-01-01T00:00:00+01:00"}
    ),
    "a daily interval at night": spec(**DAILY, placement={"window": NIGHT}),
    "a day written as hours and minutes, at night": spec(
        interval={"every": "23h60m"}, placement={"window": NIGHT}
    ),
    "a pinned interval with a weight": spec(
        interval={"every": "7m"}, placement={"weight": 40, "pinned": True}
    ),
    "one run": spec(at="2030-01-01T00:00:00Z"),
    "one run at a second written with zero fractions": spec(at="2030-01-01T00:00:00.000Z"),
    "a zone and both daylight saving policies": spec(
        schedule="30 2 * * *", timeZone="Europe/Berlin", dst={"gap": "Skip", "fold": "Both"}
    ),
    "half of a daylight saving policy": spec(schedule="30 2 * * *", dst={"gap": "Skip"}),
    "a start and an end": spec(
        schedule="@hourly", startTime="2026-01-01T00:00:00Z", endTime="2026-01-01T02:00:00+01:00"
    ),
    "all that a CronJob has": spec(
        schedule="0 * * * *",
        timeZone="Etc/UTC",
        startingDeadlineSeconds=0,
        concurrencyPolicy="Replace",
        suspend=True,
        successfulJobsHistoryLimit=0,
        failedJobsHistoryLimit=7,
    ),
    "everything else": spec(
        schedule="0 * * * *",
        missedRuns="All",
        catchUpLimit=5,
        concurrencyPolicy="Queue",
        maxQueued=3,
        priority=-1000,
        retry={"limit": 3, "delaySeconds": 0, "factor": 1, "maxDelaySeconds": 60},
        pauseAfterFailures=5,
        pendingDeadlineSeconds=600,
    ),
    "parameters": spec(
        schedule="0 * * * *",
        parameters=[
            {"name": "DAY", "value": "$(date)"},
            {"name": "_size2", "value": "10", "enum": ["10", "100", ""]},
            {"name": "EMPTY", "value": "", "enum": []},
        ],
    ),
    "explicit nulls": spec(
        schedule="0 * * * *",
        hourly=None,
        interval=None,
        at=None,
        timeZone=None,
        dst=None,
        suspend=None,
        priority=None,
        placement={"weight": None, "window": None},
        retry=None,
        startingDeadlineSeconds=None,
        parameters=None,
    ),
    "a Job template with quantities of every kind, and nulls": spec(
        schedule="0 * * * *",
        jobTemplate={
            "metadata": {"labels": {"app": "x"}, "name": "ignored", "creationTimestamp": None},
            "spec": {
                "manualSelector": False,
                "selector": None,
                "ttlSecondsAfterFinished": None,
                "template": {
                    "metadata": {"creationTimestamp": None, "annotations": None},
                    "spec": {
                        **POD,
                        "nodeSelector": None,
                        "volumes": [
                            {"name": "v", "emptyDir": {"sizeLimit": 1}},
                            {"name": "w", "emptyDir": {"sizeLimit": None}},
                        ],
                        "containers": [
                            {
                                "name": "main",
                                "image": "busybox:1",
                                "resources": {"requests": {"cpu": 0.5, "memory": "64Mi"}},
                                "livenessProbe": {"httpGet": {"port": "http"}},
                                "readinessProbe": {"httpGet": {"port": 8080}},
                            }
                        ],
                    },
                },
            },
        },
    ),
}

ONE_OF = "exactly one of schedule, hourly, interval, at must be set"

_FIVE = "five fields are expected (minute, hour, day of month, month, day of week)"
_DURATION = "write numbers with units, such as 25m, 1h30m, 3d or 2w"
_ZONE = "write an IANA name such as Europe/Berlin, or UTC"
_WHOLE = "times are whole seconds"

REFUSED_BY_BOTH: tuple[Bad, ...] = (
    Bad("none of the four", spec(), "spec", ONE_OF),
    Bad("two of the four", spec(schedule="@daily", hourly={"minute": 1}), "spec", ONE_OF),
    Bad(
        "dayMatch with interval",
        spec(interval={"every": "1h"}, dayMatch="And"),
        "spec.dayMatch",
        "dayMatch works with schedule only, not with interval",
    ),
    Bad(
        "dayMatch with hourly, though it is the default",
        spec(hourly={"minute": 1}, dayMatch="Or"),
        "spec.dayMatch",
        "dayMatch works with schedule only, not with hourly",
    ),
    Bad(
        "dst with at",
        spec(at="2030-01-01T00:00:00Z", dst={}),
        "spec.dst",
        "dst works with schedule and interval only, not with at",
    ),
    Bad(
        "dst with hourly, which goes by real minutes",
        spec(hourly={"minute": 1}, dst={"gap": "Skip"}),
        "spec.dst",
        "dst works with schedule and interval only, not with hourly",
    ),
    Bad(
        "a zone with at, which names its own",
        spec(at="2030-01-01T00:00:00Z", timeZone="Europe/Berlin"),
        "spec.timeZone",
        "timeZone works with schedule, hourly and interval only, not with at",
    ),
    Bad(
        "a window with a cron schedule",
        spec(schedule="@daily", placement={"window": NIGHT}),
        "spec.placement.window",
        "placement.window works with interval only, not with schedule",
    ),
    Bad(
        "a window with an offset",
        spec(interval={"every": "1d", "offset": "0s"}, placement={"window": NIGHT}),
        "spec.placement.window",
        "placement.window works only without interval.offset",
    ),
    Bad(
        "a window for an interval that is no whole day",
        spec(interval={"every": "1d1h"}, placement={"window": NIGHT}),
        "spec.placement.window",
        "placement.window works with whole days only",
    ),
    Bad(
        "daylight saving for an interval that is no whole day",
        spec(interval={"every": "25m"}, dst={"gap": "Skip"}),
        "spec.dst",
        "dst works with whole days only",
    ),
    Bad(
        "a window for an interval too long to reckon with",
        spec(interval={"every": "86400000000s"}, placement={"window": NIGHT}),
        "spec.placement.window",
        "placement.window works with whole days only",
    ),
    Bad(
        "a window without width",
        spec(**DAILY, placement={"window": {"start": "22:00", "end": "22:00"}}),
        "spec.placement.window",
        "start and end must differ: the window has no width",
    ),
    Bad(
        "a window that ends at 24:00",
        spec(**DAILY, placement={"window": {"start": "22:00", "end": "24:00"}}),
        "spec.placement.window.end",
        "write a time of day from 00:00 to 23:59",
    ),
    Bad(
        "pinned with a cron schedule",
        spec(schedule="@daily", placement={"pinned": True}),
        "spec.placement.pinned",
        "placement.pinned works with interval only, not with schedule",
    ),
    Bad(
        "pinned with an offset",
        spec(interval={"every": "1d", "offset": "1h"}, placement={"pinned": True}),
        "spec.placement.pinned",
        "placement.pinned works only without interval.offset",
    ),
    Bad(
        "an anchor without offset",
        spec(interval={"every": "1d", "anchor": "2026-01-01T00:00:00Z"}),
        "spec.interval.anchor",
        "anchor needs offset",
    ),
    Bad(
        "a start at the end, in another zone",
        spec(
            schedule="@daily", startTime="2026-01-01T01:00:00+01:00", endTime="2026-01-01T00:00:00Z"
        ),
        "spec.startTime",
        "startTime must be earlier than endTime",
    ),
    *(
        Bad(why, spec(at=text), "spec.at", "write an RFC 3339 time with a zone")
        for why, text in (
            ("a date without a time", "2030-01-01"),
            ("a time without a zone", "2030-01-01T00:00:00"),
            ("a day that no month has", "2030-02-31T00:00:00Z"),
            ("an empty time", ""),
        )
    ),
    Bad("a fraction of a second", spec(at="2030-01-01T00:00:00.5Z"), "spec.at", _WHOLE),
    Bad("a billionth of a second", spec(at="2030-01-01T00:00:00.000000001Z"), "spec.at", _WHOLE),
    *(
        Bad(why, spec(schedule=text), "spec.schedule", sentence, "InvalidSchedule")
        for why, text, sentence in (
            ("six cron fields", "0 0 * * * *", f"{_FIVE}, 6 found; seconds are not supported"),
            ("four cron fields", "0 * * *", f"{_FIVE}, 4 found"),
            ("a blank schedule", "  ", f"is empty; {_FIVE}"),
            ("an empty schedule", "", f"is empty; {_FIVE}"),
            ("@every", "@every 5m", "@every is not supported; use interval.every"),
            ("an alias nobody knows", "@never", "'@never' is not known"),
            ("an alias with more", "@daily 5", "'@daily' stands alone: remove what follows it"),
            ("a zone in the schedule", "TZ=Asia/Tokyo 0 * * *", "use the field timeZone"),
            ("digits of another script", "\u0663 * * * *", "write plain ASCII characters only"),
            ("minute 75", "75 * * * *", "minute '75' is out of range; 0 to 59 are possible"),
            ("a reversed range", "0 22-2 * * *", "hour '22-2' runs backwards; write two ranges"),
            ("a range of H that is too wide", "0 0 H(1-31) * *", "H takes 1 to 28 here"),
        )
    ),
    Bad(
        "an interval without a unit",
        spec(interval={"every": "90"}),
        "spec.interval.every",
        _DURATION,
    ),
    Bad(
        "a fraction of an hour", spec(interval={"every": "1.5h"}), "spec.interval.every", _DURATION
    ),
    Bad("a negative interval", spec(interval={"every": "-5m"}), "spec.interval.every", _DURATION),
    Bad(
        "an interval with a line feed behind it",
        spec(interval={"every": "5m\n"}),
        "spec.interval.every",
        _DURATION,
    ),
    Bad(
        "an offset in words",
        spec(interval={"every": "1h", "offset": "five minutes"}),
        "spec.interval.offset",
        _DURATION,
    ),
    Bad(
        "a zone with a blank",
        spec(schedule="@daily", timeZone="Europe/ Berlin"),
        "spec.timeZone",
        _ZONE,
        "UnknownTimeZone",
    ),
    Bad(
        "a zone that climbs out of its directory",
        spec(schedule="@daily", timeZone="../../etc/passwd"),
        "spec.timeZone",
        _ZONE,
        "UnknownTimeZone",
    ),
    *(
        Bad(why, spec(schedule="@daily", timeZone=zone), "spec.timeZone", _ZONE, "UnknownTimeZone")
        for why, zone in (
            ("a zone that does not exist", "Europe/Atlantis"),
            ("an empty zone", ""),
            ("an offset for a zone", "+02:00"),
            ("the zone of the machine", "Local"),
        )
    ),
    Bad(
        "an unknown zone of an interval that waits to be placed",
        spec(interval={"every": "1h"}, timeZone="Europe/Atlantis"),
        "spec.timeZone",
        _ZONE,
        "UnknownTimeZone",
    ),
    Bad(
        "maxQueued without Queue",
        spec(schedule="@daily", maxQueued=5, concurrencyPolicy="Forbid"),
        "spec.maxQueued",
        "maxQueued works with concurrencyPolicy: Queue only",
    ),
    Bad(
        "catchUpLimit without All",
        spec(schedule="@daily", catchUpLimit=5),
        "spec.catchUpLimit",
        "catchUpLimit works with missedRuns: All only",
    ),
    *(
        Bad(
            f"a parameter named {name!r}",
            spec(schedule="@daily", parameters=[{"name": name, "value": "x"}]),
            "spec.parameters[0].name",
            "write the name of an environment variable: letters, digits and _, no digit first",
        )
        for name in ("", "2DAY", "A-B", "DAY ", "DAY\n")
    ),
    Bad(
        "a parameter twice",
        spec(
            schedule="@daily",
            parameters=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        ),
        "spec.parameters",
        "each name may stand once: two parameters have the same",
    ),
    Bad(
        "a value beside its enum",
        spec(
            schedule="@daily",
            parameters=[
                {"name": "A", "value": "1"},
                {"name": "B", "value": "3", "enum": ["1", "2"]},
            ],
        ),
        "spec.parameters[1]",
        "value must be one of the values in enum: a run by schedule gets it",
    ),
    Bad(
        "a selector in the Job",
        spec(schedule="@daily", jobTemplate={"spec": {**TEMPLATE["spec"], "selector": {}}}),
        "spec.jobTemplate.spec.selector",
        "selector is chosen by Kubernetes, as in a CronJob: remove it",
    ),
    Bad(
        "a manual selector in the Job",
        spec(schedule="@daily", jobTemplate={"spec": {**TEMPLATE["spec"], "manualSelector": True}}),
        "spec.jobTemplate.spec.manualSelector",
        "manualSelector is not supported, as in a CronJob: remove it",
    ),
)
"""Said in the same words by the API server and by `read`."""

REFUSED_IN_OTHER_WORDS: tuple[tuple[Bad, str], ...] = (
    (
        Bad(
            "51 choices",
            spec(
                schedule="@daily",
                parameters=[{"name": "A", "value": "0", "enum": [str(n) for n in range(51)]}],
            ),
            "spec.parameters[0].enum",
            "must have at most 50 entries",
        ),
        "Too many",
    ),
    (
        Bad(
            "21 parameters",
            spec(schedule="@daily", parameters=[{"name": f"P{n}", "value": ""} for n in range(21)]),
            "spec.parameters",
            "must have at most 20 entries",
        ),
        "Too many",
    ),
    (
        Bad(
            "a parameter without value",
            spec(schedule="@daily", parameters=[{"name": "A"}]),
            "spec.parameters[0].value",
            "is required",
        ),
        "Required",
    ),
    (Bad("no Job template", {"schedule": "@daily"}, "spec.jobTemplate", "is required"), "Required"),
    (
        Bad(
            "a Job template without spec",
            spec(schedule="@daily", jobTemplate={}),
            "spec.jobTemplate.spec",
            "is required",
        ),
        "Required",
    ),
    (
        Bad(
            "a Job template without Pod",
            spec(schedule="@daily", jobTemplate={"spec": {}}),
            "spec.jobTemplate.spec.template",
            "is required",
        ),
        "Required",
    ),
    (
        Bad("minute 60", spec(hourly={"minute": 60}), "spec.hourly.minute", "must be at most 59"),
        "should be less than or equal to 59",
    ),
    (
        Bad("no minute", spec(hourly={}), "spec.hourly.minute", "is required"),
        "Required",
    ),
    (
        Bad(
            "a minute in quotes",
            spec(hourly={"minute": "17"}),
            "spec.hourly.minute",
            "must be a whole number",
        ),
        "must be of type integer|expected numeric",
    ),
    (
        Bad(
            "an unknown policy",
            spec(schedule="@daily", concurrencyPolicy="Maybe"),
            "spec.concurrencyPolicy",
            "must be 'Allow', 'Forbid', 'Replace' or 'Queue'",
        ),
        "Unsupported value",
    ),
    (
        Bad(
            "a schedule of 300 characters",
            spec(schedule="0 " * 150),
            "spec.schedule",
            "must have at most 256 characters",
        ),
        "Too long",
    ),
    (
        Bad(
            "a weight of nothing",
            spec(schedule="@daily", placement={"weight": 0}),
            "spec.placement.weight",
            "must be at least 1",
        ),
        "should be greater than or equal to 1",
    ),
    (
        Bad(
            "21 retries",
            spec(schedule="@daily", retry={"limit": 21}),
            "spec.retry.limit",
            "must be at most 20",
        ),
        "should be less than or equal to 20",
    ),
    (
        Bad("a priority of 1001", spec(schedule="@daily", priority=1001), "spec.priority", "1000"),
        "should be less than or equal to 1000",
    ),
    (
        Bad(
            "suspend in words",
            spec(schedule="@daily", suspend="no"),
            "spec.suspend",
            "must be true or false",
        ),
        "must be of type boolean|expected boolean",
    ),
)
"""(what `read` says, what the API server says instead: `a|b` where server-side apply differs)."""

LET_THROUGH_BY_THE_SCHEMA: tuple[Bad, ...] = (
    Bad(
        "31 February",
        spec(schedule="0 0 31 2 *"),
        "spec.schedule",
        "",
        "NeverFires",
    ),
    Bad(
        "an interval below the least one",
        spec(interval={"every": "9s"}),
        "spec.interval.every",
        "9s is too frequent: this operator takes 10s or longer",
        "TooFrequent",
    ),
    Bad(
        "an interval of nothing",
        spec(interval={"every": "0s"}),
        "spec.interval.every",
        "must be between 1s and 366d",
    ),
    Bad(
        "an interval of 367 days",
        spec(interval={"every": "367d"}),
        "spec.interval.every",
        "must be between 1s and 366d",
    ),
    Bad(
        "an interval of a number without end",
        spec(interval={"every": "9" * 31 + "w"}),
        "spec.interval.every",
        "must be between 1s and 366d",
    ),
    Bad(
        "an offset as long as the interval",
        spec(interval={"every": "1h", "offset": "60m"}),
        "spec.interval.offset",
        "must be shorter than interval.every (1h)",
    ),
    Bad(
        "one run after the end",
        spec(at="2030-01-01T00:00:00Z", endTime="2030-01-01T00:00:00Z"),
        "spec.at",
        "is not before endTime: it never runs",
        "NeverFires",
    ),
    Bad(
        "one run before the start",
        spec(at="2030-01-01T00:00:00Z", startTime="2030-01-01T00:00:01Z"),
        "spec.at",
        "is before startTime: it never runs",
        "NeverFires",
    ),
    Bad(
        "a time before 1970",
        spec(schedule="@daily", startTime="1969-12-31T23:59:59Z"),
        "spec.startTime",
        "times lie between 1970 and 9999",
    ),
)
"""The API server takes these; they become conditions."""
