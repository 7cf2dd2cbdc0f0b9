"""The name of a run's Job: made of the run, and read back from the name. Pure.

    <base>[-<kind>][-retry<n>]-<stamp>
    backup-29384160, backup-retry1-29384160, backup-q0k3v7ab-29384160, backup-1763049601

The first attempt of a whole-minute run is called as a CronJob of the same name would call it. The
API server then lets only one of the two create it, and tools that recognise the runs of a CronJob
by their names recognise those of a ScheduledJob.

A stamp of at most nine digits counts minutes since the Unix epoch, one of at least ten counts
seconds. Whole minutes are written in minutes until the year 3871, where they begin to need a tenth
digit. All other instants are written in seconds, with leading zeros before September 2001. So each
instant until the year 9999 has one stamp, and each stamp means one instant.

Names of different runs differ: of two schedules, of two due times, of two kinds, of two attempts.
Not guaranteed: that the names of two schedules differ where one of them, or both, had to be cut.
They end in 30 bits of a hash then. Not part of the name: the schedule's uid. The due times of a
schedule that was deleted lie before the creation of the next one of that name.
"""

import base64
import hashlib
import re
from dataclasses import dataclass

import orjson

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE, At, Cron, Hourly, Instant, Interval, RunId, Schedule, Timing

NAME_LENGTH = 63
"""The Job controller writes the name into a label of each Pod, and no label may be longer."""

_BASE_LENGTH = 52
"""As long as the name of a CronJob may be. A stamp of ten digits fits behind it, so that a schedule
has the same base on whole minutes and beside them."""

_REQUESTED_BASE_LENGTH = 30
"""The base of a requested run. Its kind makes the tail longer, and of a longer base the Pods of an
Indexed Job could often not be named: a schedule would be told so that works without requests."""

_HASH_LENGTH = 6

_SECONDS_DIGITS = 10

_KIND = re.compile(r"q0[a-z2-7]{6}")

_AMBIGUOUS = re.compile(r"-(?:q0[a-z2-7]{6}|retry[0-9]+)\Z")
"""A base with such an end would read as the kind or the attempt of another schedule's run."""

_NAME = re.compile(
    r"(?P<base>.+?)(?:-(?P<kind>q0[a-z2-7]{6}))?(?:-retry(?P<retry>[1-9][0-9]*))?-(?P<stamp>[0-9]+)"
)

_LAST_MINUTE: Instant = 99_999_999 * 60
_LAST_SECOND: Instant = 9_999_999_999
"""The last ones with stamps of eight and of ten digits, in the years 2160 and 2286."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """What the name of a Job says of its run."""

    due: Instant
    kind: str
    attempt: int


def job_name(schedule_name: str, run: RunId, attempt: int = 1) -> str:
    """At most 63 characters, and a DNS subdomain; equal for equal runs, whoever computes it."""
    tail = _tail(run, attempt)
    longest = _BASE_LENGTH if run.kind == BY_SCHEDULE else _REQUESTED_BASE_LENGTH
    return _base(schedule_name, min(longest, NAME_LENGTH - len(tail))) + tail


def read_job_name(name: str, schedule_name: str | None = None) -> NamedRun | None:
    """What the name says; None when no run of ours can be called so, or none of this schedule."""
    found = _NAME.fullmatch(name)
    if found is None or _AMBIGUOUS.search(found["base"]):
        return None
    due = _instant(found["stamp"])
    if due is None:
        return None
    read = NamedRun(due, found["kind"] or BY_SCHEDULE, int(found["retry"] or 0) + 1)
    if schedule_name is None:
        return read
    own = job_name(schedule_name, RunId("", read.due, read.kind), read.attempt)
    return read if own == name else None


def due_of(name: str) -> Instant | None:
    """The due time in a Job's name; None when no run of ours can be called so."""
    found = read_job_name(name)
    return found.due if found else None


def _tail(run: RunId, attempt: int) -> str:
    assert run.kind == BY_SCHEDULE or _KIND.fullmatch(run.kind), run.kind
    kind = "" if run.kind == BY_SCHEDULE else f"-{run.kind}"
    retry = f"-retry{attempt - 1}" if attempt > 1 else ""
    return f"{kind}{retry}-{_stamp(run.due)}"


