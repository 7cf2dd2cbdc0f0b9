"""The load by slot of all schedules, kept up to date one schedule at a time.

The scheduler holds one `LoadMap` and tells it which schedules come, change, rest and go; `place`
and `plan_rebalance` look at it. Everything in it is a sum over whole runs, so it equals a recount
from scratch at any time (a property test says so), in whatever order schedules came.

Two pictures: the 24 hours from the start of the current slot, and, once an interval of more than
a day is placed, the same for 7 days. Not thread-safe; knows no clock: `advance` brings the time.
"""

import copy
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from evenkeel.balance.nouns import (
    DAY_SLOTS,
    WEEK_S,
    WEEK_SLOTS,
    Distribution,
    Member,
)
from evenkeel.balance.picture import DayPicture, Ints, moved_on, weighed
from evenkeel.balance.report import describe
from evenkeel.balance.runs import (
    Members,
    Progression,
    base_of,
    beat_of,
    dues_of,
    runs_of,
    waits_longer,
)
from evenkeel.model import DAY_S, SLOT_S, Instant, Interval


class LoadMap:
    """Who is there, and how much runs when."""

    def __init__(self, now: Instant) -> None:
        self.start: Instant = now // SLOT_S * SLOT_S
        self.version = 0
        """Grows with every change of a member or of the start; equal means nothing happened."""
        self.picture = DayPicture()
        self._members: dict[str, Member] = {}
        self._beats: dict[str, Progression | None] = {}
        """Of those that count, as numbers: reducing 10,000 anew would take 40 ms a slot."""
        self._marked: dict[str, Member] = {}
        """Those that count where no run of theirs is: they need a look when time moves on."""
        self._crowd: Members | None = None
        self._week: Ints | None = None
        self._folded: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._unseen: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._described: tuple[int, Distribution] | None = None

    @property
    def members(self) -> Mapping[str, Member]:
        """Every schedule by its key, those that do not count included."""
        return MappingProxyType(self._members)

    def snapshot(self) -> "LoadMap":
        """An independent copy (under a millisecond at ten thousand): a plan may be made of it in
        another thread while this one goes on; `confirm` then tells whether it still fits."""
        made = copy.copy(self)
        made.picture = self.picture.copy()
        made._members = dict(self._members)
        made._beats = dict(self._beats)
        made._marked = dict(self._marked)
        made._week = None if self._week is None else self._week.copy()
        made._folded = self._folded.copy()
        made._unseen = self._unseen.copy()
        return made

    def advance(self, now: Instant) -> None:
        """Move the start on to the current slot: passed runs go, runs that come into view come."""
        start = now // SLOT_S * SLOT_S
        if start == self.start:
            return
        self.version += 1
        if not self.start < start < self.start + DAY_S:
            self._recount(start)  # a long pause, or a clock that was set back
            return
        steps = (start - self.start) // SLOT_S
        crowd = self.crowd()
        self._add_day(crowd, self.start, start, sign=-1)
        self.picture.leave(steps)
        if self._week is not None:
            self._week = moved_on(self._week, steps)
        passed, self.start = self.start, start
        self._add_day(crowd, passed + DAY_S, start + DAY_S)
        self._add_week(crowd, passed + WEEK_S, start + WEEK_S)
        self._recount_marks()

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
            self._beats[member.key] = beat = beat_of(member)
            self._add_one(member, beat, sign=1)

    def put_all(self, members: Iterable[Member]) -> None:
        """As `put` for each, but several times as fast."""
        given = {m.key: m for m in members if self._members.get(m.key) != m}
        if len(given) <= 1:
            for member in given.values():
                self.put(member)
            return
        for key in given:
            self.drop(key)
        self._members.update(given)
        self.version += 1
        self._crowd = None
        counting = [member for member in given.values() if member.counts]
        beats = [beat_of(member) for member in counting]
        self._beats.update(zip((member.key for member in counting), beats, strict=True))
        crowd = Members(counting, beats)
        self._add_day(crowd, self.start, self.start + DAY_S)
        self._add_week(crowd, self.start, self.start + WEEK_S)
        for member in counting:
            self._mark(member, sign=1)

    def drop(self, key: str) -> None:
        """A schedule is gone; the gap that it leaves stays. Unknown keys are nothing new."""
        member = self._members.pop(key, None)
        if member is None:
            return
        self.version += 1
        if member.counts:
            self._add_one(member, self._beats.pop(key), sign=-1)

    def crowd(self) -> Members:
        """Those that count."""
        if self._crowd is None:
            members = [self._members[key] for key in self._beats]
            self._crowd = Members(members, list(self._beats.values()))
        return self._crowd

    def distribution(self, now: Instant, *, rebalanced: Distribution | None = None) -> Distribution:
        """The picture for people. `rebalanced` is what a plan projects, for the suggestion;
        without one the suggestion goes by what no plan could beat."""
        self.advance(now)
        if rebalanced is not None:
            return self._describe(rebalanced)
        if self._described is None or self._described[0] != self.version:
            self._described = (self.version, self._describe(None))
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
            self._add_week(self.crowd(), self.start, self.start + WEEK_S)
        return np.concatenate((self._week + self._unseen + self._folded, [0]))

    # --- sums ---------------------------------------------------------------------------------

    def _describe(self, rebalanced: Distribution | None) -> Distribution:
        return describe(
            self.crowd(),
            self.picture,
            self.start,
            total_jobs=len(self._members),
            rebalanced=rebalanced,
        )

    def _recount(self, start: Instant) -> None:
        self.start = start
        self.picture = DayPicture()
        self._week = None
        self._add_day(self.crowd(), start, start + DAY_S)
        self._marked = {member.key: member for member in self.crowd().members}
        self._recount_marks()

    def _add_one(self, member: Member, beat: Progression | None, *, sign: int) -> None:
        self._crowd = None
        weight = sign * member.weight
        day = runs_of(member, beat, self.start, self.start + DAY_S)
        self.picture.add(day, member.weight, sign=sign)
        if self._week is not None:
            week = runs_of(member, beat, self.start, self.start + WEEK_S)
            self._week += np.bincount(week // SLOT_S, minlength=WEEK_SLOTS) * weight
        self._mark(member, sign=sign)

    def _add_day(self, crowd: Members, a: Instant, b: Instant, *, sign: int = 1) -> None:
        for second, ordinal in crowd.runs(a, b):
            self.picture.add_all(second + (a - self.start), crowd.weight[ordinal], sign=sign)

    def _add_week(self, crowd: Members, a: Instant, b: Instant) -> None:
        if self._week is None:
            return
        for second, ordinal in crowd.runs(a, b):
            slot = (second + (a - self.start)) // SLOT_S
            self._week += weighed(slot, crowd.weight[ordinal], WEEK_SLOTS)

    def _recount_marks(self) -> None:
        self._unseen[:] = 0
        self._folded[:] = 0
        candidates, self._marked = self._marked, {}
        for member in candidates.values():
            self._mark(member, sign=1)

    def _mark(self, member: Member, *, sign: int) -> None:
        """What the rhythm says beyond the runs of the two pictures."""
        unseen = unseen_at(member, self.start)
        if unseen is not None:
            self._unseen[unseen] += sign * member.weight
        folded = folded_at(member, self.start)
        if folded is not None:
            self._folded[folded] += sign * member.weight
        if sign < 0:
            self._marked.pop(member.key, None)
        elif unseen is not None or may_fold(member):
            self._marked[member.key] = member


def unseen_at(member: Member, start: Instant) -> int | None:
    """The slot of a placed interval's anchor while in view: no run is there, but its rhythm is."""
    if member.placed_at is None or waits_longer(member):
        return None  # the latter's anchor is among its runs
    anchor = base_of(member.timing)
    return (anchor - start) // SLOT_S if start <= anchor < start + WEEK_S else None


def may_fold(member: Member) -> bool:
    """Whether its interval is longer than the picture of a week."""
    rule = member.timing.rule
    return isinstance(rule, Interval) and rule.every_s > WEEK_S


def folded_at(member: Member, start: Instant) -> int | None:
    """Where the next run of an interval of more than 7 days counts, folded into them."""
    if not may_fold(member):
        return None
    due = dues_of(member).next_after(start - 1)
    if due is None or due < start + WEEK_S:
        return None
    return (due - start) // SLOT_S % WEEK_SLOTS
