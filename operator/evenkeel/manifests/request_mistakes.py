"""Finds all mistakes of a RunRequest that can be known without a cluster.

`evenkeel lint` calls `examine_request`, and `mistakes_beside` where the same files hold the
schedule of the request. The sentences are those of the operator and of the CRD. Not found: what has
run, and so whether the ledger reaches back to a range.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from evenkeel import rfc3339
from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.heads import head_mistakes
from evenkeel.manifests.known_fields import names_of, without_unknown
from evenkeel.manifests.mending import MOST, path_of, put, read_to_the_end
from evenkeel.model import Instant, Request, Schedule
from evenkeel.resource.names import REQUEST_KIND
from evenkeel.resource.request_fit import wrong_parameters
from evenkeel.resource.request_read import read_request
from evenkeel.resource.request_record import MOST_DUES
from evenkeel.resource.request_v1alpha1 import RequestSpec
from evenkeel.when import DueTimes

_RIGHT: Mapping[Path, Any] = {
    ("metadata", "name"): "some-name",
    ("spec", "schedule"): "some-name",
    ("spec", "range"): {"from": "1970-01-01T00:00:00Z", "to": "1970-01-02T00:00:00Z"},
    ("spec", "range", "from"): "1970-01-01T00:00:00Z",
    ("spec", "range", "to"): "9999-01-01T00:00:00Z",
}
"""What takes the place of a wrong field. Any other wrong field is left out."""


def examine_request(raw: Mapping[str, Any]) -> tuple[Request | None, tuple[Mistake, ...]]:
    """The request of an object, or all that is wrong with it."""
    mistakes = list(head_mistakes(raw, names_of(RequestSpec)))
    spec = raw.get("spec")
    if isinstance(spec, Mapping):
        spec = without_unknown(spec, RequestSpec, mistakes, kind=REQUEST_KIND, root=RequestSpec)
    request = read_to_the_end({**_named(raw), "spec": spec}, mistakes, read_request, _mended)
    return (None if mistakes else request), tuple(mistakes[:MOST])


def _named(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """With some name: `head_mistakes` says whether it needs one. `kubectl create` takes
    generateName, which makes a new request each time."""
    metadata = raw.get("metadata")
    given = metadata if isinstance(metadata, Mapping) else {}
    name = given.get("name")
    right = isinstance(name, str) and name != ""
    return {**raw, "metadata": {**given, "name": name if right else _RIGHT["metadata", "name"]}}


def _mended(raw: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The object with something right in the place of the mistake."""
    if path == ("spec",):
        spec = raw.get("spec")
        given = spec if isinstance(spec, Mapping) else {"schedule": "some-name"}
        return {**raw, "spec": {name: value for name, value in given.items() if name != "at"}}
    if path in _RIGHT:
        return put(raw, path, _RIGHT[path])
    if path[:2] == ("spec", "parameters") and len(path) > 2:
        return put(raw, path[:3], {"name": f"SOME_NAME_{path[2]}", "value": ""})
    return put(raw, path, None)


def mistakes_of_time(request: Request, now: Instant) -> Iterator[Mistake]:
    """What the operator would refuse if the request were applied at this time."""
    if request.span is not None and request.span.end > now:
        end = rfc3339.show(request.span.end)
        sentence = f"{end} is not over yet at {rfc3339.show(now)}; a range ends in the past"
        yield Mistake(("spec", "range", "to"), sentence)


def mistakes_beside(
    request: Request, schedule: Schedule, dues: DueTimes | None
) -> Iterator[Mistake]:
    """What is wrong with a request for this schedule. `dues` is None where its phase is not
    known."""
    for wrong in wrong_parameters(request, schedule):
        yield Mistake(path_of(wrong.field), wrong.sentence)
    if request.span is None or dues is None:
        return
    count = dues.count(request.span.first, request.span.end)
    if count > MOST_DUES:
        sentence = (
            f"has {count} due times of {schedule.name}, and a request may have at most {MOST_DUES} "
            "(setting requests.maxDues): ask for a shorter range"
        )
        yield Mistake(("spec", "range"), sentence)
