"""What the chart renders to, for its tests: `render(helm, values)`, and `refusal(helm, values)`."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.harness.helm import CHART, Helm

Json = dict[str, Any]
VALUES = Path(__file__).parent / "values"
FULL: Json = yaml.safe_load((VALUES / "full.yaml").read_text())
SWITCHES: Json = {
    "crds": {"enabled": True},
    "rbac": {"create": True},
    "serviceAccount": {"create": True},
    "serviceMonitor": {"schedules": {"enabled": True}},
    "store": {"existingSecret": {"name": ""}, "persistence": {"existingClaim": ""}},
}
"""They are off in FULL, where no value is at its default; with the last two off, what FULL says of
another store counts."""

RULES: list[Json] = [
    {
        "apiGroups": ["evenkeel.dev"],
        "resources": ["scheduledjobs"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/status"], "verbs": ["patch"]},
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/finalizers"], "verbs": ["update"]},
    {
        "apiGroups": ["evenkeel.dev"],
        "resources": ["runrequests"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": ["evenkeel.dev"], "resources": ["runrequests/status"], "verbs": ["patch"]},
    {
        "apiGroups": ["batch"],
        "resources": ["jobs"],
        "verbs": ["get", "list", "watch", "create", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list", "create", "patch"]},
]
"""What the operator may do, and no more."""

SCHEMA_REFUSES = (
    "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
    "evenkeel:\n"
)


@dataclass(frozen=True)
class Rendered:
    objects: list[Json]

    def one(self, kind: str, name: str | None = None) -> Json:
        (found,) = (
            each
            for each in self.objects
            if each["kind"] == kind and name in (None, each["metadata"]["name"])
        )
        return found

    def names(self) -> set[tuple[str, str, str]]:
        """Kind, namespace and name of every object."""
        return {
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            for each in self.objects
        }

    @property
    def pod(self) -> Json:
        pod: Json = self.one("Deployment")["spec"]["template"]
        return pod

    @property
    def container(self) -> Json:
        (container,) = self.pod["spec"]["containers"]
        found: Json = container
        return found


def text(helm: Helm, *values: Json, release: str = "evenkeel", namespace: str = "evenkeel") -> str:
    """The manifests as helm prints them. Of several values the later overrides the earlier."""
    nothing: Json = {}
    merged = functools.reduce(_merged, values, nothing)
    arguments = ["template", release, str(CHART), "--namespace", namespace, "--values", "-"]
    return helm(*arguments, input=json.dumps(merged)).stdout


def render(helm: Helm, *values: Json, **more: Any) -> Rendered:
    documents = yaml.load_all(text(helm, *values, **more), Loader=yaml.CSafeLoader)
    return Rendered([each for each in documents if each])


def refusal(helm: Helm, values: Json, *, release: str = "evenkeel") -> str:
    """The one sentence in which helm refuses these values."""
    said = complaints(helm, values, release=release)
    assert len(said) == 1, said
    return said[0]


def complaints(helm: Helm, values: Json, *, release: str = "evenkeel") -> list[str]:
    """What helm says of values that it refuses."""
    arguments = ["template", release, str(CHART), "--namespace", "evenkeel", "--values", "-"]
    done = helm(*arguments, input=json.dumps(values), check=False)
    assert done.returncode != 0, "helm takes these values"
    assert done.stdout == ""
    error = re.sub(r"^level=INFO .*\n", "", done.stderr, flags=re.MULTILINE)
    if error.startswith(SCHEMA_REFUSES):
        lines = error.removeprefix(SCHEMA_REFUSES).strip().splitlines()
        return [line.removeprefix("- ") for line in lines]
    found = re.fullmatch(r"Error: execution error at \(\S+\): (.*)\n\nUse --debug flag .*\n", error)
    assert found, error
    return [found[1]]


def _merged(base: Json, over: Json) -> Json:
    out = dict(base)
    for name, value in over.items():
        old = out.get(name)
        out[name] = (
            _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return out
