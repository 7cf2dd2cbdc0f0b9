"""Writes what is generated in the chart: `python -m tests.chart.generate`.

That is the templates of the CRDs and, in values.schema.json, the settings that `config` may hold;
with `--readme`, which helm-docs writes, README.md too. `make crds` and `make chart` call it, and a
test fails when the files differ from it. The rest of the schema is written by hand.
"""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.cluster.harness.helm import CHART, write_readme

from evenkeel.resource import crd
from evenkeel.resource.definitions import DEFINITIONS, Definition
from evenkeel.settings import Settings

Json = dict[str, Any]

SET_BY_THE_CHART = ("healthListen", "listen", "namespaces", "data", "store.url")
"""Settings that `config` may not hold. The schema lets them through, because the chart refuses them
with a sentence that names the value to use instead."""

_KEYWORDS = (
    *("type", "enum", "default", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)

_METADATA = """\
metadata:
  name: @NAME@
  labels:
    {{- include "evenkeel.labels" . | nindent 4 }}
  {{- if or .Values.crds.keep .Values.crds.annotations }}
  annotations:
    {{- $keep := ternary (dict "helm.sh/resource-policy" "keep") dict .Values.crds.keep }}
    {{- merge dict $keep (.Values.crds.annotations | default dict) | toYaml | nindent 4 }}
  {{- end }}
"""


def generate(chart: Path, *, readme: bool) -> None:
    for definition in DEFINITIONS:
        template = chart / "templates" / f"crd-{definition.plural}.yaml"
        template.write_text(crd_template(_crd_text(definition)))
    schema = chart / "values.schema.json"
    schema.write_text(schema_text(json.loads(schema.read_text())))
    if readme:
        write_readme(chart)


def crd_template(text: str) -> str:
    """The CRD of `text`, switched by the values `crds`."""
    comment, _, body = text.partition("apiVersion:")
    # Helm would read them as its own.
    body = "apiVersion:" + body.replace("{{", '{{ "{{" }}')
    found = re.findall(r"^metadata: \{name: (\S+)\}\n", body, flags=re.MULTILINE)
    if len(found) != 1:
        raise SystemExit("the CRD's metadata is not the one line that the chart's template needs")
    line = f"metadata: {{name: {found[0]}}}\n"
    body = body.replace(line, _METADATA.replace("@NAME@", found[0]))
    return f"{{{{- if .Values.crds.enabled }}}}\n{comment}{body}{{{{- end }}}}\n"


def schema_text(schema: Json) -> str:
    """The whole of values.schema.json, with today's settings in it."""
    schema["properties"]["config"] = config_schema(Settings.model_json_schema(by_alias=True))
    return json.dumps(schema, indent=2) + "\n"


def config_schema(model: Json) -> Json:
    """The schema of the settings file, where `placement.mode` is `mode` in a mapping."""
    properties: Json = {}
    for name, described in model["properties"].items():
        if name in SET_BY_THE_CHART:
            continue
        kept = {word: described[word] for word in _KEYWORDS if word in described}
        if "type" not in kept:
            raise SystemExit(
                f"the setting {name} has no one type: say here how helm should check it"
            )
        _put(properties, name, kept)
    for name in SET_BY_THE_CHART:
        _put(properties, name, {})
    return _closed(properties)


def _put(properties: Json, name: str, schema: Json) -> None:
    outer, _, inner = name.partition(".")
    if inner:
        properties.setdefault(outer, _closed({}))["properties"][inner] = schema
    else:
        properties[outer] = schema


def _closed(properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _crd_text(definition: Definition) -> str:
    written = io.StringIO()
    crd.render(definition, written)
    return written.getvalue()


if __name__ == "__main__":
    generate(CHART, readme="--readme" in sys.argv)
