"""Chooses the phase of one interval by the load of all other schedules.

The scheduler calls `place` for a new schedule, after a resume, and after a change of the interval,
the window or the weight. The phase is chosen once and kept: all due times are anchor + k * every,
so there is no drift. `place` is not fair: the schedule that is placed first has the most choice,
and only a rebalance chooses again.
"""

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.balance import pattern, starts
from evenkeel.balance.day_load import MINUTE_S, SLOT_MINUTES, Ints, Rhythm, Seconds
from evenkeel.balance.daytime import anchor_before, instants_of, width_of
from evenkeel.balance.load import LoadMap
from evenkeel.balance.minutes import Minutes
from evenkeel.balance.nouns import DAY_SLOTS, Member, Placement
from evenkeel.balance.reasons import by_hash_sentence, by_load_sentence, kept_sentence
from evenkeel.balance.runs import dues_of, is_arithmetic
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, SLOT_S, Instant, Interval, Timing, Window
from evenkeel.when.zone import load_zone

SPANS_LOOKED_AT = 4
"""In so many intervals `place` looks for a start in the window before it refuses the window. One is
not enough: a clock change can remove the window from one day, and the next day then has no anchor
one day earlier."""


@dataclass(frozen=True, slots=True)
class Found:
    first_run: Instant
    """By the phase alone: it may be earlier than startTime."""
    anchor: Instant
    starts: int = 0
    """How many starts were compared."""


def place(
    load: LoadMap,
    member: Member,
    now: Instant,
    *,
    pre_schedule_s: float,
    observe: bool = False,
    remembered: Instant | None = None,
) -> Placement:
    """Choose the phase of an interval. The caller then puts the member into the load (`at_anchor`).

    A member of the same key is removed from the load first, so that a schedule does not avoid its
    own runs. `remembered` is the anchor that a schedule of this name had before, with the same
    interval and window: the schedule gets that phase back. With `observe` the phase is a hash of
    the name, and the reason says which phase the load would have chosen.
    """
    load.advance(now)
    load.drop(member.key)
    low = math.floor(now + pre_schedule_s) + 1
    every_s = member.interval.every_s
    rhythm = load.rhythm_day() if every_s <= DAY_S else load.rhythm_week()
    work = rhythm.work
    if remembered is not None and (kept := _remembered(member, remembered, low)) is not None:
        load_with_it = _load_with_it(member, work, kept.first_run - load.start)
        first = _first_due(member, kept, now)
        return _placement(kept, first, load_with_it, kept_sentence(member, first))
    found = _by_load(load, rhythm, member, now, low)
    first = _first_due(member, found, now)
    if observe:
        hashed = _by_hash(member, low)
        load_with_it = _load_with_it(member, work, hashed.first_run - load.start)
        hashed_first = _first_due(member, hashed, now)
        return _placement(
            hashed,
            hashed_first,
            load_with_it,
            by_hash_sentence(member, hashed_first, by_load=first),
        )
    load_with_it = _load_with_it(member, work, found.first_run - load.start)
    mean = int(np.add.reduce(work)) / SLOT_MINUTES / (len(work) - 1)
    reason = by_load_sentence(member, first, starts=found.starts, load=load_with_it, mean=mean)
    return _placement(found, first, load_with_it, reason)


def at_anchor(member: Member, anchor: Instant, now: Instant) -> Member:
    """The member with this anchor, placed now: what the caller puts into the load."""
    # Written out: dataclasses.replace is five times as slow, and a rebalance asks for thousands.
    old = member.timing
    rule = Interval(member.interval.every_s, 0, anchor)
    return Member(
        key=member.key,
        timing=Timing(rule, old.zone, old.gap, old.fold, old.start, old.end),
        weight=member.weight,
        lasts_s=member.lasts_s,
        counts=member.counts,
        placed_at=now,
        window=member.window,
        pinned=member.pinned,
    )


def slot_of(instant: Instant) -> int:
    """The slot of its UTC day, 0 to 95."""
    return instant // SLOT_S % DAY_SLOTS


