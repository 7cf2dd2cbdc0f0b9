"""What oracles read in an outcome: its schedules and timings, and what a Job's name says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.sim.outcome import Created, Outcome
from tests.sim.server import SCHEDULED_JOB, Json

from evenkeel import rfc3339
from evenkeel.model import Instant, Interval, Schedule, Timing
from evenkeel.resource.read import read
from evenkeel.resource.timing import timing_from_fields, timing_hash
from evenkeel.when import compile_timing

EVER = 1 << 60


def alive(outcome: Outcome) -> Iterator[tuple[str, Json, Json]]:
    """Schedules that exist at the end and have a status with a mark."""
    for item in outcome.server.objects[SCHEDULED_JOB].values():
        status = item.get("status") or {}
        if status.get("mark"):
            yield item["metadata"]["uid"], item, status


def timings_in_force(outcome: Outcome, uid: str) -> list[tuple[Any, Instant, Instant]]:
    """Each timing that was in force, after which instant and until which. Another phase of a placed
    interval is another timing; without a phase it is none."""
    spans: list[tuple[Any, Instant, Instant]] = []
    # Nothing before its creation, and nothing twice, even where a clock that was set says so.
    mark = read_instant(outcome.schedules[uid]["metadata"]["creationTimestamp"])
    for _, status in outcome.statuses[uid]:
        passed, mark = mark, max(mark, read_instant(status["mark"]) if status.get("mark") else 0)
        told = timing_from_fields((status.get("timing") or {}).get("fields"))
        if told is None:
            continue
        timing = with_its_phase(told, status)
        since = max(read_instant(status["timing"]["since"]), passed)
        if timing is None:
            if spans:
                spans[-1] = (*spans[-1][:2], min(spans[-1][2], since))
            continue
        if timing is not told:
            since = max(since, read_instant(status["placement"]["placedAt"]))
        if spans and spans[-1][2] == EVER and timing_hash(spans[-1][0]) == timing_hash(timing):
            continue
        if spans:
            spans[-1] = (*spans[-1][:2], min(spans[-1][2], since))
        spans.append((timing, since, EVER))
    return spans


def marks_ahead_of_an_edit(outcome: Outcome, uid: str) -> Iterator[tuple[Instant, Instant]]:
    """Where the clock was set back before an edit, the old timing was reckoned up to a mark that
    lies after `since`: somewhere between that of the status before and that of the first one after
    it. Which of the two timings it was by, nobody can say there."""
    for (_, old), (_, new) in itertools.pairwise(outcome.statuses[uid]):
        edited, marks = since_of(old) != since_of(new), (old.get("mark"), new.get("mark"))
        if edited and all(marks) and (since_of(new) or "") < marks[0]:
            yield read_instant(marks[0]), read_instant(marks[1])


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
        ((status.get("timing") or {}).get("hash"), status.get("observedGeneration", 0))
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
    """By any of the specs there were; which of them the operator had seen is not known here. Nor
    is a phase that no status told of: its process died before, or no write of it came through."""
    schedules = (read(item) for item in outcome.specs[job.uid])
    timings = [schedule.timing for schedule in schedules if isinstance(schedule, Schedule)]
    fixed = [timing for timing in timings if with_its_phase(timing, {}) is not None]
    phased = [timing for timing, _, _ in timings_in_force(outcome, job.uid)]
    lost = len(outcome.processes) > 1 or not every_timing_was_told(outcome, job.uid)
    untold = lost and len(fixed) < len(timings)
    return untold or any(was_due_by(timing, job) for timing in fixed + phased)


def was_due_by(timing: Timing, job: Created) -> bool:
    return bool(compile_timing(timing, seed="").count(job.due, job.due + 1))


def refused_since(status: Json) -> Instant | None:
    """Since when the spec could not be accepted."""
    for condition in status.get("conditions") or ():
        if condition["type"] == "ScheduleAccepted" and condition["status"] == "False":
            return read_instant(condition["lastTransitionTime"])
    return None


def faults_of(outcome: Outcome) -> set[str]:
    weather = outcome.processes[0].play.weather
    return set(getattr(weather, "calls", ()))


def has_pending_deadline(outcome: Outcome, uid: str) -> bool:
    return any(one["spec"].get("pendingDeadlineSeconds") for one in outcome.specs[uid])


def may_vanish(item: Json) -> bool:
    """Jobs that vanish by themselves may do so unseen: such a run is lost."""
    spec = item["spec"]["jobTemplate"]["spec"]
    return spec.get("ttlSecondsAfterFinished") is not None


def due_in(name: str) -> Instant:
    """By the stamp: minutes of at most nine digits, or seconds."""
    stamp = name.rsplit("-", 1)[1]
    return int(stamp) if len(stamp) > 9 else int(stamp) * 60


def since_of(status: Json) -> str | None:
    return (status.get("timing") or {}).get("since")


def name_of(outcome: Outcome, uid: str) -> str:
    metadata = outcome.schedules[uid]["metadata"] if uid in outcome.schedules else {}
    return f"{metadata.get('namespace')}/{metadata.get('name')}"


def read_instant(text: str) -> Instant:
    instant = rfc3339.read(text)
    assert instant is not None, text
    return instant
