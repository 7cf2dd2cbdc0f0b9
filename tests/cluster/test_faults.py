"""What goes wrong in a real cluster, and that only the schedule it happens to notices.

Every test has a scene: schedules in a namespace of its own, prepared together before the first
test, so that what must be waited for passes for all of them at once. One operator serves them all,
as a user with no more rights than it needs. Faults of the API server: test_api_server_faults.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import (
    BATCH,
    GROUP,
    MERGE,
    Json,
    RefusedError,
    World,
    due,
    eventually,
    every,
    install,
    moment,
    names,
    once,
    owner,
    seconds,
    template,
)

from evenkeel.model import RunId
from evenkeel.resource.job import job_name

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}
USER = "evenkeel-operator"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RIGHTS: list[Json] = [
    {
        "apiGroups": ["evenkeel.dev"],
        "resources": ["scheduledjobs"],
        "verbs": ["get", "list", "watch"],
    },
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/status"], "verbs": ["patch"]},
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/finalizers"], "verbs": ["update"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list", "create", "patch"]},
]
CREATES_JOBS: list[Json] = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]}]
MANY = {"successfulJobsHistoryLimit": 100, "failedJobsHistoryLimit": 100}

Prepare = Callable[[World, str], object]
SCENES: dict[str, Prepare] = {}


def scene(prepare: Prepare) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What must be there when the test below begins, in the namespace that it gets as `ns`."""

    def of(test: Callable[..., None]) -> Callable[..., None]:
        SCENES[test.__name__] = prepare
        return test

    return of


def times(count: int, *, seconds_apart: int = 1) -> Json:
    """A rule with that many due times, the first in a second or two."""
    rule = every(seconds_apart, first_in=1)
    end = seconds(rule["anchor"]) + seconds_apart * count + 1
    return {"interval": rule, "endTime": moment(end)}


# --- the stage ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(kwok_cluster: Cluster) -> Iterator[World]:
    install(kwok_cluster)
    found = World(kwok_cluster)
    yield found
    found.close()


