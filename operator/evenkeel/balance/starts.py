"""Which first runs an interval may have, and which second of a minute is the quietest.

Called by `place` and `arrange`; `pattern` says what the slots behind a start carry.
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
"""A shorter interval hardly has a whole minute to choose: it chooses among seconds."""

STARTS_MAX = 1440
"""A minute of a day each: longer intervals look at every n-th minute."""


def starts(low: Instant, high: Instant, every_s: int, *, window: Window | None, zone: Zone) -> Ints:
    """The first runs to choose from in [low, high], ascending: whole minutes inside the window."""
    if every_s < BY_SECONDS_BELOW_S:
        return np.arange(low, high + 1)
    first = -(-low // MINUTE_S) * MINUTE_S
    if window is None and every_s <= DAY_S and pattern.has_table(every_s):
        # Of the minutes of a block all meet the same load, and the earliest wins.
        width = pattern.block_of(every_s)
        later = np.arange(first // width * width + width, high + 1, width)
        return np.concatenate(([first], later)) if first <= high else later
    minutes = np.arange(first, high + 1, MINUTE_S)
    if window is not None:
        minutes = minutes[inside(window, zone, minutes)]
    if len(minutes) > STARTS_MAX:
        minutes = minutes[np.arange(STARTS_MAX) * len(minutes) // STARTS_MAX]
    return minutes


def quietest(seconds: npt.NDArray[np.int32], choices: Ints, every_s: int) -> int:
    """Which of the choices (seconds after the picture's start) is least used by any run of the
    day that it would meet; the first of equals."""
    rows = DAY_S // every_s
    phases = choices % min(every_s, DAY_S)
    if every_s < BY_SECONDS_BELOW_S and rows * every_s == DAY_S:
        peak, total = pattern.over_rows(seconds[:-1].reshape(rows, every_s))
        return pattern.least(pattern.Burden(peak[phases], total[phases]))
    if rows and rows * every_s == DAY_S and phases[-1] - phases[0] == len(choices) - 1:
        met = seconds[:-1].reshape(rows, every_s)[:, phases[0] : phases[-1] + 1]
    else:
        steps = np.arange(0, DAY_S, every_s)
        met = seconds[np.minimum(phases + steps[:, None], DAY_S)]
    return pattern.least(pattern.over_rows(met))
