"""The load of each slot, summed over all schedules and updated one schedule at a time.

The scheduler holds one `LoadMap` and calls `put` and `drop` as schedules are added, change, are
suspended or are deleted; `place` and `plan_rebalance` read it. All entries are sums over whole
runs, so at any time they equal a recount from scratch, whatever the order of the calls (a property
test compares them).

The load of the 24 hours from the start of the current slot is always there; the load of 7 days is
summed once an interval of more than a day asks for it. A `LoadMap` is not thread-safe and reads no
clock: the caller passes the time to `advance`.
"""

import copy
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from evenkeel.balance.day_load import DayLoad, Ints, shifted, weight_by_slot
from evenkeel.balance.nouns import (
    DAY_SLOTS,
    WEEK_S,
    WEEK_SLOTS,
    Distribution,
    Member,
)
from evenkeel.balance.report import describe
from evenkeel.balance.runs import (
    Members,
    Progression,
    base_of,
    dues_of,
    has_anchor_ahead,
    progression_of,
    runs_of,
)
from evenkeel.model import DAY_S, SLOT_S, Instant, Interval


class LoadMap:
    """All schedules, and the load that they make."""

    def __init__(self, now: Instant) -> None:
        self.start: Instant = now // SLOT_S * SLOT_S
        self.version = 0
        """Grows with every change of a member or of the start: an equal version, an equal load."""
        self.day = DayLoad()
        self._members: dict[str, Member] = {}
        self._progressions: dict[str, Progression | None] = {}
        """One entry for each member that counts. They are kept because computing 10,000 of them
        takes 40 ms, and every new slot needs them."""
        self._beyond_runs: dict[str, Member] = {}
        """The members with load where no run is (`_add_beyond_runs`). It is summed again whenever
        the start moves."""
        self._counting: Members | None = None
        self._week: Ints | None = None
        self._folded_weight: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._anchors: Ints = np.zeros(WEEK_SLOTS, np.int64)
        self._described: tuple[int, Distribution] | None = None

    @property
    def members(self) -> Mapping[str, Member]:
        """All schedules by their keys, suspended and paused ones included."""
        return MappingProxyType(self._members)

    def snapshot(self) -> "LoadMap":
        """An independent copy (less than 1 ms for 10,000 members). Another thread may plan with
        the copy while the original changes; `confirm` then checks the plan."""
        made = copy.copy(self)
        made.day = self.day.copy()
        made._members = dict(self._members)
        made._progressions = dict(self._progressions)
        made._beyond_runs = dict(self._beyond_runs)
        made._week = None if self._week is None else self._week.copy()
        made._folded_weight = self._folded_weight.copy()
        made._anchors = self._anchors.copy()
        return made

    def advance(self, now: Instant) -> None:
        """Begin at the slot of `now`: remove the runs that have passed, add those of the new
        end."""
        start = now // SLOT_S * SLOT_S
        if start == self.start:
            return
        self.version += 1
        if not self.start < start < self.start + DAY_S:
            self._recount(start)  # a long pause, or a clock that was set back
            return
        steps = (start - self.start) // SLOT_S
        members = self.counting()
        self._add_day(members, self.start, start, sign=-1)
        self.day.drop_first(steps)
        if self._week is not None:
            self._week = shifted(self._week, steps)
        passed, self.start = self.start, start
        self._add_day(members, passed + DAY_S, start + DAY_S)
        self._add_week(members, passed + WEEK_S, start + WEEK_S)
        self._recount_beyond_runs()

    def put(self, member: Member) -> None:
        """Add a schedule, or replace it: it changed, was placed, suspended, paused or resumed."""
        known = self._members.get(member.key)
        if known == member:
            return
        if known is not None:
            self.drop(member.key)
        self._members[member.key] = member
        self.version += 1
        if member.counts:
            self._progressions[member.key] = progression = progression_of(member)
            self._add_one(member, progression, sign=1)

    def put_all(self, members: Iterable[Member]) -> None:
        """The same as `put` for each member, several times faster."""
        given = {m.key: m for m in members if self._members.get(m.key) != m}
        if len(given) <= 1:
            for member in given.values():
                self.put(member)
            return
        for key in given:
            self.drop(key)
        self._members.update(given)
        self.version += 1
        self._counting = None
        counting = [member for member in given.values() if member.counts]
        progressions = [progression_of(member) for member in counting]
        self._progressions.update(
            zip((member.key for member in counting), progressions, strict=True)
        )
        added = Members(counting, progressions)
        self._add_day(added, self.start, self.start + DAY_S)
        self._add_week(added, self.start, self.start + WEEK_S)
        for member in counting:
            self._add_beyond_runs(member, sign=1)

    def drop(self, key: str) -> None:
        """Remove a schedule. No other schedule moves into its place. An unknown key is ignored."""
        member = self._members.pop(key, None)
        if member is None:
            return
        self.version += 1
        if member.counts:
            self._add_one(member, self._progressions.pop(key), sign=-1)

    def counting(self) -> Members:
        """The members that count: neither suspended nor paused."""
        if self._counting is None:
            members = [self._members[key] for key in self._progressions]
            self._counting = Members(members, list(self._progressions.values()))
        return self._counting

    def distribution(self, now: Instant, *, rebalanced: Distribution | None = None) -> Distribution:
        """The description of the day. `rebalanced` is what a plan projects: the suggestion compares
        the day with it. Without it the suggestion compares the day with a lower bound."""
        self.advance(now)
        if rebalanced is not None:
            return self._describe(rebalanced)
        if self._described is None or self._described[0] != self.version:
            self._described = (self.version, self._describe(None))
        return self._described[1]

    def rhythm_day(self) -> Ints:
        """The load of the day's slots, for comparing phases: the runs and the anchors in view.

        A daily schedule that is placed at 10:07 for 10:05 tomorrow has no run in the next 24 hours.
        Without its anchor the slot would look empty, and all schedules placed in these minutes
        would get that slot. The array has one entry more, 0: index arrays of equal length point
        there where a shorter one has ended.
        """
        return np.concatenate((self.day.slots + self._anchors[:DAY_SLOTS], [0]))

    def rhythm_week(self) -> Ints:
        """The same as `rhythm_day` for 7 days. Runs of longer intervals count at their due time
        modulo 7 days."""
        if self._week is None:
            self._week = np.zeros(WEEK_SLOTS, np.int64)
            self._add_week(self.counting(), self.start, self.start + WEEK_S)
        return np.concatenate((self._week + self._anchors + self._folded_weight, [0]))

    # --- sums ---------------------------------------------------------------------------------

    def _describe(self, rebalanced: Distribution | None) -> Distribution:
        return describe(
            self.counting(),
            self.day,
            self.start,
            total_jobs=len(self._members),
            rebalanced=rebalanced,
        )

    def _recount(self, start: Instant) -> None:
        self.start = start
        self.day = DayLoad()
        self._week = None
        self._add_day(self.counting(), start, start + DAY_S)
        self._beyond_runs = {member.key: member for member in self.counting().members}
        self._recount_beyond_runs()

    def _add_one(self, member: Member, progression: Progression | None, *, sign: int) -> None:
        self._counting = None
        weight = sign * member.weight
        day = runs_of(member, progression, self.start, self.start + DAY_S)
        self.day.add(day, member.weight, sign=sign)
        if self._week is not None:
            week = runs_of(member, progression, self.start, self.start + WEEK_S)
            self._week += np.bincount(week // SLOT_S, minlength=WEEK_SLOTS) * weight
        self._add_beyond_runs(member, sign=sign)

    def _add_day(self, members: Members, a: Instant, b: Instant, *, sign: int = 1) -> None:
        for second, ordinal in members.runs(a, b):
            self.day.add_all(second + (a - self.start), members.weight[ordinal], sign=sign)

    def _add_week(self, members: Members, a: Instant, b: Instant) -> None:
        if self._week is None:
            return
        for second, ordinal in members.runs(a, b):
            slot = (second + (a - self.start)) // SLOT_S
            self._week += weight_by_slot(slot, members.weight[ordinal], WEEK_SLOTS)

    def _recount_beyond_runs(self) -> None:
        self._anchors[:] = 0
        self._folded_weight[:] = 0
        candidates, self._beyond_runs = self._beyond_runs, {}
        for member in candidates.values():
            self._add_beyond_runs(member, sign=1)

    def _add_beyond_runs(self, member: Member, *, sign: int) -> None:
        """Add or remove the load that is no run of the day or the week: an anchor in view, or the
        next run of an interval of more than 7 days."""
        unseen = anchor_slot(member, self.start)
        if unseen is not None:
            self._anchors[unseen] += sign * member.weight
        folded = folded_slot(member, self.start)
        if folded is not None:
            self._folded_weight[folded] += sign * member.weight
        if sign < 0:
            self._beyond_runs.pop(member.key, None)
        elif unseen is not None or is_longer_than_a_week(member):
            self._beyond_runs[member.key] = member


def anchor_slot(member: Member, start: Instant) -> int | None:
    """The slot of a placed interval's anchor, if the anchor lies in the next 7 days. No run is
    there, but one interval later there is."""
    if member.placed_at is None or has_anchor_ahead(member):
        return None  # `runs_of` counts such an anchor already
    anchor = base_of(member.timing)
    return (anchor - start) // SLOT_S if start <= anchor < start + WEEK_S else None


def is_longer_than_a_week(member: Member) -> bool:
    """Whether the interval is longer than 7 days."""
    rule = member.timing.rule
    return isinstance(rule, Interval) and rule.every_s > WEEK_S


def folded_slot(member: Member, start: Instant) -> int | None:
    """The slot in which the next run of an interval of more than 7 days counts: its due time modulo
    7 days. None where that run lies in the next 7 days and counts as a run."""
    if not is_longer_than_a_week(member):
        return None
    due = dues_of(member).next_after(start - 1)
    if due is None or due < start + WEEK_S:
        return None
    return (due - start) // SLOT_S % WEEK_SLOTS
