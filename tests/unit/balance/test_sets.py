"""Schedules that arrive together: which may move, that it helps, and that order does not matter."""

import random
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    PRE_SCHEDULE_S,
    busiest_slot_of,
    every,
    fixed,
    place_into,
    runs_between,
)

from evenkeel.balance import (
    Limits,
    LoadMap,
    Member,
    Move,
    improve_set,
    moved,
    plan_rebalance,
)
from evenkeel.balance.day_load import Rhythm
from evenkeel.model import DAY_S, Cron, Instant, Window
from evenkeel.when.zone import load_zone

NIGHT = Window(22 * HOUR_S, 6 * HOUR_S)
BEFORE_SPRING_IN_BERLIN: Instant = 1_806_150_000  # 2027-03-27T13:00:00Z, 12 h before 02:00 is gone
INTERVALS_S = [
    90, 5 * MINUTE_S, 7 * MINUTE_S, 20 * MINUTE_S, HOUR_S, HOUR_S, 3601, 100 * MINUTE_S, 6 * HOUR_S,
    DAY_S, DAY_S, 36 * HOUR_S, 3 * DAY_S, 10 * DAY_S,
]  # fmt: skip
SOON_S = 60


@dataclass(frozen=True)
class Arrival:
    """A set that was placed one by one some seconds ago, beside others."""

    load: LoadMap
    latest: dict[str, Instant]
    now: Instant

    def improve(self) -> tuple[Move, ...]:
        return improve_set(self.load, self.latest, self.now, pre_schedule_s=PRE_SCHEDULE_S)

    def carry_out(self, moves: tuple[Move, ...]) -> None:
        for move in moves:
            self.load.put(moved(self.load.members[move.key], move, self.now))


@st.composite
def arrivals(draw: st.DrawFn) -> Arrival:
    began = draw(st.sampled_from([A_MORNING_IN_MARCH, BEFORE_SPRING_IN_BERLIN]))
    began += draw(st.integers(0, HOUR_S))
    load = LoadMap(began)
    load.put(fixed(Cron("0 */3 * * *"), weight=draw(st.integers(1, 50))))
    load.put(fixed(Cron("*/5 * * * *"), key="ns/often"))
    load.put(every(HOUR_S, key="ns/there", anchor=began - 3 * DAY_S))
    latest = {}
    now = began
    for n in range(draw(st.integers(1, 20))):
        now += draw(st.integers(0, 4))
        every_s = draw(st.sampled_from(INTERVALS_S))
        whole_days = every_s % DAY_S == 0
        member = every(
            every_s,
            key=f"ns/{n:02}",
            weight=draw(st.sampled_from([1, 1, 3, 40])),
            zone=draw(st.sampled_from(["UTC", "Europe/Berlin"])) if whole_days else "UTC",
            window=draw(st.sampled_from([None, NIGHT])) if whole_days else None,
            pinned=draw(st.integers(0, 9)) == 0,
            counts=draw(st.integers(0, 9)) != 0,
        )
        starts_later = draw(st.integers(0, 9)) == 0
        ends = draw(st.integers(0, 9)) == 0
        timing = replace(
            member.timing,
            start=now + every_s if starts_later else None,
            end=now + 3 * every_s if ends else None,
        )
        lasts_s = draw(st.sampled_from([0, 0, 600, 5000]))
        place_into(load, replace(member, timing=timing, lasts_s=lasts_s), now)
        latest[member.key] = now + every_s
    now += draw(st.sampled_from([5, 6, 30]))
    return Arrival(load, latest, now)


A_LITTLE = 1.01
"""By so much the busiest slot may rise where that makes the minutes more even."""


def is_as_even(after: Rhythm, before: Rhythm) -> bool:
    """The busiest slot is lower, or it is about as low and the busiest minute is no busier."""
    peak, then = int(after.work.max()), int(before.work.max())
    return peak < then or (
        peak <= then * A_LITTLE and int(after.minutes.max()) <= int(before.minutes.max())
    )


def assert_as_even(arrival: Arrival, day: Rhythm, week: Rhythm) -> None:
    """By the day; where longer intervals came too, a set is judged by the week."""
    load = arrival.load
    by_day = is_as_even(load.rhythm_day(), day)
    if all(load.members[key].interval.every_s <= DAY_S for key in arrival.latest):
        assert by_day
    else:
        assert by_day or is_as_even(load.rhythm_week(), week)


any_arrival = settings(max_examples=60, deadline=None)


