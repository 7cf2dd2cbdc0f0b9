"""The moves that make the load even, and the picture after them.

Called by `rebalance`, once for those who may move and once as if nobody was protected. Intervals
of more than a day are arranged first, on the picture of a week, then all others on that of a day.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from evenkeel.balance import search, starts
from evenkeel.balance.load import LoadMap, folded_at, unseen_at
from evenkeel.balance.nouns import DAY_SLOTS, WEEK_SLOTS, Member, Move
from evenkeel.balance.picture import DayPicture, Ints, weighed
from evenkeel.balance.place import anchor_of, at_anchor, window_of, within_minute
from evenkeel.balance.runs import Members, base_of
from evenkeel.balance.score import distribution_score, peak_to_mean
from evenkeel.balance.turns import Limits, MoveRange, turn_of
from evenkeel.model import DAY_S, SLOT_S, Instant
from evenkeel.when.zone import load_zone


def arrange(
    load: LoadMap, free: Sequence[Member], now: Instant, limits: Limits
) -> tuple[list[Move], DayPicture]:
    """The moves worth making among the free, and the day's picture after them.

    The search goes by rhythm, the picture by runs; they differ in the current slot, where what has
    run already goes with a phase that is given up. If that makes the picture worse, the second
    attempt leaves the current slot alone.
    """
    turns = {
        member.key: turn
        for member in free
        if member.interval.every_s > SLOT_S  # a shorter one loads every slot alike
        and (turn := turn_of(member, now, limits)) is not None
    }
    for past in (range(0), range(load.start, now + 1)):
        able = [m for m in free if m.key in turns and turns[m.key].last_run not in past]
        long = [member for member in able if member.interval.every_s > DAY_S]
        short = [member for member in able if member.interval.every_s <= DAY_S]
        far = _find(load, long, turns, load.rhythm_week(), past) if long else {}
        for chosen in [far, {}] if far else [{}]:
            base = _day_after(load, chosen, now) if chosen else load.rhythm_day()
            near = _find(load, short, turns, base, past)
            moves = _moves(load, {**chosen, **near}, turns)
            picture = project(load, moves, now)
            if not is_worse(picture, load.picture):
                return moves, picture
    return [], load.picture.copy()


def _find(
    load: LoadMap,
    members: Sequence[Member],
    turns: Mapping[str, MoveRange],
    rhythm: Ints,
    past: range,
) -> dict[str, Instant]:
    """The minute of the first run of each member that should move; no anchor in the past range."""
    slots = len(rhythm) - 1
    items = []
    for member in members:
        turn, every_s = turns[member.key], member.interval.every_s
        zone = load_zone(member.timing.zone)
        choices = starts.starts(turn.low, turn.high, every_s, window=window_of(member), zone=zone)
        if past:
            anchors = choices - every_s
            choices = choices[(anchors < past.start) | (anchors >= past.stop)]
        if len(choices):
            items.append(
                search.item(member, choices, turn.current_time, origin=load.start, slots=slots)
            )
    base = rhythm - _rhythm_of([one.member for one in items], load.start, slots)
    found = search.best(base, items)
    return {
        one.member.key: one.start_in(column)
        for one, column in zip(items, found.columns, strict=True)
        if column != one.today
    }


def _rhythm_of(members: Sequence[Member], start: Instant, slots: int) -> Ints:
    """What these members bring to a rhythm picture of so many slots."""
    brought = np.zeros(slots + 1, np.int64)
    crowd = Members(members)
    for second, ordinal in crowd.runs(start, start + slots * SLOT_S):
        brought += weighed(second // SLOT_S, crowd.weight[ordinal], slots + 1)
    for member in members:
        marks = [unseen_at(member, start)]
        if slots == WEEK_SLOTS:
            marks.append(folded_at(member, start))
        for at in marks:
            if at is not None and at < slots:
                brought[at] += member.weight
    return brought


def _day_after(load: LoadMap, chosen: Mapping[str, Instant], now: Instant) -> Ints:
    """The day's rhythm once some long intervals have moved (to the minute; seconds come last)."""
    before = [load.members[key] for key in chosen]
    after = [
        at_anchor(member, first - member.interval.every_s, now)
        for member, first in zip(before, chosen.values(), strict=True)
    ]
    gone = _rhythm_of(before, load.start, DAY_SLOTS)
    return load.rhythm_day() - gone + _rhythm_of(after, load.start, DAY_SLOTS)


def _moves(
    load: LoadMap, chosen: Mapping[str, Instant], turns: Mapping[str, MoveRange]
) -> list[Move]:
    """Minutes become seconds: the quietest of its minute for each, in the order of the keys."""
    trial = load.picture.copy()
    _take_out(trial, [load.members[key] for key in chosen], load.start)
    moves = []
    for key in sorted(chosen):
        member, turn = load.members[key], turns[key]
        every_s = member.interval.every_s
        first = within_minute(trial, load.start, chosen[key], turn.high, every_s)
        anchor = anchor_of(member, first, not_after=first)
        if anchor is None:
            continue  # a clock change hides that time; the next rebalance may find another
        trial.seconds[(first - load.start) % every_s : DAY_S : every_s] += 1
        moves.append(Move(key, base_of(member.timing), anchor, turn.current_time, first))
    return moves


def project(load: LoadMap, moves: Sequence[Move], now: Instant) -> DayPicture:
    """The day's picture after the moves: whole runs, as a recount would find them."""
    picture = load.picture.copy()
    _take_out(picture, [load.members[move.key] for move in moves], load.start)
    crowd = Members([at_anchor(load.members[move.key], move.new_anchor, now) for move in moves])
    for second, ordinal in crowd.runs(load.start, load.start + DAY_S):
        picture.add_all(second, crowd.weight[ordinal])
    return picture


def _take_out(picture: DayPicture, members: Sequence[Member], start: Instant) -> None:
    crowd = Members(members)
    for second, ordinal in crowd.runs(start, start + DAY_S):
        picture.add_all(second, crowd.weight[ordinal], sign=-1)


def is_worse(picture: DayPicture, today: DayPicture) -> bool:
    """By either measure."""
    score = distribution_score(picture.slots, picture.runs_by_weight)
    score_today = distribution_score(today.slots, today.runs_by_weight)
    return score < score_today or peak_to_mean(picture.slots) > peak_to_mean(today.slots)
