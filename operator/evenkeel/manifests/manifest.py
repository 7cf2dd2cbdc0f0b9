"""Reads the schedules of a set of files: ScheduledJobs, and CronJobs as ScheduledJobs.

`evenkeel plan`, `load`, `advise` and `lint` call `load`. Each mistake becomes a Problem with file,
object and field: all mistakes of all objects, not the first. An object of another kind becomes a
Note, and so does a document of a directory that is no Kubernetes object. RunRequests are kept as
they are: `lint` alone looks into them.

An object that comes from a cluster (`kubectl get -o yaml`) has a status: `live` holds what of it
decides about load. A status is believed as far as the operator believes it after a restart.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.manifests.cronjob_mistakes import examine_cronjob
from evenkeel.manifests.documents import objects
from evenkeel.manifests.findings import Found, Mistake, Note, Problem
from evenkeel.manifests.kinds import Kind, kind_of
from evenkeel.manifests.mistakes import examine
from evenkeel.manifests.positions import locate
from evenkeel.model import Instant, Schedule
from evenkeel.resource.record import Placed
from evenkeel.resource.status import parse

NO_OBJECT = "is not a Kubernetes object: kind and apiVersion are required"
KIND_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Live:
    """What the status of a ScheduledJob says about its load."""

    placed: Placed | None
    paused: bool
    expected_s: int
    """How long a run is expected to last; 0 where that is not known."""
    durations: tuple[int, ...] = ()
    """Seconds of the last runs that succeeded: all that the status of a schedule with fixed times
    says of how long a run lasts."""


@dataclass(slots=True)
class Manifests:
    """The schedules, problems and notes, in the order of files and documents."""

    schedules: list[Schedule] = field(default_factory=list)
    live: dict[str, Live] = field(default_factory=dict)
    """By key: the ScheduledJobs that have a status."""
    found: dict[str, Found] = field(default_factory=dict)
    """By key: the objects of the schedules as they were written, if they were asked for."""
    problems: list[Problem] = field(default_factory=list)
    requests: list[Found] = field(default_factory=list)
    """RunRequests, right and wrong ones."""
    notes: list[Note] = field(default_factory=list)
    """Objects of other kinds."""
    skipped: list[Note] = field(default_factory=list)
    """What lies in directories and is no Kubernetes object."""


def load(
    paths: Iterable[str],
    *,
    recursive: bool = False,
    stdin: Callable[[], str],
    created: Instant,
    min_interval_s: int = 10,
    keep_objects: bool = False,
) -> Manifests:
    """The schedules of all paths. `created` is their creation time, which no API server has set.
    100,000 objects take a gigabyte, so they are kept only with `keep_objects`."""
    out = Manifests()
    seen: dict[str, Found] = {}
    for path in paths:
        for found in objects(
            path, recursive=recursive, stdin=stdin, problems=out.problems, skipped=out.skipped
        ):
            _take(found, out, seen, created=created, min_interval_s=min_interval_s)
    if keep_objects:
        out.found = {each.key: seen[each.key] for each in out.schedules}
    return out


def _take(
    found: Found,
    out: Manifests,
    seen: dict[str, Found],
    *,
    created: Instant,
    min_interval_s: int,
) -> None:
    kind = kind_of(found.object)
    if isinstance(kind, Mistake):
        out.problems.append(problem_of(found, kind))
    elif kind is Kind.RUN_REQUEST:
        out.requests.append(found)
    elif kind is Kind.OTHER:
        out.notes.append(Note(found.source, found.index, str(found.object["kind"])[:KIND_SHOWN]))
    elif kind is Kind.NO_OBJECT and found.in_directory:
        out.skipped.append(Note(found.source, found.index, ""))
    elif kind is Kind.NO_OBJECT:
        out.problems.append(problem_of(found, Mistake((), NO_OBJECT)))
    else:
        check = examine_cronjob if kind is Kind.CRON_JOB else examine
        examined = check(found.object, min_interval_s=min_interval_s)
        out.problems += [problem_of(found, mistake) for mistake in examined.mistakes]
        if examined.schedule is not None:
            _add(examined.schedule, found, out, seen, created=created)


def _add(
    schedule: Schedule, found: Found, out: Manifests, seen: dict[str, Found], *, created: Instant
) -> None:
    first = seen.get(schedule.key)
    if first is not None and _hands_over(first, found):
        if schedule.suspend:
            return
        out.schedules = [each for each in out.schedules if each.key != schedule.key]
        out.live.pop(schedule.key, None)
        first = None
    if first is not None:
        out.problems.append(defined_twice(found, first))
        return
    seen[schedule.key] = found
    # There is no uid without an API server. The name is unique in a set of manifests, too.
    out.schedules.append(replace(schedule, created=created, uid=schedule.uid or schedule.key))
    status = found.object.get("status")
    if isinstance(status, Mapping) and not is_cronjob(found.object):
        out.live[schedule.key] = _live(status)


def _hands_over(first: Found, second: Found) -> bool:
    """Whether these two of one name are a CronJob and a ScheduledJob with one of them suspended. In
    the middle of a hand-over a cluster holds both, and the suspended one is left out."""
    kinds = {is_cronjob(first.object), is_cronjob(second.object)}
    return len(kinds) == 2 and any(
        each.object["spec"].get("suspend") is True for each in (first, second)
    )


def _live(status: Mapping[str, Any]) -> Live:
    memory = parse(status)
    record = memory.record
    return Live(memory.placed, memory.pause is not None, record.expected_s, tuple(record.durations))


def defined_twice(second: Found, first: Found) -> Problem:
    """Two objects of one kind have one name."""
    sentence = f"is defined twice: first in {first.source}, document {first.index}"
    return problem_of(second, Mistake(("metadata", "name"), sentence))


def problem_of(found: Found, mistake: Mistake) -> Problem:
    """The mistake with its place in the files."""
    line, column = locate(found.origin, mistake.path)
    return Problem(
        found.source,
        found.index,
        _name(found.object),
        mistake.field,
        mistake.sentence,
        line,
        column,
    )


def _name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    ns, name = metadata.get("namespace"), metadata.get("name")
    if not isinstance(name, str):
        return ""
    return f"{ns if isinstance(ns, str) else 'default'}/{name}"[:320]
