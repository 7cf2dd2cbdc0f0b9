"""Rules about fields of a spec that depend on one another, checked by the API server and by `read`.

Each rule has two forms: CEL for the CRD, and Python for objects that no API server has checked with
this CRD (files, an older CRD, objects changed in etcd). A cluster test sends a list of bad specs
through both and compares the sentences.
"""

import re
from collections.abc import Callable, Iterator

from evenkeel.model import DAY_S, Concurrency, MissedRuns
from evenkeel.resource.rule import Rule
from evenkeel.resource.text import parse_instant
from evenkeel.resource.v1alpha1 import KINDS, Spec

WORKS_WITH: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("dayMatch", "has(self.dayMatch)", ("schedule",)),
    ("dst", "has(self.dst)", ("schedule", "interval")),
    # The API server writes the default, UTC, into every object.
    (
        "timeZone",
        "has(self.timeZone) && self.timeZone != 'UTC'",
        ("schedule", "hourly", "interval"),
    ),
    ("placement.window", "has(self.placement) && has(self.placement.window)", ("interval",)),
    ("placement.pinned", "has(self.placement) && self.placement.pinned", ("interval",)),
)
"""(field, CEL for "the field is set", the kinds of schedule in which the field has an effect)."""


_DEFAULTS = {
    "maxQueued": Spec.model_fields["max_queued"].default,
    "catchUpLimit": Spec.model_fields["catch_up_limit"].default,
}

SELECTOR = "selector is chosen by Kubernetes, as in a CronJob: remove it"
MANUAL_SELECTOR = "manualSelector is not supported, as in a CronJob: remove it"


def kinds_of(spec: Spec) -> list[str]:
    """Which of schedule, hourly, interval and at are set: one, if the spec is right."""
    return [kind for kind in KINDS if getattr(spec, kind) is not None]


def _is_set(spec: Spec, field: str) -> bool:
    match field:
        case "dayMatch":
            return spec.day_match is not None
        case "dst":
            return spec.dst is not None
        case "timeZone":
            return spec.time_zone != "UTC"
        case "placement.window":
            return spec.placement.window is not None
        case _:
            return spec.placement.pinned


def _useless(field: str, there: str, works_with: tuple[str, ...], kind: str) -> Rule[Spec]:
    return Rule(
        field=field,
        cel=f"!({there} && has(self.{kind}))",
        sentence=f"{field} works with {_names(works_with)} only, not with {kind}",
        holds=lambda spec: getattr(spec, kind) is None or not _is_set(spec, field),
    )


def _whole_days_only(field: str, there: str) -> Rule[Spec]:
    return Rule(
        field=field,
        cel=f"!({there}) || !has(self.interval) || {_WHOLE_DAYS_CEL}",
        sentence=f"{field} works with whole days only: write interval.every in d or w",
        holds=lambda spec: (
            not _is_set(spec, field) or spec.interval is None or _is_whole_days(spec.interval.every)
        ),
    )


def _needs(field: str, policy: str, value: str, holds: Callable[[Spec], bool]) -> Rule[Spec]:
    """`field` does nothing unless `policy` has this value. The API server writes the defaults of
    both into every object, so only another number than the default is a mistake."""
    before = "oldSelf.value()"
    return Rule(
        field=field,
        cel=f"self.{field} == {_DEFAULTS[field]} || self.{policy} == '{value}'",
        sentence=f"{field} works with {policy}: {value} only: write that too, or remove {field}",
        holds=holds,
        unchanged=f"oldSelf.hasValue() && {before}.{field} == self.{field}"
        f" && {before}.{policy} == self.{policy}",
    )


