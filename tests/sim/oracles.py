"""What must be true of every outcome, whatever went wrong.

`violations` returns sentences; an empty list is a pass. The limits of the promises are here, each
at the line that grants it: nothing else is forgiven.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.sim.outcome import Created, Outcome
from tests.sim.reading import (
    alive,
    due_in,
    every_timing_was_told,
    faults_of,
    has_pending_deadline,
    marks_ahead_of_an_edit,
    may_vanish,
    name_of,
    read_instant,
    refused_since,
    since_of,
    timings_in_force,
    was_due,
    was_due_by,
    wished_between,
    with_its_phase,
)
from tests.sim.server import JOB, SCHEDULED_JOB

from evenkeel import rfc3339
from evenkeel.core.schedule.entry import Entry
from evenkeel.model import ENDED, At, Instant, RunId
from evenkeel.resource.job import job_name
from evenkeel.resource.timing import timing_from_fields
from evenkeel.when import compile_timing

REPEATS_LIMIT = 40
"""The same request by one process within ten seconds: a herd of retries is below, a loop above."""

CALLS_A_SECOND = 80
"""By one process over ten seconds: 4 schedules with a run every ten seconds need 4. A catch-up of a
hundred runs that another operator creates too, and that do not start, needs six requests a run: the
create, a look at what it met, at the Pods and at their refusal, the deletion and an Event."""

QUIET_S = 12
"""What came due this shortly before the end need not be settled."""

DECISIONS = ("skipped", "missed")


def violations(outcome: Outcome) -> list[str]:
    """All that is wrong."""
    found = list(outcome.failures)
    found += _one_job_per_run(outcome)
    found += _never_before_its_time(outcome)
    if not outcome.processes[0].play.trouble.twins:
        # Two writers without a Lease take turns with what each of them knows: only what they do
        # to Jobs is promised.
        found += _never_backwards(outcome)
        found += _every_due_time_has_one_verdict(outcome)
        found += _verdicts_are_true(outcome)
        found += _nothing_by_a_timing_that_a_mistake_ended(outcome)
    found += _all_is_written(outcome)
    found += _no_hot_loop(outcome)
    found += _nothing_is_left_over(outcome)
    return found


# --- Jobs -----------------------------------------------------------------------------------------


def _is_due(entry: Entry, now: float) -> bool:
    """Whoever is first in the queue; its instant may be to come by a clock that was set back."""
    return entry.queue[0].due <= now


def _one_job_per_run(outcome: Outcome) -> Iterator[str]:
    """Over the whole history, deleted Jobs included; another attempt needs a failed one before."""
    runs: dict[tuple[str, Instant], list[Created]] = defaultdict(list)
    for job in outcome.jobs.values():
        runs[job.uid, job.due].append(job)
    for (uid, due), jobs in runs.items():
        jobs.sort(key=lambda job: job.at)
        where = f"{name_of(outcome, uid)} due {rfc3339.show(due)}"
        attempts = [job.attempt for job in jobs]
        # The name locks while the Job lives: a user who deletes it while no status can be written
        # opens the lock (README, Promises).
        opened = any(job.deleted_by == "user" for job in jobs[:-1]) or _deaf_twin(outcome, jobs)
        opened = opened or _on_its_way_when_all_went(outcome, jobs)
        opened = opened or _on_its_way_when_too_slow(outcome, jobs)
        if attempts != list(range(1, len(jobs) + 1)) and not opened:
            made = ", ".join(f"r{job.attempt} at {job.at:.3f} by {job.who}" for job in jobs)
            yield f"{where}: attempts {attempts}, not one Job each: {made}"
        for one, following in itertools.pairwise(jobs):
            # A Job that did not start in time has failed, and we delete it; with faults that may
            # come after the next attempt.
            failed = one.ended == "failed" and one.ended_at <= following.at
            if not failed and one.deleted_at is None and not has_pending_deadline(outcome, uid):
                yield f"{where}: attempt {following.attempt} although {one.name} had not failed"
        for job in jobs:
            if job.name != job_name(
                name_of(outcome, uid).split("/")[1], RunId(uid, due), job.attempt
            ):
                yield f"{where}: the Job is named {job.name}"


def _deaf_twin(outcome: Outcome, jobs: list[Created]) -> bool:
    """Two processes without a Lease: one whose watch hung did not see the other launch a run that
    waited in its own queue, nor history or a short ttl take that Job away. The name locks while the
    Job lives."""
    apart = all(
        one.deleted_at is not None and one.who != other.who
        for one, other in itertools.pairwise(sorted(jobs, key=lambda job: (job.attempt, job.at)))
        if one.attempt == other.attempt
    )
    return outcome.processes[0].play.trouble.twins and apart


def _on_its_way_when_all_went(outcome: Outcome, jobs: list[Created]) -> bool:
    """A request that arrives late, after its schedule and all Jobs of it were deleted: nobody can
    call it back, and the garbage collector takes its Job at once."""
    schedule_went = all(uid != jobs[0].uid for uid, _, _ in alive(outcome))
    collected = jobs[-1].deleted_at is not None and not jobs[-1].ended
    return "late" in faults_of(outcome) and schedule_went and collected


def _on_its_way_when_too_slow(outcome: Outcome, jobs: list[Created]) -> bool:
    """A request that arrives late, after the Job of its attempt was given up as too slow and
    deleted, which frees the name: its Job is deleted before it has done anything."""
    too_slow = has_pending_deadline(outcome, jobs[0].uid)
    undone = jobs[-1].deleted_at is not None and not jobs[-1].ended
    return "late" in faults_of(outcome) and too_slow and undone


def _never_before_its_time(outcome: Outcome) -> Iterator[str]:
    if "wall" in outcome.world.tags:
        return  # the operator's clock was set: it can only go by it
    for job in outcome.jobs.values():
        if job.at < job.due:
            yield f"{job.name} was created {job.due - job.at:.3f} s early"
        created = read_instant(outcome.schedules[job.uid]["metadata"]["creationTimestamp"])
        if job.due <= created:
            yield f"{job.name} was due before its schedule was created"


# --- statuses -------------------------------------------------------------------------------------


def _never_backwards(outcome: Outcome) -> Iterator[str]:
    for uid, stored in outcome.statuses.items():
        for (_, old), (at, new) in itertools.pairwise(stored):
            for what, before, after in (
                ("mark", old.get("mark"), new.get("mark")),
                (
                    "timing.since",
                    None if "wall" in outcome.world.tags else since_of(old),
                    since_of(new),
                ),
                ("lastScheduleTime", old.get("lastScheduleTime"), new.get("lastScheduleTime")),
            ):
                if before and (not after or after < before):
                    where = f"{name_of(outcome, uid)} at {at - outcome.world.base:.3f}"
                    yield f"{where}: {what} went back from {before} to {after}"


def _every_due_time_has_one_verdict(outcome: Outcome) -> Iterator[str]:
    """The counts, and the runs that are still under way, add up to the due times.

    Due times are reckoned by `timing` from each `since` on, as the statuses tell it: an edit counts
    from the operator's first sight of it, which faults may delay.
    """
    for uid, item, status in alive(outcome):
        where, mark = name_of(outcome, uid), read_instant(status["mark"])
        if not status.get("timing") or not every_timing_was_told(outcome, uid):
            continue  # from when until when another timing was in force, nobody can say
        in_force = timings_in_force(outcome, uid)
        due = {
            instant
            for timing, begin, end in in_force
            for instant in compile_timing(timing, seed=where).between(begin + 1, min(end, mark) + 1)
        }
        due |= {
            timing.rule.instant  # over before it was asked for: missed, and said so
            for timing, begin, _ in in_force
            if isinstance(timing.rule, At) and timing.rule.instant <= min(begin, mark)
        }
        either = {
            instant
            for begin, end in marks_ahead_of_an_edit(outcome, uid)
            for timing, _, _ in in_force
            for instant in compile_timing(timing, seed=where).between(begin + 1, end + 1)
        }
        due -= either
        # A Job of a timing that no status told of, because the process died before: it ran, so it
        # is a run, although that timing is reckoned not to have been.
        mine = [job for job in outcome.jobs.values() if job.uid == uid and job.due <= mark]
        due |= {job.due for job in mine if job.deleted_by != "user"}
        expected = len(due)
        # One that a user deleted is a run only where the operator had seen it before that.
        unsure = len(({job.due for job in mine if job.deleted_by == "user"} | either) - due)
        above = [row for row in status.get("recent") or () if read_instant(row["due"]) > mark]
        ended = sum(status["counts"].values()) - sum(row["state"] in ENDED for row in above)
        active = {due_in(name["name"]) for name in status.get("active") or ()}
        waiting = {read_instant(due) for due in status.get("waiting") or ()}
        under_way = {due for due in active | waiting if due <= mark}
        if not expected <= ended + len(under_way) <= expected + unsure:
            yield (
                f"{where}: {expected} due times up to {status['mark']}, but {status['counts']} "
                f"and {len(under_way)} under way"
            )
        quiet = int(outcome.now) - QUIET_S
        if "wall" not in outcome.world.tags and status.get("pause") is None:
            suspended = (item.get("spec") or {}).get("suspend")
            for timing, begin, end in in_force[-1:]:
                compiled, begin = compile_timing(timing, seed=where), max(mark, begin) + 1
                left = compiled.newest(begin, min(end, quiet), limit=1) if begin < quiet else []
                if left and not suspended:
                    last = rfc3339.show(left[0])
                    yield f"{where}: due {last} has no verdict, mark {status['mark']}"
    for job in outcome.jobs.values():
        if job.uid in outcome.statuses and not was_due(outcome, job):
            yield f"{job.name} was created, and was never due"


def _verdicts_are_true(outcome: Outcome) -> Iterator[str]:
    """What the status says of a run is what became of its Jobs."""
    for uid, item, status in alive(outcome):
        where = name_of(outcome, uid)
        mine = [job for job in outcome.jobs.values() if job.uid == uid]
        by_due = {job.due: job for job in sorted(mine, key=lambda job: job.attempt)}
        for row in status.get("recent") or ():
            job, state = by_due.get(read_instant(row["due"])), row["state"]
            last = f"{where} due {row['due']}"
            # A user who deletes it while nobody could tell of it opens the lock (README, Promises).
            created = job is not None and job.deleted_by != "user"
            if state in DECISIONS and created and "late" not in faults_of(outcome):
                yield f"{last} is {state} ({row.get('reason')}), but {job.name} was created"
            if state in ("succeeded", "running") and job is None:
                yield f"{last} is {state}, but has no Job"
            # One given up as too slow may succeed before it is deleted, and so end its run.
            each = [job, *mine] if has_pending_deadline(outcome, uid) else [job]
            ends = {one.ended for one in each if one and job and one.due == job.due}
            if state == "succeeded" and job and "succeeded" not in ends:
                yield f"{last} is succeeded, but {job.name} is {job.ended or 'not ended'}"
            # A Job that did not start in time has failed, whatever it does before it is deleted.
            too_slow = row.get("reason") in ("pod_refused", "unschedulable", "image", "pending")
            there = job is not None and job.deleted_at is None and not too_slow
            if state == "failed" and job and job.ended != "failed" and there:
                yield f"{last} is failed, but {job.name} is {job.ended or 'running'}"
            if state == "lost" and job and job.deleted_at is None:
                yield f"{last} is lost, but {job.name} exists"
            if state == "running" and job and job.ended and job.ended_at < outcome.now - QUIET_S:
                yield f"{last} is running, but {job.name} {job.ended} long ago"
        succeeded = sum(job.ended == "succeeded" for job in mine)
        # Replace and users delete Jobs that have just ended: cancelled or lost is as true.
        settled = [j for j in mine if j.ended == "succeeded" and j.ended_at < outcome.now - QUIET_S]
        # One whose create arrived after its run was given up is deleted, and may have ended before.
        deletable = (
            outcome.world.tags
            or "late" in faults_of(outcome)
            or has_pending_deadline(outcome, uid)
            or any(one["spec"].get("concurrencyPolicy") == "Replace" for one in outcome.specs[uid])
        )
        if status["counts"]["succeeded"] > succeeded:
            yield f"{where}: {status['counts']['succeeded']} succeeded, but {succeeded} Jobs did"
        if status["counts"]["succeeded"] < len(settled) and not deletable and not may_vanish(item):
            yield f"{where}: {status['counts']['succeeded']} succeeded of {len(settled)} that did"


def _nothing_by_a_timing_that_a_mistake_ended(outcome: Outcome) -> Iterator[str]:
    """Between an edit that is refused and another timing that mends it nothing is due."""
    if "wall" in outcome.world.tags:
        return
    for uid, stored in outcome.statuses.items():
        refused: Instant | None = None
        for (_, old), (_, new) in itertools.pairwise(stored):
            refused = refused_since(old)
            if refused is None or since_of(new) == since_of(old):
                continue
            mended = read_instant(since_of(new) or "")
            # A process may have launched by the new timing, and died before it told of it, or of
            # its phase; or by one between the two that no write told of.
            told = timing_from_fields(new["timing"]["fields"])
            wished = wished_between(outcome, uid, old, new)
            phases = [with_its_phase(timing, {}) for timing in wished]
            if None in phases and len(outcome.processes) > 1:
                continue
            timings = [*wished, told] if told is not None else wished
            phased = [with_its_phase(timing, status) for timing in timings for status in (old, new)]
            for job in outcome.jobs.values():
                ours = job.uid == uid and refused < job.due <= mended
                if ours and not any(was_due_by(timing, job) for timing in phased if timing):
                    yield f"{job.name} was created: by {rfc3339.show(refused)} its timing had ended"


def _all_is_written(outcome: Outcome) -> Iterator[str]:
    """In the calm at the end the last process has told what it knows, and knows what is."""
    process = outcome.processes[-1]
    state = process.operator.scheduler.state
    if not process.operator.scheduler.ready:
        yield "the last process never became ready"
        return
    for uid, item, status in alive(outcome):
        where, entry = name_of(outcome, uid), state.entries.get(uid)
        if entry is None:
            yield f"{where} exists, and the operator does not know it"
        elif entry.generation != item["metadata"]["generation"]:
            yield f"{where}: the operator knows an older generation"
        elif status.get("observedGeneration") != item["metadata"]["generation"]:
            yield f"{where}: the status speaks of an older generation"
        elif entry.queue and not entry.halted and not entry.occupying and _is_due(entry, state.now):
            yield f"{where}: {len(entry.queue)} are queued, and nobody holds the place"
    known = {item["metadata"]["uid"] for item in outcome.server.objects[SCHEDULED_JOB].values()}
    for uid in set(state.entries) - known:
        if outcome.deleted[uid] < outcome.now - 60:
            yield f"{name_of(outcome, uid)} was deleted, and the operator still has it"
    for uid in known - set(outcome.statuses):
        yield f"{name_of(outcome, uid)} never got a status"
    for job in outcome.server.objects[JOB].values():
        owner = job["metadata"]["ownerReferences"][0]["uid"]
        if owner not in known and outcome.deleted[owner] < outcome.now - 60:
            yield f"{job['metadata']['name']} outlived its schedule"


# --- bounds ---------------------------------------------------------------------------------------


def _no_hot_loop(outcome: Outcome) -> Iterator[str]:
    for process in outcome.processes:
        asked = process.connection.asked
        window: Counter[tuple[str, str]] = Counter()
        begin = 0
        for at, verb, path in asked:
            window[verb, path] += 1
            while asked[begin][0] < at - 10:
                window[asked[begin][1:]] -= 1
                begin += 1
            # A catch-up of a hundred runs is a hundred creates, as many Events, and as many looks
            # at Pods that do not start.
            many = window[verb, path] > REPEATS_LIMIT and path != "/version"
            many = many and verb != "POST" and "/events" not in path and not path.endswith("/pods")
            if many or window.total() > 10 * CALLS_A_SECOND:
                count = f"{window[verb, path]} of {window.total()} requests"
                yield f"operator {process.number}: {verb} {path} is {count} in 10 s at {at:.1f}"
                break


def _nothing_is_left_over(outcome: Outcome) -> Iterator[str]:
    """What a process holds is bounded by what there is, not by what there was."""
    process = outcome.processes[-1]
    operator = process.operator
    state = operator.scheduler.state
    uids = set(state.entries)
    due_soon = sum(run.prepared for entry in state.entries.values() for run in entry.runs.values())
    jobs = len(outcome.server.objects[JOB])
    for what, size, limit in (
        ("facts of Jobs without a schedule", len(state.job_facts), 0),
        ("schedules seen early", len(state.unadmitted), 0),
        ("rendered bodies", len(operator.launcher._bodies), due_soon),
        ("launches not wanted", len(operator.launcher._unwanted), 0),
        ("creates under way", operator.launcher.creating, 0),
        ("statuses to write", len(operator.status_sync._waiting), len(uids)),
        ("times of status writes", len(set(operator.status_sync._written_at) - uids), 0),
        ("failures of status writes", len(set(operator.status_sync._failures) - uids), 0),
        ("templates to prove", len(set(operator.errands._wanted_template) - uids), 0),
        ("Jobs in the listener", len(operator.jobs[0]._listener._known), jobs + 10),  # type: ignore[attr-defined]
        ("tasks", len(process.tasks), 40),
    ):
        if size > limit:
            yield f"left over at the end: {size} {what}, at most {limit} expected"
    for entry in state.entries.values():
        # Jobs go when a status that tells of their runs is stored, and one a second is.
        to_delete = len(entry.to_delete) if entry.revision == entry.written else 0
        # Until when one may arrive goes by the wall clock, which may have been set back for hours.
        unwanted = len(entry.unwanted) if "wall" not in outcome.world.tags else 0
        for what, size, limit in (
            ("cancelled creates", unwanted, 0),
            ("decided above the cursor", len(entry.decided), 20),
            ("finished Jobs", len(entry.finished_jobs), jobs + 1),
            ("Jobs to delete", to_delete, 0),
            ("queued", len(entry.queue), 20),
        ):
            if size > limit:
                yield f"left over at the end: {entry.key}: {size} {what}"
