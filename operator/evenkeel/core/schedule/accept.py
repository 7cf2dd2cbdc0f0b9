"""A schedule is seen: for the first time, edited, or with a mistake.

At first sight it goes on from its stored status, and every due time between its mark and now gets a
verdict or a run; from there on it only moves forward. Which schedules are seen at all, and when,
`core.admit` says.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from evenkeel import rfc3339
from evenkeel.core.agenda import LedgerDeadline
from evenkeel.core.effects import AskLedger
from evenkeel.core.messages import LedgerTold
from evenkeel.core.schedule import (
    account,
    adopt,
    due,
    expect,
    halt,
    jobs,
    late,
    life,
    phase,
    template,
    trouble,
)
from evenkeel.core.schedule.entry import Entry, Past
from evenkeel.core.schedule.missed import Span
from evenkeel.core.schedule.ready import DEFECTS
from evenkeel.core.schedule.run import Stage
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import (
    DAY_S,
    At,
    Cron,
    Instant,
    JobFact,
    Rejection,
    RunId,
    RunState,
    Schedule,
    Timing,
)
from evenkeel.reasons import ConditionReason, ConditionType, EventReason, Reason
from evenkeel.resource.record import Memory, Pause
from evenkeel.resource.timing import timing_hash
from evenkeel.when import hint

LEDGER_WAIT_S = 2.0
"""So long a verdict on an instant that is over waits for the ledger."""


def begin(turn: Turn, seen: Schedule | Rejection, memory: Memory, *, revision: int = 0) -> Entry:
    """The entry of a schedule that was not known: what its stored status gives back."""
    believed = _believed(turn, memory)
    entry = Entry(seen.uid, seen.ns, seen.name, memory=believed, seen_m=turn.monotonic)
    entry.storing.revision = entry.storing.written = revision
    entry.record = replace(
        believed.record,
        recent=list(believed.record.recent),
        counts=dict(believed.record.counts),
        counts_since=believed.record.counts_since or turn.second,
        durations=list(believed.record.durations),
        expected_s=expect.expected_s(believed.record.expected_s, believed.record.durations),
    )
    entry.conditions = dict(believed.conditions)
    entry.troubles = trouble.remembered(believed.conditions)
    entry.template_hash = believed.template_hash
    entry.trigger = believed.trigger
    entry.suspended_since = believed.suspended_since
    entry.resumed_at = believed.resumed_at
    entry.pause = believed.pause
    entry.placed = believed.placed
    entry.mark = believed.mark
    entry.settled_mark = min(believed.mark or 0, turn.second)
    entry.storing.version = believed.version
    entry.storing.told_generation = believed.generation
    if believed.timing is not None:
        _use_timing(entry, believed.timing, since=believed.timing_since or turn.second)
        entry.rewind(max(entry.since, entry.resumed_at or 0, believed.mark or 0))
    return entry


def _believed(turn: Turn, memory: Memory) -> Memory:
    """A status may be edited by hand, or written by a clock that was ahead: a mark of the year 9999
    would silence a schedule for ever. What lies further ahead than a mark may counts as now. Due
    times after it that have run are known by their Jobs, or by the rows of `recent`."""
    latest, placed = turn.second + int(turn.settings.pre_schedule_s), memory.placed

    def past(instant: Instant | None) -> Instant | None:
        return turn.second if instant is not None and instant > latest else instant

    # A clock that was set back has written times to come, but none so far ahead.
    far = turn.second + DAY_S

    def shown(instant: Instant | None) -> Instant | None:
        return turn.second if instant is not None and instant > far else instant

    record, pause = memory.record, memory.pause
    return replace(
        memory,
        record=replace(
            record,
            counts_since=min(record.counts_since, turn.second),
            last_schedule=shown(record.last_schedule),
            last_success=shown(record.last_success),
            last_failure=shown(record.last_failure),
            recent=[row for row in record.recent if row.due <= far],
        ),
        pause=replace(pause, since=min(pause.since, turn.second)) if pause else None,
        mark=past(memory.mark),
        timing_since=past(memory.timing_since),
        suspended_since=past(memory.suspended_since),
        resumed_at=past(memory.resumed_at),
        waiting=tuple(row for row in memory.waiting if row.due <= latest),
        placed=placed if placed and placed.anchor <= turn.second + 2 * placed.every_s else None,
    )


def _use_timing(entry: Entry, timing: Timing, *, since: int) -> None:
    """Reckon with this timing from `since` on."""
    entry.timing = timing
    entry.since = since
    phase.compile_in_force(entry)


# --- rejected -------------------------------------------------------------------------------------


def reject(turn: Turn, entry: Entry, rejection: Rejection, facts: Iterable[JobFact] = ()) -> None:
    """Nothing runs until it is mended. Its old timing stays: mended back, it never changed, and
    what was due meanwhile was missed. Where another one comes instead, that is skipped."""
    if entry.rejection != rejection:
        _reject(turn, entry, rejection)
    adopt.take_over(turn, entry, facts)


def _reject(turn: Turn, entry: Entry, rejection: Rejection) -> None:
    entry.schedule, entry.rejection = None, rejection
    entry.generation = rejection.generation
    late.withdraw_future_runs(turn, entry)
    life.call_back(turn, entry)
    account.opened(turn, entry, Reason.REJECTED)
    sentence = f"{rejection.field}: {rejection.sentence}" if rejection.field else rejection.sentence
    reason = rejection.reason
    turn.condition(entry, ConditionType.SCHEDULE_ACCEPTED, "False", reason, sentence)
    _take_defect_back(turn, entry)
    turn.condition(entry, ConditionType.ACTIVE, "False", ConditionReason.NOT_ACCEPTED, sentence)
    turn.dirty(entry)
    turn.show(entry)
    turn.event(entry, EventReason.REFUSED, f"{reason}: {sentence}", warning=True)
    turn.log("schedule rejected", level="warning", schedule=entry.key, sentence=sentence)


# --- accepted -------------------------------------------------------------------------------------


def accept(turn: Turn, entry: Entry, schedule: Schedule, facts: Iterable[JobFact] = ()) -> None:
    """Take an accepted spec in; the same one twice changes nothing."""
    old, refused = entry.schedule, entry.rejection
    if old is not None and old.generation == schedule.generation and refused is None:
        return  # our own status write, echoed by the watch
    if refused is not None and refused.generation == schedule.generation:
        return  # it could not be placed: tried again at each list, it would be told each time
    entry.schedule, entry.rejection = schedule, None
    template.await_proof(turn, entry, schedule)
    entry.retry = schedule.retry
    entry.pause_after = schedule.pause_after_failures
    entry.generation = schedule.generation
    never_seen, first_sight = entry.timing is None, not entry.taken_over
    _begin_reckoning(turn, entry, schedule)
    adopt.take_over(turn, entry, facts)
    if never_seen and isinstance(schedule.timing.rule, At):  # a Job may tell that it has run
        _say_if_past(turn, entry, schedule.timing.rule)
    elif first_sight and entry.timing == schedule.timing:
        _ask_if_told(turn, entry)
    if entry.runs:
        jobs.judge(turn, entry)
    assert entry.timing is not None
    edited = timing_hash(entry.timing) != timing_hash(schedule.timing)
    if edited:
        _change_timing(turn, entry, schedule)
    edited = _template_changes(turn, entry, schedule) or edited
    resumed = entry.suspended_since is not None and not schedule.suspend
    unpaused = entry.pause is not None and (edited or resumed)
    if refused is not None:
        account.closed(turn, entry, Reason.REJECTED)
    if (resumed or unpaused) and _was_off_for_long(turn, entry, resumed=resumed):
        entry.place_afresh = True
    if unpaused:
        why = "resumed" if resumed else "the timing or the template changed"
        halt.end_pause(turn, entry, why=why)
    if schedule.suspend or resumed or entry.pause is not None:
        halt.suspend_or_resume(turn, entry, schedule)
    if not phase.is_placed(schedule.timing):
        entry.placed = None
    rule = schedule.timing.rule
    meant = hint(rule.text) if isinstance(rule, Cron) else ""
    turn.condition(entry, ConditionType.SCHEDULE_ACCEPTED, "True", ConditionReason.ACCEPTED, meant)
    _take_defect_back(turn, entry)
    turn.dirty(entry)
    turn.log("schedule accepted", schedule=entry.key, generation=schedule.generation)


def look_ahead(turn: Turn, entry: Entry) -> None:
    """Its due times are others than they were: take up what an index built earlier cannot know. A
    next time that is not later than now would be started for ever."""
    following = entry.dues.next_after(turn.second) if entry.dues else None
    if following is None or following > turn.second:
        until = math.floor(turn.now + turn.settings.pre_schedule_s) + 1
        due.take_up(turn, entry, until=until)
        return
    reason = f"its next due time is computed as {following}, not later than now"
    entry.pause = Pause(turn.second, "evenkeel", reason)
    account.opened(turn, entry, Reason.PAUSED)
    turn.condition(entry, ConditionType.DEGRADED, "True", ConditionReason.NEXT_NOT_LATER, reason)
    turn.condition(entry, ConditionType.ACTIVE, "False", ConditionReason.PAUSED, reason)
    turn.log("next due time not later", level="error", schedule=entry.key)


def _take_defect_back(turn: Turn, entry: Entry) -> None:
    """It was read again, or edited: a defect shows itself anew."""
    degraded = entry.conditions.get(ConditionType.DEGRADED)
    if degraded is not None and degraded.reason in DEFECTS:
        trouble.show(turn, entry)


def _was_off_for_long(turn: Turn, entry: Entry, *, resumed: bool) -> bool:
    """Whether its runs were off for longer than a phase is kept: others may have come to its
    place."""
    off_since = turn.second
    if entry.pause is not None:
        off_since = min(off_since, entry.pause.since)
    if resumed and entry.suspended_since is not None:
        off_since = min(off_since, entry.suspended_since)
    keep_s = turn.settings.placement_keep_on_resume_s
    return keep_s == 0 or turn.second - off_since > keep_s


def _begin_reckoning(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """Where the reckoning begins: only what is later than all of these counts."""
    entry.created = schedule.created
    if entry.timing is not None:
        entry.advance(entry.created)
        return
    # Never seen before. Generation 1 was never edited, so all since its creation is meant;
    # a later one may have been edited a second ago: nothing may fire retroactively.
    since = schedule.created if schedule.generation <= 1 else turn.second
    _use_timing(entry, schedule.timing, since=since)
    entry.rewind(max(since, entry.mark or 0))
    if entry.taken_over:  # it was rejected until now
        account.timing_began(turn, entry)


def _change_timing(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """What was due by the old timing is reckoned first; the new one counts from its first sight."""
    accepted = entry.conditions.get(ConditionType.SCHEDULE_ACCEPTED)
    refused = accepted is not None and accepted.status == "False"
    due.retire_timing(turn, entry, refused=refused)
    before, since = entry.dues, entry.since
    moved_zone = entry.timing is not None and entry.timing.zone != schedule.timing.zone
    if moved_zone and schedule.placement.window is not None:
        entry.place_afresh = True  # its window is at another time now
    _use_timing(entry, schedule.timing, since=turn.second)
    account.timing_began(turn, entry)
    rule = schedule.timing.rule
    told_by_old_timing = (
        isinstance(rule, At)
        and rule.instant > since
        and before is not None
        and before.count(rule.instant, rule.instant + 1) > 0
    )
    if isinstance(rule, At) and not told_by_old_timing:
        _say_if_past(turn, entry, rule)
    turn.log("timing changed", schedule=entry.key, since=rfc3339.show(entry.since))


def _say_if_past(turn: Turn, entry: Entry, rule: At) -> None:
    """An instant that was over before it was asked for: nothing else would ever tell of it."""
    if rule.instant > entry.since:
        return
    run_id = RunId(entry.uid, rule.instant)
    if run_id in entry.runs or any(row.due == rule.instant for row in entry.record.recent):
        return  # asked for again after it has run
    if entry.generation <= 1 or not rule.instant > entry.created:
        _miss_past(turn, entry, rule.instant)
    else:  # it may have run so long ago that no row of `recent` tells of it
        _ask_ledger(turn, entry, Past(rule.instant, missed_unless_known=True))


def _ask_if_told(turn: Turn, entry: Entry) -> None:
    """At a restart: an earlier process may have ended while it asked the ledger."""
    rule = entry.timing.rule if entry.timing else None
    if not isinstance(rule, At) or not entry.created < rule.instant <= entry.since:
        return
    told = any(row.due == rule.instant for row in entry.record.recent)
    if not told and RunId(entry.uid, rule.instant) not in entry.runs:
        _ask_ledger(turn, entry, Past(rule.instant, missed_unless_known=False))


def _ask_ledger(turn: Turn, entry: Entry, past: Past) -> None:
    entry.asked_past = past
    turn.emit(AskLedger(entry.uid, (RunId(entry.uid, past.instant),)))
    turn.agenda.put_delay(turn.monotonic + LEDGER_WAIT_S, LedgerDeadline(entry.uid))


def ledger_told(turn: Turn, entry: Entry, message: LedgerTold) -> None:
    """What the ledger knows of an instant that is over: with a row it has its verdict."""
    past, entry.asked_past = entry.asked_past, None
    rule = entry.timing.rule if entry.timing else None
    if past is None or rule != At(past.instant):
        return
    run_id = RunId(entry.uid, past.instant)
    if run_id in message.states or run_id in entry.runs:
        turn.log("past instant has its verdict", schedule=entry.key)
    elif message.known or past.missed_unless_known:
        _miss_past(turn, entry, past.instant)


def ledger_deadline(turn: Turn, entry: Entry, task: LedgerDeadline) -> None:
    """It does not answer: nothing waits for it any longer."""
    if entry.asked_past is not None:
        ledger_told(turn, entry, LedgerTold(entry.uid, {}, known=False))


def _miss_past(turn: Turn, entry: Entry, instant: Instant) -> None:
    life.end_span(turn, entry, Span(instant, instant, 1), RunState.MISSED, Reason.PAST)


# --- the template ---------------------------------------------------------------------------------


def _template_changes(turn: Turn, entry: Entry, schedule: Schedule) -> bool:
    """Whether the template was edited since it was last seen."""
    changed = entry.template_hash != schedule.template_hash
    edited = changed and bool(entry.template_hash)
    if changed:
        entry.template_hash = schedule.template_hash
        entry.conditions.pop(ConditionType.TEMPLATE_ACCEPTED, None)
        for run in entry.runs.values():
            if run.prepared and run.stage is Stage.TAKEN:
                life.prepare(turn, entry, run)  # or its first run would be one of the old image
    template.prove(turn, entry, schedule)
    return edited