@pytest.fixture(scope="module")
def limited(world: World) -> Iterator[Path]:
    """A kubeconfig of a user who may do what the operator does, but create Jobs nowhere yet."""
    roles = {USER: RIGHTS, f"{USER}-creates": CREATES_JOBS}
    for name, rules in roles.items():
        put(world, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    put(world, f"{RBAC}/clusterrolebindings", binding(USER))
    yield world.cluster.user_kubeconfig(USER)
    for name in roles:
        try:
            world.call("DELETE", f"{RBAC}/clusterrolebindings/{name}")
        except RefusedError as error:
            if error.status != 404:
                raise
        world.call("DELETE", f"{RBAC}/clusterroles/{name}")


def put(world: World, path: str, body: Json) -> None:
    """Create it, in place of what an earlier session may have left."""
    try:
        world.call("DELETE", f"{path}/{body['metadata']['name']}")
    except RefusedError as error:
        if error.status != 404:
            raise
    world.call("POST", path, body)


def binding(role: str, *, name: str = "") -> Json:
    return {
        "metadata": {"name": name or role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    }


def may_create(world: World, ns: str) -> None:
    bound = binding(f"{USER}-creates", name="creates")
    world.call("POST", f"{RBAC}/namespaces/{ns}/rolebindings", bound)


@pytest.fixture(scope="module")
def running(
    world: World,
    limited: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[OperatorProcess]:
    directory = tmp_path_factory.mktemp("faults")
    # It does not start without the right to create Jobs; afterwards each scene gives and takes it.
    everywhere = f"{RBAC}/clusterrolebindings"
    world.call("POST", everywhere, binding(f"{USER}-creates"))
    asked = ("--kubeconfig", str(limited), "auth", "can-i", "create", "jobs.batch", "-A")
    eventually(lambda: world.cluster.kubectl(*asked, check=False).returncode == 0, "it may create")
    with operator(limited, directory=directory, settings=SETTINGS) as found:
        world.call("DELETE", f"{everywhere}/{USER}-creates")
        yield found


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, world: World, running: OperatorProcess
) -> Iterator[dict[str, str]]:
    wanted = {
        item.originalname
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    }
    chosen = {name: prepare for name, prepare in SCENES.items() if name in wanted}

    def set_up(part: tuple[str, Prepare]) -> tuple[str, str]:
        name, prepare = part
        mine = World(world.cluster)
        ns = mine.namespace("faults")
        may_create(mine, ns)
        prepare(mine, ns)
        mine.close()
        return name, ns

    with ThreadPoolExecutor(4) as pool:
        found = dict(pool.map(set_up, chosen.items()))
    yield found
    world.leave(found.values())


@pytest.fixture
def ns(
    request: pytest.FixtureRequest, stage: dict[str, str], running: OperatorProcess
) -> Iterator[str]:
    assert isinstance(request.node, pytest.Function)
    yield stage[request.node.originalname]
    running.require_running()


def degraded(world: World, ns: str, reason: str) -> str:
    """The message of the condition, once it is there for that reason."""

    def look() -> str:
        found = world.condition(ns, "it", "Degraded")
        return (
            str(found["message"]) if (found["status"], found["reason"]) == ("True", reason) else ""
        )

    return eventually(look, f"Degraded for {reason}")


# --- held: it may heal, and does by itself ------------------------------------------------------


@scene(
    lambda world, ns: (
        world.call(
            "POST",
            f"/api/v1/namespaces/{ns}/resourcequotas",
            {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}},
        ),
        eventually(
            lambda: "hard" in world.get(f"/api/v1/namespaces/{ns}/resourcequotas/none")["status"],
            "the quota is in force",
        ),
        world.create(ns, "it", at=once(due_in=1)),
    )
)
def test_a_quota_that_is_raised_lets_the_run_go(world: World, ns: str) -> None:
    assert "exceeded quota: none" in degraded(world, ns, "QuotaExceeded")
    assert world.jobs(ns) == []
    eventually(lambda: world.status(ns, "it")["waiting"], "the run waits")

    world.call("DELETE", f"/api/v1/namespaces/{ns}/resourcequotas/none")

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=60)
    assert len(world.jobs(ns)) == 1
    assert world.condition(ns, "it", "Degraded")["status"] == "False"


@scene(
    lambda world, ns: (
        world.call("DELETE", f"{RBAC}/namespaces/{ns}/rolebindings/creates"),
        world.create(ns, "it", at=once(due_in=1)),
    )
)
def test_a_right_that_is_taken_and_given_back(world: World, ns: str) -> None:
    said = degraded(world, ns, "Forbidden")
    assert f'User "{USER}" cannot create resource "jobs"' in said
    unproven = world.condition(ns, "it", "TemplateAccepted")
    assert unproven["status"] in ("", "Unknown"), "a missing right says nothing of the template"

    may_create(world, ns)

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=60)
    assert len(world.jobs(ns)) == 1


def a_webhook_that_is_down(world: World, ns: str) -> None:
    hook = {
        "name": "down.evenkeel.dev",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [
            {
                "apiGroups": ["batch"],
                "apiVersions": ["v1"],
                "resources": ["jobs"],
                "operations": ["CREATE"],
            }
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}},
    }
    world.call(
        "POST",
        f"{ADMISSION}/validatingwebhookconfigurations",
        {"metadata": {"name": ns}, "webhooks": [hook]},
    )
    eventually(lambda: not creates(world, ns), "the webhook is in force")
    world.create(ns, "it", at=once(due_in=1))


def creates(world: World, ns: str) -> bool:
    """Whether a Job could be created there now."""
    body = {"metadata": {"name": "probe"}, "spec": template()["spec"]}
    try:
        world.call("POST", f"{BATCH}/namespaces/{ns}/jobs?dryRun=All", body)
    except RefusedError:
        return False
    return True


