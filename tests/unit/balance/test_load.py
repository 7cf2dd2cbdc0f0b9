"""The load of each slot equals a recount, whatever schedules were added, changed and deleted."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    SLOT_S,
    every,
    fixed,
    recounted,
    runs_between,
)

from evenkeel.balance import LoadMap, Member
from evenkeel.model import DAY_S, At, Cron, Hourly, Instant, Interval

BEFORE_SPRING_IN_BERLIN: Instant = 1_806_150_000  # 2027-03-27T13:00:00Z, 12 h before 02:00 is gone
INTERVALS_S = [
    20, 90, 7 * MINUTE_S, 15 * MINUTE_S, 25 * MINUTE_S, HOUR_S, 3601, 100 * MINUTE_S, 12 * HOUR_S,
    DAY_S, 36 * HOUR_S, 3 * DAY_S, 7 * DAY_S, 10 * DAY_S,
]  # fmt: skip
CRONS = ["*/5 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * 1", "H H * * *", "17 3 1 * *"]
ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe"]


@st.composite
def members(draw: st.DrawFn, now: Instant) -> Member:
    key = f"ns/{draw(st.sampled_from('abcdefgh'))}"
    weight = draw(st.integers(1, 1000))
    zone = draw(st.sampled_from(ZONES))
    match draw(st.sampled_from(["placed", "placed", "interval", "cron", "hourly", "at"])):
        case "placed":
            every_s = draw(st.sampled_from(INTERVALS_S))
            anchor = now + draw(st.integers(-every_s, every_s // 2))
            return every(
                every_s,
                key=key,
                anchor=anchor,
                weight=weight,
                zone=zone,
                counts=draw(st.sampled_from([True, True, True, False])),
                placed_at=draw(st.sampled_from([now, anchor])),
            )
        case "interval":
            every_s = draw(st.sampled_from(INTERVALS_S))
            rule = Interval(every_s, draw(st.integers(0, every_s - 1)), None)
            return fixed(rule, key=key, weight=weight, zone=zone)
        case "cron":
            return fixed(Cron(draw(st.sampled_from(CRONS))), key=key, weight=weight, zone=zone)
        case "hourly":
            return fixed(Hourly(draw(st.integers(0, 59))), key=key, weight=weight, zone=zone)
        case _:
            return fixed(At(now + draw(st.integers(1, 2 * DAY_S))), key=key, weight=weight)


def assert_equals_a_recount(load: LoadMap, now: Instant) -> None:
    shown = load.distribution(now)
    there = list(load.members.values())
    assert list(shown.slots) == recounted(there, now)
    fresh = LoadMap(now)
    fresh.put_all(there)
    assert fresh.distribution(now) == shown
    assert (fresh.day.seconds == load.day.seconds).all()
    assert (fresh.rhythm_seconds() == load.rhythm_seconds()).all()
    for one, other in (
        (fresh.rhythm_day(), load.rhythm_day()),
        (fresh.rhythm_week(), load.rhythm_week()),
    ):
        assert all((mine == theirs).all() for mine, theirs in zip(one, other, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([A_MORNING_IN_MARCH, BEFORE_SPRING_IN_BERLIN]), st.booleans())
def test_the_slots_always_equal_a_recount_from_scratch(
    data: st.DataObject, now: Instant, sees_a_week: bool
) -> None:
    load = LoadMap(now)
    for _ in range(data.draw(st.integers(1, 12))):
        match data.draw(st.sampled_from(["put", "put", "put", "drop", "advance", "look"])):
            case "put":
                load.put(data.draw(members(now)))
            case "drop":
                load.drop(f"ns/{data.draw(st.sampled_from('abcdefgh'))}")
            case "advance":
                now += data.draw(
                    st.sampled_from([1, SLOT_S, 5 * SLOT_S, HOUR_S, 23 * HOUR_S, DAY_S, -HOUR_S])
                )
                load.advance(now)
            case _ if sees_a_week:
                load.rhythm_week()
    assert_equals_a_recount(load, now)


@settings(max_examples=30, deadline=None)
@given(st.lists(members(A_MORNING_IN_MARCH), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_the_calls_does_not_change_the_load(
    given_members: list[Member], shuffle: random.Random
) -> None:
    one_of_each = list({member.key: member for member in given_members}.values())
    shuffled = list(one_of_each)
    shuffle.shuffle(shuffled)
    shown = []
    for order in (one_of_each, shuffled):
        load = LoadMap(A_MORNING_IN_MARCH)
        for member in order:
            load.put(member)
        shown.append(load.distribution(A_MORNING_IN_MARCH))
    assert shown[0] == shown[1]


def test_a_suspended_schedule_counts_as_a_job_but_has_no_load() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(every(HOUR_S, anchor=A_MORNING_IN_MARCH, counts=False))
    shown = load.distribution(A_MORNING_IN_MARCH)
    assert (shown.total_jobs, sum(shown.slots)) == (1, 0)


def test_the_same_member_again_changes_nothing() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(every(HOUR_S, anchor=A_MORNING_IN_MARCH))
    version = load.version
    load.put(every(HOUR_S, anchor=A_MORNING_IN_MARCH))
    assert load.version == version


def test_a_week_of_daily_steps_leaves_no_trace_of_the_days_passed() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put(every(36 * HOUR_S, anchor=A_MORNING_IN_MARCH, weight=7))
    load.put(fixed(Cron("0 0 * * 1"), weight=5))
    for step in range(7 * 96):
        load.advance(A_MORNING_IN_MARCH + step * SLOT_S)
    assert_equals_a_recount(load, A_MORNING_IN_MARCH + (7 * 96 - 1) * SLOT_S)


def test_an_interval_of_more_than_a_week_counts_once_in_the_week() -> None:
    load = LoadMap(A_MORNING_IN_MARCH)
    member = every(30 * DAY_S, anchor=A_MORNING_IN_MARCH - 5 * DAY_S, weight=3)
    load.put(member)
    week = load.rhythm_week().work // 15
    due = runs_between(member, A_MORNING_IN_MARCH, A_MORNING_IN_MARCH + 60 * DAY_S)[0]
    assert week.sum() == 3
    assert week[(due - load.start) // SLOT_S % 672] == 3


class TestShown:
    """The distribution, as people see it."""

    def test_hours_are_those_of_the_utc_day(self) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        load.put(fixed(Cron("0,30 13 * * *"), key="ns/twice", weight=2))
        load.put(fixed(Cron("5 10 * * *"), key="ns/just-past-but-in-the-slot"))
        load.put(fixed(Cron("50 9 * * *"), key="ns/tomorrow"))
        shown = load.distribution(A_MORNING_IN_MARCH)
        seen = {(h.hour, h.job_count, h.run_count) for h in shown.hourly if h.job_count}
        assert seen == {(13, 1, 2), (10, 1, 1), (9, 1, 1)}
        assert [h.hour for h in shown.hourly] == list(range(24))
        assert (shown.peak_hour, shown.peak_count) == (13, 2)

    def test_of_equal_hours_the_earliest_is_the_peak(self) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        load.put(fixed(Cron("0 20,4 * * *")))
        assert load.distribution(A_MORNING_IN_MARCH).peak_hour == 4

    def test_the_peak_hour_goes_by_weight_and_its_count_by_runs(self) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        load.put(fixed(Cron("0 3 * * *"), key="ns/heavy", weight=10))
        load.put(fixed(Cron("*/10 5 * * *"), key="ns/many", weight=1))
        shown = load.distribution(A_MORNING_IN_MARCH)
        assert (shown.peak_hour, shown.peak_count) == (3, 1)

    def test_an_empty_load_is_even(self) -> None:
        shown = LoadMap(A_MORNING_IN_MARCH).distribution(A_MORNING_IN_MARCH)
        assert (shown.distribution_score, shown.peak_to_mean, shown.lower_bound) == (1, 1, 1)
        assert shown.suggestion == "acceptable"

    @pytest.mark.parametrize(
        ("placed", "suggestion"),
        [
            pytest.param(
                True, "degraded, consider rebalancing: peak 96 -> at best 24", id="could be moved"
            ),
            pytest.param(False, "acceptable", id="its owners fixed it"),
        ],
    )
    def test_a_rebalance_is_suggested_by_what_it_could_gain(
        self, placed: bool, suggestion: str
    ) -> None:
        load = LoadMap(A_MORNING_IN_MARCH)
        anchor = A_MORNING_IN_MARCH // DAY_S * DAY_S
        for n in range(96):
            load.put(
                every(HOUR_S, key=f"ns/{n}", anchor=anchor)
                if placed
                else fixed(Interval(HOUR_S, 0, anchor), key=f"ns/{n}")
            )
        assert load.distribution(A_MORNING_IN_MARCH).suggestion == suggestion

    def test_a_rebalance_is_suggested_for_a_busy_minute_in_even_slots(self) -> None:
        """As it was when all starts of a slot lay in its first minute."""
        even = LoadMap(A_MORNING_IN_MARCH)
        anchor = A_MORNING_IN_MARCH // DAY_S * DAY_S
        for n in range(96):
            even.put(every(HOUR_S, key=f"ns/hourly-{n}", anchor=anchor + n % 4 * 900))
        assert (
            even.distribution(A_MORNING_IN_MARCH).suggestion
            == "degraded, consider rebalancing: busiest minute 24 -> at best 2"
        )
