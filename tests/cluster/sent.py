"""One of our resources as kubectl sends it and shows it, for the tests of the CRDs."""

import json
import re
import subprocess
from dataclasses import dataclass
from typing import Any

import yaml
from tests.cluster.harness import Cluster
from tests.unit.resource.cases import Json

VERBS = {
    "create": ("create",),
    "apply": ("apply",),
    "server-side apply": ("apply", "--server-side"),
}

Done = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Sent:
    """`short` is the resource's short name."""

    kind: str
    short: str

    def manifest(self, name: str, spec: Any, **metadata: Any) -> Json:
        return {
            "apiVersion": "evenkeel.dev/v1alpha1",
            "kind": self.kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }

    def send(self, server: Cluster, ns: str, specs: dict[str, Any], *arguments: str) -> Done:
        # One document each: kubectl checks a List by the client's rules instead of the server's.
        # YAML: kubectl before 1.33 refuses a second document after one of JSON.
        text = yaml.safe_dump_all(self.manifest(name, each) for name, each in specs.items())
        return server.kubectl(*arguments, "-n", ns, "-f", "-", input=text, check=False)

    def get(self, server: Cluster, ns: str, name: str) -> Json:
        out = server.kubectl("get", self.short, name, "-n", ns, "-o", "json").stdout
        found: Json = json.loads(out)
        return found

    def columns(self, server: Cluster, ns: str, *arguments: str) -> list[list[str]]:
        lines = server.kubectl("get", self.short, "-n", ns, *arguments).stdout.splitlines()
        return [re.split(r"\s{2,}", line.strip()) for line in lines]

    def refusals(self, server: Cluster, bad: list[Json], *verb: str) -> tuple[dict[str, str], Done]:
        """By name of the object: what the server said to each bad spec, by one verb."""
        specs = {f"bad-{number}": spec for number, spec in enumerate(bad)}
        done = self.send(server, "default", specs, *verb, "--dry-run=server")
        answers = {
            found[1]: line
            for line in done.stderr.splitlines()
            if (found := re.search(r"\b(bad-[0-9]+)\b", line)) is not None
        }
        return answers, done
