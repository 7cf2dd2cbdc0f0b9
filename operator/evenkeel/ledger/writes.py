"""What the ledger writes for an effect of the scheduler: one write for each. Pure; `sync` calls it.

Also the text of a phase, which a schedule of the same name gets back within a day.
"""

from collections.abc import Iterable
from dataclasses import replace

import orjson

from evenkeel.core import effects
from evenkeel.ledger.outbox import Teller
from evenkeel.ledger.reckoning import timing_text
from evenkeel.ledger.rows import (
    MarkRow,
    Range,
    RunRow,
    ScheduleEnded,
    ScheduleRow,
    SpanClosed,
    SpanRow,
    TimingRow,
    Write,
)
from evenkeel.model import Attempt, Instant, RunState, kind_of_request
from evenkeel.resource.record import Placed
from evenkeel.resource.status import placed_fields, placed_from_fields

OfRun = effects.RunWaits | effects.RunBegan | effects.RunEnded

Told = (
    effects.TimingBegan
    | effects.RunWaits
    | effects.RunBegan
    | effects.RunEnded
    | effects.SpanEnded
    | effects.SpanOpened
    | effects.SpanClosed
)
"""Effects that a status tells of: each carries the revision of the first status that does."""

LONGEST_REQUESTED_BY = 256
"""Characters that are kept of what the maker of a request told of himself."""


def teller_of(effect: Told) -> Teller:
    """Whose status tells of an effect."""
    if isinstance(effect, OfRun) and effect.told_by is not None:
        return Teller(effect.run.uid, kind_of_request(effect.told_by.request))
    return Teller(uid_of(effect))


def uid_of(effect: Told) -> str:
    """The schedule that an effect is about."""
    if isinstance(effect, OfRun):
        return effect.run.uid
    return effect.uid


def write_of(effect: Told) -> Write | None:
    """What is written for it. None: of runs that were lost, the status named too few. They have
    rows of their own, which `reconcile` ends."""
    match effect:
        case effects.TimingBegan(uid=uid, key=key, after=after, timing=timing):
            return TimingRow(uid, key, after, timing_text(timing))
        case effects.RunWaits():
            return _of_request(_waits(effect), effect.told_by)
        case effects.RunBegan():
            return _of_request(_began(effect), effect.told_by)
        case effects.RunEnded():
            return _of_request(_ended(effect), effect.told_by)
        case effects.SpanEnded(state=RunState.LOST):
            return None
        case effects.SpanEnded(uid=uid, key=key, first=first, last=last):
            counts = {effect.state.value: effect.count}
            return SpanRow(uid, key, first, last + 1, counts, effect.reason.value)
        case effects.SpanOpened(uid=uid, key=key, first=first, reason=reason):
            return SpanRow(uid, key, first, None, {}, reason.value, Range.OPEN)
        case effects.SpanClosed(uid=uid, key=key, last=last, reason=reason):
            return SpanClosed(uid, key, reason.value, last)


def _of_request(row: RunRow, told_by: effects.ToldBy | None) -> RunRow:
    """The row of a run, with the request that asked for the run."""
    if told_by is None:
        return row
    # An annotation may have 256 KiB, and each of ten thousand rows would carry it.
    requested_by = told_by.requested_by[:LONGEST_REQUESTED_BY]
    return replace(row, request=told_by.name, requested_by=requested_by)


def mark_of(told: effects.StatusTold) -> MarkRow:
    """The mark that a stored status tells."""
    return MarkRow(told.uid, told.key, told.mark)


def end_of(ended: effects.ScheduleEnded) -> ScheduleEnded:
    """The deletion of a schedule."""
    phase = phase_text(ended.placed) if ended.placed else ""
    return ScheduleEnded(ended.uid, ended.key, ended.at, ended.until, phase)


def phase_text(placed: Placed) -> str:
    """As ScheduleEnded has it."""
    return orjson.dumps(placed_fields(placed)).decode()


def phase_from_text(text: str) -> Placed | None:
    """The phase that `phase_text` wrote; None when it was not written by it."""
    try:
        return placed_from_fields(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None


def phases_of(
    rows: Iterable[ScheduleRow], *, since: float
) -> tuple[tuple[str, Placed, Instant], ...]:
    """The phases of schedules that were deleted since, as PhasesRead has them: the last one of each
    name."""
    found: dict[str, tuple[str, Placed, Instant]] = {}
    for row in sorted(rows, key=lambda row: row.ended_at or 0):
        if row.ended_at is None or row.ended_at < since or not row.phase:
            continue
        if (placed := phase_from_text(row.phase)) is not None:
            found[row.key] = (row.key, placed, row.ended_at)
    return tuple(found.values())


def _waits(waits: effects.RunWaits) -> RunRow:
    return RunRow(
        run=waits.run,
        key=waits.key,
        state=waits.state,
        reason=waits.reason or "",
        attempt=waits.attempt,
        taken_up=waits.taken_at,
        created=_created(waits.attempts),
        due_at=waits.due_at,
        priority=waits.priority,
        attempts=waits.attempts,
    )


def _began(began: effects.RunBegan) -> RunRow:
    created = began.sent_at if began.attempt == 1 else _created(began.attempts)
    return RunRow(
        run=began.run,
        key=began.key,
        state=RunState.RUNNING,
        attempt=began.attempt,
        job=began.job,
        taken_up=began.taken_at,
        created=created,
        generation=began.generation,
        template_hash=began.template_hash,
        attempts=began.attempts,
    )


def _ended(ended: effects.RunEnded) -> RunRow:
    cause = ended.cause
    return RunRow(
        run=ended.run,
        key=ended.key,
        state=ended.state,
        reason=ended.reason or "",
        attempt=ended.attempt,
        job=ended.job,
        taken_up=ended.taken_at,
        created=_created(ended.attempts),
        started=ended.started,
        finished=ended.finished,
        exit_code=cause.exit_code if cause else None,
        exit_reason=cause.reason if cause else "",
        container=cause.container if cause else "",
        message=(cause.message if cause else "") or ended.message,
        generation=ended.generation,
        template_hash=ended.template_hash,
        attempts=ended.attempts,
    )


def _created(attempts: tuple[Attempt, ...]) -> float | None:
    """When the create of a run's first attempt was sent."""
    return next((each.created for each in attempts if each.number == 1), None)
