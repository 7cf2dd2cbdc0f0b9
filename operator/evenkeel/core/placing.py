"""Intervals without an offset get their phase here, keep it, and change it only on purpose.

A phase is an anchor: due at anchor + k * every, k = 1, 2, ... It is chosen once, by looking at all
the other schedules, and written to the status; times follow by arithmetic, so nothing drifts.
"""

from dataclasses import replace

from evenkeel import balance
from evenkeel.balance import LoadMap, Member, Move, Plan
from evenkeel.balance.nouns import DAY_SLOTS
from evenkeel.core import take
from evenkeel.core.effects import Answer, Observed, PlanRebalance
from evenkeel.core.entry import Entry
from evenkeel.core.messages import (
    Ask,
    GetDistribution,
    PreviewRebalance,
    Rebalance,
    RebalancePlanned,
)
from evenkeel.core.state import State
from evenkeel.errors import BadField
from evenkeel.model import SLOT_S, Instant, Interval, Schedule, Timing
from evenkeel.resource.status import Placed
from evenkeel.when import DueTimes, compile_timing

REMEMBERED_S = 86_400
"""The same name applied again within a day gets its phase back."""

REMEMBERED_LIMIT = 10_000

PLANS_LIMIT = 20
"""Previews that can still be confirmed; one holds every move of ten thousand schedules."""

INLINE_PLACED = 300
"""More are searched away from the loop: a plan for ten thousand takes up to two seconds."""


def is_placed(timing: Timing) -> bool:
    """Whether the operator chooses this timing's phase."""
    return isinstance(timing.rule, Interval) and timing.rule.offset_s is None


def in_force(timing: Timing, placed: Placed | None) -> Timing | None:
    """The timing with its phase; None when it has none yet."""
    if not is_placed(timing):
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


def choose(state: State, entry: Entry, schedule: Schedule) -> None:
    """Choose a phase, by all the others."""
    assert isinstance(schedule.timing.rule, Interval)
    old = entry.placed
    member = _member(entry, schedule, schedule.timing)
    began = state.stopwatch()
    found = balance.place(
        load(state),
        member,
        int(state.now),
        pre_schedule_s=state.settings.pre_schedule_s,
        observe=state.settings.placement_mode == "Observe",
        remembered=None if old else _remembered(state, schedule),
    )
    state.emit(Observed("placement", state.stopwatch() - began))
    placed = Placed(
        anchor=found.anchor,
        every_s=schedule.timing.rule.every_s,
        placed_at=int(state.now),
        weight=schedule.placement.weight,
        slot=found.slot,
        window=schedule.placement.window,
        reason=found.reason,
        load=found.load,
    )
    change_phase(state, entry, placed)
    state.emit(Observed("placed_again" if old else "placed_new", 1))
    if old:
        state.log(
            "rescheduled job (rhythm preserved)",
            job_id=entry.key,
            old_slot=old.slot,
            new_slot=found.slot,
        )
    else:
        state.log("placed new job", job_id=entry.key, slot=found.slot, load=found.load)
    state.tell(entry, "Placed", found.reason)


def change_phase(state: State, entry: Entry, placed: Placed) -> None:
    """From now on due by this phase; what was due by the old one until now is reckoned first."""
    take.leave(state, entry)
    entry.placed = placed
    compile_in_force(entry)
    state.reindex(entry)
    state.reweigh[entry.uid] = None
    state.dirty(entry)


def compile_in_force(entry: Entry) -> None:
    """The due times of the entry's timing; none where it is not placed or a zone is gone."""
    timing = in_force(entry.timing, entry.placed) if entry.timing else None
    try:
        entry.dues = compile_timing(timing, seed=entry.key) if timing else None
    except BadField:
        entry.dues = None


def load(state: State) -> LoadMap:
    """The load with all changes of this step in it. They come to it together: expanding the day of
    twenty schedules costs little more than that of one."""
    members = []
    for uid in state.reweigh:
        entry = state.entries.get(uid)
        if entry is None:
            continue
        schedule = entry.schedule
        timing = in_force(entry.timing, entry.placed) if entry.timing else None
        if schedule is None or timing is None or entry.dues is None:
            state.load.drop(entry.key)
        else:
            members.append(_member(entry, schedule, timing, dues=entry.dues))
    state.reweigh.clear()
    state.load.put_all(members)
    return state.load


def forget(state: State, entry: Entry) -> None:
    """A schedule is gone: its load too; its phase is kept for a day, should the name come back."""
    state.load.drop(entry.key)
    if entry.placed is None:
        return
    state.phases.pop(entry.key, None)
    state.phases[entry.key] = (entry.placed, state.now)
    if len(state.phases) > REMEMBERED_LIMIT:
        del state.phases[next(iter(state.phases))]


