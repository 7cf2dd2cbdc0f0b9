"""The phase of an interval without an offset: whether it has one, and its due times by it.

A phase is an anchor: due at anchor + k * every, k = 1, 2, ... It is chosen once, by `core.placing`,
which looks at all the other schedules, and written to the status; times follow by arithmetic.
"""

from dataclasses import replace

from evenkeel.balance import Move, slot_of
from evenkeel.core.schedule import account, due
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.errors import BadField
from evenkeel.model import DAY_S, Instant, Interval, Schedule, Timing
from evenkeel.reasons import EventReason
from evenkeel.resource.record import Placed
from evenkeel.when import DueTimes, compile_timing
from evenkeel.when.zone import load_zone


def is_placed(timing: Timing) -> bool:
    """Whether the operator chooses this timing's phase."""
    return isinstance(timing.rule, Interval) and timing.rule.offset_s is None


def in_force(timing: Timing | None, placed: Placed | None) -> Timing | None:
    """The timing with its phase; None when it has none yet."""
    if timing is None or not is_placed(timing):
        return timing
    assert isinstance(timing.rule, Interval)
    if placed is None or placed.every_s != timing.rule.every_s:
        return None
    return replace(timing, rule=Interval(timing.rule.every_s, 0, placed.anchor))


def still_fits(schedule: Schedule, placed: Placed | None) -> bool:
    """Whether a phase was found for what the spec wishes now."""
    wish = schedule.placement
    return (
        in_force(schedule.timing, placed) is not None
        and placed is not None
        and (placed.weight, placed.window) == (wish.weight, wish.window)
    )


def is_needed(schedule: Schedule, placed: Placed | None, *, afresh: bool = False) -> bool:
    """Whether a phase must be chosen before this schedule can run."""
    if not is_placed(schedule.timing) or schedule.suspend:
        return False
    return afresh or not still_fits(schedule, placed)


def is_untried(entry: Entry) -> bool:
    """Whether nothing has come of the phase yet: no run by it, and none is taken up."""
    return entry.placed is not None and entry.record.last_schedule is None and not entry.runs


def change(turn: Turn, entry: Entry, placed: Placed) -> None:
    """From now on due by this phase; what was due by the old one until now is reckoned first."""
    due.retire_timing(turn, entry)
    entry.placed = placed
    entry.place_afresh = False
    compile_in_force(entry)
    account.timing_began(turn, entry)


def move(turn: Turn, entry: Entry, move: Move, sentence: str) -> None:
    """Another phase than the one it has was chosen, and its owner is told why."""
    assert entry.placed is not None
    placed = replace(
        entry.placed,
        anchor=move.new_anchor,
        placed_at=turn.second,
        slot=slot_of(move.proposed_time),
        reason=sentence,
        load=move.load,
    )
    change(turn, entry, placed)
    turn.event(entry, EventReason.MOVED, sentence)


def compile_in_force(entry: Entry) -> None:
    """The due times of the entry's timing; none where it is not placed or a zone is gone."""
    timing = in_force(entry.timing, entry.placed)
    try:
        entry.dues = compile_timing(timing, seed=entry.key) if timing else None
    except BadField:
        entry.dues = None


def dues_from(entry: Entry, dues: DueTimes, first: Instant) -> DueTimes:
    """The due times by the present timing, from that instant on. A phase that the operator has
    chosen holds for the time before it was chosen, too: after a rebalance nothing would have been
    due yesterday."""
    timing, rule = dues.timing, dues.timing.rule
    placed = entry.timing is not None and is_placed(entry.timing)
    if not placed or not isinstance(rule, Interval) or rule.anchor is None or rule.anchor < first:
        return dues
    anchor = rule.anchor - (1 + (rule.anchor - first) // rule.every_s) * rule.every_s
    if rule.every_s % DAY_S == 0:  # of local days the time of day must stay
        zone = load_zone(timing.zone)
        time_of_day = (rule.anchor + zone.offset_at(rule.anchor)) % DAY_S
        anchor += zone.offset_at(rule.anchor) - zone.offset_at(anchor)
        while (anchor + zone.offset_at(anchor)) % DAY_S != time_of_day:  # the clock changed there
            anchor -= rule.every_s
    return compile_timing(replace(timing, rule=replace(rule, anchor=anchor)), seed=entry.key)
