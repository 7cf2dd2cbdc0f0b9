"""Reads the schedules of a set of files: ScheduledJobs, and CronJobs as ScheduledJobs.

`evenkeel plan` and `load` call `load`. A wrong object becomes a Problem with file, object and
field, and the others are read all the same. An object of another kind becomes a Note. A field that
the CRD does not have is refused here, as kubectl's strict validation does; `read` ignores it.

An object that comes from a cluster (`kubectl get -o yaml`) has a status: `live` holds what of it
decides about load. A status is believed as far as the operator believes it after a restart.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evenkeel.errors import BadField
from evenkeel.model import Instant, Rejection, Schedule
from evenkeel.resource.cronjob import from_cronjob, is_cronjob
from evenkeel.resource.documents import Found, Problem, objects
from evenkeel.resource.names import API_VERSION, GROUP, KIND
from evenkeel.resource.read import read
from evenkeel.resource.record import Placed
from evenkeel.resource.status import parse
from evenkeel.resource.v1alpha1 import Part, Spec

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")


@dataclass(frozen=True, slots=True)
class Note:
    """An object that was ignored, because it is neither a ScheduledJob nor a CronJob."""

    source: str
    index: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.source}: document {self.index}: {self.sentence}"


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
    objects: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By key: the objects of the schedules as they were written, if they were asked for."""
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def load(
    paths: Iterable[str],
    *,
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
        for found in objects(path, stdin=stdin, problems=out.problems):
            _take(found, out, seen, created=created, min_interval_s=min_interval_s)
    if keep_objects:
        out.objects = {each.key: seen[each.key].object for each in out.schedules}
    return out


def _take(
    found: Found,
    out: Manifests,
    seen: dict[str, Found],
    *,
    created: Instant,
    min_interval_s: int,
) -> None:
    raw = found.object
    name = _name(raw)
    try:
        if is_cronjob(raw) or raw.get("kind") == KIND:
            _refuse_name(raw)
        if is_cronjob(raw):
            raw = from_cronjob(raw)
        elif raw.get("kind") == KIND and raw.get("apiVersion") == API_VERSION:
            _refuse_unknown(raw)
        else:
            _leave_out(raw, found, out)
            return
    except BadField as wrong:
        out.problems.append(Problem(found.source, found.index, name, wrong.field, wrong.sentence))
        return
    result = read(raw, min_interval_s=min_interval_s)
    if isinstance(result, Rejection):
        problem = Problem(found.source, found.index, name, result.field, result.sentence)
        out.problems.append(problem)
        return
    first = seen.get(result.key)
    if first is not None and _hands_over(first, found):
        if result.suspend:
            return
        out.schedules = [each for each in out.schedules if each.key != result.key]
        out.live.pop(result.key, None)
        first = None
    if first is not None:
        sentence = f"is defined twice: first in {first.source}, document {first.index}"
        out.problems.append(Problem(found.source, found.index, name, "metadata.name", sentence))
        return
    seen[result.key] = found
    # There is no uid without an API server. The name is unique in a set of manifests, too.
    out.schedules.append(replace(result, created=created, uid=result.uid or result.key))
    status = raw.get("status")
    if isinstance(status, Mapping) and not is_cronjob(found.object):
        out.live[result.key] = _live(status)


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


def _leave_out(raw: Mapping[str, Any], found: Found, out: Manifests) -> None:
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        sentence = "is not a Kubernetes object: kind and apiVersion are required"
        out.problems.append(Problem(found.source, found.index, _name(raw), "", sentence))
    elif kind == KIND and version.partition("/")[0] == GROUP:
        sentence = f"{version[:80]} is not known; write {API_VERSION}"
        problem = Problem(found.source, found.index, _name(raw), "apiVersion", sentence)
        out.problems.append(problem)
    else:
        out.notes.append(Note(found.source, found.index, kind[:80]))


def _name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    ns, name = metadata.get("namespace"), metadata.get("name")
    if not isinstance(name, str):
        return ""
    return f"{ns if isinstance(ns, str) else 'default'}/{name}"[:320]


def _refuse_name(raw: Mapping[str, Any]) -> None:
    """Refuse a name that the API server would refuse. A missing name is refused by `read`."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    for part, pattern, limit in (("name", _SUBDOMAIN, 253), ("namespace", _LABEL, 63)):
        text = metadata.get(part)
        if isinstance(text, str) and text and not (len(text) <= limit and pattern.fullmatch(text)):
            dots = ", dots" if pattern is _SUBDOMAIN else ""
            raise BadField(
                f"metadata.{part}",
                f"must be at most {limit} lowercase letters, digits{dots} and hyphens, "
                "with a letter or digit at each end",
            )


def _refuse_unknown(raw: Mapping[str, Any]) -> None:
    """Refuse a misspelt field, as kubectl's strict validation does. The models would ignore it."""
    spec = raw.get("spec")
    if isinstance(spec, Mapping):
        _refuse_unknown_in(spec, Spec, "spec")


def _refuse_unknown_in(part: Mapping[str, Any], model: type[Part], path: str) -> None:
    known = {info.alias: info.annotation for info in model.model_fields.values()}
    for name, value in part.items():
        if name not in known:
            raise BadField(f"{path}.{str(name)[:64]}", "is not a field of a ScheduledJob")
        inner = _model_in(known[name])
        if inner is not None and isinstance(value, Mapping):
            _refuse_unknown_in(value, inner, f"{path}.{name}")


def _model_in(annotation: Any) -> type[Part] | None:
    """The model of a field whose type is `DstSpec` or `DstSpec | None`; None for other types."""
    for choice in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(choice, type) and issubclass(choice, Part):
            return choice
    return None
