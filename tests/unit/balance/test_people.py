"""Schedules as people write them: even to the minute, for a month, and by how long runs last."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.people import (
    A_FIFTH,
    A_MORNING_IN_MARCH,
    HOUR_S,
    WEEK_S,
    Written,
    a_month,
    as_a_set,
    by_minute,
    is_placed,
    one_by_one,
    people,
    running,
    starts,
)

from evenkeel.balance import LoadMap
from evenkeel.model import DAY_S, SLOT_S, Instant

TODAY: Instant = A_MORNING_IN_MARCH // SLOT_S * SLOT_S


def busiest_minute(load: LoadMap, begin: Instant) -> int:
    """Of the placed starts of 24 hours."""
    placed = [member for member in load.members.values() if is_placed(member)]
    return int(by_minute(starts(placed, begin, begin + DAY_S)).max())


@pytest.mark.parametrize("later_s", [0, DAY_S, WEEK_S], ids=["today", "tomorrow", "in a week"])
def test_a_set_of_285_has_no_minute_much_busier_than_the_mean(later_s: int) -> None:
    load = as_a_set([each.member for each in people(285, seed=1)], A_MORNING_IN_MARCH)
    begin = TODAY + later_s
    mean = math.ceil(starts(list(load.members.values()), begin, begin + DAY_S).sum() / 1440)
    assert busiest_minute(load, begin) <= mean + 2


def test_minutes_in_which_fixed_schedules_start_get_no_more() -> None:
    given = people(285, seed=1, fixed_share=A_FIFTH)
    load = as_a_set([each.member for each in given], A_MORNING_IN_MARCH)
    fixed = [each.original for each in given if each.is_fixed]
    alone = by_minute(starts(fixed, TODAY, TODAY + DAY_S))
    everything = by_minute(starts(list(load.members.values()), TODAY, TODAY + DAY_S))
    assert everything.max() == alone.max() > 2 * busiest_minute(load, TODAY)


@pytest.mark.parametrize("fixed_share", [0, A_FIFTH])
def test_a_month_of_comings_and_goings_leaves_the_load_as_even_as_a_fresh_set(
    fixed_share: float,
) -> None:
    *_, last = a_month(seed=1, fixed_share=fixed_share)
    fresh = as_a_set([each.member for each in last.there], last.now)
    tomorrow = (last.now // SLOT_S) * SLOT_S + DAY_S
    assert busiest_minute(last.load, tomorrow) <= 1.3 * busiest_minute(fresh, tomorrow)
    then, now = last.load.distribution(tomorrow), fresh.distribution(tomorrow)
    assert then.peak_to_mean <= 1.3 * now.peak_to_mean


def at_once(load: LoadMap, given: Sequence[Written]) -> float:
    """Peak to mean of the runs that run at once, by what each really lasts."""
    lasts_s = {each.key: each.lasts_s for each in given}
    there = [replace(member, lasts_s=lasts_s[member.key]) for member in load.members.values()]
    count = running(there, TODAY + 2 * DAY_S, TODAY + 3 * DAY_S)
    return float(count.max() / count.mean())


def test_known_durations_lower_the_peak_of_what_runs_at_once() -> None:
    learned, ignored = [], []
    mix = tuple((hours * HOUR_S, 1) for hours in (6, 8, 12, 24))
    for seed in range(4):
        given = people(200, seed=seed, mix=mix)
        lasts = 600 * np.random.default_rng(seed).lognormal(0, 1.5, len(given))
        given = [
            replace(each, lasts_s=min(each.every_s, round(float(lasts_s))))
            for each, lasts_s in zip(given, lasts, strict=True)
        ]
        known = [each.member for each in given]
        unknown = [replace(each, lasts_s=0).member for each in given]
        learned.append(at_once(one_by_one(known, A_MORNING_IN_MARCH), given))
        ignored.append(at_once(one_by_one(unknown, A_MORNING_IN_MARCH), given))
    assert statistics.mean(learned) <= 0.85 * statistics.mean(ignored)
