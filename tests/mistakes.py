"""Mistakes that people make in a ScheduledJob, and where each one is refused.

One table for everything that judges a manifest: a cluster test tries each mistake on a real API
server beside a running operator, and on a CronJob where the mistake has a meaning there. Each row
changes the good manifest in one place or two. `says` is a part of the sentence that people read.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Where(StrEnum):
    """The first place that tells of a mistake."""

    APPLY = "apply"
    """The API server refuses the object."""
    CONDITION = "condition"
    """ScheduleAccepted or TemplateAccepted is False, and Stalled is True."""
    HINT = "hint"
    """Accepted, as by CronJob; the condition's message names what was probably meant."""
    RUN = "run"
    """Accepted; nothing tells of it before a run."""


class CronJob(StrEnum):
    """What the API server does to a CronJob with the same mistake."""

    REFUSES = "refuses"
    ACCEPTS = "accepts"
    HAS_NO_SUCH_FIELD = "has no such field"


REFUSES, ACCEPTS, NO_SUCH = CronJob.REFUSES, CronJob.ACCEPTS, CronJob.HAS_NO_SUCH_FIELD
APPLY, CONDITION, HINT, RUN = Where.APPLY, Where.CONDITION, Where.HINT, Where.RUN

MISSPELT_IN_THE_TEMPLATE = Where.CONDITION
"""Where an unknown field of a Job template is told: by the dry run."""

GONE = object()
"""The value of a field that is removed."""

GOOD: Json = {
    "apiVersion": "evenkeel.dev/v1alpha1",
    "kind": "ScheduledJob",
    "metadata": {"name": "nightly"},
    "spec": {
        "schedule": "0 3 * * *",
        "jobTemplate": {
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [
                            {"name": "main", "image": "busybox:1.35", "command": ["true"]}
                        ],
                    }
                }
            }
        },
    },
}
"""Right for both kinds of object."""

