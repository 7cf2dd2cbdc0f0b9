"""The starts of each minute, as phases are compared by them.

`place` and `inside_slot` use it. Fixed schedules stand at full hours, a hundred in one minute, and
cannot be moved. An interval of 7 minutes meets such a minute with any phase. If the highest minute
alone decided, all phases would look alike to it. So the starts of fixed schedules count only up to
the mean here; but a minute that would become the busiest of all is dearer than any other.
"""

import numpy as np

from evenkeel.balance import pattern
from evenkeel.balance.day_load import MINUTE_S, Ints, Rhythm
from evenkeel.balance.score import unevenness
from evenkeel.model import Instant

BUSIEST = 1 << 24
"""What a minute costs that is as busy already as the fixed schedules alone make the busiest one."""


class Minutes:
    """Starts of each minute of a day or a week that repeats."""

    def __init__(self, rhythm: Rhythm, origin: Instant, *, more: int = 0) -> None:
        """`more` starts will be added: they count for the mean."""
        self.starts: Ints = rhythm.minutes.copy()
        self._origin = origin
        mean = -(-(int(rhythm.minutes.sum()) + more) // len(rhythm.minutes))
        self.mean = max(1, mean)
        """The mean rounded up: no arrangement has a lower busiest minute."""
        self._beyond_mean: Ints = np.maximum(rhythm.fixed - self.mean, 0)
        fixed_alone = int(rhythm.fixed.max())
        self._busiest = fixed_alone if fixed_alone > self.mean else None

    def copy(self) -> "Minutes":
        """An independent copy."""
        made = object.__new__(Minutes)
        made.starts = self.starts.copy()
        made.mean, made._origin = self.mean, self._origin
        made._beyond_mean, made._busiest = self._beyond_mean, self._busiest
        return made

    def add(self, first: Instant, every_s: int, sign: int = 1) -> None:
        """Add or remove the starts of one phase."""
        count = len(self.starts)
        second = first - self._origin
        if every_s > count * MINUTE_S:
            self.starts[second // MINUTE_S % count] += sign
        elif every_s % MINUTE_S == 0:
            self.starts[second % every_s // MINUTE_S :: every_s // MINUTE_S] += sign
        else:
            hit = np.arange(second % every_s, count * MINUTE_S, every_s) // MINUTE_S
            np.add.at(self.starts, hit, sign)

    def met(self, choices: Ints, every_s: int) -> pattern.PhaseLoads:
        """What each of these first runs would meet."""
        costs = self.starts - self._beyond_mean
        if self._busiest is not None:
            costs[self.starts >= self._busiest] += BUSIEST
        phases = (choices - self._origin) % every_s // MINUTE_S * MINUTE_S
        return pattern.starts_by_minute(costs, phases, every_s)

    def rank(self) -> tuple[int, int, int]:
        """The busiest minute of all, then without what only fixed schedules make, and the
        unevenness: less is better."""
        even = self.starts - self._beyond_mean
        return int(self.starts.max()), int(even.max()), unevenness(even)
