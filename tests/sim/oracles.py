"""What must be true of every outcome, whatever went wrong.

`violations` returns sentences; an empty list is a pass. Oracles see what anybody can see from
outside: what the API server stored, what it was asked, and what the operator answers and counts.
What they let pass stands in forgiven.py, by name, and is counted.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator

from tests.sim import forgiven
from tests.sim.accounts import the_ledger_agrees
from tests.sim.bounds import no_hot_loop, nothing_is_left_over
from tests.sim.controllers import exit_code, kind_of, run_of
from tests.sim.outcome import Created, Outcome
from tests.sim.reading import (
    PRE_SCHEDULE_S,
    a_phase_is_untold,
    active_in,
    alive,
    every_timing_was_told,
    faults_of,
    has_pending_deadline,
    is_halted,
    mark_of,
    marks_ahead_of_an_edit,
    name_of,
    read_instant,
    refused_since,
    since_of,
    timing_of,
    timings_in_force,
    waiting_in,
    was_due,
    was_due_by,
    wished_between,
    with_its_phase,
)
from tests.sim.request_accounts import requests_are_accounted_for
from tests.sim.request_oracles import requests_are_right
from tests.sim.server import JOB, SCHEDULED_JOB, Json

from evenkeel import rfc3339
from evenkeel.model import BY_SCHEDULE, ENDED, At, Instant, RunId, Schedule
from evenkeel.resource.job import job_name
from evenkeel.resource.read import read
from evenkeel.resource.timing import timing_from_fields
from evenkeel.when import compile_timing

QUIET_S = 12
"""What came due or happened this shortly before the end need not be settled."""

GONE_S = 60
"""Until a deletion that no watch told of is found, and what belonged to the schedule is gone."""

HEALS_S = 60
"""Until a schedule goes on whose status was forged."""

DECISIONS = ("skipped", "missed")

TIMES = ("due", "started", "finished")
"""Of a row of `recent`."""

TOO_SLOW = ("pod_refused", "unschedulable", "image", "pending")
"""Reasons of a run that failed because its Job did not start in time."""


def violations(outcome: Outcome) -> list[str]:
    """All that is wrong."""
    outcome.forgiven.clear()
    found = list(outcome.failures)
    found += _one_job_per_run(outcome)
    found += _never_before_its_time(outcome)
    found += _announced_before_its_create(outcome)
    for oracle in (
        _never_backwards,
        _every_due_time_has_one_verdict,
        _verdicts_are_true,
        _nothing_by_a_timing_that_a_mistake_ended,
    ):
        found += [wrong for wrong in oracle(outcome) if not forgiven.two_writers(outcome)]
    found += _no_status_is_refused(outcome)
    found += _forged_ones_go_on(outcome)
    found += _all_is_known(outcome)
    found += requests_are_right(outcome)
    found += requests_are_accounted_for(outcome)
    found += the_ledger_agrees(outcome)
    found += no_hot_loop(outcome)
    found += nothing_is_left_over(outcome)
    found += forgiven.too_often_in_a_play(outcome)
    return found


# --- Jobs -----------------------------------------------------------------------------------------


def _one_job_per_run(outcome: Outcome) -> Iterator[str]:
    """Over the whole history, deleted Jobs included; another attempt needs a failed one before."""
    runs: dict[RunId, list[Created]] = defaultdict(list)
    for job in outcome.all_jobs.values():
        runs[job.run].append(job)
    for run, jobs in runs.items():
        uid = run.uid
        if forgiven.status_was_forged(outcome, uid):
            continue
        jobs.sort(key=lambda job: job.at)
        where = f"{name_of(outcome, uid)} {run.kind} due {rfc3339.show(run.due)}"
        attempts = [job.attempt for job in jobs]
        if attempts != list(range(1, len(jobs) + 1)) and not (
            forgiven.user_deleted_the_job(outcome, *jobs[:-1])
            or forgiven.twin_did_not_see_it(outcome, jobs)
            or forgiven.on_its_way_when_all_went(outcome, jobs)
            or forgiven.on_its_way_when_too_slow(outcome, jobs)
            or forgiven.on_its_way_when_replaced(outcome, jobs)
        ):
            made = ", ".join(f"r{job.attempt} at {job.at:.3f} by {job.who}" for job in jobs)
            yield f"{where}: attempts {attempts}, not one Job each: {made}"
        for one, following in itertools.pairwise(jobs):
            failed = one.ended == "failed" and one.ended_at <= following.at
            if not failed and not (
                forgiven.given_up_as_too_slow(outcome, uid)
                or forgiven.deleted_before_the_next(outcome, one)
            ):
                yield f"{where}: attempt {following.attempt} although {one.name} had not failed"
        for job in jobs:
            name = name_of(outcome, uid).split("/")[1]
            if job.name != job_name(name, run, job.attempt):
                yield f"{where}: the Job is named {job.name}"


def _never_before_its_time(outcome: Outcome) -> Iterator[str]:
    for job in outcome.all_jobs.values():
        if job.at < job.due and not forgiven.clock_was_set(outcome):
            yield f"{job.name} was created {job.due - job.at:.3f} s early"
        if job.kind != BY_SCHEDULE:
            continue  # whoever asks may ask for what was due before
        created = read_instant(outcome.schedules[job.uid]["metadata"]["creationTimestamp"])
        if job.due <= created and not (
            forgiven.clock_was_set(outcome) or forgiven.status_was_forged(outcome, job.uid)
        ):
            yield f"{job.name} was due before its schedule was created"


def _announced_before_its_create(outcome: Outcome) -> Iterator[str]:
    """A Job with a ttl may be gone when the next process looks for it: no create of it reaches the
    server before a stored status has passed its due time, or names it as waiting or active."""
    for request in outcome.server.requests:
        job = request.created
        if job is None or "/apis/batch/" not in request.path:
            continue
        run = run_of(job)
        if run is None or "ttlSecondsAfterFinished" not in job["spec"]:
            continue
        if kind_of(job) != BY_SCHEDULE:
            continue  # the status of its request announces it
        uid, due, _ = run
        stored = outcome.statuses.get(uid, [])
        last = bisect.bisect_right(stored, request.at, key=lambda each: each[0]) - 1
        status = stored[last][1] if last >= 0 else {}
        announced = (mark_of(status) or 0) >= due or due in waiting_in(status) | active_in(status)
        if not (
            announced or forgiven.two_writers(outcome) or forgiven.status_was_forged(outcome, uid)
        ):
            yield f"{request.note} was to be created by {request.who}, and no status told of it"


# --- statuses -------------------------------------------------------------------------------------


def _never_backwards(outcome: Outcome) -> Iterator[str]:
    for uid, stored in outcome.statuses.items():
        if forgiven.status_was_forged(outcome, uid):
            continue
        stored_first: dict[Instant, float] = {}
        for (stored_at, old), (at, new) in itertools.pairwise(stored):
            where = f"{name_of(outcome, uid)} at {at - outcome.world.base:.3f}"
            mark, newer = mark_of(old) or 0, mark_of(new) or 0
            # It may stand ahead of its time, and an edit, suspend or pause takes it back to theirs.
            # To a process that begins by a clock that was set back, a mark ahead counts as now.
            # A write that arrives late is of the time at which its mark was stored first.
            if mark not in stored_first or "late" not in faults_of(outcome):
                stored_first[mark] = stored_at
            if newer < min(mark, int(stored_first[mark])) and not forgiven.clock_was_set(outcome):
                yield f"{where}: mark went back from {mark} to {newer}"
            if newer > at + PRE_SCHEDULE_S and not forgiven.clock_was_set(outcome):
                yield f"{where}: mark is {newer - at:.3f} s ahead"
            if _last_schedule(new) < _last_schedule(old):
                yield f"{where}: lastScheduleTime went back to {new.get('lastScheduleTime')}"
            before, after = since_of(old) or "", since_of(new) or ""
            if after < before and not forgiven.clock_was_set(outcome):
                yield f"{where}: timing.since went back from {before} to {after}"


def _last_schedule(status: Json) -> Instant:
    text = status.get("lastScheduleTime")
    return read_instant(text) if text else 0


def _every_due_time_has_one_verdict(outcome: Outcome) -> Iterator[str]:
    """The counts, and the runs that are still under way, add up to the due times."""
    for uid, item, status in alive(outcome):
        if not timing_of(status):
            continue  # it never had one
        if forgiven.status_was_forged(outcome, uid):
            continue
        told = every_timing_was_told(outcome, uid)
        for wrong in (
            *_counts_add_up(outcome, uid, status),
            *_newest_has_a_verdict(outcome, uid, item, status),
        ):
            if not forgiven.timing_was_never_told(outcome, told):
                yield wrong
    for job in outcome.jobs.values():
        if job.uid not in outcome.statuses or forgiven.status_was_forged(outcome, job.uid):
            continue
        if was_due(outcome, job):
            continue
        if not forgiven.phase_was_never_told(outcome, a_phase_is_untold(outcome, job.uid)):
            yield f"{job.name} was created, and was never due"


def _counts_add_up(outcome: Outcome, uid: str, status: Json) -> Iterator[str]:
    """Due times are reckoned by `timing` from each `since` on, as the statuses tell it: an edit
    counts from the operator's first sight of it, which faults may delay."""
    where, mark = name_of(outcome, uid), mark_of(status) or 0
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
    behind = {
        instant
        for begin, end in marks_ahead_of_an_edit(outcome, uid)
        for timing, _, _ in in_force
        for instant in compile_timing(timing, seed=where).between(begin + 1, end + 1)
    }
    due -= behind
    mine = [job for job in outcome.jobs.values() if job.uid == uid and job.due <= mark]
    ran = {job.due for job in mine if job.deleted_by != "user"}
    if ran - due - behind and forgiven.run_of_a_timing_never_told(outcome):
        due |= ran
    expected = len(due | ran)
    above = [row for row in status.get("recent") or () if read_instant(row["due"]) > mark]
    ended = sum(status["counts"].values()) - sum(row["state"] in ENDED for row in above)
    under_way = {due for due in active_in(status) | waiting_in(status) if due <= mark}
    surplus = ended + len(under_way) - expected
    deleted = {job.due for job in mine if job.deleted_by == "user"} - due - ran
    behind -= due | ran
    # To a process that begins by a clock that was set back, a mark ahead counts as now.
    marks = [mark_of(one) or 0 for _, one in outcome.statuses[uid]]
    went_back = any(after < before for before, after in itertools.pairwise(marks))
    if surplus > 0 and went_back and forgiven.clock_was_set(outcome):
        return
    if surplus and not (
        0 < surplus <= len(behind | deleted) and forgiven.verdict_nobody_can_reckon(outcome)
    ):
        yield (
            f"{where}: {expected} due times up to {rfc3339.show(mark)}, but {status['counts']} "
            f"and {len(under_way)} under way"
        )


