"""RunRequests on a real API server: what people ask for, what runs, and what kubectl says of it.

One operator serves the whole module. Each test has schedules of its own, which are not due by
themselves unless the test says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.printed import columns, flat
from tests.cluster.requests import (
    REQUEST,
    Requests,
    condition_of,
    counted,
    hours,
    kind_of,
    most_at_once,
)
from tests.cluster.world import (
    Json,
    World,
    due,
    eventually,
    every,
    moment,
    names,
    once,
    owner,
    seconds,
    template,
)

pytestmark = pytest.mark.timeout(600)

SETTINGS = {"MIN_INTERVAL": "1", "INDEX_REBUILD": "5"}
HOURLY = {"interval": {"every": "1h", "offset": "0s"}}
"""Its past due times are the full hours. A test that runs over a full hour sees one run by
schedule, which is nobody's request."""
NEVER = {"schedule": "0 0 1 1 *"}
"""Not due while a test runs, for single runs."""


@dataclass
class Stage:
    """The operator at work, and where its schedules and requests are."""

    world: World
    operator: OperatorProcess
    ns: str
    requests: Requests

    def schedule(self, name: str, **spec: Any) -> Json:
        """A schedule that is known: what is asked of it need not wait."""
        timing = {key for key in spec if key in ("schedule", "interval", "hourly", "at")}
        made = self.world.create(self.ns, name, **({} if timing else HOURLY), **spec)
        eventually(lambda: self.world.internal(self.ns, name), f"{name} is known")
        return made

    def kubectl(self, *arguments: str) -> str:
        return self.world.cluster.kubectl("-n", self.ns, *arguments).stdout

    def described(self, name: str, *words: str) -> str:
        """`kubectl describe rr`, once it says these words."""

        def look() -> str:
            text = flat(self.kubectl("describe", "rr", name))
            missing = [word for word in words if word not in text]
            assert not missing, f"{missing} not in {text}"
            return text

        return eventually(look, f"what is described of {name}", every_s=0.5)


@contextmanager
def staged(cluster: Cluster, directory: Path, word: str, **settings: str) -> Iterator[Stage]:
    cluster.install_crd()
    world = World(cluster)
    ns = world.namespace(word)
    with operator(
        cluster.kubeconfig,
        directory=directory,
        settings=SETTINGS | settings,
        flags=("--namespace", ns),
    ) as running:
        yield Stage(world, running, ns, Requests(world, ns))
    world.leave([ns])
    world.close()


