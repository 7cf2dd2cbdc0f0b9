"""Oracles of the ledger: every due time is recorded once, and what is recorded is what the statuses
told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from tests.ledger.model import Schedule, Tables
from tests.sim import forgiven
from tests.sim.outcome import Outcome
from tests.sim.reading import mark_of, name_of, read_instant, timing_of, was_due, with_its_phase
from tests.sim.server import SCHEDULED_JOB, Json

from evenkeel.ledger.audit import Difference, Wrong, audit
from evenkeel.ledger.reckoning import count_due, timing_text
from evenkeel.ledger.rows import UNRECORDED, Range, SpanRow, TimingRow
from evenkeel.model import BY_SCHEDULE, ENDED, Instant, RunId
from evenkeel.resource.timing import timing_from_fields

BEHIND_S = 5
"""What a status has told for so long is in the ledger."""

T = TypeVar("T")


def the_ledger_agrees(outcome: Outcome) -> Iterator[str]:
    """In the calm at the end the ledger has what the statuses tell, and no more."""
    wrong = list(_disagreements(outcome))
    if wrong and not (forgiven.two_writers(outcome) or forgiven.clock_was_set(outcome)):
        yield from wrong


def _disagreements(outcome: Outcome) -> Iterator[str]:
    store = outcome.vault.read()
    found = at_once(audit(store, 0, int(outcome.now) + 60))
    for difference in found.found.differences:
        if not (
            forgiven.status_was_forged(outcome, difference.uid)
            or forgiven.in_the_ledger_by_a_timing_never_told(outcome, _all_ran(outcome, difference))
        ):
            yield _told(outcome, difference)
    yield from (f"ledger: {sentence}" for sentence in at_once(store.check()))
    yield from _unrecorded(outcome)
    for uid, item in _schedules(outcome):
        wrong = [*_counts_agree(outcome, uid, item), *_recent_agrees(outcome, uid)]
        if wrong and not (
            forgiven.status_was_forged(outcome, uid)
            or forgiven.lacks_a_run_of_a_timing_never_told(outcome, _strays(outcome, item))
        ):
            yield from wrong


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What a call of the store in memory gives: it never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("the store in memory waited")


def _unwritten(outcome: Outcome) -> int:
    """How many due times the statuses had told of whenever a process ended, and the ledger's mark
    had not passed."""
    return sum(
        _due_between(outcome, uid, status, after=mark)
        for ledger in outcome.ledgers
        for uid, (mark, status) in ledger.items()
    )


def _due_between(outcome: Outcome, uid: str, status: Json, *, after: Instant) -> int:
    """By the timings that the ledger knows, or by the one that the status tells: whichever gives
    more."""
    last = mark_of(status) or 0
    schedule = outcome.vault.tables.schedules.get(uid)
    if schedule is None or last <= after:
        return 0
    timings = _timings(schedule)
    told = timing_from_fields(timing_of(status).get("fields"))
    phased = with_its_phase(told, status) if told else None
    by_status = [TimingRow(uid, schedule.key, 0, timing_text(phased))]
    return max(count_due(rows, after + 1, last + 1) for rows in (timings, by_status))


def _told(outcome: Outcome, difference: Difference) -> str:
    times = ", ".join(f"{instant - outcome.world.base}" for instant in difference.instants)
    return f"ledger: {difference.key}: {difference.count} {difference.wrong}: due {times}"


def _all_ran(outcome: Outcome, difference: Difference) -> bool:
    """Whether each of these runs had a Job, and was due by a spec that there was."""
    jobs = {job.due: job for job in outcome.jobs.values() if job.uid == difference.uid}
    return difference.wrong is Wrong.EXTRA and all(
        due in jobs and was_due(outcome, jobs[due]) for due in difference.instants
    )


def _strays(outcome: Outcome, schedule: Schedule) -> int:
    """How many of its runs had a Job, and were not due by the timings that the ledger knows."""
    timings = _timings(schedule)
    dues = {job.due for job in outcome.jobs.values() if job.uid == schedule.uid}
    return sum(not count_due(timings, due, due + 1) for due in dues)


def _timings(schedule: Schedule) -> list[TimingRow]:
    return [
        TimingRow(schedule.uid, schedule.key, since, fields)
        for since, fields in sorted(schedule.timings.items())
    ]


def _unrecorded(outcome: Outcome) -> Iterator[str]:
    count = sum(
        span.row.counts.get(UNRECORDED, 0)
        for span in outcome.vault.tables.spans
        if UNRECORDED in span.row.counts and not forgiven.status_was_forged(outcome, span.row.uid)
    )
    if not count:
        return
    most = _unwritten(outcome)
    if count > most:
        yield f"ledger: {count} unrecorded, and no more than {most} waited to be written"
    elif not outcome.vault.trouble.is_any:
        yield f"ledger: {count} unrecorded, and nothing was wrong with the store"


def _schedules(outcome: Outcome) -> Iterator[tuple[str, Schedule]]:
    """Those that exist, and that the ledger knows since their creation."""
    exist = {
        item["metadata"]["uid"]: item for item in outcome.server.objects[SCHEDULED_JOB].values()
    }
    for uid, schedule in outcome.vault.tables.schedules.items():
        if uid in exist and schedule.timings:
            yield uid, schedule


def _counts_agree(outcome: Outcome, uid: str, schedule: Schedule) -> Iterator[str]:
    """Each end is counted as often in the ledger as in some status of the last seconds."""
    stored = outcome.statuses.get(uid, [])
    counts = [
        status.get("counts") or {}
        for at, status in stored
        if at > outcome.now - BEHIND_S or (at, status) == _settled(outcome, uid)
    ]
    if not counts:
        return
    recorded = ends_of(outcome.vault.tables, uid)
    unrecorded = recorded.pop(UNRECORDED, 0)
    # A run that has begun, and whose end the status does not tell any more, is lost to the ledger.
    lost_rows = max(0, recorded["lost"] - counts[-1].get("lost", 0))
    if outcome.vault.trouble.is_any:
        unrecorded, recorded["lost"] = unrecorded + lost_rows, recorded["lost"] - lost_rows
    for state in sorted({*recorded, *counts[0], *counts[-1]}):
        least, most = counts[0].get(state, 0), counts[-1].get(state, 0)
        found = recorded[state]
        if found > most or (found + unrecorded < least and not _is_young(outcome, schedule)):
            yield (
                f"ledger: {name_of(outcome, uid)}: {found} {state} and {unrecorded} unrecorded, "
                f"and its status counts {least} to {most}"
            )


def _is_young(outcome: Outcome, schedule: Schedule) -> bool:
    """Whether the ledger knows it from later than its creation on: what was before is not in it,
    because the store was begun anew, or was away until the first process ended."""
    item = outcome.schedules[schedule.uid]
    created = read_instant(item["metadata"]["creationTimestamp"])
    return min(schedule.timings) > created and outcome.vault.trouble.is_any


def ends_of(tables: Tables, uid: str) -> Counter[str]:
    """What the ledger counts of a schedule: its runs by their ends, and its range rows."""
    ends: Counter[str] = Counter()
    for run, cold in tables.runs.items():
        if run.uid == uid and run.kind == BY_SCHEDULE and cold.row.state in ENDED:
            ends[cold.row.state] += 1
    for span in tables.spans:
        if span.row.uid == uid:
            ends.update(span.row.counts)
    return ends


def _recent_agrees(outcome: Outcome, uid: str) -> Iterator[str]:
    """Each run of `recent` that has ended has a row with the same end, or stands for a range."""
    settled = _settled(outcome, uid)
    if settled is None:
        return
    tables = outcome.vault.tables
    since = min(tables.schedules[uid].timings)
    for row in settled[1].get("recent") or ():
        due, state = read_instant(row["due"]), row["state"]
        # A new store is not told of what was due before it knew the schedule.
        if due <= since or state not in ENDED or _is_in_range(tables, uid, due, row):
            continue
        cold = tables.runs.get(RunId(uid, due))
        there = cold.row.state if cold else "no row"
        if there != state:
            yield (
                f"ledger: {name_of(outcome, uid)} due {due - outcome.world.base}: {there}, "
                f"and its status says {state}"
            )


def _is_in_range(tables: Tables, uid: str, due: Instant, row: Json) -> bool:
    """Whether it stands for a range that ends with it, or was folded since."""
    return any(
        span.row.uid == uid
        and row["state"] in span.row.counts
        and (span.row.end == due + 1 if span.row.kind is Range.VERDICT else _covers(span.row, due))
        for span in tables.spans
    )


def _covers(row: SpanRow, due: Instant) -> bool:
    return row.end is not None and row.first <= due < row.end


def _settled(outcome: Outcome, uid: str) -> tuple[float, Json] | None:
    """The last status that was stored a while before the end."""
    old = [one for one in outcome.statuses.get(uid, []) if one[0] <= outcome.now - BEHIND_S]
    return old[-1] if old else None
