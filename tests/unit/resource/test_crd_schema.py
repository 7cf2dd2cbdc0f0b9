"""The generated CRD: it is what lies in crds/, and it is what an API server takes."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.resource.cases import Json

from evenkeel.manifests.yaml12 import load_all
from evenkeel.resource.crd import COLUMNS, WIDE_COLUMNS, crd, render, schema_hash
from evenkeel.resource.schema_hash import SCHEMA_HASH
from evenkeel.resource.structural import NotStructuralError, structural

FILE = Path(__file__).parents[3] / "crds" / "scheduledjobs.evenkeel.dev.yaml"
VERSION: Json = crd()["spec"]["versions"][0]
SCHEMA: Json = VERSION["schema"]["openAPIV3Schema"]
SPEC: Json = SCHEMA["properties"]["spec"]
STATUS: Json = SCHEMA["properties"]["status"]
POD: Json = SPEC["properties"]["jobTemplate"]["properties"]["spec"]["properties"]["template"][
    "properties"
]["spec"]

STRUCTURAL_KEYWORDS = {
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
    "minItems",
    "nullable",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
}


def schemas(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema of the tree with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from schemas(part, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from schemas(schema[inner], f"{path}[]")


def test_the_file_in_crds_is_what_the_models_say() -> None:
    written = io.StringIO()
    render(written)
    assert FILE.read_text() == written.getvalue(), "run: python -m evenkeel.resource.crd > crds/..."


def test_the_operator_knows_the_schema_that_it_was_built_with() -> None:
    """`make crds` writes the hash again."""
    assert schema_hash() == SCHEMA_HASH
    described = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
    assert described.endswith(f" Schema {SCHEMA_HASH}.")


def test_the_file_reads_as_what_was_generated() -> None:
    assert list(load_all(FILE.read_text())) == [crd()]


def test_plain_kubectl_apply_can_annotate_it() -> None:
    annotation = json.dumps(crd(), separators=(",", ":"))
    assert len(annotation) < 200_000, "the limit of all annotations together is 262,144 bytes"


def test_there_is_no_keyword_that_an_api_server_refuses() -> None:
    found = {keyword for _, schema in schemas(SCHEMA) for keyword in schema}
    assert found <= STRUCTURAL_KEYWORDS


def test_every_schema_has_a_type_or_says_why_not() -> None:
    untyped = [
        path
        for path, schema in schemas(SCHEMA)
        if "type" not in schema
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ]
    assert untyped == []


def test_no_default_holds_a_null() -> None:
    """create, server-side apply and helm would be refused, only kubectl apply would not."""
    assert "null" not in json.dumps([s["default"] for _, s in schemas(SCHEMA) if "default" in s])


def test_what_cel_looks_at_is_bounded() -> None:
    unbounded = [
        path
        for path, schema in schemas(SPEC)
        if "x-kubernetes-validations" in schema
        and schema.get("type") == "string"
        and "maxLength" not in schema
    ]
    assert unbounded == []


def test_every_rule_has_a_sentence() -> None:
    rules = [
        rule for _, schema in schemas(SCHEMA) for rule in schema.get("x-kubernetes-validations", [])
    ]
    assert len(rules) > 25
    assert all(len(rule["message"]) > 10 for rule in rules)


def test_what_may_be_absent_may_be_null() -> None:
    """Server-side apply refuses nulls that create prunes; a null default fills itself in."""
    template = SPEC["properties"]["jobTemplate"]
    stubborn = [
        f"{path}.{name}"
        for path, schema in [*schemas(SPEC), *schemas(template, ".jobTemplate")]
        for name, part in schema.get("properties", {}).items()
        if name not in schema.get("required", [])
        and "default" not in part
        and not part.get("nullable")
    ]
    assert stubborn == []


def test_fields_that_a_rule_forbids_by_their_presence_have_no_default() -> None:
    for name in ("schedule", "hourly", "interval", "at", "dst", "dayMatch"):
        assert "default" not in SPEC["properties"][name]
    assert "default" not in SPEC["properties"]["placement"]["properties"]["window"]


def test_the_spec_has_every_field_of_a_cronjob() -> None:
    assert set(SPEC["properties"]) > {
        "schedule",
        "timeZone",
        "startingDeadlineSeconds",
        "concurrencyPolicy",
        "suspend",
        "jobTemplate",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
    }


def test_the_status_has_the_promised_fields() -> None:
    assert set(STATUS["properties"]) == {
        "observedGeneration",
        "state",
        "scheduleText",
        "images",
        "nextRunTime",
        "nextLocal",
        "upcoming",
        "lastScheduleTime",
        "lastSuccessfulTime",
        "lastFailureTime",
        "lastResult",
        "active",
        "activeCount",
        "recent",
        "consecutiveFailures",
        "counts",
        "countsSince",
        "pause",
        "placement",
        "conditions",
        "internal",
    }
    assert set(STATUS["properties"]["internal"]["properties"]) == {
        "mark",
        "timing",
        "suspendedSince",
        "resumedAt",
        "waiting",
        "unnamedActive",
        "durations",
        "spans",
        "templateHash",
    }
    bounds = {
        name: STATUS["properties"][name]["maxItems"]
        for name in ("upcoming", "active", "recent", "conditions")
    }
    assert bounds == {"upcoming": 5, "active": 50, "recent": 10, "conditions": 16}
    internal = STATUS["properties"]["internal"]["properties"]
    assert (internal["waiting"]["maxItems"], internal["durations"]["maxItems"]) == (128, 10)
    assert internal["spans"]["maxItems"] == 4


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(STATUS, id="the status"),
        pytest.param(SPEC["properties"]["jobTemplate"], id="the Job template"),
    ],
)
def test_unknown_fields_are_kept_at_every_level_of(root: Json) -> None:
    pruning = [
        path
        for path, schema in schemas(root)
        if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields")
    ]
    assert pruning == []


def test_columns_are_plain_fields_of_the_schema() -> None:
    for _, kind, path, _ in (*COLUMNS, *WIDE_COLUMNS):
        at: Json = SCHEMA
        names = path.removeprefix(".").split(".")
        if names[0] == "metadata":
            continue
        for name in names:
            at = at["properties"][name]
        assert at.get("type", "string") == ("string" if kind == "date" else kind), path


def test_only_what_the_api_requires_is_required_of_a_pod() -> None:
    assert POD["required"] == ["containers", "restartPolicy"]
    assert POD["properties"]["containers"]["items"]["required"] == ["name", "image"]
    assert "required" not in POD["properties"]["volumes"]["items"]["properties"]["iscsi"]


CONTAINER = POD["properties"]["containers"]["items"]["properties"]
QUANTITY: Json = CONTAINER["resources"]["properties"]["limits"]["additionalProperties"]


def test_quantities_take_numbers_and_ports_take_names() -> None:
    assert QUANTITY["x-kubernetes-preserve-unknown-fields"]
    assert "type" not in QUANTITY
    port = CONTAINER["livenessProbe"]["properties"]["httpGet"]["properties"]["port"]
    assert port["x-kubernetes-int-or-string"]


@pytest.mark.parametrize(
    "text", ["1", "0.5", "1.", ".5", "+1", "100m", "1Gi", "1e3", "1E3", "1e-3", "5k", "2Ei", "7n"]
)
def test_quantities_of_every_kind_match(text: str) -> None:
    assert re.fullmatch(QUANTITY["pattern"], text)


@pytest.mark.parametrize(
    "text", ["", "lots", "1GB", "1gi", "1 Gi", "-1", "1K", "Gi", ".", "1.5.1", "1e", "0x10", "1\n"]
)
def test_what_is_no_quantity_does_not_match(text: str) -> None:
    assert not re.fullmatch(QUANTITY["pattern"], text)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"anyOf": [{"type": "string"}, {"type": "boolean"}]}, id="a union"),
        pytest.param({"type": "integer", "exclusiveMinimum": 0}, id="an exclusive bound"),
        pytest.param({"const": 1}, id="a constant"),
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}},
            id="a type that holds itself",
        ),
    ],
)
def test_a_shape_without_structural_form_is_an_error_at_generation(schema: dict[str, Any]) -> None:
    with pytest.raises(NotStructuralError):
        structural(schema)
