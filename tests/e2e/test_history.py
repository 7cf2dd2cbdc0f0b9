"""The history of runs outlives the operator's Pod, its upgrade and its release, on a real node.

Once as a file in a PersistentVolumeClaim, once in a PostgreSQL database whose URL is in a Secret.
Helm's commands are those of docs/ledger.md, word for word.
"""

from __future__ import annotations

import ipaddress
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cluster.world import eventually
from tests.docs.words import said
from tests.e2e.release import NS, Json, Release, work
from tests.ledger import postgres_server

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("helm")]

PATIENCE_S = 240
EVERY_S = 10
Row = tuple[str, str, str]


@pytest.fixture
def claim(release: Release) -> Iterator[str]:
    """What else a claim needs: a volume, where nobody makes one when it is asked for."""
    classes = release.world.items("/apis/storage.k8s.io/v1/storageclasses")
    if any(each["provisioner"] != "kubernetes.io/no-provisioner" for each in classes):
        yield ""
        return
    with _volume(release):
        yield "--set store.persistence.storageClass=-"


@contextmanager
def _volume(release: Release) -> Iterator[None]:
    """A directory of the node, which belongs to root: the Pod's fsGroup makes it writable."""
    if release.cluster.kind != "built":
        pytest.skip("this cluster makes no volumes, and no directory of its node is known here")
    directory = Path(tempfile.mkdtemp(prefix="evenkeel-volume-"))
    (node,) = release.world.items("/api/v1/nodes")
    here = {
        "key": "kubernetes.io/hostname",
        "operator": "In",
        "values": [node["metadata"]["labels"]["kubernetes.io/hostname"]],
    }
    volume = {
        "metadata": {"name": directory.name.replace("_", "-").lower()},
        "spec": {
            "capacity": {"storage": "4Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": str(directory)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
    volumes = "/api/v1/persistentvolumes"
    made = release.world.call("POST", volumes, volume)
    try:
        yield
    finally:
        release.world.call("DELETE", f"{volumes}/{made['metadata']['name']}")
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def database(release: Release) -> Iterator[postgres_server.PostgresServer]:
    """A PostgreSQL on this machine, where the node's Pods can reach it."""
    if release.cluster.kind != "built":
        pytest.skip("how this cluster's Pods reach this machine is not known here")
    if sentence := postgres_server.missing():
        pytest.skip(sentence)
    node = ipaddress.ip_address(urlsplit(release.cluster.server).hostname or "")
    (here,) = set(ipaddress.ip_network(f"{node}/30", strict=False).hosts()) - {node}
    server = postgres_server.PostgresServer(str(here))
    try:
        server.start()
        server.sql("CREATE DATABASE history")
        yield server
    finally:
        server.remove()


def test_a_file_in_a_claim_outlives_pod_and_release(release: Release, claim: str) -> None:
    assert "STATUS: deployed" in said("install-claim", release.cluster, more=claim)
    history_is_still_there_after_all_that_can_happen_to_a_pod(release, "install-claim", claim)


def test_a_database_named_by_a_secret_outlives_pod_and_release(
    release: Release, database: postgres_server.PostgresServer
) -> None:
    url = database.url("history")
    secret = {"metadata": {"name": "evenkeel-store"}, "stringData": {"url": url}}
    release.world.call("POST", f"/api/v1/namespaces/{NS}/secrets", secret)
    assert "STATUS: deployed" in said("install-database", release.cluster)
    history_is_still_there_after_all_that_can_happen_to_a_pod(release, "install-database", "")

    assert int(database.sql("SELECT count(*) FROM evenkeel.run", "history")) > 0
    told = release.kubectl("logs", "deployment/evenkeel") + json.dumps(release.pod())
    assert postgres_server.PASSWORD not in told
    assert urlsplit(url).password not in told


def history_is_still_there_after_all_that_can_happen_to_a_pod(
    release: Release, install: str, more: str
) -> None:
    world = release.world
    ns = world.namespace("history")
    every = {"every": f"{EVERY_S}s", "offset": "0s"}
    world.create(ns, "often", interval=every, jobTemplate=work())
    history = recorded(release, at_least=2)
    begun = begun_at(release)

    old = release.pod()["metadata"]
    world.call("DELETE", f"/api/v1/namespaces/{NS}/pods/{old['name']}")
    release.kubectl("rollout", "status", "deployment/evenkeel", "--timeout=240s")
    assert release.pod()["metadata"]["uid"] != old["uid"]
    history = it_grew(release, history, "its Pod was deleted")

    values = f"{more} --reuse-values --set config.grace=20"
    assert "STATUS: deployed" in said("upgrade", release.cluster, more=values)
    history = it_grew(release, history, "it was upgraded")

    said("uninstall", release.cluster)
    eventually(lambda: not world.items(f"/api/v1/namespaces/{NS}/pods"), "its Pod is gone")
    assert "STATUS: deployed" in said(install, release.cluster, more=more)
    it_grew(release, history, "it was installed again")

    shown = said("history", release.cluster)
    assert f"{ns}/often  succeeded" in shown
    assert "Every due time is recorded once." in shown
    audit = json.loads(release.kubectl(*in_pod("ledger", "audit", "-o", "json")))
    assert (audit["missing"], audit["extra"], audit["differences"]) == (0, 0, [])
    assert audit["unrecorded"] == 0
    assert audit["expected"] == audit["recorded"] >= len(history)
    assert begun_at(release) == begun  # a new store would be filled from status.recent


def begun_at(release: Release) -> str:
    """When the store was made; all that it holds is right."""
    found: Json = json.loads(release.kubectl(*in_pod("ledger", "check", "-o", "json")))
    assert found["wrong"] == []
    return str(found["since"])


def recorded(release: Release, *, at_least: int) -> dict[Row, Json]:
    """Runs that ended, as `evenkeel runs` tells them in the operator's own Pod."""

    def look() -> dict[Row, Json]:
        text = release.kubectl(*in_pod("runs", "-o", "json"))
        rows = [json.loads(line) for line in text.splitlines()]
        ended = [row for row in rows if row.get("state") == "succeeded"]
        return {(row["schedule"], row["kind"], row["due"]): row for row in ended}

    found: dict[Row, Json] = {}

    def enough() -> bool:
        found.update(look())
        return len(found) >= at_least

    eventually(enough, f"the ledger has {at_least} runs", within_s=PATIENCE_S, every_s=2)
    return found


def it_grew(release: Release, before: dict[Row, Json], when: str) -> dict[Row, Json]:
    """What was recorded is still so, and more is."""
    after = recorded(release, at_least=len(before) + 1)
    assert before.keys() <= after.keys(), when
    return after


def in_pod(*command: str) -> list[str]:
    """The command is run where the operator's own variables say which store it keeps."""
    return ["exec", "deployment/evenkeel", "--", "evenkeel", *command]