@any_arrival
@given(arrivals())
def test_a_move_says_the_load_that_is_there_when_all_are_made(arrival: Arrival) -> None:
    moves = arrival.improve()
    arrival.carry_out(moves)
    for move in moves:
        every_s = arrival.load.members[move.key].interval.every_s
        assert move.load == busiest_slot_of(arrival.load, move.proposed_time, every_s)


@any_arrival
@given(arrivals())
def test_only_schedules_of_the_set_move_that_may_and_none_later_than_one_interval_from_creation(
    arrival: Arrival,
) -> None:
    before = dict(arrival.load.members)
    for move in arrival.improve():
        member = before[move.key]
        every_s = member.interval.every_s
        after = moved(member, move, arrival.now)
        assert move.key in arrival.latest
        assert member.counts
        assert not member.pinned
        assert member.timing.start is None
        assert move.old_anchor == member.interval.anchor
        following = runs_between(member, arrival.now + 1, arrival.now + 3 * every_s)[0]
        assert following == move.current_time
        assert following > arrival.now + SOON_S
        assert arrival.now + PRE_SCHEDULE_S < move.proposed_time <= arrival.latest[move.key]
        first = runs_between(after, arrival.now - DAY_S, arrival.now + 3 * every_s)[0]
        assert first == move.proposed_time
        if member.window is not None:
            local = (first + load_zone(member.timing.zone).offset_at(first)) % DAY_S
            assert local >= NIGHT.start_s or local < NIGHT.end_s
    assert arrival.load.members == before


@any_arrival
@given(arrivals())
def test_a_set_is_never_less_even_in_slots_and_then_minutes_than_placed_one_by_one(
    arrival: Arrival,
) -> None:
    one_by_one = arrival.load.rhythm_day(), arrival.load.rhythm_week()
    arrival.carry_out(arrival.improve())
    assert_as_even(arrival, *one_by_one)


@any_arrival
@given(arrivals(), st.randoms(use_true_random=False))
def test_equal_sets_get_equal_moves_whatever_the_order_in_which_they_were_put(
    arrival: Arrival, shuffle: random.Random
) -> None:
    members: list[Member] = list(arrival.load.members.values())
    shuffle.shuffle(members)
    again = LoadMap(arrival.now)
    for member in members:
        again.put(member)
    names = list(arrival.latest)
    shuffle.shuffle(names)
    latest = {name: arrival.latest[name] for name in names}
    assert Arrival(again, latest, arrival.now).improve() == arrival.improve()


@any_arrival
@given(arrivals())
def test_an_improved_set_improved_again_stays_at_least_as_even(arrival: Arrival) -> None:
    """The set is still open: what it holds may move again until it has been quiet."""
    arrival.carry_out(arrival.improve())
    once = arrival.load.rhythm_day(), arrival.load.rhythm_week()
    arrival.carry_out(arrival.improve())
    assert_as_even(arrival, *once)


def weighted(seed: int, count: int = 200) -> list[Member]:
    rng = random.Random(seed)
    return [
        every(
            rng.choice([1, 2, 3, 4, 6, 12, 24]) * HOUR_S,
            key=f"ns/{n:03}",
            weight=min(1000, max(1, round(10 * rng.lognormvariate(0, 1)))),
        )
        for n in range(count)
    ]


def together(given_members: list[Member], now: Instant) -> LoadMap:
    load = LoadMap(now)
    for member in given_members:
        place_into(load, member, now)
    latest = {member.key: now + member.interval.every_s for member in given_members}
    arrival = Arrival(load, latest, now)
    arrival.carry_out(arrival.improve())
    return load


def test_a_set_gets_as_even_as_a_rebalance_would_make_it_whatever_the_order() -> None:
    now = A_MORNING_IN_MARCH
    given_members = weighted(seed=1)
    load = together(given_members, now)
    plan = plan_rebalance(load, now, Limits(PRE_SCHEDULE_S))
    reached = load.distribution(now).peak_to_mean
    assert reached <= plan.projected.peak_to_mean * 1.02
    backwards = together(given_members[::-1], now)
    assert backwards.distribution(now).peak_to_mean <= reached * 1.02
    twice = together([*given_members, *given_members], now)
    assert twice.distribution(now).peak_to_mean <= reached * 1.02


def test_a_set_of_hourly_intervals_gives_each_minute_as_many_and_each_second_one() -> None:
    now = A_MORNING_IN_MARCH
    load = together([every(HOUR_S, key=f"ns/{n:03}") for n in range(240)], now)
    assert (load.rhythm_day().minutes == 4).all()
    assert load.rhythm_seconds().max() == 1
