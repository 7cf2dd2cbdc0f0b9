"""Tells ScheduledJobs, CronJobs and RunRequests from other objects, and from those that were meant
to be one.

`manifest` calls `kind_of`. Files of a repository hold objects of all kinds; only what was probably
meant as one of these three is a mistake here.
"""

import enum
from collections.abc import Mapping
from typing import Any

from evenkeel.manifests.cronjob import CRONJOB_KIND, CRONJOB_VERSIONS, is_cronjob
from evenkeel.manifests.findings import Mistake
from evenkeel.manifests.nearest import nearest
from evenkeel.manifests.template_mistakes import wrong_type
from evenkeel.resource.names import API_VERSION, GROUP, KIND, REQUEST_KIND

BATCH_GROUP = "batch"
SHOWN = 80
OURS = (KIND, REQUEST_KIND)
ALL = (CRONJOB_KIND, *OURS)


class Kind(enum.Enum):
    """What an object is."""

    SCHEDULED_JOB = enum.auto()
    CRON_JOB = enum.auto()
    RUN_REQUEST = enum.auto()
    OTHER = enum.auto()
    """A Kubernetes object of a kind that has no schedule here."""
    NO_OBJECT = enum.auto()
    """It lacks kind or apiVersion, or both: values of a chart, a kustomization."""


def kind_of(raw: Mapping[str, Any]) -> Kind | Mistake:
    """What this object is, or what is wrong with its kind or apiVersion."""
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if (kind is None or version is None) and not _is_meant(kind, version):
        return Kind.NO_OBJECT
    for field, value in (("kind", kind), ("apiVersion", version)):
        if value is None:
            return Mistake((field,), _missing(field, kind))
        if not isinstance(value, str):
            return Mistake((field,), wrong_type(value, "string"))
    assert isinstance(kind, str)
    assert isinstance(version, str)
    if is_cronjob(raw):
        return Kind.CRON_JOB
    if version == API_VERSION and kind in OURS:
        return Kind.SCHEDULED_JOB if kind == KIND else Kind.RUN_REQUEST
    return _of_another(kind[:SHOWN], version[:SHOWN])


def _is_meant(kind: object, version: object) -> bool:
    """Whether half of a head is enough to know that one of the three kinds was meant."""
    if isinstance(kind, str):
        return nearest(kind, ALL) is not None
    return isinstance(version, str) and version.partition("/")[0] in (GROUP, BATCH_GROUP)


def _missing(field: str, kind: object) -> str:
    versions = {**dict.fromkeys(OURS, API_VERSION), CRONJOB_KIND: CRONJOB_VERSIONS[0]}
    if field == "apiVersion" and isinstance(kind, str) and kind in versions:
        return f"is required; write {versions[kind]}"
    return "is required"


def _of_another(kind: str, version: str) -> Kind | Mistake:
    group = version.partition("/")[0] if "/" in version else ""
    ours = group == GROUP or nearest(group, (GROUP,)) is not None
    batch = group == BATCH_GROUP or nearest(group, (BATCH_GROUP,)) is not None
    if kind in OURS and group == GROUP:
        return Mistake(("apiVersion",), f"{version} is not known; write {API_VERSION}")
    if kind in OURS and (ours or _is_built_in(group)):
        return Mistake(("apiVersion",), f"{version} has no {kind}; write {API_VERSION}")
    if kind == CRONJOB_KIND and (batch or _is_built_in(group)):
        sentence = f"{version} has no {CRONJOB_KIND}; write {CRONJOB_VERSIONS[0]}"
        return Mistake(("apiVersion",), sentence)
    if ours:
        right = nearest(kind, OURS) or " or ".join(OURS)
        return Mistake(("kind",), f"{kind} is not a kind of {GROUP}; write {right}")
    meant = nearest(kind, (CRONJOB_KIND, KIND))
    if meant is not None and kind not in ALL and batch:
        return Mistake(("kind",), f"{kind} is not a kind of {version}; did you mean {meant}?")
    return Kind.OTHER


def _is_built_in(group: str) -> bool:
    """The groups of Kubernetes itself have no dot, or end so."""
    return "." not in group or group.endswith(".k8s.io")
