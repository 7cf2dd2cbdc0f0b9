"""A rebalance: which placed intervals should move, shown as a plan before anything moves.

Called by the scheduler on a person's wish only. Preview and execution share this path: a plan is
made, shown, and later proven by `confirm` to fit still; carrying it out is putting each member
back with its new anchor (`moved`). Never worse than today, by score and by peak.

A moved schedule waits at least half an interval after its last run and at most one and a half.
That leaves a phase out of reach where half an interval is over already: the plan is the best for
this moment, and the same wish an hour later may find a better one.
"""

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenkeel.balance import search, starts
from evenkeel.balance.load import LoadMap, folded_at, unseen_at
from evenkeel.balance.nouns import (
    DAY_SLOTS,
    SLOT_S,
    WEEK_SLOTS,
    Distribution,
    Member,
    Move,
    Plan,
    Skip,
    Stale,
)
from evenkeel.balance.picture import DayPicture, Ints, weighed
from evenkeel.balance.place import anchor_of, window_of, within_minute
from evenkeel.balance.report import describe
from evenkeel.balance.runs import base_of, batches, dues_of, is_arithmetic, runs_of_all
from evenkeel.balance.score import distribution_score, peak_to_mean
from evenkeel.model import DAY_S, Instant, Interval
from evenkeel.when.zone import load_zone

PLAN_AGE_MAX_S = 300
"""A person looks at a preview and confirms it; later than this he confirms what he forgot."""

