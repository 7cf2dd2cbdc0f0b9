"""Chooses the moves of a rebalance, and computes the load of the day after these moves.

`rebalance` calls `arrange` for the schedules that may move. Where some schedules are protected,
`rebalance` calls `arrange` a second time as if no schedule was: the difference is what the
protection costs. Intervals of more than a day are arranged first, on the load of a week; all other
intervals are arranged after that, on the load of a day.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from evenkeel.balance import search, starts
from evenkeel.balance.day_load import DayLoad, Ints, weight_by_slot
from evenkeel.balance.load import LoadMap, anchor_slot, folded_slot
from evenkeel.balance.move_range import Limits, MoveRange, move_range_of
from evenkeel.balance.nouns import DAY_SLOTS, WEEK_SLOTS, Member, Move
from evenkeel.balance.place import anchor_of, at_anchor, window_of, within_minute
from evenkeel.balance.runs import Members, base_of
from evenkeel.balance.score import distribution_score, peak_to_mean
from evenkeel.model import DAY_S, SLOT_S, Instant
from evenkeel.when.zone import load_zone


def arrange(
    load: LoadMap, free: Sequence[Member], now: Instant, limits: Limits
) -> tuple[list[Move], DayLoad]:
    """The moves among the free members that improve the load, and the load of the day after them.

    The search counts phases; `is_worse` counts runs. The two differ in the current slot: a run
    there that has passed already disappears from the day together with its old phase. If that
    makes the day worse, a second search leaves the passed part of the slot alone: no schedule whose
    last run lies there moves, and no new anchor lies there.
    """
    ranges = {
        member.key: move_range
        for member in free
        if member.interval.every_s > SLOT_S  # a shorter one runs in every slot
        and (move_range := move_range_of(member, now, limits)) is not None
    }
    for no_anchor_in in (range(0), range(load.start, now + 1)):
        may_move = [
            m for m in free if m.key in ranges and ranges[m.key].last_run not in no_anchor_in
        ]
        long = [member for member in may_move if member.interval.every_s > DAY_S]
        short = [member for member in may_move if member.interval.every_s <= DAY_S]
        weekly = _find(load, long, ranges, load.rhythm_week(), no_anchor_in) if long else {}
        for chosen in [weekly, {}] if weekly else [{}]:
            base = _day_after(load, chosen, now) if chosen else load.rhythm_day()
            daily = _find(load, short, ranges, base, no_anchor_in)
            moves = _moves(load, {**chosen, **daily}, ranges)
            day = project(load, moves, now)
            if not is_worse(day, load.day):
                return moves, day
    return [], load.day.copy()


def _find(
    load: LoadMap,
    members: Sequence[Member],
    ranges: Mapping[str, MoveRange],
    rhythm: Ints,
    no_anchor_in: range,
) -> dict[str, Instant]:
    """The minute of the first run of each member that should move. No new anchor lies in the range
    `no_anchor_in`."""
    slots = len(rhythm) - 1
    movables = []
    for member in members:
        move_range, every_s = ranges[member.key], member.interval.every_s
        zone = load_zone(member.timing.zone)
        choices = starts.starts(
            move_range.low, move_range.high, every_s, window=window_of(member), zone=zone
        )
        if no_anchor_in:
            anchors = choices - every_s
            choices = choices[(anchors < no_anchor_in.start) | (anchors >= no_anchor_in.stop)]
        if len(choices):
            movables.append(
                search.make_movable(
                    member, choices, move_range.current_time, origin=load.start, slots=slots
                )
            )
    base = rhythm - _rhythm_of([movable.member for movable in movables], load.start, slots)
    found = search.best(base, movables)
    return {
        movable.member.key: movable.start_in(column)
        for movable, column in zip(movables, found.columns, strict=True)
        if column != movable.present
    }


def _rhythm_of(members: Sequence[Member], start: Instant, slots: int) -> Ints:
    """The load of these members in each of so many slots, anchors in view included."""
    slot_loads = np.zeros(slots + 1, np.int64)
    arranged = Members(members)
    for second, ordinal in arranged.runs(start, start + slots * SLOT_S):
        slot_loads += weight_by_slot(second // SLOT_S, arranged.weight[ordinal], slots + 1)
    for member in members:
        beyond_runs = [anchor_slot(member, start)]
        if slots == WEEK_SLOTS:
            beyond_runs.append(folded_slot(member, start))
        for at in beyond_runs:
            if at is not None and at < slots:
                slot_loads[at] += member.weight
    return slot_loads


def _day_after(load: LoadMap, chosen: Mapping[str, Instant], now: Instant) -> Ints:
    """The rhythm of the day after some long intervals have moved. Their starts are whole minutes
    here: `_moves` chooses the seconds later."""
    before = [load.members[key] for key in chosen]
    after = [
        at_anchor(member, first - member.interval.every_s, now)
        for member, first in zip(before, chosen.values(), strict=True)
    ]
    gone = _rhythm_of(before, load.start, DAY_SLOTS)
    return load.rhythm_day() - gone + _rhythm_of(after, load.start, DAY_SLOTS)


def _moves(
    load: LoadMap, chosen: Mapping[str, Instant], ranges: Mapping[str, MoveRange]
) -> list[Move]:
    """The moves, each with the least used second of its minute, in the order of the keys."""
    trial = load.day.copy()
    _take_out(trial, [load.members[key] for key in chosen], load.start)
    moves = []
    for key in sorted(chosen):
        member, move_range = load.members[key], ranges[key]
        every_s = member.interval.every_s
        first = within_minute(trial, load.start, chosen[key], move_range.high, every_s)
        anchor = anchor_of(member, first, not_after=first)
        if anchor is None:
            continue  # a clock change removes that time; the next rebalance may find another
        trial.seconds[(first - load.start) % every_s : DAY_S : every_s] += 1
        moves.append(Move(key, base_of(member.timing), anchor, move_range.current_time, first))
    return moves


def project(load: LoadMap, moves: Sequence[Move], now: Instant) -> DayLoad:
    """The load of the day after the moves, equal to a recount from scratch."""
    day = load.day.copy()
    _take_out(day, [load.members[move.key] for move in moves], load.start)
    arranged = Members([at_anchor(load.members[move.key], move.new_anchor, now) for move in moves])
    for second, ordinal in arranged.runs(load.start, load.start + DAY_S):
        day.add_all(second, arranged.weight[ordinal])
    return day


def _take_out(day: DayLoad, members: Sequence[Member], start: Instant) -> None:
    arranged = Members(members)
    for second, ordinal in arranged.runs(start, start + DAY_S):
        day.add_all(second, arranged.weight[ordinal], sign=-1)


def is_worse(day: DayLoad, present: DayLoad) -> bool:
    """Whether the score is lower, or peak/mean is higher, than at present."""
    score = distribution_score(day.slots, day.runs_by_weight)
    score_present = distribution_score(present.slots, present.runs_by_weight)
    return score < score_present or peak_to_mean(day.slots) > peak_to_mean(present.slots)
