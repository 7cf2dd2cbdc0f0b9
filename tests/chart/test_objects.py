"""The objects that the chart renders: which there are, what the operator may do, and its Pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes_validate import utils as kubernetes_validate
from tests.chart.rendered import FULL, RULES, SWITCHES, Json, Rendered, render
from tests.cluster.harness import image
from tests.cluster.harness.cluster import OUR_CRDS
from tests.cluster.harness.helm import CHART, Helm

from evenkeel.settings import Settings, load

OLDEST, NEWEST = "1.30", kubernetes_validate.latest_version()

SETS: dict[str, list[Json]] = {"default": [{}], "full": [FULL], "full and on": [FULL, SWITCHES]}

READ = ["get", "list", "watch"]
WRITE = ["create", "update", "patch", "delete", "deletecollection"]
OURS = ["scheduledjobs", "runrequests"]


@pytest.fixture(scope="module", params=SETS.values(), ids=list(SETS))
def rendered(helm: Helm, request: pytest.FixtureRequest) -> Rendered:
    return render(helm, *request.param)


@pytest.fixture(scope="module")
def default(helm: Helm) -> Rendered:
    return render(helm)


# --- which objects there are ----------------------------------------------------------------------


def test_an_install_into_its_own_namespace_has_plain_names(default: Rendered) -> None:
    assert default.names() == {
        ("CustomResourceDefinition", "", "scheduledjobs.evenkeel.dev"),
        ("CustomResourceDefinition", "", "runrequests.evenkeel.dev"),
        ("Deployment", "evenkeel", "evenkeel"),
        ("ServiceAccount", "evenkeel", "evenkeel"),
        ("ConfigMap", "evenkeel", "evenkeel"),
        ("Service", "evenkeel", "evenkeel-metrics"),
        ("ClusterRole", "", "evenkeel"),
        ("ClusterRoleBinding", "", "evenkeel"),
        ("ClusterRole", "", "evenkeel-view"),
        ("ClusterRole", "", "evenkeel-edit"),
        ("ClusterRole", "", "evenkeel-metrics"),
    }


def test_what_is_switched_on_and_off_is_there_or_not(helm: Helm) -> None:
    assert {kind for kind, _, _ in render(helm, FULL).names()} == {
        *("Deployment", "ConfigMap", "Service", "ServiceMonitor", "NetworkPolicy"),
    }


NAMES = {
    "the chart's name": ("evenkeel", {}, "evenkeel"),
    "a name with it in it": ("my-evenkeel-2", {}, "my-evenkeel-2"),
    "another name": ("cron", {}, "cron-evenkeel"),
    "a name with dots": ("cron.v2", {}, "cron-v2-evenkeel"),
    "nameOverride": ("cron", {"nameOverride": "load"}, "cron-load"),
    "nameOverride in the release's name": ("cron-load", {"nameOverride": "load"}, "cron-load"),
    "fullnameOverride": ("cron", {"fullnameOverride": "x"}, "x"),
    "53 characters": ("a" * 53, {}, "a" * 53 + "-evenkeel"),
    "a cut at a dash": ("a" * 53, {"nameOverride": "b" * 8 + "-c"}, "a" * 53 + "-" + "b" * 8),
    "63 characters": ("a", {"fullnameOverride": "b" * 63}, "b" * 63),
}


@pytest.mark.parametrize(("release", "values", "name"), NAMES.values(), ids=NAMES)
def test_objects_are_named_after_the_release(
    helm: Helm, release: str, values: Json, name: str
) -> None:
    found = render(helm, values, release=release, namespace="tools")

    assert found.one("Deployment")["metadata"]["name"] == name
    assert found.one("ServiceAccount")["metadata"]["name"] == name
    assert found.pod["spec"]["serviceAccountName"] == name
    assert found.one("ClusterRoleBinding")["metadata"]["name"] == f"{name}:tools"
    service = found.one("Service")["metadata"]["name"]
    assert service.endswith("-metrics")
    assert name.startswith(service.removesuffix("-metrics"))
    assert "--metrics" not in service
    assert max(len(each) for _, _, each in found.names() if ":" not in each) <= 63
    for each in found.objects:
        labels = each["metadata"]["labels"]
        assert max(len(value) for value in labels.values()) <= 63
        kubernetes_validate.validate(each, NEWEST, strict=True)


def test_two_releases_share_no_object_but_the_crds(helm: Helm) -> None:
    places = [("evenkeel", "evenkeel"), ("evenkeel", "tools"), ("tools", "tools"), ("tools", "b")]
    found = [render(helm, release=release, namespace=ns).names() for release, ns in places]

    shared = {("CustomResourceDefinition", "", name) for name in OUR_CRDS}
    assert len(set().union(*found) - shared) == sum(len(each - shared) for each in found)


def test_two_releases_for_one_namespace_have_a_role_each(helm: Helm) -> None:
    values = {"namespaces": ["shop"]}
    one = render(helm, values, namespace="a").one("RoleBinding")
    other = render(helm, values, namespace="b").one("RoleBinding")

    assert one["metadata"]["namespace"] == other["metadata"]["namespace"] == "shop"
    assert one["metadata"]["name"] != other["metadata"]["name"]


def test_own_labels_are_on_every_object_and_cannot_be_taken_away(helm: Helm) -> None:
    theirs = {"app.kubernetes.io/instance": "other", "app.kubernetes.io/part-of": "platform"}
    found = render(helm, FULL, SWITCHES, {"commonLabels": theirs, "podLabels": theirs})

    everything = [each for each in found.objects if "extraObjects" not in str(each)]
    everything = [each for each in everything if "labels" in each["metadata"]]
    assert len(everything) == len(found.objects) - len(FULL["extraObjects"])
    for metadata in [each["metadata"] for each in everything] + [found.pod["metadata"]]:
        assert metadata["labels"]["example.com/team"] == "platform"
        assert metadata["labels"]["app.kubernetes.io/part-of"] == "platform"
        assert metadata["labels"]["app.kubernetes.io/instance"] == "evenkeel"
        assert metadata["labels"]["helm.sh/chart"].startswith("evenkeel-")


def test_the_selectors_find_the_pod_and_the_service(rendered: Rendered) -> None:
    pod = rendered.pod["metadata"]["labels"].items()
    selector = rendered.one("Deployment")["spec"]["selector"]["matchLabels"]

    assert set(selector) == {"app.kubernetes.io/name", "app.kubernetes.io/instance"}
    assert selector.items() <= pod
    assert rendered.one("Service")["spec"]["selector"] == selector
    for each in rendered.objects:
        if each["kind"] == "NetworkPolicy":
            assert each["spec"]["podSelector"]["matchLabels"] == selector
        if each["kind"] == "ServiceMonitor":
            wanted = each["spec"]["selector"]["matchLabels"].items()
            assert wanted <= rendered.one("Service")["metadata"]["labels"].items()


def test_extra_objects_are_rendered_as_templates(helm: Helm) -> None:
    found = render(helm, FULL)

    assert found.one("ConfigMap", "scheduling-more")["data"] == {"release": "evenkeel"}
    assert found.one("ConfigMap", "evenkeel-text")["data"] == {"team": "platform"}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_every_object_is_valid_by_the_schemas_of_kubernetes(
    rendered: Rendered, version: str
) -> None:
    for each in rendered.objects:
        if each["kind"] != "ServiceMonitor":  # a real API server judges it: test_api_server.py
            kubernetes_validate.validate(each, version, strict=True)


def test_an_older_kubernetes_is_refused(helm: Helm) -> None:
    done = helm("template", str(CHART), "--kube-version", "1.29.9", check=False)
    assert "chart requires kubeVersion: >=1.30.0-0" in done.stderr
    assert helm("template", str(CHART), "--kube-version", "v1.30.0-eks-12ab").returncode == 0


# --- what the operator may do ---------------------------------------------------------------------


def test_the_operator_has_these_rights_and_no_other(default: Rendered) -> None:
    assert default.one("ClusterRole", "evenkeel")["rules"] == RULES
    binding = default.one("ClusterRoleBinding")
    assert binding["roleRef"]["kind"] == "ClusterRole"
    assert binding["roleRef"]["name"] == "evenkeel"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "evenkeel", "namespace": "evenkeel"}
    ]


def test_users_of_the_cluster_get_rights_by_their_roles(default: Rendered) -> None:
    to = "rbac.authorization.k8s.io/aggregate-to"
    view = default.one("ClusterRole", "evenkeel-view")
    edit = default.one("ClusterRole", "evenkeel-edit")

    def audience(role: Json) -> set[str]:
        labels = role["metadata"]["labels"].items()
        return {name.removeprefix(f"{to}-") for name, value in labels if name.startswith(to)}

    assert audience(view) == {"view", "edit", "admin"}
    assert audience(edit) == {"edit", "admin"}
    assert rights(view["rules"]) == {
        *((resource, verb) for resource in OURS for verb in READ),
        *((f"{resource}/status", "get") for resource in OURS),
    }
    assert rights(edit["rules"]) == rights(view["rules"]) | {
        (resource, verb) for resource in OURS for verb in WRITE
    }


@pytest.mark.parametrize("rbac", [{"aggregate": False}, {"create": False}], ids=str)
def test_the_roles_of_the_cluster_are_left_alone_on_request(helm: Helm, rbac: Json) -> None:
    roles = [name for kind, _, name in render(helm, {"rbac": rbac}).names() if "Role" in kind]

    assert sorted(roles) == (
        ["evenkeel", "evenkeel", "evenkeel-metrics"] if "aggregate" in rbac else []
    )


def test_with_namespaces_there_is_a_role_in_each_and_nothing_of_the_cluster(helm: Helm) -> None:
    found = render(helm, {"namespaces": ["shop", "bank"]})

    roles = [each for each in found.objects if "Role" in each["kind"]]
    assert {(each["kind"], each["metadata"]["namespace"]) for each in roles} == {
        *(("Role", "shop"), ("RoleBinding", "shop"), ("Role", "bank"), ("RoleBinding", "bank")),
    }
    for each in roles:
        if each["kind"] == "Role":
            assert each["rules"] == RULES
        else:
            assert each["roleRef"]["kind"] == "Role"
            assert each["roleRef"]["name"] == each["metadata"]["name"]
            assert each["subjects"][0]["namespace"] == "evenkeel"
    assert found.container["args"][-2:] == ["--namespace=shop", "--namespace=bank"]


def test_no_role_holds_a_wildcard_or_a_secret(rendered: Rendered) -> None:
    roles = [each for each in rendered.objects if each["kind"] in ("Role", "ClusterRole")]

    for rule in [rule for role in roles for rule in role["rules"]]:
        if "nonResourceURLs" in rule:
            assert (rule["nonResourceURLs"], rule["verbs"]) == (["/metrics/schedules"], ["get"])
            continue
        words = rule["apiGroups"] + rule["resources"] + rule["verbs"]
        assert not [word for word in words if "*" in word or "secret" in word]
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_a_given_service_account_is_bound(helm: Helm) -> None:
    given = {"serviceAccount": {"create": False, "name": "ci"}}
    found = render(helm, given)

    assert "ServiceAccount" not in {kind for kind, _, _ in found.names()}
    assert found.pod["spec"]["serviceAccountName"] == "ci"
    assert found.one("ClusterRoleBinding")["subjects"][0]["name"] == "ci"


# --- the Pod --------------------------------------------------------------------------------------


OLD_ENDS_FIRST = {
    "by default": ({}, {"type": "Recreate"}),
    "a file": ({"url": "sqlite:////var/lib/evenkeel/a.db"}, {"type": "Recreate"}),
    "no ledger": ({"url": "none"}, {"type": "Recreate"}),
    "a database": (
        {"url": "postgresql://evenkeel@db/evenkeel"},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
    "a Secret": (
        {"existingSecret": {"name": "database"}},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
}


@pytest.mark.parametrize(("store", "strategy"), OLD_ENDS_FIRST.values(), ids=OLD_ENDS_FIRST)
def test_there_is_one_pod_and_the_old_one_ends_first(
    helm: Helm, store: Json, strategy: Json
) -> None:
    spec = render(helm, {"store": store}).one("Deployment")["spec"]

    assert spec["replicas"] == 1
    assert spec["strategy"] == strategy


def test_the_pod_may_nothing_that_it_does_not_need(default: Rendered) -> None:
    pod, container = default.pod["spec"], default.container

    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["enableServiceLinks"] is False
    assert pod["automountServiceAccountToken"] is False
    assert default.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)


def test_the_pod_has_a_token_of_its_own_where_clients_look_for_one(rendered: Rendered) -> None:
    volumes = {each["name"]: each for each in rendered.pod["spec"]["volumes"]}
    mounts = {each["mountPath"]: each for each in rendered.container["volumeMounts"]}
    mount = mounts["/var/run/secrets/kubernetes.io/serviceaccount"]
    projected = volumes[mount["name"]]["projected"]

    assert mount["readOnly"] is True
    assert projected["defaultMode"] == 0o440
    assert [next(iter(each)) for each in projected["sources"]] == [
        *("serviceAccountToken", "configMap", "downwardAPI"),
    ]
    assert volumes[mounts["/tmp"]["name"]]["emptyDir"]["sizeLimit"]
    assert set(volumes) == {each["name"] for each in mounts.values()}


def test_there_is_no_limit_of_cpu(default: Rendered) -> None:
    resources = default.container["resources"]

    assert set(resources["requests"]) == {"cpu", "memory"}
    assert set(resources["limits"]) == {"memory"}


def test_probes_service_and_address_agree(rendered: Rendered) -> None:
    container = rendered.container
    (port,) = container["ports"]
    (variable,) = (each for each in container["env"] if each["name"] == "EVENKEEL_HEALTH_LISTEN")

    assert variable["value"].endswith(f":{port['containerPort']}")
    paths = {name: probe["httpGet"]["path"] for name, probe in container.items() if "Probe" in name}
    assert paths == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    assert {container[name]["httpGet"]["port"] for name in paths} == {port["name"]}
    (served,) = rendered.one("Service")["spec"]["ports"]
    assert served["targetPort"] == port["name"]
    for each in rendered.objects:
        if each["kind"] == "ServiceMonitor":
            assert {one["port"] for one in each["spec"]["endpoints"]} == {served["name"]}
        if each["kind"] == "NetworkPolicy":
            assert each["spec"]["ingress"][0]["ports"][0]["port"] == port["name"]


def test_a_network_policy_lets_dns_and_the_api_server_through(helm: Helm) -> None:
    policy = render(helm, {"networkPolicy": {"enabled": True}}).one("NetworkPolicy")["spec"]

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"ports": [{"port": "health", "protocol": "TCP"}]}]
    reached = [
        (each["protocol"], each["port"]) for rule in policy["egress"] for each in rule["ports"]
    ]
    assert reached == [("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443)]


IMAGES = {
    "the one that make builds": ({}, image.name()),
    "a tag": ({"tag": "next"}, "evenkeel/operator:next"),
    "a repository": ({"repository": "example.com/a", "tag": "b"}, "example.com/a:b"),
    "a digest": ({"digest": "sha256:" + "0" * 64}, "evenkeel/operator@sha256:" + "0" * 64),
}


@pytest.mark.parametrize(("values", "name"), IMAGES.values(), ids=IMAGES)
def test_the_image_is_the_one_named(helm: Helm, values: Json, name: str) -> None:
    assert render(helm, {"image": values}).container["image"] == name


# --- the ledger -----------------------------------------------------------------------------------


def store_of(rendered: Rendered) -> tuple[Json, Json | None]:
    """Where the operator looks for its store, and the volume that it may write to."""
    names = ("EVENKEEL_STORE_URL", "EVENKEEL_DATA")
    env = {each["name"]: each for each in rendered.container["env"] if each["name"] in names}
    mounts = {each["mountPath"]: each["name"] for each in rendered.container["volumeMounts"]}
    volumes = {each["name"]: each for each in rendered.pod["spec"]["volumes"]}
    assert (mounts.get("/var/lib/evenkeel") == "data") == ("data" in volumes)
    assert set(volumes) == set(mounts.values())
    return {name: {**each, "name": None} for name, each in env.items()}, volumes.get("data")


def test_by_default_the_history_is_a_file_that_goes_with_the_pod(default: Rendered) -> None:
    """A first install must not wait for a volume that nobody can make."""
    env, volume = store_of(default)

    assert env == {"EVENKEEL_DATA": {"name": None, "value": "/var/lib/evenkeel"}}
    assert volume == {"name": "data", "emptyDir": {}}
    assert "PersistentVolumeClaim" not in {kind for kind, _, _ in default.names()}


def test_a_claim_of_the_chart_outlives_the_release(helm: Helm) -> None:
    found = render(helm, {"store": {"persistence": {"enabled": True}}})

    claim = found.one("PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
    }
    _, volume = store_of(found)
    assert volume == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]},
    }


CLASSES = {"fast": "fast", "-": ""}


@pytest.mark.parametrize(("asked", "given"), CLASSES.items(), ids=CLASSES)
def test_a_claim_asks_for_a_class_or_for_none(helm: Helm, asked: str, given: str) -> None:
    persistence = {"enabled": True, "storageClass": asked}
    claim = render(helm, {"store": {"persistence": persistence}}).one("PersistentVolumeClaim")

    assert claim["spec"]["storageClassName"] == given


def test_a_given_claim_is_mounted(helm: Helm) -> None:
    found = render(helm, {"store": {"persistence": {"enabled": True, "existingClaim": "history"}}})

    assert "PersistentVolumeClaim" not in {kind for kind, _, _ in found.names()}
    assert store_of(found)[1] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "history"},
    }


def test_the_url_of_a_database_comes_from_a_secret(helm: Helm) -> None:
    secret = {"name": "database", "key": "dsn"}
    policy = {"enabled": True, "databaseTo": [{"podSelector": {}}], "databasePorts": [6432]}
    found = render(helm, {"store": {"existingSecret": secret}, "networkPolicy": policy})

    env, volume = store_of(found)
    assert env == {"EVENKEEL_STORE_URL": {"name": None, "valueFrom": {"secretKeyRef": secret}}}
    assert volume is None
    assert found.one("NetworkPolicy")["spec"]["egress"][-1] == {
        "ports": [{"port": 6432, "protocol": "TCP"}],
        "to": [{"podSelector": {}}],
    }
    role = found.one("ClusterRole", "evenkeel")
    assert role["rules"] == RULES  # the kubelet reads the Secret, the operator does not


@pytest.mark.parametrize("url", ["none", "postgresql://evenkeel@db:5432/evenkeel?schema=b"])
def test_without_a_file_there_is_no_volume_for_one(helm: Helm, url: str) -> None:
    found = render(helm, {"store": {"url": url, "persistence": {"enabled": True}}})

    assert store_of(found) == ({"EVENKEEL_STORE_URL": {"name": None, "value": url}}, None)
    assert "PersistentVolumeClaim" not in {kind for kind, _, _ in found.names()}


def test_security_settings_can_be_taken_away(helm: Helm) -> None:
    """OpenShift wants to choose the numbers itself."""
    numbers = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    pod = render(helm, {"podSecurityContext": numbers}).pod["spec"]

    assert set(pod["securityContext"]) == {"runAsNonRoot", "seccompProfile"}


def test_what_yaml_reads_as_null_is_as_good_as_nothing(helm: Helm) -> None:
    """`podLabels:` with only comments below it."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    empty = [name for name, value in defaults.items() if value in ({}, [])]
    assert {"config", "podLabels", "namespaces", "extraEnv"} <= set(empty)

    assert render(helm, dict.fromkeys(empty)) == render(helm)
    assert render(helm, {"startupProbe": dict.fromkeys(defaults["startupProbe"])}).container[
        "startupProbe"
    ] == {"httpGet": {"path": "/livez", "port": "health"}}


