"""The chart's files: what is generated is up to date, and the schema knows exactly the values."""

from __future__ import annotations

import functools
import json
import re
import shutil
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.chart import generate
from tests.chart.rendered import FULL, SWITCHES, Json, render
from tests.chart.schema import DEFAULTS, SCHEMA, leaves, objects, paths, within
from tests.cluster.harness.cluster import OUR_CRDS
from tests.cluster.harness.helm import CHART, Helm

from evenkeel.resource.crd import crd
from evenkeel.resource.definitions import DEFINITIONS, Definition

# Labels and the like, whose keys users choose, and parts of a Pod, whose keys Kubernetes knows.
FREE = {
    *("global", "commonLabels", "podLabels", "podAnnotations", "deploymentAnnotations"),
    *("crds.annotations", "serviceAccount.annotations", "metrics.service.annotations"),
    *("serviceMonitor.labels", "serviceMonitor.annotations", "nodeSelector"),
    *("resources.requests", "resources.limits"),
    *("podSecurityContext", "securityContext", "affinity", "tolerations[]", "dnsConfig"),
    *("extraEnv[].valueFrom", "extraVolumes[]", "extraVolumeMounts[]", "extraObjects[]"),
    *("serviceMonitor.relabelings[]", "serviceMonitor.metricRelabelings[]"),
    *("networkPolicy.ingressFrom[]", "networkPolicy.dnsTo[]", "networkPolicy.apiServerTo[]"),
    *("networkPolicy.databaseTo[]", "networkPolicy.extraEgress[]"),
}


def test_the_version_is_the_operators() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]

    assert chart["version"] == chart["appVersion"] == project["version"]


def test_what_is_generated_is_up_to_date(helm_docs: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "evenkeel"
    shutil.copytree(CHART, fresh)

    generate.generate(fresh, readme=True)

    assert _contents(fresh) == _contents(CHART), "run: make chart"


def test_a_crd_that_holds_braces_is_no_template(helm: Helm, tmp_path: Path) -> None:
    braces = '{{ .Values.secret }} and "{{ "'
    described = json.dumps(f"An expression such as {braces}.")
    document = f"apiVersion: v1\nkind: X\nmetadata: {{name: x}}\nspec: {{text: {described}}}\n"
    chart = tmp_path / "evenkeel"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "crd-scheduledjobs.yaml").write_text(generate.crd_template(document))

    shown = helm("template", str(chart), "--show-only", "templates/crd-scheduledjobs.yaml").stdout

    assert yaml.safe_load(shown)["spec"]["text"] == f"An expression such as {braces}."


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.plural)
def test_the_rendered_crd_is_that_of_the_models(helm: Helm, definition: Definition) -> None:
    expected = crd(definition)
    rendered = render(helm).one("CustomResourceDefinition", expected["metadata"]["name"])

    metadata = rendered.pop("metadata")
    assert metadata["name"] == expected.pop("metadata")["name"]
    assert set(metadata) == {"name", "labels", "annotations"}
    assert rendered == expected


@pytest.mark.parametrize("name", OUR_CRDS)
def test_the_crd_is_kept_only_if_asked_for(helm: Helm, name: str) -> None:
    keep = {"helm.sh/resource-policy": "keep"}
    given = {"example.com/a": "b"}

    def annotations(**crds: Any) -> Any:
        rendered = render(helm, {"crds": crds}).one("CustomResourceDefinition", name)
        metadata = rendered["metadata"]
        return metadata.get("annotations")

    assert annotations() == keep
    assert annotations(annotations=given) == keep | given
    assert annotations(keep=False, annotations=given) == given
    assert annotations(keep=False) is None
    assert "CustomResourceDefinition" not in {
        kind for kind, _, _ in render(helm, {"crds": {"enabled": False}}).names()
    }


@pytest.mark.parametrize("name", OUR_CRDS)
def test_the_crd_fits_an_annotation_with_room_to_spare(helm: Helm, name: str) -> None:
    rendered = render(helm).one("CustomResourceDefinition", name)

    assert len(json.dumps(rendered, separators=(",", ":"))) < 200_000


def test_the_schema_is_closed_but_for_what_users_name_themselves() -> None:
    open_ones = {
        path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False
    }

    assert open_ones == FREE


def test_the_schema_and_values_yaml_have_the_same_values() -> None:
    known = {path.partition("[]")[0] for path, _ in leaves(SCHEMA)}
    known = {path for path in known if not path.startswith(("global", "config."))} | {"config"}
    written = {within(path, known) for path, _ in paths(DEFAULTS)}

    probes = {f"{name}Probe.initialDelaySeconds" for name in ("startup", "liveness", "readiness")}
    assert known - written == probes  # Kubernetes' own default is right
    assert written <= known


def test_the_full_values_set_every_value_to_another_than_its_default() -> None:
    known = {path for path, _ in leaves(SCHEMA)}
    full = dict(paths(FULL))
    default = dict(paths(DEFAULTS))

    assert {within(path, known) for path in full} | REFUSED == known | {"global"}
    same = {path for path, value in full.items() if default.get(path, ...) == value}
    assert same <= {
        # `restricted` wants these, and a Pod that it refuses would prove nothing.
        *("podSecurityContext.runAsNonRoot", "securityContext.allowPrivilegeEscalation"),
        *("securityContext.readOnlyRootFilesystem", "securityContext.capabilities.drop"),
    }


# Of the charts around this one, which reads none of it.
OTHERS = {"global"}
REFUSED = {f"config.{name}" for name in generate.SET_BY_THE_CHART}
SWITCHED = {path for path, _ in paths(SWITCHES)}
# A digest is given, an operator for single namespaces leaves the cluster's roles alone, and with
# the switches the ledger is a file: test_objects.py tries a database.
WITHOUT_EFFECT = {
    *("image.tag", "rbac.aggregate", "store.existingSecret.key"),
    *("networkPolicy.databaseTo", "networkPolicy.databasePorts"),
}


@pytest.mark.parametrize(
    "path",
    sorted({path.partition("[]")[0] for path, _ in leaves(SCHEMA)} - REFUSED - SWITCHED - OTHERS),
)
def test_every_value_changes_what_is_rendered(helm: Helm, path: str) -> None:
    """All of FULL, and all of it but this value."""
    without = json.loads(json.dumps(FULL))
    *outer, last = path.split(".")
    del functools.reduce(lambda part, name: part[name], outer, without)[last]

    changed = render(helm, without, SWITCHES) != render(helm, FULL, SWITCHES)

    assert changed is (path not in WITHOUT_EFFECT)


def test_every_value_is_described_in_the_readme() -> None:
    rows = re.findall(r"^\| (\S+) \| \w+ \| (.+) \| (.*) \|$", _readme(), flags=re.MULTILINE)

    assert len(rows) > 50
    assert [name for name, _, said in rows if not said] == []


@pytest.mark.parametrize("values", [{}, FULL], ids=["default", "full"])
def test_helm_lint_finds_nothing(helm: Helm, values: Json) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", "-", input=json.dumps(values))

    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout
    assert "[WARNING]" not in done.stdout


def test_the_package_holds_the_chart_and_nothing_else(helm: Helm, tmp_path: Path) -> None:
    helm("package", str(CHART), "--destination", str(tmp_path))

    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    ours = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    assert names == ours - {"README.md.gotmpl"}


def _readme() -> str:
    return (CHART / "README.md").read_text()


def _contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
