"""A policy of the cluster that changes Jobs as they are created: it is said, and runs still end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.operator_process import operator
from tests.cluster.world import RefusedError, World, eventually, every, owner

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LABEL = "evenkeel.dev/schedule-uid"
OWNER = "owner reference"

REMOVE_LABEL = (
    f'JSONPatch{{op: "remove", path: "/metadata/labels/" + jsonpatch.escapeKey("{LABEL}")}}'
)
REMOVE_OWNER = 'JSONPatch{op: "remove", path: "/metadata/ownerReferences"}'
ALTERATIONS = {
    "label": [REMOVE_LABEL],
    "owner": [REMOVE_OWNER],
    "both": [REMOVE_LABEL, REMOVE_OWNER],
}
SAID = {
    "label": [f"label {LABEL}"],
    "owner": [OWNER],
    "both": [OWNER, f"label {LABEL}"],
}


@contextmanager
def altering(world: World, ns: str, patches: list[str]) -> Iterator[None]:
    """A MutatingAdmissionPolicy on the Jobs of one namespace."""
    name = f"alter-{ns}"
    jobs = {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "resources": ["jobs"],
        "operations": ["CREATE"],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": ns}}
    policy = {
        "matchConstraints": {"resourceRules": [jobs], "namespaceSelector": selector},
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{', '.join(patches)}]"}}
        ],
    }
    kinds = {
        "mutatingadmissionpolicies": policy,
        "mutatingadmissionpolicybindings": {"policyName": name},
    }
    for kind, spec in kinds.items():
        world.call("POST", f"{ADMISSION}/{kind}", {"metadata": {"name": name}, "spec": spec})
    try:
        yield
    finally:
        for kind in kinds:
            world.call("DELETE", f"{ADMISSION}/{kind}/{name}")


def is_altered(world: World, ns: str) -> bool:
    """Whether the policy is in force: the API server reads it a moment later."""
    probe = {
        "metadata": {
            "name": "probe",
            "labels": {LABEL: "x"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nobody"}
            ],
        },
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
            }
        },
    }
    try:
        stored = world.call("POST", f"/apis/batch/v1/namespaces/{ns}/jobs?dryRun=All", probe)
    except RefusedError:
        return False
    return LABEL not in stored["metadata"].get("labels", {}) or not owner(stored)


def test_a_job_that_was_altered_at_its_creation_is_said_and_followed_to_its_end(
    world: World, tmp_path: Path
) -> None:
    spaces = {what: world.namespace(what) for what in ALTERATIONS}
    with (
        operator(world.cluster.kubeconfig, directory=tmp_path, settings={"MIN_INTERVAL": "1"}),
        altering(world, spaces["label"], ALTERATIONS["label"]),
        altering(world, spaces["owner"], ALTERATIONS["owner"]),
        altering(world, spaces["both"], ALTERATIONS["both"]),
    ):
        for ns in spaces.values():
            eventually(lambda ns=ns: is_altered(world, ns), "the policy is in force")
            world.create(ns, "it", interval=every(5), concurrencyPolicy="Forbid")

        for what, ns in spaces.items():
            eventually(
                lambda ns=ns: world.counts(ns, "it").get("succeeded", 0) >= 2,
                f"runs whose Jobs lost their {what} end, and others follow",
            )
            degraded = world.condition(ns, "it", "Degraded")
            assert (degraded["status"], degraded["reason"]) == ("True", "JobAltered")
            assert f"without its {' and its '.join(SAID[what])}:" in degraded["message"]
            assert set(world.counts(ns, "it")) <= {"succeeded", "skipped"}
            eventually(lambda ns=ns: world.events(ns, "it", "JobAltered"), "an Event says so")

    world.leave(spaces.values())