JOB = "jobTemplate/spec"
POD = f"{JOB}/template/spec"
MAIN = f"{POD}/containers/0"
LABELS = f"{JOB}/template/metadata/labels"
CONTAINER: Json = GOOD["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]


@dataclass(frozen=True)
class Mistake:
    """`change`: paths below spec (with a leading / below the object) and their new values."""

    name: str
    change: dict[str, Any]
    where: Where
    says: str
    cronjob: CronJob = NO_SUCH

    def manifest(self) -> Json:
        """The ScheduledJob with this mistake."""
        found = copy.deepcopy(GOOD)
        for path, value in self.change.items():
            _set(found, path[1:] if path.startswith("/") else f"spec/{path}", value)
        return found

    def as_cronjob(self) -> Json:
        """The CronJob with this mistake."""
        return {**self.manifest(), "apiVersion": "batch/v1", "kind": "CronJob"}


def _set(found: Any, path: str, value: Any) -> None:
    *parents, last = path.split("/")
    for part in parents:
        found = found[int(part)] if isinstance(found, list) else found.setdefault(part, {})
    if value is GONE:
        del found[last]
    elif isinstance(found, list):
        found[int(last)] = value
    else:
        found[last] = value


def _cron(name: str, text: Any, says: str, cronjob: CronJob = REFUSES) -> Mistake:
    return Mistake(name, {"schedule": text}, APPLY, says, cronjob)


def _timing(name: str, timing: Json, where: Where, says: str, **more: Any) -> Mistake:
    return Mistake(name, {"schedule": GONE, **timing, **more}, where, says)


_INTERVAL_TEXT = "write numbers with units, such as 25m, 1h30m, 3d or 2w"
_RFC3339 = "write an RFC 3339 time with a zone, such as 2030-01-31T06:00:00Z"
_ZONE = "write an IANA name such as Europe/Berlin, or UTC"
_ONE_OF = "exactly one of schedule, hourly, interval, at must be set"
_PROPER = "is not understood; write numbers"
_FIVE = "five fields are expected"

CRON_TEXTS: tuple[Mistake, ...] = (
    _cron("hour 24", "0 24 * * *", "hour '24' is out of range; 0 to 23 are possible"),
    _cron("minute 60", "60 * * * *", "minute '60' is out of range; 0 to 59 are possible"),
    _cron("day of week 8", "* * * * 8", "day of week '8' is out of range; 0 to 7 are possible"),
    _cron("day 0", "0 0 0 * *", "day of month '0' is out of range; 1 to 31 are possible"),
    _cron("month 13", "0 0 1 13 *", "month '13' is out of range; 1 to 12 are possible"),
    _cron("the third last day", "0 0 L-3 * *", "day of month 'L-3' is not understood"),
    _cron("a day in full", "0 9 * * Monday", f"day of week 'MONDAY' {_PROPER}"),
    _cron("a month in full", "0 0 1 January *", f"month 'JANUARY' {_PROPER}"),
    _cron("with seconds", "0 0 3 * * *", "seconds are not supported: use interval.every"),
    _cron("with seconds and years", "0 0 3 * * * 2030", "seconds and years are not supported"),
    _cron("four fields", "0 3 * *", f"{_FIVE} (minute, hour, day of month, month, day of week)"),
    _cron("one field", "5", "1 found"),
    _cron("nothing but a blank", " ", "is empty; five fields are expected"),
    _cron("a step of nothing", "*/0 * * * *", "minute '*/0' has a bad step"),
    _cron("a step in words", "*/five * * * *", "write a whole number from 1 after the /"),
    _cron("backwards over midnight", "0 22-2 * * *", "write two ranges in a list: 22-23,0-2"),
    _cron("Friday to Sunday", "0 0 * * FRI-SUN", "Sunday at the end of a range is 7: write FRI-7"),
    _cron("the nearest weekday", "0 0 15W * *", "day of month '15W' is not supported"),
    _cron("a random minute", "R * * * *", "minute 'R' is not supported"),
    _cron("@every", "@every 5m", "@every is not supported; use interval.every", ACCEPTS),
    _cron("an alias nobody knows", "@fortnightly", "the aliases are @hourly @daily"),
    _cron("@reboot", "@reboot", "'@reboot' is not known"),
    _cron("a zone in the text", "TZ=Europe/Berlin 0 3 * * *", "use the field timeZone"),
    _cron("digits of another script", "٣ * * * *", "write plain ASCII characters only: digits"),
    _cron(
        "a dash of a word processor",
        "0 9\u201317 * * *",
        "write plain ASCII characters only: digits",
    ),
    _cron("a comma at the end", "0 3, * * *", "hour '' has an empty entry", ACCEPTS),
    _cron("in words", "every day at 3", "4 found"),
    _cron("a time of day", "03:00", "1 found"),
    _cron("300 characters", "0 " * 150, "Too long"),
    _cron("a number", 5, "must be of type string"),
    _cron("an empty text", "", "is empty; five fields are expected"),
    Mistake("31 February", {"schedule": "0 0 31 2 *"}, CONDITION, "never", ACCEPTS),
    Mistake(
        "every 90 minutes as a step",
        {"schedule": "*/90 * * * *"},
        HINT,
        "interval: {every: 90m}",
        ACCEPTS,
    ),
    Mistake(
        "every 36 hours as a step",
        {"schedule": "0 */36 * * *"},
        HINT,
        "interval: {every: 36h}",
        ACCEPTS,
    ),
)

ZONES: tuple[Mistake, ...] = tuple(
    Mistake(name, {"timeZone": zone}, APPLY, says, REFUSES)
    for name, zone, says in (
        ("a zone that does not exist", "Europe/Atlantis", _ZONE),
        ("a city alone", "Berlin", _ZONE),
        ("a zone in small letters", "europe/berlin", _ZONE),
        ("a zone with a blank", "America/New York", _ZONE),
        ("hours east of UTC", "UTC+2", _ZONE),
        ("an offset from UTC", "+02:00", _ZONE),
        ("the machine's own zone", "Local", _ZONE),
        ("a file beside the zones", "../../etc/passwd", _ZONE),
        ("an empty zone", "", _ZONE),
    )
)

TIMINGS: tuple[Mistake, ...] = (
    _timing("none of the four", {}, APPLY, _ONE_OF),
    Mistake("two of the four", {"interval": {"every": "1h"}}, APPLY, _ONE_OF),
    _timing("every without a unit", {"interval": {"every": "5"}}, APPLY, _INTERVAL_TEXT),
    _timing("every as a number", {"interval": {"every": 5}}, APPLY, "must be of type string"),
    _timing("every in words", {"interval": {"every": "5 minutes"}}, APPLY, _INTERVAL_TEXT),
    _timing("every with a point", {"interval": {"every": "1.5h"}}, APPLY, _INTERVAL_TEXT),
    _timing("every in months", {"interval": {"every": "1M"}}, APPLY, _INTERVAL_TEXT),
    _timing("a plain interval", {"interval": "5m"}, APPLY, "must be of type object"),
    _timing("an interval of nothing", {"interval": {"every": "0s"}}, CONDITION, "between 1s and"),
    _timing("an interval of 2 years", {"interval": {"every": "730d"}}, CONDITION, "and 366d"),
    _timing("every 5 seconds", {"interval": {"every": "5s"}}, CONDITION, "is too frequent"),
    _timing(
        "an offset longer than the interval",
        {"interval": {"every": "10m", "offset": "15m"}},
        CONDITION,
        "must be shorter than interval.every (10m)",
    ),
    _timing(
        "an anchor without offset",
        {"interval": {"every": "1h", "anchor": "2030-01-01T00:00:00Z"}},
        APPLY,
        "anchor needs offset",
    ),
    _timing("a date without a zone", {"at": "2030-01-31T06:00:00"}, APPLY, _RFC3339),
    _timing("tomorrow", {"at": "tomorrow"}, APPLY, _RFC3339),
    _timing("31 February at noon", {"at": "2030-02-31T12:00:00Z"}, APPLY, _RFC3339),
    _timing("a date alone", {"at": "2030-01-31"}, APPLY, _RFC3339),
    _timing("a fraction of a second", {"at": "2030-01-31T06:00:00.5Z"}, APPLY, "whole seconds"),
    _timing(
        "one run in a zone of its own",
        {"at": "2030-01-31T06:00:00Z"},
        APPLY,
        "timeZone works with schedule, hourly and interval only, not with at",
        timeZone="Europe/Berlin",
    ),
    _timing(
        "one run after the end",
        {"at": "2030-01-31T06:00:00Z"},
        CONDITION,
        "is not before endTime",
        endTime="2030-01-01T00:00:00Z",
    ),
    _timing(
        "minute 60 of each hour", {"hourly": {"minute": 60}}, APPLY, "less than or equal to 59"
    ),
    _timing("hourly as a number", {"hourly": 17}, APPLY, "must be of type object"),
    Mistake(
        "a start after the end",
        {"startTime": "2030-02-01T00:00:00Z", "endTime": "2030-01-01T00:00:00Z"},
        APPLY,
        "startTime must be earlier than endTime",
    ),
    Mistake("a start without a zone", {"startTime": "2030-01-01 00:00"}, APPLY, _RFC3339),
    Mistake(
        "a window for cron",
        {"placement": {"window": {"start": "22:00", "end": "06:00"}}},
        APPLY,
        "placement.window works with interval only, not with schedule",
    ),
    _timing(
        "a window until 24:00",
        {"interval": {"every": "1d"}},
        APPLY,
        "write a time of day from 00:00 to 23:59",
        placement={"window": {"start": "22:00", "end": "24:00"}},
    ),
    _timing(
        "a window without width",
        {"interval": {"every": "1d"}},
        APPLY,
        "start and end must differ",
        placement={"window": {"start": "22:00", "end": "22:00"}},
    ),
    _timing(
        "a window for an interval of minutes",
        {"interval": {"every": "25m"}},
        APPLY,
        "placement.window works with whole days only",
        placement={"window": {"start": "22:00", "end": "06:00"}},
    ),
)

POLICIES: tuple[Mistake, ...] = (
    Mistake("a weight of nothing", {"placement": {"weight": 0}}, APPLY, "greater than or equal"),
    Mistake("a priority of 5000", {"priority": 5000}, APPLY, "less than or equal to 1000"),
    Mistake("a retry factor of nothing", {"retry": {"factor": 0}}, APPLY, "greater than or equal"),
    Mistake("21 retries", {"retry": {"limit": 21}}, APPLY, "less than or equal to 20"),
    Mistake(
        "a delay with a unit", {"retry": {"delaySeconds": "10s"}}, APPLY, "must be of type integer"
    ),
    Mistake("maxQueued without Queue", {"maxQueued": 5}, APPLY, "concurrencyPolicy: Queue"),
    Mistake("catchUpLimit without All", {"catchUpLimit": 5}, APPLY, "missedRuns: All"),
    Mistake(
        "a parameter with a dash in its name",
        {"parameters": [{"name": "BATCH-SIZE", "value": "10"}]},
        APPLY,
        "write the name of an environment variable",
    ),
    Mistake(
        "a parameter that is a number",
        {"parameters": [{"name": "BATCH_SIZE", "value": 10}]},
        APPLY,
        "must be of type string",
    ),
    Mistake(
        "a parameter outside its enum",
        {"parameters": [{"name": "BATCH_SIZE", "value": "10", "enum": ["100", "1000"]}]},
        APPLY,
        "value must be one of the values in enum",
    ),
    Mistake(
        "a parameter twice",
        {"parameters": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        APPLY,
        "each name may stand once",
    ),
    Mistake(
        "a history of -1",
        {"successfulJobsHistoryLimit": -1},
        APPLY,
        "greater than or equal to 0",
        REFUSES,
    ),
    Mistake(
        "a deadline of -10",
        {"startingDeadlineSeconds": -10},
        APPLY,
        "greater than or equal to 0",
        REFUSES,
    ),
    Mistake(
        "a deadline with a unit",
        {"startingDeadlineSeconds": "10s"},
        APPLY,
        "must be of type integer",
        REFUSES,
    ),
    Mistake(
        "a history in quotes",
        {"failedJobsHistoryLimit": "1"},
        APPLY,
        "must be of type integer",
        REFUSES,
    ),
    Mistake("suspend in quotes", {"suspend": "false"}, APPLY, "must be of type boolean", REFUSES),
    Mistake(
        "a policy in small letters",
        {"concurrencyPolicy": "forbid"},
        APPLY,
        'supported values: "Allow", "Forbid", "Replace", "Queue"',
        REFUSES,
    ),
    Mistake("a misspelt policy", {"concurencyPolicy": "Forbid"}, APPLY, "unknown field", REFUSES),
    Mistake("timezone in small letters", {"timezone": "UTC"}, APPLY, "unknown field", REFUSES),
    Mistake(
        "the schedule beside the spec",
        {"/schedule": "0 3 * * *", "schedule": GONE},
        APPLY,
        'unknown field "schedule"',
        REFUSES,
    ),
    Mistake("no template", {"jobTemplate": GONE}, APPLY, "Required value", REFUSES),
    Mistake(
        "no name", {"/metadata/name": GONE}, APPLY, "name or generateName is required", REFUSES
    ),
    Mistake(
        "a name with capitals", {"/metadata/name": "Nightly"}, APPLY, "RFC 1123 subdomain", REFUSES
    ),
)

TEMPLATES: tuple[Mistake, ...] = (
    Mistake(
        "a Pod template instead of a Job template",
        {"jobTemplate": GOOD["spec"]["jobTemplate"]["spec"]},
        APPLY,
        "jobTemplate.spec: Required value",
        REFUSES,
    ),
    Mistake(
        "containers beside the Pod's spec",
        {POD: GONE, f"{JOB}/template/containers": [CONTAINER]},
        APPLY,
        "template.spec: Required value",
        REFUSES,
    ),
    Mistake("containers of nothing", {f"{POD}/containers": []}, APPLY, "at least 1", REFUSES),
    Mistake("no containers", {f"{POD}/containers": GONE}, APPLY, "containers: Required", REFUSES),
    Mistake(
        "containers that are no list",
        {f"{POD}/containers": CONTAINER},
        APPLY,
        "template.spec.containers",
        REFUSES,
    ),
    Mistake("a container without name", {f"{MAIN}/name": GONE}, APPLY, "name: Required", REFUSES),
    Mistake(
        "a container without image", {f"{MAIN}/image": GONE}, APPLY, "image: Required", REFUSES
    ),
    Mistake("an empty image", {f"{MAIN}/image": ""}, APPLY, "at least 1 chars long", REFUSES),
    Mistake("an image that is a number", {f"{MAIN}/image": 5}, APPLY, "of type string", REFUSES),
    Mistake(
        "an init container without image",
        {f"{POD}/initContainers": [{"name": "first"}]},
        APPLY,
        "initContainers[0].image: Required",
        REFUSES,
    ),
    Mistake(
        "no restartPolicy",
        {f"{POD}/restartPolicy": GONE},
        APPLY,
        "restartPolicy: Required",
        REFUSES,
    ),
    *(
        Mistake(
            f"restartPolicy: {policy}",
            {f"{POD}/restartPolicy": policy},
            APPLY,
            'supported values: "OnFailure", "Never"',
            REFUSES,
        )
        for policy in ("Always", "never")
    ),
    *(
        Mistake(
            f"a request of {amount}",
            {f"{MAIN}/resources": {"requests": {resource: amount}}},
            APPLY,
            "should match",
            REFUSES,
        )
        for resource, amount in (
            ("cpu", "lots"),
            ("memory", "1GB"),
            ("memory", "512 Mi"),
            ("cpu", "-1"),
        )
    ),
    Mistake(
        "resources beside requests and limits",
        {f"{MAIN}/resources": {"cpu": "1"}},
        MISSPELT_IN_THE_TEMPLATE,
        "unknown field",
        REFUSES,
    ),
    Mistake(
        "a request above the limit",
        {f"{MAIN}/resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        CONDITION,
        "must be less than or equal to cpu limit",
        REFUSES,
    ),
    Mistake(
        "comand", {f"{MAIN}/comand": ["true"]}, MISSPELT_IN_THE_TEMPLATE, "unknown field", REFUSES
    ),
    Mistake(
        "imagePullPolcy",
        {f"{MAIN}/imagePullPolcy": "Always"},
        MISSPELT_IN_THE_TEMPLATE,
        "unknown field",
        REFUSES,
    ),
    Mistake(
        "a pull policy in small letters",
        {f"{MAIN}/imagePullPolicy": "always"},
        CONDITION,
        "Unsupported value",
        REFUSES,
    ),
    Mistake(
        "backoffLimit in the Pod",
        {f"{POD}/backoffLimit": 3},
        MISSPELT_IN_THE_TEMPLATE,
        "unknown field",
        REFUSES,
    ),
    Mistake(
        "a command in one text",
        {f"{MAIN}/command": "sh -c true"},
        APPLY,
        "must be of type array",
        REFUSES,
    ),
    Mistake("a number among the args", {f"{MAIN}/args": [5]}, APPLY, "of type string", REFUSES),
    Mistake("env as a mapping", {f"{MAIN}/env": {"A": "1"}}, APPLY, "containers[0].env", REFUSES),
    Mistake(
        "an env value that is a number",
        {f"{MAIN}/env": [{"name": "A", "value": 1}]},
        APPLY,
        "must be of type string",
        REFUSES,
    ),
    Mistake(
        "an env value that is true",
        {f"{MAIN}/env": [{"name": "A", "value": True}]},
        APPLY,
        "must be of type string",
        REFUSES,
    ),
    Mistake(
        "env as name=value",
        {f"{MAIN}/env": ["A=1"]},
        APPLY,
        "must be of type object",
        REFUSES,
    ),
    Mistake(
        "an env with both value and source",
        {
            f"{MAIN}/env": [
                {
                    "name": "A",
                    "value": "1",
                    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                }
            ]
        },
        CONDITION,
        "may not be specified when `value` is not empty",
        REFUSES,
    ),
    Mistake(
        "two containers of one name",
        {f"{POD}/containers": [CONTAINER, CONTAINER]},
        CONDITION,
        "Duplicate value",
        REFUSES,
    ),
    Mistake(
        "a container name with an underscore",
        {f"{MAIN}/name": "my_main"},
        CONDITION,
        "RFC 1123 label",
        REFUSES,
    ),
    Mistake(
        "a label with a blank",
        {LABELS: {"team": "data platform"}},
        CONDITION,
        "valid label",
        REFUSES,
    ),
    Mistake("a label that is true", {LABELS: {"cron": True}}, APPLY, "of type string", REFUSES),
    Mistake(
        "a mount without a volume",
        {f"{MAIN}/volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        CONDITION,
        "Not found",
        REFUSES,
    ),
    Mistake(
        "a selector",
        {f"{JOB}/selector": {"matchLabels": {"a": "b"}}},
        APPLY,
        "selector is chosen by Kubernetes, as in a CronJob: remove it",
        REFUSES,
    ),
    Mistake(
        "a negative backoffLimit",
        {f"{JOB}/backoffLimit": -1},
        CONDITION,
        "greater than or equal to 0",
        REFUSES,
    ),
    Mistake(
        "a ttl with a unit",
        {f"{JOB}/ttlSecondsAfterFinished": "1h"},
        APPLY,
        "must be of type integer",
        REFUSES,
    ),
    Mistake(
        "completions in quotes",
        {f"{JOB}/completions": "3"},
        APPLY,
        "must be of type integer",
        REFUSES,
    ),
)

MISTAKES: tuple[Mistake, ...] = (*CRON_TEXTS, *ZONES, *TIMINGS, *POLICIES, *TEMPLATES)


def refused_since_lately() -> list[Mistake]:
    """The mistakes that objects may have from before the CRD refused them at apply.

    Those of the type of a field, of its length, and of fields that do not work together, the CRD
    has refused from the beginning."""
    always = ("300 characters", "a number")
    texts = [each for each in CRON_TEXTS if each.where is APPLY and each.name not in always]
    policies = [each for each in POLICIES if " without " in each.name]
    templates = [
        each for each in TEMPLATES if each.name in _LATELY or each.name.startswith("a request of")
    ]
    return [*texts, *ZONES, *policies, *templates]


_LATELY = (
    "containers of nothing",
    "a container without image",
    "an empty image",
    "an init container without image",
    "no restartPolicy",
    "restartPolicy: Always",
    "restartPolicy: never",
)
