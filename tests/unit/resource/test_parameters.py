"""Parameters of a schedule and of a request: what the containers of a run get."""

from typing import Any

import orjson
import pytest
from tests.unit.resource.cases import TEMPLATE, Json, scheduled_job, spec
from tests.unit.resource.request_cases import run_request, wish

from evenkeel.model import Parameter, Rejection, Request, RunId, Schedule, kind_of_request
from evenkeel.resource.job import render
from evenkeel.resource.parameters import bake
from evenkeel.resource.read import PARAMETERS_BYTES, TEMPLATE_BYTES, read
from evenkeel.resource.request_read import read_request

DAY = {"name": "DAY", "value": "today"}
SIZE = {"name": "SIZE", "value": "10", "enum": ["10", "100"]}


def template_of(*containers: Json, **pod: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": list(containers), **pod}}}}


def accepted(*parameters: Json, template: Json = TEMPLATE, **changes: Any) -> Schedule:
    fields = {"schedule": "@daily", "parameters": list(parameters), "jobTemplate": template}
    found = read(scheduled_job(spec(**{**fields, **changes})))
    assert isinstance(found, Schedule), found
    return found


def asked(*given: Json, **fields: Any) -> Request:
    found = read_request(run_request(wish(parameters=list(given), **fields)))
    assert isinstance(found, Request), found
    return found


def pod_of(schedule: Schedule, request: Request | None = None) -> Json:
    kind = "s" if request is None else kind_of_request(request.uid)
    body = orjson.loads(render(schedule, RunId(schedule.uid, 0, kind), 1, request))
    found: Json = body["spec"]["template"]["spec"]
    return found


def env_of(schedule: Schedule, request: Request | None = None) -> Any:
    return pod_of(schedule, request)["containers"][0]["env"]


def test_a_schedule_reads_its_parameters() -> None:
    assert accepted(DAY, SIZE).parameters == (
        Parameter("DAY", "today"),
        Parameter("SIZE", "10", ("10", "100")),
    )
    assert accepted().parameters == ()


def test_each_container_gets_them_first_and_init_containers_too() -> None:
    main = {"name": "main", "env": [{"name": "OWN", "value": "$(DAY)"}]}
    ours = [{"name": "DAY", "value": "today"}, {"name": "SIZE", "value": "10"}]
    template = template_of(
        main,
        {"name": "second"},
        initContainers=[
            {"name": "first", "env": None},
            {"name": "proxy", "restartPolicy": "Always"},
        ],
        ephemeralContainers=[{"name": "debug"}],
    )
    pod = pod_of(accepted(DAY, SIZE, template=template))
    assert pod["containers"] == [
        {"name": "main", "env": [*ours, {"name": "OWN", "value": "$(DAY)"}]},
        {"name": "second", "env": ours},
    ]
    assert [one["env"] for one in pod["initContainers"]] == [ours, ours]
    assert pod["ephemeralContainers"] == [{"name": "debug"}]


def test_a_variable_of_the_same_name_goes() -> None:
    secret = {"name": "DAY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    other = {"name": "day", "value": "is another variable"}
    main = {"name": "main", "env": [secret, other, {**DAY, "value": "old"}], "envFrom": [{"x": 1}]}
    pod = pod_of(accepted(DAY, template=template_of(main)))
    assert pod["containers"] == [
        {"name": "main", "env": [{"name": "DAY", "value": "today"}, other], "envFrom": [{"x": 1}]}
    ]


def test_a_request_gives_other_values_and_leaves_the_rest() -> None:
    schedule = accepted(DAY, SIZE)
    request = asked({"name": "SIZE", "value": "100"})
    assert env_of(schedule, request) == [
        {"name": "DAY", "value": "today"},
        {"name": "SIZE", "value": "100"},
    ]
    assert env_of(schedule) == env_of(schedule, asked()), "the next run has the schedule's own"


def test_a_name_that_the_schedule_does_not_have_reaches_no_container() -> None:
    """Such a request is refused. Should the schedule lose the parameter later, its value goes."""
    request = asked({"name": "LD_PRELOAD", "value": "x"})
    assert env_of(accepted(DAY), request) == [{"name": "DAY", "value": "today"}]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("$(SECRET)", "$$(SECRET)"),
        ("$$(SECRET)", "$$$$(SECRET)"),
        ("costs 5$", "costs 5$$"),
        ("", ""),
        ('"; rm -rf /\n', '"; rm -rf /\n'),
    ],
)
def test_a_value_is_literal(value: str, written: str) -> None:
    assert env_of(accepted({**DAY, "value": value})) == [{"name": "DAY", "value": written}]
    request = asked({**DAY, "value": value})
    assert env_of(accepted(DAY), request) == [{"name": "DAY", "value": written}]


