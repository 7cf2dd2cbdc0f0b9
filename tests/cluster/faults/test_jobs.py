"""Jobs that fail, hang, lose their labels, vanish; and those that history keeps."""

from __future__ import annotations

from tests.cluster.faults.stage import MANY, scene, take_right, times
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import (
    BATCH,
    MERGE,
    World,
    due,
    eventually,
    every,
    names,
    once,
    template,
)


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
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "it failed for good", within_s=150)

    jobs = sorted(
        world.jobs(ns), key=lambda job: job["metadata"]["annotations"]["evenkeel.dev/attempt"]
    )
    stamp = names(jobs)[0].removeprefix("it-")
    assert names(jobs) == [f"it-{stamp}", f"it-retry1-{stamp}", f"it-retry2-{stamp}"]
    assert len({due(job) for job in jobs}) == 1
    [row] = world.recent(ns, "it")
    assert (row["state"], row["attempt"], row["job"]) == ("failed", 3, f"it-retry2-{stamp}")
    assert world.status(ns, "it")["consecutiveFailures"] == 1


@scene(
    lambda world, ns: (
        take_right(world, ns, "pods"),
        world.create(ns, "it", at=once(due_in=1), jobTemplate=template(fate="fail")),
    )
)
def test_without_the_right_to_list_pods_a_run_ends_and_the_status_says_what_is_missing(
    world: World, ns: str
) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "it failed", within_s=150)

    degraded = eventually(
        lambda: (
            (found := world.condition(ns, "it", "Degraded"))["reason"] == "PodsUnreadable" and found
        ),
        "the status says what is missing",
    )
    assert degraded["status"] == "True"
    assert "the right to list pods in this namespace" in degraded["message"]
    [row] = world.recent(ns, "it")
    assert "exitCode" not in row
    assert world.condition(ns, "it", "Ready")["status"] == "True"


@scene(
    lambda world, ns: world.create(
        ns, "it", interval=every(1), pauseAfterFailures=2, jobTemplate=template(fate="fail")
    )
)
def test_failures_in_a_row_pause_and_an_edit_goes_on(world: World, ns: str) -> None:
    paused = eventually(lambda: world.status(ns, "it").get("pause"), "it is paused", within_s=150)
    assert "failed" in paused["reason"]
    active = world.condition(ns, "it", "Active")
    assert (active["status"], active["reason"]) == ("False", "Paused")

    # Two that run yet and fail after the edit would pause it once more.
    eventually(lambda: world.status(ns, "it")["activeCount"] == 0, "no run is left")
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
        pendingDeadlineSeconds=30,  # a busy Job controller takes its time to say why
        jobTemplate=template(pod={"serviceAccountName": "nobody"}),
    )
)
def test_a_pod_that_is_refused_ends_the_run_in_the_job_controllers_words(
    world: World, ns: str
) -> None:
    eventually(lambda: world.counts(ns, "it") == {"failed": 1}, "the run failed")

    assert world.recent(ns, "it")[0]["reason"] == "pod_refused"
    told = eventually(lambda: world.events(ns, "it", "RunFailed"), "its owner is told")
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
    eventually(
        lambda: active_jobs(world, ns, "it") == names([successor]),
        "status.active names the later Job alone",
    )
    eventually(lambda: world.events(ns, "it", "MissingJob"), "its owner is told, as CronJob's is")


@scene(lambda world, ns: None)
def test_a_job_whose_labels_are_taken_away_is_followed_to_its_end(world: World, ns: str) -> None:
    """The watch of our Jobs goes by labels, which everybody who may edit Jobs can remove."""
    world.create(ns, "it", at=once(due_in=10), jobTemplate=template(runs_for="20s"))
    [job] = eventually(lambda: world.jobs(ns), "its Job")
    bare = dict.fromkeys(("evenkeel.dev/schedule", "evenkeel.dev/schedule-uid"))
    # A Job without any label gets those of its Pods, and so ours, from the API server.
    bare |= {"theirs": "now"}
    path = f"{BATCH}/namespaces/{ns}/jobs/{job['metadata']['name']}"

    left = world.call("PATCH", path, {"metadata": {"labels": bare}}, MERGE)

    assert "evenkeel.dev/schedule-uid" not in left["metadata"].get("labels", {})
    assert not left["status"].get("completionTime"), "too late: it has ended"
    eventually(lambda: world.counts(ns, "it") == {"succeeded": 1}, "it was followed", within_s=180)


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
        # Those that ended last: on a busy machine a run may overtake the one before it.
        rows = world.recent(ns, name)
        newest = sorted(((row["finished"], row["due"]) for row in rows), reverse=True)[:kept]
        assert [due(job) for job in world.jobs(ns, name)] == sorted(when for _, when in newest)


def active_jobs(world: World, ns: str, name: str) -> list[str]:
    return [each["name"] for each in world.status(ns, name).get("active", ())]