def _names(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _is_fixed(spec: Spec) -> bool:
    return spec.interval is not None and spec.interval.offset is not None


_UNIT_S = {"h": 3600, "m": 60, "s": 1}
_PARTS = " + ".join(
    f"self.interval.every.findAll('[0-9]+{unit}')"
    f".map(x, int(x.substring(0, x.size() - 1)) * {seconds}).sum()"
    for unit, seconds in _UNIT_S.items()
)
# Numbers of ten digits and more could overflow CEL's integers; no valid interval has one.
_WHOLE_DAYS_CEL = f"(!self.interval.every.matches('[0-9]{{10}}') && ({_PARTS}) % 86400 == 0)"


def _is_whole_days(every: str) -> bool:
    if re.search("[0-9]{10}", every) is not None:
        return False
    parts = re.findall("([0-9]+)([hms])", every)
    return sum(int(number) * _UNIT_S[unit] for number, unit in parts) % DAY_S == 0


def _starts_before_it_ends(spec: Spec) -> bool:
    if spec.start_time is None or spec.end_time is None:
        return True
    return parse_instant(spec.start_time) < parse_instant(spec.end_time)


_HAS_OFFSET = "has(self.interval) && has(self.interval.offset)"


def _rules() -> Iterator[Rule[Spec]]:
    yield Rule(
        field="",
        cel="[" + ", ".join(f"has(self.{kind})" for kind in KINDS) + "].filter(x, x).size() == 1",
        sentence=f"exactly one of {', '.join(KINDS)} must be set; to change from one to another,"
        " set the old one to null",
        holds=lambda spec: len(kinds_of(spec)) == 1,
    )
    for field, there, works_with in WORKS_WITH:
        for kind in KINDS:
            if kind not in works_with:
                yield _useless(field, there, works_with, kind)
    yield Rule(
        field="placement.window",
        cel=f"!(has(self.placement) && has(self.placement.window) && {_HAS_OFFSET})",
        sentence="placement.window works only without interval.offset: an offset already says when",
        holds=lambda spec: not (_is_set(spec, "placement.window") and _is_fixed(spec)),
    )
    yield Rule(
        field="placement.pinned",
        cel=f"!(has(self.placement) && self.placement.pinned && {_HAS_OFFSET})",
        sentence="placement.pinned works only without interval.offset: an offset is never moved",
        holds=lambda spec: not (_is_set(spec, "placement.pinned") and _is_fixed(spec)),
    )
    yield _whole_days_only("placement.window", "has(self.placement) && has(self.placement.window)")
    yield _whole_days_only("dst", "has(self.dst)")
    yield Rule(
        field="placement.window",
        cel="!has(self.placement) || !has(self.placement.window)"
        " || self.placement.window.start != self.placement.window.end",
        sentence="start and end must differ: the window has no width",
        holds=lambda spec: (
            spec.placement.window is None
            or spec.placement.window.start != spec.placement.window.end
        ),
    )
    yield Rule(
        field="interval.anchor",
        cel=f"!has(self.interval) || !has(self.interval.anchor) || {_HAS_OFFSET}",
        sentence="anchor needs offset: runs are at anchor + offset + k * every",
        holds=lambda spec: spec.interval is None or spec.interval.anchor is None or _is_fixed(spec),
    )
    yield _needs(
        "maxQueued",
        "concurrencyPolicy",
        "Queue",
        lambda spec: (
            spec.max_queued == _DEFAULTS["maxQueued"]
            or spec.concurrency_policy is Concurrency.QUEUE
        ),
    )
    yield _needs(
        "catchUpLimit",
        "missedRuns",
        "All",
        lambda spec: (
            spec.catch_up_limit == _DEFAULTS["catchUpLimit"] or spec.missed_runs is MissedRuns.ALL
        ),
    )
    yield Rule(
        field="startTime",
        cel="!has(self.startTime) || !has(self.endTime)"
        " || timestamp(self.startTime) < timestamp(self.endTime)",
        sentence="startTime must be earlier than endTime",
        holds=_starts_before_it_ends,
    )


RULES: tuple[Rule[Spec], ...] = tuple(_rules())
