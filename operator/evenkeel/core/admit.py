"""Schedules come, change and go.

At first sight one goes on from its stored status, and every due time between its mark and now gets
a verdict or a run; from there on it only moves forward.
"""

import itertools
import math
from dataclasses import replace

from evenkeel.core import adopt, follow, halt, late, life, placing, take, wallclock
from evenkeel.core.effects import CheckTemplate, Forget, Withdraw
from evenkeel.core.entry import Entry
from evenkeel.core.messages import ScheduleGone, ScheduleSeen, SchedulesListed
from evenkeel.core.missed import Missed, Span
from evenkeel.core.state import State
from evenkeel.errors import BadField
from evenkeel.model import (
    At,
    Instant,
    Rejection,
    RunId,
    Schedule,
    Timing,
)
from evenkeel.resource import rfc3339
from evenkeel.resource.status import EMPTY, Memory, Pause, timing_hash

GONE_S = 600.0
"""How long a deletion is remembered: an API server keeps five minutes of what it tells."""

SURPRISE = "InternalError"
"""The reason of a schedule that raised what nobody foresaw; the next sight of it may not."""

FUTURE_S = 86_400
"""What a status says to have happened later than this from now has not happened."""


def admit_safely(state: State, message: ScheduleSeen) -> None:
    """One schedule must not stop all others: what nobody foresaw of it is a condition too."""
    try:
        schedule_seen(state, message)
    except Exception as surprise:  # noqa: BLE001 - the bulkhead between tenants
        seen = message.schedule
        sentence = f"this schedule could not be taken in ({type(surprise).__name__}: {surprise})"
        state.log("schedule not taken in", level="error", schedule=f"{seen.ns}/{seen.name}")
        entry = state.entries.get(seen.uid)
        if entry is None:  # not even its status: unknown it would keep the operator from readiness
            entry = _first_sight(state, seen, replace(EMPTY, mark=message.memory.mark))
            adopt.take_over(state, entry)
        _reject(
            state,
            entry,
            Rejection(seen.uid, seen.ns, seen.name, seen.generation, "", sentence, SURPRISE),
        )


def schedule_seen(state: State, message: ScheduleSeen) -> None:
    """Added or modified; the same sight twice changes nothing."""
    seen = message.schedule
    if seen.uid in state.gone:
        return  # a uid never comes back
    entry = state.entries.get(seen.uid)
    if entry is None and (message.memory.mark or math.inf) > state.now:
        wallclock.suspect(state, [_told(message)])
    if not state.can_tell_what_is_due:
        state.unadmitted[seen.uid] = state.now, message
        state.unadmitted_ordered = False
        return
    if entry is None:
        entry = _first_sight(state, seen, message.memory)
    elif seen.generation < entry.generation:
        return  # an older list after a newer watch event: never go back
    if isinstance(seen, Rejection):
        _reject(state, entry, seen)
        adopt.take_over(state, entry)
    else:
        _accept(state, entry, seen)


def next_unadmitted(state: State, limit: int) -> list[str]:
    """Whom to admit next after the start: those that need a phase come when all the others' load
    is known, or they would be placed on top of it."""
    if state.unadmitted and not state.unadmitted_ordered:
        wallclock.suspect(state, [_told(seen) for _, seen in state.unadmitted.values()])
        if state.doubts_clock:
            return []
        # Of two of a name the older one was deleted, and that was not seen.
        newest = {_key(seen): uid for uid, (_, seen) in state.unadmitted.items()}
        left = [
            (uid, seen) for uid, seen in state.unadmitted.items() if newest[_key(seen[1])] == uid
        ]
        state.unadmitted = dict(sorted(left, key=lambda item: _needs_phase(item[1][1])))
        state.unadmitted_ordered = True
    return list(itertools.islice(state.unadmitted, limit))


def _told(seen: ScheduleSeen) -> Instant | None:
    """When somebody was surely there, by a clock that was right."""
    created = None if isinstance(seen.schedule, Rejection) else seen.schedule.created
    return seen.memory.mark or created


def _key(seen: ScheduleSeen) -> tuple[str, str]:
    return seen.schedule.ns, seen.schedule.name


def _needs_phase(seen: ScheduleSeen) -> bool:
    schedule = seen.schedule
    if isinstance(schedule, Rejection) or not placing.is_placed(schedule.timing):
        return False
    return not placing.still_fits(schedule, seen.memory.placed)


def schedule_gone(state: State, message: ScheduleGone) -> None:
    """No launch after the deletion was seen, whatever a watch that lags shows after it."""
    state.gone[message.uid] = state.now
    _remove(state, message)


def forget_gone(state: State) -> None:
    """No watch lags for longer; and had a list been wrong, the schedule would be back then."""
    for uid in itertools.takewhile(
        lambda uid: state.gone[uid] <= state.now - GONE_S, list(state.gone)
    ):
        del state.gone[uid]


