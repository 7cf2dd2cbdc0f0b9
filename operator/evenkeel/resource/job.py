"""The Job of a run: its body, and what a Job says of its run. Its name, which is the lock, is made
in job_name. Pure.

The launcher sends the body; the Jobs watch reads a run back from it; the template's dry run sends
the same body, so that what is proven is what is created.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from evenkeel import rfc3339
from evenkeel.model import Instant, JobFact, JobRef, JobState, Request, RunId, Schedule
from evenkeel.resource.job_name import due_of, job_name, pod_name_problem, read_job_name
from evenkeel.resource.names import API_VERSION, GROUP, KIND, NOTE_REQUEST
from evenkeel.resource.parameters import bake, given_by
from evenkeel.when.zone import load_zone

__all__ = [
    "LABEL_SCHEDULE",
    "LABEL_UID",
    "NOTE_ATTEMPT",
    "NOTE_DUE",
    "NOTE_SCHEDULED",
    "due_of",
    "is_cron_jobs",
    "is_watched",
    "job_name",
    "marks_lost",
    "owner_uid",
    "pod_name_problem",
    "read_job",
    "read_job_name",
    "render",
    "schedule_label",
]

LABEL_SCHEDULE = f"{GROUP}/schedule"
LABEL_UID = f"{GROUP}/schedule-uid"
NOTE_DUE = f"{GROUP}/due"
NOTE_ATTEMPT = f"{GROUP}/attempt"
NOTE_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"

OWNER = "owner reference"
"""As `marks_lost` calls it."""

_LABEL_LENGTH = 63


def schedule_label(schedule_name: str) -> str:
    """The schedule's name as a label value; longer than a label may be: cut, and made unique."""
    if len(schedule_name) <= _LABEL_LENGTH:
        return schedule_name
    digest = hashlib.sha256(schedule_name.encode()).hexdigest()[:8]
    return f"{schedule_name[: _LABEL_LENGTH - 9].rstrip('-.')}-{digest}"


