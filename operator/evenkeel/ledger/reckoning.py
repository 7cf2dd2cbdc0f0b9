"""The due times of a schedule as its stored timings make them, a few days at a time.

`audit` compares them with what is recorded; `reconcile` fills in what is not. Pure.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import orjson
from numpy.typing import NDArray

from evenkeel.errors import BadField
from evenkeel.ledger.rows import TimingRow
from evenkeel.model import Instant, Interval, Timing
from evenkeel.resource.timing import timing_fields, timing_from_fields
from evenkeel.when import DueTimes, compile_timing, expand
from evenkeel.when.expand import LONGEST_WINDOW_S

Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which one timing is in force, of a few days at most."""

    first: Instant
    end: Instant
    timing: TimingRow
    due: Longs | None
    """Its due times, ascending. None: nothing can be reckoned by the timing."""


def stretches(timings: Sequence[TimingRow], first: Instant, end: Instant) -> Iterator[Stretch]:
    """The due times in [first, end), each by the timing that is in force then. Nothing is due
    before the first timing."""
    for row, low, high in _in_force(timings, first, end):
        try:
            dues = _compile(row)
        except _UnreadableError:
            yield Stretch(low, high, row, None)
            continue
        for begin in range(low, high, LONGEST_WINDOW_S):
            until = min(high, begin + LONGEST_WINDOW_S)
            yield Stretch(begin, until, row, _expand(dues, begin, until))


def count_due(timings: Sequence[TimingRow], first: Instant, end: Instant) -> int:
    """How many due times there are in [first, end), without listing them."""
    total = 0
    for row, low, high in _in_force(timings, first, end):
        with suppress(_UnreadableError):
            dues = _compile(row)
            total += dues.count(low, high) if dues is not None else 0
    return total


def _in_force(
    timings: Sequence[TimingRow], first: Instant, end: Instant
) -> Iterator[tuple[TimingRow, Instant, Instant]]:
    """Which timing makes the due times of which part of [first, end)."""
    for row, following in pairwise([*timings, None]):
        assert row is not None
        low = max(first, row.after + 1)
        high = min(end, following.after + 1) if following else end
        if low < high:
            yield row, low, high


def timing_text(timing: Timing | None) -> str:
    """As a TimingRow has it; empty where nothing is due, as before a phase is chosen."""
    return orjson.dumps(timing_fields(timing)).decode() if timing is not None else ""


class _UnreadableError(Exception):
    """The due times of a timing cannot be reckoned."""


def _compile(row: TimingRow) -> DueTimes | None:
    """As the core does; None: no due times."""
    if not row.fields:
        return None
    try:
        timing = timing_from_fields(orjson.loads(row.fields))
        if timing is None or (isinstance(timing.rule, Interval) and timing.rule.offset_s is None):
            raise _UnreadableError
        return compile_timing(timing, seed=row.key)
    except (orjson.JSONDecodeError, BadField) as error:
        raise _UnreadableError from error


def _expand(dues: DueTimes | None, first: Instant, end: Instant) -> Longs:
    if dues is None:
        return np.zeros(0, np.int64)
    return expand([dues], first, end).second.astype(np.int64) + first
