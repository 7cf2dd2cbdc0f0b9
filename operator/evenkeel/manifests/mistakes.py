"""Finds all mistakes of a ScheduledJob that can be known without a cluster.

`manifest` calls `examine`. The sentences are those of `read` (`mending` says how all of them are
found). What `read` does not look at is found beside it: unknown fields (`known_fields`), metadata
(`heads`), and the Job template by its schema.

A manifest without a mistake can still be refused: an API server knows admission webhooks, quotas
and rules of Pods that no schema holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.heads import head_mistakes
from evenkeel.manifests.known_fields import names_of, without_unknown
from evenkeel.manifests.mending import MOST, put, read_to_the_end
from evenkeel.manifests.template_mistakes import template_mistakes
from evenkeel.manifests.template_rules import template_rule_mistakes
from evenkeel.model import Rejection, Schedule
from evenkeel.reasons import ConditionReason
from evenkeel.resource.names import KIND
from evenkeel.resource.read import read
from evenkeel.resource.v1alpha1 import KINDS, Spec

_RIGHT: Mapping[Path, Any] = {
    ("metadata", "name"): "some-name",
    ("spec", "schedule"): "@daily",
    ("spec", "hourly"): {"minute": 0},
    ("spec", "hourly", "minute"): 0,
    ("spec", "interval"): {"every": "366d"},
    # The longest: a right offset must not become wrong.
    ("spec", "interval", "every"): "366d",
    ("spec", "interval", "offset"): "0s",
    ("spec", "at"): "9999-01-01T00:00:00Z",
    ("spec", "placement", "window", "start"): "00:01",
    ("spec", "placement", "window", "end"): "00:02",
    ("spec", "jobTemplate"): {"spec": {"template": {}}},
}
"""What takes the place of a wrong field. Any other wrong field is left out."""

_BY_KIND = ("dayMatch", "dst", "timeZone", "placement")
"""Fields that are right or wrong by the kind of schedule. Without a kind nothing is said of
them."""


GENERATED = "generateName makes a new schedule with each apply"


@dataclass(frozen=True, slots=True)
class Examined:
    """The schedule of an object, or its mistakes."""

    schedule: Schedule | None
    mistakes: tuple[Mistake, ...]


def examine(raw: Mapping[str, Any], *, min_interval_s: int) -> Examined:
    """The schedule of a ScheduledJob, or all that is wrong with it."""
    mistakes = list(head_mistakes(raw, names_of(Spec), generated=GENERATED))
    spec = raw.get("spec")
    if isinstance(spec, Mapping):
        spec = without_unknown(spec, Spec, mistakes, kind=KIND, root=Spec)
    return examine_spec({**raw, "spec": spec}, mistakes, min_interval_s=min_interval_s)


def examine_spec(
    raw: Mapping[str, Any], mistakes: list[Mistake], *, min_interval_s: int
) -> Examined:
    """Add the mistakes of template and timing to those that are known already. The spec has no
    unknown fields any more."""
    if any(mistake.path[:1] == ("metadata",) for mistake in mistakes):
        raw = {**raw, "metadata": {"name": _RIGHT["metadata", "name"]}}
    spec = raw.get("spec")
    if isinstance(spec, Mapping) and spec.get("jobTemplate") is not None:
        path: Path = ("spec", "jobTemplate")
        mistakes += template_mistakes(spec["jobTemplate"], path)
        mistakes += template_rule_mistakes(spec["jobTemplate"], path)
    schedule = read_to_the_end(
        raw,
        mistakes,
        lambda each: read(each, min_interval_s=min_interval_s),
        _mended,
        _sentence,
    )
    return Examined(None if mistakes else schedule, tuple(mistakes[:MOST]))


def _sentence(refused: Rejection) -> str:
    if refused.reason is ConditionReason.TOO_FREQUENT:
        # No operator is asked here, and it may have another setting.
        return refused.sentence.replace("this operator takes", "by default the operator takes")
    return refused.sentence


def _mended(raw: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The object with something right in the place of the mistake."""
    if path == ("spec",):
        return {**raw, "spec": _of_one_kind(raw.get("spec"))}
    if path in _RIGHT:
        return put(raw, path, _RIGHT[path])
    if path[:2] == ("spec", "parameters") and len(path) > 2:
        return put(raw, path[:3], {"name": f"SOME_NAME_{path[2]}", "value": ""})
    left_out = put(raw, path, None)
    if path[:2] == ("spec", "jobTemplate") and left_out == raw:
        return put(raw, path[:2], _RIGHT[path[:2]])  # something in it is missing
    return left_out


def _of_one_kind(spec: object) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        return {"schedule": "@daily", "jobTemplate": _RIGHT["spec", "jobTemplate"]}
    kinds = [kind for kind in KINDS if spec.get(kind) is not None]
    if not kinds:
        kept = {name: value for name, value in spec.items() if name not in _BY_KIND}
        return {**kept, "interval": {"every": "366d"}}
    return {name: value for name, value in spec.items() if name not in kinds[1:]}
