"""Makes the structural schema of a Job template, from the models of the pinned `kubernetes`
package.

Only `crd` and the commands that read files (`template_mistakes`) import this module: the import
loads the Kubernetes client, which takes half a second. With this schema the API server refuses
wrong types, and templates without the most important fields, when a ScheduledJob is applied. The
schema does not replace the API server's validation of Jobs. Fields that the schema does not know
are kept.
"""

from collections.abc import Mapping
from typing import Any

from kubernetes.client.models import V1JobTemplateSpec

from evenkeel.resource.rules import MANUAL_SELECTOR, SELECTOR
from evenkeel.resource.structural import INT_OR_STRING, Json, NotStructuralError
from evenkeel.resource.text import cel
from evenkeel.resource.v1alpha1 import PRESERVE

REQUIRED: Mapping[str, tuple[str, ...]] = {
    "V1JobTemplateSpec": ("spec",),
    "V1JobSpec": ("template",),
    "V1PodTemplateSpec": ("spec",),
    "V1PodSpec": ("containers", "restartPolicy"),
    "V1Container": ("name", "image"),
    "V1ContainerPort": ("containerPort",),
    "V1EnvVar": ("name",),
    "V1Volume": ("name",),
    "V1VolumeMount": ("name", "mountPath"),
}
"""The fields without which the API server refuses a Job. OpenAPI calls more fields required, but
the API server fills some of them in (onPodConditions.status) or takes them as empty (iscsi.lun, a
header's value), and a template that works in a CronJob must work here."""

BOUNDS: Mapping[tuple[str, str], Json] = {
    ("V1PodSpec", "containers"): {"minItems": 1},
    ("V1PodSpec", "restartPolicy"): {"enum": ["OnFailure", "Never"]},
    ("V1Container", "name"): {"minLength": 1},
    ("V1Container", "image"): {"minLength": 1},
}
"""What the API server asks of every Job. A Job has no other restartPolicy; Always, the default of a
Pod, is what it refuses where the field is missing."""

QUANTITIES = frozenset(
    {
        ("V1ResourceRequirements", "limits"),
        ("V1ResourceRequirements", "requests"),
        ("V1VolumeResourceRequirements", "limits"),
        ("V1VolumeResourceRequirements", "requests"),
        ("V1PodSpec", "overhead"),
        ("V1EmptyDirVolumeSource", "sizeLimit"),
        ("V1ResourceFieldSelector", "divisor"),
    }
)
"""Fields that are quantities. The models call them strings, but manifests have `cpu: 1` and
`cpu: 0.5` too."""

LEFT_OUT = frozenset({("V1PodSpec", "ephemeralContainers")})
"""No Pod template may have this field, and it is a tenth of the whole schema."""

NULLABLE = {"nullable": True}
"""Charts render `resources:` without a value, and a CronJob accepts it."""

QUANTITY: Json = {
    "pattern": r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$",
    "minimum": 0,
    **PRESERVE,
}
"""The pattern is for strings and the minimum for numbers. No type: int-or-string would refuse
`cpu: 0.5`, which Kubernetes accepts. CEL's isQuantity costs more than a CRD may."""

_STRINGS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Json = {
    "type": "object",
    "properties": {
        "labels": {**_STRINGS, **NULLABLE},
        "annotations": {**_STRINGS, **NULLABLE},
        "finalizers": {"type": "array", "items": {"type": "string"}, **NULLABLE},
    },
    **PRESERVE,
}
_SELECTOR_RULES = [
    cel("!has(self.selector)", SELECTOR, path=".selector"),
    cel(
        "!has(self.manualSelector) || !self.manualSelector", MANUAL_SELECTOR, path=".manualSelector"
    ),
]


def job_template_schema() -> Json:
    """The schema of JobTemplateSpec, without descriptions. Unknown fields are preserved."""
    schema = V1JobTemplateSpec.model_json_schema(by_alias=True, mode="serialization")
    defs = schema["$defs"]
    out = _object("V1JobTemplateSpec", schema, defs)
    job_spec = out["properties"]["spec"]
    job_spec["properties"]["selector"] = {"type": "object", **PRESERVE, **NULLABLE}
    job_spec["x-kubernetes-validations"] = _SELECTOR_RULES
    return out


def _object(model: str, schema: Json, defs: Mapping[str, Json]) -> Json:
    if model == "V1ObjectMeta":
        return _METADATA
    required = REQUIRED.get(model, ())
    properties = {
        name: _property(model, name, part, defs)
        for name, part in schema["properties"].items()
        if (model, name) not in LEFT_OUT
    }
    for name in properties.keys() - set(required):
        properties[name] = {**properties[name], **NULLABLE}
    out: Json = {"type": "object", "properties": properties, **PRESERVE}
    if required:
        out["required"] = list(required)
    return out


def _property(model: str, name: str, schema: Json, defs: Mapping[str, Json]) -> Json:
    shape = {**_value(schema, defs), **BOUNDS.get((model, name), {})}
    if (model, name) not in QUANTITIES:
        return shape
    if shape == _STRINGS:
        return {"type": "object", "additionalProperties": QUANTITY}
    return QUANTITY


def _value(schema: Json, defs: Mapping[str, Json]) -> Json:
    match schema:
        case {"$ref": str(reference)}:
            model = reference.rsplit("/", 1)[-1]
            return _object(model, defs[model], defs)
        case {"anyOf": list(branches)}:
            return _choice([branch for branch in branches if branch.get("type") != "null"], defs)
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _value(items, defs)}
        case {"type": "object", "additionalProperties": {"type": str(kind)}}:
            return {"type": "object", "additionalProperties": {"type": kind}}
        case {"type": "object", "additionalProperties": True}:  # an object that has no fields yet
            return {"type": "object", **PRESERVE}
        case {"type": "string" | "integer" | "boolean" | "number" as kind}:
            return {"type": kind}
        case _:
            raise NotStructuralError(f"the Kubernetes client has a new shape: {schema}")


def _choice(branches: list[dict[str, Any]], defs: Mapping[str, Json]) -> Json:
    if len(branches) == 1:
        return _value(branches[0], defs)
    if [branch.get("type") for branch in branches] == ["integer", "string"]:
        return dict(INT_OR_STRING)
    raise NotStructuralError(f"the Kubernetes client has a new union: {branches}")