@scene(a_webhook_that_is_down)
def test_a_webhook_that_is_down_delays_and_loses_nothing(world: World, ns: str) -> None:
    assert degraded(world, ns, "NotCreated")

    world.call("DELETE", f"{ADMISSION}/validatingwebhookconfigurations/{ns}")

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=60)
    assert len(world.jobs(ns)) == 1


# --- refused: trying again cannot help ----------------------------------------------------------


def a_policy_that_denies(world: World, ns: str) -> None:
    rules = {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "resources": ["jobs"],
        "operations": ["CREATE"],
    }
    world.call(
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        {
            "metadata": {"name": ns},
            "spec": {
                "matchConstraints": {"resourceRules": [rules]},
                "validations": [{"expression": "false", "message": "not on Sundays"}],
            },
        },
    )
    world.call(
        "POST",
        f"{ADMISSION}/validatingadmissionpolicybindings",
        {
            "metadata": {"name": ns},
            "spec": {
                "policyName": ns,
                "validationActions": ["Deny"],
                "matchResources": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}
                },
            },
        },
    )
    eventually(lambda: not creates(world, ns), "the policy is in force")
    world.create(ns, "it", interval=every(1))


@scene(a_policy_that_denies)
def test_what_a_policy_denies_failed_and_the_next_run_is_tried_afresh(
    world: World, ns: str
) -> None:
    refused = eventually(lambda: world.recent(ns, "it", "failed")[1:], "two runs are refused")
    assert {row["reason"] for row in refused} == {"refused"}
    assert "not on Sundays" in degraded(world, ns, "Refused")
    assert world.status(ns, "it")["waiting"] == []

    world.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/{ns}")
    world.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/{ns}")

    eventually(lambda: world.counts(ns, "it").get("succeeded"), "a later run is created")
    ran = {due(job) for job in world.jobs(ns)}
    assert not ran & {row["due"] for row in refused}
    assert world.condition(ns, "it", "Degraded")["status"] == "False"


@scene(
    lambda world, ns: world.create(
        ns, "it", **times(2), jobTemplate=template(pod={"restartPolicy": "Always"})
    )
)
def test_a_template_that_no_job_can_have_fails_each_run_once(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 2}, "both runs failed")

    assert {row["reason"] for row in world.recent(ns, "it")} == {"refused"}
    assert "restartPolicy" in world.condition(ns, "it", "TemplateAccepted")["message"]
    assert world.jobs(ns) == []


# --- names --------------------------------------------------------------------------------------


def a_job_of_somebody_else(world: World, ns: str) -> None:
    at = once(due_in=4)
    uid = world.create(ns, "it", at=at)["metadata"]["uid"]
    name = job_name("it", RunId(uid, int(seconds(at))))
    body = {
        "metadata": {"name": name, "labels": {"evenkeel.dev/schedule-uid": uid}},
        "spec": {**template()["spec"], "suspend": True},
    }
    world.call("POST", f"{BATCH}/namespaces/{ns}/jobs", body)


@scene(a_job_of_somebody_else)
def test_somebody_elses_job_under_our_name_is_left_alone(world: World, ns: str) -> None:
    """Even with our label on it: labels prove nothing."""
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "the run failed")

    assert world.recent(ns, "it")[0]["reason"] == "name_taken"
    assert "is not this schedule's" in degraded(world, ns, "NameTaken")
    [job] = world.jobs(ns)
    assert "ownerReferences" not in job["metadata"]
    assert "deletionTimestamp" not in job["metadata"]


# With a dot just where the name of its Events is cut.
LONGEST = ".".join(["schedule-" + "x" * 54, "y" * 63, "z" * 63, "1" * 7, "9" * 53])


