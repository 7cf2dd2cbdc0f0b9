"""From `kubectl apply` to a Job and back, on a real API server: the whole way, seen from outside.

One operator serves the whole module, and all schedules that have to wait for a due time are applied
together before the first test: each test then waits for what it looks at, not for its turn.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.printed import columns
from tests.cluster.world import (
    GARBAGE_PATIENCE_S,
    World,
    due,
    eventually,
    every,
    manifest,
    names,
    once,
    owner,
    seconds,
    template,
)

Json = dict[str, Any]
BUSY_S = 15
FIRST_IN_S = 25  # so long kubectl may take on a busy machine: what is due before is never run
SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}
HEAD = ["NAME", "SCHEDULE", "STATE", "NEXT", "LAST", "RESULT", "ACTIVE", "AGE"]


@dataclass
class Stage:
    """The operator at work, and where its schedules are."""

    world: World
    operator: OperatorProcess
    ns: str
    at: str
    applied: dict[str, Json] = field(default_factory=dict)

    @property
    def kubectl(self) -> Any:
        return self.world.cluster.kubectl

    def columns(self, name: str, *arguments: str) -> dict[str, str]:
        """One line of `kubectl get sj` by its heads."""
        return columns(self.kubectl("get", "sj", name, "-n", self.ns, *arguments).stdout)


@pytest.fixture(scope="module")
def stage(kwok_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    kwok_cluster.install_crd()
    world = World(kwok_cluster)
    ns = world.namespace("slice")
    directory = tmp_path_factory.mktemp("slice")
    with operator(kwok_cluster.kubeconfig, directory=directory, settings=SETTINGS) as running:
        found = Stage(world, running, ns, once(due_in=FIRST_IN_S))
        apply(found)
        yield found
    world.leave([ns])
    world.close()


def apply(stage: Stage) -> None:
    marked = template(
        runs_for="0.3s",
        pod={"serviceAccountName": "default"},
        completions=2,
        parallelism=2,
    )
    marked["metadata"] = {
        "labels": {"team": "shop", "evenkeel.dev/schedule-uid": "of another"},
        "annotations": {"note": "kept", "evenkeel.dev/due": "another time"},
    }
    schedules = {
        "by-cron": {"schedule": "* * * * *"},
        "by-hour": {"hourly": {"minute": 17}, "timeZone": "Asia/Kathmandu"},
        "by-interval": {"interval": every(2, first_in=3)},
        "by-date": {"at": stage.at},
        "marked.with.dots-and-a-name-longer-than-any-part": {
            "interval": every(3600, first_in=FIRST_IN_S),
            "jobTemplate": marked,
        },
        "running": {
            "interval": every(3600, first_in=FIRST_IN_S),
            "jobTemplate": template(fate="hang"),
            "priority": 7,
        },
        "failing": {
            "interval": every(3600, first_in=FIRST_IN_S),
            "jobTemplate": template(fate="fail"),
        },
        "mistyped": {
            "interval": every(3600, first_in=FIRST_IN_S),
            "jobTemplate": template(pod={"hostNetwok": True}),
        },
        "suspended": {"interval": every(2, first_in=0), "suspend": True},
        "idle": {"schedule": "0 0 1 1 *", "timeZone": "Europe/Berlin"},
    }
    documents = [json.dumps(manifest(name, **spec)) for name, spec in schedules.items()]
    stage.kubectl("apply", "-n", stage.ns, "-f", "-", input="\n---\n".join(documents))
    stage.applied = schedules


# --- on time ------------------------------------------------------------------------------------


def assert_in_time(jobs: list[Json]) -> None:
    """Never early, and late only by what a busy machine takes; `make bench` has the second."""
    for job in jobs:
        late_s = seconds(job["metadata"]["creationTimestamp"]) - seconds(due(job))
        assert 0 <= late_s <= BUSY_S, names([job])


def test_an_interval_runs_at_its_instants_and_at_no_other(stage: Stage) -> None:
    jobs = eventually(
        lambda: (found := stage.world.jobs(stage.ns, "by-interval"))[2:] and found, "three Jobs"
    )

    assert_in_time(jobs)
    rule = stage.applied["by-interval"]["interval"]
    instants = [seconds(due(job)) - seconds(rule["anchor"]) for job in jobs]
    assert {instant % 2 for instant in instants} == {0}
    assert all(instant > 0 for instant in instants), "the anchor itself is never a run"
    assert len(set(instants)) == len(instants)


def test_a_date_runs_once_and_the_schedule_says_that_it_ended(stage: Stage) -> None:
    eventually(lambda: stage.world.counts(stage.ns, "by-date") == {"succeeded": 1}, "its one run")

    jobs = stage.world.jobs(stage.ns, "by-date")
    assert [due(job) for job in jobs] == [stage.at]
    assert_in_time(jobs)
    active = stage.world.condition(stage.ns, "by-date", "Active")
    assert (active["status"], active["reason"]) == ("False", "Ended")
    assert stage.world.status(stage.ns, "by-date")["state"] == "Ended"
    assert "nextRunTime" not in stage.world.status(stage.ns, "by-date")


def test_a_cron_schedule_runs_at_the_minute(stage: Stage) -> None:
    # The only wait of up to a minute in this module.
    jobs = eventually(
        lambda: stage.world.jobs(stage.ns, "by-cron"), "a minute's Job", within_s=150, every_s=0.5
    )

    assert_in_time(jobs)
    assert {seconds(due(job)) % 60 for job in jobs} == {0}


def test_hourly_is_due_at_the_minute_of_its_zone(stage: Stage) -> None:
    status = eventually(
        lambda: (found := stage.world.status(stage.ns, "by-hour")).get("nextRunTime") and found,
        "a status",
    )

    kathmandu_s = 5 * 3600 + 45 * 60
    upcoming = [seconds(text) for text in status["upcoming"]]
    assert status["upcoming"][0] == status["nextRunTime"]
    assert {(instant + kathmandu_s) % 3600 for instant in upcoming} == {17 * 60}
    assert [later - one for one, later in pairwise(upcoming)] == [3600] * 4
    # At the due time itself the status is a moment behind.
    eventually(
        lambda: (
            0
            < seconds(stage.world.status(stage.ns, "by-hour")["nextRunTime"]) - time.time()
            <= 3600
        ),
        "the next one is within an hour",
    )


def test_nothing_runs_while_suspended(stage: Stage) -> None:
    eventually(lambda: stage.world.jobs(stage.ns, "by-interval"), "another one runs meanwhile")

    assert stage.world.jobs(stage.ns, "suspended") == []
    active = eventually(
        lambda: (
            (found := stage.world.condition(stage.ns, "suspended", "Active"))["status"] and found
        ),
        "its condition",
    )
    assert (active["status"], active["reason"]) == ("False", "Suspended")


# --- what the Job carries -----------------------------------------------------------------------


def test_a_job_carries_all_that_tells_which_run_it_is(stage: Stage) -> None:
    name = "marked.with.dots-and-a-name-longer-than-any-part"
    job = eventually(lambda: stage.world.jobs(stage.ns, name), "its Job")[0]
    schedule = stage.world.schedule(stage.ns, name)
    uid, moment_due = schedule["metadata"]["uid"], due(job)

    stamp = int(seconds(moment_due))
    stamp = stamp if stamp % 60 else stamp // 60
    assert job["metadata"]["name"] == f"{name}-{stamp}"
    assert job["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "evenkeel.dev/v1alpha1",
            "kind": "ScheduledJob",
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    labels = {"evenkeel.dev/schedule": name, "evenkeel.dev/schedule-uid": uid}
    notes = {
        "evenkeel.dev/due": moment_due,
        "evenkeel.dev/attempt": "1",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": moment_due,
    }
    assert labels.items() <= job["metadata"]["labels"].items()
    assert notes.items() <= job["metadata"]["annotations"].items()
    assert job["metadata"]["labels"]["team"] == "shop"
    assert job["metadata"]["annotations"]["note"] == "kept"
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (2, 2)

    pods = eventually(
        lambda: (
            (
                found := stage.world.items(
                    f"/api/v1/namespaces/{stage.ns}/pods"
                    f"?labelSelector=evenkeel.dev/schedule-uid%3D{uid}"
                )
            )[1:]
            and found
        ),
        "its two Pods by their label",
    )
    for pod in pods:
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert notes.items() <= pod["metadata"]["annotations"].items()
        assert owner(pod)["name"] == job["metadata"]["name"]


# --- what people see ----------------------------------------------------------------------------


def test_kubectl_tells_what_was_what_is_and_what_comes(stage: Stage) -> None:
    eventually(lambda: stage.world.status(stage.ns, "running").get("activeCount"), "it runs")
    eventually(lambda: stage.world.counts(stage.ns, "failing"), "it has failed")
    eventually(lambda: stage.world.counts(stage.ns, "by-interval"), "it has run")
    eventually(lambda: stage.world.internal(stage.ns, "suspended"), "it is known")
    eventually(lambda: stage.world.internal(stage.ns, "idle"), "it is known")

    runs = stage.columns("by-interval")
    assert list(runs) == HEAD
    assert runs["SCHEDULE"] == "every 2s"
    assert runs["RESULT"] == "succeeded"
    assert runs["STATE"] in ("Running", "Scheduled")
    assert re.fullmatch(r"[0-9]+s", runs["LAST"])
    status = stage.world.status(stage.ns, "by-interval")
    assert seconds(status["nextRunTime"]) > seconds(status["lastScheduleTime"])
    assert stage.columns("running")["ACTIVE"] == "1"
    assert stage.columns("running")["STATE"] == "Running"
    assert stage.columns("failing")["RESULT"] == "failed"
    assert stage.columns("suspended")["STATE"] == "Suspended"
    assert stage.columns("suspended")["NEXT"] == ""
    wide = stage.columns("idle", "-o", "wide")
    assert wide["ZONE"] == "Europe/Berlin"
    assert wide["SCHEDULE"] == "0 0 1 1 *"
    assert wide["NEXT"].endswith("-12-31T23:00:00Z")
    assert wide["NEXT LOCAL"].endswith("-01-01T00:00:00+01:00")
    wide = stage.columns("running", "-o", "wide")
    assert (wide["PRIORITY"], wide["IMAGES"]) == ("7", "busybox:1")


def test_a_schedule_is_ready_when_it_was_understood(stage: Stage) -> None:
    for kind in ("Ready", "ScheduleAccepted", "TemplateAccepted"):
        stage.kubectl(
            "wait", "sj", "idle", "-n", stage.ns, f"--for=condition={kind}", "--timeout=90s"
        )

    found = stage.world.schedule(stage.ns, "idle")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 1


def test_its_owner_finds_events_on_it(stage: Stage) -> None:
    """With CronJob's reasons and words where CronJob has an Event of that meaning."""
    eventually(lambda: stage.world.counts(stage.ns, "failing"), "it has failed")

    told = eventually(
        lambda: (
            found := stage.kubectl(
                "get", "events", "-n", stage.ns, "-o", "json",
                "--field-selector", "involvedObject.kind=ScheduledJob,involvedObject.name=failing",
            ).stdout
        ).count('"RunFailed"') and found.count('"SawCompletedJob"') and json.loads(found)["items"],
        "Events about the failure",
    )  # fmt: skip

    by_reason = {event["reason"]: event for event in told}
    job = stage.world.jobs(stage.ns, "failing")[0]["metadata"]["name"]
    for reason, words in {
        "SuccessfulCreate": f"Created job {job}",
        "SawCompletedJob": f"Saw completed job: {job}, condition: Failed",
    }.items():
        assert (by_reason[reason]["type"], by_reason[reason]["message"]) == ("Normal", words)
    assert by_reason["RunFailed"]["type"] == "Warning"
    assert "BackoffLimitExceeded" in by_reason["RunFailed"]["message"]


