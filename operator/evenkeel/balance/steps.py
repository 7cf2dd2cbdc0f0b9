"""Orders the groups of fixed schedules that could become intervals, most useful first.

`evenkeel advise` calls `ordered`. Only starts and weights are counted here, without placing
anything: what is no longer fixed is taken to be spread evenly, which is the least that any
placement can reach. So the order is found in milliseconds; what a step really reaches, the caller
finds out by placing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenkeel.balance.convert import Conversion
from evenkeel.balance.day_load import Ints
from evenkeel.balance.measures import by_minute
from evenkeel.balance.nouns import DAY_SLOTS, Member
from evenkeel.balance.runs import Members
from evenkeel.model import DAY_S, SLOT_S, Instant


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The fixed schedules of one written pattern, which would become the same interval."""

    pattern: str
    conversion: Conversion
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A group, and what at best is left when it and all groups before it are converted."""

    group: Group
    minute: int
    """The starts of the busiest minute."""
    slot: int
    """The load of the busiest slot."""
    helps: bool
    """Whether the fixed starts that are left are more even than before. `* * * * *` does not help:
    it runs in every minute, as an interval too."""


@dataclass(frozen=True, slots=True, eq=False)
class _Counted:
    minutes: Ints
    slots: Ints


def ordered(groups: Sequence[Group], others: Sequence[Member], start: Instant) -> list[Ranked]:
    """All groups, each the best next one after those before it. `others` are the fixed schedules
    that stay; `start` is the start of the day that is looked at, and of a slot."""
    counted = {number: _count(group.members, start) for number, group in enumerate(groups)}
    fixed = _count(others, start)
    minutes = fixed.minutes + sum(each.minutes for each in counted.values())
    slots = fixed.slots + sum(each.slots for each in counted.values())
    mean_minute = -(-int(minutes.sum()) // len(minutes))
    mean_slot = -(-int(slots.sum()) // len(slots))
    found: list[Ranked] = []

    def left_without(number: int) -> tuple[bool, int, int, int, int, str]:
        rest = minutes - counted[number].minutes
        rest_slots = slots - counted[number].slots
        helps = uneven(rest) < uneven(minutes) or uneven(rest_slots) < uneven(slots)
        return (
            not helps,
            max(mean_minute, int(rest.max())),
            max(mean_slot, int(rest_slots.max())),
            uneven(rest),  # equal peaks: the step that takes most from crowds
            uneven(rest_slots),
            groups[number].pattern,
        )

    while counted:
        best = min(counted, key=left_without)
        useless, minute, slot, *_ = left_without(best)
        gone = counted.pop(best)
        minutes, slots = minutes - gone.minutes, slots - gone.slots
        found.append(Ranked(groups[best], minute, slot, not useless))
    return found


def uneven(counts: Ints) -> int:
    """The variance of the counts, times the square of their number: a whole number."""
    return len(counts) * int((counts * counts).sum()) - int(counts.sum()) ** 2


def _count(members: Sequence[Member], start: Instant) -> _Counted:
    prepared = Members(members)
    seconds: Ints = np.zeros(DAY_S, np.int64)
    slots: Ints = np.zeros(DAY_SLOTS, np.int64)
    for second, ordinal in prepared.runs(start, start + DAY_S):
        seconds += np.bincount(second, minlength=DAY_S)
        np.add.at(slots, second // SLOT_S, prepared.weight[ordinal])
    return _Counted(by_minute(seconds), slots)
