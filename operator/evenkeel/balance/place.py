"""The phase of one interval, found by looking at all the others.

Called by the scheduler for a new schedule and for one whose interval, window or weight changed, or
that is resumed. The start is chosen once and kept: due times follow by arithmetic from the anchor,
so there is no drift. Not fair between schedules: who comes first has the choice, and only a
rebalance asks again.
"""

import hashlib
import math
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.balance import pattern, starts
from evenkeel.balance.daytime import anchor_before, instants_of, width_of
from evenkeel.balance.load import LoadMap
from evenkeel.balance.nouns import DAY_SLOTS, Member, Place
from evenkeel.balance.picture import DayPicture, Ints
from evenkeel.balance.reasons import by_hash_sentence, by_load_sentence, kept_sentence
from evenkeel.balance.runs import dues_of, is_arithmetic
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, SLOT_S, Instant, Interval, Timing, Window
from evenkeel.when.zone import load_zone

SPANS_LOOKED_AT = 4
"""A window can miss a day when the clock jumps over it, and the next day is then without an
anchor a day before it: so many intervals are looked at before a window counts as empty."""


@dataclass(frozen=True, slots=True)
class _Found:
    first_run: Instant
    """By the phase alone; startTime may still lie ahead of it."""
    anchor: Instant
    starts: int = 0
    """How many were looked at."""


def place(
    load: LoadMap,
    member: Member,
    now: Instant,
    *,
    pre_schedule_s: float,
    observe: bool = False,
    remembered: Instant | None = None,
) -> Place:
    """Choose the phase of an interval. The caller puts it into the load with the anchor.

    Its former self is taken out of the load first: nobody flees from his own runs. `remembered` is
    the anchor of a name that was here before with the same interval and window: it comes back to
    its phase. `observe` places by hash and only says what the load would have chosen.
    """
    load.advance(now)
    load.drop(member.key)
    low = math.floor(now + pre_schedule_s) + 1
    every_s = member.interval.every_s
    picture = load.rhythm_day() if every_s <= DAY_S else load.rhythm_week()
    if remembered is not None and (kept := _remembered(member, remembered, low)) is not None:
        carried = _carried(member, picture, kept.first_run - load.start)
        first = _first_due(member, kept, now)
        return _place(kept, first, carried, kept_sentence(member, first))
    found = _by_load(load, picture, member, now, low)
    first = _first_due(member, found, now)
    if observe:
        hashed = _by_hash(member, low)
        carried = _carried(member, picture, hashed.first_run - load.start)
        hashed_first = _first_due(member, hashed, now)
        return _place(
            hashed, hashed_first, carried, by_hash_sentence(member, hashed_first, by_load=first)
        )
    carried = _carried(member, picture, found.first_run - load.start)
    mean = int(np.add.reduce(picture)) / (len(picture) - 1)
    reason = by_load_sentence(member, first, starts=found.starts, load=carried, mean=mean)
    return _place(found, first, carried, reason)


def at_anchor(member: Member, anchor: Instant, now: Instant) -> Member:
    """The member with a phase chosen now: to be put into the load."""
    # Written out: dataclasses.replace is five times as slow, and a rebalance asks for thousands.
    old = member.timing
    rule = Interval(member.interval.every_s, 0, anchor)
    return Member(
        key=member.key,
        timing=Timing(rule, old.zone, old.gap, old.fold, old.start, old.end),
        weight=member.weight,
        counts=member.counts,
        placed_at=now,
        window=member.window,
        pinned=member.pinned,
    )


