"""The Job of a run: its body carries our marks, and reading a Job never raises."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import cron, instant, schedule

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE, Cron, JobState, RunId
from evenkeel.resource.job import (
    LABEL_UID,
    OWNER,
    is_cron_jobs,
    job_name,
    marks_lost,
    owner_uid,
    read_job,
    render,
    schedule_label,
)

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
NAMES = st.from_regex(
    r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?){0,3}", fullmatch=True
)
DUES = st.integers(0, 253_402_300_799)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=10,
)


# --- labels -----------------------------------------------------------------------------------


@given(NAMES)
def test_a_label_is_a_label_value(name):
    assert LABEL_VALUE.fullmatch(schedule_label(name))
    assert len(name) > 63 or schedule_label(name) == name


def test_long_names_that_begin_alike_have_different_labels():
    assert schedule_label("a" * 70) != schedule_label("a" * 71)


# --- bodies -----------------------------------------------------------------------------------

TEMPLATE = {
    "metadata": {
        "name": "mine",
        "namespace": "elsewhere",
        "labels": {"team": "a", "evenkeel.dev/schedule": "forged"},
        "annotations": {
            "note": "b",
            "evenkeel.dev/due": "forged",
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "forged",
        },
        "finalizers": ["x"],
    },
    "spec": {
        "backoffLimit": 3,
        "someFieldOfTheFuture": {"deep": [1, 2]},
        "template": {
            "metadata": {"labels": {"app": "x", "evenkeel.dev/schedule-uid": "forged"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        },
    },
}
SEEN = cron("* * * * *", template=orjson.dumps(TEMPLATE))
RUN = RunId(SEEN.uid, instant("10:01"))


def body(attempt=1, template=None):
    seen = SEEN if template is None else cron("* * * * *", template=orjson.dumps(template))
    return orjson.loads(render(seen, RUN, attempt))


def test_the_template_goes_through_untouched():
    spec = body()["spec"]
    assert spec["backoffLimit"] == 3
    assert spec["someFieldOfTheFuture"] == {"deep": [1, 2]}
    assert spec["template"]["spec"] == TEMPLATE["spec"]["template"]["spec"]


def test_of_its_metadata_only_labels_and_annotations_are_taken():
    metadata = body()["metadata"]
    assert metadata["namespace"] == "shop"
    assert metadata["name"] == job_name("report", RUN)
    assert "finalizers" not in metadata
    assert (metadata["labels"]["team"], metadata["annotations"]["note"]) == ("a", "b")


@pytest.mark.parametrize("attempt", [1, 2])
def test_job_and_pod_carry_our_marks_and_nobody_forges_them(attempt):
    for metadata in (body(attempt)["metadata"], body(attempt)["spec"]["template"]["metadata"]):
        assert metadata["labels"]["evenkeel.dev/schedule"] == "report"
        assert metadata["labels"]["evenkeel.dev/schedule-uid"] == SEEN.uid
        notes = metadata["annotations"]
        assert notes["evenkeel.dev/due"] == "2026-03-02T10:01:00Z"
        assert notes["evenkeel.dev/attempt"] == str(attempt)
        assert notes["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-03-02T10:01:00Z"


SCHEDULED_AT = {
    "UTC": ("UTC", "10:01", "2026-03-02T10:01:00Z"),
    "ahead": ("Europe/Berlin", "10:01", "2026-03-02T11:01:00+01:00"),
    "by half an hour": ("Asia/Kolkata", "10:01", "2026-03-02T15:31:00+05:30"),
    "on the day before": ("America/Los_Angeles", "02:30", "2026-03-01T18:30:00-08:00"),
    "in summer": ("Europe/Berlin", "2026-07-01T22:30:00Z", "2026-07-02T00:30:00+02:00"),
    "a zone that shows UTC": ("Europe/London", "10:01", "2026-03-02T10:01:00Z"),
    "the last instant there is": ("Asia/Tokyo", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
    "the first": ("America/New_York", "1970-01-01T00:00:00Z", "1969-12-31T19:00:00-05:00"),
}


@pytest.mark.parametrize(("zone", "due", "text"), SCHEDULED_AT.values(), ids=SCHEDULED_AT)
def test_the_scheduled_time_is_written_in_the_zone_as_cronjob_does(zone, due, text):
    seen = cron("* * * * *", zone=zone)
    raw = orjson.loads(render(seen, RunId(seen.uid, instant(due))))
    for metadata in (raw["metadata"], raw["spec"]["template"]["metadata"]):
        notes = metadata["annotations"]
        assert notes["batch.kubernetes.io/cronjob-scheduled-timestamp"] == text
        assert rfc3339.read(notes["evenkeel.dev/due"]) == instant(due)
        assert notes["evenkeel.dev/due"].endswith("Z")


def test_the_schedule_owns_the_job():
    (owner,) = body()["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "ScheduledJob",
        "name": "report",
        "uid": SEEN.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_template_with_nulls_is_rendered():
    template = {"metadata": None, "spec": {"template": {"metadata": None, "spec": None}}}
    assert body(template=template)["spec"]["template"]["spec"] is None


# --- reading ----------------------------------------------------------------------------------


def stored(**changes):
    raw = body()
    raw["metadata"] |= {"uid": "uid-job"} | changes.pop("metadata", {})
    return raw | changes


def condition(kind, **more):
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": "2026-03-02T10:02:00Z",
    } | more


PHASES = {
    "nothing yet": ({}, {}, (JobState.WAITING, None)),
    "a Pod that pulls its image": ({}, {"active": 1}, (JobState.WAITING, None)),
    "a Pod that is ready": ({}, {"active": 1, "ready": 1}, (JobState.STARTED, None)),
    "a Pod that has failed": ({}, {"active": 1, "failed": 1}, (JobState.STARTED, None)),
    "suspended by a queue": ({"suspend": True}, {}, (JobState.SUSPENDED, None)),
    "complete": (
        {},
        {"conditions": [condition("Complete")], "completionTime": "2026-03-02T10:01:30Z"},
        (JobState.SUCCEEDED, instant("10:01:30")),
    ),
    "complete without a time of its own": (
        {},
        {"conditions": [condition("Complete")]},
        (JobState.SUCCEEDED, instant("10:02")),
    ),
    "failed": (
        {},
        {"conditions": [condition("Failed", reason="DeadlineExceeded", message="too long")]},
        (JobState.FAILED, instant("10:02")),
    ),
    "about to fail": ({}, {"conditions": [condition("FailureTarget")]}, (JobState.FAILING, None)),
    "a condition that does not hold": (
        {},
        {"conditions": [condition("Failed", status="False")]},
        (JobState.WAITING, None),
    ),
}


@pytest.mark.parametrize(("spec", "status", "expected"), PHASES.values(), ids=PHASES)
def test_what_a_job_says_of_its_run(spec, status, expected):
    fact = read_job(stored(spec=spec, status=status))
    assert (fact.state, fact.finished) == expected
    assert (fact.run, fact.attempt, fact.ref.uid) == (RUN, 1, "uid-job")


def test_a_failure_brings_its_reason():
    status = {"conditions": [condition("Failed", reason="DeadlineExceeded", message="too long")]}
    fact = read_job(stored(status=status))
    assert (fact.reason, fact.message) == ("DeadlineExceeded", "too long")


def test_a_job_on_its_way_out_says_so():
    gone = {"deletionTimestamp": "2026-03-02T10:05:00Z"}
    assert read_job(stored(metadata=gone)).deleting
    assert not read_job(stored()).deleting


NOT_OURS = {
    "nobody's": {"ownerReferences": []},
    "a CronJob's": {
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "CronJob", "controller": True, "uid": "x"}
        ]
    },
    "owned but not controlled": {
        "ownerReferences": [
            {"apiVersion": "evenkeel.dev/v1alpha1", "kind": "ScheduledJob", "uid": "x"}
        ]
    },
    "by another name": {"name": "report"},
    "after the year 9999": {"name": "report-253402300800"},
}


@pytest.mark.parametrize("metadata", NOT_OURS.values(), ids=NOT_OURS)
def test_it_is_not_ours(metadata):
    assert read_job(stored(metadata=metadata)) is None


def test_labels_prove_nothing():
    raw = stored(metadata={"ownerReferences": []})
    assert owner_uid(raw["metadata"]) is None


EDITED = {
    "another due time": {"evenkeel.dev/due": "2026-03-02T09:00:00Z"},
    "a due time that is none": {"evenkeel.dev/due": "soon"},
    "another attempt": {"evenkeel.dev/attempt": "2"},
    "none of them": {},
}


@pytest.mark.parametrize("notes", EDITED.values(), ids=EDITED)
def test_no_annotation_makes_it_another_runs(notes):
    """Everybody who may edit Jobs can edit them; the run would never hear of its end."""
    fact = read_job(stored(metadata={"annotations": notes}))
    assert (fact.run, fact.attempt) == (RUN, 1)


@given(
    st.sampled_from(
        ["annotations", "ownerReferences", "spec", "status", "conditions", "attempt", "due"]
    ),
    JUNK,
)
def test_no_job_makes_it_raise(where, junk):
    raw = stored(status={"conditions": []})
    if where in ("annotations", "ownerReferences"):
        raw["metadata"][where] = junk
    elif where == "conditions":
        raw["status"]["conditions"] = junk
    elif where in ("attempt", "due"):
        raw["metadata"]["annotations"] |= {f"evenkeel.dev/{where}": junk}
    else:
        raw[where] = junk
    read_job(raw)


KINDS = st.just(BY_SCHEDULE) | st.from_regex(r"q0[a-z2-7]{6}", fullmatch=True)


@given(NAMES, DUES, KINDS, st.integers(1, 21))
def test_what_is_rendered_is_read_back(name, due, kind, attempt):
    seen = schedule(Cron("* * * * *"), name=name)
    raw = orjson.loads(render(seen, RunId(seen.uid, due, kind), attempt))
    fact = read_job(raw)
    assert (fact.run, fact.attempt) == (RunId(seen.uid, due, kind), attempt)
    assert fact.ref.name == raw["metadata"]["name"]


def test_a_requested_run_of_the_same_due_time_is_another_run():
    requested = RunId(SEEN.uid, RUN.due, "q0abcdef")
    facts = [read_job(orjson.loads(render(SEEN, run))) for run in (RUN, requested)]
    assert [fact.run for fact in facts] == [RUN, requested]


# --- a CronJob's ------------------------------------------------------------------------------

CRON_JOBS = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "name": "report",
    "uid": "uid-cronjob",
    "controller": True,
    "blockOwnerDeletion": True,
}


def owned_by(reference):
    return {"metadata": {"name": "report-29540761", "ownerReferences": [reference]}}


def test_a_job_that_a_cronjob_of_the_name_controls():
    assert is_cron_jobs(owned_by(CRON_JOBS), "report")
    assert read_job(owned_by(CRON_JOBS)) is None


NOT_CRON_JOBS = {
    "of another name": {"name": "backup"},
    "not controlled": {"controller": False},
    "controlled by a word": {"controller": "true"},
    "of another kind": {"kind": "ScheduledJob"},
    "of another group": {"apiVersion": "batch.example.com/v1"},
    "before batch/v1": {"apiVersion": "batch/v1beta1"},
}


@pytest.mark.parametrize("change", NOT_CRON_JOBS.values(), ids=NOT_CRON_JOBS)
def test_a_job_that_no_cronjob_of_the_name_controls(change):
    assert not is_cron_jobs(owned_by(CRON_JOBS | change), "report")


@given(JUNK)
def test_no_owner_makes_it_raise(junk):
    assert not is_cron_jobs({"metadata": {"ownerReferences": junk}}, "report")
    assert not is_cron_jobs({"metadata": junk}, "report")
    assert not is_cron_jobs(owned_by(junk), "report")


# --- as it was stored -----------------------------------------------------------------------------

ALTERED = {
    "nothing": ({}, ()),
    "the label": ({"labels": {}}, (f"label {LABEL_UID}",)),
    "the label's value": ({"labels": {LABEL_UID: "other"}}, (f"label {LABEL_UID}",)),
    "the owner": ({"ownerReferences": []}, (OWNER,)),
    "both": ({"ownerReferences": None, "labels": None}, (OWNER, f"label {LABEL_UID}")),
}


@pytest.mark.parametrize(("change", "lost"), ALTERED.values(), ids=ALTERED)
def test_what_a_job_lost_as_it_was_stored(change, lost):
    seen = cron("* * * * *")
    stored = orjson.loads(render(seen, RunId(seen.uid, instant("10:00"))))
    stored["metadata"] |= change
    assert marks_lost(stored, seen.uid) == lost
