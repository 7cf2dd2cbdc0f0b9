"""Every Job that ever came to be in a namespace, by a watch: those that are gone, and those whose
create was answered by nobody, because the operator was killed meanwhile.

    with JobWatch(cluster, ns) as seen:
        ...
        eventually(lambda: len(seen.made()) == 300, "300 Jobs")

Called by tests that kill operators. Not guaranteed: an API server that dies ends the watch, and
`made` then fails.
"""

from __future__ import annotations

import http.client
import json
import threading
from typing import Self
from urllib.parse import urlsplit

from tests.cluster.harness import Cluster
from tests.cluster.world import BATCH

from evenkeel.kube import credentials

ROUND_S = 3
"""So long each request watches; so long the end may take."""


class JobWatch:
    def __init__(self, cluster: Cluster, ns: str) -> None:
        self._credentials = credentials.load(cluster.kubeconfig)
        self._path = f"{BATCH}/namespaces/{ns}/jobs"
        self._made: list[str] = []
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._version = ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def made(self) -> list[str]:
        """The name of each Job, in the order in which they came to be; a name twice: two Jobs."""
        if self._error is not None:
            raise AssertionError("the watch of Jobs has ended") from self._error
        return list(self._made)

    def __enter__(self) -> Self:
        with self._get("?limit=1") as listed:
            self._version = json.loads(listed.read())["metadata"]["resourceVersion"]
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=60)

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._watch()
        except BaseException as error:  # noqa: BLE001 - it must not vanish with this thread
            self._error = error

    def _watch(self) -> None:
        """One request, to its end."""
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
        with self._get(f"{query}&timeoutSeconds={ROUND_S}") as stream:
            for line in stream:
                event = json.loads(line)
                assert event["type"] != "ERROR", event
                metadata = event["object"]["metadata"]
                self._version = metadata["resourceVersion"]
                if event["type"] == "ADDED":
                    self._made.append(metadata["name"])

    def _get(self, query: str) -> http.client.HTTPResponse:
        host = urlsplit(self._credentials.server)
        connection = http.client.HTTPSConnection(
            host.hostname or "", host.port or 443, context=self._credentials.context, timeout=60
        )
        headers = self._credentials.headers() | {"Connection": "close"}
        connection.request("GET", self._path + query, headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        return answer