def _stamp(due: Instant) -> str:
    minutes, seconds = divmod(due, 60)
    if seconds == 0 and len(str(minutes)) < _SECONDS_DIGITS:
        return str(minutes)
    return str(due).zfill(_SECONDS_DIGITS)


def _instant(stamp: str) -> Instant | None:
    if len(stamp) > len(str(rfc3339.LAST)):
        return None
    due = int(stamp) * (1 if len(stamp) >= _SECONDS_DIGITS else 60)
    return due if due <= rfc3339.LAST and _stamp(due) == stamp else None


def _base(schedule_name: str, length: int) -> str:
    if len(schedule_name) <= length and not _AMBIGUOUS.search(schedule_name):
        return schedule_name
    cut = schedule_name[: length - _HASH_LENGTH - 1].rstrip("-.")
    return f"{cut}-{_hash(schedule_name)}"


def _hash(schedule_name: str) -> str:
    """Six letters of the name's hash. One name in 150 million would get `retry2` to `retry7`, which
    would read as the attempt of another schedule's run; the letters after them are taken then."""
    text = base64.b32encode(hashlib.sha256(schedule_name.encode()).digest()).decode().lower()
    parts = (text[place : place + _HASH_LENGTH] for place in range(0, len(text), _HASH_LENGTH))
    return next(part for part in parts if not _AMBIGUOUS.search(f"-{part}"))


# --- names of Pods ----------------------------------------------------------------------------


def pod_name_problem(schedule: Schedule) -> str | None:
    """Why the Pods of an Indexed Job could not be named, in a sentence; None when they can.

    Each of them is called after its Job and its index, and the API server refuses the Job where the
    last one's name is no hostname. The lengths are those of scheduled and requested runs and of
    their retries. Not covered: a schedule's name with dots, which no hostname may have; the API
    server says so."""
    spec = orjson.loads(schedule.template).get("spec")
    if not isinstance(spec, dict) or spec.get("completionMode") != "Indexed":
        return None
    completions = spec.get("completions")
    if not isinstance(completions, int) or completions < 1:
        return None
    index = f"-{completions - 1}"
    runs = _longest_runs(schedule)
    longest = max((job_name(schedule.name, *each) for each in runs), key=len)
    length = len(longest) + len(index)
    if length <= NAME_LENGTH:
        return None
    room = NAME_LENGTH - len(index)
    plain = ("a" * length for length in range(_BASE_LENGTH, 0, -1))
    most = next(
        (len(name) for name in plain if max(len(job_name(name, *each)) for each in runs) <= room),
        0,
    )
    if len(schedule.name) <= most:  # it has an ambiguous end, and a hash behind it
        most -= _HASH_LENGTH + 1
    return (
        "the Pods of an Indexed Job are named after it, and a Pod's hostname has at most "
        f"{NAME_LENGTH} characters: with a Job named {longest} and the index {index[1:]}, the last "
        f"of {completions} completions, it would have {length}; a schedule with a name of at most "
        f"{most} characters has room for so many"
    )


def _longest_runs(schedule: Schedule) -> list[tuple[RunId, int]]:
    """Among these are the runs and attempts with the longest names. A requested run may be due at
    any second, whatever the timing."""
    due = _LAST_SECOND if _has_odd_seconds(schedule.timing) else _LAST_MINUTE
    runs = RunId(schedule.uid, due), RunId(schedule.uid, _LAST_SECOND, "q0aaaaaa")
    return [(run, attempt) for run in runs for attempt in range(1, schedule.retry.limit + 2)]


def _has_odd_seconds(timing: Timing) -> bool:
    """Whether a due time can lie beside a whole minute. The phase of an interval without an offset
    is the operator's to choose, to the second."""
    match timing.rule:
        case Cron() | Hourly():
            return False
        case At(instant):
            return instant % 60 != 0
        case Interval(every_s, offset_s, anchor):
            return offset_s is None or any(part % 60 for part in (every_s, offset_s, anchor or 0))