@scene(lambda world, ns: world.create(ns, LONGEST, at=once(due_in=1)))
def test_a_name_of_253_characters(world: World, ns: str) -> None:
    assert len(LONGEST) == 253
    eventually(lambda: world.counts(ns, LONGEST) == {"succeeded": 1}, "it ran")

    [job] = world.jobs(ns)
    assert owner(job)["name"] == LONGEST
    assert len(job["metadata"]["name"]) <= 52
    label = job["metadata"]["labels"]["evenkeel.dev/schedule"]
    assert len(label) <= 63
    told = eventually(
        lambda: world.items(f"/api/v1/namespaces/{ns}/events?fieldSelector=reason%3DCreated"),
        "its owner is told",
    )
    assert [event["involvedObject"]["name"] for event in told] == [LONGEST]


# --- overlap ------------------------------------------------------------------------------------


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        concurrencyPolicy="Forbid",
        jobTemplate=template(fate="hang"),
    )
)
def test_forbid_skips_what_comes_while_a_run_is_there(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"skipped": 2}, "two are skipped")

    rows = world.recent(ns, "it")
    assert [(row["state"], row.get("reason")) for row in rows] == [
        ("skipped", "overlap"),
        ("skipped", "overlap"),
        ("running", None),
    ]
    assert len(world.jobs(ns)) == 1
    assert world.status(ns, "it")["activeCount"] == 1


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        concurrencyPolicy="Replace",
        jobTemplate=template(fate="hang"),
    )
)
def test_replace_cancels_the_one_before_and_keeps_its_record(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"cancelled": 2}, "two were replaced")

    rows = world.recent(ns, "it")
    assert [(row["state"], row.get("reason")) for row in rows] == [
        ("running", None),
        ("cancelled", "replaced"),
        ("cancelled", "replaced"),
    ]
    eventually(lambda: len(world.jobs(ns)) == 1, "their Jobs are gone")
    assert [due(job) for job in world.jobs(ns)] == [rows[0]["due"]]


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(3),
        **MANY,
        concurrencyPolicy="Queue",
        jobTemplate=template(runs_for="1500ms"),
    )
)
def test_queue_runs_them_all_one_after_the_other(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"succeeded": 3}, "all ran", within_s=60)

    jobs = world.jobs(ns)
    assert [due(job) for job in jobs] == sorted({due(job) for job in jobs})
    for one, following in pairwise(jobs):
        ended = seconds(one["status"]["completionTime"])
        assert seconds(following["metadata"]["creationTimestamp"]) >= ended


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        **times(4),
        concurrencyPolicy="Queue",
        maxQueued=1,
        jobTemplate=template(fate="hang"),
    )
)
def test_a_full_queue_skips(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"skipped": 2}, "two found the queue full")

    status = world.status(ns, "it")
    assert [(row["state"], row.get("reason")) for row in status["recent"]] == [
        ("skipped", "queue_full"),
        ("skipped", "queue_full"),
        ("pending", "queued"),
        ("running", None),
    ]
    assert status["waiting"] == [status["recent"][2]["due"]]
    assert len(world.jobs(ns)) == 1


# --- Jobs that fail, hang, vanish ---------------------------------------------------------------


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        at=once(due_in=1),
        **MANY,
        retry={"limit": 2, "delaySeconds": 1, "factor": 1},
        jobTemplate=template(fate="fail"),
    )
)
def test_a_failed_job_is_tried_again_as_the_same_run(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "it failed for good", within_s=60)

    jobs = sorted(
        world.jobs(ns), key=lambda job: job["metadata"]["annotations"]["evenkeel.dev/attempt"]
    )
    first = jobs[0]["metadata"]["name"]
    assert names(jobs) == [first, f"{first}-r2", f"{first}-r3"]
    assert len({due(job) for job in jobs}) == 1
    [row] = world.recent(ns, "it")
    assert (row["state"], row["attempt"], row["job"]) == ("failed", 3, f"{first}-r3")
    assert world.status(ns, "it")["consecutiveFailures"] == 1