def _newest_has_a_verdict(outcome: Outcome, uid: str, item: Json, status: Json) -> Iterator[str]:
    if status.get("pause") or item["spec"].get("suspend"):
        return
    where, mark, quiet = name_of(outcome, uid), mark_of(status) or 0, int(outcome.now) - QUIET_S
    for timing, begin, end in timings_in_force(outcome, uid)[-1:]:
        compiled, begin = compile_timing(timing, seed=where), max(mark, begin) + 1
        left = compiled.newest(begin, min(end, quiet), limit=1) if begin < quiet else []
        if left and not forgiven.clock_was_set(outcome):
            yield f"{where}: due {rfc3339.show(left[0])} has no verdict, mark {rfc3339.show(mark)}"


def _verdicts_are_true(outcome: Outcome) -> Iterator[str]:
    """What the status says of a run is what became of its Jobs."""
    for uid, _, status in alive(outcome):
        if forgiven.status_was_forged(outcome, uid):
            continue
        mine = [job for job in outcome.jobs.values() if job.uid == uid]
        for row in status.get("recent") or ():
            jobs = [job for job in mine if job.due == read_instant(row["due"])]
            for wrong in _verdict_is_true(outcome, uid, row, jobs):
                yield f"{name_of(outcome, uid)} due {row['due']} is {wrong}"
        yield from _successes_are_counted(outcome, uid, status, mine)


