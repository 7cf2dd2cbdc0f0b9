"""Schedules as people write them: a seeded generator, and the same set in other notations.

Periods lie between five minutes and a week, in the mix of a real cluster; some are odd (7m, 25m,
90m). Most are intervals that the operator places. Some are fixed crons, most of these at the full
hour: where people write the minute themselves, they write 0. With a mean of 65 runs a day, 1,000
schedules have 46 starts a minute.

    waiting = people(285, seed=3, fixed_share=0.2)
    before = [each.original for each in waiting]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenkeel.balance import LoadMap, Member, improve_set, moved, place
from evenkeel.balance.place import at_anchor
from evenkeel.model import DAY_S, Cron, Instant, Interval, Timing
from evenkeel.when import compile_timing

Ints = npt.NDArray[np.int64]

A_MORNING_IN_MARCH: Instant = 1_803_895_633  # 2027-03-01T10:07:13Z
PRE_SCHEDULE_S = 10
MINUTE_S = 60
HOUR_S = 3600
WEEK_S = 7 * DAY_S
A_FIFTH = 0.2

Mix = Sequence[tuple[int, float]]
"""Each period in seconds, and how many of a hundred schedules have it."""

MIX: Mix = (
    (5 * MINUTE_S, 9.5),
    (10 * MINUTE_S, 8),
    (15 * MINUTE_S, 8),
    (20 * MINUTE_S, 3),
    (30 * MINUTE_S, 9),
    (HOUR_S, 14),
    (2 * HOUR_S, 4),
    (3 * HOUR_S, 2),
    (4 * HOUR_S, 3),
    (6 * HOUR_S, 5),
    (8 * HOUR_S, 2),
    (12 * HOUR_S, 3),
    (DAY_S, 21),
    (WEEK_S, 3.5),
    (7 * MINUTE_S, 2),
    (25 * MINUTE_S, 1.5),
    (90 * MINUTE_S, 1.5),
)
"""Of intervals."""

FIXED_MIX: Mix = (
    (5 * MINUTE_S, 4),
    (10 * MINUTE_S, 1.5),
    (15 * MINUTE_S, 4),
    (30 * MINUTE_S, 2),
    (HOUR_S, 26),
    (2 * HOUR_S, 4),
    (4 * HOUR_S, 3.5),
    (6 * HOUR_S, 7),
    (12 * HOUR_S, 4),
    (DAY_S, 36),
    (WEEK_S, 8),
)
"""Of crons that keep their time: those with a reason to, and those nobody looked at."""

MINUTES = ((0, 0.75), (30, 0.15), (15, 0.1))
"""Where people write the minute of a cron themselves."""

HOURS = ((0, 0.35), (1, 0.12), (2, 0.15), (3, 0.12), (4, 0.08), (5, 0.06), (6, 0.06), (22, 0.06))
"""Where people write the hour of a daily job."""


@dataclass(frozen=True, slots=True)
class Written:
    """One schedule, as somebody wishes it."""

    key: str
    every_s: int
    minute: int
    hour: int
    weekday: int
    is_fixed: bool = False
    weight: int = 1
    lasts_s: int = 0

    @property
    def member(self) -> Member:
        """As it arrives: a fixed cron, or an interval that waits to be placed."""
        return self.original if self.is_fixed else self._with(Timing(Interval(self.every_s)))

    @property
    def original(self) -> Member:
        """As a cron, mostly at the full hour. No cron says every 90 minutes: these count from
        midnight."""
        return self._with(self._cron(str(self.minute), str(self.hour), str(self.weekday), "*"))

    @property
    def hashed(self) -> Member:
        """As Jenkins would have it: the pattern stays, `H` stands for minute, hour and weekday."""
        return self.original if self.is_fixed else self._with(self._cron("H", "H", "H", "H"))

    def _with(self, timing: Timing) -> Member:
        return Member(self.key, timing, weight=self.weight, lasts_s=self.lasts_s)

    def _cron(self, minute: str, hour: str, weekday: str, start: str) -> Timing:
        minutes, hours = self.every_s // MINUTE_S, self.every_s // HOUR_S
        if minutes < 60:
            return Timing(Cron(f"{start}/{minutes} * * * *"))
        if self.every_s % HOUR_S:
            phase_s = _hash(self.key, minutes) * MINUTE_S if start == "H" else 0
            return Timing(Interval(self.every_s, phase_s))
        if hours == 1:
            return Timing(Cron(f"{minute} * * * *"))
        if hours < 24:
            return Timing(Cron(f"{minute} {start}/{hours} * * *"))
        day = weekday if self.every_s == WEEK_S else "*"
        return Timing(Cron(f"{minute} {hour} * * {day}"))


def people(
    count: int, *, seed: int, fixed_share: float = 0, weighted: bool = False, mix: Mix = MIX
) -> list[Written]:
    """A set of so many schedules, in the order in which they arrive."""
    rng = np.random.default_rng((seed, count))
    is_fixed = rng.random(count) < fixed_share
    every_s = np.where(is_fixed, _chosen(rng, FIXED_MIX, count), _chosen(rng, mix, count))
    minute, hour = _chosen(rng, MINUTES, count), _chosen(rng, HOURS, count)
    weekday = rng.integers(0, 7, count)
    weight = np.clip(np.rint(10 * rng.lognormal(0, 1, count)), 1, 1000)
    return [
        Written(
            key=f"team-{n % 17}/job-{n}",
            every_s=int(every_s[n]),
            minute=int(minute[n]),
            hour=int(hour[n]),
            weekday=int(weekday[n]),
            is_fixed=bool(is_fixed[n]),
            weight=int(weight[n]) if weighted else 1,
        )
        for n in range(count)
    ]


def one_by_one(given: Sequence[Member], now: Instant, *, observe: bool = False) -> LoadMap:
    """The load of these members, each placed after those before it; `observe` places by hash."""
    load = LoadMap(now)
    for member in given:
        put(load, member, now, observe=observe)
    return load


def as_a_set(given: Sequence[Member], now: Instant) -> LoadMap:
    """The load of these members, which arrive together: one by one first, then improved."""
    load = one_by_one(given, now)
    latest = {m.key: now + m.interval.every_s for m in given if is_waiting(m)}
    for move in improve_set(load, latest, now, pre_schedule_s=PRE_SCHEDULE_S):
        load.put(moved(load.members[move.key], move, now))
    return load


@dataclass(frozen=True, slots=True)
class Day:
    """What is there at the end of one day of `a_month`."""

    number: int
    now: Instant
    load: LoadMap
    there: list[Written]
    """In the order in which they came."""


def a_month(
    *, seed: int, live: int = 500, a_day: int = 10, days: int = 30, fixed_share: float = 0
) -> Iterator[Day]:
    """A set that arrives together; then, at any time of every day, so many come and as many go.
    Each is placed once, and nobody rebalances."""
    rng = np.random.default_rng(seed)
    given = people(live + days * a_day, seed=seed, fixed_share=fixed_share)
    there, coming = given[:live], iter(given[live:])
    now = A_MORNING_IN_MARCH
    load = as_a_set([each.member for each in there], now)
    for number in range(1, days + 1):
        for second in sorted(rng.integers(0, DAY_S, a_day).tolist()):
            at = A_MORNING_IN_MARCH + (number - 1) * DAY_S + second
            load.drop(there.pop(int(rng.integers(len(there)))).key)
            newcomer = next(coming)
            there.append(newcomer)
            put(load, newcomer.member, at)
        now = A_MORNING_IN_MARCH + number * DAY_S
        load.advance(now)
        yield Day(number, now, load, there)


def put(load: LoadMap, member: Member, now: Instant, *, observe: bool = False) -> None:
    """Place the member if it waits for that, and put it into the load."""
    if is_waiting(member):
        found = place(load, member, now, pre_schedule_s=PRE_SCHEDULE_S, observe=observe)
        member = at_anchor(member, found.anchor, now)
    load.put(member)


def starts(members: Sequence[Member], a: Instant, b: Instant) -> Ints:
    """How many runs begin in each second of [a, b), counted run by run, without the load's sums."""
    seconds: Ints = np.zeros(b - a, np.int64)
    for member in members:
        seconds[runs_of(member, a, b) - a] += 1
    return seconds


