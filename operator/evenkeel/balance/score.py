"""How even a picture is: one number in [0, 1], and what no arrangement could beat.

Pure functions on the slots of a day. All sums are whole numbers (times 192, so that halves and
means of 96 slots stay whole): equal pictures have equal scores, to the last bit. Says nothing
about which arrangement would reach the bound, nor whether one does.
"""

import math

import numpy as np
import numpy.typing as npt

Slots = npt.NDArray[np.int64]


def unevenness(slots: Slots) -> int:
    """The load that is in the wrong slot, times twice the number of slots, which keeps it whole."""
    total = int(slots.sum())
    return int(np.abs(slots * len(slots) - total).sum())


def distribution_score(slots: Slots, runs_by_weight: Slots) -> float:
    """1 - (D - Dmin) / (Dmax - Dmin), D the unevenness; 1 when nothing could be more even."""
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
    """The busiest slot in units of the mean; 1 when there is no load at all."""
    total = int(slots.sum())
    return int(slots.max()) * len(slots) / total if total else 1.0


def peak_bound(count: int, runs_by_weight: Slots) -> float:
    """The least peak_to_mean of these runs: the mean in whole units, or the heaviest run."""
    weights = np.flatnonzero(runs_by_weight)
    if not len(weights):
        return 1.0
    total = int((weights * runs_by_weight[weights]).sum())
    unit = math.gcd(*weights.tolist())
    mean_in_units = -(-total // (unit * count)) * unit
    return max(mean_in_units, int(weights[-1])) * count / total