def _verdict_is_true(outcome: Outcome, uid: str, row: Json, jobs: list[Created]) -> Iterator[str]:
    state, reason = row["state"], row.get("reason")
    # Of two Jobs of one attempt, which another oracle finds or forgives, the later one counts.
    job = max(jobs, key=lambda job: (job.attempt, job.at), default=None)
    if job is None:
        if state in ("succeeded", "running"):
            yield f"{state}, but has no Job"
        return
    if state in DECISIONS and not (
        forgiven.user_deleted_the_job(outcome, job) or forgiven.arrived_after_its_verdict(outcome)
    ):
        yield f"{state} ({reason}), but {job.name} was created"
    if state == "succeeded" and job.ended != "succeeded":
        ends = {one.ended for one in jobs}
        if not forgiven.succeeded_after_it_was_given_up(outcome, uid, ends):
            yield f"succeeded, but {job.name} is {job.ended or 'not ended'}"
    if state == "failed" and job.ended != "failed":
        # A Job that did not start in time has failed by the rule, and is deleted for it. The row
        # may tell of a later attempt, whose create was refused.
        gave_up = reason in TOO_SLOW or row["attempt"] > job.attempt
        too_slow = gave_up and has_pending_deadline(outcome, uid)
        if not too_slow or (job.deleted_at is None and not forgiven.started_too_late(outcome, job)):
            yield f"failed, but {job.name} is {job.ended or 'running'}"
    # What became of a later attempt's create may be unknown: no Job of that attempt is there.
    is_of_later = row["attempt"] > job.attempt and reason == "outcome_unknown"
    if state == "lost" and job.deleted_at is None and not is_of_later:
        yield f"lost, but {job.name} exists"
    if (code := row.get("exitCode")) is not None:
        failed = [one.attempt for one in jobs if one.name == row.get("job")]
        if state not in ("failed", "retrying") or [code] != [exit_code(n) for n in failed[-1:]]:
            yield f"{state} with exit code {code}, which is not that of {row.get('job')}"
    if state == "running" and job.ended and job.ended_at < outcome.now - QUIET_S:
        yield f"running, but {job.name} {job.ended} long ago"


