"""What oracles read in an outcome: its schedules, timings and stored statuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.sim.outcome import Created, Outcome
from tests.sim.server import SCHEDULED_JOB, Json

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE, Instant, Interval, Schedule, Timing
from evenkeel.resource.job import due_of
from evenkeel.resource.job_name import read_job_name
from evenkeel.resource.read import read
from evenkeel.resource.timing import timing_from_fields, timing_hash
from evenkeel.settings import Settings
from evenkeel.when import compile_timing

EVER = 1 << 60

PRE_SCHEDULE_S = Settings().pre_schedule_s
"""A mark may stand so far ahead of now."""

# --- statuses -------------------------------------------------------------------------------------


def internal(status: Json) -> Json:
    """What a status holds for the operator alone: mark, timing, waiting and the like."""
    kept: Json = status.get("internal") or status
    return kept


def mark_of(status: Json) -> Instant | None:
    """Every due time up to here has a verdict or waits."""
    mark = internal(status).get("mark")
    return read_instant(mark) if mark else None


def waiting_in(status: Json) -> set[Instant]:
    """Due times of scheduled runs that wait for their create."""
    rows = internal(status).get("waiting") or ()
    rows = [{"due": row} if isinstance(row, str) else row for row in rows]
    return {read_instant(row["due"]) for row in rows if row.get("kind", BY_SCHEDULE) == BY_SCHEDULE}


def active_in(status: Json) -> set[Instant]:
    """Due times of the runs by schedule whose Jobs a status names."""
    named = [read_job_name(row["name"]) for row in status.get("active") or ()]
    return {one.due for one in named if one is not None and one.kind == BY_SCHEDULE}


def due_in(name: str) -> Instant:
    """The due time in a Job's name."""
    due = due_of(name)
    assert due is not None, name
    return due


def timing_of(status: Json) -> Json:
    """The timing in force, as stored."""
    timing: Json = internal(status).get("timing") or {}
    return timing


def since_of(status: Json) -> str | None:
    return timing_of(status).get("since")


def condition_of(status: Json, kind: str) -> Json:
    """One of its conditions; empty: it has none of that type."""
    rows = status.get("conditions") or ()
    return next((row for row in rows if row["type"] == kind), {})


def refused_since(status: Json) -> Instant | None:
    """Since when the spec could not be accepted."""
    condition = condition_of(status, "ScheduleAccepted")
    if condition.get("status") != "False":
        return None
    return read_instant(condition["lastTransitionTime"])


# --- schedules ------------------------------------------------------------------------------------


def alive(outcome: Outcome) -> Iterator[tuple[str, Json, Json]]:
    """Schedules that exist at the end and have a status with a mark."""
    for item in outcome.server.objects[SCHEDULED_JOB].values():
        status = item.get("status") or {}
        if mark_of(status) is not None:
            yield item["metadata"]["uid"], item, status


def is_halted(item: Json, status: Json) -> bool:
    """Suspended, paused or refused: nothing of it may begin."""
    return bool(
        item["spec"].get("suspend") or status.get("pause") or refused_since(status) is not None
    )


def faults_of(outcome: Outcome) -> set[str]:
    """What may happen to a request in this play."""
    weather = outcome.processes[0].play.weather
    return set(getattr(weather, "calls", ()))


def has_pending_deadline(outcome: Outcome, uid: str) -> bool:
    return any(one["spec"].get("pendingDeadlineSeconds") for one in outcome.specs[uid])


def ttl_of(item: Json) -> int | None:
    """When a Job of it vanishes by itself, counted from the Job's end."""
    ttl_s: int | None = item["spec"]["jobTemplate"]["spec"].get("ttlSecondsAfterFinished")
    return ttl_s


def may_vanish(item: Json) -> bool:
    """Jobs that vanish by themselves may do so unseen: such a run is lost."""
    return ttl_of(item) is not None


