"""The chart on a real API server: it takes every object, and Helm takes over a CRD that was there.

No operator runs here: tests/e2e installs one.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.chart.rendered import FULL, SWITCHES, Json, Rendered, render
from tests.cluster.harness import Cluster
from tests.cluster.harness.helm import CHART, Helm
from tests.cluster.world import eventually
from tests.unit.resource.cases import TEMPLATE

from evenkeel.resource.crd import crd

CRD = "scheduledjobs.evenkeel.dev"
CRDS = CHART.parents[1] / "crds"
SERVICE_MONITOR = Path(__file__).parent / "servicemonitor-crd.yaml"
OURS = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"]
STATUS = "--subresource=status"
NEWER = "Creates Jobs on a schedule."


@pytest.fixture(scope="module")
def server(own_cluster: Cluster) -> Iterator[Cluster]:
    """An API server that knows ServiceMonitors."""
    own_cluster.kubectl("apply", "-f", str(SERVICE_MONITOR))
    name = "servicemonitors.monitoring.coreos.com"
    # Not `kubectl wait`: it fails on a CRD so new that it has no conditions yet.
    for question in (("get", name), ("explain", "servicemonitors.spec")):
        eventually(
            lambda asked=question: own_cluster.kubectl(*asked, check=False).returncode == 0,
            "ServiceMonitors are served, and kubectl knows their fields",
        )
    yield own_cluster
    own_cluster.remove_crds(name)
    own_cluster.install_crd()  # other files may have had it


# --- every object ---------------------------------------------------------------------------------

SETS: dict[str, list[Json]] = {
    "default": [{}],
    "full": [FULL],
    "full and on": [FULL, SWITCHES],
    "one namespace": [{"namespaces": ["shop"]}],
}


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_the_api_server_takes_every_object_without_a_warning(
    helm: Helm, server: Cluster, values: list[Json]
) -> None:
    places = {each: f"{each}-{secrets.token_hex(3)}" for each in ("evenkeel", "shop", "bank")}
    for place in places.values():
        server.kubectl("create", "namespace", place)
    mapped = [
        each | ({"namespaces": [places[name] for name in each["namespaces"]]})
        if "namespaces" in each
        else each
        for each in values
    ]
    rendered = render(helm, *mapped, namespace=places["evenkeel"])

    # As Helm applies them. A CRD that another test applied belongs to another manager.
    apply = ["apply", "--server-side", "--field-manager=helm", "--force-conflicts"]
    done = server.kubectl(
        *(*apply, "--dry-run=server", "--validate=strict", "-f", "-"),
        input=listed(rendered.objects),
    )

    assert len(done.stdout.splitlines()) == len(rendered.objects) > 5
    assert done.stderr == ""
    server.kubectl("delete", "namespace", "--wait=false", *places.values())


def test_the_api_server_knows_each_field_that_the_service_monitor_has(
    helm: Helm, server: Cluster
) -> None:
    monitor = render(helm, FULL).one("ServiceMonitor")
    monitor["metadata"]["namespace"] = "default"
    monitor["spec"]["endpoints"][0]["timeout"] = "3s"

    create = ["create", "--dry-run=server", "--validate=strict", "-f", "-"]
    done = server.kubectl(*create, input=json.dumps(monitor), check=False)

    assert 'unknown field "spec.endpoints[0].timeout"' in done.stderr


def test_the_token_that_prometheus_gets_may_read_metrics_by_schedule_and_nothing_else(
    helm: Helm, server: Cluster, namespace: str
) -> None:
    rendered = render(helm, {"serviceMonitor": {"enabled": True}}, namespace=namespace)
    made = [each for each in rendered.objects if "metrics" in each["metadata"]["name"]]
    made = [each for each in made if each["kind"] not in ("Service", "ServiceMonitor")]
    assert [each["kind"] for each in made].count("Secret") == 1
    server.kubectl("apply", "-f", "-", input=listed(made))
    account, secret = rendered.one("ServiceAccount", "evenkeel-metrics"), rendered.one("Secret")

    path = ("-n", namespace, "get", "secret", secret["metadata"]["name"])
    eventually(
        lambda: server.kubectl(*path, "-o", "jsonpath={.data.token}").stdout, "there is a token"
    )
    name = f"system:serviceaccount:{namespace}:{account['metadata']['name']}"

    def may(verb: str, what: str) -> bool:
        asked = ("auth", "can-i", verb, what, "--as", name, "-n", namespace)
        return server.kubectl(*asked, check=False).stdout.strip() == "yes"

    eventually(lambda: may("get", "/metrics/schedules"), "it may")
    assert not may("get", "/metrics")
    assert not may("list", "scheduledjobs.evenkeel.dev")
    # The Secret goes with its ServiceAccount.
    server.kubectl("delete", "--ignore-not-found", "-f", "-", input=listed(made))


def test_a_namespace_that_enforces_restricted_takes_the_pod(
    helm: Helm, server: Cluster, namespace: str
) -> None:
    server.kubectl("label", "ns", namespace, "pod-security.kubernetes.io/enforce=restricted")
    rendered = render(helm, namespace=namespace)
    account = rendered.one("ServiceAccount")
    server.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(account))

    def created(pod: Json) -> str:
        create = ["-n", namespace, "create", "--dry-run=server", "-f", "-"]
        done = server.kubectl(*create, input=json.dumps(pod), check=False)
        return done.stdout + done.stderr

    assert created(pod(rendered)) == "pod/evenkeel created (server dry run)\n"
    root = pod(rendered)
    root["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    assert "violates PodSecurity" in created(root)


# --- rights ---------------------------------------------------------------------------------------


@pytest.fixture
def release(helm: Helm, server: Cluster, namespace: str) -> Iterator[str]:
    """A release of the whole chart, named as its namespace. Its Pod never starts: there is no
    node."""
    server.install_crd()  # until kubectl knows the resource that it is asked about
    with installed(helm, server, namespace, "--set", "crds.enabled=false"):
        yield namespace


def test_the_cluster_s_roles_pass_their_rights_on(server: Cluster, release: str) -> None:
    for role in ("view", "edit", "admin"):
        user = ["-n", release, "create", "rolebinding", role, f"--clusterrole={role}"]
        server.kubectl(*user, f"--user={role}")

    def may(verb: str, resource: str, *more: str) -> list[bool]:
        """Whether view, edit and admin may, in that order."""
        question = ["-n", release, "auth", "can-i", verb, f"{resource}.evenkeel.dev", *more]
        return [
            server.kubectl(*question, f"--as={user}", check=False).stdout == "yes\n"
            for user in ("view", "edit", "admin")
        ]

    for resource in ("scheduledjobs", "runrequests"):
        # A controller of its own adds up the rules, of one role after the other.
        eventually(
            lambda asked=resource: may("list", asked) == [True, True, True], "all three may list"
        )
        eventually(
            lambda asked=resource: may("create", asked) == [False, True, True], "two may create"
        )
        assert may("patch", resource) == may("deletecollection", resource) == [False, True, True]
        assert may("get", resource, STATUS) == [True, True, True]
        assert may("patch", resource, STATUS) == [False, False, False]


def test_the_operator_may_do_its_work_and_nothing_else(server: Cluster, release: str) -> None:
    operator = f"--as=system:serviceaccount:{release}:{release}-evenkeel"

    def may(verb: str, resource: str, *more: str) -> bool:
        question = ["-n", "default", "auth", "can-i", verb, resource, *more, operator]
        return server.kubectl(*question, check=False).stdout == "yes\n"

    eventually(lambda: may("create", "jobs.batch"), "it may create Jobs")
    for resource in ("scheduledjobs.evenkeel.dev", "runrequests.evenkeel.dev"):
        eventually(lambda asked=resource: may("patch", asked, STATUS), "it may write statuses")
        assert not may("patch", resource)
    # For the annotation evenkeel.dev/trigger and ttlSecondsAfterFinished.
    assert may("create", "runrequests.evenkeel.dev")
    assert may("delete", "runrequests.evenkeel.dev")
    assert not may("delete", "scheduledjobs.evenkeel.dev")
    assert not may("update", "jobs.batch")
    assert not may("get", "secrets")
    assert not may("create", "pods")


# --- the ledger -----------------------------------------------------------------------------------


def test_the_ledger_moves_to_a_database_and_back(helm: Helm, server: Cluster, release: str) -> None:
    """Which changes how an update goes. The claim stays, and is taken up again."""
    upgrade = ["upgrade", release, str(CHART), "-n", release, "--set", "crds.enabled=false"]
    name = f"{release}-evenkeel"

    def upgraded(*values: str) -> tuple[Json, list[str]]:
        options = [each for value in values for each in ("--set", value)]
        helm(*upgrade, *options, kubeconfig=server.kubeconfig)
        get = ["-n", release, "get", "-o", "json"]
        strategy = json.loads(server.kubectl(*get, "deployment", name).stdout)["spec"]["strategy"]
        claims = json.loads(server.kubectl(*get, "persistentvolumeclaims").stdout)["items"]
        return strategy, [each["metadata"]["name"] for each in claims]

    recreate = {"type": "Recreate"}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert upgraded("store.persistence.enabled=true") == (recreate, [name])
    assert upgraded("store.existingSecret.name=database") == (rolling, [name])
    assert upgraded("store.persistence.enabled=true", "store.persistence.size=2Gi") == (
        recreate,
        [name],
    )


# --- a CRD that was there before ------------------------------------------------------------------


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A chart whose CRD has changed."""
    chart = tmp_path / "evenkeel"
    shutil.copytree(CHART, chart)
    template = chart / "templates" / "crd-scheduledjobs.yaml"
    text = template.read_text()
    assert text.count(OURS) == 1
    template.write_text(text.replace(OURS, NEWER))
    return chart