PASSING_REASONS = frozenset({"job_running", "protection_window", "placement_cooldown"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What protects schedules from being moved now."""

    pre_schedule_s: float
    cooldown_s: float
    protection_window_s: float
    running: Collection[str]
    last_runs: Mapping[str, Instant]


@dataclass(frozen=True, slots=True)
class Turn:
    """One schedule's present rhythm, and the first runs that a new one may begin with."""

    current_time: Instant
    low: Instant
    high: Instant


def plan_rebalance(
    load: LoadMap,
    now: Instant,
    *,
    pre_schedule_s: float,
    cooldown_s: float,
    protection_window_s: float,
    running: Collection[str] = (),
    last_runs: Mapping[str, Instant] | None = None,
) -> Plan:
    """Plan anew. `last_runs` tells the last due time of schedules that ran by an older phase (or
    when they came, if they never ran), so that moving again and again never starves one."""
    load.advance(now)
    limits = Limits(pre_schedule_s, cooldown_s, protection_window_s, running, last_runs or {})
    placed = sorted(_placed(load), key=lambda member: member.key)
    held = {member.key: _held(member, now, limits) for member in placed}
    free = [member for member in placed if held[member.key] is None]
    moves, picture = _search(load, free, now, limits)
    without = distribution_score(picture.slots, picture.runs_by_weight)
    sheltered = [member for member in placed if held[member.key] in PASSING_REASONS]
    if sheltered:
        freed = sorted([*free, *sheltered], key=lambda member: member.key)
        _, other = _search(load, freed, now, limits)
        without = max(without, distribution_score(other.slots, other.runs_by_weight))
    going = {move.key for move in moves}
    phases = phases_of(load)
    current, projected = _both(load, moves, picture, now)
    return Plan(
        plan_id=_plan_id(phases, moves),
        phases=phases,
        made_at=now,
        moves=tuple(moves),
        skipped=tuple(
            Skip(key, reason or "no_gain") for key, reason in held.items() if key not in going
        ),
        current=current,
        projected=projected,
        score_without_protection=without,
    )


def confirm(
    plan: Plan,
    load: LoadMap,
    now: Instant,
    *,
    pre_schedule_s: float,
    running: Collection[str] = (),
    last_runs: Mapping[str, Instant] | None = None,
) -> Plan | Stale:
    """The plan as it can be carried out now. Moves of schedules that meanwhile run, or are about
    to, have become skips; a plan made for other phases, or long ago, is stale."""
    if not plan.made_at <= now <= plan.made_at + PLAN_AGE_MAX_S:
        return Stale(f"the plan is older than {PLAN_AGE_MAX_S} s; ask for a new preview")
    if phases_of(load) != plan.phases:
        return Stale("a schedule came, changed, moved or went since; ask for a new preview")
    load.advance(now)
    limits = Limits(pre_schedule_s, 0, 0, running, last_runs or {})
    moves: list[Move] = []
    skipped = list(plan.skipped)
    for move in plan.moves:
        again = _again(move, load.members[move.key], now, limits)
        if isinstance(again, Move):
            moves.append(again)
        else:
            skipped.append(again)
    picture = _project(load, moves, now)
    if _worse(picture, load.picture):
        return Stale("what can still be moved would make it worse; ask for a new preview")
    current, projected = _both(load, moves, picture, now)
    return replace(
        plan,
        moves=tuple(moves),
        skipped=tuple(skipped),
        current=current,
        projected=projected,
    )


def moved(member: Member, move: Move, now: Instant) -> Member:
    """The member after the move: to be put into the load, and its anchor into its status."""
    return _at(member, move.new_anchor, now)


def phases_of(load: LoadMap) -> str:
    """A hash over every placed phase that counts; equal means that a plan was made for these."""
    lines = sorted(
        f"{member.key} {base_of(member.timing)} {member.interval.every_s} {member.weight}\n"
        for member in _placed(load)
    )
    return hashlib.blake2b("".join(lines).encode(), digest_size=8).hexdigest()


def _plan_id(phases: str, moves: Sequence[Move]) -> str:
    lines = [phases, *(f"{move.key} {move.new_anchor}" for move in moves)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


# --- who may move, and to where ------------------------------------------------------------------


def _placed(load: LoadMap) -> list[Member]:
    return [m for m in load.members.values() if m.counts and m.placed_at is not None]


def _held(member: Member, now: Instant, limits: Limits) -> str | None:
    """Why this schedule must stay, if it must. What its owner says comes before what passes."""
    if member.pinned:
        return "pinned"
    if member.key in limits.running:
        return "job_running"
    near_s = min(limits.protection_window_s, member.interval.every_s / 2)
    protected_s = max(near_s, limits.pre_schedule_s)  # its next run is being prepared already
    following = _next_run(member, now)
    if following is not None and following - now <= protected_s:
        return "protection_window"
    if member.placed_at is not None and now - member.placed_at < limits.cooldown_s:
        return "placement_cooldown"
    return None


def _next_run(member: Member, now: Instant) -> Instant | None:
    timing, every_s = member.timing, member.interval.every_s
    if not is_arithmetic(timing) or timing.start is not None or timing.end is not None:
        return dues_of(member).next_after(now)
    base = base_of(timing)
    return base + max(1, (now - base) // every_s + 1) * every_s


def _last_run(member: Member, now: Instant) -> Instant | None:
    timing, every_s = member.timing, member.interval.every_s
    base = base_of(timing)
    if not is_arithmetic(timing) or timing.start is not None or timing.end is not None:
        return next(iter(dues_of(member).newest(max(0, base), now + 1, limit=1)), None)
    last = base + (now - base) // every_s * every_s
    return last if last > base else None


def _turn(member: Member, now: Instant, limits: Limits) -> Turn | None:
    """None where no first run is in reach."""
    every_s = member.interval.every_s
    following = _next_run(member, now)
    if following is None:
        return None
    low = math.floor(now + limits.pre_schedule_s) + 1
    high = now + every_s
    ran = [_last_run(member, now), limits.last_runs.get(member.key)]
    if known := [last for last in ran if last is not None]:
        last = max(known)
        low = max(low, last + -(-every_s // 2))
        high = last + every_s + every_s // 2
    return Turn(following, low, high) if low <= high else None


# --- the search ----------------------------------------------------------------------------------


def _search(
    load: LoadMap, free: Sequence[Member], now: Instant, limits: Limits
) -> tuple[list[Move], DayPicture]:
    """The moves worth making among the free, and the day's picture after them."""
    turns = {
        member.key: turn
        for member in free
        if member.interval.every_s > SLOT_S  # a shorter one loads every slot alike
        and (turn := _turn(member, now, limits)) is not None
    }
    long = [m for m in free if m.key in turns and m.interval.every_s > DAY_S]
    short = [m for m in free if m.key in turns and m.interval.every_s <= DAY_S]
    far = _find(load, long, turns, load.rhythm_week(), WEEK_SLOTS) if long else {}
    for chosen in [far, {}] if far else [{}]:
        base = load.rhythm_day() if not chosen else _day_after(load, chosen, now)
        near = _find(load, short, turns, base, DAY_SLOTS)
        moves = _moves(load, {**chosen, **near}, turns)
        picture = _project(load, moves, now)
        if not _worse(picture, load.picture):
            return moves, picture
    return [], load.picture.copy()


def _find(
    load: LoadMap,
    members: Sequence[Member],
    turns: Mapping[str, Turn],
    rhythm: Ints,
    slots: int,
) -> dict[str, Instant]:
    """The minute of the first run of each member that should move."""
    items = []
    for member in members:
        turn, every_s = turns[member.key], member.interval.every_s
        zone = load_zone(member.timing.zone)
        choices = starts.starts(turn.low, turn.high, every_s, window=window_of(member), zone=zone)
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
    for batch in batches(members):
        second, ordinal = runs_of_all(batch, start, start + slots * SLOT_S)
        weight = np.array([member.weight for member in batch], np.int64)[ordinal]
        brought += weighed(second // SLOT_S, weight, slots + 1)
        for member in batch:
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
        _at(member, first - member.interval.every_s, now)
        for member, first in zip(before, chosen.values(), strict=True)
    ]
    gone = _rhythm_of(before, load.start, DAY_SLOTS)
    return load.rhythm_day() - gone + _rhythm_of(after, load.start, DAY_SLOTS)


def _at(member: Member, anchor: Instant, now: Instant) -> Member:
    rule = Interval(member.interval.every_s, 0, anchor)
    return replace(member, timing=replace(member.timing, rule=rule), dues=None, placed_at=now)


def _moves(load: LoadMap, chosen: Mapping[str, Instant], turns: Mapping[str, Turn]) -> list[Move]:
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


def _again(move: Move, member: Member, now: Instant, limits: Limits) -> Move | Skip:
    """The same phase from now on, if it can still be reached."""
    if move.key in limits.running:
        return Skip(move.key, "job_running")
    turn = _turn(member, now, limits)
    if turn is None or turn.current_time <= now + limits.pre_schedule_s:
        return Skip(move.key, "protection_window")
    late = turn.low - move.proposed_time
    every_s = member.interval.every_s
    steps = -(-late // every_s) if late > 0 and is_arithmetic(member.timing) else 0
    first = move.proposed_time + steps * every_s
    if not turn.low <= first <= turn.high:
        return Skip(move.key, "protection_window")
    return replace(
        move,
        new_anchor=move.new_anchor + steps * every_s,
        current_time=turn.current_time,
        proposed_time=first,
    )


# --- what comes of it ----------------------------------------------------------------------------


def _project(load: LoadMap, moves: Sequence[Move], now: Instant) -> DayPicture:
    """The day's picture after the moves: whole runs, as a recount would find them."""
    picture = load.picture.copy()
    before = [load.members[move.key] for move in moves]
    _take_out(picture, before, load.start)
    after = [_at(load.members[move.key], move.new_anchor, now) for move in moves]
    for batch in batches(after):
        second, ordinal = runs_of_all(batch, load.start, load.start + DAY_S)
        picture.add_all(second, _weights(batch)[ordinal])
    return picture


def _take_out(picture: DayPicture, members: Sequence[Member], start: Instant) -> None:
    for batch in batches(members):
        second, ordinal = runs_of_all(batch, start, start + DAY_S)
        picture.add_all(second, _weights(batch)[ordinal], sign=-1)


def _weights(members: Sequence[Member]) -> Ints:
    return np.array([member.weight for member in members], np.int64)


def _worse(picture: DayPicture, today: DayPicture) -> bool:
    """By either measure."""
    score = distribution_score(picture.slots, picture.runs_by_weight)
    score_today = distribution_score(today.slots, today.runs_by_weight)
    return score < score_today or peak_to_mean(picture.slots) > peak_to_mean(today.slots)


def _both(
    load: LoadMap, moves: Sequence[Move], picture: DayPicture, now: Instant
) -> tuple[Distribution, Distribution]:
    """The picture today, with the suggestion that the plan proves, and after the moves."""
    members = dict(load.members)
    for move in moves:
        members[move.key] = _at(members[move.key], move.new_anchor, now)
    projected = describe(members.values(), picture, load.start)
    current = describe(load.members.values(), load.picture, load.start, projected)
    return current, projected
