"""How the benchmarks take time: medians of rounds, and peers measured in the same rounds.

A shared machine is slow in bursts. A median forgets short ones; a peer that ran between our own
rounds met the same long ones, so a ratio survives where milliseconds do not.
"""

import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Work = Callable[[], object]
LONG = "EVENKEEL_BENCH_LONG"
"""Set by --long."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What the rounds of one piece of work took, in seconds a call."""

    rounds_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(self.rounds_s)

    @property
    def median_ms(self) -> float:
        return self.median_s * 1e3

    @property
    def median_us(self) -> float:
        return self.median_s * 1e6


def take(work: Work, *, rounds: int = 15, calls: int = 1) -> Spread:
    """Time `calls` calls, `rounds` times, after one round that nobody counts."""
    return side_by_side({"it": work}, rounds=rounds, calls=calls)["it"]


def side_by_side(
    works: Mapping[str, Work], *, rounds: int = 15, calls: int = 1
) -> dict[str, Spread]:
    """Time several works in the same rounds, in a new random order each round."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    for work in works.values():
        _time(work, calls)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            taken[name].append(_time(works[name], calls))
    return {name: Spread(tuple(rounds_s)) for name, rounds_s in taken.items()}


def percentile(sorted_values: list[float], percent: float) -> float:
    """The value that `percent` of the values do not exceed."""
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * percent / 100))]


def long_form() -> bool:
    """Whether the forms that take minutes more are wanted too."""
    return bool(os.environ.get(LONG))


def say(text: str) -> None:
    """Progress, beside the JSON on standard output."""
    print(text, file=sys.stderr, flush=True)


def _time(work: Work, calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - started) / calls
