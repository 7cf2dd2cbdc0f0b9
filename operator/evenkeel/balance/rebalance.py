"""A rebalance: which placed intervals should move, shown as a plan before anything moves.

Called by the scheduler on a person's wish only. Preview and execution share this path: a plan is
made, shown, and later proven by `confirm` to fit still; carrying it out is putting each member
back with its new anchor (`moved`). Never worse than today, by score and by peak.

A moved schedule waits at least half an interval after its last run and at most one and a half.
That leaves a phase out of reach where half an interval is over already: the plan is the best for
this moment, and the same wish an hour later may find a better one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from evenkeel.balance.arrange import arrange, is_worse, project
from evenkeel.balance.load import LoadMap
from evenkeel.balance.nouns import Distribution, Member, Move, Plan, Skip, Stale
from evenkeel.balance.picture import DayPicture
from evenkeel.balance.place import at_anchor
from evenkeel.balance.report import describe
from evenkeel.balance.runs import Members, base_of, is_arithmetic
from evenkeel.balance.score import distribution_score
from evenkeel.balance.turns import Limits, held_by, turn_of
from evenkeel.model import Instant

PLAN_AGE_MAX_S = 300
"""A person looks at a preview and confirms it; later than this he confirms what he forgot."""

PASSING_REASONS = frozenset({"job_running", "protection_window", "placement_cooldown"})


def plan_rebalance(load: LoadMap, now: Instant, limits: Limits) -> Plan:
    """Plan anew."""
    load.advance(now)
    placed = sorted(_placed(load), key=lambda member: member.key)
    held = {member.key: held_by(member, now, limits) for member in placed}
    free = [member for member in placed if held[member.key] is None]
    moves, picture = arrange(load, free, now, limits)
    without = distribution_score(picture.slots, picture.runs_by_weight)
    sheltered = [member for member in placed if held[member.key] in PASSING_REASONS]
    if sheltered:
        freed = sorted([*free, *sheltered], key=lambda member: member.key)
        _, other = arrange(load, freed, now, limits)
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


def confirm(plan: Plan, load: LoadMap, now: Instant, limits: Limits) -> Plan | Stale:
    """The plan as it can be carried out now. Moves of schedules that meanwhile run, or are about
    to, have become skips; a plan made for other phases, or long ago, is stale."""
    if not plan.made_at <= now <= plan.made_at + PLAN_AGE_MAX_S:
        return Stale(f"the plan is older than {PLAN_AGE_MAX_S} s; ask for a new preview")
    if phases_of(load) != plan.phases:
        return Stale("a schedule came, changed, moved or went since; ask for a new preview")
    load.advance(now)
    moves: list[Move] = []
    skipped = list(plan.skipped)
    for move in plan.moves:
        again = move_again(move, load.members[move.key], now, limits)
        if isinstance(again, Move):
            moves.append(again)
        else:
            skipped.append(again)
    picture = project(load, moves, now)
    if is_worse(picture, load.picture):
        return Stale("what can still be moved would make it worse; ask for a new preview")
    current, projected = _both(load, moves, picture, now)
    return replace(
        plan,
        moves=tuple(moves),
        skipped=tuple(skipped),
        current=current,
        projected=projected,
    )


def move_again(move: Move, member: Member, now: Instant, limits: Limits) -> Move | Skip:
    """A move of a plan as it can be carried out now, on the member as it is now: to the same phase,
    if that can still be reached."""
    if base_of(member.timing) != move.old_anchor:
        return Skip(move.key, "placement_cooldown")  # its owner changed it, and it was placed anew
    if member.pinned:
        return Skip(move.key, "pinned")
    if move.key in limits.running:
        return Skip(move.key, "job_running")
    turn = turn_of(member, now, limits)
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


def moved(member: Member, move: Move, now: Instant) -> Member:
    """The member after the move: to be put into the load, and its anchor into its status."""
    return at_anchor(member, move.new_anchor, now)


def phases_of(load: LoadMap) -> str:
    """A hash over every placed phase that counts; equal means that a plan was made for these."""
    lines = sorted(
        f"{m.key} {base_of(m.timing)} {m.interval.every_s} {m.weight} {m.pinned} {m.window}\n"
        for m in _placed(load)
    )
    return hashlib.blake2b("".join(lines).encode(), digest_size=8).hexdigest()


def _plan_id(phases: str, moves: Sequence[Move]) -> str:
    lines = [phases, *(f"{move.key} {move.new_anchor}" for move in moves)]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def _placed(load: LoadMap) -> list[Member]:
    return [m for m in load.members.values() if m.counts and m.placed_at is not None]


def _both(
    load: LoadMap, moves: Sequence[Move], picture: DayPicture, now: Instant
) -> tuple[Distribution, Distribution]:
    """The picture today, with the suggestion that the plan proves, and after the moves."""
    new_anchors = {move.key: move.new_anchor for move in moves}
    there = load.crowd().members
    after = [
        at_anchor(member, new_anchors[member.key], now) if member.key in new_anchors else member
        for member in there
    ]
    projected = describe(Members(after), picture, load.start, total_jobs=len(load.members))
    return load.distribution(now, rebalanced=projected), projected
