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
    slots: int
    hit_rows: Ints | None = None
    """How often each column hits each slot, one row for each column (`pattern.hit_rows`). None
    where each schedule would need a table of its own."""

    @property
    def every_s(self) -> int:
        """The interval."""
        return self.member.interval.every_s

    def work_in(self, column: int) -> Ints:
        """The weight-minutes that it adds to each slot with the phase of this column."""
        if self.hit_rows is not None:
            starts = self.hit_rows[column]
        else:
            starts = np.zeros(self.slots + 1, np.int64)
            np.add.at(starts, self.hits[:, column], 1)
            starts[-1] = 0
        return pattern.work_of_starts(starts, self.member.weight, self.member.lasts_s)

    def loads(self, work: Ints) -> pattern.PhaseLoads:
        """The load of the slots that each column hits."""
        high, total = pattern.while_it_runs(work, self.member.lasts_s)
        return pattern.PhaseLoads(
            np.maximum.reduce(high[self.hits]), np.add.reduce(total[self.hits])
        )

    def start_in(self, column: int) -> int:
        """The earliest start whose phase belongs to the column."""
        return int(self.starts[int(np.flatnonzero(self.columns == column)[0])])


@dataclass(slots=True)
class Arrangement:
    """A column for each schedule, and the weight-minutes of each slot that result, with one empty
    slot more at the end."""

    work: Ints
    columns: list[int]

    def rank(self) -> tuple[int, int]:
        """(peak, unevenness): less is better."""
        work = self.work[:-1]
        return int(work.max()), unevenness(work)


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
            slots,
            pattern.hit_rows(every_s, slots),
        )
    both = np.append(phases, old)
    if every_s > slots * SLOT_S:
        hits = (both // SLOT_S % slots)[None, :]
    else:
        hits = pattern.slots_hit(both, every_s, slots)
    return Movable(member, starts, hits, np.arange(len(phases)), len(phases), slots)


def unmoved(others: Ints, movables: Sequence[Movable]) -> Arrangement:
    """Every schedule with its present phase. `others` is the work of all that does not move."""
    found = Arrangement(others.copy(), [movable.present for movable in movables])
    for movable in movables:
        found.work += movable.work_in(movable.present)
    return found


def best(others: Ints, movables: Sequence[Movable]) -> Arrangement:
    """The best of four arrangements (present phases, and three greedy ones), improved by local
    search, without the moves that gain nothing."""
    numbers = range(len(movables))

    def longest_first(n: int) -> tuple[int, int, str]:
        member = movables[n].member
        return -movables[n].every_s, -member.weight, member.key

    def heaviest_first(n: int) -> tuple[int, int, str]:
        member = movables[n].member
        return -member.weight, movables[n].every_s, member.key

    def shortest_first(n: int) -> tuple[int, int, str]:
        member = movables[n].member
        return movables[n].every_s, -member.weight, member.key

    present = unmoved(others, movables)
    peak, uneven = present.rank()
    beginnings = [
        unmoved(others, movables),
        *(
            greedy(others, movables, sorted(numbers, key=order))
            for order in (heaviest_first, longest_first, shortest_first)
        ),
    ]
    for found in sorted(beginnings, key=Arrangement.rank):
        improve(found, movables)
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            undo_needless_moves(found, movables)
            return found
    return present  # a lower peak that makes the other slots less even is no improvement


def greedy(others: Ints, movables: Sequence[Movable], order: Sequence[int]) -> Arrangement:
    """One schedule after another gets the phase with the least load, or keeps its phase if no other
    has less."""
    found = Arrangement(others.copy(), [0] * len(movables))
    for n in order:
        movable = movables[n]
        column = _least(found.work, movable, movable.present)
        found.columns[n] = column
        found.work += movable.work_in(column)
    return found


def improve(found: Arrangement, movables: Sequence[Movable]) -> None:
    """Local search: move one schedule at a time to a phase with less load, until none has one."""
    work = found.work
    even_enough = int(work.sum()) / (len(work) - 1) * CLOSE_ENOUGH
    for _ in range(SWEEPS_MAX):
        moved = False
        for n, movable in enumerate(movables):
            column = found.columns[n]
            high = pattern.while_it_runs(work, movable.member.lasts_s).peak
            if np.maximum.reduce(high[movable.hits[:, column]]) <= even_enough:
                continue
            work -= movable.work_in(column)
            better = _least(work, movable, column)
            work += movable.work_in(better)
            if better != column:
                found.columns[n] = better
                moved = True
        if not moved:
            return


def undo_needless_moves(found: Arrangement, movables: Sequence[Movable]) -> None:
    """Undo moves that gain nothing: a move changes the times of somebody's Jobs."""
    work = found.work
    peak, uneven = found.rank()
    for n, movable in enumerate(movables):
        column = found.columns[n]
        if column == movable.present:
            continue
        change = movable.work_in(movable.present) - movable.work_in(column)
        work += change
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            found.columns[n] = movable.present
            peak, uneven = rank
        else:
            work -= change


def _least(work: Ints, movable: Movable, present: int) -> int:
    """The column with the least (peak, total); `present` where no column has less."""
    peaks, totals = movable.loads(work)
    loads = pattern.PhaseLoads(peaks[movable.columns], totals[movable.columns])
    at = pattern.least_loaded(loads)
    if (peaks[present], totals[present]) <= (loads.peak[at], loads.total[at]):
        return present
    return int(movable.columns[at])
