"""The busiest minute, the busiest second and the concurrency, compared with a plain count of all
runs of the day."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    HOUR_S,
    MINUTE_S,
    every,
    fixed,
    runs_between,
)

from evenkeel.balance import Distribution, LoadMap, Member
from evenkeel.balance.measures import NAMED_AT_MOST, running_at_once
from evenkeel.model import DAY_S, SLOT_S, Cron, Interval

START = A_MORNING_IN_MARCH // SLOT_S * SLOT_S
MIDNIGHT = -(-START // DAY_S) * DAY_S


def shown(members: list[Member]) -> Distribution:
    load = LoadMap(A_MORNING_IN_MARCH)
    load.put_all(members)
    return load.distribution(A_MORNING_IN_MARCH)


def due(member: Member) -> list[int]:
    return runs_between(member, START, START + DAY_S)


def lasting(member: Member, seconds: int) -> Member:
    return replace(member, lasts_s=seconds)


# --- minute and second ------------------------------------------------------------------------


@st.composite
def member(draw: st.DrawFn, key: str) -> Member:
    anchor = START - draw(st.integers(0, 2 * HOUR_S))
    every_s = draw(st.sampled_from([45, 7 * MINUTE_S, HOUR_S, 90 * MINUTE_S, DAY_S]))
    minutes = draw(st.sampled_from(["0", "0,1", "*/20", "*"]))
    made = draw(
        st.sampled_from(
            [
                every(every_s, key=key, anchor=anchor),
                every(every_s, key=key, anchor=anchor, pinned=True),
                every(every_s, key=key, anchor=anchor, counts=False),
                fixed(Cron(f"{minutes} * * * *"), key=key),
                fixed(Interval(every_s, 0, anchor), key=key),
            ]
        )
    )
    return lasting(made, draw(st.sampled_from([0, 0, 1, 59, 50_000, DAY_S, 200_000])))


sets = st.integers(0, 6).flatmap(
    lambda count: st.tuples(*(member(f"ns/{n}") for n in range(count))).map(list)
)


@given(sets)
def test_both_are_what_a_plain_count_of_the_runs_finds(members: list[Member]) -> None:
    counting = [member for member in members if member.counts]
    found = shown(members)
    for busiest, width_s in ((found.busiest_minute, MINUTE_S), (found.busiest_second, 1)):
        starts = Counter(at // width_s * width_s for each in counting for at in due(each))
        most = max(starts.values(), default=0)
        at = min((at for at in starts if starts[at] == most), default=START)
        behind = sorted(each.key for each in counting if range_of(due(each), at, width_s))
        alone = Counter(
            at // width_s * width_s
            for each in counting
            if each.placed_at is None or each.pinned
            for at in due(each)
        )
        fixed_alone = max(alone.values(), default=0)
        assert (busiest.starts, busiest.at) == (most, at)
        assert (busiest.schedules, list(busiest.keys)) == (len(behind), behind)
        assert busiest.fixed_alone == fixed_alone
        mean_rounded_up = -(-sum(starts.values()) * width_s // DAY_S)
        assert busiest.bound == max(fixed_alone, mean_rounded_up) <= max(most, 0)


def range_of(instants: list[int], at: int, width_s: int) -> list[int]:
    return [each for each in instants if at <= each < at + width_s]


def test_fixed_schedules_alone_bound_what_placing_can_reach() -> None:
    crons = [fixed(Cron("0 * * * *"), key=f"ns/cron-{n}") for n in range(7)]
    placed = [
        every(HOUR_S, key=f"ns/placed-{n}", anchor=MIDNIGHT - HOUR_S + 61 * n) for n in range(9)
    ]
    found = shown([*crons, *placed])
    assert found.busiest_minute.starts == 8  # the crons, and one placed in their minute
    assert (found.busiest_minute.fixed_alone, found.busiest_minute.bound) == (7, 7)
    assert found.busiest_minute.at % HOUR_S == 0


def test_a_short_interval_starts_more_than_once_in_a_minute() -> None:
    found = shown([every(20, anchor=START - 20)])
    assert (found.busiest_minute.starts, found.busiest_minute.schedules) == (3, 1)
    assert (found.busiest_minute.bound, found.busiest_second.bound) == (3, 1)


def test_only_the_first_keys_are_named_and_all_are_counted() -> None:
    members = [fixed(Cron("0 4 * * *"), key=f"ns/{n:02}") for n in range(25)]
    found = shown(members).busiest_minute
    assert found.keys == tuple(f"ns/{n:02}" for n in range(NAMED_AT_MOST))
    assert (found.schedules, found.starts) == (25, 25)


def test_an_empty_day_has_no_busy_minute() -> None:
    found = shown([])
    for busiest in (found.busiest_minute, found.busiest_second):
        assert (busiest.starts, busiest.bound, busiest.schedules) == (0, 0, 0)
        assert busiest.at == START


# --- concurrency ------------------------------------------------------------------------------


@given(sets)
def test_concurrency_is_what_a_plain_count_of_each_run_finds(members: list[Member]) -> None:
    counting = [member for member in members if member.counts]
    found = shown(members).concurrency
    if not any(each.lasts_s for each in counting):
        assert found is None
        return
    changes = np.zeros(DAY_S + 1, np.int64)
    for each in counting:
        for began in due(each):
            left_s, at = each.lasts_s, began - START
            while left_s:  # from here to the end of the day, then again from its beginning
                part_s = min(left_s, DAY_S - at)
                changes[at] += 1
                changes[at + part_s] -= 1
                left_s, at = left_s - part_s, 0
    running = np.cumsum(changes)[:-1]
    assert found is not None
    assert found.peak == running.max() == running[found.at - START]
    assert found.mean == pytest.approx(running.mean())
    assert found.unknown == sum(not each.lasts_s for each in counting)


def test_a_run_of_before_midnight_still_goes_on_after_midnight() -> None:
    running = running_at_once(np.array([DAY_S - 600]), np.array([1800]))
    assert running[:1200].tolist() == [1] * 1200
    assert running[1200 : DAY_S - 600].max() == 0
    assert running[DAY_S - 600 :].min() == 1


def test_a_run_of_more_than_a_day_goes_on_beside_the_next_one() -> None:
    running = running_at_once(np.array([0]), np.array([DAY_S + HOUR_S]))
    assert running[:HOUR_S].tolist() == [2] * HOUR_S
    assert running[HOUR_S:].tolist() == [1] * (DAY_S - HOUR_S)


def test_how_many_have_no_duration_is_said() -> None:
    known = lasting(fixed(Cron("0 * * * *"), key="ns/known"), 120)
    found = shown([known, fixed(Cron("* * * * *"), key="ns/unknown")]).concurrency
    assert found is not None
    assert (found.peak, found.unknown) == (1, 1)
    assert found.mean == pytest.approx(24 * 120 / DAY_S)
