"""Which schedules there are: they come, are listed, change, go, and are read again.

What a schedule does at its first sight or its edit, `core.schedule.accept` says. Nothing is
admitted before the Jobs are listed: what is due cannot be told without.
"""

import itertools
import math
from collections.abc import Iterable

from evenkeel.core import placing, requests, route, wallclock
from evenkeel.core.agenda import ReadAgain
from evenkeel.core.effects import Forget, ReadSchedule, ScheduleEnded
from evenkeel.core.messages import (
    JobSeen,
    JobsListed,
    JobsSilent,
    ScheduleGone,
    ScheduleRead,
    ScheduleSeen,
    SchedulesListed,
)
from evenkeel.core.schedule import accept, account, jobs, phase, trigger
from evenkeel.core.state import State
from evenkeel.model import Instant, JobFact, JobState, Rejection


def schedule_seen(state: State, message: ScheduleSeen) -> None:
    """Added or modified; the same sight twice changes nothing."""
    seen = message.schedule
    if seen.uid in state.gone or seen.uid in state.closed:
        return  # a uid never comes back; and a closed schedule is read with its Jobs
    if seen.uid not in state.entries and (message.memory.mark or math.inf) > state.now:
        wallclock.suspect(state, [_last_told(message)])
    if not state.can_tell_what_is_due:
        state.unadmitted[seen.uid] = state.monotonic, message
        state.unadmitted_ordered = False
        return
    _admit(state, message)


def _admit(state: State, message: ScheduleSeen, *, revision: int = 0) -> None:
    seen = message.schedule
    entry = state.entries.get(seen.uid)
    if entry is None:
        previous = state.uid_by_key.get(seen.key)
        if previous is not None and previous != seen.uid:
            # Deleted and created again, and the deletion was not seen.
            _remove(state, previous)
        if not route.first_sight(state, seen, message.memory, revision=revision):
            return
    elif seen.generation < entry.generation:
        return  # an older list after a newer watch event: never go back
    facts = tuple(state.job_facts.pop(seen.uid, {}).values())
    if isinstance(seen, Rejection):
        route.call(state, seen.uid, accept.reject, seen, facts)
    else:
        route.call(state, seen.uid, accept.accept, seen, facts)
        if seen.trigger:
            route.call(state, seen.uid, trigger.look, seen.trigger, touch=False)


def admit_waiting(state: State, limit: int) -> None:
    """Some of those that were seen before anything could be told. Those that need a phase come when
    all the others' load is known, or they would be placed on top of it."""
    if state.unadmitted and not state.unadmitted_ordered:
        wallclock.suspect(state, [_last_told(seen) for _, seen in state.unadmitted.values()])
        if state.doubts_clock:
            return
        # Of two of a name the older one was deleted, and that was not seen.
        newest = {seen.schedule.key: uid for uid, (_, seen) in state.unadmitted.items()}
        left = [
            (uid, seen)
            for uid, seen in state.unadmitted.items()
            if newest[seen[1].schedule.key] == uid
        ]
        state.unadmitted = dict(sorted(left, key=lambda item: _needs_phase(item[1][1])))
        state.unadmitted_ordered = True
    for uid in list(itertools.islice(state.unadmitted, limit)):
        _admit(state, state.unadmitted.pop(uid)[1])


def _last_told(seen: ScheduleSeen) -> Instant | None:
    """When somebody was surely there, by a clock that was right."""
    created = None if isinstance(seen.schedule, Rejection) else seen.schedule.created
    return seen.memory.mark or created


def _needs_phase(seen: ScheduleSeen) -> bool:
    schedule, memory = seen.schedule, seen.memory
    if isinstance(schedule, Rejection):
        return False
    goes_on = memory.suspended_since is not None or memory.pause is not None  # perhaps afresh
    return phase.is_needed(schedule, memory.placed, afresh=goes_on)


# --- they go --------------------------------------------------------------------------------------


def schedule_gone(state: State, message: ScheduleGone) -> None:
    """No launch after the deletion was seen, whatever a watch that lags shows after it."""
    state.gone[message.uid] = state.monotonic
    _remove(state, message.uid)


def resource_removed(state: State) -> None:
    """All are gone at once. Where only the CRD was taken away and their data stayed, they come back
    as they were: that they are gone is not remembered."""
    for uid in [*state.entries, *state.closed, *state.unadmitted]:
        _remove(state, uid)
    state.gone.clear()


