"""A real API server for the benchmarks, the ScheduledJobs on it, and an account for everybody.

Ours and the bare client are the same service account to the API server, so its fair queuing treats
both alike; an administrator would pass it by. The control plane is always our own, on this machine.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import uvloop
from tests.cluster.harness import Cluster, Options, start, state
from tests.cluster.harness.cluster import Pods, Profile
from tests.cluster.world import eventually

from evenkeel.kube import credentials
from evenkeel.kube.api import MERGE_PATCH
from evenkeel.kube.client import KubeClient

Json = dict[str, Any]
Request = tuple[str, str, Json | None]
ACCOUNT = "system:serviceaccount:evenkeel:evenkeel"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:evenkeel", "system:authenticated")
SCHEDULES = "/apis/evenkeel.dev/v1alpha1"
BATCH = "/apis/batch/v1"
TEMPLATE: Json = {
    "spec": {
        "backoffLimit": 1,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/team/report:1.4.2",
                        "command": ["/usr/bin/report", "--day", "yesterday", "--out", "/out"],
                        "env": [{"name": "REGION", "value": "north"}],
                        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
                    }
                ],
            }
        },
    }
}
"""About what people write: the prototype's was as long."""


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, the account's kubeconfig, and room for files."""

    cluster: Cluster
    kubeconfig: Path
    directory: Path

    def pids(self, *names: str) -> list[int]:
        """The processes of the control plane, by name; none named: all."""
        found = state.load(self.cluster.kubeconfig.parent.name)
        assert found is not None
        return [each.pid for name, each in found.processes.items() if not names or name in names]

    def namespace(self, name: str) -> str:
        self.send([("POST", "/api/v1/namespaces", {"metadata": {"name": name}})])
        eventually(
            lambda: self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"),
            "the namespace has its default account",
        )
        return name

    def send(
        self,
        requests: Iterable[Request],
        *,
        in_flight: int = 32,
        a_second: float = float("inf"),
    ) -> list[Json]:
        """Many requests at a time, and no more than so many a second; every one must succeed. The
        answers in order."""
        wanted = list(requests)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._send(wanted, in_flight, a_second))

    def get(self, path: str) -> Json:
        return self.send([("GET", path, None)])[0]

    async def _send(self, requests: list[Request], in_flight: int, a_second: float) -> list[Json]:
        answers: list[Json] = [{}] * len(requests)
        waiting = iter(enumerate(requests))
        async with KubeClient(
            lambda: credentials.load(self.cluster.kubeconfig), timeout_s=60, connections=in_flight
        ) as client:
            began = time.monotonic()

            async def work() -> None:
                for place, (verb, path, content) in waiting:
                    await asyncio.sleep(max(0.0, began + place / a_second - time.monotonic()))
                    reply = await client.call(
                        verb,
                        path,
                        body=None if content is None else orjson.dumps(content),
                        content_type=MERGE_PATCH if verb == "PATCH" else "application/json",
                    )
                    assert reply.ok, f"{verb} {path}: {reply.status} {reply.message}"
                    answers[place] = reply.json()

            # Not a TaskGroup: whoever tries until it works wants the bare AssertionError.
            await asyncio.gather(*(work() for _ in range(min(in_flight, len(requests)))))
        return answers

    def schedules(
        self, ns: str, count: int, spec: Callable[[int], Json], *, word: str = "job"
    ) -> list[Json]:
        """Create `count` ScheduledJobs; each its own timing, one template."""
        path = f"{SCHEDULES}/namespaces/{ns}/scheduledjobs"
        return self.send(
            ("POST", path, scheduled_job(f"{word}-{number:05}", spec(number)))
            for number in range(count)
        )


def scheduled_job(name: str, spec: Json) -> Json:
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "metadata": {"name": name},
        "spec": {"jobTemplate": TEMPLATE, **spec},
    }


@contextmanager
def place(*, pods: Pods = "none", profile: Profile = "tuned") -> Iterator[Place]:
    """A control plane of our own with the CRD on it; ended with the block."""
    name = f"bench-{secrets.token_hex(3)}"
    cluster = start(name, pods, Options(profile=profile), own=True)
    try:
        cluster.install_crd()
        words = ("create", "clusterrolebinding", "bench", "--clusterrole=cluster-admin")
        cluster.kubectl(*words, f"--user={ACCOUNT}")
        account = cluster.user_kubeconfig(ACCOUNT, GROUPS)
        with TemporaryDirectory(prefix="evenkeel-bench-") as directory:
            yield Place(cluster, account, Path(directory))
    finally:
        cluster.stop()