@scene(
    lambda world, ns: world.create(
        ns, "it", interval=every(1), pauseAfterFailures=2, jobTemplate=template(fate="fail")
    )
)
def test_failures_in_a_row_pause_and_an_edit_goes_on(world: World, ns: str) -> None:
    paused = eventually(lambda: world.status(ns, "it").get("pause"), "it is paused", within_s=60)
    assert "failed" in paused["reason"]
    active = world.condition(ns, "it", "Active")
    assert (active["status"], active["reason"]) == ("False", "Paused")

    notes = {"test.evenkeel.dev/fate": None}
    mended = {"spec": {"template": {"metadata": {"annotations": notes}}}}
    world.edit(ns, "it", jobTemplate=mended)

    eventually(lambda: world.counts(ns, "it").get("succeeded"), "it goes on")
    assert not world.status(ns, "it").get("pause")
    assert world.condition(ns, "it", "Active")["status"] == "True"


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        at=once(due_in=1),
        pendingDeadlineSeconds=2,
        jobTemplate=template(fate="pending"),
    )
)
def test_a_pod_that_does_not_start_in_time_ends_the_run(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "the run failed")

    assert world.recent(ns, "it")[0]["reason"] == "pending"
    eventually(lambda: world.jobs(ns) == [], "its Job cannot start later")


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        at=once(due_in=1),
        pendingDeadlineSeconds=6,  # a busy Job controller takes its time to say why
        jobTemplate=template(pod={"serviceAccountName": "nobody"}),
    )
)
def test_a_pod_that_is_refused_ends_the_run_in_the_job_controllers_words(
    world: World, ns: str
) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "the run failed")

    assert world.recent(ns, "it")[0]["reason"] == "pod_refused"
    events = f"/api/v1/namespaces/{ns}/events?fieldSelector=reason%3DFailed"
    told = eventually(lambda: world.items(events), "its owner is told")
    assert any('serviceaccount "nobody" not found' in event["message"] for event in told)


@scene(
    lambda world, ns: world.create(
        ns,
        "it",
        interval=every(1, first_in=1),
        concurrencyPolicy="Forbid",
        jobTemplate=template(fate="hang"),
    )
)
def test_a_job_deleted_by_hand_is_lost_and_frees_its_place(world: World, ns: str) -> None:
    [job] = eventually(lambda: world.jobs(ns), "its Job")
    eventually(lambda: world.status(ns, "it").get("activeCount"), "it is known to run")

    world.call(
        "DELETE",
        f"{BATCH}/namespaces/{ns}/jobs/{job['metadata']['name']}?propagationPolicy=Background",
    )

    eventually(lambda: world.counts(ns, "it").get("lost") == 1, "it is lost")
    [successor] = eventually(lambda: world.jobs(ns), "a later run takes its place")
    assert due(successor) > due(job), "a run was launched twice"


@scene(lambda world, ns: None)
def test_a_job_whose_labels_are_taken_away_is_followed_to_its_end(world: World, ns: str) -> None:
    """The watch of our Jobs goes by labels, which everybody who may edit Jobs can remove."""
    world.create(ns, "it", at=once(due_in=1), jobTemplate=template(runs_for="5s"))
    [job] = eventually(lambda: world.jobs(ns), "its Job")
    bare = dict.fromkeys(("evenkeel.dev/schedule", "evenkeel.dev/schedule-uid"))
    # A Job without any label gets those of its Pods, and so ours, from the API server.
    bare |= {"theirs": "now"}
    path = f"{BATCH}/namespaces/{ns}/jobs/{job['metadata']['name']}"

    left = world.call("PATCH", path, {"metadata": {"labels": bare}}, MERGE)

    assert "evenkeel.dev/schedule-uid" not in left["metadata"].get("labels", {})
    assert not left["status"].get("completionTime"), "too late: it has ended"
    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it was followed", within_s=90)


