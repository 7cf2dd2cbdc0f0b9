"""Edits, suspensions and deletions of schedules, while runs of theirs are under way."""

from __future__ import annotations

import time

from tests.cluster.faults.stage import MANY, assert_no_storm, scene
from tests.cluster.operator_process import OperatorProcess
from tests.cluster.world import (
    BATCH,
    GARBAGE_PATIENCE_S,
    GROUP,
    MERGE,
    World,
    due,
    eventually,
    every,
    names,
    owner,
    seconds,
    template,
)


@scene(lambda world, ns: world.create(ns, "it", interval=every(1), **MANY))
def test_what_passed_while_suspended_never_runs(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it").get("succeeded"), "it runs")
    world.edit(ns, "it", suspend=True)
    since = seconds(
        eventually(lambda: world.internal(ns, "it").get("suspendedSince"), "it is suspended")
    )
    time.sleep(3)
    world.edit(ns, "it", suspend=False)
    until = seconds(eventually(lambda: world.internal(ns, "it").get("resumedAt"), "it is resumed"))
    eventually(lambda: any(seconds(due(job)) > until for job in world.jobs(ns)), "it runs again")

    ran = [seconds(due(job)) for job in world.jobs(ns)]
    assert [instant for instant in ran if since < instant <= until] == []
    assert world.counts(ns, "it")["skipped"] >= 3
    assert "suspendedSince" not in world.internal(ns, "it")


@scene(
    lambda world, ns: world.create(
        ns, "it", interval=every(1), jobTemplate=template(fate="hang"), concurrencyPolicy="Replace"
    )
)
def test_created_anew_under_the_same_name_it_is_another_schedule(world: World, ns: str) -> None:
    eventually(lambda: world.counts(ns, "it").get("cancelled"), "the first one runs")
    old = world.schedule(ns, "it")["metadata"]["uid"]

    world.delete(ns, "it")
    # Its runs begin later: until the operator knows of the deletion, the first one takes the names.
    new = world.create(ns, "it", interval=every(1, first_in=10), **MANY)["metadata"]["uid"]

    eventually(lambda: world.counts(ns, "it").get("succeeded"), "the second one runs")
    assert set(world.counts(ns, "it")) == {"succeeded"}, "it remembers the first one's runs"
    eventually(
        lambda: {owner(job)["uid"] for job in world.jobs(ns)} == {new},
        "the first one's Jobs go",
        within_s=GARBAGE_PATIENCE_S,
    )
    assert old != new


@scene(
    lambda world, ns: world.create(ns, "it", interval=every(1), jobTemplate=template(fate="hang"))
)
def test_nothing_starts_while_it_is_being_deleted_in_the_foreground(
    world: World, ns: str, running: OperatorProcess
) -> None:
    job = eventually(lambda: world.jobs(ns), "its Job")[0]["metadata"]["name"]
    # A Job that does not go holds its owner back.
    path = f"{BATCH}/namespaces/{ns}/jobs/{job}"
    world.call("PATCH", path, {"metadata": {"finalizers": ["test.evenkeel.dev/stay"]}}, MERGE)

    world.call("DELETE", f"{GROUP}/namespaces/{ns}/scheduledjobs/it?propagationPolicy=Foreground")

    eventually(lambda: running.knows_of_its_end(f"{ns}/it"), "the operator knows of it")
    eventually(
        lambda: names(world.jobs(ns)) == [job],
        "all but one Job are gone",
        within_s=GARBAGE_PATIENCE_S,
    )
    time.sleep(2.5)
    assert names(world.jobs(ns)) == [job], "a schedule that is being deleted created a Job"
    assert world.schedule(ns, "it")["metadata"]["deletionTimestamp"]
    world.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
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
def test_a_namespace_that_is_going_takes_no_new_jobs(world: World, ns: str) -> None:
    eventually(lambda: world.jobs(ns), "it runs")

    world.call("DELETE", f"/api/v1/namespaces/{ns}")

    eventually(lambda: not world.items(f"{GROUP}/namespaces/{ns}/scheduledjobs"), "it is gone")
    eventually(lambda: world.jobs(ns) == [], "its Jobs are gone")
    assert_no_storm(world, ns)
    path = f"/api/v1/namespaces/{ns}/configmaps/stays"
    world.call("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)


@scene(
    lambda world, ns: (
        world.create(ns, "it", schedule="@yearly"),
        world.create(ns, "bystander", interval=every(1)),
    )
)
def test_a_bad_edit_taken_back_leaves_no_trace(world: World, ns: str) -> None:
    eventually(
        lambda: world.condition(ns, "it", "TemplateAccepted")["status"] == "True", "it is known"
    )
    before = world.status(ns, "it")
    world.edit(ns, "it", schedule="0 0 31 2 *")
    eventually(lambda: world.condition(ns, "it", "Ready")["status"] == "False", "it is refused")

    world.edit(ns, "it", schedule="@yearly")

    eventually(lambda: world.condition(ns, "it", "Ready")["status"] == "True", "it is mended")
    after = world.status(ns, "it")
    assert {kind: after[kind] for kind in ("nextRunTime", "upcoming", "counts")} == {
        kind: before[kind] for kind in ("nextRunTime", "upcoming", "counts")
    }
    assert after["internal"]["timing"] == before["internal"]["timing"]
    assert {row["type"]: row["status"] for row in after["conditions"]} == {
        row["type"]: row["status"] for row in before["conditions"]
    }
    eventually(lambda: world.counts(ns, "bystander").get("succeeded"), "the other one runs")
