"""Reads a RunRequest, whatever it contains, into a Request or a Rejection.

`read_request` is called for every watch event and for each object of the list at start. Like `read`
it never raises. What needs the schedule is not checked here: whether it exists, whether it has the
parameters, which due times are in the range, and whether the range is over.
"""

from collections.abc import Mapping
from typing import Any

from evenkeel.model import DueRange, Rejection, Request
from evenkeel.resource.guard import Identity, checked, created, guarded, note
from evenkeel.resource.names import NOTE_REQUESTED_BY
from evenkeel.resource.request_rules import RULES
from evenkeel.resource.request_v1alpha1 import RangeSpec, RequestSpec
from evenkeel.resource.text import parse_instant


def read_request(raw: Mapping[str, Any]) -> Request | Rejection:
    """The request of an object, or the reason for which it is not accepted."""
    return guarded(raw, lambda whose: _request(raw, whose))


def read_request_spec(raw: object) -> RequestSpec:
    """The spec, checked by shape and rules. BadField names the first mistake with its full path."""
    return checked(RequestSpec, RULES, raw)


def _request(raw: Mapping[str, Any], whose: Identity) -> Request:
    spec = read_request_spec(raw.get("spec"))
    return Request(
        uid=whose.uid,
        ns=whose.ns,
        name=whose.name,
        created=created(raw),
        generation=whose.generation,
        schedule=spec.schedule,
        at=None if spec.at is None else parse_instant(spec.at),
        span=None if spec.range is None else _span(spec.range),
        include=spec.include,
        order=spec.order,
        max_active=spec.max_active,
        meeting=spec.overlap,
        stop_after_failures=spec.stop_after_failures,
        suspend=spec.suspend,
        parameters=tuple((given.name, given.value) for given in spec.parameters or ()),
        force=spec.force,
        dry_run=spec.dry_run,
        ttl_s=spec.ttl_seconds_after_finished,
        requested_by=note(raw, NOTE_REQUESTED_BY),
    )


def _span(spec: RangeSpec) -> DueRange:
    return DueRange(parse_instant(spec.first), parse_instant(spec.to))
