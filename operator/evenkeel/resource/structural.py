"""Converts JSON schema, as pydantic generates it, to the structural schema that a CRD needs.

`crd` calls `structural`. It knows the constructs that our models produce and raises for any other:
otherwise an API server would refuse the CRD, in somebody's cluster.

Optional[X] becomes a nullable X. Of a field that is not nullable, the API server drops a null on
create and update, but refuses it in a server-side apply. Charts often render `timeZone: null`, and
a user who replaces one field by another sets the old one to null. CEL's has() is false for a null.
"""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

KEPT = (
    "type",
    "format",
    "description",
    "default",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "maxItems",
    "required",
    "nullable",
)
"""Keywords that are copied. Others, such as `title`, have no use in a CRD."""

INT_OR_STRING = {"x-kubernetes-int-or-string": True}


class NotStructuralError(ValueError):
    """A model has a construct that `structural` does not know."""


def structural(schema: Mapping[str, Any]) -> Json:
    """The schema with references inlined, and with nullable fields instead of unions with null."""
    return _convert(schema, schema.get("$defs", {}), ())


def _convert(schema: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> Json:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name in inside:
            raise NotStructuralError(f"{name} holds itself; a CRD cannot say that")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        # The field overrides its type: its description says more.
        return _convert({**defs[name], **beside}, defs, (*inside, name))
    if "anyOf" in schema:
        return _convert(_without_null(schema), defs, inside)
    out = {key: schema[key] for key in KEPT if key in schema and schema[key] is not None}
    out.update((key, value) for key, value in schema.items() if key.startswith("x-kubernetes-"))
    _refuse_unknown(schema)
    if "properties" in schema:
        out["properties"] = {
            name: _convert(part, defs, inside) for name, part in schema["properties"].items()
        }
    elif isinstance(schema.get("additionalProperties"), Mapping):
        out["additionalProperties"] = _convert(schema["additionalProperties"], defs, inside)
    if "items" in schema:
        out["items"] = _convert(schema["items"], defs, inside)
    return out


def _without_null(schema: Mapping[str, Any]) -> Json:
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    branches = [branch for branch in schema["anyOf"] if branch.get("type") != "null"]
    if len(branches) < len(schema["anyOf"]):
        beside["nullable"] = True
    if len(branches) == 1:
        return {**branches[0], **beside}
    if {branch.get("type") for branch in branches} == {"integer", "string"}:
        return {**INT_OR_STRING, **beside}
    raise NotStructuralError(f"a union of {branches} has no structural form")


def _refuse_unknown(schema: Mapping[str, Any]) -> None:
    for keyword in ("oneOf", "allOf", "not", "const", "exclusiveMinimum", "exclusiveMaximum"):
        if keyword in schema:
            raise NotStructuralError(f"{keyword} in {schema}")
