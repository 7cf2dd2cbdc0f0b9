"""What the schemas of the CRDs refuse, and what they fill in: types, lengths, bounds, required
fields, defaults.

As far as the CRDs use it; neither texts of times nor the rules (CEL) are looked at. tests/contract
holds it to a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from evenkeel.resource.crd import crd
from evenkeel.resource.definitions import DEFINITIONS

INT64 = range(-(2**63), 2**63)

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "number": (int, float),
    "boolean": bool,
}


@cache
def schema_of(plural: str, part: str) -> dict[str, Any]:
    """That of the `spec` or the `status` of one of our resources."""
    (definition,) = (one for one in DEFINITIONS if one.plural == plural)
    version = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema: dict[str, Any] = version["properties"][part]
    return schema


def defaulted(value: object, schema: dict[str, Any]) -> Any:
    """With what the schema fills in."""
    if isinstance(value, list):
        return [defaulted(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    parts = schema.get("properties") or {}
    filled = dict(value)
    for name, part in parts.items():
        if name not in filled and "default" in part:
            filled[name] = part["default"]
        if name in filled:
            filled[name] = defaulted(filled[name], part)
    return filled


def refusals(value: object, schema: dict[str, Any], path: str) -> Iterator[str]:
    """Each field that is refused, with a reason."""
    if value is None and schema.get("nullable"):
        return
    kind = schema.get("type")
    if kind is not None and not _is_a(value, kind):
        yield f"{path}: must be of type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: Unsupported value: {value!r}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{path}: Too long: may not be more than {schema['maxLength']} bytes"
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        yield f"{path}: should be greater than or equal to {schema['minimum']}"
    if isinstance(value, list):
        most = schema.get("maxItems", len(value))
        if len(value) > most:
            yield f"{path}: Too many: {len(value)}: must have at most {most} items"
        for number, item in enumerate(value):
            yield from refusals(item, schema.get("items") or {}, f"{path}[{number}]")
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}.{name}: Required value"
        for name, part in (schema.get("properties") or {}).items():
            if name in value:
                yield from refusals(value[name], part, f"{path}.{name}")


def _is_a(value: object, kind: str) -> bool:
    if kind == "integer":  # a larger one is read as a float
        return isinstance(value, int) and not isinstance(value, bool) and value in INT64
    if kind == "number" and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])
