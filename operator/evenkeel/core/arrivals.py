"""Schedules that arrive together, as one `helm install` or `kubectl apply` brings them.

Each gets a phase at once, by `core.placing`, and may run by it. When no other one has come for a
while, the set is improved: the search runs away from the loop, and the phases change in bites.

arrived -> (quiet) -> ImproveSet away from the loop -> improved -> go_on, step by step

Guarantees: only a schedule that has never run, is not taken up and is not due within a minute is
moved. A crash in between leaves some moved, each of them whole. A restart ends the set: schedules
that have a phase then keep it.
"""

from evenkeel import balance
from evenkeel.balance import Move
from evenkeel.balance.arrivals import SOON_S
from evenkeel.core import route
from evenkeel.core.effects import ImproveSet, Observed
from evenkeel.core.messages import SetImproved
from evenkeel.core.placing import MOVES_PER_STEP, follow_up, load
from evenkeel.core.schedule import phase
from evenkeel.core.state import State

IMPROVED_AT_MOST = 20_000
"""The search for ten thousand takes 4 s of a processor, beside the loop that has runs to start.
Larger sets stay as they were placed, one by one; a rebalance can move them later."""


def go_on(state: State) -> None:
    """The next bite of an improved set; or, when its time has come, its improvement."""
    arrivals = state.arrivals
    if not arrivals.ahead and not arrivals.members:
        return
    if state.stopping or not state.can_tell_what_is_due or state.moving is not None:
        return
    if arrivals.ahead:
        for _ in range(min(MOVES_PER_STEP, len(arrivals.ahead))):
            _move(state, *arrivals.ahead.popleft())
        follow_up(state)
    elif arrivals.is_due(state.monotonic):
        _improve(state)


def wait_s(state: State) -> float:
    """How long until there is something to do here; infinite when there is nothing."""
    arrivals = state.arrivals
    if state.moving is not None or arrivals.improving:
        return float("inf")
    return 0.0 if arrivals.ahead else arrivals.wait_s(state.monotonic)


def _improve(state: State) -> None:
    arrivals = state.arrivals
    untried = {
        uid: until
        for uid, until in arrivals.members.items()
        if until > state.now
        and (entry := state.entries.get(uid)) is not None
        and phase.is_untried(entry)
    }
    uids = {state.entries[uid].key: uid for uid in untried}
    latest = {key: untried[uid] for key, uid in uids.items()}
    arrivals.improve(untried, state.monotonic)
    if not 2 <= len(latest) <= IMPROVED_AT_MOST:  # of one, `place` chose the best there is
        arrivals.improving = False
        if len(latest) > 2:
            state.log("too many schedules arrived together to improve", job_count=len(latest))
        return
    follow_up(state)
    state.emit(
        ImproveSet(
            load(state).snapshot(), latest, uids, int(state.now), state.settings.pre_schedule_s
        )
    )


def improve(work: ImproveSet) -> SetImproved:
    """Search, on a load of its own: another thread may do it while the scheduler goes on."""
    moves = balance.improve_set(
        work.load, work.latest, work.now, pre_schedule_s=work.pre_schedule_s
    )
    return SetImproved(tuple((work.uids[move.key], move) for move in moves), len(work.latest))


def improved(state: State, message: SetImproved) -> None:
    """The search has ended: its moves begin."""
    state.arrivals.improving = False
    state.arrivals.ahead.extend(message.moves)
    state.log(
        "schedules that arrived together improved",
        job_count=message.job_count,
        moved=len(message.moves),
    )


def _move(state: State, uid: str, move: Move) -> None:
    member = state.load.members.get(move.key)
    entry = state.entries.get(uid)  # not by name: who came back under it has its own phase back
    if member is None or entry is None or entry.placed is None or not phase.is_untried(entry):
        return
    now = int(state.now)
    soonest = now + max(SOON_S, state.settings.pre_schedule_s)
    following = entry.dues.next_after(now) if entry.dues else None
    if entry.placed.anchor != move.old_anchor or following is None or following <= soonest:
        return  # placed afresh meanwhile, or due soon
    end = member.timing.end
    if move.proposed_time <= now + state.settings.pre_schedule_s + 1:
        return
    if member.pinned or not member.counts or (end is not None and move.proposed_time >= end):
        return
    sentence = balance.improved_sentence(member, move.proposed_time)
    route.call(state, entry.uid, phase.move, move, sentence)
    state.emit(Observed("placed_again", 1))