HAND_OVERS = {
    "by the chart alone": [],
    "handed over": [["apply", "--server-side", "--field-manager=helm"]],
    "applied before and handed over": [
        ["apply"],
        ["apply", "--server-side", "--field-manager=helm"],
    ],
}


@pytest.mark.parametrize("commands", HAND_OVERS.values(), ids=HAND_OVERS)
def test_an_upgrade_changes_the_crd(
    helm: Helm, server: Cluster, namespace: str, newer: Path, commands: list[list[str]]
) -> None:
    server.remove_crds()
    for command in commands:
        server.kubectl(*command, "-f", str(CRDS))
    with installed(helm, server, namespace, *(["--take-ownership"] if commands else [])):
        assert described(server) == OURS

        helm("upgrade", namespace, str(newer), "-n", namespace, kubeconfig=server.kubeconfig)

        assert described(server) == NEWER


def test_a_crd_that_kubectl_applied_and_nobody_handed_over_needs_force(
    helm: Helm, server: Cluster, namespace: str, newer: Path
) -> None:
    server.remove_crds()
    server.kubectl("apply", "-f", str(CRDS))
    upgrade = ["upgrade", namespace, str(newer), "-n", namespace]
    with installed(helm, server, namespace, "--take-ownership"):
        refused = helm(*upgrade, kubeconfig=server.kubeconfig, check=False)
        assert 'conflict with "kubectl-client-side-apply"' in refused.stderr
        assert described(server) == OURS

        helm(*upgrade, "--force-conflicts", kubeconfig=server.kubeconfig)
        assert described(server) == NEWER


