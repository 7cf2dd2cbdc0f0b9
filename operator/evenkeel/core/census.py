"""How many schedules stand in which state, and how many runs have a Job or wait: for /metrics.

Kept as schedules change, because a scrape cannot walk a hundred thousand of them. `placing` has
every schedule counted that a step touched, `route` one whose document is taken. Not guaranteed:
that a schedule whose last due time has just passed is counted as Ended before its status says
so.
"""

from collections.abc import Mapping
from typing import NamedTuple

from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.view import state_of
from evenkeel.model import ScheduleState


class _Counted(NamedTuple):
    state: ScheduleState
    running: int
    waiting: int


class Census:
    """Each schedule as it was counted last."""

    def __init__(self) -> None:
        self.running = 0
        """Runs whose Job exists and has not ended."""
        self.waiting = 0
        """Runs queued, held or between attempts."""
        self._by_state = dict.fromkeys(ScheduleState, 0)
        self._counted: dict[str, _Counted] = {}

    @property
    def by_state(self) -> Mapping[ScheduleState, int]:
        """The number of schedules in each state."""
        return self._by_state

    def count(self, entry: Entry) -> None:
        """Count a schedule as it stands now."""
        runs = entry.runs.values()
        running, waiting = sum(run.has_job for run in runs), sum(run.waits for run in runs)
        new = _Counted(state_of(entry), running, waiting)
        if self._counted.get(entry.uid) != new:
            self.forget(entry.uid)
            self._counted[entry.uid] = new
            self._add(new, 1)

    def forget(self, uid: str) -> None:
        """The schedule is gone or closed."""
        if (old := self._counted.pop(uid, None)) is not None:
            self._add(old, -1)

    def _add(self, counted: _Counted, sign: int) -> None:
        self._by_state[counted.state] += sign
        self.running += sign * counted.running
        self.waiting += sign * counted.waiting
