"""Measures the starts of a day by the minute and by the second, and how many runs go on at once.

`report` passes the runs of a day in batches to a `StartCounter`, and then asks for the results.
Weights do not count here: what a minute must bear is starts. Nothing is known of the length of a
run whose member has no `lasts_s`: such a run is left out of the concurrency.
"""

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenkeel.balance.day_load import MINUTE_S, Ints
from evenkeel.balance.nouns import Busiest, Concurrency, Member
from evenkeel.balance.runs import Members, Runs
from evenkeel.model import DAY_S, Instant

Counts = npt.NDArray[np.integer]

NAMED_AT_MOST = 10
"""Schedules named behind a busy minute. More would fill a screen, and a message."""


class StartCounter:
    """Looks at the runs of one day, batch by batch. `seconds` holds the starts in each second."""

    def __init__(
        self,
        members: Members,
        stays: npt.NDArray[np.bool_],
        seconds: npt.NDArray[np.int32],
        start: Instant,
    ) -> None:
        self._members: Sequence[Member] = members.members
        self._stays = stays
        self._start = start
        self._minutes = by_minute(seconds)
        self._seconds = seconds
        self._minute = int(self._minutes.argmax())
        self._second = int(seconds.argmax())
        self._lasts: Ints = np.array([m.lasts_s for m in self._members], np.int64)
        self._any_lasts = bool(self._lasts.any())
        self._fixed: list[Ints] = []
        self._in_minute: list[Ints] = []
        self._in_second: list[Ints] = []
        self._began: list[Ints] = []
        self._lasted: list[Ints] = []

    def add(self, runs: Runs) -> None:
        """Take one batch of runs into account."""
        second, ordinal = runs
        self._fixed.append(second[self._stays[ordinal]])
        self._in_minute.append(ordinal[second // MINUTE_S == self._minute])
        self._in_second.append(ordinal[second == self._second])
        if self._any_lasts:
            self._began.append(second)
            self._lasted.append(self._lasts[ordinal])

    def results(self) -> tuple[Busiest, Busiest, Concurrency | None]:
        """The busiest minute, the busiest second, and the concurrency."""
        fixed = np.bincount(_joined(self._fixed), minlength=DAY_S)
        minute = self._busiest(
            self._minute * MINUTE_S, self._minutes, by_minute(fixed), self._in_minute
        )
        second = self._busiest(self._second, self._seconds[:DAY_S], fixed, self._in_second)
        return minute, second, self._concurrency()

    def _busiest(
        self, at_s: int, counts: Counts, fixed: Counts, ordinals: Sequence[Ints]
    ) -> Busiest:
        total, alone = int(counts.sum()), int(fixed.max())
        behind = {self._members[n].key for n in np.unique(_joined(ordinals)).tolist()}
        return Busiest(
            at=self._start + at_s,
            starts=int(counts.max()),
            bound=max(-(-total // len(counts)), alone),
            fixed_alone=alone,
            schedules=len(behind),
            keys=tuple(heapq.nsmallest(NAMED_AT_MOST, behind)),
        )

    def _concurrency(self) -> Concurrency | None:
        if not self._any_lasts:
            return None
        running = running_at_once(_joined(self._began), _joined(self._lasted))
        peak = int(running.argmax())
        return Concurrency(
            peak=int(running[peak]),
            at=self._start + peak,
            mean=int(running.sum()) / DAY_S,
            unknown=int(np.count_nonzero(self._lasts == 0)),
        )


def by_minute(seconds: Counts) -> Ints:
    """The starts in each minute of the day. An entry after the last second is left out."""
    minutes: Ints = seconds[:DAY_S].reshape(-1, MINUTE_S).sum(axis=1)
    return minutes


def running_at_once(began: Ints, lasts: Ints) -> Ints:
    """How many runs go on in each second of a day that repeats: a run that begins at 23:50 and
    lasts 30 minutes goes on at 00:10. A run of 0 seconds does not count."""
    all_day = 0
    if len(lasts) and int(lasts.max()) >= DAY_S:
        days, lasts = np.divmod(lasts, DAY_S)
        all_day = int(days.sum())
    end = began + lasts
    into_next_day = end >= DAY_S
    end[into_next_day] -= DAY_S
    change = np.bincount(began, minlength=DAY_S) - np.bincount(end, minlength=DAY_S)
    running: Ints = np.cumsum(change) + (all_day + int(np.count_nonzero(into_next_day)))
    return running


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
