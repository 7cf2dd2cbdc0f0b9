"""Which slots the runs of an interval hit, for each phase that the interval could have.

`place`, `search` and `starts` call these functions. A phase is the due time of a run, in seconds
from the start of the first slot, modulo the interval. Phases that hit the same slots form a block:
an interval of 90 minutes has six blocks of 15 minutes. Slots are counted in elapsed time: days of
23 or 25 hours are ignored here, and only counting runs (`runs`) sees them.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.balance.day_load import MINUTE_S, SLOT_MINUTES, Ints, Seconds
from evenkeel.model import DAY_S, SLOT_S

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
    """Row b: how often a phase of block b hits each slot, and 0 at the end.

    Adding a row to the loads is several times faster than adding to one slot after another.
    """
    columns = hit_table(every_s, slots)
    made = np.zeros((columns.shape[1], slots + 1), np.int64)
    np.add.at(made, (np.arange(columns.shape[1])[None, :], columns), 1)
    made[:, -1] = 0
    return made


def slots_hit(phases: Ints, every_s: int, slots: int) -> Ints:
    """The same as `hit_table`, with one column for each of the given phases."""
    steps = np.arange(0, slots * SLOT_S, every_s)
    hit: Ints = np.minimum((phases + steps[:, None]) // SLOT_S, slots)
    return hit


def loads_of_phases(work: Ints, phases: Ints, every_s: int, lasts_s: int = 0) -> PhaseLoads:
    """The load of the slots that each phase would hit. The last of `work` is the empty slot."""
    slots = len(work) - 1
    high, total = while_it_runs(work, lasts_s)
    if every_s > slots * SLOT_S:
        at = phases // SLOT_S % slots
        return PhaseLoads(high[at], total[at])
    if not has_hit_table(every_s):
        hit = slots_hit(phases, every_s, slots)
        return PhaseLoads(np.maximum.reduce(high[hit]), np.add.reduce(total[hit]))
    hit = hit_table(every_s, slots)
    blocks = phases // block_of(every_s)
    return PhaseLoads(np.maximum.reduce(high[hit])[blocks], np.add.reduce(total[hit])[blocks])


def while_it_runs(work: Ints, lasts_s: int) -> PhaseLoads:
    """For a run that starts in the middle of each slot, the load of the slots in which it is
    expected to run: the highest, the sum. The day or the week repeats."""
    slots = len(work) - 1
    later = slots_later(lasts_s, slots)
    if not later:
        return PhaseLoads(work, work)
    width = later + 1
    ring = np.concatenate((work[:-1], work[:later]))
    sums = np.concatenate(([0], np.cumsum(ring)))
    high, span = ring, 1
    while span < width:  # twice as many slots in each round: a run may last hundreds of slots
        step = min(span, width - span)
        high = np.maximum(high[:-step], high[step:])
        span += step
    return PhaseLoads(np.append(high[:slots], 0), np.append(sums[width:] - sums[:-width], 0))


def slots_later(lasts_s: int, slots: int) -> int:
    """In how many slots after its first one a run runs that starts in the middle of a slot."""
    return min((SLOT_S // 2 + lasts_s) // SLOT_S, slots - 1) if lasts_s else 0


def work_of_starts(starts: Ints, weight: int, lasts_s: int) -> Ints:
    """The weight-minutes of runs, of which so many start in the middle of each slot. The last of
    `starts` is the empty slot."""
    work: Ints = starts * (weight * SLOT_MINUTES)
    later = slots_later(lasts_s, len(starts) - 1)
    if later:
        ring = starts[:-1]
        sums = np.concatenate(([0], np.cumsum(np.concatenate((ring[-later:], ring)))))
        at = np.arange(len(ring)) + later
        work[:-1] += (sums[at] - sums[at - later + 1]) * (weight * SLOT_MINUTES)
        rest = (SLOT_S // 2 + lasts_s) % SLOT_S // MINUTE_S
        work[:-1] += np.roll(ring, later) * (weight * rest)
    return work


def starts_by_minute(minutes: Ints, phases: Ints, every_s: int) -> PhaseLoads:
    """The starts in the minutes that each phase would hit. Phases are whole minutes."""
    count = len(minutes)
    if every_s > count * MINUTE_S:
        folded = minutes[phases // MINUTE_S % count]
        return PhaseLoads(folded, folded)
    if every_s % MINUTE_S:
        steps = np.arange(0, count * MINUTE_S, every_s)
        hit = np.minimum((phases + steps[:, None]) // MINUTE_S, count)
        return peaks_and_totals(np.append(minutes, 0)[hit])
    every = every_s // MINUTE_S
    rows = -(-count // every)
    filled = np.zeros(rows * every, np.int64)
    filled[:count] = minutes
    met = filled.reshape(rows, every)
    at = phases // MINUTE_S
    if len(at) * 4 < every:  # the minutes of one slot: the rest need not be looked at
        return peaks_and_totals(met[:, at])
    peak, total = peaks_and_totals(met)
    return PhaseLoads(peak[at], total[at])


def starts_by_second(seconds: Seconds, phases: Ints, every_s: int) -> PhaseLoads:
    """The starts in the seconds of the day that each phase would hit. The last of `seconds` is
    empty."""
    rows = DAY_S // every_s
    phases = phases % min(every_s, DAY_S)
    if not rows or rows * every_s != DAY_S:
        steps = np.arange(0, DAY_S, every_s)
        return peaks_and_totals(seconds[np.minimum(phases + steps[:, None], DAY_S)])
    met = seconds[:-1].reshape(rows, every_s)
    if phases[-1] - phases[0] == len(phases) - 1:
        return peaks_and_totals(met[:, phases[0] : phases[-1] + 1])
    return peaks_and_totals(met[:, phases])


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


def least(keys: Sequence[Ints]) -> int:
    """The place of the least entry by the first key, then by the second, and so on; the first of
    equal ones."""
    at = np.arange(len(keys[0]))
    for key in keys:
        values = key[at]
        at = at[values == values.min()]
    return int(at[0])


def runs_in(horizon_s: int, every_s: int) -> int:
    """How many runs the interval has in this time, on average; at least one."""
    return max(1, horizon_s // every_s)


def runs_in_slot(every_s: int) -> int:
    """The most runs that the interval has in one slot."""
    return -(-SLOT_S // every_s)
