"""How long the next run of a schedule is expected to last: learned from those that succeeded. Pure.

`life` tells of each run that succeeded, `accept` of what a status gave back. `core.placing` and the
commands that read manifests ask how long a run counts as load. Nothing here chooses a phase again:
a schedule stays where it was placed.
"""

from collections.abc import Sequence

from evenkeel.model import Concurrency, Interval, Schedule
from evenkeel.resource.record import DURATIONS_COUNT, LONGEST_RUN_S, Record

ENOUGH = 3
"""Fewer runs tell nothing: the first often pulls an image that the others find."""

FIFTH = 5
ROUNDING_S = 1
"""Two times that are rounded to whole seconds differ by one although they are the same."""


def learn(record: Record, lasted_s: int) -> None:
    """One more run succeeded, and lasted so long from its Job's start to its end."""
    if lasted_s < 0:  # two clocks wrote them
        return
    durations = [*record.durations, min(max(1, lasted_s), LONGEST_RUN_S)]
    record.durations = durations[-DURATIONS_COUNT:]
    record.expected_s = expected_s(record.expected_s, record.durations)


def expected_s(kept_s: int, durations: Sequence[int]) -> int:
    """The median of these durations, if it is off by a fifth or more from what was expected until
    now, and that otherwise: each change weighs the schedule again. 0: not known."""
    if len(durations) < ENOUGH:
        return kept_s
    found_s = _median(durations)
    off_s = abs(found_s - kept_s)
    same = kept_s > 0 and (off_s <= ROUNDING_S or off_s * FIFTH < kept_s)
    return kept_s if same else found_s


def counted_s(schedule: Schedule, lasts_s: int) -> int:
    """How long a run counts as load that lasts so long: where no two runs are there at once, one
    interval at most."""
    rule = schedule.timing.rule
    if isinstance(rule, Interval) and schedule.concurrency is not Concurrency.ALLOW:
        return min(lasts_s, rule.every_s)
    return lasts_s


def _median(durations: Sequence[int]) -> int:
    ordered = sorted(durations)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
