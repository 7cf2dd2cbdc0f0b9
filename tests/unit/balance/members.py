"""Builders of members, and a plain recount of the load, with which tests compare the real one."""

from evenkeel.balance import LoadMap, Member, Placement, place
from evenkeel.balance.place import at_anchor
from evenkeel.model import DAY_S, At, Cron, Hourly, Instant, Interval, Timing, Window
from evenkeel.when import compile_timing

A_MORNING_IN_MARCH: Instant = 1_803_895_633  # 2027-03-01T10:07:13Z
MINUTE_S = 60
HOUR_S = 3600
SLOT_S = 900
PRE_SCHEDULE_S = 10


def every(
    every_s: int,
    *,
    key: str = "ns/a",
    anchor: Instant | None = None,
    weight: int = 1,
    zone: str = "UTC",
    window: Window | None = None,
    pinned: bool = False,
    placed_at: Instant | None = None,
    counts: bool = True,
) -> Member:
    """An interval without offset: not placed yet, or placed with this anchor."""
    rule = Interval(every_s) if anchor is None else Interval(every_s, 0, anchor)
    if anchor is not None and placed_at is None:
        placed_at = anchor
    return Member(
        key=key,
        timing=Timing(rule, zone=zone),
        weight=weight,
        counts=counts,
        placed_at=placed_at,
        window=window,
        pinned=pinned,
    )


def fixed(
    rule: Cron | Hourly | Interval | At,
    *,
    key: str = "ns/fixed",
    weight: int = 1,
    zone: str = "UTC",
) -> Member:
    """A schedule whose times its owner has fixed."""
    return Member(key=key, timing=Timing(rule, zone=zone), weight=weight)


def place_into(load: LoadMap, member: Member, now: Instant) -> tuple[Placement, Member]:
    """Place a member and put it into the load, as the scheduler does."""
    found = place(load, member, now, pre_schedule_s=PRE_SCHEDULE_S)
    load.put(at_anchor(member, found.anchor, now))
    return found, load.members[member.key]


def runs_between(member: Member, a: Instant, b: Instant) -> list[Instant]:
    return compile_timing(member.timing, seed=member.key).between(a, b)


def busiest_slot_of(load: LoadMap, first: Instant, every_s: int) -> int:
    """The load of the busiest slot that the phase of this run meets, slot by slot."""
    work = (load.rhythm_day() if every_s <= DAY_S else load.rhythm_week()).work[:-1]
    phase = (first - load.start) % every_s
    instants = range(phase, max(phase + 1, len(work) * SLOT_S), every_s)
    return max(-(-int(work[second // SLOT_S % len(work)]) // 15) for second in instants)


def recounted(members: list[Member], now: Instant) -> list[int]:
    """The load of the 96 slots, counted run by run."""
    start = now // SLOT_S * SLOT_S
    slots = [0] * 96
    for member in members:
        if member.counts:
            for due in runs_between(member, start, start + DAY_S):
                slots[(due - start) // SLOT_S] += member.weight
            for instant in counted_without_a_run(member):
                if start <= instant < start + DAY_S:
                    slots[(instant - start) // SLOT_S] += member.weight
    return slots


def counted_without_a_run(member: Member) -> list[Instant]:
    """An anchor ahead counts, though no run is there; so does the phase before it, from the start
    of the slot of the move."""
    if member.placed_at is None or member.interval.anchor is None:
        return []
    anchor, every_s = member.interval.anchor, member.interval.every_s
    if anchor <= member.placed_at:
        return []
    if every_s % DAY_S == 0 and member.timing.zone != "UTC":
        return [anchor]
    since = member.placed_at // SLOT_S * SLOT_S
    return list(range(anchor, since - 1, -every_s))