def render(
    schedule: Schedule, run: RunId, attempt: int = 1, request: Request | None = None
) -> bytes:
    """The body of the create: the user's template, with the parameters that the request gives, and
    our marks on Job and Pods."""
    template = bake(orjson.loads(schedule.template), given_by(request, schedule.parameters))
    labels = {LABEL_SCHEDULE: schedule_label(schedule.name), LABEL_UID: schedule.uid}
    notes = {
        NOTE_DUE: rfc3339.show(run.due),
        NOTE_ATTEMPT: str(attempt),
        NOTE_SCHEDULED: _scheduled_at(run.due, schedule.timing.zone),
    }
    if request is not None:
        notes[NOTE_REQUEST] = request.name
    wished = _object(template.get("metadata"))
    spec = _object(template.get("spec"))
    pod = _object(spec.get("template"))
    pod_wished = _object(pod.get("metadata"))
    return orjson.dumps(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": job_name(schedule.name, run, attempt),
                "namespace": schedule.ns,
                "labels": _marked(wished.get("labels"), labels),
                "annotations": _marked(wished.get("annotations"), notes),
                "ownerReferences": [
                    {
                        "apiVersion": API_VERSION,
                        "kind": KIND,
                        "name": schedule.name,
                        "uid": schedule.uid,
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": spec
            | {
                "template": pod
                | {
                    "metadata": pod_wished
                    | {
                        "labels": _marked(pod_wished.get("labels"), labels),
                        "annotations": _marked(pod_wished.get("annotations"), notes),
                    }
                }
            },
        }
    )


def _scheduled_at(due: Instant, zone: str) -> str:
    """As CronJob writes it, in the schedule's zone: a script that cuts the date out of it must get
    the same day from either."""
    return rfc3339.show_ahead(due, load_zone(zone).offset_at(due))


def _object(raw: Any) -> dict[str, Any]:
    """What should be an object. If it is not, the API server says so better than a traceback."""
    return raw if isinstance(raw, dict) else {}


def _marked(wished: Any, ours: Mapping[str, str]) -> dict[str, str]:
    """Everything below evenkeel.dev/ is ours: a copied label must not claim another run."""
    kept = {key: text for key, text in _object(wished).items() if not key.startswith(f"{GROUP}/")}
    return kept | dict(ours)


def read_job(raw: Mapping[str, Any], *, owned_by: str = "") -> JobFact | None:
    """What a Job says of its run; None when it is not ours, or nothing that an API server sends.
    It never raises: one odd object must not end the watch of all. `owned_by` is the uid of the
    schedule where the caller knows it, whatever the Job says.

    Which run that is its name tells, which nobody can edit. By the annotations, which everybody
    can, a running Job would become another run's, and its own run would never end."""
    try:
        return _read(raw, owned_by)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _read(raw: Mapping[str, Any], owned_by: str) -> JobFact | None:
    metadata = raw.get("metadata") or {}
    owner = owned_by or owner_uid(metadata)
    named = read_job_name(metadata["name"])
    if owner is None or named is None:
        return None
    status = raw.get("status") or {}
    state, reason, message, finished = _state(raw.get("spec") or {}, status)
    return JobFact(
        ref=JobRef(metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")),
        run=RunId(owner, named.due, named.kind),
        attempt=named.attempt,
        state=state,
        reason=reason,
        message=message,
        started=rfc3339.read(status.get("startTime")),
        finished=finished,
        deleting="deletionTimestamp" in metadata,
    )


def marks_lost(raw: Mapping[str, Any], uid: str) -> tuple[str, ...]:
    """What a Job that was created for this schedule does not have as it was stored: something in
    the cluster changes Jobs at their creation."""
    metadata = raw.get("metadata") or {}
    label = (metadata.get("labels") or {}).get(LABEL_UID)
    lost = [OWNER] if owner_uid(metadata) != uid else []
    return tuple(lost if label == uid else [*lost, f"label {LABEL_UID}"])


def is_watched(raw: Mapping[str, Any]) -> bool:
    """Whether a watch of our Jobs shows this one."""
    return LABEL_UID in ((raw.get("metadata") or {}).get("labels") or {})


def owner_uid(metadata: Mapping[str, Any]) -> str | None:
    """The ScheduledJob that controls this Job. Labels prove nothing: anybody can write them."""
    for reference in metadata.get("ownerReferences") or ():
        if (
            reference.get("controller")
            and reference.get("kind") == KIND
            and str(reference.get("apiVersion", "")).startswith(f"{GROUP}/")
        ):
            return str(reference.get("uid", "")) or None
    return None


def is_cron_jobs(raw: Mapping[str, Any], name: str) -> bool:
    """Whether a CronJob of this name controls the Job; no, when it is nothing that an API server
    sends."""
    try:
        references = (raw.get("metadata") or {}).get("ownerReferences") or ()
        return any(
            reference.get("controller") is True
            and reference.get("kind") == "CronJob"
            and reference.get("apiVersion") == "batch/v1"
            and reference.get("name") == name
            for reference in references
        )
    except (AttributeError, TypeError):
        return False


def _state(
    spec: Mapping[str, Any], status: Mapping[str, Any]
) -> tuple[JobState, str, str, Instant | None]:
    failing = False
    for condition in status.get("conditions") or ():
        if condition.get("status") != "True":
            continue
        failing |= condition.get("type") == "FailureTarget"
        when = rfc3339.read(condition.get("lastTransitionTime"))
        if condition.get("type") == "Complete":
            return JobState.SUCCEEDED, "", "", rfc3339.read(status.get("completionTime")) or when
        if condition.get("type") == "Failed":
            return (
                JobState.FAILED,
                str(condition.get("reason", "")),
                str(condition.get("message", ""))[:1024],
                when,
            )
    if failing:
        return JobState.FAILING, "", "", None
    if spec.get("suspend"):
        return JobState.SUSPENDED, "", "", None
    # `active` counts Pods that still pull their image; a ready or ended one has certainly started.
    if any(status.get(name) for name in ("ready", "succeeded", "failed")):
        return JobState.STARTED, "", "", None
    return JobState.WAITING, "", "", None
