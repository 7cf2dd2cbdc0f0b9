"""Generates the CustomResourceDefinitions: `python -m evenkeel.resource.crd scheduledjobs` prints
the YAML of one, and `runrequests` that of the other.

The files in `crds/` hold this output, and a test fails when they differ. What they say comes from
`definitions`. The operator does not import this module, which takes a second: `python -m
evenkeel.resource.crd hash` prints the module `schema_hash`, by which the operator knows the CRDs
that it was built with.
"""

import hashlib
import json
import sys
from typing import Any, TextIO

import yaml

from evenkeel.resource.definitions import DEFINITIONS, SCHEDULED_JOB, Column, Definition
from evenkeel.resource.names import GROUP, VERSION
from evenkeel.resource.structural import Json

HEADER = """\
# Generated from operator/evenkeel/resource; do not edit. To write it again:
#   make crds
"""

HASH_MODULE = """\
\"\"\"Generated from `crd`; do not edit. To write it again: make crds\"\"\"

SCHEMA_HASHES = {{
{rows}
}}
"""


def crd(definition: Definition = SCHEDULED_JOB) -> Json:
    """The whole manifest. The description of its schema names the schema's hash."""
    return _crd(definition, f"{definition.description} Schema {schema_hash(definition)}.")


def schema_hash(definition: Definition) -> str:
    """Of everything in the manifest but the hash itself."""
    manifest = json.dumps(_crd(definition, definition.description), sort_keys=True)
    return hashlib.sha256(manifest.encode()).hexdigest()[:12]


def _crd(definition: Definition, description: str) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                "shortNames": [definition.short_name],
                "categories": list(definition.categories),
            },
            "scope": "Namespaced",
            "versions": [_version(definition, description)],
        },
    }


def _version(definition: Definition, description: str) -> Json:
    columns = [_column(column, wide=False) for column in definition.columns]
    columns += [_column(column, wide=True) for column in definition.wide_columns]
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
                    "spec": definition.spec(),
                    "status": {**definition.status(), "default": definition.not_seen_yet},
                },
            }
        },
    }


def _column(column: Column, *, wide: bool) -> Json:
    name, kind, path, described = column
    out: Json = {"name": name, "type": kind, "jsonPath": path}
    if described:
        out["description"] = described
    if wide:
        out["priority"] = 1
    return out


class _Dumper(yaml.SafeDumper):
    """YAML in block style without anchors. Small objects stand on one line."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def render(definition: Definition, out: TextIO) -> None:
    """Write the manifest as YAML. The same models always give the same bytes."""
    out.write(HEADER)
    manifest = crd(definition)
    yaml.dump(manifest, out, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=100)


def hash_module() -> str:
    """The text of `schema_hash`."""
    rows = [f'    "{each.kind}": "{schema_hash(each)}",' for each in DEFINITIONS]
    return HASH_MODULE.format(rows="\n".join(rows))


if __name__ == "__main__":
    (_WANTED,) = sys.argv[1:]
    if _WANTED == "hash":
        sys.stdout.write(hash_module())
    else:
        render(next(each for each in DEFINITIONS if each.plural == _WANTED), sys.stdout)
