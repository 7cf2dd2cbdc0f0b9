"""Lists the first runs that an interval may have.

`place` and `arrange` call these functions. What load a start would meet, `pattern` computes.
"""

import numpy as np

from evenkeel.balance import pattern
from evenkeel.balance.day_load import MINUTE_S, Ints
from evenkeel.balance.daytime import inside
from evenkeel.balance.nouns import WEEK_S
from evenkeel.model import Instant, Window
from evenkeel.when.zone import Zone

BY_SECONDS_BELOW_S = 120
"""A shorter interval has one minute to choose from, or none: the starts are seconds then."""

MINUTES_MAX = 1440
"""As many minutes as a day has. Of more, only every n-th minute is compared."""


def minutes(
    low: Instant, high: Instant, every_s: int, *, window: Window | None, zone: Zone
) -> Ints:
    """The possible first runs in [low, high], ascending: whole minutes inside the window, or
    seconds for very short intervals. Of intervals of more than 7 days those of the first 7 days:
    later ones meet the same load."""
    if every_s < BY_SECONDS_BELOW_S:
        return np.arange(low, high + 1)
    if every_s > WEEK_S:
        high = min(high, low + WEEK_S)
    found = np.arange(-(-low // MINUTE_S) * MINUTE_S, high + 1, MINUTE_S)
    return found[inside(window, zone, found)] if window is not None else found


def one_of_each_block(
    low: Instant, high: Instant, every_s: int, *, window: Window | None, zone: Zone
) -> Ints:
    """The possible first runs, but of the minutes that hit the same slots only the earliest, where
    these are easily told."""
    if window is not None or every_s > WEEK_S or not pattern.has_hit_table(every_s):
        return thinned(minutes(low, high, every_s, window=window, zone=zone))
    first = low if every_s < BY_SECONDS_BELOW_S else -(-low // MINUTE_S) * MINUTE_S
    width = pattern.block_of(every_s)
    later = np.arange(first // width * width + width, high + 1, width)
    return np.concatenate(([first], later)) if first <= high else later


def thinned(choices: Ints) -> Ints:
    """At most `MINUTES_MAX` of them, evenly spread."""
    if len(choices) <= MINUTES_MAX:
        return choices
    return choices[np.arange(MINUTES_MAX) * len(choices) // MINUTES_MAX]
