"""The timings of many schedules as numpy columns, which `expand` reads.

`Columns` is made once for a sequence of schedules and never changes, so the same sequence can be
expanded for one window after another. An ordinal is a schedule's place in the sequence.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenkeel.when.due import DueTimes
from evenkeel.when.row import CRON, CRON_DTYPE, DAYS, EITHER, EVERY, EVERY_DTYPE, POLICY_MASK

Longs = NDArray[np.int64]


class Columns:
    """The timings of a sequence of schedules: cron texts, intervals of days, other intervals."""

    def __init__(self, dues: Sequence[DueTimes]) -> None:
        packed = b"".join([due.row for due in dues])
        rows = np.frombuffer(packed, CRON_DTYPE)
        kinds = rows["kind"]
        self.cron = CronColumns(rows, np.flatnonzero(kinds == CRON))
        intervals = np.frombuffer(packed, EVERY_DTYPE)
        self.days = EveryColumns(intervals, np.flatnonzero(kinds == DAYS))
        self.every = EveryColumns(intervals, np.flatnonzero(kinds == EVERY))
        self.length = len(dues)


class CronColumns:
    """Cron texts and `hourly`, as the bit masks of their fields."""

    def __init__(self, rows: NDArray[np.void], ordinal: Longs) -> None:
        rows = rows if len(ordinal) == len(rows) else rows[ordinal]
        self.ordinal = ordinal
        self.minute: NDArray[np.uint64] = np.ascontiguousarray(rows["minute"])
        self.hour: NDArray[np.uint32] = np.ascontiguousarray(rows["hour"])
        self.dom: NDArray[np.uint32] = np.ascontiguousarray(rows["dom"])
        self.month: NDArray[np.uint16] = np.ascontiguousarray(rows["month"])
        self.dow: NDArray[np.uint64] = np.ascontiguousarray(rows["dow"])
        self.either: NDArray[np.bool_] = (rows["policy"] & EITHER) != 0
        self.policy: NDArray[np.uint8] = rows["policy"] & np.uint8(POLICY_MASK)
        self.start: Longs = np.ascontiguousarray(rows["start"])
        self.end: Longs = np.ascontiguousarray(rows["end"])
        self.zones, self.zone = _zones(rows["zone"])


class EveryColumns:
    """Intervals: base + k * every, k = 1, 2, ... For whole days in a zone `base` is a local
    time."""

    def __init__(self, rows: NDArray[np.void], ordinal: Longs) -> None:
        rows = rows if len(ordinal) == len(rows) else rows[ordinal]
        self.ordinal = ordinal
        self.base: Longs = np.ascontiguousarray(rows["base"])
        self.every: Longs = np.ascontiguousarray(rows["every"])
        self.start: Longs = np.ascontiguousarray(rows["start"])
        self.end: Longs = np.ascontiguousarray(rows["end"])
        self.policy: NDArray[np.uint8] = np.ascontiguousarray(rows["policy"])
        self.zones, self.zone = _zones(rows["zone"])


def _zones(numbers: NDArray[np.uint16]) -> tuple[list[int], NDArray[np.intp]]:
    """The zones that occur, and for each row the place of its zone among them."""
    present = np.flatnonzero(np.bincount(numbers)) if len(numbers) else np.zeros(0, np.intp)
    places = np.zeros(int(present[-1]) + 1 if len(present) else 0, np.intp)
    places[present] = np.arange(len(present))
    return present.tolist(), places[numbers]


def columns(dues: Sequence[DueTimes]) -> Columns:
    """The columns of these schedules, for callers that expand the same schedules many times."""
    return Columns(dues)
