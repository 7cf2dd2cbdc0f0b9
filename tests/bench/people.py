"""How even the starts are to the minute and the second, for schedules as people write them.

Twenty seeded sets (`tests/people.py`) each of 50, 285 and 1,000 schedules, without fixed crons and
with a fifth of them, counted run by run over the 24 hours that `evenkeel load` shows. Beside ours
stands the same set placed by a hash of the name (to the second), by Jenkins' `H` (the pattern kept,
the minute by hash) and as crons as people write them. `set_later` is the same set a week on:
periods of 7 and 25 minutes do not divide a day, and shift against the others. The slots are counted
two days on, when all schedules have begun to run.

How busy the busiest minute may be goes by the mean rounded up. As a set: one more, or 5 %; with
fixed crons two more, or 20 %. One by one: 1.25 times, or one more; with fixed crons 1.5 times, or
two more. Where the fixed crons alone have no busier minute than that, this holds for all starts.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tests.people import (
    A_FIFTH,
    A_MORNING_IN_MARCH,
    WEEK_S,
    Written,
    as_a_set,
    by_minute,
    is_placed,
    one_by_one,
    people,
    starts,
)

from evenkeel.balance import LoadMap, Member
from evenkeel.model import DAY_S, SLOT_S

SEEDS = 20
ONE_A_SECOND_UP_TO = 40
"""Starts a minute. In a busier minute the short intervals find no second that is free each time."""

Figures = dict[str, float]


def rows() -> Iterator[dict[str, Any]]:
    for count in (50, 285, 1000):
        for fixed_share in (0, A_FIFTH):
            yield from set_rows(count, fixed_share)


def set_rows(count: int, fixed_share: float) -> Iterator[dict[str, Any]]:
    name = f"{count:,}{' with a fifth of fixed crons' if fixed_share else ''}"
    sets = [people(count, seed=seed, fixed_share=fixed_share) for seed in range(SEEDS)]
    figures = [figures_of(each, fixed=bool(fixed_share)) for each in sets]
    means = {key: round(statistics.mean(each[key] for each in figures), 3) for key in figures[0]}
    ours = ("mean_rounded_up", "set", "set_later", "one_by_one", "hash", "H", "original")
    beside = {key: means[key] for key in ours}
    for text, key in (
        ("as a set", "set"),
        ("as a set, a week later", "set_later"),
        ("one by one", "one_by_one"),
    ):
        yield {
            "name": f"{name}, {text}: busiest minute of placed starts",
            "value": max(each[f"{key}_to_allowed"] for each in figures),
            "unit": "times the allowed, worst seed",
            "worst_seed": max(range(SEEDS), key=lambda n: figures[n][f"{key}_to_allowed"]),
            "seeds_above": sum(each[f"{key}_to_allowed"] > 1 for each in figures),
            **beside,
        }
    yield {
        "name": f"{name}, as a set: busiest second of placed starts",
        "value": max(each["set_second"] for each in figures),
        "unit": "starts, worst seed",
        "in_all_minutes": max(each["set_second_of_all"] for each in figures),
        "hash": means["hash_second"],
        "H": means["H_second"],
        "original": means["original_second"],
    }
    if fixed_share:
        yield {
            "name": f"{name}, as a set: busiest minute of all starts",
            "value": max(
                each["set_all"] / max(each["fixed_alone"], each["set_allowed"]) for each in figures
            ),
            "unit": "times that of the fixed alone, worst seed",
            "all": means["set_all"],
            "fixed_alone": means["fixed_alone"],
        }
    for weighted in (False, True):
        yield from slot_rows(name, count, fixed_share, weighted=weighted)


def figures_of(given: Sequence[Written], *, fixed: bool) -> Figures:
    """What one set gives, in starts."""
    now = A_MORNING_IN_MARCH
    waiting = [each.member for each in given]
    placed = [each for each in given if not each.is_fixed]
    together, apart = as_a_set(waiting, now), one_by_one(waiting, now)
    ours = counted(together)
    found: Figures = {
        "mean_rounded_up": math.ceil(sum(ours) / (DAY_S // 60)),
        "set": by_minute(ours).max(),
        "set_second": ours[np.repeat(by_minute(ours) <= ONE_A_SECOND_UP_TO, 60)].max(),
        "set_second_of_all": ours.max(),
        "set_later": by_minute(counted(together, later_s=WEEK_S)).max(),
        "one_by_one": by_minute(counted(apart)).max(),
    }
    others = {
        "hash": counted(one_by_one(waiting, now, observe=True)),
        "H": day_of([each.hashed for each in placed]),
        "original": day_of([each.original for each in placed]),
    }
    for key, seconds in others.items():
        found[key], found[f"{key}_second"] = by_minute(seconds).max(), seconds.max()
    if fixed:
        alone = day_of([each.original for each in given if each.is_fixed])
        found["fixed_alone"] = by_minute(alone).max()
        found["set_all"] = by_minute(alone + ours).max()
    mean = found["mean_rounded_up"]
    as_set, apart_too = (
        (max(2, 0.2 * mean), max(2, 0.5 * mean))
        if fixed
        else (
            max(1, 0.05 * mean),
            max(1, 0.25 * mean),
        )
    )
    found["set_allowed"] = mean + as_set
    found["set_to_allowed"] = found["set"] / (mean + as_set)
    found["set_later_to_allowed"] = found["set_later"] / (mean + as_set)
    found["one_by_one_to_allowed"] = found["one_by_one"] / (mean + apart_too)
    return {key: float(value) for key, value in found.items()}


def counted(load: LoadMap, *, later_s: int = 0) -> Any:
    """The starts of the placed schedules by second."""
    return day_of([m for m in load.members.values() if is_placed(m)], later_s=later_s)


def day_of(members: Sequence[Member], *, later_s: int = 0) -> Any:
    begin = A_MORNING_IN_MARCH // SLOT_S * SLOT_S + later_s
    return starts(members, begin, begin + DAY_S)


def slot_rows(
    name: str, count: int, fixed_share: float, *, weighted: bool
) -> Iterator[dict[str, Any]]:
    now = A_MORNING_IN_MARCH
    found: dict[str, list[float]] = {"as a set": [], "one by one": []}
    for seed in range(SEEDS):
        given = people(count, seed=seed, fixed_share=fixed_share, weighted=weighted)
        waiting = [each.member for each in given]
        for text, load in (
            ("as a set", as_a_set(waiting, now)),
            ("one by one", one_by_one(waiting, now)),
        ):
            found[text].append(load.distribution(now + 2 * DAY_S).peak_to_mean)
    for text, values in found.items():
        yield {
            "name": f"{name}{' weighted' if weighted else ''}, {text}: slots",
            "value": round(statistics.mean(values), 4),
            "unit": "peak/mean",
            "worst_seed": round(max(values), 4),
        }
