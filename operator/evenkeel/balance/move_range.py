"""Which schedules may move now, and which first runs a new phase may have.

`arrange` and `rebalance` call these functions. Between the last run by the old phase and the first
run by the new phase lie at least half and at most one and a half intervals. A schedule does not
move if it is pinned, runs, is due soon or was placed a short time ago.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from evenkeel.balance.nouns import Member
from evenkeel.balance.runs import base_of, dues_of, is_arithmetic
from evenkeel.model import Instant


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides whether a schedule may be moved now."""

    pre_schedule_s: float
    cooldown_s: float = 0
    protection_window_s: float = 0
    running: Collection[str] = ()
    last_runs: Mapping[str, Instant] = field(default_factory=dict)
    """The last due time of schedules that ran by an earlier phase; the time of their placement, if
    they never ran. Without it, one move after another could keep a schedule from running at all."""


@dataclass(frozen=True, slots=True)
class MoveRange:
    """The first run by a new phase may lie in [low, high]; the rest describes the present phase."""

    last_run: Instant | None
    current_time: Instant
    low: Instant
    high: Instant


def why_fixed(member: Member, now: Instant, limits: Limits) -> str | None:
    """Why this schedule must not move now, or None. The owner's wish is named before a reason that
    holds only for a while."""
    if member.pinned:
        return "pinned"
    if member.key in limits.running:
        return "job_running"
    near_s = min(limits.protection_window_s, member.interval.every_s / 2)
    protected_s = max(near_s, limits.pre_schedule_s)  # its next run is being prepared already
    following = next_run(member, now)
    if following is not None and following - now <= protected_s:
        return "protection_window"
    if member.placed_at is not None and now - member.placed_at < limits.cooldown_s:
        return "placement_cooldown"
    return None


def next_run(member: Member, now: Instant) -> Instant | None:
    """The first run later than now by the present phase."""
    timing, every_s = member.timing, member.interval.every_s
    if not is_arithmetic(timing) or timing.start is not None or timing.end is not None:
        return dues_of(member).next_after(now)
    base = base_of(timing)
    return base + max(1, (now - base) // every_s + 1) * every_s


def _last_run(member: Member, now: Instant) -> Instant | None:
    timing, every_s = member.timing, member.interval.every_s
    # What the phase has before it was chosen was no run.
    after = max(base_of(timing), -1 if member.placed_at is None else member.placed_at)
    if not is_arithmetic(timing) or timing.start is not None or timing.end is not None:
        return next(iter(dues_of(member).newest(max(0, after), now + 1, limit=1)), None)
    base = base_of(timing)
    last = base + (now - base) // every_s * every_s
    return last if last > after else None


def move_range_of(member: Member, now: Instant, limits: Limits) -> MoveRange | None:
    """The first runs that a new phase may have. None where no such run is possible, or startTime
    has not come, or no run is left before endTime."""
    every_s, timing = member.interval.every_s, member.timing
    following = next_run(member, now)
    if following is None or (timing.start is not None and timing.start > now):
        return None
    low = math.floor(now + limits.pre_schedule_s) + 1
    high = now + every_s
    ran = [_last_run(member, now), limits.last_runs.get(member.key)]
    last = max((run for run in ran if run is not None), default=None)
    if last is not None:
        low = max(low, last + -(-every_s // 2))
        high = last + every_s + every_s // 2
    if timing.end is not None:
        high = min(high, timing.end - 1)  # a move must not take its last run away
    return MoveRange(last, following, low, high) if low <= high else None
