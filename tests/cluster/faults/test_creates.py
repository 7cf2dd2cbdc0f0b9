"""Creates that are held or refused, and names: only the schedule it happens to notices.

Faults of the API server itself: test_api_server_faults.py.
"""

from __future__ import annotations

from tests.cluster.faults.stage import (
    USER,
    assert_no_storm,
    give_right,
    scene,
    take_right,
    times,
)
from tests.cluster.world import (
    BATCH,
    RefusedError,
    TooLateError,
    World,
    due,
    eventually,
    every,
    once,
    owner,
    seconds,
    template,
)

from evenkeel.model import RunId
from evenkeel.resource.job import job_name

ADMISSION = "/apis/admissionregistration.k8s.io/v1"


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
    eventually(lambda: world.waiting(ns, "it"), "the run waits")

    world.call("DELETE", f"/api/v1/namespaces/{ns}/resourcequotas/none")

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=150)
    assert len(world.jobs(ns)) == 1
    assert world.condition(ns, "it", "Degraded")["status"] == "False"
    assert_no_storm(world, ns)


@scene(
    lambda world, ns: (
        take_right(world, ns, "creates"),
        world.create(ns, "it", at=once(due_in=1)),
    )
)
def test_a_right_that_is_taken_and_given_back(world: World, ns: str) -> None:
    said = degraded(world, ns, "Forbidden")
    assert f'User "{USER}" cannot create resource "jobs"' in said
    unproven = world.condition(ns, "it", "TemplateAccepted")
    assert unproven["status"] in ("", "Unknown"), "a missing right says nothing of the template"

    give_right(world, ns, "creates")

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=150)
    assert len(world.jobs(ns)) == 1
    assert_no_storm(world, ns)


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

    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it ran after all", within_s=150)
    assert len(world.jobs(ns)) == 1
    assert_no_storm(world, ns)


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
    # A later run may stand there while its create is under way.
    eventually(lambda: world.waiting(ns, "it") == [], "no run waits")

    world.call("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/{ns}")
    world.call("DELETE", f"{ADMISSION}/validatingadmissionpolicies/{ns}")

    eventually(lambda: world.counts(ns, "it").get("succeeded"), "a later run is created")
    ran = {due(job) for job in world.jobs(ns)}
    assert not ran & {row["due"] for row in refused}
    # The refusal of an earlier run may be read after the success of a later one.
    eventually(
        lambda: world.condition(ns, "it", "Degraded")["status"] == "False", "it is degraded no more"
    )


@scene(
    lambda world, ns: world.create(
        ns, "it", **times(2), jobTemplate=template(pod={"dnsPolicy": "Nonsense"})
    )
)
def test_a_template_that_no_job_can_have_fails_each_run_once(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 2}, "both runs failed")

    assert {row["reason"] for row in world.recent(ns, "it")} == {"refused"}
    eventually(
        lambda: "dnsPolicy" in world.condition(ns, "it", "TemplateAccepted")["message"],
        "the dry run tells why",
    )
    assert world.jobs(ns) == []


# --- names --------------------------------------------------------------------------------------


def a_job_of_somebody_else(world: World, ns: str) -> None:
    at = once(due_in=8)
    uid = world.create(ns, "it", at=at)["metadata"]["uid"]
    name = job_name("it", RunId(uid, int(seconds(at))))
    body = {
        "metadata": {"name": name, "labels": {"evenkeel.dev/schedule-uid": uid}},
        "spec": {**template()["spec"], "suspend": True},
    }
    try:
        world.call("POST", f"{BATCH}/namespaces/{ns}/jobs", body)
    except RefusedError as error:
        if error.status != 409:
            raise
        raise TooLateError("the operator has created its own Job already") from error


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
    assert len(job["metadata"]["name"]) <= 63
    label = job["metadata"]["labels"]["evenkeel.dev/schedule"]
    assert len(label) <= 63
    told = eventually(lambda: world.events(ns, LONGEST, "SuccessfulCreate"), "its owner is told")
    assert [event["message"] for event in told] == [f"Created job {job['metadata']['name']}"]