def _remove(state: State, uid: str) -> None:
    """The garbage collector takes the Jobs."""
    state.job_facts.pop(uid, None)
    state.unadmitted.pop(uid, None)
    state.failures.pop(uid, None)
    if state.listed_uids is not None:
        state.listed_uids.discard(uid)
    entry, closed = state.entries.get(uid), state.closed.pop(uid, None)
    if entry is not None:
        route.drop(state, entry)
        requests.schedule_went(state, entry)
        placing.remember_phase(state, entry)
        state.emit(account.ended(entry, now=int(state.now)))
    elif closed is not None:
        if state.uid_by_key.get(closed.key) == uid:
            del state.uid_by_key[closed.key]
        now = int(state.now)
        state.emit(ScheduleEnded(uid, closed.key, now, now))
    if entry is not None or closed is not None:
        known = entry or closed
        assert known is not None
        state.emit(Forget(uid))
        state.log("schedule removed", schedule=known.key)


def schedules_listed(state: State, message: SchedulesListed) -> None:
    """Prune ghosts: a deletion that no watch reported must not go on creating Jobs."""
    if state.listed_uids is None:
        state.listed_uids = set(message.uids)
    else:
        state.listed_uids &= message.uids
    known = [(entry.uid, entry.ns, entry.name, entry.seen_m) for entry in state.entries.values()]
    known += [(one.uid, one.ns, one.name, one.closed_m) for one in state.closed.values()]
    known += [
        (uid, seen.schedule.ns, seen.schedule.name, seen_m)
        for uid, (seen_m, seen) in state.unadmitted.items()
    ]
    for uid, ns, name, seen_m in known:
        if uid in message.uids or ns in message.unlisted or seen_m >= message.listed_m:
            continue
        state.log("schedule pruned", level="warning", schedule=f"{ns}/{name}")
        schedule_gone(state, ScheduleGone(uid))


# --- Jobs -----------------------------------------------------------------------------------------


def jobs_listed(state: State, message: JobsListed) -> None:
    """All Jobs at one moment: adopt what is new, look for what is not among them."""
    first_time = message.ns not in state.listed_namespaces
    if state.job_facts:
        _forget_facts(state, message.ns)
    for fact in message.facts:
        route.job_seen(state, JobSeen(fact))
    if first_time:
        state.listed_namespaces.add(message.ns)
        return
    listed = {(fact.ref.ns, fact.ref.name) for fact in message.facts}
    for uid, entry in list(state.entries.items()):
        if message.ns in ("", entry.ns):
            route.call(state, uid, jobs.compare_with_list, listed, message.listed_at)


def jobs_silent(state: State, message: JobsSilent) -> None:
    """Say so on every schedule that it concerns."""
    if message.silent:
        state.silent.add(message.ns)
    else:
        state.silent.discard(message.ns)
    for uid, entry in list(state.entries.items()):
        if message.ns in ("", entry.ns):
            route.call(state, uid, jobs.silence_changed, touch=False)


def _forget_facts(state: State, ns: str) -> None:
    """What an older list said of schedules that are not admitted yet is outdated by a new one."""
    for uid, facts in list(state.job_facts.items()):
        kept = {key: fact for key, fact in facts.items() if ns not in ("", fact.ref.ns)}
        if kept:
            state.job_facts[uid] = kept
        else:
            del state.job_facts[uid]


# --- read again -----------------------------------------------------------------------------------


def read_again(state: State, task: ReadAgain) -> None:
    """The pause of a closed schedule is over."""
    if (closed := state.closed.get(task.uid)) is not None:
        state.emit(ReadSchedule(closed.uid, closed.ns, closed.name))
        requests.read_again(state, closed.uid)


def schedule_read(state: State, message: ScheduleRead) -> None:
    """A closed schedule, its status and its Jobs as the API server has them: as at a restart."""
    closed = state.closed.get(message.uid)
    if closed is None:
        return
    if message.seen is None:
        schedule_gone(state, ScheduleGone(message.uid))
        return
    del state.closed[message.uid]
    since = state.job_facts.pop(message.uid, {}).values()
    facts = _newest(f for f in (*message.facts, *since) if f.ref.uid not in closed.gone_jobs)
    state.job_facts[message.uid] = facts
    _admit(state, message.seen, revision=closed.revision)


def _newest(facts: Iterable[JobFact]) -> dict[str, JobFact]:
    """Of two facts of one Job the one that is further: a list and a watch may lag one another."""
    order = list(JobState)
    newest: dict[str, JobFact] = {}
    for fact in facts:
        known = newest.get(fact.ref.uid)
        if known is None or order.index(fact.state) >= order.index(known.state):
            newest[fact.ref.uid] = fact
    return newest
