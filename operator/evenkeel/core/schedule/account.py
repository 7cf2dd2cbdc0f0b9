"""What the ledger is told of a schedule, as effects, each with the status that tells of it first.

`life`, `halt`, `phase`, `accept` and `adopt` call this module where something happens. Each effect
names the revision of the status: `StatusTold` says up to which one the status is stored, and until
then nothing of it may be written to the ledger. After a crash the ledger is therefore never ahead
of the status, from which the next process goes on.
"""

from collections.abc import Iterable, Iterator

from evenkeel.core.effects import (
    RunBegan,
    RunWaits,
    ScheduleEnded,
    ScheduleKnown,
    SpanClosed,
    SpanOpened,
    StatusTold,
    TimingBegan,
    ToldBy,
)
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.progress import Storing
from evenkeel.core.schedule.request import RequestEntry
from evenkeel.core.schedule.run import Run
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import BY_SCHEDULE, Attempt, Instant, JobFact, RunId, Timing
from evenkeel.reasons import Reason, RunReason
from evenkeel.resource.record import RecentRun


def known(
    entry: Entry, *, mark: Instant, recent: Iterable[RecentRun], alive: Iterable[RunId]
) -> ScheduleKnown:
    """A schedule as its stored status tells of it. `mark` is that of the stored status."""
    return ScheduleKnown(
        uid=entry.uid,
        key=entry.key,
        after=entry.cursor,
        mark=mark,
        timing=_in_force(entry),
        recent=tuple(recent),
        spans=tuple(entry.record.spans),
        alive=tuple(alive),
        timing_since=_timing_since(entry),
        open_as=tuple(_open_as(entry)),
        told=entry.storing.tells_timing,
    )


def _timing_since(entry: Entry) -> Instant:
    """A phase may have been chosen later than its timing began."""
    timing = _in_force(entry)
    if entry.placed is None or timing is None or timing == entry.timing:
        return entry.since
    return max(entry.since, entry.placed.placed_at)


def _open_as(entry: Entry) -> Iterator[Reason]:
    if entry.rejection is not None:
        yield Reason.REJECTED
    if entry.skipped_as is not None:
        yield entry.skipped_as


def known_now(entry: Entry) -> ScheduleKnown:
    """The same at any later time."""
    mark = entry.storing.told_mark
    alive = [run for run in entry.runs if run.kind == BY_SCHEDULE and run.due <= mark]
    return known(entry, mark=mark, recent=entry.record.recent, alive=alive)


def timing_began(turn: Turn, entry: Entry) -> None:
    """Other due times than before count from the cursor on."""
    turn.dirty(entry)
    turn.emit(
        TimingBegan(
            entry.uid, entry.key, entry.cursor, _in_force(entry), revision=entry.storing.revision
        )
    )


def _in_force(entry: Entry) -> Timing | None:
    """None: it has no due times, as an interval has none before its phase is chosen."""
    return entry.dues.timing if entry.dues is not None else None


def opened(turn: Turn, entry: Entry, reason: Reason) -> None:
    """What is due after the cursor becomes no run."""
    turn.dirty(entry)
    turn.emit(
        SpanOpened(entry.uid, entry.key, entry.cursor + 1, reason, revision=entry.storing.revision)
    )


def closed(turn: Turn, entry: Entry, reason: Reason) -> None:
    """What is due after the cursor becomes runs again."""
    turn.dirty(entry)
    turn.emit(
        SpanClosed(entry.uid, entry.key, entry.cursor, reason, revision=entry.storing.revision)
    )


def status_stored(turn: Turn, entry: Entry, revision: int) -> None:
    """The status of this revision is stored."""
    mark = entry.storing.told_mark
    turn.emit(StatusTold(entry.uid, entry.key, revision, mark))


def ended(entry: Entry, *, now: Instant) -> ScheduleEnded:
    """The schedule was deleted."""
    entry.reach_mark(now)
    return ScheduleEnded(entry.uid, entry.key, now, min(now, entry.told_mark), entry.placed)


# --- runs -----------------------------------------------------------------------------------------


def run_waits(
    turn: Turn, entry: Entry, run: Run, reason: RunReason | None, *, due_at: float | None = None
) -> None:
    """A run waits. It is told once for each reason: a held run tries every few seconds."""
    says = (run.state, reason or "", run.attempt)
    if run.told == says:
        return
    run.told = says
    turn.emit(
        RunWaits(
            run=run.id,
            key=entry.key,
            state=run.state,
            reason=reason,
            attempt=run.attempt,
            taken_at=run.taken_at,
            revision=storing(entry, run).revision,
            due_at=due_at,
            priority=entry.schedule.priority if entry.schedule else 0,
            attempts=tuple(run.done),
            told_by=told_by(entry, run),
        )
    )


def run_began(turn: Turn, entry: Entry, run: Run) -> None:
    """The Job of a run's present attempt exists."""
    schedule = entry.schedule
    turn.emit(
        RunBegan(
            run=run.id,
            key=entry.key,
            attempt=run.attempt,
            job=run.ref.name if run.ref else "",
            sent_at=run.sent_at,
            taken_at=run.taken_at,
            generation=schedule.generation if schedule else 0,
            template_hash=schedule.template_hash if schedule else "",
            attempts=attempts_of(run),
            revision=storing(entry, run).revision,
            told_by=told_by(entry, run),
        )
    )


def storing(entry: Entry, run: Run) -> Storing:
    """Of the status that tells of a run: that of its request, or of its schedule."""
    request = entry.request_of(run.id)
    return entry.storing if request is None else request.storing


def told_by(entry: Entry, run: Run) -> ToldBy | None:
    """The request of a run; None: its schedule asked for it, or its request is gone."""
    request = entry.request_of(run.id)
    return None if request is None else told_by_request(request)


def told_by_request(request: RequestEntry) -> ToldBy:
    """A request, as the ledger is told of it."""
    requested_by = request.spec.requested_by if request.spec else ""
    return ToldBy(request.uid, request.name, requested_by)


def attempts_of(
    run: Run, *, finished: Instant | None = None, reason: str = ""
) -> tuple[Attempt, ...]:
    """All Jobs of a run that are known, the present one last."""
    if run.ref is None or not run.begun:
        return tuple(run.done)
    cause = run.cause
    present = Attempt(
        number=run.attempt,
        job=run.ref.name,
        created=run.sent_at,
        started=run.started,
        finished=finished,
        exit_code=cause.exit_code if cause else None,
        reason=cause.reason if cause else reason,
    )
    return (*run.done, present)


def attempt_of(fact: JobFact) -> Attempt:
    """What a Job that is there tells of an attempt."""
    return Attempt(
        number=fact.attempt,
        job=fact.ref.name,
        started=fact.started,
        finished=fact.finished,
        reason=fact.reason,
    )
