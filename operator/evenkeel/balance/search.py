"""The search behind a rebalance: many phases chosen anew so that the slots come out even.

Called by `arrange`, once for intervals of more than a day on the picture of a week and once for
all others on the picture of a day. Greedy in a given order, then local search; every step is whole
numbers, so the outcome is the same on every machine. Finds good arrangements, not the best one:
that is bin packing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.balance import pattern
from evenkeel.balance.nouns import Member
from evenkeel.balance.picture import Ints
from evenkeel.balance.score import unevenness
from evenkeel.model import SLOT_S

SWEEPS_MAX = 12
"""Local search comes to rest after 2 to 5 sweeps; this ends it where weights make it go round."""

CLOSE_ENOUGH = 1.001
"""A schedule whose busiest slot is within a thousandth of the mean has nothing to gain."""


@dataclass(slots=True, eq=False)
class Item:
    """One schedule that may move: the starts it may choose from and what each would hit."""

    member: Member
    starts: Ints
    hits: Ints
    """Each column: the slots that one phase hits."""
    columns: Ints
    """The column of each start."""
    today: int
    """The column of the phase it has."""
    stamps: Ints | None = None
    """As `hits`, to be added to a picture at once; only where a table is shared."""

    @property
    def every_s(self) -> int:
        """Its interval."""
        return self.member.interval.every_s

    def start_in(self, column: int) -> int:
        """The earliest start of a column."""
        return int(self.starts[int(np.flatnonzero(self.columns == column)[0])])


@dataclass(slots=True)
class Arrangement:
    """A choice of columns, and the picture that it makes (one empty slot more at its end)."""

    picture: Ints
    columns: list[int]

    def rank(self) -> tuple[int, int]:
        """Less is better: the peak, then how much load is in the wrong slot."""
        slots = self.picture[:-1]
        return int(slots.max()), unevenness(slots)


def item(member: Member, starts: Ints, today: int, *, origin: int, slots: int) -> Item:
    """An item; `today` is its next run by the phase it has, `origin` the picture's start."""
    every_s = member.interval.every_s
    phases = (starts - origin) % every_s
    old = (today - origin) % every_s
    if every_s <= slots * SLOT_S and pattern.has_table(every_s):
        width = pattern.block_of(every_s)
        return Item(
            member,
            starts,
            pattern.table(every_s, slots),
            phases // width,
            old // width,
            pattern.stamps(every_s, slots),
        )
    both = np.append(phases, old)
    if every_s > slots * SLOT_S:
        hits = (both // SLOT_S % slots)[None, :]
    else:
        hits = pattern.slots_hit(both, every_s, slots)
    return Item(member, starts, hits, np.arange(len(phases)), len(phases))


def as_today(base: Ints, items: Sequence[Item]) -> Arrangement:
    """Nothing moved. `base` is the picture without the items."""
    found = Arrangement(base.copy(), [one.today for one in items])
    for one in items:
        _add(found.picture, one, one.today, one.member.weight)
    return found


def best(base: Ints, items: Sequence[Item]) -> Arrangement:
    """The best of three beginnings, improved until nothing moves, with needless moves undone."""
    longest_first = sorted(
        range(len(items)),
        key=lambda n: (-items[n].every_s, -items[n].member.weight, items[n].member.key),
    )
    heaviest_first = sorted(
        range(len(items)),
        key=lambda n: (-items[n].member.weight, items[n].every_s, items[n].member.key),
    )
    today = as_today(base, items)
    peak, uneven = today.rank()
    orders = (heaviest_first, longest_first)
    beginnings = [as_today(base, items), *(greedy(base, items, order) for order in orders)]
    for found in sorted(beginnings, key=Arrangement.rank):
        improve(found, items)
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            stay_where_possible(found, items)
            return found
    return today  # a lower peak can leave the rest less even: not at that price


def greedy(base: Ints, items: Sequence[Item], order: Sequence[int]) -> Arrangement:
    """Each in turn where it meets the least; where it is, if that is as good."""
    found = Arrangement(base.copy(), [0] * len(items))
    for n in order:
        one = items[n]
        column = _least(found.picture, one, one.today)
        found.columns[n] = column
        _add(found.picture, one, column, one.member.weight)
    return found


def improve(found: Arrangement, items: Sequence[Item]) -> None:
    """Move one schedule at a time to where it meets less, until none does."""
    picture = found.picture
    calm = int(picture.sum()) / (len(picture) - 1) * CLOSE_ENOUGH
    for _ in range(SWEEPS_MAX):
        moved = False
        for n, one in enumerate(items):
            column = found.columns[n]
            if np.maximum.reduce(picture[one.hits[:, column]]) <= calm:
                continue
            _add(picture, one, column, -one.member.weight)
            better = _least(picture, one, column)
            _add(picture, one, better, one.member.weight)
            if better != column:
                found.columns[n] = better
                moved = True
        if not moved:
            return


def stay_where_possible(found: Arrangement, items: Sequence[Item]) -> None:
    """Undo moves that gain nothing: every move changes when somebody's work is done."""
    picture = found.picture
    peak, uneven = found.rank()
    for n, one in enumerate(items):
        column = found.columns[n]
        if column == one.today:
            continue
        _add(picture, one, column, -one.member.weight)
        _add(picture, one, one.today, one.member.weight)
        rank = found.rank()
        if rank[0] <= peak and rank[1] <= uneven:
            found.columns[n] = one.today
            peak, uneven = rank
            continue
        _add(picture, one, one.today, -one.member.weight)
        _add(picture, one, column, one.member.weight)


def _least(picture: Ints, one: Item, present: int) -> int:
    """The column with the least (peak, total); `present` where none is better."""
    peaks, totals = pattern.over_rows(picture[one.hits])
    met = pattern.Burden(peaks[one.columns], totals[one.columns])
    at = pattern.least(met)
    if (peaks[present], totals[present]) <= (met.peak[at], met.total[at]):
        return present
    return int(one.columns[at])


def _add(picture: Ints, one: Item, column: int, weight: int) -> None:
    if one.stamps is not None:
        picture += one.stamps[column] * weight
        return
    picture[one.hits[:, column]] += weight  # each slot at most once: items are longer than a slot
    picture[-1] = 0
