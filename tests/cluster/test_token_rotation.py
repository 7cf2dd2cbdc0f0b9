"""A token is rotated and the old one refused: the operator goes on seeing what becomes of Jobs."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from tests.cluster.harness import Cluster
from tests.cluster.hostile_webhook import hostile_webhook
from tests.cluster.operator_process import operator
from tests.cluster.world import Json, RefusedError, World, eventually, every

SETTINGS = {"MIN_INTERVAL": "1", "REQUEST_TIMEOUT": "2"}
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    yield found
    found.leave()
    found.close()


def test_ends_of_jobs_are_seen_after_a_token_was_rotated_and_refused(
    world: World, tmp_path: Path
) -> None:
    ns = world.namespace("rotation")
    accounts = Accounts(world, ns, tmp_path)
    with (
        accounts.bound("first", "second"),
        operator(accounts.kubeconfig, directory=tmp_path, settings=SETTINGS) as running,
    ):
        world.create(ns, "it", interval=every(2), concurrencyPolicy="Forbid")
        eventually(lambda: world.counts(ns, "it").get("succeeded", 0) >= 2, "two runs")

        accounts.use("second")
        accounts.delete("first")
        eventually(lambda: not accounts.accepted("first"), "the old token is refused")
        time.sleep(6)  # calls under way have ended, and what they were sent on is closed

        before = world.counts(ns, "it").get("succeeded", 0)
        eventually(
            lambda: world.counts(ns, "it").get("succeeded", 0) >= before + 5,
            "five more ends",
            within_s=45,  # a watch that sees nothing is given up after 90 s
        )
        silence = "evenkeel_watch_silence_seconds"
        eventually(lambda: running.metrics()[silence] < 10, "its watch is heard", within_s=10)


@pytest.mark.long
def test_ends_of_jobs_are_seen_after_a_webhook_has_answered_401_to_a_rotated_token(
    world: World, tmp_path: Path
) -> None:
    """The old token stays valid, as kubelet's do. The webhook is a tenant's."""
    ns, hostile = world.namespace("rotation"), world.namespace("hostile")
    accounts = Accounts(world, ns, tmp_path)
    with (
        accounts.bound("first", "second"),
        operator(accounts.kubeconfig, directory=tmp_path, settings=SETTINGS) as running,
        hostile_webhook(world, hostile, directory=tmp_path, of="jobs") as webhook,
    ):
        webhook.answer = {"allowed": False, "status": {"code": 401, "message": "no"}}
        world.create(ns, "it", interval=every(2), concurrencyPolicy="Forbid")
        eventually(lambda: world.counts(ns, "it").get("succeeded", 0) >= 2, "two runs")
        accounts.use("second")
        world.create(hostile, "it", interval=every(5))
        eventually(lambda: webhook.asked >= 3, "three creates are denied")

        before = world.counts(ns, "it").get("succeeded", 0)
        eventually(
            lambda: world.counts(ns, "it").get("succeeded", 0) >= before + 5,
            "five more ends",
            within_s=45,
        )
        silence = "evenkeel_watch_silence_seconds"
        eventually(lambda: running.metrics()[silence] < 10, "its watch is heard", within_s=10)


class Accounts:
    """ServiceAccounts that may do anything, and a kubeconfig that names a file with a token."""

    def __init__(self, world: World, ns: str, directory: Path) -> None:
        self._world = world
        self._ns = ns
        self._token = directory / "token"
        self._tokens: dict[str, str] = {}
        self.kubeconfig = directory / "kubeconfig"
        document = yaml.safe_load(world.cluster.kubeconfig.read_text())
        document["users"][0]["user"] = {"tokenFile": str(self._token)}
        self.kubeconfig.write_text(json.dumps(document))

    @contextmanager
    def bound(self, *names: str) -> Iterator[None]:
        """Each may do anything until the block ends; the first one's token is in the file."""
        binding = f"rotation-{self._ns}"
        accounts = f"/api/v1/namespaces/{self._ns}/serviceaccounts"
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        body: Json = {
            "metadata": {"name": binding},
            "roleRef": {**role, "name": "cluster-admin"},
            "subjects": [
                {"kind": "ServiceAccount", "namespace": self._ns, "name": name} for name in names
            ],
        }
        self._world.call("POST", BINDINGS, body)
        try:
            for name in names:
                self._world.call("POST", accounts, {"metadata": {"name": name}})
                request = {"spec": {"expirationSeconds": 600}}
                answer = self._world.call("POST", f"{accounts}/{name}/token", request)
                self._tokens[name] = answer["status"]["token"]
            self.use(names[0])
            yield
        finally:
            self._world.call("DELETE", f"{BINDINGS}/{binding}")

    def use(self, name: str) -> None:
        """This one's token is in the file, whole at any moment."""
        draft = self._token.with_suffix(f".{secrets.token_hex(4)}")
        draft.write_text(self._tokens[name])
        draft.replace(self._token)

    def delete(self, name: str) -> None:
        """Its tokens are refused, as soon as the API server forgets that it has taken them."""
        path = f"/api/v1/namespaces/{self._ns}/serviceaccounts/{name}"
        self._world.call("DELETE", path)

    def accepted(self, name: str) -> bool:
        file = self._token.with_name(f"{name}.kubeconfig")
        document = yaml.safe_load(self.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": self._tokens[name]}
        file.write_text(json.dumps(document))
        asker = World(self._world.cluster, file)
        try:
            asker.get("/api")
        except RefusedError as error:
            return error.status != 401
        finally:
            asker.close()
        return True
