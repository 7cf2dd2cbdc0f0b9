"""Generates the CustomResourceDefinition: `python -m evenkeel.resource.crd` prints its YAML.

`crds/scheduledjobs.evenkeel.dev.yaml` holds this output, and a test fails when they differ. The
schema comes from `v1alpha1`, `v1alpha1_status`, `rules` and `template_schema`. The operator does
not import this module, which takes a second: `python -m evenkeel.resource.crd hash` prints the
module `schema_hash`, by which the operator knows the CRD that it was built with.
"""

import hashlib
import json
import sys
from typing import Any, TextIO

import yaml

from evenkeel.reasons import ConditionReason, ConditionType
from evenkeel.resource.names import GROUP, KIND, PLURAL, VERSION
from evenkeel.resource.record import NOT_SEEN_MESSAGE, NOT_SEEN_STATE
from evenkeel.resource.rules import RULES
from evenkeel.resource.structural import Json, structural
from evenkeel.resource.template_schema import job_template_schema
from evenkeel.resource.v1alpha1 import Spec
from evenkeel.resource.v1alpha1_status import Status

HEADER = """\
# Generated from operator/evenkeel/resource; do not edit. To write it again:
#   make crds
"""

HASH_MODULE = """\
\"\"\"Generated from `crd`; do not edit. To write it again: make crds\"\"\"

SCHEMA_HASH = "{hash}"
"""

DESCRIPTION = "Creates Jobs on a schedule and keeps the load even."

COLUMNS: tuple[tuple[str, str, str, str], ...] = (
    ("Schedule", "string", ".status.scheduleText", "When it runs"),
    ("State", "string", ".status.state", "How the schedule stands"),
    # not a date: kubectl prints dates in the future as <invalid>
    ("Next", "string", ".status.nextRunTime", "The next due time"),
    ("Last", "date", ".status.lastScheduleTime", "Time since the last due time launched"),
    ("Result", "string", ".status.lastResult", "How the last run ended"),
    ("Active", "integer", ".status.activeCount", "Runs that are active"),
    ("Age", "date", ".metadata.creationTimestamp", ""),
)
WIDE_COLUMNS: tuple[tuple[str, str, str, str], ...] = (
    ("Zone", "string", ".spec.timeZone", "Time zone"),
    ("Next Local", "string", ".status.nextLocal", "The next due time in the time zone"),
    ("Slot", "string", ".status.placement.slot", "Where the operator placed it"),
    ("Priority", "integer", ".spec.priority", "Of runs due together, higher starts first"),
    ("Images", "string", ".status.images", "The images of the template's containers"),
)


# Without it whatever waits for a new schedule (`helm install --wait`, `kubectl wait`) would find no
# condition that is not met, and go on before the operator has looked at it.
NOT_SEEN_YET: Json = {
    "state": NOT_SEEN_STATE,
    "conditions": [
        {
            "type": ConditionType.READY.value,
            "status": "Unknown",
            "reason": ConditionReason.PENDING.value,
            "message": NOT_SEEN_MESSAGE,
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
    ],
}


def crd() -> Json:
    """The whole manifest. The description of its schema names the schema's hash."""
    return _crd(f"{DESCRIPTION} Schema {schema_hash()}.")


def schema_hash() -> str:
    """Of everything in the manifest but the hash itself."""
    manifest = json.dumps(_crd(DESCRIPTION), sort_keys=True)
    return hashlib.sha256(manifest.encode()).hexdigest()[:12]


def _crd(description: str) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["sj"],
                "categories": ["evenkeel", "all"],
            },
            "scope": "Namespaced",
            "versions": [_version(description)],
        },
    }


def _version(description: str) -> Json:
    columns = [_column(column, wide=False) for column in COLUMNS]
    columns += [_column(column, wide=True) for column in WIDE_COLUMNS]
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": description,
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": _spec(),
                    "status": {
                        **structural(Status.model_json_schema(by_alias=True)),
                        "default": NOT_SEEN_YET,
                    },
                },
            }
        },
    }


def _column(column: tuple[str, str, str, str], *, wide: bool) -> Json:
    name, kind, path, described = column
    out: Json = {"name": name, "type": kind, "jsonPath": path}
    if described:
        out["description"] = described
    if wide:
        out["priority"] = 1
    return out


def _spec() -> Json:
    out = structural(Spec.model_json_schema(by_alias=True))
    described = out["properties"]["jobTemplate"]["description"]
    out["properties"]["jobTemplate"] = {"description": described, **job_template_schema()}
    out["x-kubernetes-validations"] = [rule.published() for rule in RULES]
    return out


class _Dumper(yaml.SafeDumper):
    """YAML in block style without anchors. Small objects stand on one line."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def render(out: TextIO) -> None:
    """Write the manifest as YAML. The same models always give the same bytes."""
    out.write(HEADER)
    yaml.dump(crd(), out, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=100)


if __name__ == "__main__":
    if sys.argv[1:] == ["hash"]:
        sys.stdout.write(HASH_MODULE.format(hash=schema_hash()))
    else:
        render(sys.stdout)
