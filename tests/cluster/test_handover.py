"""A CronJob and a ScheduledJob of one name: between them one Job a minute, whoever is at work.

Every story has a namespace and an operator of its own. All stories that the chosen tests need are
played at the same time, because nearly all of their time is waiting for the next minute.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import (
    BATCH,
    GARBAGE_PATIENCE_S,
    MERGE,
    Json,
    RefusedError,
    World,
    eventually,
    manifest,
    moment,
    names,
    owner,
    seconds,
)
from tests.unit.resource.cases import TEMPLATE

EVERY_MINUTE = {
    "schedule": "* * * * *",
    "successfulJobsHistoryLimit": 100,
    "failedJobsHistoryLimit": 100,
}
BUSY_S = 90.0  # for what the CronJob controller does in a second, on a machine full of tests
HANDED_OVER = [f"hand-{number}" for number in range(6)]
QUIET_S = (2.0, 35.0)
"""The seconds of a minute that are away from a due time, on a busy machine too: four calls of
kubectl may take twenty seconds there."""

Story = Callable[[World, OperatorProcess, str], None]


# --- while both are active ----------------------------------------------------------------------


def both_are_active(minutes: int) -> Story:
    """The operator stands still at the first minute, so that the CronJob has at least that one."""

    def play(world: World, running: OperatorProcess, ns: str) -> None:
        first = next_minute(room_s=15)
        sleep_until(first - 58)  # created before another minute, that one would be its first
        create_cron_job(world, ns, "both")
        world.create(ns, "both", **EVERY_MINUTE)
        eventually(lambda: world.status(ns, "both").get("nextRunTime"), "the operator knows it")
        sleep_until(first - 2)
        with running.paused():
            eventually(
                lambda: job_of(world, ns, "both", first), "the CronJob's Job", within_s=BUSY_S
            )
        last = first + 60 * (minutes - 1)
        sleep_until(last + 2)
        eventually(
            lambda: ended(world, ns, "both") >= set(range(first, last + 60, 60)),
            "each minute has come to its end",
            within_s=BUSY_S,
        )
        world.edit(ns, "both", suspend=True)
        suspend_cron_job(world, ns, "both")

    return play


@pytest.mark.timeout(600)
@pytest.mark.parametrize("minutes", [2, pytest.param(5, marks=pytest.mark.long)])
def test_while_both_are_active_there_is_one_job_a_minute(
    world: World, played: dict[str, str], minutes: int
) -> None:
    ns = played[f"both for {minutes} minutes"]
    stamps = stamps_created(world, ns, "both")
    assert len(stamps) >= minutes
    assert stamps == list(range(stamps[0], stamps[0] + len(stamps))), "a minute without a Job"

    rows = {row["due"]: row for row in world.recent(ns, "both")}
    made_by = {}
    for stamp in stamps:
        job = job_of(world, ns, "both", stamp * 60)
        assert job is not None
        made_by[stamp] = owner(job)["kind"]
        row = rows[moment(stamp * 60)]
        told = (row["state"], row.get("reason", ""))
        assert (
            told
            == {"CronJob": ("skipped", "cronjob"), "ScheduledJob": ("succeeded", "")}[
                made_by[stamp]
            ]
        )
    assert made_by[stamps[0]] == "CronJob"
    by_cron = list(made_by.values()).count("CronJob")
    succeeded = {"succeeded": len(stamps) - by_cron} if by_cron < len(stamps) else {}
    assert world.counts(ns, "both") == {"skipped": by_cron} | succeeded
    assert world.condition(ns, "both", "Degraded")["status"] == "False"
    assert world.condition(ns, "both", "Ready")["status"] == "True"


# --- from one to the other, and back ------------------------------------------------------------


def handed_over_and_back(world: World, running: OperatorProcess, ns: str) -> None:
    """Each at a random second, away from its due times, by the commands of the documentation."""
    for name in HANDED_OVER:
        create_cron_job(world, ns, name)
    each_at_a_random_second(world, ns, hand_over)
    each_at_a_random_second(world, ns, hand_back)
    last = int(time.time()) // 60 * 60 + 60
    for name in HANDED_OVER:
        find_job(world, ns, name, last)
        suspend_cron_job(world, ns, name)


def hand_over(world: World, ns: str, name: str) -> None:
    kubectl(world, ns, "patch", "cronjob", name, "-p", '{"spec":{"suspend":true}}')
    kubectl(world, ns, "apply", "-f", "-", input=json.dumps(manifest(name, **EVERY_MINUTE)))
    kubectl(world, ns, "wait", "--for=condition=Ready", f"sj/{name}", "--timeout=30s")
    kubectl(world, ns, "delete", "cronjob", name, "--cascade=orphan", "--wait=false")


def hand_back(world: World, ns: str, name: str) -> None:
    eventually(lambda: is_gone(world, ns, name), "the first CronJob is gone", within_s=BUSY_S)
    kubectl(world, ns, "patch", "sj", name, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    kubectl(world, ns, "apply", "-f", "-", input=json.dumps(cron_job(name)))
    kubectl(world, ns, "delete", "sj", name, "--cascade=orphan", "--wait=false")


@pytest.mark.timeout(600)
def test_a_hand_over_and_one_back_lose_no_run_and_repeat_none(
    world: World, played: dict[str, str]
) -> None:
    ns = played["handed over and back"]
    eventually(
        lambda: not world.items(f"/apis/evenkeel.dev/v1alpha1/namespaces/{ns}/scheduledjobs"),
        "the ScheduledJobs are gone",
        within_s=GARBAGE_PATIENCE_S + BUSY_S,
    )
    left = sorted(names(world.jobs(ns)))
    for name in HANDED_OVER:
        stamps = stamps_created(world, ns, name)
        assert stamps == list(range(stamps[0], stamps[0] + len(stamps))), f"{name}: lost or twice"
        assert [f"{name}-{stamp}" for stamp in stamps] == [
            each for each in left if each.startswith(f"{name}-")
        ], f"{name}: a Job was deleted"
        ours = [
            "evenkeel.dev/schedule-uid" in job["metadata"]["labels"]
            for stamp in stamps
            if (job := job_of(world, ns, name, stamp * 60))
        ]
        assert ours[0] is ours[-1] is False, f"{name}: {ours}"
        assert True in ours, f"{name}: the operator never had a turn"
        assert sum(a != b for a, b in pairwise(ours)) == 2, f"{name}: {ours}"


# --- the stage ----------------------------------------------------------------------------------

STORIES: dict[str, Story] = {
    "both for 2 minutes": both_are_active(2),
    "both for 5 minutes": both_are_active(5),
    "handed over and back": handed_over_and_back,
}


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    world: World,
    kwok_cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, str]]:
    """The namespace of each story that a test of this session asks for."""
    wanted = {
        f"both for {item.callspec.params['minutes']} minutes"
        if hasattr(item, "callspec")
        else "handed over and back"
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    }
    directory = tmp_path_factory.mktemp("handover")

    def play(title: str) -> tuple[str, str]:
        mine = World(kwok_cluster)
        ns = mine.namespace("handover")
        with operator(
            kwok_cluster.kubeconfig, directory=directory, flags=("--namespace", ns), name=ns
        ) as running:
            STORIES[title](mine, running, ns)
        mine.close()
        return title, ns

    with ThreadPoolExecutor(len(wanted)) as pool:
        found = dict(pool.map(play, sorted(wanted)))
    yield found
    world.leave(found.values())


def each_at_a_random_second(
    world: World, ns: str, change: Callable[[World, str, str], None]
) -> None:
    """In the quiet part of a minute, when its Job is there; on a slow machine in a later one."""
    begin = next_minute(room_s=0)
    for second, name in sorted((random.uniform(*QUIET_S), name) for name in HANDED_OVER):
        due = begin
        while True:
            sleep_until(due + second)
            due = int(time.time()) // 60 * 60
            find_job(world, ns, name, due)
            if time.time() < due + QUIET_S[1]:
                break
            due, second = due + 60, QUIET_S[0]
        change(world, ns, name)
        assert time.time() < due + 60, (
            f"{name}: a due time passed meanwhile: the machine is too busy"
        )


def next_minute(*, room_s: float) -> int:
    """The first whole minute that is at least so many seconds away."""
    return int(time.time() + room_s) // 60 * 60 + 60


def sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def cron_job(name: str) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"jobTemplate": TEMPLATE, **EVERY_MINUTE},
    }


def create_cron_job(world: World, ns: str, name: str) -> None:
    world.call("POST", f"{BATCH}/namespaces/{ns}/cronjobs", cron_job(name))


def suspend_cron_job(world: World, ns: str, name: str) -> None:
    path = f"{BATCH}/namespaces/{ns}/cronjobs/{name}"
    world.call("PATCH", path, {"spec": {"suspend": True}}, MERGE)


def is_gone(world: World, ns: str, name: str) -> bool:
    try:
        world.get(f"{BATCH}/namespaces/{ns}/cronjobs/{name}")
    except RefusedError as error:
        return error.status == 404
    return False


def job_of(world: World, ns: str, name: str, due: int) -> Json | None:
    try:
        return world.get(f"{BATCH}/namespaces/{ns}/jobs/{name}-{due // 60}")
    except RefusedError as error:
        if error.status != 404:
            raise
        return None


def find_job(world: World, ns: str, name: str, due: int) -> None:
    what = f"the Job of {name} due {moment(due)}"
    sleep_until(due)
    eventually(lambda: job_of(world, ns, name, due), what, within_s=BUSY_S)


def ended(world: World, ns: str, name: str) -> set[int]:
    """The due times of all runs that have come to an end."""
    rows = world.recent(ns, name)
    return {int(seconds(row["due"])) for row in rows if row["state"] in ("succeeded", "skipped")}


def stamps_created(world: World, ns: str, name: str) -> list[int]:
    """The stamp of each Job that ever came to be under this name, as often as it did."""
    found = [each for each in world.created(ns) if each.startswith(f"{name}-")]
    return sorted(int(each.removeprefix(f"{name}-")) for each in found)


def kubectl(world: World, ns: str, *words: str, input: str | None = None) -> None:
    world.cluster.kubectl(*words, "-n", ns, input=input)
