"""Chooses the moves of a rebalance, or of schedules that arrived together.

`rebalance` calls `arrange` for the schedules that may move. Where some schedules are protected,
`rebalance` calls `arrange` a second time as if no schedule was: the difference is what the
protection costs. `arrivals` calls `arrange_set`. Intervals of more than a day are arranged first,
on the load of a week; all other intervals are arranged after that, on the load of a day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evenkeel.balance import search, starts
from evenkeel.balance.day_load import DayLoad, Ints, Rhythm
from evenkeel.balance.inside_slot import (
    Seat,
    choose_minutes,
    choose_seconds,
    choose_seconds_afresh,
    make_seat,
    seat_at,
    share_a_second,
)
from evenkeel.balance.load import LoadMap, add_runs, members_rhythm
from evenkeel.balance.minutes import Minutes
from evenkeel.balance.move_range import MoveRange
from evenkeel.balance.nouns import DAY_SLOTS, WEEK_SLOTS, Member, Move
from evenkeel.balance.place import anchor_of, at_anchor, busiest_load, choose, window_of
from evenkeel.balance.runs import Members, base_of, is_arithmetic
from evenkeel.balance.score import distribution_score, peak_to_mean, unevenness
from evenkeel.model import DAY_S, Instant
from evenkeel.when.zone import load_zone

SWEEPS = 1
"""After its first round each schedule of a set chooses once more, now that all are there."""

CLOSE_TO_LEAST_PEAK = 1.01
CLOSE_WITH_EQUAL_WEIGHTS = 1.02
"""Of two arrangements whose busiest slots differ by so little, the one with better minutes is
chosen. With equal weights the load of a slot is the number of its starts, and minutes count as
much."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """How the search should go."""

    passed: range
    """The part of the current slot that has passed."""
    moves_are_free: bool = False
    """Nobody relies on the present times."""
    to_the_minute: bool = True
    """Otherwise only the slots are chosen, which takes a third of the time."""


def arrange(
    load: LoadMap, ranges: Mapping[str, MoveRange], now: Instant, *, to_the_minute: bool = True
) -> tuple[list[Move], DayLoad]:
    """The moves that improve the load, and the load of the day after them. Only schedules with a
    range move, and only into that range.

    The search counts phases; `is_worse` counts runs. The two differ where a first run lies more
    than a day ahead. If intervals of more than a day make the coming day worse, they stay.
    """
    wish = _Wish(range(load.start, now + 1), to_the_minute=to_the_minute)
    for with_long in (True, False):
        seats = _seats(load, ranges, now, wish, with_long=with_long)
        if to_the_minute:
            seconds = load.day.copy()
            _take_out(seconds, [seat.member for seat in seats if seat.moves], load.start)
            choose_seconds(seconds.seconds, seats, origin=load.start)
        moves = [_settled(load, move, now) for move in _moves(seats)]
        day = project(load, moves, now)
        if not is_worse(day, load.day):
            return moves, day
        if all(load.members[key].interval.every_s <= DAY_S for key in ranges):
            break
    return [], load.day.copy()


def arrange_set(load: LoadMap, ranges: Mapping[str, MoveRange], now: Instant) -> list[Move]:
    """The moves that improve the load, for schedules that have never run: each may move freely, and
    what counts is the load of the days to come, not the rest of this one.

    Three arrangements are tried: the present one, in which at most the seconds change; a search by
    slots, best where weights differ; and one schedule after another, the shortest interval first,
    best for the minutes.
    """
    wish = _Wish(passed=range(0), moves_are_free=True)
    by_slots = _seats(load, ranges, now, wish, with_long=True)
    shortest_first = _shortest_first(load, ranges, now)
    present = [seat_at(load.members[key], span, span.current_time) for key, span in ranges.items()]
    for seats in (present, by_slots, shortest_first):
        if seats is not present or share_a_second(present, origin=load.start):
            _choose_all_seconds(load, seats)
    arrangements = [_moves(seats) for seats in (present, by_slots, shortest_first)]
    peaks, ranks = zip(
        *(_rank_after(load, moves, ranges, now) for moves in arrangements), strict=True
    )
    equal = len({load.members[key].weight for key in ranges}) == 1
    most = min(peaks) * (CLOSE_WITH_EQUAL_WEIGHTS if equal else CLOSE_TO_LEAST_PEAK)
    good = [n for n, peak in enumerate(peaks) if peak <= most]
    return arrangements[min(good, key=lambda n: ranks[n])]


def _rank_after(
    load: LoadMap, moves: Sequence[Move], ranges: Mapping[str, MoveRange], now: Instant
) -> tuple[int, tuple[int, ...]]:
    """The load of the busiest slot after the moves, and the rank of the minutes and the slots: less
    is better. Where intervals of more than a day move, a week is looked at, and then the day."""
    day = whole = _rhythm_after(load, moves, now, DAY_SLOTS)
    if any(load.members[key].interval.every_s > DAY_S for key in ranges):
        whole = _rhythm_after(load, moves, now, WEEK_SLOTS)
    peak, uneven = slots_rank(whole.work[:-1])
    busiest, busiest_placed, minutes_uneven = minutes_rank(whole.minutes, whole.fixed)
    _, busiest_placed_today, _ = minutes_rank(day.minutes, day.fixed)
    return peak, (busiest, busiest_placed, busiest_placed_today, uneven, minutes_uneven)


def _rhythm_after(load: LoadMap, moves: Sequence[Move], now: Instant, slots: int) -> Rhythm:
    """The rhythm of the day or the week when all moves are made."""
    before = [load.members[move.key] for move in moves]
    after = [
        at_anchor(member, move.new_anchor, now) for member, move in zip(before, moves, strict=True)
    ]
    rhythm = load.rhythm_day() if slots == DAY_SLOTS else load.rhythm_week()
    return _exchanged(rhythm, before, after, load.start, slots)


def _exchanged(
    rhythm: Rhythm, before: Sequence[Member], after: Sequence[Member], start: Instant, slots: int
) -> Rhythm:
    """The rhythm with some members as they are after their moves."""
    rest = rhythm.minus(members_rhythm(before, start, slots))
    return rest.plus(members_rhythm(after, start, slots))


def _shortest_first(load: LoadMap, ranges: Mapping[str, MoveRange], now: Instant) -> list[Seat]:
    """One schedule after another, as `place` chooses, as if none of them had a phase; and once more
    when all are there."""
    trial = load.snapshot()
    members = sorted(
        (load.members[key] for key in ranges), key=lambda m: (m.interval.every_s, -m.weight, m.key)
    )
    for member in members:
        trial.drop(member.key)
    first_runs = {key: span.current_time for key, span in ranges.items()}
    for _ in range(1 + SWEEPS):
        for member in members:
            span, every_s = ranges[member.key], member.interval.every_s
            trial.drop(member.key)
            rhythm = trial.rhythm_day() if every_s <= DAY_S else trial.rhythm_week()
            window, zone = window_of(member), load_zone(member.timing.zone)
            choices = starts.minutes(span.low, span.high, every_s, window=window, zone=zone)
            found = choose(trial, rhythm, member, choices, span.low, span.high)
            if found is None:
                trial.put(member)
            else:
                trial.put(at_anchor(member, found.anchor, now))
                first_runs[member.key] = found.first_run
    return [seat_at(member, ranges[member.key], first_runs[member.key]) for member in members]


def _choose_all_seconds(load: LoadMap, seats: Sequence[Seat]) -> None:
    """Choose the seconds anew for all of them: as they were chosen one after another, and before
    some of them moved, a few share a second."""
    others = load.snapshot()
    for seat in seats:
        others.drop(seat.member.key)
    choose_seconds_afresh(others.rhythm_seconds(), seats, origin=load.start)


def _seats(
    load: LoadMap,
    ranges: Mapping[str, MoveRange],
    now: Instant,
    wish: _Wish,
    *,
    with_long: bool,
) -> list[Seat]:
    """Slots, then minutes: of the intervals of more than a day by the load of a week, then of all
    others by the load of a day."""
    members = [load.members[key] for key in sorted(ranges)]
    long = [member for member in members if member.interval.every_s > DAY_S]
    short = [member for member in members if member.interval.every_s <= DAY_S]
    day, seats = load.rhythm_day(), list[Seat]()
    if long and with_long:
        seats = _find(load.start, long, ranges, load.rhythm_week(), wish)
        moved = [seat for seat in seats if seat.moves]
        before = [seat.member for seat in moved]
        after = [at_anchor(seat.member, seat.first - seat.every_s, now) for seat in moved]
        day = _exchanged(day, before, after, load.start, DAY_SLOTS)
    if short:
        seats += _find(load.start, short, ranges, day, wish)
    return seats


def _find(
    origin: Instant,
    members: Sequence[Member],
    ranges: Mapping[str, MoveRange],
    rhythm: Rhythm,
    wish: _Wish,
) -> list[Seat]:
    """The minute of the first run of each member."""
    slots = len(rhythm.work) - 1
    movables = []
    for member in members:
        span, every_s = ranges[member.key], member.interval.every_s
        zone = load_zone(member.timing.zone)
        choices = starts.one_of_each_block(
            span.low, span.high, every_s, window=window_of(member), zone=zone
        )
        choices = _that_count(choices, member, wish.passed)
        if len(choices):
            movables.append(
                search.make_movable(member, choices, span.current_time, origin=origin, slots=slots)
            )
    others = rhythm.minus(members_rhythm([movable.member for movable in movables], origin, slots))
    found = search.best(others.work, movables)
    seats = []
    for movable, column in zip(movables, found.columns, strict=True):
        member, span = movable.member, ranges[movable.member.key]
        stays = column == movable.present
        first = span.current_time if stays else movable.start_in(column)
        seat = make_seat(member, span, first, origin=origin, slots=slots)
        seat.choices = _that_count(seat.choices, member, wish.passed)
        seats.append(seat)
    if wish.to_the_minute:
        free = wish.moves_are_free
        choose_minutes(others, found.work, seats, origin=origin, moves_are_free=free)
    return seats


def _that_count(choices: Ints, member: Member, passed: range) -> Ints:
    """The choices that the load of the day shows. A local calendar day whose anchor has just passed
    is due again after the end of the day, and its anchor cannot be put back as `_settled` does."""
    if is_arithmetic(member.timing):
        return choices
    anchors = choices - member.interval.every_s
    return choices[(anchors < passed.start) | (anchors >= passed.stop)]


def _moves(seats: Sequence[Seat]) -> list[Move]:
    """The moves in the order of the keys."""
    moves = []
    for seat in sorted(seats, key=lambda seat: seat.member.key):
        if not seat.moves:
            continue
        anchor = anchor_of(seat.member, seat.first, not_after=seat.first)
        if anchor is None:
            continue  # a clock change removes that time; the next rebalance may find another
        old = base_of(seat.member.timing)
        moves.append(Move(seat.member.key, old, anchor, seat.span.current_time, seat.first))
    return moves


def with_loads(load: LoadMap, moves: Sequence[Move], now: Instant) -> list[Move]:
    """The moves, each with the load that it meets when all are made."""
    every_s = {move.key: load.members[move.key].interval.every_s for move in moves}
    work = {}
    for slots in (DAY_SLOTS, WEEK_SLOTS):
        if any((each_s > DAY_S) == (slots == WEEK_SLOTS) for each_s in every_s.values()):
            work[slots] = _rhythm_after(load, moves, now, slots).work
    found = []
    for move in moves:
        each_s = every_s[move.key]
        met = work[WEEK_SLOTS if each_s > DAY_S else DAY_SLOTS]
        at = move.proposed_time - load.start
        found.append(replace(move, load=busiest_load(met, at, each_s)))
    return found


def _settled(load: LoadMap, move: Move, now: Instant) -> Move:
    """The move with an anchor before the current slot, if its anchor lies in the part of the slot
    that has passed: the phase then counts in the whole slot, as the phase did that it replaces.
    Frequent schedules would otherwise seem to leave the slot empty. The anchor is no run, and
    nothing that was due before the move is run after it."""
    member = load.members[move.key]
    if not load.start <= move.new_anchor <= now or not is_arithmetic(member.timing):
        return move
    every_s = member.interval.every_s
    steps = (move.new_anchor - load.start) // every_s + 1
    return replace(move, new_anchor=move.new_anchor - steps * every_s)


def project(load: LoadMap, moves: Sequence[Move], now: Instant) -> DayLoad:
    """The load of the day after the moves, equal to a recount from scratch."""
    day = load.day.copy()
    _take_out(day, [load.members[move.key] for move in moves], load.start)
    arranged = Members([at_anchor(load.members[move.key], move.new_anchor, now) for move in moves])
    add_runs(day, arranged, load.start, load.start + DAY_S, origin=load.start)
    return day


def _take_out(day: DayLoad, members: Sequence[Member], start: Instant) -> None:
    add_runs(day, Members(members), start, start + DAY_S, origin=start, sign=-1)


def is_worse(day: DayLoad, present: DayLoad) -> bool:
    """Whether the slots have a higher peak/mean or are less even than at present; or, with slots
    that are alike, whether the minutes are worse. With a move a run can leave the picture, so peaks
    and sums alone cannot be compared."""
    lasting = bool(present.later.any())
    then, now = (
        (peak_to_mean(each.work), _relative_unevenness(each, lasting=lasting))
        for each in (day, present)
    )
    if then == now:
        return minutes_rank(day.minutes, day.fixed) > minutes_rank(present.minutes, present.fixed)
    return then[0] > now[0] or then[1] > now[1]


def is_less_even(day: DayLoad, present: DayLoad) -> bool:
    """Whether the busiest slot has more load than at present, or the slots are less even. A run
    that leaves the picture lowers the mean, and one that begins later in its slot has more load in
    the next: neither alone is a reason to refuse a plan."""
    lasting = bool(present.later.any())
    then, now = (_relative_unevenness(each, lasting=lasting) for each in (day, present))
    higher = int(day.work.max()) > int(present.work.max())
    return (higher and peak_to_mean(day.work) > peak_to_mean(present.work)) or then > now


def _relative_unevenness(day: DayLoad, *, lasting: bool) -> float:
    if not lasting:
        return 1 - distribution_score(day.slots, day.runs_by_weight)
    total = int(day.work.sum())
    return unevenness(day.work) / total if total else 0.0


def slots_rank(work: Ints) -> tuple[int, int]:
    """(peak, unevenness): less is better."""
    return int(work.max()), unevenness(work)


def minutes_rank(minutes: Ints, fixed: Ints) -> tuple[int, int, int]:
    """As slots, after the busiest minute of all."""
    return Minutes(Rhythm(minutes, minutes, fixed), 0).rank()
