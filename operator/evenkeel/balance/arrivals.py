"""Improves the phases of schedules that arrived together, before any of them has run.

`place` chooses for one schedule after another, and the last ones find the best slots taken. As soon
as all of a set are known they are arranged together, as a rebalance arranges them, but without its
protections: nobody relies on a phase that has brought no run yet.
"""

import math
from collections.abc import Mapping

from evenkeel.balance.arrange import arrange_set, with_loads
from evenkeel.balance.load import LoadMap
from evenkeel.balance.move_range import MoveRange, next_run
from evenkeel.balance.nouns import Member, Move
from evenkeel.model import Instant

SOON_S = 60
"""A schedule that is due within this time keeps its phase."""

LEAD_S = 10
"""So long before a run is taken up its move must be known. A search for 10,000 takes 4 s, and its
moves are made in bites. With a longer time short intervals have too few seconds to choose from."""


def improve_set(
    load: LoadMap, latest: Mapping[str, Instant], now: Instant, *, pre_schedule_s: float
) -> tuple[Move, ...]:
    """The moves that make the load more even. `latest` names the placed schedules of the set, and
    for each the latest first run: one interval after its creation. Schedules that are due soon, are
    pinned, do not count or wait for their startTime stay."""
    load.advance(now)
    soon = now + max(pre_schedule_s, SOON_S)
    low = math.floor(now + pre_schedule_s + LEAD_S) + 1
    ranges = {}
    for key, until in latest.items():
        member = load.members.get(key)
        span = None if member is None else _range_of(member, soon, low, until, now)
        if span is not None:
            ranges[key] = span
    return tuple(with_loads(load, arrange_set(load, ranges, now), now)) if ranges else ()


def _range_of(
    member: Member, soon: float, low: Instant, until: Instant, now: Instant
) -> MoveRange | None:
    start, end = member.timing.start, member.timing.end
    following = next_run(member, now)
    if not member.counts or member.placed_at is None or member.pinned or following is None:
        return None
    if following <= soon or (start is not None and start > now):
        return None
    high = min(until, now + member.interval.every_s)
    if end is not None:
        high = min(high, end - 1)
    return MoveRange(None, following, low, high) if low <= high else None
