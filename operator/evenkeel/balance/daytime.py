"""The wall clock of a zone, for windows and for intervals that count local days.

Called by `place` and `starts`. The rules of clock changes are those of `when`; here an anchor
is only proposed and then proven by asking `when` where it leads.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evenkeel.model import DAY_S, Instant, Interval, Timing, Window
from evenkeel.when import compile_timing
from evenkeel.when.zone import Zone, load_zone

Ints = npt.NDArray[np.int64]


def offsets_at(zone: Zone, instants: Ints) -> Ints:
    """How far the wall clock is ahead of UTC at each of some ascending instants."""
    if not len(instants):
        return instants
    changes, offsets = zone.spans(int(instants[-1]))
    place = np.searchsorted(np.array(changes, np.int64), instants, side="right")
    ahead: Ints = np.array(offsets, np.int64)[place]
    return ahead


def inside(window: Window, zone: Zone, instants: Ints) -> npt.NDArray[np.bool_]:
    """Which of some ascending instants lie in the window, by the zone's clock."""
    time_of_day = (instants + offsets_at(zone, instants)) % DAY_S
    after_start = time_of_day >= window.start_s
    before_end = time_of_day < window.end_s
    if window.start_s < window.end_s:
        return after_start & before_end
    return after_start | before_end


def width_of(window: Window) -> int:
    """How long the window is open, in seconds of the wall clock."""
    return (window.end_s - window.start_s) % DAY_S or DAY_S


def instants_of(zone: Zone, wall: int) -> list[Instant]:
    """When the zone's clock shows `wall` (seconds since the epoch as if it were UTC): usually
    once, in a gap never, in a repeated hour twice."""
    changes, offsets = zone.spans(wall + DAY_S)
    low = np.searchsorted(changes, wall - DAY_S) if changes else 0
    high = np.searchsorted(changes, wall + DAY_S) if changes else 0
    near = {offsets[place] for place in range(int(low), int(high) + 1)}
    return sorted(wall - ahead for ahead in near if zone.offset_at(wall - ahead) == ahead)


def anchor_before(timing: Timing, first_run: Instant, *, not_after: Instant) -> Instant | None:
    """The anchor, one interval before `first_run`, of an interval that counts local days.

    None where no anchor leads there: the clock jumps over the time on the day of the anchor, or
    shows the run's time for the second time, or the day between is so short that the anchor would
    lie in the future.
    """
    rule = timing.rule
    assert isinstance(rule, Interval)
    zone = load_zone(timing.zone)
    wall = first_run + zone.offset_at(first_run) - rule.every_s
    for anchor in instants_of(zone, wall):
        if not 0 <= anchor <= not_after:
            continue
        placed = replace(timing, rule=Interval(rule.every_s, 0, anchor), start=None, end=None)
        if compile_timing(placed, seed="").next_after(anchor) == first_run:
            return anchor
    return None
