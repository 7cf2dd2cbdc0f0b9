"""The load by slot of all schedules, kept up to date one schedule at a time.

The scheduler holds one `LoadMap` and tells it which schedules come, change, rest and go; `place`
and `plan_rebalance` look at it. Everything in it is a sum over whole runs, so it equals a recount
from scratch at any time (a property test says so), in whatever order schedules came.

Two pictures: the 24 hours from the start of the current slot, and, once an interval of more than
a day is placed, the same for 7 days. Not thread-safe; knows no clock: `advance` brings the time.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from evenkeel.balance.nouns import (
    DAY_SLOTS,
    SLOT_S,
    WEEK_S,
    WEEK_SLOTS,
    Distribution,
    Member,
)
from evenkeel.balance.picture import DayPicture, Ints, moved_on, weighed
from evenkeel.balance.report import describe
from evenkeel.balance.runs import (
    base_of,
    batches,
    dues_of,
    runs_of,
    runs_of_all,
    waits_longer,
)
from evenkeel.model import DAY_S, Instant, Interval


class LoadMap:
    """Who is there, and how much runs when."""

    def __init__(self, now: Instant) -> None:
        self.start: Instant = now // SLOT_S * SLOT_S
        self.version = 0
        """Grows with every change of a member or of the start; equal means nothing happened."""
        self.picture = DayPicture()
        self._members: dict[str, Member] = {}
        self._week: Ints | None = None
        self._folded: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._unseen: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._described: tuple[int, Distribution] | None = None

    @property
    def members(self) -> Mapping[str, Member]:
        """Every schedule by its key, those that do not count included."""
        return MappingProxyType(self._members)

    def advance(self, now: Instant) -> None:
        """Move the start on to the current slot: passed runs go, runs that come into view come."""
        start = now // SLOT_S * SLOT_S
        if start == self.start:
            return
        if not self.start < start < self.start + DAY_S:
            self._recount(start)  # a long pause, or a clock that was set back
            return
        steps = (start - self.start) // SLOT_S
        counting = self._counting()
        for batch in batches(counting):
            self._add_day(batch, self.start, start, sign=-1)
        self.picture.leave(steps)
        if self._week is not None:
            self._week = moved_on(self._week, steps)
        passed, self.start = self.start, start
        self.version += 1
        for batch in batches(counting):
            self._add_day(batch, passed + DAY_S, start + DAY_S)
            self._add_week(batch, passed + WEEK_S, start + WEEK_S)
        self._recount_marks(counting)

    def put(self, member: Member) -> None:
        """A schedule came, changed, was placed, suspended or resumed."""
        known = self._members.get(member.key)
        if known == member:
            return
        if known is not None:
            self.drop(member.key)
        self._members[member.key] = member
        self.version += 1
        if member.counts:
            self._add_one(member, sign=1)

    def put_all(self, members: Iterable[Member]) -> None:
        """As `put` for each, but ten times as fast: for the start of the operator."""
        given = {member.key: member for member in members}
        for key in given:
            self.drop(key)
        self._members.update(given)
        self.version += 1
        counting = [member for member in given.values() if member.counts]
        for batch in batches(counting):
            self._add_day(batch, self.start, self.start + DAY_S)
            self._add_week(batch, self.start, self.start + WEEK_S)
        for member in counting:
            self._mark(member, sign=1)

    def drop(self, key: str) -> None:
        """A schedule is gone; the gap that it leaves stays. Unknown keys are nothing new."""
        member = self._members.pop(key, None)
        if member is None:
            return
        self.version += 1
        if member.counts:
            self._add_one(member, sign=-1)

    def distribution(self, now: Instant, *, rebalanced: Distribution | None = None) -> Distribution:
        """The picture for people. `rebalanced` is what a plan projects, for the suggestion;
        without one the suggestion goes by what no plan could beat."""
        self.advance(now)
        if rebalanced is not None:
            return describe(self._members.values(), self.picture, self.start, rebalanced)
        if self._described is None or self._described[0] != self.version:
            found = describe(self._members.values(), self.picture, self.start)
            self._described = (self.version, found)
        return self._described[1]

    def rhythm_day(self) -> Ints:
        """The day's slots for looking at phases: what its rhythm will bring is there as well.

        A daily schedule placed at 10:07 for 10:05 tomorrow has no run in today's picture, yet its
        place is taken; without this everything placed within a slot would herd into it. One slot
        more than the day has, empty, for patterns to point at.
        """
        return np.concatenate((self.picture.slots + self._unseen[:DAY_SLOTS], [0]))

    def rhythm_week(self) -> Ints:
        """As `rhythm_day` for 7 days, and rarer intervals folded into them."""
        if self._week is None:
            self._week = np.zeros(WEEK_SLOTS, np.int64)
            for batch in batches(self._counting()):
                self._add_week(batch, self.start, self.start + WEEK_S)
        return np.concatenate((self._week + self._unseen + self._folded, [0]))

    # --- sums ---------------------------------------------------------------------------------

    def _counting(self) -> list[Member]:
        return [member for member in self._members.values() if member.counts]

    def _recount(self, start: Instant) -> None:
        self.start = start
        self.version += 1
        self.picture = DayPicture()
        self._week = None
        counting = self._counting()
        for batch in batches(counting):
            self._add_day(batch, start, start + DAY_S)
        self._recount_marks(counting)

    def _add_one(self, member: Member, *, sign: int) -> None:
        self.picture.add(runs_of(member, self.start, self.start + DAY_S), member.weight, sign=sign)
        if self._week is not None:
            second = runs_of(member, self.start, self.start + WEEK_S)
            self._week += np.bincount(second // SLOT_S, minlength=WEEK_SLOTS) * (
                sign * member.weight
            )
        self._mark(member, sign=sign)

    def _add_day(self, members: list[Member], a: Instant, b: Instant, *, sign: int = 1) -> None:
        second, ordinal = runs_of_all(members, a, b)
        weight = _weights(members)[ordinal]
        self.picture.add_all(second + (a - self.start), weight, sign=sign)

    def _add_week(self, members: list[Member], a: Instant, b: Instant) -> None:
        if self._week is None:
            return
        second, ordinal = runs_of_all(members, a, b)
        weight = _weights(members)[ordinal]
        self._week += weighed((second + (a - self.start)) // SLOT_S, weight, WEEK_SLOTS)

    def _recount_marks(self, counting: list[Member]) -> None:
        self._unseen[:] = 0
        self._folded[:] = 0
        for member in counting:
            self._mark(member, sign=1)

    def _mark(self, member: Member, *, sign: int) -> None:
        """What the rhythm says beyond the runs of the two pictures."""
        if (at := unseen_at(member, self.start)) is not None:
            self._unseen[at] += sign * member.weight
        if (at := folded_at(member, self.start)) is not None:
            self._folded[at] += sign * member.weight


def unseen_at(member: Member, start: Instant) -> int | None:
    """The slot of a placed interval's anchor while in view: no run is there, but its rhythm is."""
    if member.placed_at is None or waits_longer(member):
        return None  # the latter's anchor is among its runs
    anchor = base_of(member.timing)
    return (anchor - start) // SLOT_S if start <= anchor < start + WEEK_S else None


def folded_at(member: Member, start: Instant) -> int | None:
    """Where the next run of an interval of more than 7 days counts, folded into them."""
    rule = member.timing.rule
    if not isinstance(rule, Interval) or rule.every_s <= WEEK_S:
        return None
    due = dues_of(member).next_after(start - 1)
    if due is None or due < start + WEEK_S:
        return None
    return (due - start) // SLOT_S % WEEK_SLOTS


def _weights(members: list[Member]) -> Ints:
    return np.array([member.weight for member in members], np.int64)
