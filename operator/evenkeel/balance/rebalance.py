"""Plans a rebalance: which placed intervals should move, and to which phase.

The scheduler calls `plan_rebalance` only when a person asks for it. Preview and execution share the
code: a plan is made and shown, and `confirm` checks it again before the scheduler carries it out by
putting each member back with its new anchor (`moved`). After a plan neither the score nor the peak
is worse than before.

Between the last run by the old phase and the first run by the new phase lie at least half and at
most one and a half intervals. So not every phase can be reached at every moment: a plan an hour
later may be better. The plan is not the best one that exists; `search` says why.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from evenkeel.balance.arrange import arrange, is_less_even, project, with_loads
from evenkeel.balance.day_load import DayLoad
from evenkeel.balance.load import LoadMap
from evenkeel.balance.move_range import Limits, MoveRange, move_range_of, why_fixed
from evenkeel.balance.nouns import Distribution, Member, Move, Plan, Skip, Stale
from evenkeel.balance.place import at_anchor
from evenkeel.balance.report import describe
from evenkeel.balance.runs import Members, base_of, is_arithmetic
from evenkeel.balance.score import distribution_score
from evenkeel.model import Instant

PLAN_AGE_MAX_S = 300
"""How long a preview can be confirmed. A person who confirms it later no longer knows what it
said."""

PROTECTIONS = frozenset({"job_running", "protection_window", "placement_cooldown"})


def plan_rebalance(load: LoadMap, now: Instant, limits: Limits) -> Plan:
    """The plan for the present phases."""
    load.advance(now)
    placed = sorted(_placed(load), key=lambda member: member.key)
    fixed = {member.key: why_fixed(member, now, limits) for member in placed}
    free = [member for member in placed if fixed[member.key] is None]
    moves, day = arrange(load, _ranges(free, now, limits), now)
    without = distribution_score(day.slots, day.runs_by_weight)
    protected = [member for member in placed if fixed[member.key] in PROTECTIONS]
    if protected:
        freed = sorted([*free, *protected], key=lambda member: member.key)
        _, other = arrange(load, _ranges(freed, now, limits), now, to_the_minute=False)
        without = max(without, distribution_score(other.slots, other.runs_by_weight))
    moves = with_loads(load, moves, now)
    moving = {move.key for move in moves}
    phases = phases_of(load)
    current, projected = _both(load, moves, day, now)
    return Plan(
        plan_id=_plan_id(phases, moves),
        phases=phases,
        made_at=now,
        moves=tuple(moves),
        skipped=tuple(
            Skip(key, reason or "no_gain") for key, reason in fixed.items() if key not in moving
        ),
        current=current,
        projected=projected,
        score_without_protection=without,
    )


def confirm(plan: Plan, load: LoadMap, now: Instant, limits: Limits) -> Plan | Stale:
    """The plan as it can be carried out now. A schedule that runs meanwhile, or is due soon, is
    skipped. A plan that was made for other phases, or too long ago, is stale."""
    if not plan.made_at <= now <= plan.made_at + PLAN_AGE_MAX_S:
        return Stale(f"the plan is older than {PLAN_AGE_MAX_S} s; ask for a new preview")
    if phases_of(load) != plan.phases:
        return Stale("a schedule was added, changed, moved or deleted since; ask for a new preview")
    load.advance(now)
    moves: list[Move] = []
    skipped = list(plan.skipped)
    for move in plan.moves:
        again = move_again(move, load.members[move.key], now, limits)
        if isinstance(again, Move):
            moves.append(again)
        else:
            skipped.append(again)
    day = project(load, moves, now)
    if is_less_even(day, load.day):
        return Stale(
            "the moves that are still possible would make the load less even; ask for a new preview"
        )
    current, projected = _both(load, moves, day, now)
    return replace(
        plan,
        moves=tuple(moves),
        skipped=tuple(skipped),
        current=current,
        projected=projected,
    )


def move_again(move: Move, member: Member, now: Instant, limits: Limits) -> Move | Skip:
    """A move of an earlier plan, for the member as it is now: the same phase with the first run
    that can be reached now, or a skip where none can."""
    if base_of(member.timing) != move.old_anchor:
        return Skip(move.key, "placement_cooldown")  # its owner changed it, and it was placed anew
    if member.pinned:
        return Skip(move.key, "pinned")
    if move.key in limits.running:
        return Skip(move.key, "job_running")
    move_range = move_range_of(member, now, limits)
    if move_range is None or move_range.current_time <= now + limits.pre_schedule_s:
        return Skip(move.key, "protection_window")
    late = move_range.low - move.proposed_time
    every_s = member.interval.every_s
    steps = -(-late // every_s) if late > 0 and is_arithmetic(member.timing) else 0
    first = move.proposed_time + steps * every_s
    if not move_range.low <= first <= move_range.high:
        return Skip(move.key, "protection_window")
    return replace(
        move,
        # By an earlier anchor it could run before that.
        new_anchor=first - every_s if steps else move.new_anchor,
        current_time=move_range.current_time,
        proposed_time=first,
    )


def moved(member: Member, move: Move, now: Instant) -> Member:
    """The member after the move. The caller puts it into the load and its anchor into the
    status."""
    return at_anchor(member, move.new_anchor, now)


def phases_of(load: LoadMap) -> str:
    """A hash of all placed phases that count, and of what a placement depends on."""
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


def _ranges(members: Sequence[Member], now: Instant, limits: Limits) -> dict[str, MoveRange]:
    """Where each member may move, for those that may move at all."""
    found = {member.key: move_range_of(member, now, limits) for member in members}
    return {key: span for key, span in found.items() if span is not None}


def _both(
    load: LoadMap, moves: Sequence[Move], day: DayLoad, now: Instant
) -> tuple[Distribution, Distribution]:
    """The distribution before the moves, with a suggestion that knows the plan, and after them."""
    new_anchors = {move.key: move.new_anchor for move in moves}
    members = load.counting().members
    after = [
        at_anchor(member, new_anchors[member.key], now) if member.key in new_anchors else member
        for member in members
    ]
    projected = describe(Members(after), day, load.start, total_jobs=len(load.members))
    return load.distribution(now, rebalanced=projected), projected
