"""The status of a schedule, from its entry: what a restart needs, and what people are shown. Pure.

`take_document` alone has an effect: it moves the mark and says whether the schedule will ever run
again, because a status that is about to be stored must tell both.
"""

from evenkeel import rfc3339
from evenkeel.core.messages import Document
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.ready import renew, sentence
from evenkeel.core.schedule.run import Run
from evenkeel.model import Instant, JobRef, RunId, ScheduleState
from evenkeel.reasons import ConditionReason, ConditionType
from evenkeel.resource.job import job_name
from evenkeel.resource.record import (
    ACTIVE_COUNT,
    UPCOMING_COUNT,
    WAITING_COUNT,
    Memory,
    Shown,
)
from evenkeel.resource.status import render
from evenkeel.when.zone import load_zone


def take_document(entry: Entry, *, now: float) -> Document:
    """The status to be stored now."""
    entry.reach_mark(now)
    _say_whether_ended(entry, now=now)
    entry.storing.sent = (entry.storing.revision, entry.mark or 0, entry.told_mark)
    return document(entry, now=now)


def document(entry: Entry, *, now: float) -> Document:
    """The status as it stands: what a restart needs of it, and what people are shown."""
    with_job = [run for run in entry.runs.values() if run.has_job]
    active = [run for run in with_job if run.by_schedule]
    named = [*active, *(run for run in with_job if not run.by_schedule)][:ACTIVE_COUNT]
    mark = entry.mark or 0
    memory = Memory(
        generation=entry.generation,
        mark=entry.mark,
        timing=entry.timing,
        timing_since=entry.since,
        suspended_since=entry.suspended_since,
        resumed_at=entry.resumed_at,
        pause=entry.pause,
        waiting=tuple(entry.waiting[:WAITING_COUNT]),
        active=tuple(_reference(entry, run) for run in named),
        unnamed_active=sum(run.id.due <= mark for run in active[ACTIVE_COUNT:]),
        record=entry.record,
        template_hash=entry.template_hash,
        trigger=entry.trigger,
        conditions=entry.conditions,
        placed=entry.placed,
    )
    upcoming = next_dues(entry, now=now, count=UPCOMING_COUNT)
    due = upcoming[0] if upcoming else None
    zone = load_zone(entry.timing.zone if due and entry.timing else "UTC")
    text = entry.dues.text if entry.dues else None
    if entry.rejection is not None:  # the timing kept beside it is one that the user has replaced
        text = f"refused: {entry.rejection.reason}"
    shown = Shown(
        state=state_of(entry),
        schedule_text=text,
        images=", ".join(entry.schedule.images) or None if entry.schedule else None,
        upcoming=tuple(upcoming),
        active_count=len(with_job),
        next_local=rfc3339.show_ahead(due, zone.offset_at(due)) if due else None,
    )
    return render(memory, shown, ns=entry.ns)


def state_of(entry: Entry) -> ScheduleState:
    """One word on how the schedule stands."""
    conditions = entry.conditions
    degraded = conditions.get(ConditionType.DEGRADED)
    active = conditions.get(ConditionType.ACTIVE)
    template = conditions.get(ConditionType.TEMPLATE_ACCEPTED)
    if entry.rejection is not None or (template is not None and template.status == "False"):
        return ScheduleState.REFUSED
    if entry.schedule is None or not entry.taken_over:
        return ScheduleState.PENDING
    if entry.schedule.suspend:
        return ScheduleState.SUSPENDED
    if entry.pause is not None:
        return ScheduleState.PAUSED
    if active is not None and active.reason == ConditionReason.ENDED:
        return ScheduleState.ENDED
    if degraded is not None and degraded.status == "True":
        return ScheduleState.DEGRADED
    has_job = any(run.has_job for run in entry.runs.values())
    return ScheduleState.RUNNING if has_job else ScheduleState.SCHEDULED


def next_dues(entry: Entry, *, now: float, count: int) -> list[Instant]:
    """The next due times that await a run; none while nothing may start."""
    if entry.dues is None or entry.halted:
        return []
    found: list[Instant] = []
    after: Instant | None = int(now)
    while len(found) < count and after is not None:
        after = entry.dues.next_after(after)
        # A status that was edited, or written by a clock that was ahead, tells of ends to come.
        if after is not None and RunId(entry.uid, after) not in entry.decided:
            found.append(after)
    return found


def _say_whether_ended(entry: Entry, *, now: float) -> None:
    """A schedule that is never due again says so. Asked before the document is written: that a
    last due time has passed is no event that anybody tells of."""
    if entry.halted:
        return
    ended = not next_dues(entry, now=now, count=1)
    old = entry.conditions.get(ConditionType.ACTIVE)
    status, reason = (
        ("False", ConditionReason.ENDED) if ended else ("True", ConditionReason.SCHEDULED)
    )
    if old is None or (old.status, old.reason) != (status, reason):
        says = sentence(ConditionType.ACTIVE, reason)
        entry.conditions[ConditionType.ACTIVE] = renew(
            old, status, reason, says, now=int(now), generation=entry.generation
        )


def _reference(entry: Entry, run: Run) -> JobRef:
    return run.ref or JobRef(entry.ns, job_name(entry.name, run.id, run.attempt))
