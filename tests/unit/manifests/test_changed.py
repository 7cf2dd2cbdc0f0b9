"""The ScheduledJob that a schedule with fixed times becomes, whole and as a patch."""

from typing import Any

import pytest
from tests.unit.resource.cases import TEMPLATE

from evenkeel.manifests.changed import Rhythm, changed, patch
from evenkeel.model import Interval, Schedule, Window
from evenkeel.resource.read import read

HOURLY = Rhythm("1h")
NIGHTLY = Rhythm("24h", Window(22 * 3600, 2 * 3600))
Json = dict[str, Any]


def cron_job(**spec: Any) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "it", "namespace": "ns", "labels": {"a": "b"}},
        "spec": {"jobTemplate": TEMPLATE, **spec},
    }


def scheduled_job(**spec: Any) -> Json:
    return {**cron_job(**spec), "apiVersion": "evenkeel.dev/v1alpha1", "kind": "ScheduledJob"}


def accepted(raw: Json) -> Schedule:
    found = read(raw)
    assert isinstance(found, Schedule), found
    return found


def test_a_cron_job_becomes_a_whole_scheduled_job() -> None:
    raw = cron_job(schedule="0 * * * *", timeZone="Etc/UTC", concurrencyPolicy="Forbid")
    assert changed(raw, HOURLY) == scheduled_job(
        interval={"every": "1h"}, timeZone="Etc/UTC", concurrencyPolicy="Forbid"
    )


def test_what_a_server_has_set_is_left_out() -> None:
    raw = cron_job(schedule="0 * * * *")
    raw["status"] = {"lastScheduleTime": "2026-01-01T00:00:00Z"}
    raw["metadata"] |= {
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "stays"},
    }
    found = changed(raw, HOURLY)
    assert list(found) == ["apiVersion", "kind", "metadata", "spec"]
    assert found["metadata"] == {
        "name": "it",
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {"mine": "stays"},
    }


SPECS = {
    "cron": {"schedule": "0 * * * *", "dayMatch": "Or"},
    "cron with dst": {"schedule": "0 0 * * *", "dst": {"gap": "Skip"}, "timeZone": "Europe/Rome"},
    "hourly": {"hourly": {"minute": 3}, "placement": {"weight": 4}},
    "interval": {
        "interval": {"every": "1h", "offset": "3m", "anchor": "2026-01-01T00:00:00Z"},
        "startTime": "2026-01-01T00:00:00Z",
        "priority": 7,
    },
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("rhythm", [HOURLY, NIGHTLY], ids=["1h", "24h"])
def test_only_the_timing_changes(spec: Json, rhythm: Rhythm) -> None:
    before, after = (
        accepted(each) for each in (scheduled_job(**spec), changed(scheduled_job(**spec), rhythm))
    )
    every_s = 3600 if rhythm is HOURLY else 86_400
    assert after.timing.rule == Interval(every_s)
    assert (after.timing.zone, after.timing.start) == (before.timing.zone, before.timing.start)
    assert (after.placement.weight, after.priority) == (before.placement.weight, before.priority)
    assert after.placement.window == rhythm.window
    assert after.template == before.template
    assert after.timing.gap is (before.timing.gap if rhythm is NIGHTLY else after.timing.gap)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("rhythm", [HOURLY, NIGHTLY], ids=["1h", "24h"])
def test_the_patch_merged_is_the_whole(spec: Json, rhythm: Rhythm) -> None:
    raw = scheduled_job(**spec)
    found = patch(raw, rhythm)
    assert found["metadata"] == {"name": "it", "namespace": "ns"}
    assert merged(raw, found) == changed(raw, rhythm)


def merged(target: Any, given: Any) -> Any:
    """RFC 7386."""
    if not isinstance(given, dict):
        return given
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in given.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def test_a_patch_names_a_namespace_only_if_the_manifest_does() -> None:
    raw = scheduled_job(**SPECS["cron"])
    del raw["metadata"]["namespace"]
    assert patch(raw, HOURLY)["metadata"] == {"name": "it"}
