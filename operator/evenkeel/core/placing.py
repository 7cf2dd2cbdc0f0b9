"""Intervals without an offset get their phase here, by looking at all the other schedules; and what
the load and the index hold of each schedule follows its changes.

`follow_up` runs once at the end of a step for each schedule that the step touched: nobody has to
remember to weigh, to index or to place a schedule that was changed.
"""

from dataclasses import replace

from evenkeel import balance
from evenkeel.balance import LoadMap, Member
from evenkeel.core import route
from evenkeel.core.effects import Observed
from evenkeel.core.messages import PhasesRead
from evenkeel.core.schedule import accept, expect, phase, requested, start
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.core.state import State
from evenkeel.errors import BadField
from evenkeel.model import Instant, Interval, Rejection, Schedule
from evenkeel.reasons import EventReason
from evenkeel.resource.record import Placed
from evenkeel.resource.weight import weight_of

REMEMBERED_S = 86_400
"""The same name applied again within a day gets its phase back."""

REMEMBERED_LIMIT = 10_000

MOVES_PER_STEP = 20
"""Of a rebalance or a set. A move costs 0.2 ms: with all in one step, what is due meanwhile would
wait for a second."""


def follow_up(state: State) -> None:
    """What follows for each schedule that this step touched: a phase where it needs one, runs for
    what its new due times bring soon, free places for who waits, its load and its place in the
    index. What follows may touch others, so until none is left."""
    if state.stopping or not state.can_tell_what_is_due:
        return
    while state.touched:
        uid = next(iter(state.touched))
        del state.touched[uid]
        entry = state.entries.get(uid)
        if entry is None:
            continue
        _weigh(state, entry)
        if entry.schedule and phase.is_needed(
            entry.schedule, entry.placed, afresh=entry.place_afresh
        ):
            _choose(state, entry, entry.schedule)
        _look_ahead_if_changed(state, uid)
        if entry.queue:
            route.call(state, uid, start.give_free_places)
        if entry.unfinished:
            route.call(state, uid, requested.go_on)
        if uid in state.entries:
            _weigh(state, state.entries[uid])
            route.count(state, uid)
        state.touched.pop(uid, None)
    load(state)


def _look_ahead_if_changed(state: State, uid: str) -> None:
    entry, known = state.entries.get(uid), state.known.get(uid)
    if entry is None or known is None:
        return
    others = entry.dues is not known.dues
    if others:
        known.dues = entry.dues
        # What an index built before says of it is void.
        state.index_dirty = True
        state.index_from[uid] = max(state.index.current.generation, state.index_building) + 1
    if entry.halted is not known.halted:
        others = True
        known.halted = entry.halted
        state.index_dirty = True
    if others and not entry.halted:
        route.call(state, uid, accept.look_ahead)
        if (entry := state.entries.get(uid)) is not None:
            known.halted = entry.halted


def _weigh(state: State, entry: Entry) -> None:
    known, member = state.known[entry.uid], None
    if entry.schedule is not None and entry.dues is not None:  # else it weighs nothing
        member = _member(state, entry, entry.schedule)
    if member != known.member:
        known.member = member
        state.reweigh[entry.uid] = None


# --- the phase ------------------------------------------------------------------------------------


def _choose(state: State, entry: Entry, schedule: Schedule) -> None:
    """Choose a phase, by all the others."""
    assert isinstance(schedule.timing.rule, Interval)
    old, member = entry.placed, _member(state, entry, schedule)
    remembered = None if old else _remembered(state, schedule)
    observe = state.settings.placement_mode == "Observe"
    began = state.stopwatch()
    try:
        found = balance.place(
            load(state),
            replace(member, timing=schedule.timing, dues=None),
            int(state.now),
            pre_schedule_s=state.settings.pre_schedule_s,
            observe=observe,
            remembered=remembered,
        )
    except BadField as mistake:  # a window that holds no minute
        route.call(state, entry.uid, accept.reject, _rejection(entry, mistake))
        return
    finally:
        state.known[entry.uid].member = None  # `place` takes it out of the load
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
    state.emit(Observed("placed_again" if old else "placed_new", 1))
    route.call(state, entry.uid, _take_phase, placed)
    if remembered is None and not observe and phase.is_untried(entry):
        latest = int(state.now) + schedule.timing.rule.every_s
        state.arrivals.add(entry.uid, latest, state.monotonic)


