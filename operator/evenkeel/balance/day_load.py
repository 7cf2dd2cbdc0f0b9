"""The load of a day or a week as numpy arrays: by slot, by minute and, of a day, by second.

`LoadMap` holds one `DayLoad` and adds and removes runs; a rebalance tries its moves on a copy. The
arrays begin at the start of the current slot. This module knows no schedules: a caller that added
runs must remove exactly the same runs, or the sums stay wrong.
"""

import copy
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.model import DAY_S, SLOT_S

Ints = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

MINUTE_S = 60
SLOT_MINUTES = SLOT_S // MINUTE_S

WEIGHT_MAX = 1000


class Horizon:
    """Sums over the runs of a time that repeats, such as a day or a week.

    A run that lasts beyond the end weighs on the beginning: the runs of the last horizon did so.
    """

    __slots__ = ("fixed", "later", "minutes", "slots")

    def __init__(self, slots: int = DAY_SLOTS) -> None:
        self.slots: Ints = np.zeros(slots, np.int64)
        """Weight of the runs that start in each slot."""
        self.later: Ints = np.zeros(slots, np.int64)
        """Weight-minutes of the runs that started in an earlier slot and are expected to run still.
        0 everywhere while no duration is known."""
        self.minutes: Ints = np.zeros(slots * SLOT_MINUTES, np.int64)
        """Runs that start in each minute. Weights do not count here."""
        self.fixed: Ints = np.zeros(slots * SLOT_MINUTES, np.int64)
        """Of these the runs of schedules whose owners chose the times."""

    @property
    def work(self) -> Ints:
        """Weight-minutes of each slot. A run has at least the whole slot in which it starts."""
        return self.slots * SLOT_MINUTES + self.later

    def copy(self) -> Self:
        """An independent copy."""
        made = copy.copy(self)
        made.slots = self.slots.copy()
        made.later = self.later.copy()
        made.minutes = self.minutes.copy()
        made.fixed = self.fixed.copy()
        return made

    def add(
        self, second: Ints, weight: int, lasts_s: int, *, fixed: bool = False, sign: int = 1
    ) -> None:
        """Add the runs of one schedule, or remove them with sign -1. No second may occur twice."""
        count = len(self.slots)
        slot = second // SLOT_S
        if len(second) <= count:
            np.add.at(self.slots, slot, sign * weight)
        else:
            self.slots += np.bincount(slot, minlength=count) * (sign * weight)
        starts = np.bincount(second // MINUTE_S, minlength=len(self.minutes)) * sign
        self.minutes += starts
        if fixed:
            self.fixed += starts
        if lasts_s:
            self._add_later(second, np.full(len(second), weight), lasts_s, sign)

    def add_all(
        self, second: Ints, weight: Ints, lasts_s: Ints, fixed: Bools, *, sign: int = 1
    ) -> None:
        """Add the runs of many schedules at once, or remove them. The arrays have one entry a
        run."""
        minute = second // MINUTE_S
        self.slots += sign * weight_by_slot(second // SLOT_S, weight, len(self.slots))
        self.minutes += sign * np.bincount(minute, minlength=len(self.minutes))
        self.fixed += sign * np.bincount(minute[fixed], minlength=len(self.minutes))
        known = np.flatnonzero(lasts_s)
        if len(known):
            self._add_later(second[known], weight[known], lasts_s[known], sign)

    def drop_first(self, slots: int) -> None:
        """Begin so many slots later. The caller has removed the runs of these slots before."""
        self.slots = np.roll(self.slots, -slots)
        self.later = np.roll(self.later, -slots)
        self.minutes = np.roll(self.minutes, -slots * SLOT_MINUTES)
        self.fixed = np.roll(self.fixed, -slots * SLOT_MINUTES)

    def _add_later(self, second: Ints, weight: Ints, lasts_s: Ints | int, sign: int) -> None:
        count = len(self.slots)
        end = second + np.minimum(lasts_s, count * SLOT_S)
        first, last = second // SLOT_S, end // SLOT_S
        rest = end % SLOT_S // MINUTE_S
        longer = np.flatnonzero(last > first)
        if not len(longer):
            return
        first, last, rest, weight = first[longer], last[longer], rest[longer], weight[longer]
        both = 2 * count
        whole = weight * SLOT_MINUTES
        begun = weight_by_slot(first + 1, whole, both) - weight_by_slot(last, whole, both)
        later = np.cumsum(begun) + weight_by_slot(last, weight * rest, both)
        self.later += sign * (later[:count] + later[count:])


class DayLoad(Horizon):
    """Sums over the runs of a day, by second and by weight too. `seconds` has one entry more than a
    day has seconds. The last entry stays 0: index arrays of equal length point there where a
    shorter one has ended."""

    __slots__ = ("runs_by_weight", "seconds")

    def __init__(self) -> None:
        super().__init__(DAY_SLOTS)
        self.runs_by_weight: Ints = np.zeros(WEIGHT_MAX + 1, np.int64)
        self.seconds: Seconds = np.zeros(DAY_S + 1, np.int32)
        """Runs that start in each second."""

    def copy(self) -> Self:
        """An independent copy."""
        made = super().copy()
        made.runs_by_weight = self.runs_by_weight.copy()
        made.seconds = self.seconds.copy()
        return made

    def add(
        self, second: Ints, weight: int, lasts_s: int, *, fixed: bool = False, sign: int = 1
    ) -> None:
        """Add the runs of one schedule, or remove them with sign -1. No second may occur twice."""
        super().add(second, weight, lasts_s, fixed=fixed, sign=sign)
        self.seconds[second] += sign
        self.runs_by_weight[weight] += sign * len(second)

    def add_all(
        self, second: Ints, weight: Ints, lasts_s: Ints, fixed: Bools, *, sign: int = 1
    ) -> None:
        """Add the runs of many schedules at once, or remove them."""
        super().add_all(second, weight, lasts_s, fixed, sign=sign)
        counted = np.bincount(second, minlength=DAY_S + 1).astype(np.int32)
        self.seconds += sign * counted
        self.runs_by_weight += sign * np.bincount(weight, minlength=WEIGHT_MAX + 1)

    def drop_first(self, slots: int) -> None:
        """Begin so many slots later. The caller has removed the runs of these slots before."""
        super().drop_first(slots)
        self.seconds[:-1] = np.roll(self.seconds[:-1], -slots * SLOT_S)


class Rhythm(NamedTuple):
    """What phases are compared by: the load of a day or a week that repeats."""

    work: Ints
    """Weight-minutes of each slot, and one entry more, 0: index arrays of equal length point there
    where a shorter one has ended."""
    minutes: Ints
    """Starts of each minute."""
    fixed: Ints
    """Of these the starts of schedules whose owners chose the times."""

    def minus(self, other: "Rhythm") -> "Rhythm":
        """Without a part of it."""
        return Rhythm(*(whole - part for whole, part in zip(self, other, strict=True)))

    def plus(self, other: "Rhythm") -> "Rhythm":
        """With more load."""
        return Rhythm(*(whole + part for whole, part in zip(self, other, strict=True)))


def weight_by_slot(slot: Ints, weight: Ints, slots: int) -> Ints:
    """The sum of the weights in each slot. bincount adds floats: the sums stay far below 2**53, up
    to which floats are exact."""
    return np.bincount(slot, weights=weight, minlength=slots).astype(np.int64)