# --- the settings file ----------------------------------------------------------------------------


def test_the_operator_reads_the_rendered_settings(helm: Helm, tmp_path: Path) -> None:
    def read(text: str) -> Settings:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        return load(file=file, environment={})

    def rendered(*values: Json) -> Settings:
        name = "scheduling" if values else "evenkeel"
        return read(render(helm, *values).one("ConfigMap", name)["data"]["config.yaml"])

    assert rendered() == Settings()
    assert rendered(FULL) == read(yaml.safe_dump(FULL["config"])) != Settings()
    assert rendered(FULL).inbox_size == 2_000_000  # helm holds numbers as floats


def test_the_container_reads_the_file_that_is_mounted(rendered: Rendered) -> None:
    config = next(each for each in rendered.objects if "config.yaml" in each.get("data", {}))
    volume = next(each for each in rendered.pod["spec"]["volumes"] if each["name"] == "config")
    mount = next(each for each in rendered.container["volumeMounts"] if each["name"] == "config")

    assert volume["configMap"]["name"] == config["metadata"]["name"]
    assert f"--config={mount['mountPath']}/config.yaml" in rendered.container["args"]


def test_a_changed_setting_replaces_the_pod(helm: Helm) -> None:
    def checksum(values: Json) -> str:
        annotations: Json = render(helm, values).pod["metadata"]["annotations"]
        return str(annotations["checksum/config"])

    assert checksum({}) != checksum({"config": {"grace": 31}})
    assert checksum({}) == checksum({"podLabels": {"a": "b"}})
    given = {"podAnnotations": {"checksum/config": "0"}}
    assert checksum(given) == checksum({})


