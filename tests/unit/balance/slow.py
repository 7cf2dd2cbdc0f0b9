"""The load and the rule of placement by their words, in plain Python: one entry for each run."""

from collections import Counter
from collections.abc import Iterable

from tests.unit.balance.members import MINUTE_S, PRE_SCHEDULE_S, SLOT_S, runs_between

from evenkeel.balance import Member
from evenkeel.model import DAY_S, Instant, Interval

WEEK_S = 7 * DAY_S


class SlowLoad:
    """The load of a day or a week that repeats: by slot in weight-minutes, by minute and second in
    starts. What a phase means before its first run counts as if it ran; in a week also the next run
    of an interval that is longer."""

    def __init__(self, members: Iterable[Member], start: Instant, horizon_s: int = DAY_S) -> None:
        self.start = start
        self.horizon_s = horizon_s
        self.work = Counter[int]()
        self.minutes = Counter[int]()
        self.fixed = Counter[int]()
        self.seconds = Counter[int]()
        for member in members:
            if member.counts:
                for second in self._counted(member):
                    self._add(second % horizon_s, member)

    def _counted(self, member: Member) -> list[int]:
        end = self.start + self.horizon_s
        due = runs_between(member, self.start, end)
        rule = member.timing.rule
        if isinstance(rule, Interval):
            if member.placed_at is not None:
                assert rule.anchor is not None
                due += [at for at in range(rule.anchor, self.start - 1, -rule.every_s) if at < end]
            following = runs_between(member, self.start, end + rule.every_s + 1)[:1]
            if rule.every_s > self.horizon_s == WEEK_S:
                due += [at for at in following if at >= end]
        return [instant - self.start for instant in due]

    def _add(self, second: int, member: Member) -> None:
        slots = self.horizon_s // SLOT_S
        first, end = second // SLOT_S, second + min(member.lasts_s, self.horizon_s)
        self.work[first] += 15 * member.weight
        for slot in range(first + 1, end // SLOT_S + 1):
            minutes = min(15, (end - slot * SLOT_S) // MINUTE_S)
            self.work[slot % slots] += minutes * member.weight
        self.minutes[second // MINUTE_S] += 1
        if member.placed_at is None:
            self.fixed[second // MINUTE_S] += 1
        if second < DAY_S:
            self.seconds[second] += 1


class SlowRule:
    """Chooses the first run of an interval: by the busiest slot, then by the minutes, then by the
    sum of the slots, then by the seconds."""

    def __init__(self, others: Iterable[Member], every_s: int, now: Instant) -> None:
        start = now // SLOT_S * SLOT_S
        self.load = SlowLoad(others, start, DAY_S if every_s <= DAY_S else WEEK_S)
        self.every_s = every_s
        count = self.load.horizon_s // MINUTE_S
        more = self.load.horizon_s // every_s
        mean = max(1, -(-(self.load.minutes.total() + more) // count))
        busiest = max(self.load.fixed.values(), default=0)
        self.cost = [self._cost(minute, mean, busiest) for minute in range(count)]

    def _cost(self, minute: int, mean: int, busiest: int) -> int:
        """Starts, those of fixed schedules up to the mean; dear where one more would make the
        busiest minute of fixed schedules busier."""
        starts, fixed = self.load.minutes[minute], self.load.fixed[minute]
        dear = 10**9 if starts >= busiest > mean else 0
        return starts - max(0, fixed - mean) + dear

    def first_run(self, now: Instant, *, lasts_s: int) -> Instant:
        low, high = now + PRE_SCHEDULE_S + 1, now + self.every_s
        minutes = list(range(-(-low // MINUTE_S) * MINUTE_S, high + 1, MINUTE_S))
        cost = {minute: self.slot_cost(minute, lasts_s) for minute in minutes}
        least = min(peak for peak, _ in cost.values())
        best = [minute for minute in minutes if cost[minute][0] == least]
        if len(best) > 1440:
            best = [best[n * len(best) // 1440] for n in range(1440)]
        minute = min(best, key=lambda at: (self.minute_cost(at), cost[at][1], at))
        phases = range(minute, minute + MINUTE_S)
        within = [at if at <= high else at - self.every_s for at in phases]
        possible = [at for at in within if low <= at]
        return min(possible, key=lambda at: (self.second_cost(at), at))

    def slot_cost(self, first: Instant, lasts_s: int) -> tuple[int, int]:
        """(maximum, sum) over the slots in which a run would be that starts in the middle of its
        slot."""
        slots = self.load.horizon_s // SLOT_S
        later = (SLOT_S // 2 + lasts_s) // SLOT_S if lasts_s else 0
        met = [
            self.load.work[(second // SLOT_S + step) % slots]
            for second in self._met(first, self.load.horizon_s)
            for step in range(later + 1)
        ]
        return max(met), sum(met)

    def minute_cost(self, first: Instant) -> tuple[int, int]:
        """(maximum, sum) over the minutes that it would hit."""
        met = [self.cost[at // MINUTE_S] for at in self._met(first, self.load.horizon_s)]
        return max(met), sum(met)

    def second_cost(self, first: Instant) -> tuple[int, int]:
        """(maximum, sum) over the seconds of the day that it would hit."""
        met = [self.load.seconds[at] for at in self._met(first, DAY_S)]
        return max(met), sum(met)

    def _met(self, first: Instant, horizon_s: int) -> range:
        phase = (first - self.load.start) % min(self.every_s, horizon_s)
        return range(phase, horizon_s, self.every_s)
