"""Rows as `export` and `restore` carry them: the same columns on every store, schedules by uid,
times as numbers. All stores ask here. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from evenkeel.model import Attempt

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "schedule": ("uid", "key", "mark", "ended_at", "until", "phase"),
    "timing": ("uid", "after", "fields"),
    "run": (
        "uid",
        "kind",
        "due",
        "state",
        "reason",
        "attempt",
        "job",
        "taken_up",
        "created",
        "started",
        "finished",
        "exit_code",
        "exit_reason",
        "container",
        "message",
        "generation",
        "template_hash",
        "request",
        "requested_by",
        "attempts",
        "recorded",
    ),
    "span": ("uid", "kind", "first", "end", "counts", "reason", "recorded"),
    "deferred": (
        "uid",
        "kind",
        "due",
        "due_at",
        "priority",
        "state",
        "attempt",
        "request",
        "term",
        "process",
    ),
    "minute": (
        "at",
        "span_s",
        "ended",
        "lateness",
        "load",
        "score",
        "active",
        "index_runs",
    ),
}
"""The tables in the order of `export`, which is one in which `restore` takes them, and their
columns. `attempts`, `counts`, `ended` and `lateness` are JSON. `term` and `process` are None where
nobody has promoted the row."""

_ATTEMPT = ("number", "job", "created", "started", "finished", "exit_code", "reason")


def attempts_text(attempts: tuple[Attempt, ...]) -> str:
    """JSON: for each attempt a list of its fields, without the empty ones at its end. Most rows
    have one attempt, and its names would be longer than its values."""
    if not attempts:
        return ""
    return orjson.dumps([_short(one) for one in attempts]).decode()


def _short(attempt: Attempt) -> list[object]:
    values: list[object] = [getattr(attempt, name) for name in _ATTEMPT]
    while values[-1] in (None, ""):
        values.pop()
    return values


def attempts_of(text: str) -> tuple[Attempt, ...]:
    """The reverse of `attempts_text`."""
    if not text:
        return ()
    return tuple(Attempt(*values) for values in orjson.loads(text))


def counts_text(counts: Mapping[str, int]) -> str:
    """JSON of counts, the same for equal counts."""
    told = {str(state): count for state, count in counts.items()}
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS).decode()


def counts_of(text: str) -> dict[str, int]:
    """The reverse of `counts_text`."""
    counts: dict[str, Any] = orjson.loads(text)
    return {str(state): int(count) for state, count in counts.items()}


def lateness_text(lateness: tuple[int, ...]) -> str:
    """JSON of a histogram."""
    return orjson.dumps(lateness).decode()


def lateness_of(text: str) -> tuple[int, ...]:
    """The reverse of `lateness_text`."""
    return tuple(orjson.loads(text))
