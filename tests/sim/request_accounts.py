"""Oracles of what requests plan, of what becomes of it, and of what the ledger records of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tests.sim import forgiven
from tests.sim.outcome import Created, Outcome
from tests.sim.reading import (
    a_phase_is_untold,
    every_timing_was_told,
    mark_of,
    read_instant,
    timings_in_force,
    waiting_in,
)
from tests.sim.request_reading import (
    Asked,
    all_asked,
    final_of,
    under_way,
    why_ended,
)
from tests.sim.server import SCHEDULED_JOB
from tests.sim.world import NO_LEDGER

from evenkeel.model import BY_SCHEDULE, ENDED, Instant, Interval, Timing
from evenkeel.resource.names import NOTE_TRIGGER
from evenkeel.when import compile_timing

BEHIND_S = 5
"""What a status has told for so long is in the ledger."""

SEEN_S = 2.0
"""Until what becomes of a Job is known, where nothing is wrong."""

MADE_S = 30.0
"""Until a trigger has made its request, in calm."""


def requests_are_accounted_for(outcome: Outcome) -> Iterator[str]:
    """In the plan is what was missing, and in the ledger what became of it."""
    planned: list[str] = []
    told: list[str] = []
    for asked in all_asked(outcome):
        sentences = (*_plans_by_its_timing(asked), *_plans_what_is_missing(asked))
        planned += [f"{asked.name}: {sentence}" for sentence in sentences]
        told += [f"ledger: {asked.name}: {sentence}" for sentence in _the_ledger_tells(asked)]
    if planned and not forgiven.two_writers(outcome):
        yield from planned
    if told and not (forgiven.two_writers(outcome) or forgiven.ledger_lost_rows(outcome)):
        yield from told
    yield from _a_trigger_makes_one_request(outcome)


# --- the plan -------------------------------------------------------------------------------------


def _plans_by_its_timing(asked: Asked) -> Iterator[str]:
    """By a timing that the schedule had about then."""
    if asked.planned is None or "range" not in asked.spec:
        return
    at, dues, _ = asked.planned
    uid = next(status["scheduleUid"] for _, status in asked.stored if status.get("scheduleUid"))
    first, end = (read_instant(asked.spec["range"][side]) for side in ("from", "to"))
    by = [
        [*compile_timing(_from(timing, first), seed=asked.schedule).between(first, end)]
        for timing, _, _ in timings_in_force(asked.outcome, uid)
    ]
    untold = not by or not every_timing_was_told(asked.outcome, uid)
    untold = untold or a_phase_is_untold(asked.outcome, uid)
    if dues not in by and not forgiven.planned_by_a_timing_never_told(asked.outcome, untold):
        yield f"at {at - asked.outcome.world.base:.3f} its plan is by no timing of its schedule"


def _from(timing: Timing, first: Instant) -> Timing:
    """With a phase that was chosen later than `first`, as if it had always been that one."""
    rule = timing.rule
    if not isinstance(rule, Interval) or rule.anchor is None or rule.anchor < first:
        return timing
    periods = (rule.anchor - first) // rule.every_s + 1
    return replace(timing, rule=replace(rule, anchor=rule.anchor - periods * rule.every_s))


def _plans_what_is_missing(asked: Asked) -> Iterator[str]:
    """As `include` says, by what became of the Jobs until then."""
    if asked.planned is None:
        return
    at, dues, planned = asked.planned
    if "range" not in asked.spec:
        if planned != {asked.due}:
            yield f"plans {planned}, and one run due {asked.due} was asked for"
        return
    uid = asked.status.get("scheduleUid", "")
    jobs: dict[Instant, list[Created]] = defaultdict(list)
    kinds = {other.kind for other in all_asked(asked.outcome)} | {BY_SCHEDULE}
    if NO_LEDGER in asked.outcome.world.tags:
        kinds = {BY_SCHEDULE}  # the schedule's status tells of no others
    for job in asked.outcome.all_jobs.values():
        if job.uid == uid and job.kind != asked.kind and job.kind in kinds:
            jobs[job.due].append(job)
    include = asked.spec.get("include", "NotSucceeded")
    for due in dues:
        if (wanted := _is_wanted(asked, include, due, jobs[due], at)) is None:
            continue
        if wanted is not (due in planned) and not forgiven.ledger_did_not_know(asked.outcome):
            does = "plans" if due in planned else "does not plan"
            yield f"{include} {does} {due - asked.outcome.world.base}, and its Jobs are {jobs[due]}"


def _is_wanted(
    asked: Asked, include: str, due: Instant, jobs: list[Created], at: float
) -> bool | None:
    """Whether this due time is to run; None: it changed just then, or waits without a Job."""
    before = at - SEEN_S
    if _may_wait(asked, due, at):
        return None
    then, now = ([_end_at(job, t) for job in jobs if job.at <= t] for t in (before, at))
    if then != now:
        return None
    if "" in now:
        return False  # a living run is never repeated
    match include:
        case "All":
            return True
        case "NotRun":
            return not now
        case _:
            return "succeeded" not in now


def _end_at(job: Created, at: float) -> str:
    """What had become of a Job; empty: it ran."""
    if job.ended and job.ended_at <= at:
        return job.ended
    return "deleted" if job.deleted_at is not None and job.deleted_at <= at else ""


def _may_wait(asked: Asked, due: Instant, at: float) -> bool:
    """Whether it may have been a living run without a Job: one that waits, by schedule or for
    another request, or that had not come up yet."""
    outcome = asked.outcome
    uid = asked.status.get("scheduleUid", "")
    about = [status for t, status in outcome.statuses.get(uid, []) if at - 3 <= t <= at + 3]
    about += [status for t, status in outcome.statuses.get(uid, []) if t <= at][-1:]
    if any(due in waiting_in(status) or (mark_of(status) or 0) < due for status in about):
        return True
    for other in all_asked(outcome):
        if other.uid == asked.uid or other.schedule != asked.schedule:
            continue
        statuses = [status for t, status in other.stored if at - 3 <= t <= at + 3]
        statuses.append(other.status_at(at))
        if any(due in under_way(status) for status in statuses):
            return True
    return False


# --- the ledger -----------------------------------------------------------------------------------


def _the_ledger_tells(asked: Asked) -> Iterator[str]:
    """What its status has told for a while: a row for each run, with the same end."""
    outcome = asked.outcome
    settled = [(at, status) for at, status in asked.stored if at <= outcome.now - BEHIND_S]
    if not settled or asked.planned is None or not asked.is_there:
        return
    if NO_LEDGER in outcome.world.tags:
        return
    status = settled[-1][1]
    rows = {
        run.due: cold.row.state
        for run, cold in outcome.vault.tables.runs.items()
        if run.kind == asked.kind
    }
    for row in status.get("recent") or ():
        due, state = read_instant(row["due"]), row["state"]
        if state in ENDED and rows.get(due) != state:
            there = rows.get(due, "no row")
            yield f"due {due - outcome.world.base}: {there}, and its status says {state}"
    counts = Counter(status.get("counts") or {})
    ended = Counter(state.value for state in rows.values() if state in ENDED)
    if why_ended(status) == "ScheduleGone":
        # A run for later that never began has a row; one that had no Job yet may have none.
        ended.pop("cancelled", None)
        counts.pop("cancelled", None)
    lacks = counts >= ended and counts != ended
    if lacks and forgiven.ends_died_with_their_process(outcome, counts.total()):
        return
    if final_of(status) and +counts != ended:
        yield f"its rows are {dict(ended)}, and its status counts {dict(+counts)}"
    strange = rows.keys() - asked.planned[2]
    if strange:
        yield f"rows of due times that are not planned: {sorted(strange)}"


# --- triggers -------------------------------------------------------------------------------------


def _a_trigger_makes_one_request(outcome: Outcome) -> Iterator[str]:
    """Each id that a schedule is annotated with, once: not again after a restart, nor after the
    request was deleted."""
    made = Counter(
        (call.created["metadata"]["namespace"], call.note)
        for call in outcome.server.requests
        if call.created is not None
        and "/runrequests" in call.path
        and call.status == 201
        and call.who != "user"
    )
    for (ns, name), times in made.items():
        if times > 1 and not forgiven.two_writers(outcome):
            yield f"{ns}/{name}: was made {times} times"
    for item in outcome.server.objects[SCHEDULED_JOB].values():
        wish = (item["metadata"].get("annotations") or {}).get(NOTE_TRIGGER)
        told = ((item.get("status") or {}).get("internal") or {}).get("trigger")
        set_at = outcome.annotated.get(item["metadata"]["uid"], outcome.now)
        if wish and told != wish and set_at < outcome.now - MADE_S:
            where = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
            yield f"{where}: was triggered by {wish}, and its status says {told}"
