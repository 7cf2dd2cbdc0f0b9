"""What the Pods of a Job tell: whether one has started, why not, and why one failed. Pure.

`kube.errands` reads each page of Pods with it. Whatever a Pod holds, no reading raises: a status is
written by a kubelet, and its texts by whoever wrote the program in the container.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evenkeel.model import Cause
from evenkeel.reasons import Reason

MESSAGE_BYTES = 1024
"""Of a container's last words; a kubelet keeps four times as many."""

WORD_LENGTH = 64
"""Of a reason, which is a word of Kubernetes."""

NO_POD = "no Pod was created"

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OVERRIDES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_BEGINNING = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen."""

    started: bool
    reason: Reason | None = None
    """Why none has started."""
    message: str = ""
    cause: Cause | None = None
    """How the container ended that failed first."""


def look(pods: list[Any]) -> Look:
    """Read the Pods of one Job."""
    found = [pod for pod in pods if isinstance(pod, Mapping)]
    if not found:
        return Look(False, Reason.PENDING, NO_POD)
    if any(_has_begun(container) for pod in found for container in _containers(pod)):
        return Look(True, cause=_cause(found))
    return Look(False, *_why_not(found), cause=_cause(found))


# --- why none starts --------------------------------------------------------------------------


def _why_not(pods: list[Mapping[str, Any]]) -> tuple[Reason, str]:
    waiting = [(one, _mapping(_state(one), "waiting")) for pod in pods for one in _containers(pod)]
    for container, state in waiting:
        if "Image" in _text(state, "reason"):
            return Reason.IMAGE, _about_image(container, state)
    for pod in pods:
        for condition in _rows(_mapping(pod, "status"), "conditions"):
            if _text(condition, "reason") == "Unschedulable":
                return Reason.UNSCHEDULABLE, clean(_text(condition, "message"))
    for container, state in waiting:
        reason = _text(state, "reason")
        if reason and reason not in _BEGINNING:
            said = ": ".join(filter(None, (reason, _text(state, "message"))))
            return Reason.PENDING, clean(f"container {_text(container, 'name')}: {said}")
    name = _text(_mapping(pods[0], "metadata"), "name")
    phase = _text(_mapping(pods[0], "status"), "phase") or "Pending"
    return Reason.PENDING, f"Pod {name} is {phase}"


def _about_image(container: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    image, said = _text(container, "image"), _text(state, "message") or _text(state, "reason")
    if image and "not found" in said:
        return clean(f"image {image} not found")
    return clean(f"image {image}: {said}" if image else said)


def _has_begun(container: Mapping[str, Any]) -> bool:
    """Also one that has ended, and is to begin again."""
    return any(kind in _state(container) for kind in ("running", "terminated")) or bool(
        _mapping(_mapping(container, "lastState"), "terminated")
    )


# --- why one failed ---------------------------------------------------------------------------


def _cause(pods: list[Mapping[str, Any]]) -> Cause | None:
    """Of the container that failed first; init containers count. Where none is known to have
    failed, what Kubernetes says of a Pod."""
    ends = [end for pod in pods for end in _failures(pod)]
    if ends:
        _, cause = min(ends, key=lambda end: end[0])
        return cause
    for pod in pods:
        status = _mapping(pod, "status")
        if reason := _word(_text(status, "reason")):
            return Cause(reason, message=clean(_text(status, "message")))
    return None


def _failures(pod: Mapping[str, Any]) -> Iterator[tuple[str, Cause]]:
    """Each with when it ended, as RFC 3339 in UTC, which sorts; not known: after all others."""
    status = _mapping(pod, "status")
    evicted = _word(_text(status, "reason"))
    for container in _containers(pod):
        for state in (_state(container), _mapping(container, "lastState")):
            ended = _mapping(state, "terminated")
            code = ended.get("exitCode")
            if not isinstance(code, int) or isinstance(code, bool) or code == 0:
                continue
            words = [clean(_text(ended, "message"))]
            if evicted:  # it was the node that ended it, and says why
                words.append(clean(_text(status, "message")))
            yield (
                _text(ended, "finishedAt") or "~",
                Cause(
                    evicted or _word(_text(ended, "reason")) or "Error",
                    container=_text(container, "name")[:253],
                    exit_code=code,
                    message=clean("; ".join(filter(None, words))),
                ),
            )
            break


# --- values -----------------------------------------------------------------------------------


def clean(text: str) -> str:
    """On one line, without what a terminal would obey, and no longer than a message may be."""
    shown = "".join(map(_harmless, _COLOUR.sub("", text)))
    return " ".join(shown.split()).encode()[:MESSAGE_BYTES].decode(errors="ignore")


def _harmless(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cs" or unicodedata.bidirectional(character) in _OVERRIDES:
        return ""
    return " " if kind == "Cc" else character


def _word(text: str) -> str:
    return clean(text)[:WORD_LENGTH]


def _containers(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    status = _mapping(pod, "status")
    return [*_rows(status, "initContainerStatuses"), *_rows(status, "containerStatuses")]


def _state(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(container, "state")


def _mapping(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _rows(raw: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = raw.get(name)
    rows = found if isinstance(found, list) else []
    return [row for row in rows if isinstance(row, Mapping)]


def _text(raw: Mapping[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""