def move_on(state: State) -> None:
    """The picture of the day begins with the current slot."""
    start = state.load.start
    state.load.advance(int(state.now))
    if state.load.start != start:
        picture = state.load.distribution(int(state.now))
        state.log(
            "bucket map rebuilt",
            job_count=picture.total_jobs,
            distribution_score=round(picture.distribution_score, 4),
        )


def _member(
    entry: Entry, schedule: Schedule, timing: Timing, *, dues: DueTimes | None = None
) -> Member:
    placed = entry.placed if is_placed(schedule.timing) else None
    return Member(
        key=entry.key,
        timing=timing,
        dues=dues,
        weight=schedule.placement.weight,
        counts=not schedule.suspend and entry.pause is None,
        placed_at=placed.placed_at if placed else None,
        window=schedule.placement.window,
        pinned=schedule.placement.pinned,
    )


def _remembered(state: State, schedule: Schedule) -> Instant | None:
    placed, since = state.phases.pop(schedule.key, (None, 0.0))
    if placed is None or state.now - since > REMEMBERED_S or not still_fits(schedule, placed):
        return None
    return placed.anchor


# --- rebalance --------------------------------------------------------------------------------


def distribution(state: State, message: GetDistribution) -> None:
    """How even the next 24 hours are."""
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
        state.emit(Answer(message.ask, balance.Stale(sentence)))
        return
    _execute(state, message.ask, plan)


def planned(state: State, message: RebalancePlanned) -> None:
    """A plan that was searched for away from the loop."""
    _use(state, message.ask, message.plan, execute=message.execute)


def _plan(state: State, ask: Ask, *, execute: bool) -> None:
    settings, current = state.settings, load(state)
    work = PlanRebalance(
        ask=ask,
        execute=execute,
        load=current.snapshot(),
        now=int(state.now),
        pre_schedule_s=settings.pre_schedule_s,
        cooldown_s=settings.placement_cooldown_s,
        protection_window_s=settings.protection_window_s,
        running=_running(state),
        last_runs=_last_runs(state),
    )
    if len(current.members) > INLINE_PLACED:
        state.emit(work)
    else:
        _use(state, ask, make_plan(work), execute=execute)


def make_plan(work: PlanRebalance) -> Plan:
    """Search, on a load of its own: another thread may do it while the scheduler goes on."""
    return balance.plan_rebalance(
        work.load,
        work.now,
        pre_schedule_s=work.pre_schedule_s,
        cooldown_s=work.cooldown_s,
        protection_window_s=work.protection_window_s,
        running=work.running,
        last_runs=work.last_runs,
    )


def _use(state: State, ask: Ask, plan: Plan, *, execute: bool) -> None:
    state.plans.pop(plan.plan_id, None)
    state.plans[plan.plan_id] = plan
    if len(state.plans) > PLANS_LIMIT:
        del state.plans[next(iter(state.plans))]
    if execute:
        _execute(state, ask, plan)
    else:
        state.emit(Answer(ask, plan))


def _execute(state: State, ask: Ask, plan: Plan) -> None:
    now = int(state.now)
    confirmed = balance.confirm(
        plan,
        load(state),
        now,
        pre_schedule_s=state.settings.pre_schedule_s,
        running=_running(state),
        last_runs=_last_runs(state),
    )
    if isinstance(confirmed, Plan):
        for move in confirmed.moves:
            _move(state, move)
        _say(state, confirmed)
        del state.plans[plan.plan_id]
    state.emit(Answer(ask, confirmed))


def _move(state: State, move: Move) -> None:
    entry = state.entries[state.uid_by_key[move.key]]
    assert entry.placed is not None
    member = balance.moved(state.load.members[move.key], move, int(state.now))
    change_phase(
        state,
        entry,
        replace(
            entry.placed,
            anchor=move.new_anchor,
            placed_at=int(state.now),
            slot=slot_of(move.proposed_time),
            reason=balance.moved_sentence(member, move.proposed_time),
        ),
    )
    take.look_at(state, entry)
    state.tell(entry, "Moved", entry.placed.reason)
    state.emit(Observed("placed_rebalance", 1))


def slot_of(instant: Instant) -> int:
    """The slot of its UTC day, 0 to 95."""
    return instant // SLOT_S % DAY_SLOTS


def _say(state: State, plan: Plan) -> None:
    for skip in plan.skipped:
        state.log(
            "job skipped during rebalance", level="warning", job_id=skip.key, reason=skip.reason
        )
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


def _running(state: State) -> frozenset[str]:
    return frozenset(entry.key for entry in state.entries.values() if entry.holding)


def _last_runs(state: State) -> dict[str, Instant]:
    return {
        entry.key: entry.last_schedule or entry.placed.placed_at
        for entry in state.entries.values()
        if entry.placed is not None
    }