@scene(lambda world, ns: None)
def test_no_run_is_launched_beside_a_job_that_a_finalizer_keeps(world: World, ns: str) -> None:
    hangs = {"concurrencyPolicy": "Forbid", "jobTemplate": template(fate="hang")}
    world.create(ns, "it", interval=every(1), **hangs)
    [job] = eventually(lambda: world.jobs(ns), "its Job")
    path = f"{BATCH}/namespaces/{ns}/jobs/{job['metadata']['name']}"
    world.call("PATCH", path, {"metadata": {"finalizers": ["example.com/stuck"]}}, MERGE)
    world.call("DELETE", f"{path}?propagationPolicy=Background")

    skipped = world.counts(ns, "it").get("skipped", 0)
    eventually(lambda: world.counts(ns, "it").get("skipped", 0) >= skipped + 2, "it has its place")
    assert len(world.jobs(ns)) == 1

    world.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
    eventually(lambda: world.counts(ns, "it").get("lost") == 1, "it is lost")
    eventually(lambda: world.jobs(ns), "a later run takes its place")


@scene(
    lambda world, ns: world.create(
        ns, "it", **times(3), jobTemplate=template(ttlSecondsAfterFinished=0)
    )
)
def test_jobs_that_vanish_at_once_are_accounted_for(
    world: World, ns: str, running: OperatorProcess
) -> None:
    eventually(lambda: world.counts(ns, "it") == {"succeeded": 3}, "all three succeeded")

    eventually(lambda: world.jobs(ns) == [], "they are gone")
    assert len(world.recent(ns, "it", "succeeded")) == 3


@scene(
    lambda world, ns: (
        world.create(ns, "good", **times(4), successfulJobsHistoryLimit=2),
        world.create(
            ns, "bad", **times(3), failedJobsHistoryLimit=1, jobTemplate=template(fate="fail")
        ),
        world.create(
            ns, "none", **times(2), successfulJobsHistoryLimit=0, failedJobsHistoryLimit=0
        ),
    )
)
def test_only_the_newest_jobs_are_kept(world: World, ns: str) -> None:
    ends = {"good": {"succeeded": 4}, "bad": {"failed": 3}, "none": {"succeeded": 2}}
    for name, counts in ends.items():
        eventually(lambda name=name, counts=counts: world.counts(ns, name) == counts, f"{name} ran")

    for name, kept in (("good", 2), ("bad", 1), ("none", 0)):
        eventually(
            lambda name=name, kept=kept: len(world.jobs(ns, name)) == kept, f"{kept} of {name}"
        )
        newest = [row["due"] for row in world.recent(ns, name)][:kept]
        assert [due(job) for job in reversed(world.jobs(ns, name))] == newest


# --- edits and deletions ------------------------------------------------------------------------


