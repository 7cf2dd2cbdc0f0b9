"""The chart's life on a real node: installed, upgraded, killed, uninstalled, installed again.

The operator runs in a Pod, by the image of `make image` and the rights of its own ServiceAccount.
Helm's commands are those of docs/install.md, word for word. All of it is one story: each step finds
the cluster as the step before left it.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from statistics import median

import pytest
import yaml
from tests.cluster.harness.cluster import OUR_CRDS
from tests.cluster.harness.helm import CHART, helm
from tests.cluster.operator_process import schedules_in
from tests.cluster.requests import Requests
from tests.cluster.world import (
    BATCH,
    ENDS,
    due,
    eventually,
    manifest,
    moment,
    owner,
    seconds,
)
from tests.docs.words import said
from tests.e2e.release import NS, Json, Release, work

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("helm")]  # built first

USER = f"system:serviceaccount:{NS}:evenkeel"
HERD = 100
PATIENCE_S = 240  # a hundred Pods come and go on a machine that is full of tests
GRACE_S = 30.0  # of the operator's Pod
ANSWER_S = 60.0  # between the status that refuses a schedule, and helm's failure; else 5 minutes
BUSY_S = 15  # so late a Job may be on a machine that is full of tests


def test_the_life_of_a_release(release: Release, tmp_path: Path) -> None:
    assert "STATUS: deployed" in said("install", release.cluster)
    owners_are_known(release)
    ns = runs_of_all_kinds_are_on_time_and_told(release)
    uses_every_right(release)
    a_release_with_a_schedule_waits_for_the_operator(release, tmp_path)
    an_upgrade_changes_a_setting(release, ns)
    a_herd_outlives_its_operator(release)
    kept = uninstalled_its_schedules_stay_and_nothing_runs(release, ns)
    a_schedule_waits_while_there_is_no_operator(release, tmp_path)
    assert "STATUS: deployed" in said("install", release.cluster)
    goes_on_where_it_was(release, ns, kept)
    if release.cluster.audit_log is not None:
        every_right_was_used_and_nothing_was_refused(release)


# --- the steps ------------------------------------------------------------------------------------


def owners_are_known(release: Release) -> None:
    """The admission plugin that asks for scheduledjobs/finalizers looks for resources every ten
    seconds. Until then it refuses Jobs that a new one owns, or believes in one that was deleted."""
    time.sleep(12)
    world = release.world
    ns = world.namespace("owners")
    schedule = world.create(ns, "owner", schedule="0 3 * * *", jobTemplate=work())
    reference = {
        **{key: schedule[key] for key in ("apiVersion", "kind")},
        **{key: schedule["metadata"][key] for key in ("name", "uid")},
        "blockOwnerDeletion": True,
    }
    job = {"metadata": {"name": "owned", "ownerReferences": [reference]}, **work()}
    path = f"{BATCH}/namespaces/{ns}/jobs?dryRun=All"
    eventually(lambda: world.call("POST", path, job), "a Job may have such an owner")
    world.leave([ns])


def runs_of_all_kinds_are_on_time_and_told(release: Release) -> str:
    world = release.world
    ns = world.namespace("kinds")
    minute = int(time.time() // 60 + 1) % 60
    if time.time() % 60 > 50:  # too near to the minute to be created before it
        minute = (minute + 1) % 60
    world.create(ns, "cron", schedule="* * * * *", jobTemplate=work())
    world.create(ns, "hourly", hourly={"minute": minute}, jobTemplate=work())
    world.create(ns, "fixed", interval={"every": "20s", "offset": "5s"}, jobTemplate=work())
    world.create(ns, "placed", interval={"every": "30s"}, jobTemplate=work())
    world.create(ns, "once", at=moment(time.time() + 15), jobTemplate=work())
    names = ("cron", "hourly", "fixed", "placed", "once")
    eventually(
        lambda: all(release.succeeded(ns)[name] for name in names),
        "each of them has a run that succeeded",
        within_s=PATIENCE_S,
    )
    # The admission plugin forgets its resources every ten seconds, and where discovery is slow it
    # refuses a Job meanwhile. Such a create is tried again: it is late by that.
    held = release.kubectl("logs", "deployment/evenkeel").count('"create held"')
    late_s = {
        job["metadata"]["name"]: seconds(job["metadata"]["creationTimestamp"]) - seconds(due(job))
        for job in world.jobs(ns)
    }
    assert min(late_s.values()) >= 0, late_s
    assert sum(each > BUSY_S for each in late_s.values()) <= held, late_s
    assert median(late_s.values()) <= 3, late_s
    for job in world.jobs(ns):
        assert job["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    for name in names:
        assert world.condition(ns, name, "Ready")["status"] == "True"
        assert eventually(
            lambda name=name: world.events(ns, name, "SuccessfulCreate"),
            f"{name}: its Job is told",
        )
        assert eventually(
            lambda name=name: world.events(ns, name, "SawCompletedJob"),
            f"{name}: its end is told",
        )
    (told,) = world.events(ns, "once", "SuccessfulCreate")
    (job,) = world.jobs(ns, "once")
    assert told["message"] == f"Created job {job['metadata']['name']}"
    eventually(
        lambda: (
            release.metrics()['evenkeel_runs_total{state="succeeded"}']
            == release.succeeded(ns).total()
        ),
        "metrics and statuses agree",
    )
    return ns


def uses_every_right(release: Release) -> None:
    """What runs that succeed do not use: Pods that are refused, a name that is taken, Jobs beyond a
    history limit, an Event that is repeated, an edit between two writes of a status, a trigger, a
    request whose ttl has passed."""
    world = release.world
    ns = world.namespace("rights")
    stranger = work()
    stranger["spec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    every = {"every": "10s", "offset": "0s"}
    world.create(ns, "refused", interval=every, jobTemplate=stranger, pendingDeadlineSeconds=15)
    at = moment(time.time() + 20)
    (number, odd) = divmod(int(seconds(at)), 60)
    taken = {"metadata": {"name": f"taken-{int(seconds(at)) if odd else number}"}, **work()}
    world.call("POST", f"{BATCH}/namespaces/{ns}/jobs", taken)
    world.create(ns, "taken", at=at, jobTemplate=work())
    limits = {"successfulJobsHistoryLimit": 0}
    world.create(ns, "leaves", interval=every, jobTemplate=work(), **limits)
    eventually(lambda: world.status(ns, "leaves")["state"] != "Pending", "its status is written")
    world.edit(ns, "leaves", priority=1)
    requests = Requests(world, ns)
    requests.create("leaves-now", "leaves", suspend=True, ttlSecondsAfterFinished=1)
    eventually(lambda: requests.condition("leaves-now", "Ready")["status"] == "True", "it is ready")
    requests.edit("leaves-now", suspend=False)
    annotate = ("annotate", "-n", ns, "sj", "leaves", "evenkeel.dev/trigger=now")
    release.cluster.kubectl(*annotate)
    eventually(
        lambda: len(world.recent(ns, "refused", "failed")) > 1,
        "its Pods are refused",
        within_s=PATIENCE_S,
    )
    assert world.recent(ns, "refused", "failed")[0]["reason"] == "pod_refused"
    eventually(
        lambda: [row["reason"] for row in world.recent(ns, "taken")] == ["name_taken"],
        "the name is taken",
        within_s=PATIENCE_S,
    )
    eventually(
        lambda: world.events(ns, "leaves", "SuccessfulDelete"), "a Job is deleted", within_s=90
    )
    eventually(
        lambda: any(each["count"] > 1 for each in world.events(ns, "refused", "RunFailed")),
        "an Event is repeated",
        within_s=90,
    )
    eventually(
        lambda: [requests.state(name) for name in requests.names()] == ["Succeeded"],
        "one request was made for the trigger, and the other one is deleted",
        within_s=PATIENCE_S,
    )
    world.leave([ns])


def a_release_with_a_schedule_waits_for_the_operator(release: Release, folder: Path) -> None:
    ns = release.world.namespace("releases")
    good = chart_with(folder / "good", manifest("good", schedule="0 3 * * *", jobTemplate=work()))
    began = time.monotonic()
    installed(release, ns, "good", good)
    assert time.monotonic() - began < PATIENCE_S  # less than the 5 minutes that helm waits
    assert release.world.condition(ns, "good", "Ready")["status"] == "True"
    bad = chart_with(folder / "bad", manifest("bad", schedule="0 0 31 2 *", jobTemplate=work()))
    refused = installed(release, ns, "bad", bad, check=False)
    failed_at = time.time()
    assert refused.returncode != 0
    assert "bad" in refused.stderr
    stalled = release.world.condition(ns, "bad", "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "NeverFires")
    assert failed_at - seconds(stalled["lastTransitionTime"]) < ANSWER_S


def an_upgrade_changes_a_setting(release: Release, ns: str) -> None:
    world, before = release.world, release.pod()
    world.create(ns, "often", interval={"every": "7s", "offset": "0s"}, jobTemplate=work())
    eventually(
        lambda: world.condition(ns, "often", "Ready")["reason"] == "TooFrequent", "it is refused"
    )
    values = "--set config.minInterval=5 --set podLabels.team=shop --set commonLabels.stage=test"
    assert "STATUS: deployed" in said("upgrade", release.cluster, more=values)
    after = release.pod()
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert {"team": "shop", "stage": "test"}.items() <= after["metadata"]["labels"].items()
    eventually(
        lambda: world.condition(ns, "often", "Ready")["status"] == "True", "it is accepted now"
    )
    eventually(lambda: world.recent(ns, "often", "succeeded"), "it runs", within_s=PATIENCE_S)
    world.delete(ns, "often")


def a_herd_outlives_its_operator(release: Release) -> None:
    """Half of it is due before the operator's Pod is deleted, half of it while none runs."""
    world = release.world
    ns = world.namespace("herd")
    first = int(time.time()) + 40  # kubectl creates a hundred in three seconds, or in thirty
    herd = [
        manifest(f"run-{n:03}", at=moment(first + 3 * (n % 2)), jobTemplate=work())
        for n in range(HERD)
    ]
    # YAML: kubectl before 1.33 refuses a second document after one of JSON.
    text = yaml.safe_dump_all(herd)
    release.cluster.kubectl("-n", ns, "create", "-f", "-", input=text)
    assert time.time() < first - 1, "this machine is too slow for this test"
    jobs = f"{BATCH}/namespaces/{ns}/jobs?limit=1"

    def created() -> int:
        page = world.get(jobs)
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    eventually(lambda: created() >= HERD // 10, "the first half runs", every_s=0.02)
    old = release.pod()["metadata"]
    world.call("DELETE", f"/api/v1/namespaces/{NS}/pods/{old['name']}")
    assert created() < HERD, "all were created before it was deleted: this proves nothing"

    eventually(
        lambda: release.succeeded(ns).total() == HERD,
        "all have run",
        within_s=PATIENCE_S,
        every_s=1,
    )
    assert set(release.succeeded(ns).values()) == {1}
    made = world.jobs(ns)
    assert Counter(owner(job)["name"] for job in made) == Counter(
        {each["metadata"]["name"]: 1 for each in herd}
    )
    if release.cluster.audit_log is not None:  # of Jobs that are gone too
        assert len(world.created(ns)) == HERD
    assert release.pod()["metadata"]["uid"] != old["uid"]
    world.leave([ns])


def uninstalled_its_schedules_stay_and_nothing_runs(release: Release, ns: str) -> dict[str, int]:
    release.uninstalled_at = time.time()
    told = said("uninstall", release.cluster)
    assert "kept due to the resource policy" in told
    assert all(name in told for name in OUR_CRDS)
    eventually(lambda: not release.world.items(f"/api/v1/namespaces/{NS}/pods"), "its Pod is gone")
    kept = release.kubectl("get", "sj", "-n", ns, "-o", "name").split()
    assert {"scheduledjob.evenkeel.dev/cron", "scheduledjob.evenkeel.dev/placed"} <= set(kept)
    counts = release.world.counts(ns, "fixed")
    jobs = len(release.world.jobs(ns, "fixed"))
    time.sleep(21)  # a due time of it passes
    assert release.world.counts(ns, "fixed") == counts
    assert len(release.world.jobs(ns, "fixed")) <= jobs
    return counts


def a_schedule_waits_while_there_is_no_operator(release: Release, folder: Path) -> None:
    ns = release.world.namespace("waits")
    waits = chart_with(
        folder / "waits", manifest("waits", schedule="0 3 * * *", jobTemplate=work())
    )
    done = installed(release, ns, "waits", waits, "--timeout=6s", check=False)
    assert done.returncode != 0
    assert release.world.status(ns, "waits")["state"] == "Pending"
    assert release.world.condition(ns, "waits", "Ready")["message"] == "Waiting for the operator"


def goes_on_where_it_was(release: Release, ns: str, before: dict[str, int]) -> None:
    world = release.world
    eventually(
        lambda: world.counts(ns, "fixed").get("succeeded", 0) > before["succeeded"],
        "it runs again",
        within_s=PATIENCE_S,
    )
    status = world.status(ns, "fixed")
    since, mark = status["countsSince"], status["internal"]["mark"]
    counts = {end: status["counts"].get(end, 0) for end in ENDS}
    first = seconds(since) - (seconds(since) - 5) % 20 + 20
    passed = int((seconds(mark) - first) // 20) + 1
    active = status["activeCount"]
    assert abs(sum(counts.values()) + active - passed) <= 1, (counts, active, passed)


def every_right_was_used_and_nothing_was_refused(release: Release) -> None:
    rules = [
        rule
        for each in yaml.safe_load_all(helm("template", "evenkeel", str(CHART), "-n", NS).stdout)
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "evenkeel"
        for rule in each["rules"]
    ]
    granted = {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    # No request: an admission plugin asks for it where a Job blocks its owner's deletion.
    granted.remove(("evenkeel.dev", "scheduledjobs/finalizers", "update"))
    used: set[tuple[str, str, str]] = set()
    for event in release.cluster.audited(USER):
        if event["user"]["username"] != USER:
            continue
        at, on = seconds(event["requestReceivedTimestamp"]), event.get("objectRef") or {}
        if at < release.began_at:  # another release of this name, in another test
            continue
        # helm takes the rights away while the Pod that it has told to go still works.
        if not 0 <= at - release.uninstalled_at <= GRACE_S:
            assert event["responseStatus"]["code"] != 401, event
            assert event["annotations"].get("authorization.k8s.io/decision") == "allow", event
        if "resource" not in on or on.get("apiGroup") == "authorization.k8s.io":
            continue
        resource = "/".join(filter(None, (on["resource"], on.get("subresource"))))
        used.add((on.get("apiGroup", ""), resource, event["verb"]))
    assert used == granted
    rights = release.kubectl("auth", "can-i", "--list", f"--as={USER}", "-n", "default")
    assert "secrets" not in rights
    assert "*" not in re.sub(r"^.*\[/.*$", "", rights, flags=re.MULTILINE)


# --- roles only -----------------------------------------------------------------------------------


def test_with_roles_only_it_serves_its_namespaces_and_no_other(release: Release) -> None:
    world = release.world
    served, other = "shop", world.namespace("other")
    for name in (served, "web"):
        world.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    said("install-roles", release.cluster)
    assert release.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name").find(NS) < 0
    every = {"every": "10s", "offset": "0s"}
    for ns in (other, served):
        world.create(ns, "fixed", interval=every, jobTemplate=work())
        world.create(ns, "placed", interval={"every": "15s"}, jobTemplate=work())
        world.create(ns, "cron", schedule="* * * * *", jobTemplate=work())
        world.create(ns, "once", at=moment(time.time() + 10), jobTemplate=work())
    names = ("fixed", "placed", "cron", "once")
    eventually(
        lambda: all(release.succeeded(served)[name] for name in names),
        "each of them has run",
        within_s=PATIENCE_S,
    )
    assert world.jobs(other) == []
    assert {world.status(other, name)["state"] for name in names} == {"Pending"}
    assert schedules_in(release.metrics()) == len(names)
    world.leave([served, "web"])


# --- help -----------------------------------------------------------------------------------------


def chart_with(folder: Path, schedule: Json) -> Path:
    """A chart of somebody's own, with a ScheduledJob in it."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: {folder.name}\nversion: 1.0.0\n")
    (folder / "templates" / "schedule.yaml").write_text(json.dumps(schedule))
    return folder


def installed(
    release: Release, ns: str, name: str, chart: Path, *more: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    return helm(
        *("install", name, str(chart), "-n", ns, "--wait", *more),
        kubeconfig=release.cluster.kubeconfig,
        check=check,
    )