# --- bad ScheduledJobs --------------------------------------------------------------------------


def test_what_the_api_server_can_know_it_refuses_with_a_sentence(stage: Stage) -> None:
    both = manifest("both", schedule="@daily", hourly={"minute": 5})
    done = stage.kubectl("apply", "-n", stage.ns, "-f", "-", input=json.dumps(both), check=False)

    assert done.returncode == 1
    assert "exactly one of schedule, hourly, interval, at must be set" in done.stderr


def test_what_only_the_operator_can_know_is_a_condition_and_nobody_else_notices(
    stage: Stage,
) -> None:
    world, ns = stage.world, stage.ns
    bad = {
        "no-such-day": ({"schedule": "0 0 31 2 *"}, "never fires"),
        "offset-too-long": ({"interval": {"every": "5m", "offset": "5m"}}, "offset"),
    }
    others = eventually(lambda: world.jobs(ns, "by-interval"), "others run")
    for name, (spec, _) in bad.items():
        world.create(ns, name, **spec)

    for name, (_, word) in bad.items():
        accepted = eventually(
            lambda name=name: (
                (found := world.condition(ns, name, "ScheduleAccepted"))["status"] and found
            ),
            f"a condition on {name}",
        )
        assert accepted["status"] == "False"
        assert word in accepted["message"]
        assert world.condition(ns, name, "Ready")["status"] == "False"
        assert world.status(ns, name)["state"] == "Refused"
        assert "nextRunTime" not in world.status(ns, name)
    eventually(
        lambda: due(world.jobs(ns, "by-interval")[-1]) > due(others[-1]),
        "the others go on meanwhile",
    )
    stage.operator.require_running()

    world.edit(ns, "no-such-day", schedule="0 0 28 2 *")
    eventually(
        lambda: world.condition(ns, "no-such-day", "Ready")["status"] == "True", "it is mended"
    )


