"""Rules about fields of a RunRequest that depend on one another or must not change.

As in `rules`, each of RULES has two forms. What must not change only the API server can know: it
alone sees the object as it was.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from evenkeel.resource.request_v1alpha1 import RequestSpec
from evenkeel.resource.rule import Rule
from evenkeel.resource.text import cel, has_form_of_instant, parse_instant

RANGE_FIELDS = ("include", "order", "maxActive", "stopAfterFailures")
"""They do nothing for a single run."""

MUTABLE = ("suspend", "maxActive")

FIXED = (
    "cannot be changed: of a request only suspend and maxActive can; create another request instead"
)

_FIELDS = {field.alias or name: name for name, field in RequestSpec.model_fields.items()}


def _works_with_range(field: str) -> Rule[RequestSpec]:
    """The API server writes the default into every object: only another value is a mistake."""
    name = _FIELDS[field]
    default = RequestSpec.model_fields[name].default
    literal = f"'{default}'" if isinstance(default, str) else str(default)
    return Rule(
        field=field,
        cel=f"self.{field} == {literal} || has(self.range)",
        sentence=f"{field} works with range only: write a range, or remove {field}",
        holds=lambda spec: getattr(spec, name) == default or spec.range is not None,
    )


def _begins_before_it_ends(spec: RequestSpec) -> bool:
    if spec.range is None:
        return True
    return parse_instant(spec.range.first) < parse_instant(spec.range.to)


def _rules() -> Iterator[Rule[RequestSpec]]:
    yield Rule(
        field="",
        cel="!has(self.at) || !has(self.range)",
        sentence="at most one of at and range can be set: at is for one run, range for a backfill",
        holds=lambda spec: spec.at is None or spec.range is None,
    )
    ends = ("self.range.from", "self.range.to")
    misformed = " || ".join(f"!{has_form_of_instant(end)}" for end in ends)
    yield Rule(
        field="range",
        # Who misspelt one of them is told that alone.
        cel=f"!has(self.range) || {misformed} || timestamp({ends[0]}) < timestamp({ends[1]})",
        sentence="from must be earlier than to",
        holds=_begins_before_it_ends,
    )
    for field in RANGE_FIELDS:
        yield _works_with_range(field)


RULES: tuple[Rule[RequestSpec], ...] = tuple(_rules())


def fixed_fields() -> list[dict[str, JsonValue]]:
    """The entries of x-kubernetes-validations that keep the other fields as they were created. A
    rule at the field itself would let pass who adds or removes the field."""
    return [
        cel(
            f"has(self.{field}) == has(oldSelf.{field})"
            f" && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            FIXED,
            path=f".{field}",
        )
        for field in _FIELDS
        if field not in MUTABLE
    ]
