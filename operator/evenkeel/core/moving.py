"""A rebalance: searched for, shown, proven to fit still, and carried out in bites.

preview    -> PlanRebalance away from the loop -> planned -> the answer, a plan
rebalance  -> ConfirmRebalance away from the loop -> confirmed -> go_on, step by step -> the answer,
              the plan as it was carried out; without a plan_id it is planned first

Guarantees: whoever changed, runs or is about to run between the proof and its bite is not moved,
and the answer says so. A crash in between leaves some moved, each of them whole.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import replace

from evenkeel import balance
from evenkeel.balance import Limits, Move, Plan, Skip, Stale
from evenkeel.core import route
from evenkeel.core.effects import Answer, ConfirmRebalance, Observed, PlanRebalance
from evenkeel.core.messages import (
    Ask,
    GetDistribution,
    PreviewRebalance,
    Rebalance,
    RebalanceConfirmed,
    RebalancePlanned,
)
from evenkeel.core.placing import MOVES_PER_STEP, follow_up, load
from evenkeel.core.schedule import phase
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.state import Moving, State

PLANS_LIMIT = 20
"""Previews that can still be confirmed; one holds every move of ten thousand schedules."""

INLINE_PLACED = 300
"""With more, the search and the proof are made away from the loop: for ten thousand they take two
seconds and a fifth of one."""

ANOTHER = "another rebalance is being carried out; ask for a new preview"
ARRIVING = (
    "schedules that arrived together are being improved; ask for a new preview in a few seconds"
)


def distribution(state: State, message: GetDistribution) -> None:
    """How even the next 24 hours are."""
    follow_up(state)
    state.emit(Answer(message.ask, load(state).distribution(int(state.now))))


def preview(state: State, message: PreviewRebalance) -> None:
    """What a rebalance would do."""
    _plan(state, message.ask, execute=False)


def rebalance(state: State, message: Rebalance) -> None:
    """Carry out the plan that was shown, if it still fits; without one plan afresh."""
    if message.plan_id is None:
        _plan(state, message.ask, execute=True)
        return
    plan = state.plans.get(message.plan_id)
    if plan is None:
        sentence = "no such plan is known any more; ask for a new preview"
        state.emit(Answer(message.ask, Stale(sentence)))
        return
    _confirm(state, message.ask, plan)


def _plan(state: State, ask: Ask, *, execute: bool) -> None:
    follow_up(state)
    limits = _limits(state, state.entries.values())
    work = PlanRebalance(ask, execute, load(state).snapshot(), int(state.now), limits)
    if len(state.load.members) > INLINE_PLACED:
        state.emit(work)
    else:
        planned(state, make_plan(work))


def make_plan(work: PlanRebalance) -> RebalancePlanned:
    """Search, on a load of its own: another thread may do it while the scheduler goes on."""
    plan = balance.plan_rebalance(work.load, work.now, work.limits)
    return RebalancePlanned(work.ask, plan, work.execute)


def planned(state: State, message: RebalancePlanned) -> None:
    """A plan was found: shown, or carried out at once."""
    plan = message.plan
    state.plans.pop(plan.plan_id, None)
    state.plans[plan.plan_id] = plan
    if len(state.plans) > PLANS_LIMIT:
        del state.plans[next(iter(state.plans))]
    if message.execute:
        _confirm(state, message.ask, plan)
    else:
        state.emit(Answer(message.ask, plan))


def _confirm(state: State, ask: Ask, plan: Plan) -> None:
    follow_up(state)
    limits = _limits(state, state.entries.values())
    work = ConfirmRebalance(ask, plan, load(state).snapshot(), int(state.now), limits)
    if len(state.load.members) > INLINE_PLACED:
        state.emit(work)
    else:
        confirmed(state, prove_plan(work))


def prove_plan(work: ConfirmRebalance) -> RebalanceConfirmed:
    """What of the plan fits still. Pure, as the search."""
    found = balance.confirm(work.plan, work.load, work.now, work.limits)
    return RebalanceConfirmed(work.ask, found)


def confirmed(state: State, message: RebalanceConfirmed) -> None:
    """A plan fits and its moves begin, or it is refused."""
    found = message.found
    if isinstance(found, Plan) and state.moving is not None:
        found = Stale(ANOTHER)
    if isinstance(found, Plan) and state.arrivals.under_way:
        found = Stale(ARRIVING)
    if isinstance(found, Stale):
        state.emit(Answer(message.ask, found))
        return
    state.plans.pop(found.plan_id, None)
    state.moving = Moving(message.ask, found, deque([*found.moves, *found.skipped]))


def go_on(state: State) -> None:
    """The next bite of a rebalance, if there is one. By a clock that is not believed nothing can be
    reckoned with, and so nothing moved."""
    moving = state.moving
    if moving is None or not state.can_tell_what_is_due:
        return
    for _ in range(min(MOVES_PER_STEP, len(moving.ahead))):
        following = moving.ahead.popleft()
        if isinstance(following, Move):
            _move(state, moving, following)
        else:
            _skip(state, moving, following)
    follow_up(state)
    if not moving.ahead:
        _conclude(state, moving)


def finish(state: State) -> None:
    """The rest at once: nobody is left to come back for it."""
    while state.moving is not None and state.can_tell_what_is_due:
        follow_up(state)
        go_on(state)


def _move(state: State, moving: Moving, move: Move) -> None:
    member = state.load.members.get(move.key)
    entry = state.entries.get(state.uid_by_key.get(move.key, ""))
    if member is None or not member.counts or entry is None or entry.placed is None:
        return  # deleted, suspended or paused since: neither moved nor in anybody's way
    move_now = balance.move_again(move, member, int(state.now), _limits(state, (entry,)))
    if isinstance(move_now, Skip):
        _skip(state, moving, move_now)
        return
    sentence = balance.moved_sentence(member, move_now.proposed_time)
    route.call(state, entry.uid, phase.move, move_now, sentence)
    state.emit(Observed("placed_rebalance", 1))
    moving.made.append(move_now)


def _skip(state: State, moving: Moving, skip: Skip) -> None:
    state.log("job skipped during rebalance", level="warning", job_id=skip.key, reason=skip.reason)
    moving.skipped.append(skip)


def _conclude(state: State, moving: Moving) -> None:
    plan = replace(moving.plan, moves=tuple(moving.made), skipped=tuple(moving.skipped))
    if plan.moves != moving.plan.moves:
        plan = replace(plan, projected=load(state).distribution(int(state.now)))
    state.moving = None
    state.log(
        "full rebalance completed",
        moved=len(plan.moves),
        skipped=len(plan.skipped),
        old_score=round(plan.current_score, 4),
        new_score=round(plan.projected_score, 4),
    )
    state.emit(Observed("rebalanced", 1))
    state.emit(Observed("rebalance_moved", len(plan.moves)))
    state.emit(Observed("rebalance_skipped", len(plan.skipped)))
    state.emit(Answer(moving.ask, plan))


def _limits(state: State, entries: Collection[Entry]) -> Limits:
    """What protects these schedules."""
    return Limits(
        pre_schedule_s=state.settings.pre_schedule_s,
        cooldown_s=state.settings.placement_cooldown_s,
        protection_window_s=state.settings.protection_window_s,
        running=frozenset(entry.key for entry in entries if entry.occupying),
        last_runs={
            entry.key: entry.record.last_schedule or entry.placed.placed_at
            for entry in entries
            if entry.placed is not None
        },
    )