def test_a_changed_value_is_a_changed_template_and_a_changed_choice_is_none() -> None:
    plain = accepted(DAY).template_hash
    assert accepted({**DAY, "value": "tomorrow"}).template_hash != plain
    assert accepted().template_hash != plain
    assert accepted({**DAY, "enum": ["today", "tomorrow"]}).template_hash == plain
    assert accepted().template_hash == accepted(parameters=None).template_hash


def test_what_is_counted_of_a_template_stays() -> None:
    container = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "2"}}}
    template = template_of(container)
    template["spec"]["ttlSecondsAfterFinished"] = 60
    with_them, without = accepted(DAY, template=template), accepted(template=template)
    for field in ("images", "weight_by_requests", "ttl_s"):
        assert getattr(with_them, field) == getattr(without, field)


@pytest.mark.parametrize(
    "template",
    [
        {},
        {"spec": None},
        {"spec": {"template": []}},
        {"spec": {"template": {"spec": "x"}}},
        {"spec": {"template": {"spec": {"containers": {"name": "main"}}}}},
        {"spec": {"template": {"spec": {"containers": ["main", None]}}}},
        {"spec": {"template": {"spec": {"containers": [{"env": {"A": "1"}}]}}}},
    ],
    ids=str,
)
def test_a_template_that_is_none_is_passed_through(template: Json) -> None:
    assert bake(template, [Parameter("A", "1")]) == template


def test_an_odd_variable_stays_for_the_api_server_to_refuse() -> None:
    main = {"env": ["DAY", None, {"name": ["DAY"]}, {}]}
    pod = pod_of(accepted(DAY, template=template_of(main)))
    assert pod["containers"][0]["env"][1:] == main["env"]


def test_a_requested_run_tells_its_request() -> None:
    schedule, request = accepted(DAY), asked()
    kind = kind_of_request(request.uid)
    body = orjson.loads(render(schedule, RunId(schedule.uid, 3600, kind), 2, request))
    assert body["metadata"]["name"] == f"nightly-{kind}-retry1-60"
    pod = body["spec"]["template"]
    for notes in (body["metadata"]["annotations"], pod["metadata"]["annotations"]):
        assert notes["evenkeel.dev/request"] == "again"
        assert notes["evenkeel.dev/due"] == "1970-01-01T01:00:00Z"


def test_a_run_by_schedule_tells_of_no_request() -> None:
    template = template_of({"name": "main"})
    template["metadata"] = {"annotations": {"evenkeel.dev/request": "forged"}}
    schedule = accepted(template=template)
    body = orjson.loads(render(schedule, RunId(schedule.uid, 0)))
    assert "evenkeel.dev/request" not in body["metadata"]["annotations"]


def test_parameters_that_would_fill_the_memory_are_refused() -> None:
    choices = [f"{number}{'x' * 4000}" for number in range(50)]
    parameter = {"name": "A", "value": choices[0], "enum": choices}
    found = read(scheduled_job(spec(schedule="@daily", parameters=[parameter])))
    assert isinstance(found, Rejection)
    assert found.field == "spec.parameters"
    assert "have 200 KiB of values, and at most 128 KiB are taken" in found.sentence
    assert PARAMETERS_BYTES > 20 * 4096, "twenty long values have room"


def test_a_template_that_grows_too_large_by_its_parameters_is_refused() -> None:
    containers = [{"name": f"c{number}"} for number in range(5)]
    parameters = [{"name": f"P{number}", "value": "x" * 4096} for number in range(20)]
    raw = spec(schedule="@daily", parameters=parameters, jobTemplate=template_of(*containers))
    found = read(scheduled_job(raw))
    assert isinstance(found, Rejection)
    assert found.field == "spec.jobTemplate"
    assert "KiB of JSON with the parameters in each container" in found.sentence
    assert TEMPLATE_BYTES < 5 * 20 * 4096


def trigger_of(note: Any) -> str:
    raw = scheduled_job(spec(schedule="@daily"))
    raw["metadata"]["annotations"] = {"evenkeel.dev/trigger": note}
    found = read(raw)
    assert isinstance(found, Schedule)
    return found.trigger


def test_an_annotation_triggers() -> None:
    assert trigger_of("2026-01-01") == "2026-01-01"
    assert trigger_of("x" * 300) == "x" * 256
    assert trigger_of("") == trigger_of(" \n") == trigger_of(None) == trigger_of([]) == ""
