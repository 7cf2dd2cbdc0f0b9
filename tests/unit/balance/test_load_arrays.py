"""Slots, minutes, seconds and durations of the load equal a recount, whatever was put and dropped
in between."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    SLOT_S,
    every,
    fixed,
)
from tests.unit.balance.slow import WEEK_S, SlowLoad

from evenkeel.balance import LoadMap, Member
from evenkeel.balance.day_load import Ints
from evenkeel.model import DAY_S, Cron, Hourly, Instant, Interval

INTERVALS_S = [
    90, 7 * MINUTE_S, 25 * MINUTE_S, HOUR_S, 100 * MINUTE_S, 12 * HOUR_S, DAY_S, 36 * HOUR_S,
    3 * DAY_S, 7 * DAY_S, 10 * DAY_S,
]  # fmt: skip
LASTS_S = [0, 0, 1, 59, 600, 900, 4000, 30_000]
NAMES = "abcdefgh"


@st.composite
def members(draw: st.DrawFn, now: Instant) -> Member:
    key = f"ns/{draw(st.sampled_from(NAMES))}"
    weight = draw(st.integers(1, 1000))
    made = fixed(Cron(draw(st.sampled_from(["*/5 * * * *", "30 2 * * *", "0 0 * * 1"]))), key=key)
    match draw(st.sampled_from(["placed", "placed", "interval", "hourly", "cron"])):
        case "placed":
            every_s = draw(st.sampled_from(INTERVALS_S))
            anchor = now + draw(st.integers(-every_s, every_s // 2))
            counts = draw(st.sampled_from([True, True, True, False]))
            made = every(every_s, key=key, anchor=anchor, counts=counts, placed_at=now)
        case "interval":
            every_s = draw(st.sampled_from(INTERVALS_S))
            made = fixed(Interval(every_s, draw(st.integers(0, every_s - 1)), None), key=key)
        case "hourly":
            made = fixed(Hourly(draw(st.integers(0, 59))), key=key)
    return replace(made, weight=weight, lasts_s=draw(st.sampled_from(LASTS_S)))


def counted(values: Ints) -> Counter[int]:
    return Counter({int(at): int(values[at]) for at in values.nonzero()[0]})


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans())
def test_all_arrays_always_equal_a_recount_run_by_run(
    data: st.DataObject, sees_a_week: bool
) -> None:
    now = A_MORNING_IN_MARCH
    load = LoadMap(now)
    for _ in range(data.draw(st.integers(1, 10))):
        match data.draw(st.sampled_from(["put", "put", "put all", "drop", "advance", "look"])):
            case "put":
                load.put(data.draw(members(now)))
            case "put all":
                load.put_all(data.draw(st.lists(members(now), max_size=4)))
            case "drop":
                load.drop(f"ns/{data.draw(st.sampled_from(NAMES))}")
            case "advance":
                now += data.draw(st.sampled_from([1, SLOT_S, 5 * SLOT_S, HOUR_S, 23 * HOUR_S]))
                load.advance(now)
            case _ if sees_a_week:
                load.rhythm_week()
    there = list(load.members.values())
    day = SlowLoad(there, load.start)
    assert counted(load.rhythm_day().work) == day.work
    assert counted(load.rhythm_day().minutes) == day.minutes
    assert counted(load.rhythm_day().fixed) == day.fixed
    assert counted(load.rhythm_seconds()) == day.seconds
    week = SlowLoad(there, load.start, WEEK_S)
    assert counted(load.rhythm_week().work) == week.work
    assert counted(load.rhythm_week().minutes) == week.minutes
    assert counted(load.rhythm_week().fixed) == week.fixed


@settings(max_examples=40, deadline=None)
@given(st.lists(members(A_MORNING_IN_MARCH), max_size=8))
def test_unknown_durations_leave_every_slot_with_its_weight_alone(
    given_members: list[Member],
) -> None:
    load, unknown = LoadMap(A_MORNING_IN_MARCH), LoadMap(A_MORNING_IN_MARCH)
    load.put_all(given_members)
    unknown.put_all([replace(member, lasts_s=0) for member in given_members])
    assert (unknown.day.work == 15 * load.day.slots).all()
    assert (unknown.day.minutes == load.day.minutes).all()
    assert (unknown.day.seconds == load.day.seconds).all()
