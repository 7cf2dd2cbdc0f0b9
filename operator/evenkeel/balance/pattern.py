"""Which slots an interval hits, for each phase it could have.

Called by `place`, `search` and `starts`. A phase is the residue of a run's second modulo the
interval, counted from the picture's start. Phases that hit the same slots form a block: of an
interval of 90 minutes only six blocks differ, whatever the minute. Patterns go by elapsed time;
that a zone's day has 23 or 25 hours twice a year is left to the recount.
"""

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenkeel.model import SLOT_S

Ints = npt.NDArray[np.int64]

FINEST_BLOCK_S = 60
"""Finer blocks belong to intervals that are no whole minutes: too many to keep in a table."""

NEVER = np.iinfo(np.int64).max
"""More than any load: a phase that is not to be chosen."""

TABLES_KEPT = 256
"""Distinct intervals in use at a time; the largest table has 12,000 entries."""


class Burden(NamedTuple):
    """What the slots that each of several phases would hit carry already."""

    peak: Ints
    total: Ints


def block_of(every_s: int) -> int:
    """How wide the blocks of an interval are, in seconds."""
    return math.gcd(every_s, SLOT_S)


def has_table(every_s: int) -> bool:
    """Whether `table` may be asked for this interval."""
    return block_of(every_s) >= FINEST_BLOCK_S


@functools.lru_cache(maxsize=TABLES_KEPT)
def table(every_s: int, slots: int) -> Ints:
    """Column b: the slots that a phase of block b hits. Short columns end in `slots` itself."""
    width = block_of(every_s)
    return slots_hit(np.arange(0, every_s, width), every_s, slots)


@functools.lru_cache(maxsize=TABLES_KEPT)
def stamps(every_s: int, slots: int) -> Ints:
    """Row b: 1 in the slots that a phase of block b hits, 0 in all others and in the one more.

    Only for intervals of more than a slot, which hit none twice. Adding a row to a picture is
    several times as fast as adding to the slots it hits one by one.
    """
    columns = table(every_s, slots)
    made = np.zeros((columns.shape[1], slots + 1), np.int64)
    np.put_along_axis(made, columns.T, 1, axis=1)
    made[:, -1] = 0
    return made


def slots_hit(phases: Ints, every_s: int, slots: int) -> Ints:
    """As `table`, but one column for each of the given phases."""
    steps = np.arange(0, slots * SLOT_S, every_s)
    hit: Ints = np.minimum((phases + steps[:, None]) // SLOT_S, slots)
    return hit


def burden(picture: Ints, phases: Ints, every_s: int) -> Burden:
    """The load that each phase would meet. The picture ends in one slot more, which is empty."""
    slots = len(picture) - 1
    if every_s > slots * SLOT_S:
        folded = picture[phases // SLOT_S % slots]
        return Burden(folded, folded)
    if not has_table(every_s):
        return over_rows(picture[slots_hit(phases, every_s, slots)])
    peak, total = over_rows(picture[table(every_s, slots)])
    blocks = phases // block_of(every_s)
    return Burden(peak[blocks], total[blocks])


def met_by(picture: Ints, phase: int, every_s: int) -> Ints:
    """What the slots of one phase carry already."""
    slots = len(picture) - 1
    if every_s > slots * SLOT_S:
        hit = np.array([phase // SLOT_S % slots])
    elif has_table(every_s):
        hit = table(every_s, slots)[:, phase // block_of(every_s)]
    else:
        hit = slots_hit(np.array([phase]), every_s, slots)[:, 0]
    met: Ints = picture[hit]
    return met


def over_rows(met: npt.NDArray[np.integer]) -> Burden:
    """What each column of met loads amounts to."""
    return Burden(np.maximum.reduce(met), np.add.reduce(met))


def least(burdens: Burden) -> int:
    """The phase with the least (peak, total); the first of equals."""
    peak, total = burdens
    return int(np.where(peak == np.minimum.reduce(peak), total, NEVER).argmin())


def least_all(burdens: Burden) -> Ints:
    """Every phase that shares the least (peak, total)."""
    low = np.flatnonzero(burdens.peak == burdens.peak.min())
    totals = burdens.total[low]
    best: Ints = low[totals == totals.min()]
    return best


def runs_in_slot(every_s: int) -> int:
    """The most runs that one slot gets."""
    return -(-SLOT_S // every_s)
