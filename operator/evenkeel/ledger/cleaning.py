"""Makes of a write what every store can keep: text without NUL and lone surrogates, and no number
that is none. A store calls it before anything else.

PostgreSQL refuses a NUL in a text, and neither store can encode a lone surrogate: without this, one
container's last words would cost a batch. It does not shorten a text.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from evenkeel.ledger.ranges import COUNTED
from evenkeel.ledger.rows import (
    MarkRow,
    Minute,
    Range,
    RunRow,
    ScheduleEnded,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import Attempt, RunState

_LARGEST = (1 << 53) - 1
"""Larger whole numbers lose their last digits in JSON; no instant of a calendar is one."""

Row = TypeVar("Row")


def clean_text(text: str) -> str:
    """Lone surrogates become question marks; a NUL becomes U+FFFD, so that it can be seen."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def clean(row: Row) -> Row:
    """The same row, its texts cleaned, those of the rows in it too."""
    changed = {}
    kind: Any = type(row)
    for name in _names(kind):
        value = getattr(row, name)
        # Hundreds of rows a batch, two dozen fields each: nearly all of them end here.
        if type(value) in _CLEAN or (type(value) is str and value.isascii() and "\0" not in value):
            continue
        cleaned = _cleaned(value)
        if cleaned is not value:
            changed[name] = cleaned
    return replace(row, **changed) if changed else row  # type: ignore[type-var]


_CLEAN = frozenset({type(None), int, float, RunState, Range})


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        cleaned = clean_text(value)
        return value if cleaned == value else cleaned
    if isinstance(value, tuple):
        parts = tuple(_cleaned(part) for part in value)
        same = all(one is other for one, other in zip(parts, value, strict=True))
        return value if same else parts
    return clean(value) if is_dataclass(value) else value


def storable(write: Write | Minute) -> bool:
    """Whether a row is one: whole numbers fit, times are numbers, a range has an end and counts."""
    match write:
        case Minute():
            counted = (*write.lateness, *write.ended.values())
            score = write.score is None or math.isfinite(write.score)
            return score and _fit(
                (write.at, write.load, write.active, write.index_runs, write.span_s, *counted)
            )
        case RunRow():
            times = (write.taken_up, write.created, write.due_at)
            whole = (write.run.due, write.started, write.finished, write.exit_code)
            return (
                write.attempt >= 0
                and _fit((*whole, write.generation, write.priority, write.attempt))
                and all(one is None or math.isfinite(one) for one in times)
                and all(_is_attempt(one) for one in write.attempts)
            )
        case SpanRow():
            return _is_range(write)
        case SpanClosed():
            return _fit((write.last,))
        case TimingRow():
            return _fit((write.after,))
        case MarkRow():
            return _fit((write.mark,))
        case ScheduleEnded():
            return _fit((write.at, write.until))


def _is_attempt(attempt: Attempt) -> bool:
    whole = (attempt.number, attempt.started, attempt.finished, attempt.exit_code)
    created = attempt.created is None or math.isfinite(attempt.created)
    return attempt.number >= 1 and _fit(whole) and created


def _is_range(span: SpanRow) -> bool:
    if span.kind is Range.OPEN:
        return span.end is None and not span.counts and _fit((span.first,))
    return (
        span.kind is Range.VERDICT
        and span.end is not None
        and span.first < span.end
        and _fit((span.first, span.end))
        and _is_counts(span.counts)
    )


def _is_counts(counts: Mapping[str, int]) -> bool:
    return (
        bool(counts)
        and counts.keys() <= COUNTED
        and all(0 < count <= _LARGEST for count in counts.values())
    )


def _fit(numbers: Iterable[int | None]) -> bool:
    return all(one is None or -_LARGEST <= one <= _LARGEST for one in numbers)