NEXT = {
    "the cluster": ({}, ["serves the whole cluster", "rollout status deployment/evenkeel"]),
    "namespaces": ({"namespaces": ["shop", "bank"]}, ["serves shop, bank"]),
    "no CRD": ({"crds": {"enabled": False}}, ["crds.enabled is false"]),
    "a file in the Pod": ({}, ["lost with the Pod", "store.persistence.enabled"]),
    "a file in a claim": (
        {"store": {"persistence": {"enabled": True}}},
        ["in the PersistentVolumeClaim evenkeel, which stays"],
    ),
    "no ledger": ({"store": {"url": "none"}}, ["No ledger is kept"]),
}


@pytest.mark.parametrize(("values", "words"), NEXT.values(), ids=NEXT)
def test_helm_names_the_next_command(
    helm: Helm, tmp_path: Path, values: Json, words: list[str]
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    install = ["install", "evenkeel", str(CHART), "--namespace", "tools", "--dry-run=client"]
    notes = helm(*install, "--values", str(file)).stdout.partition("NOTES:")[2]

    assert all(word in notes for word in [*words, "kubectl -n tools rollout", "get scheduledjobs"])


def rights(rules: list[Json]) -> set[tuple[str, str]]:
    return set(_rights(rules))


def _rights(rules: list[Json]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        assert rule["apiGroups"] == ["evenkeel.dev"]
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield resource, verb


# --- metrics by schedule --------------------------------------------------------------------------

MONITORED = {"serviceMonitor": {"enabled": True}}
GIVEN = {"name": "reader", "key": "bearer"}


def endpoints(rendered: Rendered) -> dict[str, Json]:
    found = rendered.one("ServiceMonitor")["spec"]["endpoints"]
    return {each["path"]: each for each in found}


def test_metrics_by_schedule_are_scraped_with_a_token_that_may_do_nothing_else(helm: Helm) -> None:
    found = render(helm, MONITORED)

    scraped = endpoints(found)["/metrics/schedules"]
    credentials = scraped["authorization"]["credentials"]
    secret = found.one("Secret")
    account = secret["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    binding = found.one("ClusterRoleBinding", "evenkeel-metrics")
    assert scraped["honorLabels"] is True
    assert credentials == {"name": secret["metadata"]["name"], "key": "token"}
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account, "namespace": "evenkeel"}
    ]
    role = found.one("ClusterRole", binding["roleRef"]["name"])
    assert role["rules"] == [{"nonResourceURLs": ["/metrics/schedules"], "verbs": ["get"]}]
    assert account != found.pod["spec"]["serviceAccountName"]
    assert "authorization" not in endpoints(found)["/metrics"]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"namespaces": ["shop"]}, id="in single namespaces"),
        pytest.param({"rbac": {"create": False}}, id="without rights by the chart"),
        pytest.param({"config": {"metrics": {"schedules": "Off"}}}, id="Off"),
        pytest.param({"config": {"metrics": {"schedules": False}}}, id="off, as YAML reads it"),
        pytest.param({"serviceMonitor": {"schedules": {"enabled": False}}}, id="not wanted"),
    ],
)
def test_metrics_by_schedule_are_not_scraped_where_nobody_could_read_them(
    helm: Helm, values: Json
) -> None:
    found = render(helm, MONITORED, values)
    assert list(endpoints(found)) == ["/metrics"]
    assert "Secret" not in {kind for kind, _, _ in found.names()}


def test_in_single_namespaces_metrics_by_schedule_are_scraped_with_a_given_token(
    helm: Helm,
) -> None:
    given = {"serviceMonitor": {"schedules": {"secret": GIVEN}}}
    found = render(helm, MONITORED, {"namespaces": ["shop"]}, given)
    scraped = endpoints(found)["/metrics/schedules"]
    assert scraped["authorization"]["credentials"] == GIVEN
    assert {kind for kind, _, _ in found.names()} & {"Secret", "ClusterRole"} == set()