def test_a_template_that_no_job_can_have_is_a_condition(stage: Stage) -> None:
    world, ns = stage.world, stage.ns
    world.create(
        ns, "no-policy", schedule="@yearly", jobTemplate=template(pod={"dnsPolicy": "Nonsense"})
    )

    refused = eventually(
        lambda: (
            (found := world.condition(ns, "no-policy", "TemplateAccepted"))["status"] == "False"
            and found
        ),
        "the template is refused",
    )

    assert "dnsPolicy" in refused["message"]
    assert world.condition(ns, "no-policy", "ScheduleAccepted")["status"] == "True"


def test_a_mistyped_field_is_told_at_once_and_its_run_fails(stage: Stage) -> None:
    world, ns = stage.world, stage.ns
    sentence = 'unknown field "spec.jobTemplate.spec.template.spec.hostNetwok"'

    stage.kubectl("wait", "--for=condition=Stalled", "sj/mistyped", "-n", ns, "--timeout=60s")
    stage.kubectl("wait", "--for=condition=Ready", "sj/idle", "-n", ns, "--timeout=60s")
    assert world.condition(ns, "mistyped", "TemplateAccepted")["message"] == sentence
    assert world.condition(ns, "mistyped", "Ready")["message"] == f"jobTemplate: {sentence}"
    assert world.status(ns, "mistyped")["state"] == "Refused"

    (row,) = eventually(lambda: world.recent(ns, "mistyped"), "its run ends")
    assert (row["state"], row["reason"]) == ("failed", "refused")
    assert world.jobs(ns, "mistyped") == []
    events = eventually(lambda: world.events(ns, "mistyped", "FailedCreate"), "an Event")
    assert sentence in events[0]["message"]


