"""Measures how even the load of a day is: a score in [0, 1], peak/mean, and bounds for both.

Pure functions of the load of each slot. Sums are whole numbers, multiplied by 192 so that halves
and the mean of 96 slots are whole numbers too: equal loads have exactly equal scores. The bounds
hold for every arrangement; an arrangement that reaches them need not exist.
"""

import math

import numpy as np
import numpy.typing as npt

Slots = npt.NDArray[np.int64]


def unevenness(slots: Slots) -> int:
    """Half the sum of |load - mean|, times twice the number of slots, which makes it a whole
    number."""
    total = int(slots.sum())
    return int(np.abs(slots * len(slots) - total).sum())


def distribution_score(slots: Slots, runs_by_weight: Slots) -> float:
    """1 - (D - Dmin) / (Dmax - Dmin), where D is the unevenness; 1 where Dmax = Dmin."""
    count = len(slots)
    total = int(slots.sum())
    least = least_unevenness(count, total, runs_by_weight)
    most = 2 * total * (count - 1)
    if most <= least:
        return 1.0
    return min(1.0, max(0.0, 1 - (unevenness(slots) - least) / (most - least)))


def least_unevenness(count: int, total: int, runs_by_weight: Slots) -> int:
    """A lower bound of `unevenness`; runs_by_weight[w] is how many runs weigh w."""
    weights = np.flatnonzero(runs_by_weight)
    if not len(weights):
        return 0
    runs = int(runs_by_weight.sum())
    empty_slots = 2 * max(0, count - runs) * total
    above_mean = np.maximum(0, weights * count - total)
    heavy_runs = 2 * int((above_mean * runs_by_weight[weights]).sum())
    unit = math.gcd(*weights.tolist())
    odd = total // unit % count
    return max(empty_slots, heavy_runs, 2 * unit * odd * (count - odd))


def peak_to_mean(slots: Slots) -> float:
    """The load of the busiest slot divided by the mean load; 1 when there is no load."""
    total = int(slots.sum())
    return int(slots.max()) * len(slots) / total if total else 1.0


def peak_bound(count: int, runs_by_weight: Slots) -> float:
    """A lower bound of `peak_to_mean` for these runs. The busiest slot holds at least the mean,
    rounded up to a sum that these weights can have, and at least the heaviest run."""
    weights = np.flatnonzero(runs_by_weight)
    if not len(weights):
        return 1.0
    total = int((weights * runs_by_weight[weights]).sum())
    unit = math.gcd(*weights.tolist())
    mean_in_units = -(-total // (unit * count)) * unit
    return max(mean_in_units, int(weights[-1])) * count / total
