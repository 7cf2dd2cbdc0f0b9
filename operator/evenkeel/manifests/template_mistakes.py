"""Finds the mistakes of a Job template that its structural schema knows.

`mistakes` calls `template_mistakes`. The schema is the one in the CRD (`template_schema`): unknown
and missing fields, types, bounds, enumerations, patterns. CEL rules are not evaluated. A template
without such a mistake can still be refused by the API server, which knows more: two containers of
one name, a volume that is not there.

The import of `template_schema` takes half a second, so it waits for the first template.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.nearest import nearest

Json = dict[str, Any]

METADATA_FIELDS = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""All fields of ObjectMeta. The schema names only those that a template can use."""

_JOB = ("spec",)
_POD = ("spec", "template", "spec")
_CONTAINERS = (*_POD, "containers")
HOMES: tuple[Path, ...] = ((), _JOB, _POD, (*_CONTAINERS, 0))
"""Where a field that stands in the wrong object is looked for: job template, Job, Pod,
container."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
_NOUNS = {
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
}


def template_mistakes(template: object, path: Path) -> list[Mistake]:
    """The mistakes of the JobTemplateSpec that stands at `path`."""
    return list(_check(template, _schema(), path))


@functools.cache
def _schema() -> Json:
    from evenkeel.resource.template_schema import job_template_schema

    return job_template_schema()


def _at(home: Path) -> Json:
    schema = _schema()
    for part in home:
        schema = schema["items"] if isinstance(part, int) else schema["properties"][part]
    return schema


def _check(value: object, schema: Json, path: Path) -> Iterator[Mistake]:
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield Mistake(path, "must be a whole number or a string")
        return
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        yield Mistake(path, wrong_type(value, kind))
        return
    yield from _bounds(value, schema, path)
    if isinstance(value, Mapping):
        yield from _object(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _check(item, schema["items"], (*path, number))


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def wrong_type(value: object, kind: str) -> str:
    """What to say of a value that is not of its field's type."""
    sentence = f"must be {_NOUNS[kind]}"
    if kind == "string" and isinstance(value, bool | int | float):
        read_as = str(value).lower() if isinstance(value, bool) else "a number"
        return f"{sentence}; without quotes YAML reads it as {read_as}: put it in quotes"
    if isinstance(value, str) and kind in ("integer", "number", "boolean"):
        return f"{sentence}; remove the quotes" if _is_in_quotes(value, kind) else sentence
    return sentence


def _is_in_quotes(text: str, kind: str) -> bool:
    return text in ("true", "false") if kind == "boolean" else text.isascii() and text.isdigit()


def _bounds(value: object, schema: Json, path: Path) -> Iterator[Mistake]:
    if "enum" in schema and value not in schema["enum"]:
        yield Mistake(path, one_of(value, schema["enum"]))
    elif isinstance(value, str):
        yield from _text_bounds(value, schema, path)
    elif isinstance(value, list):
        yield from _counted(len(value), schema, "Items", path, "entries")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield Mistake(path, f"must be at least {schema['minimum']}")
        if value > schema.get("maximum", value):
            yield Mistake(path, f"must be at most {schema['maximum']}")


def one_of(value: object, choices: Sequence[object]) -> str:
    """What to say of a value that is none of these."""
    names = [str(choice) for choice in choices]
    meant = nearest(value, names) if isinstance(value, str) else None
    hint = f"; did you mean {meant}?" if meant else ""
    return f"must be {' or '.join(names)}{hint}"


def _text_bounds(value: str, schema: Json, path: Path) -> Iterator[Mistake]:
    if not value and schema.get("minLength", 0) > 0:
        yield Mistake(path, "must not be empty")
        return
    yield from _counted(len(value), schema, "Length", path, "characters")
    if "pattern" in schema and _compiled(schema["pattern"]).search(value) is None:
        yield Mistake(path, "must be a quantity such as 500m, 2, 1.5 or 64Mi")


def _counted(size: int, schema: Json, what: str, path: Path, noun: str) -> Iterator[Mistake]:
    least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}", size)
    if size < least:
        few = "must not be empty" if least == 1 else f"must have at least {least} {noun}"
        yield Mistake(path, few)
    elif size > most:
        yield Mistake(path, f"must have at most {most} {noun}")


def _object(value: Mapping[str, Any], schema: Json, path: Path) -> Iterator[Mistake]:
    properties = schema.get("properties")
    if properties is None:
        each = schema.get("additionalProperties")
        if isinstance(each, dict):
            for name, part in value.items():
                yield from _check(part, each, (*path, name))
        return
    known = METADATA_FIELDS if path[-1:] == ("metadata",) else tuple(properties)
    meant: set[str] = set()
    for name, part in value.items():
        if name in properties:
            if part is not None:  # charts render `resources:` without a value
                yield from _check(part, properties[name], (*path, name))
        elif name not in known:
            near = nearest(name, (each for each in known if value.get(each) is None))
            meant.add(near or "")
            yield Mistake((*path, name), unknown_field(name, near or nearest(name, known)))
            if near in properties and part is not None:
                yield from _check(part, properties[near], (*path, name))
    for name in schema.get("required", ()):
        # A field that was misspelt is there, and one sentence about it is enough.
        if value.get(name) is None and name not in meant:
            yield Mistake((*path, name), "is required")


def unknown_field(
    name: str, near: str | None, *, of: str = "here", in_template: bool = True
) -> str:
    """What to say of a field that its object does not have. `in_template`: the object has a Job
    template, to which the field may belong."""
    sentence = f"is not a field {of}"
    if near is not None:
        return f"{sentence}; did you mean {near}?"
    if not in_template:
        return sentence
    home = next((home for home in HOMES if name in _at(home)["properties"]), None)
    if home is None:
        return sentence
    place = "".join("[]" if isinstance(part, int) else f".{part}" for part in home)
    return f"{sentence}; it belongs in jobTemplate{place}"


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