def test_without_strict_templates_a_mistyped_field_is_a_warning(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world, cluster = stage.world, stage.world.cluster
    ns = world.namespace("slice-lenient")
    directory = tmp_path_factory.mktemp("lenient")
    spec = {"at": once(due_in=15), "jobTemplate": template(pod={"hostNetwok": True})}
    settings = {"STRICT_TEMPLATES": "false"}
    try:
        # Together with the strict one, which serves all namespaces, it would be a race.
        with (
            stage.operator.paused(),
            operator(
                cluster.kubeconfig,
                directory=directory,
                settings=settings,
                flags=["--namespace", ns],
            ) as lenient,
        ):
            world.create(ns, "lenient", **spec)
            warned = eventually(
                lambda: (
                    (found := world.condition(ns, "lenient", "TemplateAccepted"))["status"]
                    and found
                ),
                "its template is looked at",
            )
            assert (warned["status"], warned["reason"]) == ("True", "Accepted")
            assert (
                'unknown field "spec.jobTemplate.spec.template.spec.hostNetwok"'
                in (warned["message"])
            )
            eventually(lambda: world.jobs(ns, "lenient"), "its Job is created")
            (line,) = lenient.events("template accepted with warnings")
            assert line["schedule"] == f"{ns}/lenient"
    finally:
        world.leave([ns])


# --- deleting -----------------------------------------------------------------------------------


def test_with_a_schedule_its_jobs_and_pods_go(stage: Stage) -> None:
    world = stage.world
    ns = world.namespace("slice-delete")
    try:
        world.create(ns, "short", interval=every(1), jobTemplate=template(fate="hang"))
        eventually(lambda: world.jobs(ns)[1:], "two Jobs that run")

        stage.kubectl("delete", "sj", "short", "-n", ns, "--timeout=90s")

        eventually(
            lambda: stage.operator.knows_of_its_end(f"{ns}/short"), "the operator knows of it"
        )
        gone_at = time.time()
        eventually(lambda: not world.jobs(ns), "its Jobs are gone", within_s=GARBAGE_PATIENCE_S)
        eventually(lambda: not world.items(f"/api/v1/namespaces/{ns}/pods"), "so are its Pods")
        time.sleep(max(0.0, gone_at + 2 - time.time()))  # two more instants of its interval
        assert world.jobs(ns) == []
    finally:
        world.leave([ns])


# --- who writes ---------------------------------------------------------------------------------


def test_only_our_status_patch_ever_writes_to_a_schedule(stage: Stage) -> None:
    """Kopf's other handlers would annotate every object, and add finalizers."""
    eventually(lambda: stage.world.counts(stage.ns, "by-interval"), "there was a run to report")
    time.sleep(1)  # the audit log is written behind

    mine = [
        (event["verb"], event["objectRef"].get("subresource", ""), event["userAgent"])
        for event in stage.world.cluster.audited(f'"{stage.ns}"')
        if event["objectRef"].get("resource") == "scheduledjobs"
        and event["verb"] not in ("get", "list", "watch")
    ]

    by_us = {write for write in mine if not write[2].startswith(("kubectl/", "tests"))}
    assert {write[:2] for write in by_us} == {("patch", "status")}
    assert all(write[2].startswith("evenkeel/") for write in by_us)
    found = stage.world.schedule(stage.ns, "idle")
    assert "finalizers" not in found["metadata"]
    assert set(found["metadata"]["annotations"]) == {
        "kubectl.kubernetes.io/last-applied-configuration"
    }


def test_a_schedule_at_rest_is_not_written(stage: Stage) -> None:
    eventually(
        lambda: stage.world.condition(stage.ns, "idle", "TemplateAccepted")["status"], "it is known"
    )

    def version() -> str:
        return str(stage.world.schedule(stage.ns, "idle")["metadata"]["resourceVersion"])

    def unwritten() -> bool:
        before = version()
        time.sleep(3)
        return version() == before

    eventually(unwritten, "three seconds without a write", within_s=60)