def _remove(state: State, message: ScheduleGone) -> None:
    """The garbage collector takes the Jobs."""
    entry = state.entries.pop(message.uid, None)
    state.job_facts.pop(message.uid, None)
    state.unadmitted.pop(message.uid, None)
    if state.listed_uids is not None:
        state.listed_uids.discard(message.uid)
    if entry is None:
        return
    if state.uid_by_key.get(entry.key) == entry.uid:
        del state.uid_by_key[entry.key]
    for run in entry.runs.values():
        if run.prepared or run.creating:
            state.emit(Withdraw(run.id, run.attempt))
    placing.forget(state, entry)
    state.index_dirty = True
    state.emit(Forget(entry.uid))
    state.log("schedule removed", schedule=entry.key)


def schedules_listed(state: State, message: SchedulesListed) -> None:
    """Prune ghosts: a deletion that no watch reported must not go on creating Jobs."""
    state.listed_uids = set(message.uids)
    if message.listed_at > state.now:
        return  # the clock was set back since: what was first seen after it cannot be told
    known = [(entry.uid, entry.ns, entry.name, entry.seen_at) for entry in state.entries.values()]
    known += [
        (uid, seen.schedule.ns, seen.schedule.name, seen_at)
        for uid, (seen_at, seen) in state.unadmitted.items()
    ]
    for uid, ns, name, seen_at in known:
        if uid in message.uids or ns in message.unlisted or seen_at >= message.listed_at:
            continue
        state.log("schedule pruned", level="warning", schedule=f"{ns}/{name}")
        schedule_gone(state, ScheduleGone(uid))


def _first_sight(state: State, seen: Schedule | Rejection, memory: Memory) -> Entry:
    told, memory = memory, _believed(state, memory)
    entry = Entry(seen.uid, seen.ns, seen.name, memory=memory, seen_at=state.now)
    entry.counts = dict(memory.counts)
    entry.counts_since = memory.counts_since or int(state.now)
    entry.consecutive_failures = memory.consecutive_failures
    entry.last_schedule = memory.last_schedule
    entry.last_success = memory.last_success
    entry.last_failure = memory.last_failure
    entry.last_result = memory.last_result
    entry.recent = list(memory.recent)
    entry.conditions = dict(memory.conditions)
    entry.template_hash = memory.template_hash
    entry.suspended_since = memory.suspended_since
    entry.resumed_at = memory.resumed_at
    entry.pause = memory.pause
    entry.placed = memory.placed
    entry.mark = memory.mark
    entry.version = memory.version
    if memory.timing is not None:
        _use_timing(entry, memory.timing, since=memory.timing_since or int(state.now))
        reached = memory.mark or (int(state.now) if told.mark else 0)  # disbelieved, so from now on
        entry.rewind(max(entry.since, entry.resumed_at or 0, reached))
    previous = state.uid_by_key.get(entry.key)
    if previous is not None:  # deleted and created again, and the deletion was not seen
        _remove(state, ScheduleGone(previous))
    state.entries[entry.uid] = entry
    state.uid_by_key[entry.key] = entry.uid
    return entry


def _believed(state: State, memory: Memory) -> Memory:
    """A status may be edited by hand: a mark of the year 9999 would silence a schedule for ever."""
    latest, placed = state.now + FUTURE_S, memory.placed

    def past(instant: Instant | None) -> Instant | None:
        return instant if instant is None or instant <= latest else None

    return replace(
        memory,
        mark=past(memory.mark),
        timing_since=past(memory.timing_since),
        suspended_since=past(memory.suspended_since),
        resumed_at=past(memory.resumed_at),
        waiting=tuple(due for due in memory.waiting if due <= latest),
        placed=placed if placed and placed.anchor <= latest + placed.every_s else None,
    )


def _use_timing(entry: Entry, timing: Timing, *, since: Instant) -> None:
    """Reckon with this timing from `since` on."""
    entry.timing = timing
    entry.since = since
    placing.compile_in_force(entry)


def _reject(state: State, entry: Entry, rejection: Rejection) -> None:
    """Nothing runs until it is mended. Its old timing stays: mended back, it never changed, and
    what was due meanwhile was missed. Where another one comes instead, that is skipped."""
    if entry.rejection == rejection:
        return
    entry.schedule, entry.rejection = None, rejection
    entry.generation = rejection.generation
    late.drop_future_runs(state, entry)
    life.call_back(state, entry)
    state.reweigh[entry.uid] = None
    state.index_dirty = True
    sentence = f"{rejection.field}: {rejection.sentence}" if rejection.field else rejection.sentence
    state.condition(entry, "ScheduleAccepted", "False", rejection.reason, sentence)
    state.condition(entry, "Ready", "False", rejection.reason, sentence)
    state.condition(entry, "Active", "False", "NotAccepted", sentence)
    state.dirty(entry)
    state.event(entry, rejection.reason, sentence, warning=True)
    state.log("schedule rejected", level="warning", schedule=entry.key, sentence=sentence)


