"""Finds all mistakes of a CronJob: what its own API refuses, and what a ScheduledJob cannot have.

`manifest` calls `examine_cronjob`. The CronJob is read as the ScheduledJob that it becomes
(`cronjob`), so the sentences are those of a ScheduledJob. What a ScheduledJob takes and CronJob's
API refuses (`H`, `L`, a Sunday written as 7, a name of 53 characters, Queue) is a mistake, too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from evenkeel.errors import BadField
from evenkeel.manifests.cronjob import SAME_FIELDS, from_cronjob
from evenkeel.manifests.findings import Mistake
from evenkeel.manifests.heads import head_mistakes
from evenkeel.manifests.known_fields import names_of
from evenkeel.manifests.mistakes import GENERATED, Examined, examine_spec
from evenkeel.manifests.nearest import nearest, nearest_field
from evenkeel.manifests.template_mistakes import unknown_field
from evenkeel.resource.v1alpha1 import Spec

NAME_MAX = 52
"""CronJob adds 11 characters to the name for its Jobs, which may have 63."""

POLICIES = ("Allow", "Forbid", "Replace")
FIELDS = ("schedule", *SAME_FIELDS)

_SCHEDULE = ("spec", "schedule")
_POLICY = ("spec", "concurrencyPolicy")
_FIELDS_OF_CRON = ("minute", "hour", "day of month", "month", "day of week")
_SUNDAY_AS_7 = re.compile("(.*-)?7")


def examine_cronjob(raw: Mapping[str, Any], *, min_interval_s: int) -> Examined:
    """The schedule that the CronJob becomes, or all that is wrong with it."""
    mistakes = [
        *head_mistakes(raw, names_of(Spec), generated=GENERATED),
        *_name_too_long(raw),
    ]
    spec = raw.get("spec")
    if not isinstance(spec, Mapping):
        sentence = "is required" if spec is None else "must be an object"
        return Examined(None, (*mistakes, Mistake(("spec",), sentence)))
    spec = _without_unknown(spec, mistakes)
    mistakes += _policy_mistakes(spec)
    if any(mistake.path == _POLICY for mistake in mistakes):
        del spec["concurrencyPolicy"]
    try:
        converted = from_cronjob({**raw, "spec": spec})
    except BadField as wrong:
        mistakes.append(Mistake(_SCHEDULE, wrong.sentence))
        converted = from_cronjob({**raw, "spec": {**spec, "schedule": "@daily"}})
    examined = examine_spec(converted, mistakes, min_interval_s=min_interval_s)
    found = [_as_written(mistake) for mistake in examined.mistakes]
    if not any(mistake.path == _SCHEDULE for mistake in found):
        found += _refused_entries(spec.get("schedule"))
    return Examined(None if found else examined.schedule, tuple(found))


def _as_written(mistake: Mistake) -> Mistake:
    """With the path that the CronJob has: `@every` stands in its schedule."""
    if mistake.path[:2] != ("spec", "interval"):
        return mistake
    return replace(mistake, path=_SCHEDULE)


def _name_too_long(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if isinstance(name, str) and NAME_MAX < len(name) <= 253:
        yield Mistake(
            ("metadata", "name"),
            f"has {len(name)} characters; a CronJob may have {NAME_MAX}, a ScheduledJob 253",
        )


def _without_unknown(spec: Mapping[str, Any], mistakes: list[Mistake]) -> dict[str, Any]:
    """The fields that a CronJob has; a misspelt one is taken for the one that was meant."""
    out: dict[str, Any] = {}
    for name, value in spec.items():
        meant: str | None = name
        if name not in FIELDS:
            meant, shown = nearest_field(name, FIELDS, spec, out)
            sentence = unknown_field(name, shown, of="of a CronJob")
            mistakes.append(Mistake(("spec", name), sentence))
        if meant is not None and value is not None:
            out[meant] = value
    return out


def _policy_mistakes(spec: Mapping[str, Any]) -> Iterator[Mistake]:
    policy = spec.get("concurrencyPolicy")
    if policy == "Queue":
        yield Mistake(_POLICY, "Queue is not known to CronJob: write kind: ScheduledJob to use it")
    elif isinstance(policy, str) and policy not in POLICIES:
        near = nearest(policy, POLICIES)
        hint = f"; did you mean {near}?" if near else ""
        yield Mistake(_POLICY, f"must be {', '.join(POLICIES[:-1])} or {POLICIES[-1]}{hint}")


def _refused_entries(text: object) -> Iterator[Mistake]:
    """Entries of a right cron text that a ScheduledJob takes, and CronJob's API refuses."""
    words = str(text).upper().split()
    if len(words) != 5:
        return  # @daily, or what has a mistake already
    for field, word in zip(_FIELDS_OF_CRON, words, strict=True):
        days = field == "day of week"
        entry = next((item for item in word.split(",") if _is_ours(item, days)), None)
        if entry is None:
            continue
        if days and _SUNDAY_AS_7.fullmatch(entry.partition("/")[0]):
            sentence = f"{field} {entry!r}: CronJob's API takes 0 to 6: write Sunday as 0"
        else:
            sentence = (
                f"{field} {entry!r} is not taken by CronJob's API: write kind: ScheduledJob to use "
                "it"
            )
        yield Mistake(_SCHEDULE, sentence)


def _is_ours(item: str, day_of_week: bool) -> bool:
    head = item.partition("/")[0]
    if head.startswith("H") or "#" in head or head == "L":
        return True
    return day_of_week and (head.endswith("L") or _SUNDAY_AS_7.fullmatch(head) is not None)
