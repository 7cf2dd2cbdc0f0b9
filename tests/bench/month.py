"""How even the load stays for a month in which schedules come and go, and nobody rebalances.

500 schedules as people write them arrive together; then ten come and ten go every day, at any time.
Each newcomer is placed once, by the load that it finds. Beside the month stands a fresh set: the
same schedules, applied together today.
"""

from collections.abc import Iterator
from typing import Any

from tests.people import A_FIFTH, Day, a_month, as_a_set, by_minute, is_placed, starts

from evenkeel.balance import LoadMap
from evenkeel.model import DAY_S, Instant

SEEDS = 3
LOOKED_AT_EVERY = 5
"""Days."""


def rows() -> Iterator[dict[str, Any]]:
    for fixed_share, kind in ((0, "500"), (A_FIFTH, "500 with a fifth of fixed crons")):
        found = [
            compared(day)
            for seed in range(SEEDS)
            for day in a_month(seed=seed, fixed_share=fixed_share)
            if day.number % LOOKED_AT_EVERY == 0
        ]
        for name, figure in (("busiest minute of placed starts", 0), ("peak/mean of the slots", 1)):
            pairs = [each[figure] for each in found]
            worst = max(pairs, key=lambda pair: pair[0] / pair[1])
            yield {
                "name": f"{kind} through a month: {name}",
                "value": worst[0] / worst[1],
                "unit": "times that of a fresh set, at worst",
                "then": worst[0],
                "fresh": worst[1],
                "on_average": sum(then / fresh for then, fresh in pairs) / len(pairs),
            }


def compared(day: Day) -> tuple[tuple[float, float], tuple[float, float]]:
    """(busiest minute, that of a fresh set), and the same for peak/mean. Counted in the second day,
    when all schedules of the fresh set run."""
    fresh = as_a_set([each.member for each in day.there], day.now)
    then_s = day.now + DAY_S
    loads = (day.load.snapshot(), fresh)
    minutes = [busiest_minute(load, then_s) for load in loads]
    slots = [load.distribution(then_s).peak_to_mean for load in loads]
    return (minutes[0], minutes[1]), (slots[0], slots[1])


def busiest_minute(load: LoadMap, now: Instant) -> int:
    """Of the placed starts of 24 hours."""
    placed = [member for member in load.members.values() if is_placed(member)]
    return int(by_minute(starts(placed, now // 60 * 60, now // 60 * 60 + DAY_S)).max())