def _accept(state: State, entry: Entry, schedule: Schedule) -> None:
    old, now = entry.schedule, int(state.now)
    refused = entry.rejection
    if old is not None and old.generation == schedule.generation and refused is None:
        return  # our own status write, echoed by the watch
    if (
        refused is not None
        and refused.generation == schedule.generation
        and refused.reason != SURPRISE
    ):
        return  # it could not be placed: tried again at each list, it would be told each time
    entry.schedule, entry.rejection = schedule, None
    entry.retry = schedule.retry
    entry.pause_after = schedule.pause_after_failures
    entry.generation = schedule.generation
    state.index_dirty = True
    never_seen = entry.timing is None
    _begin(state, entry, schedule)
    adopt.take_over(state, entry)
    if never_seen:  # by a status; a Job may tell that it has run
        _say_if_past(state, entry)
    follow.judge(state, entry)
    edited = _timing_changes(state, entry, schedule)
    if entry.template_hash != schedule.template_hash:
        edited = edited or bool(entry.template_hash)
        entry.template_hash = schedule.template_hash
        entry.conditions.pop("TemplateAccepted", None)
        for run in entry.runs.values():
            if run.prepared and not run.creating:
                life.prepare(state, entry, run)  # or its first run would be one of the old image
    proven = entry.conditions.get("TemplateAccepted")
    if proven is None or proven.status == "Unknown":
        state.emit(CheckTemplate(schedule))
    resumed = entry.suspended_since is not None and not schedule.suspend
    unpaused = entry.pause is not None and (edited or resumed)
    if unpaused:
        halt.end_pause(
            state, entry, why="resumed" if resumed else "the timing or the template changed"
        )
    halt.suspend_or_resume(state, entry, schedule, now)
    if placing.is_placed(schedule.timing) and not schedule.suspend:
        if resumed or unpaused or not placing.still_fits(schedule, entry.placed):
            _place(state, entry, schedule)
            if entry.rejection is not None:
                return
    elif not placing.is_placed(schedule.timing):
        entry.placed = None
    state.reweigh[entry.uid] = None
    state.condition(entry, "ScheduleAccepted", "True", "Accepted")
    state.condition(entry, "Ready", "True", "Scheduled")
    state.dirty(entry)
    state.log("schedule accepted", schedule=entry.key, generation=schedule.generation)
    if _moves_on(state, entry):
        take.take_up_soon(state, entry)
        take.next_in_queue(state, entry)


def _place(state: State, entry: Entry, schedule: Schedule) -> None:
    try:
        placing.choose(state, entry, schedule)
    except BadField as mistake:  # a window that holds no minute
        _reject(
            state,
            entry,
            Rejection(
                entry.uid,
                entry.ns,
                entry.name,
                entry.generation,
                mistake.field,
                mistake.sentence,
                mistake.reason,
            ),
        )


def _moves_on(state: State, entry: Entry) -> bool:
    """A next time that is not later than now would be started for ever."""
    now = int(state.now)
    following = entry.dues.next_after(now) if entry.dues else None
    if following is None or following > now:
        return True
    entry.pause = Pause(now, "evenkeel", f"its next due time is computed as {following}, not later")
    state.condition(entry, "Ready", "False", "NextNotLater", entry.pause.reason)
    state.condition(entry, "Active", "False", "Paused", entry.pause.reason)
    state.log("next due time not later", level="error", schedule=entry.key)
    return False


def _begin(state: State, entry: Entry, schedule: Schedule) -> None:
    """Where the reckoning begins: only what is later than all of these counts."""
    entry.created = schedule.created
    if entry.timing is not None:
        entry.advance(entry.created)
        return
    # Never seen before. Generation 1 was never edited, so all since its creation is meant;
    # a later one may have been edited a second ago: nothing may fire retroactively.
    since = schedule.created if schedule.generation <= 1 else int(state.now)
    _use_timing(entry, schedule.timing, since=since)
    entry.rewind(max(since, entry.mark or 0))


def _timing_changes(state: State, entry: Entry, schedule: Schedule) -> bool:
    """What was due by the old timing is reckoned first; the new one counts from its first sight."""
    assert entry.timing is not None
    if timing_hash(entry.timing) == timing_hash(schedule.timing):
        return False
    accepted = entry.conditions.get("ScheduleAccepted")
    take.retire_timing(state, entry, refused=accepted is not None and accepted.status == "False")
    before, since = entry.dues, entry.since
    _use_timing(entry, schedule.timing, since=int(state.now))
    rule = schedule.timing.rule
    told = (
        isinstance(rule, At)
        and rule.instant > since
        and before is not None
        and before.count(rule.instant, rule.instant + 1) > 0
    )
    if not told:  # by the timing before
        _say_if_past(state, entry)
    state.reindex(entry)
    state.log("timing changed", schedule=entry.key, since=rfc3339.show(entry.since))
    return True


def _say_if_past(state: State, entry: Entry) -> None:
    """An instant that was over before it was asked for: nothing else would ever tell of it."""
    rule = entry.timing.rule if entry.timing else None
    if not isinstance(rule, At) or rule.instant > entry.since:
        return
    run_id = RunId(entry.uid, rule.instant)
    if run_id in entry.runs or any(row.due == rule.instant for row in entry.recent):
        return  # asked for again after it has run
    late.miss(state, entry, Missed(Span(rule.instant, rule.instant, 1), "past"))
