"""The generated CRDs: they are what lies in crds/, and they are what an API server takes."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.resource.cases import Json

from evenkeel.manifests.yaml12 import load_all
from evenkeel.resource import schema_hash as schema_hash_module
from evenkeel.resource.crd import crd, hash_module, render, schema_hash
from evenkeel.resource.definitions import DEFINITIONS, Definition
from evenkeel.resource.request_rules import MUTABLE
from evenkeel.resource.schema_hash import SCHEMA_HASHES
from evenkeel.resource.structural import NotStructuralError, structural

CRDS = Path(__file__).parents[3] / "crds"


def schema_of(definition: Definition) -> Json:
    found: Json = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


SCHEMAS = {each.kind: schema_of(each) for each in DEFINITIONS}
SPEC: Json = SCHEMAS["ScheduledJob"]["properties"]["spec"]
STATUS: Json = SCHEMAS["ScheduledJob"]["properties"]["status"]
REQUEST_SPEC: Json = SCHEMAS["RunRequest"]["properties"]["spec"]
REQUEST_STATUS: Json = SCHEMAS["RunRequest"]["properties"]["status"]
POD: Json = SPEC["properties"]["jobTemplate"]["properties"]["spec"]["properties"]["template"][
    "properties"
]["spec"]

of_both = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.plural)
schemas_of_both = pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)

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


def file_of(definition: Definition) -> str:
    return (CRDS / f"{definition.plural}.evenkeel.dev.yaml").read_text()


@of_both
def test_the_file_in_crds_is_what_the_models_say(definition: Definition) -> None:
    written = io.StringIO()
    render(definition, written)
    assert file_of(definition) == written.getvalue(), "run: make crds"


def test_there_is_a_file_of_each_and_no_other() -> None:
    names = {f"{each.plural}.evenkeel.dev.yaml" for each in DEFINITIONS}
    assert {path.name for path in CRDS.iterdir()} == names


def test_the_operator_knows_the_schemas_that_it_was_built_with() -> None:
    """`make crds` writes the hashes again."""
    assert {each.kind: schema_hash(each) for each in DEFINITIONS} == SCHEMA_HASHES
    assert Path(schema_hash_module.__file__).read_text() == hash_module()
    for kind, schema in SCHEMAS.items():
        assert schema["description"].endswith(f" Schema {SCHEMA_HASHES[kind]}.")


@of_both
def test_the_file_reads_as_what_was_generated(definition: Definition) -> None:
    assert list(load_all(file_of(definition))) == [crd(definition)]


@of_both
def test_plain_kubectl_apply_can_annotate_it(definition: Definition) -> None:
    annotation = json.dumps(crd(definition), separators=(",", ":"))
    assert len(annotation) < 200_000, "the limit of all annotations together is 262,144 bytes"


@schemas_of_both
def test_there_is_no_keyword_that_an_api_server_refuses(schema: Json) -> None:
    found = {keyword for _, each in schemas(schema) for keyword in each}
    assert found <= STRUCTURAL_KEYWORDS


@schemas_of_both
def test_every_schema_has_a_type_or_says_why_not(schema: Json) -> None:
    untyped = [
        path
        for path, each in schemas(schema)
        if "type" not in each
        and not each.get("x-kubernetes-int-or-string")
        and not each.get("x-kubernetes-preserve-unknown-fields")
    ]
    assert untyped == []


@schemas_of_both
def test_no_default_holds_a_null(schema: Json) -> None:
    """create, server-side apply and helm would be refused, only kubectl apply would not."""
    defaults = [each["default"] for _, each in schemas(schema) if "default" in each]
    assert "null" not in json.dumps(defaults)


@schemas_of_both
def test_what_cel_looks_at_is_bounded(schema: Json) -> None:
    bounds = {"string": "maxLength", "array": "maxItems"}
    unbounded = [
        path
        for path, each in schemas(schema["properties"]["spec"])
        if "x-kubernetes-validations" in each
        and bounds.get(each.get("type", ""), "type") not in each
    ]
    assert unbounded == []


@schemas_of_both
def test_every_rule_has_a_sentence(schema: Json) -> None:
    rules = [
        rule for _, each in schemas(schema) for rule in each.get("x-kubernetes-validations", [])
    ]
    assert len(rules) > 15
    assert all(len(rule["message"]) > 10 for rule in rules)


@pytest.mark.parametrize(
    ("root", "at"),
    [
        pytest.param(SPEC, "", id="a schedule"),
        pytest.param(SPEC["properties"]["jobTemplate"], ".jobTemplate", id="the Job template"),
        pytest.param(REQUEST_SPEC, "", id="a request"),
    ],
)
def test_what_may_be_absent_may_be_null(root: Json, at: str) -> None:
    """Server-side apply refuses nulls that create prunes; a null default fills itself in."""
    stubborn = [
        f"{path}.{name}"
        for path, schema in schemas(root, at)
        for name, part in schema.get("properties", {}).items()
        if name not in schema.get("required", [])
        and "default" not in part
        and not part.get("nullable")
    ]
    assert stubborn == []


def test_each_field_of_a_request_is_fixed_or_known_to_change() -> None:
    fixed = {
        rule["fieldPath"].removeprefix(".")
        for rule in REQUEST_SPEC["x-kubernetes-validations"]
        if "oldSelf" in rule["rule"]
    }
    assert fixed == set(REQUEST_SPEC["properties"]) - set(MUTABLE)
    assert set(REQUEST_SPEC["properties"]) > set(MUTABLE)


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
        "trigger",
    }
    bounds = {
        name: STATUS["properties"][name]["maxItems"]
        for name in ("upcoming", "active", "recent", "conditions")
    }
    assert bounds == {"upcoming": 5, "active": 50, "recent": 10, "conditions": 16}
    internal = STATUS["properties"]["internal"]["properties"]
    assert (internal["waiting"]["maxItems"], internal["durations"]["maxItems"]) == (128, 10)
    assert internal["spans"]["maxItems"] == 4


def test_the_status_of_a_request_has_the_promised_fields() -> None:
    assert set(REQUEST_STATUS["properties"]) == {
        "observedGeneration",
        "state",
        "scheduleUid",
        "done",
        "total",
        "counts",
        "dues",
        "recent",
        "active",
        "consecutiveFailures",
        "startedAt",
        "finishedAt",
        "plan",
        "conditions",
    }
    assert set(REQUEST_STATUS["properties"]["plan"]["properties"]) == {
        "count",
        "bits",
        "mark",
        "timing",
    }
    bounds = {
        name: REQUEST_STATUS["properties"][name]["maxItems"]
        for name in ("active", "recent", "conditions")
    }
    assert bounds == {"active": 100, "recent": 10, "conditions": 16}
    assert REQUEST_STATUS["properties"]["dues"]["properties"]["first"]["maxItems"] == 20


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(STATUS, id="the status"),
        pytest.param(REQUEST_STATUS, id="the status of a request"),
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


@of_both
def test_columns_are_plain_fields_of_the_schema(definition: Definition) -> None:
    for _, kind, path, _ in (*definition.columns, *definition.wide_columns):
        at: Json = SCHEMAS[definition.kind]
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