def _take_phase(turn: Turn, entry: Entry, placed: Placed) -> None:
    old = entry.placed
    phase.change(turn, entry, placed)
    if old:
        turn.log(
            "rescheduled job (rhythm preserved)",
            job_id=entry.key,
            old_slot=old.slot,
            new_slot=placed.slot,
        )
    else:
        turn.log("placed new job", job_id=entry.key, slot=placed.slot, load=placed.load)
    turn.event(entry, EventReason.PLACED, placed.reason)


def _rejection(entry: Entry, mistake: BadField) -> Rejection:
    return Rejection(
        entry.uid,
        entry.ns,
        entry.name,
        entry.generation,
        mistake.field,
        mistake.sentence,
        mistake.reason,
    )


def remember_phase(state: State, entry: Entry) -> None:
    """A schedule is gone; its phase is kept for a day, should the name come back."""
    if entry.placed is None:
        return
    state.phases.pop(entry.key, None)
    state.phases[entry.key] = (entry.placed, state.monotonic)
    if len(state.phases) > REMEMBERED_LIMIT:
        del state.phases[next(iter(state.phases))]


def phases_read(state: State, message: PhasesRead) -> None:
    """The ledger has kept phases of schedules that were deleted before this process began."""
    for key, placed, deleted_at in message.phases:
        age_s = max(0.0, state.now - deleted_at)
        if (
            key not in state.phases
            and age_s <= REMEMBERED_S
            and len(state.phases) < REMEMBERED_LIMIT
        ):
            state.phases[key] = (placed, state.monotonic - age_s)


def _remembered(state: State, schedule: Schedule) -> Instant | None:
    placed, since_m = state.phases.pop(schedule.key, (None, 0.0))
    if placed is None or state.monotonic - since_m > REMEMBERED_S:
        return None
    return placed.anchor if phase.still_fits(schedule, placed) else None


# --- the load -------------------------------------------------------------------------------------


def load(state: State) -> LoadMap:
    """The load with all changes of this step in it. They come to it together: expanding the day of
    twenty schedules costs little more than that of one."""
    members = []
    for uid in state.reweigh:
        known, entry = state.known.get(uid), state.entries.get(uid)
        if known is None or entry is None:
            continue
        if known.member is None:
            state.load.drop(entry.key)
        else:
            members.append(known.member)
    state.reweigh.clear()
    state.load.put_all(members)
    return state.load


def show_new_day(state: State) -> None:
    """The picture of the day begins with the current slot."""
    start_was = state.load.start
    state.load.advance(int(state.now))
    if state.load.start != start_was:
        picture = state.load.distribution(int(state.now))
        state.log(
            "bucket map rebuilt",
            job_count=picture.total_jobs,
            distribution_score=round(picture.distribution_score, 4),
        )


def _member(state: State, entry: Entry, schedule: Schedule) -> Member:
    placed = entry.placed if phase.is_placed(schedule.timing) else None
    timing = phase.in_force(entry.timing, entry.placed)
    return Member(
        key=entry.key,
        timing=timing or schedule.timing,
        dues=entry.dues if timing else None,
        weight=weight_of(schedule, state.settings.placement_weigh),
        lasts_s=_lasts_s(state, entry, schedule),
        counts=not schedule.suspend and entry.pause is None,
        placed_at=placed.placed_at if placed else None,
        window=schedule.placement.window,
        pinned=schedule.placement.pinned,
    )


def _lasts_s(state: State, entry: Entry, schedule: Schedule) -> int:
    """How long a run is expected to count as load."""
    if state.settings.placement_duration == "Ignore":
        return 0
    return expect.counted_s(schedule, entry.record.expected_s)