def _place(found: _Found, first_run: Instant, carried: int, reason: str) -> Place:
    return Place(found.anchor, first_run, first_run // SLOT_S % DAY_SLOTS, carried, reason)


def _first_due(member: Member, found: _Found, now: Instant) -> Instant:
    """Its first run, which startTime may put off."""
    start = member.timing.start
    if start is None or start <= found.first_run:
        return found.first_run
    due = dues_of(at_anchor(member, found.anchor, now)).next_after(start - 1)
    return found.first_run if due is None else due


def _carried(member: Member, picture: Ints, first: int) -> int:
    """What the busiest slot that it hits carries with it."""
    every_s = member.interval.every_s
    met = pattern.met_by(picture, first % every_s, every_s)
    return int(np.maximum.reduce(met)) + member.weight * pattern.runs_in_slot(every_s)


def window_of(member: Member) -> Window | None:
    """Its window; a time of day means something to intervals of whole days only."""
    return member.window if member.interval.every_s % DAY_S == 0 else None


def _by_load(load: LoadMap, picture: Ints, member: Member, now: Instant, low: Instant) -> _Found:
    every_s = member.interval.every_s
    zone = load_zone(member.timing.zone)
    window = window_of(member)
    for span in range(1, SPANS_LOOKED_AT + 1):
        # The second look is for intervals that are shorter than their preparation.
        high = now + every_s if span == 1 else low - 1 + (span - 1) * every_s
        choices = starts.starts(low, high, every_s, window=window, zone=zone)
        if len(choices) and (found := _choose(load, picture, member, choices, high)) is not None:
            return found
    raise BadField("placement.window", "holds no minute of the coming days; make it wider")


def _choose(
    load: LoadMap, picture: Ints, member: Member, choices: Ints, high: Instant
) -> _Found | None:
    every_s = member.interval.every_s
    burdens = pattern.burden(picture, (choices - load.start) % every_s, every_s)
    count = len(choices)
    if every_s < starts.BY_SECONDS_BELOW_S:
        best = choices[pattern.least_all(burdens)]
        first = int(best[starts.quietest(load.picture.seconds, best - load.start, every_s)])
        return _Found(first, first - every_s, count)
    if member.window is None:
        count = (high - int(choices[0])) // starts.MINUTE_S + 1
    for _ in range(len(choices)):
        at = pattern.least(burdens)
        first = within_minute(load.picture, load.start, int(choices[at]), high, every_s)
        anchor = anchor_of(member, first, not_after=high - every_s)
        if anchor is not None:
            return _Found(first, anchor, min(count, starts.STARTS_MAX))
        burdens.peak[at] = pattern.NEVER
    return None


def within_minute(
    picture: DayPicture, origin: Instant, minute: Instant, high: Instant, every_s: int
) -> Instant:
    """The least used second of a minute, not later than `high`; `origin` is the picture's start."""
    choices = np.arange(minute, min(minute + starts.MINUTE_S - 1, high) + 1)
    return minute + starts.quietest(picture.seconds, choices - origin, every_s)


def anchor_of(member: Member, first_run: Instant, *, not_after: Instant) -> Instant | None:
    """The anchor that makes `first_run` the first; None where clock changes leave none."""
    if is_arithmetic(member.timing):
        return first_run - member.interval.every_s
    return anchor_before(member.timing, first_run, not_after=not_after)


# --- without looking ----------------------------------------------------------------------------


def _remembered(member: Member, anchor: Instant, low: Instant) -> _Found | None:
    """The phase of an earlier anchor, from `low` on; None where that lies in the future."""
    if anchor >= low:
        return None
    unbounded = replace(member, timing=replace(member.timing, start=None, end=None))
    due = dues_of(at_anchor(unbounded, anchor, low)).next_after(low - 1)
    if due is None:
        return None
    renewed = anchor_of(member, due, not_after=low)
    return None if renewed is None else _Found(due, renewed)


def _by_hash(member: Member, low: Instant) -> _Found:
    """A phase that depends on nothing but the name, as others spread."""
    digest = hashlib.blake2b(member.key.encode(), digest_size=16).digest()
    day_hash, time_hash = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big")
    every_s = member.interval.every_s
    window = window_of(member)
    if window is None and is_arithmetic(member.timing):
        phase = time_hash % every_s
        first = low + (phase - low) % every_s
        return _Found(first, first - every_s)
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
                return _Found(first, anchor)
    raise BadField("placement.window", "holds no minute of the coming days; make it wider")
