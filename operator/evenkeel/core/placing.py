"""Intervals without an offset get their phase here, keep it, and change it only on purpose.

A phase is an anchor: due at anchor + k * every, k = 1, 2, ... It is chosen once, by looking at all
the other schedules, and written to the status; times follow by arithmetic, so nothing drifts.
"""

from dataclasses import replace

from evenkeel import balance
from evenkeel.balance import LoadMap, Member
from evenkeel.core import take
from evenkeel.core.effects import Observed
from evenkeel.core.entry import Entry
from evenkeel.core.state import State
from evenkeel.errors import BadField
from evenkeel.model import Instant, Interval, Schedule, Timing
from evenkeel.resource.status import Placed
from evenkeel.when import DueTimes, compile_timing

REMEMBERED_S = 86_400
"""The same name applied again within a day gets its phase back."""

REMEMBERED_LIMIT = 10_000


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
    state.event(entry, "Placed", found.reason)


def change_phase(state: State, entry: Entry, placed: Placed) -> None:
    """From now on due by this phase; what was due by the old one until now is reckoned first."""
    take.retire_timing(state, entry)
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
