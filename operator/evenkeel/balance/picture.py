"""The load of 24 hours as numbers: by slot, by weight, by second.

`LoadMap` keeps one and says which runs come and go; a rebalance copies it to try moves on. The
arrays begin at the start of the current slot. Knows nothing of schedules: whoever adds runs must
take exactly the same ones away again.
"""

import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.model import DAY_S, SLOT_S

Ints = npt.NDArray[np.int64]

WEIGHT_MAX = 1000


class DayPicture:
    """Sums over the runs of a day. One second more than a day has, always empty, lets patterns
    that end early point somewhere."""

    __slots__ = ("runs_by_weight", "seconds", "slots")

    def __init__(self) -> None:
        self.slots: Ints = np.zeros(DAY_SLOTS, np.int64)
        """Weight of the runs in each slot."""
        self.runs_by_weight: Ints = np.zeros(WEIGHT_MAX + 1, np.int64)
        self.seconds: npt.NDArray[np.int32] = np.zeros(DAY_S + 1, np.int32)
        """Runs in each second, whatever their weight: a herd is a matter of starts."""

    def copy(self) -> Self:
        """An independent picture, to try moves on."""
        made = copy.copy(self)
        made.slots = self.slots.copy()
        made.runs_by_weight = self.runs_by_weight.copy()
        made.seconds = self.seconds.copy()
        return made

    def add(self, second: Ints, weight: int, *, sign: int = 1) -> None:
        """One schedule's runs of the day; no second comes twice."""
        slots = second // SLOT_S
        if len(second) <= DAY_SLOTS:
            np.add.at(self.slots, slots, sign * weight)
        else:
            self.slots += np.bincount(slots, minlength=DAY_SLOTS) * (sign * weight)
        self.seconds[second] += sign
        self.runs_by_weight[weight] += sign * len(second)

    def add_all(self, second: Ints, weight: Ints, *, sign: int = 1) -> None:
        """Many schedules' runs at once, each with its weight."""
        self.slots += sign * weighed(second // SLOT_S, weight, DAY_SLOTS)
        counted = np.bincount(second, minlength=DAY_S + 1).astype(np.int32)
        self.seconds += sign * counted
        self.runs_by_weight += sign * np.bincount(weight, minlength=WEIGHT_MAX + 1)

    def leave(self, slots: int) -> None:
        """Move the start on. The runs of the slots left behind must be gone already."""
        self.slots = moved_on(self.slots, slots)
        self.seconds[: -1 - slots * SLOT_S] = self.seconds[slots * SLOT_S : -1]
        self.seconds[-1 - slots * SLOT_S :] = 0


def weighed(slot: Ints, weight: Ints, slots: int) -> Ints:
    """The weight in each slot. Sums stay far below 2**53, where floats count exactly."""
    return np.bincount(slot, weights=weight, minlength=slots).astype(np.int64)


def moved_on(values: Ints, steps: int) -> Ints:
    """Without its first `steps` values, and as many zeros at the end."""
    return np.concatenate((values[steps:], np.zeros(steps, np.int64)))
