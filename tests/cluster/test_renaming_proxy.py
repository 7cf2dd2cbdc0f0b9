"""The proxy for Kubernetes' own CronJob specs renames, and does nothing else; and what those specs
check of a resource, on ScheduledJobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.renaming_proxy import (
    OURS,
    THEIRS,
    TO_OURS,
    TO_THEIRS,
    renamed,
    renamed_url,
    renaming_proxy,
)
from tests.cluster.world import GROUP, MERGE, RefusedError, World, manifest
from tests.unit.resource.cases import TEMPLATE
from yarl import URL

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("asked", "passed_on"),
    {
        "/apis/batch/v1/cronjobs?watch=1": "/apis/evenkeel.dev/v1alpha1/scheduledjobs?watch=1",
        "/apis/batch/v1/namespaces/a/cronjobs/b/status": (
            "/apis/evenkeel.dev/v1alpha1/namespaces/a/scheduledjobs/b/status"
        ),
        "/api/v1/namespaces/a/events?fieldSelector=involvedObject.kind%3DCronJob%2Creason%3DX": (
            "/api/v1/namespaces/a/events?fieldSelector=involvedObject.kind=ScheduledJob,reason=X"
        ),
        # These are nobody's to rename.
        "/apis/batch/v1/namespaces/cronjobs/jobs/cronjobs": (
            "/apis/batch/v1/namespaces/cronjobs/jobs/cronjobs"
        ),
        "/apis/batch/v1": "/apis/batch/v1",
        "/api/v1/namespaces/a/pods?labelSelector=a%3Db%26c": (
            "/api/v1/namespaces/a/pods?labelSelector=a%3Db%26c"
        ),
    }.items(),
)
def test_paths_and_selectors_are_renamed(asked: str, passed_on: str) -> None:
    found, expected = renamed_url(URL(asked, encoded=True)), URL(passed_on)
    assert (found.path, found.query) == (expected.path, expected.query)


def test_kinds_are_renamed_where_both_words_stand_side_by_side() -> None:
    job = {
        "apiVersion": THEIRS,
        "kind": "Job",
        "metadata": {
            "name": "CronJob",
            "ownerReferences": [{"apiVersion": THEIRS, "kind": "CronJob", "name": "batch/v1"}],
            "managedFields": [{"apiVersion": THEIRS}],
        },
    }
    ours = renamed(job, TO_OURS)

    owner = {"apiVersion": OURS, "kind": "ScheduledJob", "name": "batch/v1"}
    assert ours == {**job, "metadata": {**job["metadata"], "ownerReferences": [owner]}}
    assert renamed(ours, TO_THEIRS) == job


@pytest.fixture
def world(cluster: Cluster) -> Iterator[World]:
    cluster.install_crd()
    found = World(cluster)
    yield found
    found.close()


def test_through_the_proxy_nothing_differs_but_names(
    cluster: Cluster, world: World, namespace: str, tmp_path: Path
) -> None:
    ours = f"{GROUP}/namespaces/{namespace}/scheduledjobs"
    theirs = f"/apis/{THEIRS}/namespaces/{namespace}/cronjobs"
    cronjob = {
        **manifest("backup", schedule="*/5 * * * ?", jobTemplate=TEMPLATE),
        "apiVersion": THEIRS,
        "kind": "CronJob",
    }
    with renaming_proxy(cluster, directory=tmp_path) as kubeconfig:
        through = ("--kubeconfig", str(kubeconfig))

        create = ("create", "-n", namespace, "--validate=false", "-f", "-")
        made = cluster.kubectl(
            *through, *create, "-o", "json", "--show-managed-fields", input=json.dumps(cronjob)
        )
        asked = cluster.kubectl(*through, "get", "--raw", theirs)
        wide = cluster.kubectl(*through, "get", "--raw", f"/apis/{THEIRS}/cronjobs?limit=500")
        watched = cluster.kubectl(
            *through, "get", "--raw", f"{theirs}?watch=1&timeoutSeconds=1&resourceVersion=0"
        )

        found = world.get(ours)
        assert renamed(json.loads(made.stdout), TO_OURS) == found["items"][0]
        version = {"metadata": found["metadata"]}  # of the list: other objects move it
        assert renamed(json.loads(asked.stdout), TO_OURS) | version == found
        listed = json.loads(wide.stdout)
        assert (listed["apiVersion"], listed["kind"]) == (THEIRS, "CronJobList")
        told = [json.loads(line) for line in watched.stdout.splitlines()]
        assert [renamed(each["object"], TO_OURS) for each in told] == found["items"]


def test_what_kubernetes_specs_check_of_a_resource(world: World, namespace: str) -> None:
    """All that the spec `should support CronJob API operations` asks for, but for one step."""
    path = f"{GROUP}/namespaces/{namespace}/scheduledjobs"
    ours = "labelSelector=special%3Dyes"
    made = manifest("api", schedule="* */1 * * ?", jobTemplate=TEMPLATE)
    made["metadata"]["labels"] = {"special": "yes"}
    created = world.call("POST", path, made)
    one = f"{path}/api"

    assert world.get(one)["metadata"]["uid"] == created["metadata"]["uid"]
    for everywhere in (path, f"{GROUP}/scheduledjobs"):
        assert len(world.items(f"{everywhere}?{ours}")) == 1

    patched = world.call("PATCH", one, {"metadata": {"annotations": {"patched": "true"}}}, MERGE)
    assert patched["metadata"]["annotations"]["patched"] == "true"
    version = int(patched["metadata"]["resourceVersion"])
    assert version > int(created["metadata"]["resourceVersion"])
    patched["metadata"]["annotations"]["updated"] = "true"
    updated = world.call("PUT", one, patched)
    assert updated["metadata"]["annotations"]["updated"] == "true"

    told = {"lastScheduleTime": "2026-11-20T01:00:00Z"}
    patched = world.call("PATCH", f"{one}/status", {"status": told}, MERGE)
    assert patched["status"].items() >= told.items()
    told = {"lastScheduleTime": "2026-11-20T01:00:05Z"}
    replaced = world.call("PUT", f"{one}/status", {**world.get(one), "status": told})
    assert replaced["status"] == told
    assert world.get(f"{one}/status")["metadata"]["uid"] == created["metadata"]["uid"]

    made["metadata"]["name"] = "for-removal"
    world.call("POST", path, made)
    world.delete(namespace, "for-removal")
    with pytest.raises(RefusedError, match="404"):
        world.schedule(namespace, "for-removal")
    world.call("DELETE", f"{path}?{ours}")
    assert world.items(f"{path}?{ours}") == []


def test_metadata_of_a_custom_resource_cannot_be_written_through_its_status(
    world: World, namespace: str
) -> None:
    """That step: CronJob's /status takes annotations; that of every custom resource drops them."""
    world.create(namespace, "api", schedule="0 0 1 1 *")
    path = f"{GROUP}/namespaces/{namespace}/scheduledjobs/api/status"
    told = {"lastScheduleTime": "2026-11-20T01:00:00Z"}

    patched = world.call(
        "PATCH", path, {"metadata": {"annotations": {"patched": "true"}}, "status": told}, MERGE
    )

    assert patched["status"]["lastScheduleTime"] == told["lastScheduleTime"]
    assert "annotations" not in patched["metadata"]
