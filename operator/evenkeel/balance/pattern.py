"""Which slots the runs of an interval hit, for each phase that the interval could have.

`place`, `search` and `starts` call these functions. A phase is the due time of a run, in seconds
from the start of the first slot, modulo the interval. Phases that hit the same slots form a block:
an interval of 90 minutes has six blocks of 15 minutes. Slots are counted in elapsed time: days of
23 or 25 hours are ignored here, and only counting runs (`runs`) sees them.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.model import SLOT_S

Ints = npt.NDArray[np.int64]

FINEST_BLOCK_S = 60
"""An interval that is no whole number of minutes has narrower blocks: too many for a table."""

EXCLUDED = np.iinfo(np.int64).max
"""More than any load: the value of a phase that must not be chosen."""

TABLES_KEPT = 256
"""Tables are kept for so many intervals; the largest table has 12,000 entries."""


class PhaseLoads(NamedTuple):
    """For each of several phases, the load of the slots that it would hit: the highest, the sum."""

    peak: Ints
    total: Ints


def block_of(every_s: int) -> int:
    """The width of the blocks of an interval, in seconds."""
    return math.gcd(every_s, SLOT_S)


def has_hit_table(every_s: int) -> bool:
    """Whether `hit_table` may be called for this interval."""
    return block_of(every_s) >= FINEST_BLOCK_S


@functools.lru_cache(maxsize=TABLES_KEPT)
def hit_table(every_s: int, slots: int) -> Ints:
    """Column b: the slots that a phase of block b hits. Shorter columns are filled up with `slots`,
    the number of the empty slot after the last."""
    width = block_of(every_s)
    return slots_hit(np.arange(0, every_s, width), every_s, slots)


@functools.lru_cache(maxsize=TABLES_KEPT)
def hit_rows(every_s: int, slots: int) -> Ints:
    """Row b: 1 for each slot that a phase of block b hits, 0 for all others and at the end.

    Only for intervals of more than a slot, which hit no slot twice. Adding a row to the loads is
    several times faster than adding to one slot after another.
    """
    columns = hit_table(every_s, slots)
    made = np.zeros((columns.shape[1], slots + 1), np.int64)
    np.put_along_axis(made, columns.T, 1, axis=1)
    made[:, -1] = 0
    return made


def slots_hit(phases: Ints, every_s: int, slots: int) -> Ints:
    """The same as `hit_table`, with one column for each of the given phases."""
    steps = np.arange(0, slots * SLOT_S, every_s)
    hit: Ints = np.minimum((phases + steps[:, None]) // SLOT_S, slots)
    return hit


def loads_of_phases(slot_loads: Ints, phases: Ints, every_s: int) -> PhaseLoads:
    """The load of the slots that each phase would hit. The last of `slot_loads` is the empty
    slot."""
    slots = len(slot_loads) - 1
    if every_s > slots * SLOT_S:
        folded = slot_loads[phases // SLOT_S % slots]
        return PhaseLoads(folded, folded)
    if not has_hit_table(every_s):
        return peaks_and_totals(slot_loads[slots_hit(phases, every_s, slots)])
    peak, total = peaks_and_totals(slot_loads[hit_table(every_s, slots)])
    blocks = phases // block_of(every_s)
    return PhaseLoads(peak[blocks], total[blocks])


def slot_loads_of(slot_loads: Ints, phase: int, every_s: int) -> Ints:
    """The load of each slot that one phase hits."""
    slots = len(slot_loads) - 1
    if every_s > slots * SLOT_S:
        hit = np.array([phase // SLOT_S % slots])
    elif has_hit_table(every_s):
        hit = hit_table(every_s, slots)[:, phase // block_of(every_s)]
    else:
        hit = slots_hit(np.array([phase]), every_s, slots)[:, 0]
    loads: Ints = slot_loads[hit]
    return loads


def peaks_and_totals(loads: npt.NDArray[np.integer]) -> PhaseLoads:
    """The highest value and the sum of each column."""
    return PhaseLoads(np.maximum.reduce(loads), np.add.reduce(loads))


def least_loaded(loads: PhaseLoads) -> int:
    """The place of the phase with the least (peak, total); the first of equal ones."""
    peak, total = loads
    return int(np.where(peak == np.minimum.reduce(peak), total, EXCLUDED).argmin())


def all_least_loaded(loads: PhaseLoads) -> Ints:
    """The places of all phases with the least (peak, total)."""
    low = np.flatnonzero(loads.peak == loads.peak.min())
    totals = loads.total[low]
    best: Ints = low[totals == totals.min()]
    return best


def runs_in_slot(every_s: int) -> int:
    """The most runs that the interval has in one slot."""
    return -(-SLOT_S // every_s)
