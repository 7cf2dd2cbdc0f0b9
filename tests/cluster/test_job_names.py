"""What a real API server says of the names of our Jobs, by dry runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import orjson
import pytest
from tests.builders import cron, every
from tests.cluster.harness import Cluster
from tests.cluster.world import BATCH, RefusedError, World
from tests.unit.resource.cases import TEMPLATE
from tests.unit.resource.job_names import KINDS, MINUTES, NAMES, SECONDS

from evenkeel.model import Retry, RunId, Schedule
from evenkeel.resource.job import pod_name_problem, render

LAST_MINUTE, LAST_SECOND = 99_999_999 * 60, 9_999_999_999


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[World]:
    found = World(cluster)
    yield found
    found.close()


def refusal(server: World, of: Schedule, run: RunId, attempt: int = 1) -> str:
    """Why this Job may not be created; empty when it may."""
    path = f"{BATCH}/namespaces/{of.ns}/jobs?dryRun=All&fieldValidation=Strict"
    try:
        server.call("POST", path, orjson.loads(render(of, run, attempt)))
    except RefusedError as error:
        return str(error)
    return ""


def test_a_job_may_be_called_so(server: World, namespace: str) -> None:
    for name in NAMES:
        seen = cron(
            "* * * * *", name=name, ns=namespace, uid="a-uid", template=orjson.dumps(TEMPLATE)
        )
        for due, kind, attempt in itertools.product((MINUTES[0], SECONDS[0]), KINDS[:2], (1, 21)):
            assert refusal(server, seen, RunId(seen.uid, due, kind), attempt) == ""


@pytest.mark.parametrize("completions", [1, 10, 11, 100, 101])
def test_the_api_server_refuses_an_indexed_job_where_we_say_so(
    server: World, namespace: str, completions: int
) -> None:
    indexed = {"completionMode": "Indexed", "completions": completions}
    template = orjson.dumps({"spec": TEMPLATE["spec"] | indexed})
    rules = [
        (cron("* * * * *", ns=namespace, template=template), LAST_MINUTE),
        (every(7, ns=namespace, template=template), LAST_SECOND),
    ]
    told = []
    for (seen, due), length, limit in itertools.product(rules, range(40, 56), (0, 1, 20)):
        schedule = cron(
            "* * * * *",
            name="a" * length,
            ns=namespace,
            template=template,
            retry=Retry(limit=limit),
            timing=seen.timing,
        )
        refused = [
            sentence
            for attempt in {1, limit + 1}
            if (sentence := refusal(server, schedule, RunId(schedule.uid, due), attempt))
        ]
        assert all("will not able to create pod" in sentence for sentence in refused), refused
        problem = pod_name_problem(schedule)
        assert bool(refused) is (problem is not None), (problem, refused)
        told.append(problem is not None)
    assert set(told) == {False, True}
