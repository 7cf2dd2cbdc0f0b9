"""The chart's schema and default values, and what they hold, by dotted paths."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml
from tests.chart.rendered import Json
from tests.cluster.harness.helm import CHART

SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: Json = yaml.safe_load((CHART / "values.yaml").read_text())


def objects(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every schema of the tree that takes a mapping, with its path."""
    if "object" in schema.get("type", ()):
        yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from objects(part, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from objects(schema["items"], f"{path}[]")


def leaves(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Every value that has no named parts."""
    if properties := schema.get("properties"):
        for name, part in properties.items():
            yield from leaves(part, f"{path}.{name}".lstrip("."))
    elif schema.get("items", {}).get("properties"):
        yield from leaves(schema["items"], f"{path}[]")
    else:
        yield path, schema


def paths(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no mapping with something in it."""
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from paths(value, f"{path}.{name}".lstrip("."))
    elif isinstance(values, list) and values and all(isinstance(each, dict) for each in values):
        for each in values:
            yield from paths(each, f"{path}[]")
    else:
        yield path, values


def within(path: str, known: set[str]) -> str:
    """The value that a path belongs to: of `nodeSelector.kubernetes.io/os`, nodeSelector."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        for name in (".".join(parts[:end]), ".".join(parts[:end]).removesuffix("[]")):
            if name in known:
                return name
    return path
