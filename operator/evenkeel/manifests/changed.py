"""Writes the ScheduledJob that a CronJob or a ScheduledJob with fixed times becomes when it leaves
its time to the operator: whole, or as a patch.

`evenkeel advise` calls these functions. All fields that have nothing to do with time stay as they
are. What an API server has set (status, uid, managedFields and the like) is left out, so that the
result can be applied. The result is not checked here: `read` does that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.manifests.cronjob import from_cronjob, is_cronjob
from evenkeel.model import Window

_OF_THE_OBJECT = frozenset(("finalizers", "ownerReferences"))
"""A finalizer of a CronJob's controller would keep a ScheduledJob from ever being deleted."""

_SET_BY_A_SERVER = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generateName",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FIXED_TIMES = ("schedule", "hourly", "interval", "dayMatch")


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What takes the place of the fixed times."""

    every: str
    window: Window | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the spec."""
        fields: dict[str, Any] = {"interval": {"every": self.every}}
        if self.window is not None:
            fields["placement"] = {"window": window_text(self.window)}
        return fields


def window_text(window: Window) -> dict[str, str]:
    """A window as in a manifest."""
    return {"start": _clock(window.start_s), "end": _clock(window.end_s)}


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}"


def changed(raw: Mapping[str, Any], rhythm: Rhythm) -> dict[str, Any]:
    """The whole ScheduledJob. `raw` was accepted by `read`, as what it is or as a CronJob."""
    given = from_cronjob(raw) if is_cronjob(raw) else raw
    spec = {name: value for name, value in given["spec"].items() if name not in _FIXED_TIMES}
    if rhythm.window is None:
        spec.pop("dst", None)  # it works with whole days only
    placement = {**(spec.pop("placement", None) or {}), **rhythm.fields.get("placement", {})}
    return {
        "apiVersion": given["apiVersion"],
        "kind": given["kind"],
        "metadata": _metadata(given["metadata"], is_new=is_cronjob(raw)),
        "spec": {
            "interval": {"every": rhythm.every},
            **({"placement": placement} if placement else {}),
            **spec,
        },
    }


def _metadata(given: Mapping[str, Any], *, is_new: bool) -> dict[str, Any]:
    left_out = _SET_BY_A_SERVER | (_OF_THE_OBJECT if is_new else frozenset())
    kept = {name: value for name, value in given.items() if name not in left_out}
    annotations = dict(kept.pop("annotations", None) or {})
    annotations.pop(_LAST_APPLIED, None)
    return {**kept, **({"annotations": annotations} if annotations else {})}


def patch(raw: Mapping[str, Any], rhythm: Rhythm) -> dict[str, Any]:
    """The merge patch of a ScheduledJob. A field that must go is null."""
    spec, metadata = raw["spec"], raw["metadata"]
    fields = rhythm.fields
    gone = [name for name in ("schedule", "hourly", "dayMatch") if spec.get(name) is not None]
    if rhythm.window is None and spec.get("dst") is not None:
        gone.append("dst")
    interval = dict.fromkeys(name for name in spec.get("interval") or {} if name != "every")
    return {
        "apiVersion": raw["apiVersion"],
        "kind": raw["kind"],
        "metadata": {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)},
        "spec": {
            **dict.fromkeys(gone),
            **fields,
            "interval": {**fields["interval"], **interval},
        },
    }