def _successes_are_counted(
    outcome: Outcome, uid: str, status: Json, mine: list[Created]
) -> Iterator[str]:
    where, counted = name_of(outcome, uid), status["counts"]["succeeded"]
    succeeded = [job for job in mine if job.ended == "succeeded"]
    if counted > len(succeeded):
        yield f"{where}: {counted} succeeded, but {len(succeeded)} Jobs did"
    settled = sum(job.ended_at < outcome.now - QUIET_S for job in succeeded)
    if counted < settled and not (
        forgiven.success_nobody_saw(outcome, uid)
        or forgiven.clock_was_set(outcome)
        or forgiven.arrived_after_its_verdict(outcome)
    ):
        yield f"{where}: {counted} succeeded of {settled} that did"


def _nothing_by_a_timing_that_a_mistake_ended(outcome: Outcome) -> Iterator[str]:
    """Between an edit that is refused and another timing that mends it nothing is due."""
    for uid, stored in outcome.statuses.items():
        if forgiven.status_was_forged(outcome, uid):
            continue
        for (_, old), (_, new) in itertools.pairwise(stored):
            refused = refused_since(old)
            if refused is None or since_of(new) == since_of(old):
                continue
            if (since := since_of(new)) is None:
                yield f"{name_of(outcome, uid)}: its status has lost its timing"
                continue
            mended = read_instant(since)
            # A process may have launched by the new timing, and died before it told of it, or of
            # its phase; or by one between the two that no write told of.
            told = timing_from_fields(timing_of(new)["fields"])
            wished = wished_between(outcome, uid, old, new)
            untold = any(with_its_phase(timing, {}) is None for timing in wished)
            timings = [*wished, told] if told is not None else wished
            phased = [with_its_phase(timing, status) for timing in timings for status in (old, new)]
            for job in outcome.jobs.values():
                ours = job.uid == uid and refused < job.due <= mended
                if not ours or any(was_due_by(timing, job) for timing in phased if timing):
                    continue
                if not (
                    forgiven.clock_was_set(outcome)
                    or forgiven.phase_was_never_told(outcome, untold and len(outcome.processes) > 1)
                ):
                    yield f"{job.name} was created: by {rfc3339.show(refused)} its timing had ended"


def _no_status_is_refused(outcome: Outcome) -> Iterator[str]:
    """Nothing that is read anywhere makes the operator write what the schema refuses: that would
    be refused for ever."""
    for request in outcome.server.requests:
        if request.status == 422 and request.verb == "PATCH" and request.who != "user":
            yield f"{request.path} was refused at {request.at - outcome.world.base:.3f}"


def _written_again_at(outcome: Outcome, item: Json, forged_at: float) -> float:
    """When an operator has first stored its status since: an outage may last long. Never: then it
    counts from the forgery."""
    path = f"/scheduledjobs/{item['metadata']['name']}/status"
    return next(
        (
            request.at
            for request in outcome.server.requests
            if request.at > forged_at
            and (request.verb, request.status) == ("PATCH", 200)
            and request.who != "user"
            and request.path.endswith(path)
        ),
        forged_at,
    )


