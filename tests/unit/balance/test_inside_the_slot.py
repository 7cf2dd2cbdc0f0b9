"""Inside the best slots the best minute, inside that the best second: compared with a slow form."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.balance.members import (
    A_MORNING_IN_MARCH,
    MINUTE_S,
    SLOT_S,
    every,
    fixed,
    place_into,
)
from tests.unit.balance.slow import SlowRule

from evenkeel.balance import LoadMap
from evenkeel.model import Cron, Instant

PERIODS_MIN = [5, 7, 15, 20, 25, 60, 90, 100, 180, 720, 1440, 2160, 10_080]
CRONS = ["*/5 * * * *", "0 * * * *", "0,30 2 * * *", "15 */6 * * *"]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(A_MORNING_IN_MARCH, A_MORNING_IN_MARCH + SLOT_S),
    st.lists(
        st.tuples(
            st.sampled_from(PERIODS_MIN),
            st.integers(1, 20),
            st.sampled_from([0, 0, 60, 1000, 4000]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.sampled_from(CRONS), max_size=3),
    st.sampled_from([*PERIODS_MIN, 2, 61]),
    st.sampled_from([0, 0, 30, 600, 5000]),
)
def test_the_slot_comes_first_then_the_minute_then_the_second(
    now: Instant,
    others: list[tuple[int, int, int]],
    crons: list[str],
    every_min: int,
    lasts_s: int,
) -> None:
    load = LoadMap(now)
    for n, cron in enumerate(crons):
        load.put(replace(fixed(Cron(cron), key=f"ns/cron-{n}", weight=3), lasts_s=400 * n))
    for n, (minutes, weight, others_last_s) in enumerate(others):
        member = every(minutes * MINUTE_S, key=f"ns/{n}", weight=weight)
        place_into(load, replace(member, lasts_s=others_last_s), now)
    rule = SlowRule(list(load.members.values()), every_min * MINUTE_S, now)
    newcomer = replace(every(every_min * MINUTE_S, key="ns/new"), lasts_s=lasts_s)
    found, _ = place_into(load, newcomer, now)
    assert found.first_run == rule.first_run(now, lasts_s=lasts_s)