def running(members: Sequence[Member], a: Instant, b: Instant) -> npt.NDArray[np.float64]:
    """How many runs are expected to run in each minute of [a, b), by the members' durations."""
    change: Ints = np.zeros(b - a + 1, np.int64)
    for member in members:
        due = runs_of(member, a - member.lasts_s, b)
        np.add.at(change, np.maximum(due - a, 0), 1)
        np.add.at(change, np.clip(due - a + member.lasts_s, 0, b - a), -1)
    return np.cumsum(change[:-1]).reshape(-1, MINUTE_S).mean(axis=1)


def runs_of(member: Member, a: Instant, b: Instant) -> Ints:
    """The due times in [a, b)."""
    rule = member.timing.rule
    if isinstance(rule, Interval) and member.timing.zone == "UTC":
        base = (rule.anchor or 0) + (rule.offset_s or 0)
        first = base + max(1, -(-(a - base) // rule.every_s)) * rule.every_s
        return np.arange(first, b, rule.every_s)
    return np.array(compile_timing(member.timing, seed=member.key).between(a, b), np.int64)


def by_minute(seconds: Ints) -> Ints:
    """The same by minute, where the first second begins a minute."""
    minutes: Ints = seconds.reshape(-1, MINUTE_S).sum(axis=1)
    return minutes


def is_waiting(member: Member) -> bool:
    """Whether the operator is to choose the phase."""
    rule = member.timing.rule
    return isinstance(rule, Interval) and rule.offset_s is None


def is_placed(member: Member) -> bool:
    """Whether the operator chose the phase."""
    return member.placed_at is not None


@functools.cache
def _hash(key: str, values: int) -> int:
    return int(np.random.default_rng(list(key.encode())).integers(values))


def _chosen(
    rng: np.random.Generator, shares: Sequence[tuple[int, float]], count: int
) -> npt.NDArray[np.int64]:
    values, weights = zip(*shares, strict=True)
    return rng.choice(values, count, p=np.array(weights) / sum(weights))