def busiest_load(work: Ints, first: int, every_s: int) -> int:
    """The load of the busiest slot that this phase hits. Runs that still run there count by their
    share of the slot. `first` is a run, in seconds after the first slot."""
    met = int(np.maximum.reduce(pattern.slot_loads_of(work, first % every_s, every_s)))
    return -(-met // SLOT_MINUTES)


def _placement(found: Found, first_run: Instant, load_with_it: int, reason: str) -> Placement:
    return Placement(found.anchor, first_run, slot_of(first_run), load_with_it, reason)


def _first_due(member: Member, found: Found, now: Instant) -> Instant:
    """The first run that is not before startTime."""
    start = member.timing.start
    if start is None or start <= found.first_run:
        return found.first_run
    due = dues_of(at_anchor(member, found.anchor, now)).next_after(start - 1)
    return found.first_run if due is None else due


def _load_with_it(member: Member, work: Ints, first: int) -> int:
    """The load of the busiest slot in which the member starts, its own runs included."""
    every_s = member.interval.every_s
    return busiest_load(work, first, every_s) + member.weight * pattern.runs_in_slot(every_s)


def window_of(member: Member) -> Window | None:
    """The member's window. Only intervals of whole days have one: others run at all times of
    day."""
    return member.window if member.interval.every_s % DAY_S == 0 else None


def _by_load(load: LoadMap, rhythm: Rhythm, member: Member, now: Instant, low: Instant) -> Found:
    every_s = member.interval.every_s
    zone = load_zone(member.timing.zone)
    window = window_of(member)
    for span in range(1, SPANS_LOOKED_AT + 1):
        # With an interval shorter than preSchedule the first round has no start to choose from.
        high = now + every_s if span == 1 else low - 1 + (span - 1) * every_s
        choices = starts.minutes(low, high, every_s, window=window, zone=zone)
        if len(choices) and (found := choose(load, rhythm, member, choices, low, high)) is not None:
            return found
    raise BadField("placement.window", "holds no minute of the coming days; make it wider")


def choose(
    load: LoadMap, rhythm: Rhythm, member: Member, choices: Ints, low: Instant, high: Instant
) -> Found | None:
    """The phases whose busiest slot is least loaded; of these the best minutes, then the least sum
    over the slots, then the best second, then the earliest.

    The sum comes after the minutes: each phase of an interval of 7 or 25 minutes meets other slots,
    and by differences of one run in their sum all such intervals would start in one minute.
    """
    every_s, count, origin = member.interval.every_s, len(choices), load.start
    seconds = load.rhythm_seconds()
    minutes = Minutes(rhythm, origin, more=len(rhythm.minutes) * MINUTE_S // every_s)
    while len(choices):
        phases = (choices - origin) % every_s
        by_slot = pattern.loads_of_phases(rhythm.work, phases, every_s, member.lasts_s)
        in_best = starts.thinned(np.flatnonzero(by_slot.peak == by_slot.peak.min()))
        best = choices[in_best]
        if every_s < starts.BY_SECONDS_BELOW_S:
            first = least_used(seconds, best, origin, every_s)
            return Found(first, first - every_s, count)
        peak, total = minutes.met(best, every_s)
        minute = int(best[pattern.least((peak, total, by_slot.total[in_best]))])
        within = seconds_of_minute(member, minute, low, high)
        first = least_used(seconds, within, origin, every_s)
        anchor = anchor_of(member, first, not_after=high - every_s)
        if anchor is not None:
            return Found(first, anchor, count)
        choices = choices[choices != minute]  # a clock change removes that time
    return None


def seconds_of_minute(member: Member, minute: Instant, low: Instant, high: Instant) -> Ints:
    """The first runs in [low, high] whose phases lie in the minute of this run. Those later than
    `high` are reached one interval earlier: the minute of `high` would have a few seconds only, and
    all short intervals placed there would share them."""
    found = np.arange(minute, minute + MINUTE_S)
    if is_arithmetic(member.timing):
        found[found > high] -= member.interval.every_s
    found = found[(found >= low) & (found <= high)]
    found.sort()
    return found


def least_used(seconds: Seconds, choices: Ints, origin: Instant, every_s: int) -> Instant:
    """The choice whose seconds of the day have the fewest starts; the first of equal ones."""
    met = pattern.starts_by_second(seconds, choices - origin, every_s)
    return int(choices[pattern.least_loaded(met)])


def anchor_of(member: Member, first_run: Instant, *, not_after: Instant) -> Instant | None:
    """The anchor whose first run is `first_run`; None where a clock change leaves no such
    anchor."""
    if is_arithmetic(member.timing):
        return first_run - member.interval.every_s
    return anchor_before(member.timing, first_run, not_after=not_after)


# --- without the load ---------------------------------------------------------------------------


def _remembered(member: Member, anchor: Instant, low: Instant) -> Found | None:
    """The phase of an earlier anchor, with the first run at `low` or later. None where the earlier
    anchor lies in the future: a clock has been set back, or the status is wrong."""
    if anchor >= low:
        return None
    unbounded = replace(member, timing=replace(member.timing, start=None, end=None))
    due = dues_of(at_anchor(unbounded, anchor, low)).next_after(low - 1)
    if due is None:
        return None
    renewed = anchor_of(member, due, not_after=low)
    return None if renewed is None else Found(due, renewed)


def _by_hash(member: Member, low: Instant) -> Found:
    """A phase that depends on the name alone, as schedulers choose it that spread by hash."""
    digest = hashlib.blake2b(member.key.encode(), digest_size=16).digest()
    day_hash, time_hash = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    every_s = member.interval.every_s
    window = window_of(member)
    if window is None and is_arithmetic(member.timing):
        phase = time_hash % every_s
        first = low + (phase - low) % every_s
        return Found(first, first - every_s)
    zone = load_zone(member.timing.zone)
    begin, width = 0, DAY_S
    if window is not None:
        begin, width = window.start_s, width_of(window)
    time_of_day = (begin + time_hash % width) % DAY_S
    days = every_s // DAY_S
    today = (low + zone.offset_at(low)) // DAY_S
    for day in range(today - 1, today + SPANS_LOOKED_AT * days + 1):
        if day % days != day_hash % days:
            continue
        for first in instants_of(zone, day * DAY_S + time_of_day):
            anchor = anchor_of(member, first, not_after=first) if first >= low else None
            if anchor is not None:
                return Found(first, anchor)
    raise BadField("placement.window", "holds no minute of the coming days; make it wider")