def _forged_ones_go_on(outcome: Outcome) -> Iterator[str]:
    """A schedule whose status was forged runs again, or says why not."""
    for uid, item, status in alive(outcome):
        forged_at = outcome.forged.get(uid)
        schedule = read(item)
        if forged_at is None or is_halted(item, status) or not isinstance(schedule, Schedule):
            continue
        if with_its_phase(schedule.timing, {}) is None:
            continue  # which phase it has got instead, its status says
        begin = int(_written_again_at(outcome, item, forged_at)) + HEALS_S
        due = compile_timing(schedule.timing, seed=name_of(outcome, uid)).newest(
            begin, int(outcome.now) - QUIET_S, limit=1
        )
        told = [read_instant(row["due"]) for row in status.get("recent") or ()]
        ran = [job.due for job in outcome.jobs.values() if job.uid == uid]
        if due and max((*told, *ran), default=0) < begin:
            yield f"{name_of(outcome, uid)}: nothing since its status was forged"


# --- what the last process says -------------------------------------------------------------------


def _all_is_known(outcome: Outcome) -> Iterator[str]:
    """In the calm at the end the last process knows what there is, and has told what it knows."""
    left = outcome.left
    if left is None:
        return  # it could not answer: that is told as a failure
    if not left.ready:
        yield "the last process never became ready"
        return
    for item in outcome.server.objects[SCHEDULED_JOB].values():
        yield from _is_known(outcome, item)
    known = {item["metadata"]["uid"] for item in outcome.server.objects[SCHEDULED_JOB].values()}
    names = {name_of(outcome, uid) for uid in known}
    for uid, at in outcome.deleted.items():
        gone = name_of(outcome, uid)
        if gone not in names and at < outcome.now - GONE_S and left.documents.get(gone):
            yield f"{gone} was deleted, and the operator still has it"
    for job in outcome.server.objects[JOB].values():
        owner = job["metadata"]["ownerReferences"][0]["uid"]
        if owner not in known and outcome.deleted[owner] < outcome.now - GONE_S:
            yield f"{job['metadata']['name']} outlived its schedule"


def _is_known(outcome: Outcome, item: Json) -> Iterator[str]:
    assert outcome.left is not None
    uid, generation = item["metadata"]["uid"], item["metadata"]["generation"]
    where, stored = name_of(outcome, uid), item.get("status") or {}
    said = outcome.left.documents[where]
    if said is None:
        yield f"{where} exists, and the operator does not know it"
        return
    if said["observedGeneration"] != generation:
        yield f"{where}: the operator knows an older generation"
    if stored.get("observedGeneration") != generation:
        yield f"{where}: the status speaks of an older generation"
    waiting = {due for due in waiting_in(said) if due <= outcome.left.now}
    places = {due for owner, due in outcome.left.active if owner == uid}
    places |= {run.due for run in outcome.left.requested if run.uid == uid}
    if waiting and not places and not is_halted(item, said):
        yield f"{where}: {len(waiting)} wait, and nobody holds the place"
    settled = _quiet_for_s(outcome, uid, said) > QUIET_S
    if settled and not _agree(said, stored) and not forgiven.two_writers(outcome):
        yield f"{where}: what the operator says of its runs is not stored"


def _quiet_for_s(outcome: Outcome, uid: str, said: Json) -> float:
    """How long ago something last happened to its runs: until then the stored status may lag."""
    left = outcome.left
    assert left is not None
    times = [read_instant(row[k]) for row in said.get("recent") or () for k in TIMES if row.get(k)]
    times += [due for owner, due in left.active if owner == uid]
    ages = [left.now - time for time in times if time <= left.now]
    # By the server's clock: ours may be another.
    mine = [job for job in outcome.all_jobs.values() if job.uid == uid]
    ages += [outcome.now - (job.deleted_at or job.ended_at or job.at) for job in mine]
    if uid in outcome.statuses:
        ages.append(outcome.now - outcome.statuses[uid][-1][0])
    return min(ages, default=float("inf"))


def _agree(said: Json, stored: Json) -> bool:
    return all(
        said.get(field) == stored.get(field)
        for field in ("counts", "consecutiveFailures", "lastResult", "activeCount")
    )