@scene(lambda world, ns: world.create(ns, "it", interval=every(1), **MANY))
def test_what_passed_while_suspended_never_runs(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it").get("succeeded"), "it runs")
    world.edit(ns, "it", suspend=True)
    since = seconds(
        eventually(lambda: world.status(ns, "it").get("suspendedSince"), "it is suspended")
    )
    time.sleep(3)
    world.edit(ns, "it", suspend=False)
    until = seconds(eventually(lambda: world.status(ns, "it").get("resumedAt"), "it is resumed"))
    eventually(lambda: any(seconds(due(job)) > until for job in world.jobs(ns)), "it runs again")

    ran = [seconds(due(job)) for job in world.jobs(ns)]
    assert [instant for instant in ran if since < instant <= until] == []
    assert world.counts(ns, "it")["skipped"] >= 3
    assert "suspendedSince" not in world.status(ns, "it")


@scene(
    lambda world, ns: world.create(
        ns, "it", interval=every(1), jobTemplate=template(fate="hang"), concurrencyPolicy="Replace"
    )
)
def test_created_anew_under_the_same_name_it_is_another_schedule(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it").get("cancelled"), "the first one runs")
    old = world.schedule(ns, "it")["metadata"]["uid"]

    world.delete(ns, "it")
    new = world.create(ns, "it", interval=every(1), **MANY)["metadata"]["uid"]

    eventually(lambda: world.counts(ns, "it").get("succeeded"), "the second one runs")
    assert set(world.counts(ns, "it")) == {"succeeded"}, "it remembers the first one's runs"
    eventually(
        lambda: {owner(job)["uid"] for job in world.jobs(ns)} == {new}, "the first one's Jobs go"
    )
    assert old != new


@scene(
    lambda world, ns: world.create(ns, "it", interval=every(1), jobTemplate=template(fate="hang"))
)
def test_nothing_starts_while_it_is_being_deleted_in_the_foreground(world: World, ns: str) -> None:
    job = eventually(lambda: world.jobs(ns), "its Job")[0]["metadata"]["name"]
    # A Job that does not go holds its owner back.
    path = f"{BATCH}/namespaces/{ns}/jobs/{job}"
    kind = "application/merge-patch+json"
    world.call("PATCH", path, {"metadata": {"finalizers": ["test.evenkeel.dev/stay"]}}, kind)

    world.call("DELETE", f"{GROUP}/namespaces/{ns}/scheduledjobs/it?propagationPolicy=Foreground")

    eventually(lambda: names(world.jobs(ns)) == [job], "all but one Job are gone")
    time.sleep(2.5)
    assert names(world.jobs(ns)) == [job], "a schedule that is being deleted created a Job"
    assert world.schedule(ns, "it")["metadata"]["deletionTimestamp"]
    world.call("PATCH", path, {"metadata": {"finalizers": None}}, kind)
    eventually(lambda: not world.items(f"{GROUP}/namespaces/{ns}/scheduledjobs"), "it is gone")


@scene(
    lambda world, ns: (
        world.call(
            "POST",
            f"/api/v1/namespaces/{ns}/configmaps",
            {"metadata": {"name": "stays", "finalizers": ["test.evenkeel.dev/stay"]}},
        ),
        world.create(ns, "it", interval=every(1)),
    )
)
def test_a_namespace_that_is_going_takes_no_new_jobs(
    world: World, ns: str, running: OperatorProcess
) -> None:
    eventually(lambda: world.jobs(ns), "it runs")

    world.call("DELETE", f"/api/v1/namespaces/{ns}")

    eventually(lambda: not world.items(f"{GROUP}/namespaces/{ns}/scheduledjobs"), "it is gone")
    eventually(lambda: world.jobs(ns) == [], "its Jobs are gone")
    told = [
        line
        for line in running.lines()
        if line.get("schedule") == f"{ns}/it" and line["event"] == "create held"
    ]
    assert len(told) <= 30, "a storm of creates that cannot succeed"
    path = f"/api/v1/namespaces/{ns}/configmaps/stays"
    world.call("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")


@scene(
    lambda world, ns: (
        world.create(ns, "it", schedule="@yearly"),
        world.create(ns, "bystander", interval=every(1)),
    )
)
def test_a_bad_edit_taken_back_leaves_no_trace(world: World, ns: str) -> None:
    eventually(lambda: world.condition(ns, "it", "TemplateAccepted")["status"], "it is known")
    before = world.status(ns, "it")
    world.edit(ns, "it", schedule="0 0 31 2 *")
    eventually(lambda: world.condition(ns, "it", "Ready")["status"] == "False", "it is refused")

    world.edit(ns, "it", schedule="@yearly")

    eventually(lambda: world.condition(ns, "it", "Ready")["status"] == "True", "it is mended")
    after = world.status(ns, "it")
    assert {kind: after[kind] for kind in ("timing", "nextRunTime", "upcoming", "counts")} == {
        kind: before[kind] for kind in ("timing", "nextRunTime", "upcoming", "counts")
    }
    assert {row["type"]: row["status"] for row in after["conditions"]} == {
        row["type"]: row["status"] for row in before["conditions"]
    }
    eventually(lambda: world.counts(ns, "bystander").get("succeeded"), "the other one runs")