def name_of(outcome: Outcome, uid: str) -> str:
    """`namespace/name`."""
    metadata = outcome.schedules[uid]["metadata"] if uid in outcome.schedules else {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


# --- timings --------------------------------------------------------------------------------------


def timings_in_force(outcome: Outcome, uid: str) -> list[tuple[Any, Instant, Instant]]:
    """Each timing that was in force, after which instant and until which. Another phase of a placed
    interval is another timing; without a phase it is none."""
    spans: list[tuple[Any, Instant, Instant]] = []
    # Nothing before its creation, and nothing twice, even where a clock that was set says so.
    since_created = read_instant(outcome.schedules[uid]["metadata"]["creationTimestamp"])
    mark = since_created
    for _, status in outcome.statuses[uid]:
        reached = max(mark_of(status) or 0, since_created)
        # A mark may stand a little ahead of now, and an edit takes it back.
        passed, mark = min(mark, reached), reached
        told = timing_from_fields(timing_of(status).get("fields"))
        if told is None:
            continue
        timing = with_its_phase(told, status)
        since = read_instant(since_of(status) or "")
        if timing is not told and timing is not None:
            since = max(since, read_instant(status["placement"]["placedAt"]))
        if passed - since > PRE_SCHEDULE_S:
            since = passed  # no edit takes a mark back so far
        since = max(since, since_created)
        if timing is None:
            if spans:
                spans[-1] = (*spans[-1][:2], min(spans[-1][2], since))
            continue
        if spans and spans[-1][2] == EVER and timing_hash(spans[-1][0]) == timing_hash(timing):
            continue
        if spans:
            spans[-1] = (*spans[-1][:2], min(spans[-1][2], since))
        spans.append((timing, since, EVER))
    return spans


def marks_ahead_of_an_edit(outcome: Outcome, uid: str) -> Iterator[tuple[Instant, Instant]]:
    """Where the clock was set back before an edit, the old timing was reckoned up to a mark that
    lies after `since`: somewhere between that of the status before and that of the first one after
    it. Which of the two timings it was by, nobody can say there. A mark that stood ahead of its own
    time is none of these: the edit takes it back."""
    for (at, old), (_, new) in itertools.pairwise(outcome.statuses[uid]):
        before, after, since = mark_of(old), mark_of(new), since_of(new)
        if before is None or after is None or since is None or since == since_of(old):
            continue
        if read_instant(since) < before <= at:
            yield before, after


def wished_between(outcome: Outcome, uid: str, old: Json, new: Json) -> list[Timing]:
    """What users asked for since the older of two statuses, as far as the newer one knows."""
    first, last = old.get("observedGeneration", 0), new.get("observedGeneration", 0)
    wished = [read(item) for item in outcome.specs[uid]]
    return [
        schedule.timing
        for schedule in wished
        if isinstance(schedule, Schedule) and first < schedule.generation <= last
    ]


def with_its_phase(timing: Timing, status: Json) -> Timing | None:
    """A timing with the phase that this status tells of; None: it needs one, and has none."""
    rule, placement = timing.rule, status.get("placement")
    if not isinstance(rule, Interval) or rule.offset_s is not None:
        return timing
    if not placement or placement["every"] != f"{rule.every_s}s":
        return None
    anchor = read_instant(placement["anchor"])
    return replace(timing, rule=Interval(rule.every_s, 0, anchor))


def every_timing_was_told(outcome: Outcome, uid: str) -> bool:
    """Whether each timing that users wished for stands in some stored status. Any edit of a placed
    one may be a resume, which chooses a phase anew: then one that was stored since it was seen."""
    told = [
        (timing_of(status).get("hash"), status.get("observedGeneration", 0))
        for _, status in outcome.statuses[uid]
    ]
    wished = (read(item) for item in outcome.specs[uid])
    seen_at = {seen for _, seen in told}
    begins = [*_may_choose_a_phase(outcome, uid), EVER]
    if any(
        seen_at.isdisjoint(range(begin, min(end, max(seen_at) + 1)))
        for begin, end in itertools.pairwise(begins)
    ):
        return False
    return all(
        any(
            timing_hash(schedule.timing) == known
            and (with_its_phase(schedule.timing, {}) is not None or seen >= schedule.generation)
            for known, seen in told
        )
        for schedule in wished
        if isinstance(schedule, Schedule)
    )


def _may_choose_a_phase(outcome: Outcome, uid: str) -> Iterator[int]:
    """Generations that a phase is chosen for: the first, and those that end a suspension or perhaps
    a pause."""
    specs = outcome.specs[uid]
    for before, item in itertools.pairwise([{"spec": {"suspend": True}}, *specs]):
        schedule = read(item)
        if not isinstance(schedule, Schedule) or schedule.suspend:
            continue
        halted = before["spec"].get("suspend") or schedule.pause_after_failures is not None
        if halted and with_its_phase(schedule.timing, {}) is None:
            yield schedule.generation


def was_due(outcome: Outcome, job: Created) -> bool:
    """By any of the specs there were, or a phase that a status told of. Which of the specs the
    operator had seen is not known here."""
    schedules = (read(item) for item in outcome.specs[job.uid])
    timings = [schedule.timing for schedule in schedules if isinstance(schedule, Schedule)]
    fixed = [timing for timing in timings if with_its_phase(timing, {}) is not None]
    if any(was_due_by(timing, job) for timing in fixed):
        return True
    return any(was_due_by(timing, job) for timing, _, _ in timings_in_force(outcome, job.uid))


def a_phase_is_untold(outcome: Outcome, uid: str) -> bool:
    """Whether a phase may have been chosen that no status told of: its process died before, or no
    write of it came through."""
    schedules = (read(item) for item in outcome.specs[uid])
    timings = [schedule.timing for schedule in schedules if isinstance(schedule, Schedule)]
    placed = any(with_its_phase(timing, {}) is None for timing in timings)
    return placed and (len(outcome.processes) > 1 or not every_timing_was_told(outcome, uid))


def was_due_by(timing: Timing, job: Created) -> bool:
    return bool(compile_timing(timing, seed="").count(job.due, job.due + 1))


def read_instant(text: str) -> Instant:
    instant = rfc3339.read(text)
    assert instant is not None, text
    return instant
