"""Searches phases for many intervals at once, so that the slots have even loads.

`arrange` calls `best` once for intervals of more than a day, on the slots of a week, and once for
all others, on the slots of a day. The search is greedy in a given order, then local. All numbers
are whole, so the result is the same on every machine. The result is good, not the best that exists:
to find the best is bin packing, which takes too long.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.balance import pattern
from evenkeel.balance.day_load import Ints
from evenkeel.balance.nouns import Member
from evenkeel.balance.score import unevenness
from evenkeel.model import SLOT_S

SWEEPS_MAX = 12
"""Local search usually ends after 2 to 5 sweeps. With some weights it would go round for ever; this
ends it."""

CLOSE_ENOUGH = 1.001
"""Times the mean. A schedule whose busiest slot has less load than that is not moved: it would gain
next to nothing."""


@dataclass(slots=True, eq=False)
class Movable:
    """One schedule that may move: the possible first runs, and the slots that each would hit."""

    member: Member
    starts: Ints
    hits: Ints
    """Each column: the slots that one phase hits."""
    columns: Ints
    """The column of each start."""
    present: int
    """The column of the present phase."""
    hit_rows: Ints | None = None
    """The same slots as 1 and 0, one row for each column, to be added at once (`pattern.hit_rows`).
    None where each schedule would need a table of its own."""

    @property
    def every_s(self) -> int:
        """The interval."""
        return self.member.interval.every_s

    def start_in(self, column: int) -> int:
        """The earliest start whose phase belongs to the column."""
        return int(self.starts[int(np.flatnonzero(self.columns == column)[0])])


@dataclass(slots=True)
class Arrangement:
    """A column for each schedule, and the load of each slot that results, with one empty slot more
    at the end."""

    slot_loads: Ints
    columns: list[int]

    def rank(self) -> tuple[int, int]:
        """(peak, unevenness): less is better."""
        slots = self.slot_loads[:-1]
        return int(slots.max()), unevenness(slots)


def make_movable(member: Member, starts: Ints, present: int, *, origin: int, slots: int) -> Movable:
    """What the search needs of a schedule. `present` is the next run by the present phase, `origin`
    the start of the first slot."""
    every_s = member.interval.every_s
    phases = (starts - origin) % every_s
    old = (present - origin) % every_s
    if every_s <= slots * SLOT_S and pattern.has_hit_table(every_s):
        width = pattern.block_of(every_s)
        return Movable(
            member,
            starts,
            pattern.hit_table(every_s, slots),
            phases // width,
            old // width,
            pattern.hit_rows(every_s, slots),
        )
    both = np.append(phases, old)
    if every_s > slots * SLOT_S:
        hits = (both // SLOT_S % slots)[None, :]
    else:
        hits = pattern.slots_hit(both, every_s, slots)
    return Movable(member, starts, hits, np.arange(len(phases)), len(phases))


def unmoved(fixed_loads: Ints, movables: Sequence[Movable]) -> Arrangement:
    """Every schedule with its present phase. `fixed_loads` is the load of all that does not
    move."""
    found = Arrangement(fixed_loads.copy(), [movable.present for movable in movables])
    for movable in movables:
        _add(found.slot_loads, movable, movable.present, movable.member.weight)
    return found


def best(fixed_loads: Ints, movables: Sequence[Movable]) -> Arrangement:
    """The best of three arrangements (present phases, and two greedy ones), improved by local
    search, without the moves that gain nothing."""
    longest_first = sorted(
        range(len(movables)),
        key=lambda n: (-movables[n].every_s, -movables[n].member.weight, movables[n].member.key),
    )
    heaviest_first = sorted(
        range(len(movables)),
        key=lambda n: (-movables[n].member.weight, movables[n].every_s, movables[n].member.key),
    )
    present = unmoved(fixed_loads, movables)
    peak, uneven = present.rank()
    orders = (heaviest_first, longest_first)
    beginnings = [
        unmoved(fixed_loads, movables),
        *(greedy(fixed_loads, movables, order) for order in orders),
    ]
    for found in sorted(beginnings, key=Arrangement.rank):
        improve(found, movables)
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            undo_needless_moves(found, movables)
            return found
    return present  # a lower peak that makes the other slots less even is no improvement


def greedy(fixed_loads: Ints, movables: Sequence[Movable], order: Sequence[int]) -> Arrangement:
    """One schedule after another gets the phase with the least load, or keeps its phase if no other
    has less."""
    found = Arrangement(fixed_loads.copy(), [0] * len(movables))
    for n in order:
        movable = movables[n]
        column = _least(found.slot_loads, movable, movable.present)
        found.columns[n] = column
        _add(found.slot_loads, movable, column, movable.member.weight)
    return found


def improve(found: Arrangement, movables: Sequence[Movable]) -> None:
    """Local search: move one schedule at a time to a phase with less load, until none has one."""
    slot_loads = found.slot_loads
    even_enough = int(slot_loads.sum()) / (len(slot_loads) - 1) * CLOSE_ENOUGH
    for _ in range(SWEEPS_MAX):
        moved = False
        for n, movable in enumerate(movables):
            column = found.columns[n]
            if np.maximum.reduce(slot_loads[movable.hits[:, column]]) <= even_enough:
                continue
            _add(slot_loads, movable, column, -movable.member.weight)
            better = _least(slot_loads, movable, column)
            _add(slot_loads, movable, better, movable.member.weight)
            if better != column:
                found.columns[n] = better
                moved = True
        if not moved:
            return


def undo_needless_moves(found: Arrangement, movables: Sequence[Movable]) -> None:
    """Undo moves that gain nothing: a move changes the times of somebody's Jobs."""
    slot_loads = found.slot_loads
    peak, uneven = found.rank()
    for n, movable in enumerate(movables):
        column = found.columns[n]
        if column == movable.present:
            continue
        _add(slot_loads, movable, column, -movable.member.weight)
        _add(slot_loads, movable, movable.present, movable.member.weight)
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            found.columns[n] = movable.present
            peak, uneven = rank
            continue
        _add(slot_loads, movable, movable.present, -movable.member.weight)
        _add(slot_loads, movable, column, movable.member.weight)


def _least(slot_loads: Ints, movable: Movable, present: int) -> int:
    """The column with the least (peak, total); `present` where no column has less."""
    peaks, totals = pattern.peaks_and_totals(slot_loads[movable.hits])
    loads = pattern.PhaseLoads(peaks[movable.columns], totals[movable.columns])
    at = pattern.least_loaded(loads)
    if (peaks[present], totals[present]) <= (loads.peak[at], loads.total[at]):
        return present
    return int(movable.columns[at])


def _add(slot_loads: Ints, movable: Movable, column: int, weight: int) -> None:
    if movable.hit_rows is not None:
        slot_loads += movable.hit_rows[column] * weight
        return
    slot_loads[movable.hits[:, column]] += weight  # no slot twice: intervals here exceed a slot
    slot_loads[-1] = 0
