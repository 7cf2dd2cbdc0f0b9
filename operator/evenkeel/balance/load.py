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
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import numpy as np

from evenkeel.balance.day_load import SLOT_MINUTES, DayLoad, Horizon, Ints, Rhythm, Seconds
from evenkeel.balance.nouns import WEEK_S, WEEK_SLOTS, Distribution, Member
from evenkeel.balance.report import describe
from evenkeel.balance.runs import (
    Members,
    Progression,
    base_of,
    counted_from,
    dues_of,
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
        self._week: Horizon | None = None
        self._before = BeyondRuns()
        self._folded = BeyondRuns()
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
        made._before = self._before.copy()
        made._folded = self._folded.copy()
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
            self._add_week(members, self.start, start, sign=-1)
            self._week.drop_first(steps)
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

    def rhythm_day(self) -> Rhythm:
        """The load of the day, for comparing phases: the runs, and what the phases mean for the
        time before the first runs.

        A daily schedule that is placed at 10:07 for 10:05 tomorrow has no run in the next 24 hours,
        and an interval of 5 minutes none from 10:00 to 10:07. Without these instants that time
        would look empty, and all schedules placed in these minutes would be put there.
        """
        return rhythm_of(self.day, [self._before])

    def rhythm_week(self) -> Rhythm:
        """The same as `rhythm_day` for 7 days. Runs of longer intervals count at their due time
        modulo 7 days."""
        if self._week is None:
            self._week = Horizon(WEEK_SLOTS)
            self._add_week(self.counting(), self.start, self.start + WEEK_S)
        return rhythm_of(self._week, [self._before, self._folded])

    def rhythm_seconds(self) -> Seconds:
        """The starts of each second of the day, as `rhythm_day` counts them."""
        return self.day.seconds + self._before.seconds

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
        day = runs_of(member, progression, self.start, self.start + DAY_S)
        add_member(self.day, day, member, sign)
        if self._week is not None:
            week = runs_of(member, progression, self.start, self.start + WEEK_S)
            add_member(self._week, week, member, sign)
        self._add_beyond_runs(member, sign=sign)

    def _add_day(self, members: Members, a: Instant, b: Instant, *, sign: int = 1) -> None:
        add_runs(self.day, members, a, b, origin=self.start, sign=sign)

    def _add_week(self, members: Members, a: Instant, b: Instant, *, sign: int = 1) -> None:
        if self._week is not None:
            add_runs(self._week, members, a, b, origin=self.start, sign=sign)

    def _recount_beyond_runs(self) -> None:
        self._before = BeyondRuns()
        self._folded = BeyondRuns()
        candidates, self._beyond_runs = self._beyond_runs, {}
        for member in candidates.values():
            self._add_beyond_runs(member, sign=1)

    def _add_beyond_runs(self, member: Member, *, sign: int) -> None:
        """Add or remove the load that is no run of the day or the week: the phase before the first
        run, or the next run of an interval of more than 7 days."""
        before = seconds_before_first_run(member, self.start)
        if len(before):
            self._before.add_some(member, before, sign=sign)
        folded = folded_second(member, self.start)
        if folded is not None:
            self._folded.add_some(member, np.array([folded]), sign=sign)
        if sign < 0:
            self._beyond_runs.pop(member.key, None)
        elif len(before) or is_longer_than_a_week(member):
            self._beyond_runs[member.key] = member


class BeyondRuns(Horizon):
    """A week's load where no run is, and the seconds of its first day."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        super().__init__(WEEK_SLOTS)
        self.seconds: Seconds = np.zeros(DAY_S + 1, np.int32)

    def copy(self) -> Self:
        """An independent copy."""
        made = super().copy()
        made.seconds = self.seconds.copy()
        return made

    def add_some(self, member: Member, second: Ints, *, sign: int) -> None:
        """Add or remove one member at some seconds."""
        add_member(self, second, member, sign)
        self.seconds[second[second < DAY_S]] += sign


def add_member(horizon: Horizon, second: Ints, member: Member, sign: int) -> None:
    """Add runs of one member, or remove them."""
    fixed = member.placed_at is None
    horizon.add(second, member.weight, member.lasts_s, fixed=fixed, sign=sign)


def add_runs(
    horizon: Horizon, members: Members, a: Instant, b: Instant, *, origin: Instant, sign: int = 1
) -> None:
    """Add the members' runs in [a, b), or remove them, to a horizon that begins at `origin`."""
    for second, ordinal in members.runs(a, b):
        horizon.add_all(
            second + (a - origin),
            members.weight[ordinal],
            members.lasts_s[ordinal],
            members.fixed[ordinal],
            sign=sign,
        )


def rhythm_of(horizon: Horizon, beyond: Sequence[Horizon]) -> Rhythm:
    """The rhythm of a horizon with the load that is no run of it."""
    slots = len(horizon.slots)
    work, minutes, fixed = horizon.work, horizon.minutes.copy(), horizon.fixed.copy()
    for other in beyond:
        work += other.work[:slots]
        minutes += other.minutes[: slots * SLOT_MINUTES]
        fixed += other.fixed[: slots * SLOT_MINUTES]
    return Rhythm(np.append(work, 0), minutes, fixed)


def members_rhythm(members: Sequence[Member], start: Instant, slots: int) -> Rhythm:
    """The part that these members have in the rhythm of a day or a week."""
    horizon = Horizon(slots)
    add_runs(horizon, Members(members), start, start + slots * SLOT_S, origin=start)
    beyond = BeyondRuns()
    for member in members:
        before = seconds_before_first_run(member, start)
        if len(before):
            beyond.add_some(member, before, sign=1)
        folded = folded_second(member, start) if slots == WEEK_SLOTS else None
        if folded is not None:
            beyond.add_some(member, np.array([folded]), sign=1)
    return rhythm_of(horizon, [beyond])


def seconds_before_first_run(member: Member, start: Instant) -> Ints:
    """The instants of a placed interval's phase that lie in the next 7 days but before its first
    run, in seconds after `start`: its anchor, and whole intervals before it. No run is there today,
    but from the next day on there are."""
    if member.placed_at is None:
        return np.zeros(0, np.int64)
    every_s = member.interval.every_s
    base = base_of(member.timing)
    last = base + (counted_from(member) - 1 - base) // every_s * every_s
    if last < start:
        return np.zeros(0, np.int64)
    first = start + (last - start) % every_s
    return np.arange(first, min(last + 1, start + WEEK_S), every_s) - start


def is_longer_than_a_week(member: Member) -> bool:
    """Whether the interval is longer than 7 days."""
    rule = member.timing.rule
    return isinstance(rule, Interval) and rule.every_s > WEEK_S


def folded_second(member: Member, start: Instant) -> int | None:
    """The second at which the next run of an interval of more than 7 days counts: its due time
    modulo 7 days. None where that run lies in the next 7 days and counts as a run."""
    if not is_longer_than_a_week(member):
        return None
    due = dues_of(member).next_after(start - 1)
    if due is None or due < start + WEEK_S:
        return None
    return (due - start) % WEEK_S
