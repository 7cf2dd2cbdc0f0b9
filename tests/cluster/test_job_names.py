"""What a real API server says of the names of our Jobs, by dry runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from tests.builders import cron, every
from tests.cluster.harness import Cluster
from tests.cluster.world import BATCH, RefusedError, World
from tests.unit.resource.cases import POD, TEMPLATE, scheduled_job, spec
from tests.unit.resource.job_names import KINDS, MINUTES, NAMES, SECONDS
from tests.unit.resource.request_cases import run_request, wish

from evenkeel.model import Request, Retry, RunId, Schedule, kind_of_request
from evenkeel.resource.job import pod_name_problem, render
from evenkeel.resource.read import read
from evenkeel.resource.request_read import read_request

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


def test_a_requested_job_is_taken_with_the_parameters_of_its_request(
    server: World, namespace: str
) -> None:
    pod = {**POD, "initContainers": [{"name": "first", "image": "busybox:1"}]}
    parameters = [{"name": "DAY", "value": "today"}, {"name": "SIZE", "value": "10"}]
    fields = {"schedule": "@daily", "parameters": parameters}
    template = {"spec": {"template": {"spec": pod}}}
    seen = read(scheduled_job(spec(**fields, jobTemplate=template), ns=namespace))
    asked = read_request(run_request(wish(parameters=[{"name": "DAY", "value": "$(SIZE)"}])))
    assert isinstance(seen, Schedule)
    assert isinstance(asked, Request)
    run = RunId(seen.uid, MINUTES[0], kind_of_request(asked.uid))
    path = f"{BATCH}/namespaces/{namespace}/jobs?dryRun=All&fieldValidation=Strict"
    taken = server.call("POST", path, orjson.loads(render(seen, run, 2, asked)))
    made = taken["spec"]["template"]
    assert made["metadata"]["annotations"]["evenkeel.dev/request"] == "again"
    for container in (*made["spec"]["initContainers"], *made["spec"]["containers"]):
        assert container["env"] == [
            {"name": "DAY", "value": "$$(SIZE)"},
            {"name": "SIZE", "value": "10"},
        ]


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
    told = {
        agreed(server, seen, [RunId(seen.uid, due)], length, limit)
        for (seen, due), length, limit in itertools.product(rules, range(40, 56), (0, 1, 20))
    }
    assert told == {False, True}


def test_the_api_server_refuses_a_requested_indexed_job_where_we_say_so(
    server: World, namespace: str
) -> None:
    """The name of a requested run is longer than that of a scheduled one, and cut earlier."""
    indexed = {"completionMode": "Indexed", "completions": 1_000_001}
    seen = cron(
        "* * * * *", ns=namespace, template=orjson.dumps({"spec": TEMPLATE["spec"] | indexed})
    )
    runs = [RunId(seen.uid, LAST_MINUTE), RunId(seen.uid, LAST_SECOND, "q0abcdef")]
    told = {
        agreed(server, seen, runs, length, limit)
        for length, limit in itertools.product((26, 27, 28, 30, 31, 40), (0, 20))
    }
    assert told == {False, True}


def agreed(server: World, seen: Schedule, runs: list[RunId], length: int, limit: int) -> bool:
    """Whether both refuse a schedule with a name so long and with so many retries."""
    schedule = replace(seen, name="a" * length, retry=Retry(limit=limit))
    refused = [
        sentence
        for run in runs
        for attempt in {1, limit + 1}
        if (sentence := refusal(server, schedule, run, attempt))
    ]
    assert all("will not able to create pod" in sentence for sentence in refused), refused
    problem = pod_name_problem(schedule)
    assert bool(refused) is (problem is not None), (problem, refused)
    return problem is not None
