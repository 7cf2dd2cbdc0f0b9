"""The load of 24 hours as numpy arrays: by slot, by weight and by second.

`LoadMap` holds one `DayLoad` and adds and removes runs; a rebalance tries its moves on a copy. The
arrays begin at the start of the current slot. This module knows no schedules: a caller that added
runs must remove exactly the same runs, or the sums stay wrong.
"""

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.model import DAY_S, SLOT_S

Ints = npt.NDArray[np.int64]

WEIGHT_MAX = 1000


class DayLoad:
    """Sums over the runs of a day. `seconds` has one entry more than a day has seconds. The last
    entry stays 0: index arrays of equal length point there where a shorter one has ended."""

    __slots__ = ("runs_by_weight", "seconds", "slots")

    def __init__(self) -> None:
        self.slots: Ints = np.zeros(DAY_SLOTS, np.int64)
        """Weight of the runs in each slot."""
        self.runs_by_weight: Ints = np.zeros(WEIGHT_MAX + 1, np.int64)
        self.seconds: npt.NDArray[np.int32] = np.zeros(DAY_S + 1, np.int32)
        """Runs in each second. Weights do not count here: what a second must bear is starts."""

    def copy(self) -> Self:
        """An independent copy."""
        made = copy.copy(self)
        made.slots = self.slots.copy()
        made.runs_by_weight = self.runs_by_weight.copy()
        made.seconds = self.seconds.copy()
        return made

    def add(self, second: Ints, weight: int, *, sign: int = 1) -> None:
        """Add the runs of one schedule, or remove them with sign -1. No second may occur twice."""
        slots = second // SLOT_S
        if len(second) <= DAY_SLOTS:
            np.add.at(self.slots, slots, sign * weight)
        else:
            self.slots += np.bincount(slots, minlength=DAY_SLOTS) * (sign * weight)
        self.seconds[second] += sign
        self.runs_by_weight[weight] += sign * len(second)

    def add_all(self, second: Ints, weight: Ints, *, sign: int = 1) -> None:
        """Add the runs of many schedules at once, or remove them. `weight` has one entry a run."""
        self.slots += sign * weight_by_slot(second // SLOT_S, weight, DAY_SLOTS)
        counted = np.bincount(second, minlength=DAY_S + 1).astype(np.int32)
        self.seconds += sign * counted
        self.runs_by_weight += sign * np.bincount(weight, minlength=WEIGHT_MAX + 1)

    def drop_first(self, slots: int) -> None:
        """Start so many slots later. The caller has removed the runs of these slots before."""
        self.slots = shifted(self.slots, slots)
        self.seconds[: -1 - slots * SLOT_S] = self.seconds[slots * SLOT_S : -1]
        self.seconds[-1 - slots * SLOT_S :] = 0


def weight_by_slot(slot: Ints, weight: Ints, slots: int) -> Ints:
    """The sum of the weights in each slot. bincount adds floats: the sums stay far below 2**53, up
    to which floats are exact."""
    return np.bincount(slot, weights=weight, minlength=slots).astype(np.int64)


def shifted(values: Ints, steps: int) -> Ints:
    """The values without the first `steps` of them, and as many zeros at the end."""
    return np.concatenate((values[steps:], np.zeros(steps, np.int64)))
