"""Windows, and anchors of intervals that count local days, on the wall clock of a zone.

`place` and `starts` call these functions. The rules of clock changes are in `when` alone: this
module proposes an anchor and then asks `when` for the first run after that anchor.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evenkeel.model import DAY_S, Instant, Interval, Timing, Window
from evenkeel.when import compile_timing
from evenkeel.when.zone import Zone, load_zone

Ints = npt.NDArray[np.int64]


def offsets_at(zone: Zone, instants: Ints) -> Ints:
    """How many seconds the wall clock is ahead of UTC at each instant. Instants must ascend."""
    if not len(instants):
        return instants
    changes, offsets = zone.spans(int(instants[-1]))
    place = np.searchsorted(np.array(changes, np.int64), instants, side="right")
    ahead: Ints = np.array(offsets, np.int64)[place]
    return ahead


def inside(window: Window, zone: Zone, instants: Ints) -> npt.NDArray[np.bool_]:
    """Which instants lie in the window, by the zone's clock. Instants must ascend."""
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
    """The instants at which the zone's clock shows `wall`, a local time counted in seconds as if it
    were UTC. Usually there is one instant, in a gap none, in a repeated hour two."""
    changes, offsets = zone.spans(wall + DAY_S)
    low = np.searchsorted(changes, wall - DAY_S) if changes else 0
    high = np.searchsorted(changes, wall + DAY_S) if changes else 0
    near = {offsets[place] for place in range(int(low), int(high) + 1)}
    return sorted(wall - ahead for ahead in near if zone.offset_at(wall - ahead) == ahead)


def anchor_before(timing: Timing, first_run: Instant, *, not_after: Instant) -> Instant | None:
    """The anchor one interval before `first_run`, for an interval that counts local days.

    None where no anchor has `first_run` as its first run: on the anchor's day the clock jumps over
    that time of day; or `first_run` lies in the second pass of a repeated hour; or a day of less
    than 24 hours lies between, and the anchor would be later than `not_after`.
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
