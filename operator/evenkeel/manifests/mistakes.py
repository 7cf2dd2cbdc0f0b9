"""Finds all mistakes of a ScheduledJob that can be known without a cluster.

`manifest` calls `examine`. `read` stops at the first mistake, as the operator needs no second one.
Here the field of the first mistake is replaced by one that is right, and `read` looks again, so
each sentence is the one that a condition of the operator would have. What `read` does not look at
is found beside it: unknown fields, metadata, and the Job template by its schema.

A manifest without a mistake can still be refused: an API server knows admission webhooks, quotas
and rules of Pods that no schema holds.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.manifests.findings import Mistake, Path, shown_path
from evenkeel.manifests.nearest import nearest, nearest_field
from evenkeel.manifests.template_mistakes import (
    METADATA_FIELDS,
    template_mistakes,
    unknown_field,
    wrong_type,
)
from evenkeel.manifests.template_rules import label_mistakes, template_rule_mistakes
from evenkeel.model import Rejection, Schedule
from evenkeel.reasons import ConditionReason
from evenkeel.resource.names import KIND
from evenkeel.resource.read import read
from evenkeel.resource.v1alpha1 import KINDS, Part, Spec

MOST = 100
"""Of one object at most so many mistakes are told: a page is enough to begin with."""

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")

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

_WRONG_TYPES = {
    "must be a string": "string",
    "must be a whole number": "integer",
    "must be true or false": "boolean",
}
"""Sentences of `read` to which the value can add a word: what is in quotes, and what is not."""

_BY_KIND = ("dayMatch", "dst", "timeZone", "placement")
"""Fields that are right or wrong by the kind of schedule. Without a kind nothing is said of
them."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The schedule of an object, or its mistakes."""

    schedule: Schedule | None
    mistakes: tuple[Mistake, ...]


def examine(raw: Mapping[str, Any], *, min_interval_s: int) -> Examined:
    """The schedule of a ScheduledJob, or all that is wrong with it."""
    mistakes = list(head_mistakes(raw))
    spec = raw.get("spec")
    if isinstance(spec, Mapping):
        spec = _without_unknown(spec, Spec, ("spec",), mistakes)
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
    known = {mistake.path for mistake in mistakes}
    schedule = None
    for _ in range(MOST):
        result = read(raw, min_interval_s=min_interval_s)
        if isinstance(result, Schedule):
            schedule = result
            break
        path = tuple(result.field.split(".")) if result.field else ()
        if path not in known:
            mistakes.append(Mistake(path, without_name(_sentence(result, raw, path), path)))
            known.add(path)
        mended = _mended(raw, path)
        if mended == raw:
            break
        raw = mended
    return Examined(None if mistakes else schedule, tuple(mistakes[:MOST]))


def _sentence(refused: Rejection, raw: Mapping[str, Any], path: Path) -> str:
    if refused.reason is ConditionReason.TOO_FREQUENT:
        # No operator is asked here, and it may have another setting.
        return refused.sentence.replace("this operator takes", "by default the operator takes")
    value = _value_at(raw, path)
    if refused.sentence in _WRONG_TYPES:
        return wrong_type(value, _WRONG_TYPES[refused.sentence])
    if isinstance(value, str) and refused.sentence.startswith("must be '"):
        near = nearest(value, re.findall("'([^']*)'", refused.sentence))
        return f"{refused.sentence}; did you mean {near}?" if near else refused.sentence
    return refused.sentence


def without_name(sentence: str, path: Path) -> str:
    """Rules name their field, for readers who see no path. Here the path stands before the
    sentence."""
    for start in range(1, len(path)):
        name = shown_path(path[start:])
        if sentence.startswith(f"{name} "):
            return sentence[len(name) + 1 :]
    return sentence


# --- mending ----------------------------------------------------------------------------------