@pytest.fixture(scope="module")
def stage(kwok_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(kwok_cluster, tmp_path_factory.mktemp("requests"), "requests") as found:
        found.requests.create("nobody-now", "nobody")
        yield found


# --- one run --------------------------------------------------------------------------------------


def test_a_request_for_now_runs_once_and_tells_all_of_it(stage: Stage) -> None:
    schedule = stage.schedule("report", **NEVER)
    before = stage.world.status(stage.ns, "report")

    made = stage.requests.create_by_kubectl("report-now", "report")

    status = stage.requests.ended("report-now", "Succeeded")
    created = made["metadata"]["creationTimestamp"]
    (job,) = stage.requests.jobs("report-now")
    kind = kind_of(made)
    assert due(job) == created
    at = int(seconds(created))
    assert job["metadata"]["name"] == f"report-{kind}-{at if at % 60 else at // 60}"
    assert owner(job)["kind"] == "ScheduledJob"
    assert owner(job)["uid"] == schedule["metadata"]["uid"] == status["scheduleUid"]
    pod = job["spec"]["template"]["metadata"]["annotations"]
    assert (pod[REQUEST], pod["evenkeel.dev/due"]) == ("report-now", created)
    assert (status["done"], status["total"]) == (1, 1)
    assert counted(status) == {"succeeded": 1}
    assert not status.get("active")
    assert [(row["due"], row["state"], row["job"]) for row in status["recent"]] == [
        (created, "succeeded", job["metadata"]["name"])
    ]
    assert condition_of(status, "Complete")["status"] == "True"
    assert condition_of(status, "Failed")["status"] != "True"
    assert condition_of(status, "Ready")["status"] == "True"
    assert status["observedGeneration"] == 1

    told = eventually(
        lambda: (
            (found := stage.world.status(stage.ns, "report")).get("lastSuccessfulTime")
            and not found["activeCount"]
            and found
        ),
        "its schedule tells of the success",
    )
    assert told["lastSuccessfulTime"] == job["status"]["completionTime"]
    for untouched in ("recent", "counts", "lastResult", "nextRunTime", "consecutiveFailures"):
        assert told.get(untouched) == before.get(untouched), untouched


def test_kubectl_shows_how_far_it_is_and_what_happened(stage: Stage) -> None:
    stage.schedule("shown", jobTemplate=template(fate="hang"))
    span, dues = hours(4, 1, now=time.time())
    stage.requests.create("shown-week", "shown", range=span, include="All")
    eventually(lambda: stage.requests.state("shown-week") == "Running", "it runs")

    row = columns(stage.kubectl("get", "rr", "shown-week"))

    assert list(row) == ["NAME", "SCHEDULE", "STATE", "DONE", "OF", "AGE"]
    assert [row[head] for head in ("SCHEDULE", "STATE", "DONE", "OF")] == [
        *("shown", "Running", "0", "3"),
    ]
    (job,) = eventually(lambda: stage.requests.jobs("shown-week"), "the Job of the first")
    stage.described("shown-week", dues[0], "Accepted", job["metadata"]["name"])
    events = eventually(
        lambda: stage.world.events(stage.ns, "shown", "Requested"), "its schedule's Event"
    )
    assert "shown-week" in events[0]["message"]
    stage.requests.delete("shown-week")


def test_a_request_for_an_instant_to_come_waits_for_it(stage: Stage) -> None:
    stage.schedule("later", **NEVER)
    at = once(due_in=6)
    stage.requests.create("later-today", "later", at=at)

    status = eventually(
        lambda: (found := stage.requests.status("later-today")).get("plan") and found, "it is taken"
    )
    if status["state"] == "Pending":  # else this machine took six seconds to look
        assert stage.requests.jobs("later-today") == []

    stage.requests.ended("later-today", "Succeeded")
    (job,) = stage.requests.jobs("later-today")
    assert due(job) == at
    assert seconds(job["metadata"]["creationTimestamp"]) >= seconds(at)


def test_a_request_for_an_instant_that_is_past_runs_at_once_and_for_that_instant(
    stage: Stage,
) -> None:
    stage.schedule("past", **NEVER)

    stage.requests.create("past-tuesday", "past", at="2026-01-06T03:00:00Z")

    stage.requests.ended("past-tuesday", "Succeeded")
    (job,) = stage.requests.jobs("past-tuesday")
    assert due(job) == "2026-01-06T03:00:00Z"
    stamp = int(seconds("2026-01-06T03:00:00Z")) // 60
    assert job["metadata"]["name"].endswith(f"-{stamp}")


def test_a_requested_run_gets_the_values_of_its_request_and_for_the_rest_the_schedule_s(
    stage: Stage,
) -> None:
    parameters = [
        {"name": "REGION", "value": "north", "enum": ["north", "south"]},
        {"name": "DEPTH", "value": "3"},
        {"name": "NOTE", "value": "none"},
    ]
    own = [{"name": "REGION", "value": "of the template"}, {"name": "OTHER", "value": "kept"}]
    container = {"name": "main", "image": "busybox:1", "env": own}
    first = {"name": "first", "image": "busybox:1"}
    pod = {"containers": [container], "initContainers": [first]}
    stage.schedule("values", **NEVER, parameters=parameters, jobTemplate=template(pod=pod))
    given = [{"name": "REGION", "value": "south"}, {"name": "NOTE", "value": "$(OTHER) and $X"}]

    stage.requests.create("values-south", "values", parameters=given)

    (job,) = eventually(lambda: stage.requests.jobs("values-south"), "its Job")
    values = [
        {"name": "REGION", "value": "south"},
        {"name": "DEPTH", "value": "3"},
        {"name": "NOTE", "value": "$$(OTHER) and $$X"},
    ]
    spec = job["spec"]["template"]["spec"]
    assert spec["initContainers"][0]["env"] == values
    assert spec["containers"][0]["env"] == [*values, {"name": "OTHER", "value": "kept"}]


# --- ranges ---------------------------------------------------------------------------------------


def test_a_range_runs_the_oldest_first_one_after_the_other(stage: Stage) -> None:
    stage.schedule("fill")
    span, dues = hours(6, 2, now=time.time())

    stage.requests.create_by_kubectl("fill-all", "fill", range=span, include="All")

    status = stage.requests.ended("fill-all", "Succeeded")
    assert stage.requests.began("fill-all") == dues
    assert most_at_once(stage.requests.jobs("fill-all")) == 1
    assert (status["done"], status["total"]) == (4, 4)
    assert [row["due"] for row in status["recent"]] == dues[::-1]
    stage.described("fill-all", "Completed")
    assert columns(stage.kubectl("get", "rr", "fill-all"))["DONE"] == "4"


def test_a_range_runs_the_newest_first_and_as_many_at_once_as_it_says(stage: Stage) -> None:
    stage.schedule("newest", jobTemplate=template(runs_for="2s"))
    span, dues = hours(7, 1, now=time.time())

    stage.requests.create(
        "newest-all", "newest", range=span, include="All", order="NewestFirst", maxActive=3
    )

    stage.requests.ended("newest-all", "Succeeded")
    assert most_at_once(stage.requests.jobs("newest-all")) == 3
    began = stage.requests.began("newest-all")
    assert sorted(began) == dues
    # Of those that begin together any may reach the API server first.
    assert set(began[:3]) == set(dues[3:])


def test_what_failed_runs_again_and_what_had_a_job_is_not_run_as_never_run(stage: Stage) -> None:
    """NotSucceeded, NotRun and All, over runs that failed, that were skipped, that succeeded."""
    span, history = lived(stage, "mended")

    stage.requests.create("mended-dry", "mended", range=span, dryRun=True)
    dry = stage.requests.ended("mended-dry", "Succeeded")
    stage.requests.create("mended-never", "mended", range=span, include="NotRun")
    stage.requests.ended("mended-never", "Succeeded")
    stage.requests.create("mended-bad", "mended", range=span)
    status = stage.requests.ended("mended-bad", "Succeeded")
    stage.requests.create("mended-again", "mended", range=span)
    again = stage.requests.ended("mended-again", "Succeeded")

    failed = sorted(at for at, state in history.items() if state == "failed")
    skipped = sorted(at for at, state in history.items() if state == "skipped")
    assert failed and skipped, history
    assert sorted(dues_of(dry)) == sorted(failed + skipped)
    assert stage.requests.began("mended-never") == skipped
    assert stage.requests.began("mended-bad") == failed
    assert status["total"] == len(failed)
    assert condition_of(again, "Complete")["reason"] == "NothingToDo"
    assert again["total"] == 0


def test_the_same_without_a_ledger(kwok_cluster: Cluster, tmp_path: Path) -> None:
    with staged(kwok_cluster, tmp_path, "no-ledger", STORE_URL="none") as stage:
        span, history = lived(stage, "mended")

        stage.requests.create("mended-never", "mended", range=span, include="NotRun")
        stage.requests.ended("mended-never", "Succeeded")
        stage.requests.create("mended-bad", "mended", range=span)
        stage.requests.ended("mended-bad", "Succeeded")

        skipped = sorted(at for at, state in history.items() if state == "skipped")
        assert stage.requests.began("mended-never") == skipped
        # No store tells of requested runs, so those that were skipped run again.
        wanted = sorted(at for at, state in history.items() if state != "succeeded")
        assert stage.requests.began("mended-bad") == wanted


def lived(stage: Stage, name: str) -> tuple[Json, dict[str, str]]:
    """A schedule's first eight due times, and what became of them: some failed, some were skipped,
    the rest succeeded. The range that they are, and their ends."""
    rule = every(2, first_in=2)
    first = int(seconds(rule["anchor"])) + 2
    stage.schedule(
        name,
        interval=rule,
        endTime=moment(first + 16),
        concurrencyPolicy="Forbid",
        missedRuns="All",
        jobTemplate=template(fate="fail", runs_for="2500ms"),
    )
    ended = eventually(lambda: stage.world.counts(stage.ns, name).get("skipped"), "one is skipped")
    assert ended
    mended = template(fate="succeed", runs_for="100ms")
    stage.world.edit(stage.ns, name, jobTemplate=mended)
    eventually(lambda: sum(stage.world.counts(stage.ns, name).values()) == 8, "all have ended")
    history = {row["due"]: row["state"] for row in stage.world.recent(stage.ns, name)}
    assert len(history) == 8
    eventually(lambda: time.time() > first + 17, "the range is over")
    return {"from": moment(first), "to": moment(first + 16)}, history


def dues_of(status: Json) -> list[str]:
    """The due times that it says it runs."""
    found: list[str] = status["dues"]["first"]
    return found


def test_a_dry_run_lists_what_would_run_and_runs_nothing(stage: Stage) -> None:
    stage.schedule("dry")
    span, dues = hours(5, 2, now=time.time())

    stage.requests.create("dry-all", "dry", range=span, include="All", dryRun=True)

    status = stage.requests.ended("dry-all", "Succeeded")
    assert dues_of(status) == dues
    assert status["total"] == 3
    assert condition_of(status, "Complete")["reason"] == "DryRun"
    stage.described("dry-all", *dues)
    assert stage.requests.began("dry-all") == []


def test_a_range_that_keeps_failing_stops_and_says_which_and_why(stage: Stage) -> None:
    stage.schedule("broken", jobTemplate=template(fate="fail"), failedJobsHistoryLimit=10)
    span, dues = hours(6, 1, now=time.time())

    stage.requests.create("broken-all", "broken", range=span, include="All", stopAfterFailures=2)

    status = stage.requests.ended("broken-all", "Failed")
    assert stage.requests.began("broken-all") == dues[:2]
    assert counted(status)["failed"] == 2
    assert condition_of(status, "Failed")["reason"] == "StoppedAfterFailures"
    assert condition_of(status, "Complete")["status"] != "True"
    stage.described("broken-all", "BackoffLimitExceeded", dues[1])
    # What a request's runs do is not the schedule's doing.
    assert stage.world.counts(stage.ns, "broken") == {}
    assert stage.world.status(stage.ns, "broken").get("consecutiveFailures", 0) == 0


def test_one_failed_run_of_many_fails_the_request_at_its_end(stage: Stage) -> None:
    span, _ = hours(3, 1, now=time.time())
    stage.schedule("partly", jobTemplate=template(fate="fail"), failedJobsHistoryLimit=10)

    stage.requests.create("partly-all", "partly", range=span, include="All", stopAfterFailures=0)

    status = stage.requests.ended("partly-all", "Failed")
    assert counted(status) == {"failed": 2}
    assert condition_of(status, "Failed")["reason"] == "RunsFailed"


# --- suspended, forced, deleted -------------------------------------------------------------------


def test_a_suspended_request_begins_nothing_new_until_it_is_resumed(stage: Stage) -> None:
    stage.schedule("halted", jobTemplate=template(runs_for="1s"))
    span, dues = hours(7, 1, now=time.time())
    stage.requests.create("halted-all", "halted", range=span, include="All")
    eventually(lambda: stage.requests.dues("halted-all")[1:], "two have begun")

    stage.requests.edit("halted-all", suspend=True)
    eventually(
        lambda: (
            (status := stage.requests.status("halted-all"))["observedGeneration"] == 2
            and not status.get("active")
        ),
        "it is seen, and what ran has ended",
    )
    begun = stage.requests.began("halted-all")
    time.sleep(3)
    assert stage.requests.began("halted-all") == begun
    assert len(begun) < len(dues), "all were over: this proves nothing"

    stage.requests.edit("halted-all", suspend=False, maxActive=4)
    stage.requests.ended("halted-all", "Succeeded")
    assert sorted(stage.requests.began("halted-all")) == dues


def test_a_suspended_schedule_lets_only_a_forced_request_run(stage: Stage) -> None:
    stage.schedule("asleep", suspend=True)

    stage.requests.create("asleep-asked", "asleep")
    stage.requests.create("asleep-forced", "asleep", force=True)

    stage.requests.ended("asleep-forced", "Succeeded")
    assert stage.requests.began("asleep-asked") == []
    assert stage.requests.state("asleep-asked") == "Pending"
    stage.described("asleep-asked", "suspended")
    stage.world.edit(stage.ns, "asleep", suspend=False)
    stage.requests.ended("asleep-asked", "Succeeded")


def test_a_range_stands_still_while_its_schedule_is_suspended(stage: Stage) -> None:
    stage.schedule("nap", jobTemplate=template(runs_for="1s"))
    span, dues = hours(6, 1, now=time.time())
    stage.requests.create("nap-all", "nap", range=span, include="All")
    eventually(lambda: stage.requests.dues("nap-all")[1:], "two have begun")

    stage.world.edit(stage.ns, "nap", suspend=True)
    eventually(
        lambda: (
            stage.world.status(stage.ns, "nap")["state"] == "Suspended"
            and not stage.requests.status("nap-all").get("active")
        ),
        "it is seen, and what ran has ended",
    )
    begun = stage.requests.began("nap-all")
    time.sleep(3)
    assert stage.requests.began("nap-all") == begun
    assert len(begun) < len(dues), "all were over: this proves nothing"

    stage.world.edit(stage.ns, "nap", suspend=False)
    stage.requests.ended("nap-all", "Succeeded")
    assert stage.requests.began("nap-all") == dues


def test_a_deleted_request_begins_nothing_new_and_what_runs_goes_on(stage: Stage) -> None:
    stage.schedule("dropped", jobTemplate=template(runs_for="4s"), successfulJobsHistoryLimit=9)
    span, _ = hours(8, 1, now=time.time())
    stage.requests.create("dropped-all", "dropped", range=span, include="All", maxActive=2)
    eventually(lambda: stage.requests.dues("dropped-all")[1:], "two run")

    stage.requests.delete("dropped-all")

    jobs = stage.requests.jobs("dropped-all")
    assert any(not job.get("status", {}).get("completionTime") for job in jobs), "all had ended"

    def ended() -> bool:
        found = stage.requests.jobs("dropped-all")
        return len(found) >= 2 and all(job["status"].get("completionTime") for job in found)

    eventually(ended, "what ran came to its end")
    left = names(stage.requests.jobs("dropped-all"))
    time.sleep(3)
    assert names(stage.requests.jobs("dropped-all")) == left
    assert len(left) <= 4  # two more may have been on their way
    eventually(
        lambda: not stage.world.status(stage.ns, "dropped").get("activeCount"),
        "the schedule has no run any more",
    )


def test_a_request_goes_when_its_ttl_has_passed_and_its_jobs_stay(stage: Stage) -> None:
    stage.schedule("brief", **NEVER)

    stage.requests.create("brief-now", "brief", ttlSecondsAfterFinished=3)

    eventually(lambda: stage.requests.jobs("brief-now"), "it runs")
    eventually(lambda: "brief-now" not in stage.requests.names(), "it is deleted")
    (job,) = stage.requests.jobs("brief-now")
    assert job["status"]["succeeded"] == 1


# --- what becomes of its schedule -----------------------------------------------------------------


def test_a_request_for_a_schedule_that_comes_later_waits_for_it(stage: Stage) -> None:
    stage.requests.create("early-now", "early")
    stage.requests.waits("early-now", "ScheduleNotSeen")

    stage.schedule("early", **NEVER)

    stage.requests.ended("early-now", "Succeeded")


def test_a_request_for_a_schedule_that_never_comes_is_refused_after_a_minute(stage: Stage) -> None:
    """It was made when this module began: its minute passes beside the other tests."""
    made = stage.requests.get("nobody-now")

    status = stage.requests.ended("nobody-now", "Refused", within_s=180)

    failed = condition_of(status, "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "ScheduleNotFound")
    assert "no ScheduledJob" in failed["message"]
    waited_s = seconds(failed["lastTransitionTime"]) - seconds(
        made["metadata"]["creationTimestamp"]
    )
    assert waited_s >= 60
    stage.described("nobody-now", "Refused")


def test_a_range_ends_with_its_schedule_and_not_on_another_of_that_name(stage: Stage) -> None:
    stage.schedule("leaves", jobTemplate=template(runs_for="2s"))
    span, dues = hours(8, 1, now=time.time())
    stage.requests.create("leaves-all", "leaves", range=span, include="All")
    eventually(lambda: stage.requests.dues("leaves-all"), "it has begun")

    stage.world.delete(stage.ns, "leaves")
    stage.world.create(stage.ns, "leaves", **HOURLY)

    status = stage.requests.ended("leaves-all", "Failed")
    assert condition_of(status, "Failed")["reason"] == "ScheduleGone"
    assert not status.get("active")
    assert len(stage.requests.began("leaves-all")) < len(dues)
    assert stage.world.condition(stage.ns, "leaves", "Degraded")["status"] != "True"


def test_a_range_keeps_the_due_times_that_it_was_planned_with(stage: Stage) -> None:
    """And the runs that begin after an edit of the template have the new one."""
    stage.schedule("edited", jobTemplate=template(runs_for="1s"), successfulJobsHistoryLimit=20)
    span, dues = hours(7, 1, now=time.time())
    stage.requests.create("edited-all", "edited", range=span, include="All")
    eventually(lambda: stage.requests.dues("edited-all")[1:], "two have begun")

    changed = template(runs_for="100ms", pod={"priority": 0}, parallelism=1)
    changed["metadata"] = {"labels": {"edition": "second"}}
    interval = {"every": "25m", "offset": "1m"}
    stage.world.edit(stage.ns, "edited", interval=interval, jobTemplate=changed)

    stage.requests.ended("edited-all", "Succeeded")
    assert stage.requests.began("edited-all") == dues
    editions = [
        job["metadata"]["labels"].get("edition") for job in stage.requests.jobs("edited-all")
    ]
    assert editions[0] is None
    assert editions[-1] == "second"


def test_a_range_of_a_placed_interval_keeps_its_phase_when_the_schedule_is_placed_anew(
    stage: Stage,
) -> None:
    """The phase also says what was due before the schedule was placed."""
    stage.schedule("placed", interval={"every": "1h"}, jobTemplate=template(runs_for="1s"))
    placement = eventually(
        lambda: stage.world.status(stage.ns, "placed").get("placement"), "it is placed"
    )
    phase = seconds(placement["anchor"]) % 3600
    now = int(time.time())
    span = {"from": moment(now - 6 * 3600), "to": moment(now)}
    stage.requests.create("placed-all", "placed", range=span, include="All")
    eventually(lambda: stage.requests.dues("placed-all"), "one has begun")

    stage.world.edit(stage.ns, "placed", interval={"every": "50m"})

    stage.requests.ended("placed-all", "Succeeded")
    eventually(
        lambda: stage.world.status(stage.ns, "placed")["placement"]["every"] == "3000s",
        "it is placed anew",
    )
    began = [seconds(text) for text in stage.requests.began("placed-all")]
    assert len(began) == 6
    assert {instant % 3600 for instant in began} == {phase}


# --- what is refused ------------------------------------------------------------------------------


REFUSED_AT_ONCE: dict[str, tuple[Json, str]] = {
    "at and range": (
        {"at": "2026-01-06T03:00:00Z", "range": {"from": moment(0), "to": moment(60)}},
        "at and range",
    ),
    "backwards": ({"range": {"from": moment(7200), "to": moment(3600)}}, "from"),
    "another namespace": ({"schedule": "other/report"}, "schedule"),
    "too many at once": ({"maxActive": 101}, "maxActive"),
}


@pytest.mark.parametrize("case", REFUSED_AT_ONCE)
def test_what_the_api_server_can_know_it_refuses_with_a_sentence(stage: Stage, case: str) -> None:
    spec, word = REFUSED_AT_ONCE[case]

    with pytest.raises(AssertionError, match="422") as refused:
        stage.requests.create("wrong", **({"schedule": "report"} | spec))

    assert word in str(refused.value)


def test_only_suspend_and_max_active_may_be_changed(stage: Stage) -> None:
    stage.schedule("fixed", suspend=True)
    stage.requests.create("fixed-now", "fixed")

    stage.requests.edit("fixed-now", suspend=True)
    with pytest.raises(AssertionError, match="422") as refused:
        stage.requests.edit("fixed-now", force=True)

    assert "immutable" in str(refused.value) or "suspend" in str(refused.value)


REFUSED_LATER: dict[str, tuple[Json, str, str]] = {
    "not over": (
        {"range": {"from": "2026-01-01T00:00:00Z", "to": "2126-01-01T00:00:00Z"}},
        "RangeNotOver",
        "range.to",
    ),
    "too many": (
        {
            "range": {"from": "2000-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
            "include": "All",
        },
        "TooManyDueTimes",
        "10000",
    ),
    "before the ledger": (
        {"range": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z"}},
        "PastUnknown",
        "include",
    ),
    "unknown parameter": (
        {"parameters": [{"name": "REGOIN", "value": "south"}]},
        "UnknownParameter",
        "REGOIN",
    ),
    "not in the enum": (
        {"parameters": [{"name": "REGION", "value": "west"}]},
        "ValueNotAllowed",
        "north",
    ),
}


@pytest.mark.parametrize("case", REFUSED_LATER)
def test_what_only_the_operator_can_know_ends_in_refused_with_a_sentence(
    stage: Stage, case: str
) -> None:
    spec, reason, word = REFUSED_LATER[case]
    name = case.replace(" ", "-")
    parameters = [{"name": "REGION", "value": "north", "enum": ["north", "south"]}]
    stage.schedule(name, parameters=parameters)

    stage.requests.create(f"{name}-asked", name, **spec)

    status = stage.requests.ended(f"{name}-asked", "Refused")
    ready, stalled, failed = (condition_of(status, kind) for kind in ("Ready", "Stalled", "Failed"))
    assert (ready["status"], ready["reason"]) == ("False", reason)
    assert stalled["status"] == "True"
    assert (failed["status"], failed["reason"]) == ("True", "Refused")
    assert word in ready["message"].replace(",", ""), ready["message"]
    stage.described(f"{name}-asked", reason)
    assert stage.requests.jobs(f"{name}-asked") == []


# --- beside the schedule's own runs ---------------------------------------------------------------


def test_a_requested_run_waits_for_the_place_and_no_scheduled_run_is_skipped_for_it(
    stage: Stage,
) -> None:
    """Under Forbid: the requested run waits for the one that is there, and the due time that comes
    while the requested one runs waits in its turn."""
    rule = every(6, first_in=3)
    stage.schedule(
        "meets",
        interval=rule,
        endTime=moment(seconds(rule["anchor"]) + 6 * 2 + 1),
        concurrencyPolicy="Forbid",
        jobTemplate=template(runs_for="4s"),
        successfulJobsHistoryLimit=9,
    )
    eventually(lambda: stage.world.status(stage.ns, "meets").get("activeCount"), "one runs")

    stage.requests.create("meets-now", "meets")

    stage.requests.ended("meets-now", "Succeeded")
    eventually(
        lambda: stage.world.counts(stage.ns, "meets") == {"succeeded": 2}, "both have succeeded"
    )
    jobs = stage.world.jobs(stage.ns, "meets")
    assert len(jobs) == 3
    assert most_at_once(jobs) == 1


def test_a_template_whose_jobs_vanish_at_once_runs_each_due_time_once(stage: Stage) -> None:
    stage.schedule("vanish", jobTemplate=template(ttlSecondsAfterFinished=0))
    span, dues = hours(6, 1, now=time.time())

    stage.requests.create("vanish-all", "vanish", range=span, include="All", maxActive=2)

    status = eventually(
        lambda: (
            (found := stage.requests.status("vanish-all"))["state"] in ("Succeeded", "Failed")
            and found
        ),
        "it has ended",
    )
    assert sorted(stage.requests.began("vanish-all")) == dues
    assert status["done"] == 5
    assert set(counted(status)) <= {"succeeded", "lost"}
