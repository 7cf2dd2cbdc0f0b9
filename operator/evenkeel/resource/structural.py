"""JSON schema as pydantic writes it -> structural schema as the API server takes it.

Called by `crd`. It knows the shapes that our models produce and raises on any other: a wrong
guess would surface as a refused CRD in somebody's cluster.

Optional[X] becomes a nullable X. The API server prunes nulls of other fields on create and update,
but refuses them in a server-side apply; charts render `timeZone: null` all the time, and null is
how one field is exchanged for another. CEL's has() is false for a null.
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
"""OpenAPI keywords that pass as they are; `title` and the like are noise in a CRD."""

INT_OR_STRING = {"x-kubernetes-int-or-string": True}


class NotStructuralError(ValueError):
    """A model uses a shape that this pass does not know."""


def structural(schema: Mapping[str, Any]) -> Json:
    """The schema with references inlined, nulls dropped and nothing the API server refuses."""
    return _convert(schema, schema.get("$defs", {}), ())


def _convert(schema: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> Json:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        if name in inside:
            raise NotStructuralError(f"{name} holds itself; a CRD cannot say that")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        # beside wins: the description of the field says more than that of its type
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