def _mended(raw: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The object with something right in the place of the mistake."""
    if path == ("spec",):
        return {**raw, "spec": _of_one_kind(raw.get("spec"))}
    if path in _RIGHT:
        return _put(raw, path, _RIGHT[path])
    left_out = _put(raw, path, None)
    if path[:2] == ("spec", "jobTemplate") and left_out == raw:
        return _put(raw, path[:2], _RIGHT[path[:2]])  # something in it is missing
    return left_out


def _of_one_kind(spec: object) -> dict[str, Any]:
    if not isinstance(spec, Mapping):
        return {"schedule": "@daily", "jobTemplate": _RIGHT["spec", "jobTemplate"]}
    kinds = [kind for kind in KINDS if spec.get(kind) is not None]
    if not kinds:
        kept = {name: value for name, value in spec.items() if name not in _BY_KIND}
        return {**kept, "interval": {"every": "366d"}}
    return {name: value for name, value in spec.items() if name not in kinds[1:]}


def _put(raw: Mapping[str, Any], path: Path, value: Any) -> Mapping[str, Any]:
    """The object with this value at the path; None leaves the field out. What is shared with the
    given object is not copied: a template can be a megabyte."""
    name, rest = str(path[0]) if path else "", path[1:]
    if rest:
        inner = raw.get(name)
        if not isinstance(inner, Mapping):
            return raw if value is None else {**raw, name: _put({}, rest, value)}
        return {**raw, name: _put(inner, rest, value)}
    if value is None:
        return {key: part for key, part in raw.items() if key != name}
    return {**raw, name: value}


def _value_at(raw: object, path: Path) -> object:
    for part in path:
        if not isinstance(raw, Mapping):
            return None
        raw = raw.get(part)
    return raw


# --- what `read` does not look at -------------------------------------------------------------


def head_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """What is wrong around the spec: fields beside it, and the metadata."""
    for name in raw:
        if name not in ("apiVersion", "kind", "metadata", "spec", "status"):
            near = nearest(name, ("metadata", "spec"))
            hint = f"; did you mean {near}?" if near else ""
            if name in _names_of(Spec):
                hint = "; it belongs in spec"
            yield Mistake((name,), f"is not a field here{hint}")
    yield from _metadata_mistakes(raw)


def _metadata_mistakes(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        what = "is required" if metadata is None else "must be an object"
        yield Mistake(("metadata",) if metadata is not None else ("metadata", "name"), what)
        return
    for name in metadata:
        if name not in METADATA_FIELDS:
            yield Mistake(("metadata", name), unknown_field(name, nearest(name, METADATA_FIELDS)))
    for part, pattern, limit in (("name", _SUBDOMAIN, 253), ("namespace", _LABEL, 63)):
        yield from _name_mistakes(metadata, part, pattern, limit)
    for part in ("labels", "annotations"):
        yield from _string_mistakes(metadata.get(part), ("metadata", part))
    labels = metadata.get("labels")
    if isinstance(labels, Mapping):
        yield from label_mistakes((("metadata", "labels"), labels))


def _name_mistakes(
    metadata: Mapping[str, Any], part: str, pattern: re.Pattern[str], limit: int
) -> Iterator[Mistake]:
    text, path = metadata.get(part), ("metadata", part)
    if text is None or text == "":
        if part == "name":
            generated = metadata.get("generateName") is not None
            hint = "; generateName makes a new schedule with each apply" if generated else ""
            yield Mistake(path, f"is required{hint}")
    elif not isinstance(text, str):
        yield Mistake(path, wrong_type(text, "string"))
    elif len(text) > limit or pattern.fullmatch(text) is None:
        dots = ", dots" if pattern is _SUBDOMAIN else ""
        yield Mistake(
            path,
            f"must be at most {limit} lowercase letters, digits{dots} and hyphens, "
            "with a letter or digit at each end",
        )


def _string_mistakes(strings: object, path: Path) -> Iterator[Mistake]:
    if strings is None:
        return
    if not isinstance(strings, Mapping):
        yield Mistake(path, "must be an object")
        return
    for name, value in strings.items():
        if not isinstance(value, str):
            yield Mistake((*path, name), wrong_type(value, "string"))


def _without_unknown(
    part: Mapping[str, Any], model: type[Part], path: Path, mistakes: list[Mistake]
) -> dict[str, Any]:
    """The fields that the model has. What is left out is added to the mistakes, and a misspelt
    field is taken for the one that was meant, so that no mistake follows from it."""
    known = _names_of(model)
    out: dict[str, Any] = {}
    for name, value in part.items():
        meant: str | None = name
        if name not in known:
            meant, shown = nearest_field(name, known, part, out)
            mistakes.append(Mistake((*path, name), _unknown(name, shown, path)))
        if meant is not None and value is not None:
            out[meant] = _inner(value, known[meant], (*path, name), mistakes)
    return out


def _inner(value: Any, annotation: Any, path: Path, mistakes: list[Mistake]) -> Any:
    model = _model_in(annotation)
    if model is None or not isinstance(value, Mapping):
        return value
    return _without_unknown(value, model, path, mistakes)


def _unknown(name: str, meant: str | None, path: Path) -> str:
    of = f"of a {KIND}"
    if meant is None and len(path) > 1 and name in _names_of(Spec):
        return f"is not a field {of} here; it belongs in spec"
    return unknown_field(name, meant, of=of)


def _names_of(model: type[Part]) -> dict[str, Any]:
    return {str(info.alias): info.annotation for info in model.model_fields.values()}


def _model_in(annotation: Any) -> type[Part] | None:
    """The model of a field whose type is `DstSpec` or `DstSpec | None`; None for other types."""
    for choice in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(choice, type) and issubclass(choice, Part):
            return choice
    return None
