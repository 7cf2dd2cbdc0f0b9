"""A CronJob is a ScheduledJob by changing two lines."""

from typing import Any

import pytest
from tests.unit.resource.cases import TEMPLATE, Json

from evenkeel.errors import BadField
from evenkeel.manifests.cronjob import from_cronjob, is_cronjob
from evenkeel.model import Concurrency, Cron, Interval, Rejection, Schedule
from evenkeel.resource.read import read


def cronjob(**fields: Any) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "backup", "namespace": "shop"},
        "spec": {"jobTemplate": TEMPLATE, **fields},
    }


FULL = cronjob(
    schedule="30 2 * * *",
    timeZone="Europe/Berlin",
    startingDeadlineSeconds=60,
    concurrencyPolicy="Forbid",
    suspend=True,
    successfulJobsHistoryLimit=9,
    failedJobsHistoryLimit=0,
)


def test_two_changed_lines_give_the_same_schedule_as_the_import() -> None:
    changed = {**FULL, "apiVersion": "evenkeel.dev/v1alpha1", "kind": "ScheduledJob"}
    assert from_cronjob(FULL) == changed
    schedule = read(changed)
    assert isinstance(schedule, Schedule)
    assert schedule.timing.rule == Cron("30 2 * * *")
    assert schedule.timing.zone == "Europe/Berlin"
    assert (schedule.starting_deadline_s, schedule.suspend) == (60, True)
    assert schedule.concurrency == Concurrency.FORBID
    assert (schedule.keep_succeeded, schedule.keep_failed) == (9, 0)


def test_the_status_of_a_cronjob_stays_behind() -> None:
    assert "status" not in from_cronjob({**FULL, "status": {"lastScheduleTime": "x"}})


@pytest.mark.parametrize(
    ("text", "every_s"),
    [
        ("@every 1h30m", 5400),
        ("@every 1.5h", 5400),
        ("@every 90s", 90),
        ("  @every   25m ", 1500),
        ("@every 2m500ms", 120),
        ("@every 24h", 86_400),
        ("@every 100h", 360_000),
    ],
)
def test_every_becomes_an_interval_that_the_operator_places(text: str, every_s: int) -> None:
    schedule = read(from_cronjob(cronjob(schedule=text)))
    assert isinstance(schedule, Schedule)
    assert schedule.timing.rule == Interval(every_s)


@pytest.mark.parametrize(
    "text", ["@every", "@every soon", "@every 5", "@every -5m", "@every 1d", "@every 5m now"]
)
def test_every_without_a_duration_is_refused(text: str) -> None:
    with pytest.raises(BadField) as refused:
        from_cronjob(cronjob(schedule=text))
    assert refused.value.field == "spec.schedule"
    assert "@every needs a duration such as 1h30m" in refused.value.sentence


@pytest.mark.parametrize("text", ["TZ=Asia/Tokyo 0 * * * *", "CRON_TZ=UTC 0 * * * *"])
def test_a_zone_in_the_schedule_is_refused_with_the_remedy(text: str) -> None:
    result = read(from_cronjob(cronjob(schedule=text)))
    assert isinstance(result, Rejection)
    assert result.field == "spec.schedule"
    assert "use the field timeZone" in result.sentence


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        pytest.param({"kind": "CronJob"}, "spec", id="no spec"),
        pytest.param({"kind": "CronJob", "spec": []}, "spec", id="a list as the spec"),
        pytest.param(cronjob(), "spec.schedule", id="no schedule"),
    ],
)
def test_a_cronjob_without_its_parts_is_refused(raw: Json, field: str) -> None:
    with pytest.raises(BadField) as refused:
        from_cronjob(raw)
    assert refused.value.field == field


@pytest.mark.parametrize("text", [5, [], True, "99 * * * *"])
def test_what_is_wrong_in_a_cronjob_is_left_to_the_reader(text: Any) -> None:
    result = read(from_cronjob(cronjob(schedule=text)))
    assert isinstance(result, Rejection)
    assert result.field == "spec.schedule"


def test_only_known_versions_of_cronjob_are_taken() -> None:
    assert is_cronjob(FULL)
    assert is_cronjob({**FULL, "apiVersion": "batch/v1beta1"})
    assert not is_cronjob({**FULL, "apiVersion": "example.com/v1"})