def test_an_uninstall_leaves_the_crd_and_all_schedules_and_nothing_else(
    helm: Helm, server: Cluster, namespace: str
) -> None:
    server.remove_crds()
    with installed(helm, server, namespace):
        eventually(
            lambda: server.kubectl("explain", "scheduledjobs.spec", check=False).returncode == 0,
            "the CRD is served, and kubectl knows its fields",
        )
        schedule = {
            "apiVersion": "evenkeel.dev/v1alpha1",
            "kind": "ScheduledJob",
            "metadata": {"name": "kept"},
            "spec": {"schedule": "@daily", "jobTemplate": TEMPLATE},
        }
        server.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(schedule))

    def left(*kinds: str) -> list[str]:
        listed = server.kubectl("-n", namespace, "get", ",".join(kinds), "-o", "name").stdout
        return [name for name in listed.splitlines() if namespace in name or "kept" in name]

    assert left("scheduledjobs") == ["scheduledjob.evenkeel.dev/kept"]
    assert left("deploy", "cm", "sa", "svc", "clusterrole", "clusterrolebinding") == []


def test_a_crd_that_was_kept_belongs_to_its_release(
    helm: Helm, server: Cluster, namespace: str
) -> None:
    server.remove_crds()
    for _ in range(2):
        with installed(helm, server, namespace):
            pass

    other = ["install", "other", str(CHART), "-n", namespace]
    refused = helm(*other, kubeconfig=server.kubeconfig, check=False)
    assert "invalid ownership metadata" in refused.stderr
    with installed(helm, server, namespace, "--take-ownership", name="other"):
        pass


def test_two_releases_that_serve_a_namespace_each_stand_side_by_side(
    helm: Helm, server: Cluster, namespace: str
) -> None:
    server.remove_crds()
    other = f"{namespace}-b"
    server.kubectl("create", "namespace", other)

    def serving(ns: str, *more: str) -> AbstractContextManager[None]:
        return installed(helm, server, ns, "--set", f"namespaces={{{ns}}}", *more, name="evenkeel")

    with serving(namespace), serving(other, "--set", "crds.enabled=false"):
        for ns in (namespace, other):
            roles = server.kubectl("-n", ns, "get", "roles,rolebindings", "-o", "name").stdout
            assert len(roles.splitlines()) == 2
    server.kubectl("delete", "namespace", "--wait=false", other)


@contextmanager
def installed(
    helm: Helm, server: Cluster, namespace: str, *more: str, name: str = ""
) -> Iterator[None]:
    release = [name or namespace, "-n", namespace]
    install = ["install", release[0], str(CHART), *release[1:]]
    helm(*install, *more, kubeconfig=server.kubeconfig)
    try:
        yield
    finally:
        helm("uninstall", *release, kubeconfig=server.kubeconfig)


def described(server: Cluster) -> str:
    path = "jsonpath={.spec.versions[0].schema.openAPIV3Schema.description}"
    return server.kubectl("get", "crd", CRD, "-o", path).stdout


def pod(rendered: Rendered) -> Json:
    """The Deployment's Pod, as its ReplicaSet would create it."""
    template = json.loads(json.dumps(rendered.pod))
    template["metadata"]["name"] = "evenkeel"
    return {"apiVersion": "v1", "kind": "Pod", **template}


def listed(objects: list[Json]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
