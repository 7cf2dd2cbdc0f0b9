"""Lists the first runs that an interval may have, and finds the least used second of a minute.

`place` and `arrange` call these functions. What load a start would add to, `pattern` computes.
"""

import numpy as np
import numpy.typing as npt

from evenkeel.balance import pattern
from evenkeel.balance.daytime import inside
from evenkeel.model import DAY_S, Instant, Window
from evenkeel.when.zone import Zone

Ints = npt.NDArray[np.int64]

MINUTE_S = 60

BY_SECONDS_BELOW_S = 120
"""A shorter interval has one minute to choose from, or none: the starts are seconds then."""

STARTS_MAX = 1440
"""As many minutes as a day has. Of a longer interval only every n-th minute is a start."""


def starts(low: Instant, high: Instant, every_s: int, *, window: Window | None, zone: Zone) -> Ints:
    """The possible first runs in [low, high], ascending: whole minutes inside the window, or
    seconds for very short intervals."""
    if every_s < BY_SECONDS_BELOW_S:
        return np.arange(low, high + 1)
    first = -(-low // MINUTE_S) * MINUTE_S
    if window is None and every_s <= DAY_S and pattern.has_hit_table(every_s):
        # All minutes of a block hit the same slots: the earliest one is enough.
        width = pattern.block_of(every_s)
        later = np.arange(first // width * width + width, high + 1, width)
        return np.concatenate(([first], later)) if first <= high else later
    minutes = np.arange(first, high + 1, MINUTE_S)
    if window is not None:
        minutes = minutes[inside(window, zone, minutes)]
    if len(minutes) > STARTS_MAX:
        minutes = minutes[np.arange(STARTS_MAX) * len(minutes) // STARTS_MAX]
    return minutes


def least_used(seconds: npt.NDArray[np.int32], choices: Ints, every_s: int) -> int:
    """The place of the choice whose seconds of the day have the fewest runs; the first of equal
    ones. Choices are seconds after the start of the day."""
    rows = DAY_S // every_s
    phases = choices % min(every_s, DAY_S)
    if every_s < BY_SECONDS_BELOW_S and rows * every_s == DAY_S:
        peak, total = pattern.peaks_and_totals(seconds[:-1].reshape(rows, every_s))
        return pattern.least_loaded(pattern.PhaseLoads(peak[phases], total[phases]))
    if rows and rows * every_s == DAY_S and phases[-1] - phases[0] == len(choices) - 1:
        starts_then = seconds[:-1].reshape(rows, every_s)[:, phases[0] : phases[-1] + 1]
    else:
        steps = np.arange(0, DAY_S, every_s)
        starts_then = seconds[np.minimum(phases + steps[:, None], DAY_S)]
    return pattern.least_loaded(pattern.peaks_and_totals(starts_then))
