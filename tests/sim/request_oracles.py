"""What must be true of requests, whatever went wrong: `violations` asks these oracles, too.

That no run gets two Jobs, and that what a Job became is told, `oracles` finds for requested runs as
for the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.sim import forgiven
from tests.sim.controllers import kind_of, run_of
from tests.sim.outcome import Outcome
from tests.sim.reading import condition_of, internal, read_instant
from tests.sim.request_reading import (
    FINAL,
    Asked,
    all_asked,
    ended_at,
    final_of,
    held_throughout,
    plan_of,
    specs_of,
    under_way,
    why_ended,
)
from tests.sim.server import SCHEDULED_JOB, Json

from evenkeel.model import BY_SCHEDULE, ENDED

STALE_S = 3.0
"""So old may be what the operator knows of a spec where nothing is wrong."""

STALE_IN_STORM_S = 130.0
"""And where a watch may hang, and requests arrive late."""

PATIENCE_S = 75.0
"""A request for a schedule that never existed is refused after a minute."""

PROGRESS_S = 30.0
"""In calm a request that may go on has done something within this."""

LEAVES_DUES = (
    "StoppedAfterFailures",
    "ScheduleGone",
    "ScheduleNotFound",
    "Refused",
    "PlanLost",
    "DryRun",
)
"""Ends of requests that have not begun each of their due times."""

OF_SPEC = ("Refused", "ScheduleNotFound")
"""Ends of requests that were never planned."""


RESUMED_S = 5.0
"""So long a stored status may still tell of a pause that an edit has ended."""


def requests_are_right(outcome: Outcome) -> Iterator[str]:
    """All that is wrong with requests."""
    by_kind = {asked.kind: asked for asked in all_asked(outcome)}
    wrong = [*_jobs_are_asked_for(outcome, by_kind)]
    for asked in by_kind.values():
        for oracle in (
            _ends_once,
            _plan_stays,
            _is_halted,
            _ends_in_time,
            _is_deleted_by_its_ttl,
            _begins_nothing_once_deleted,
            _says_what_it_waits_for,
        ):
            wrong += [f"{asked.name}: {sentence}" for sentence in oracle(asked)]
    if wrong and not forgiven.two_writers(outcome):
        yield from wrong
    yield from _schedules_keep_theirs(outcome)


def stale_s(outcome: Outcome) -> float:
    """How old that may be what the operator knows of a spec."""
    return STALE_IN_STORM_S if outcome.processes[0].play.trouble.storm is not None else STALE_S


# --- Jobs -----------------------------------------------------------------------------------------


def _jobs_are_asked_for(outcome: Outcome, by_kind: dict[str, Asked]) -> Iterator[str]:
    """No create reaches the server before a stored status has the plan with its due time, and its
    Job has what the request gives."""
    for call in outcome.server.requests:
        job = call.created
        if job is None or "/apis/batch/" not in call.path:
            continue
        run = run_of(job)
        kind = kind_of(job)
        if run is None or kind == BY_SCHEDULE:
            continue
        asked = by_kind.get(kind)
        if asked is None:
            yield f"{call.note} was created, and nobody asked for it"
            continue
        where = f"{asked.name}: {call.note} was to be created by {call.who}"
        status = asked.status_at(call.at)
        if plan_of(status) is None:
            yield f"{where}, and no status had the plan"
            continue
        planned = asked.planned
        assert planned is not None
        if run[1] not in planned[2]:
            yield f"{where}, and it is not in the plan"
        ttl = "ttlSecondsAfterFinished" in job["spec"]
        if ttl and run[1] not in under_way(status) and not asked.has_passed(run[1], status):
            yield f"{where}, and no status told of it"
        yield from _gets_what_is_given(asked, job, where)


def _gets_what_is_given(asked: Asked, job: Json, where: str) -> Iterator[str]:
    note = job["metadata"]["annotations"].get("evenkeel.dev/request")
    if note != asked.item["metadata"]["name"]:
        yield f"{where} for the request {note}"
    container = job["spec"]["template"]["spec"]["containers"][0]
    env = {each["name"]: each.get("value", "") for each in container.get("env") or ()}
    for given in asked.spec.get("parameters") or ():
        if env.get(given["name"]) != given["value"].replace("$", "$$"):
            yield f"{where} with {given['name']}={env.get(given['name'])!r}"


# --- statuses -------------------------------------------------------------------------------------


def _ends_once(asked: Asked) -> Iterator[str]:
    """One final state, and what it tells is never changed."""
    ended: Json | None = None
    for _, status in asked.stored:
        finals = final_of(status)
        if len(finals) > 1:
            yield f"is both {' and '.join(FINAL)}"
        if ended is not None:
            for field in ("state", "counts", "done", "total", "plan"):
                if status.get(field) != ended.get(field):
                    yield f"its {field} was {ended.get(field)}, and is {status.get(field)}"
            if finals != final_of(ended):
                yield f"was {final_of(ended)}, and is {finals}"
        elif finals:
            ended = status
            if len(finals) == 1:
                yield from _is_told_fully(asked, status)


def _is_told_fully(asked: Asked, status: Json) -> Iterator[str]:
    """What the status of a request that has ended says of its runs is what became of its Jobs."""
    (final,), reason = final_of(status), why_ended(status)
    counts = {state: count for state, count in (status.get("counts") or {}).items() if count}
    done, total = status.get("done") or 0, status.get("total")
    if (status["state"] == "Succeeded") is not (final == "Complete"):
        yield f"is {final}, and its state is {status['state']}"
    if done != sum(counts.values()):
        yield f"{done} are done, and {counts}"
    if status.get("active"):
        yield f"has ended, and {len(status['active'])} are active"
    for row in status.get("recent") or ():
        if row["state"] not in ENDED:
            yield f"has ended, and tells of {row['due']} as {row['state']}"
    if reason in OF_SPEC:
        if asked.planned is not None or asked.jobs:
            yield f"has ended as {reason}, and had a plan"
        return
    if final == "Complete" and counts.keys() - {"succeeded"}:
        yield f"is Complete, and {counts}"
    if asked.planned is None:
        if reason != "ScheduleGone":
            yield f"has ended as {reason} without a plan"
        return
    planned = asked.planned[2]
    if total != len(planned):
        yield f"{total} in total, and {len(planned)} planned"
    if done != len(planned) and reason not in LEAVES_DUES:
        yield f"has ended as {reason}, and {done} of {len(planned)} are done"
    if reason == "DryRun" and (done or asked.jobs):
        yield "was a dry run, and runs began"
    begun = {job.due for job in asked.jobs}
    if final == "Complete" and reason == "Succeeded" and begun != planned:
        yield f"has succeeded, and {len(planned - begun)} had no Job"
    yield from _successes_are_counted(asked, counts.get("succeeded", 0))


def _successes_are_counted(asked: Asked, counted: int) -> Iterator[str]:
    ended = ended_at(asked) or 0.0
    succeeded = {job.due for job in asked.jobs if job.ended == "succeeded"}
    before = {job.due for job in asked.jobs if job.ended == "succeeded" and job.ended_at <= ended}
    if counted > len(before):
        yield f"{counted} succeeded, and Jobs of {len(before)}"
    uid = asked.jobs[0].uid if asked.jobs else ""
    gone = why_ended(asked.status) == "ScheduleGone"  # what ended just then was cancelled
    if counted < len(succeeded) and not (
        gone
        or forgiven.success_nobody_saw(asked.outcome, uid)
        or forgiven.arrived_after_its_verdict(asked.outcome)
    ):
        yield f"{counted} succeeded of {len(succeeded)} that did"


def _plan_stays(asked: Asked) -> Iterator[str]:
    """It is made once. Every planned due time up to the mark has ended or is active, in each
    status."""
    if asked.planned is None:
        return
    _, dues, planned = asked.planned
    order = sorted(planned, reverse=asked.spec.get("order") == "NewestFirst")
    first = None
    for at, status in asked.stored:
        plan, where = plan_of(status), f"at {at - asked.outcome.world.base:.3f}"
        if plan is None:
            if first is not None:
                yield f"{where} its plan is gone"
            continue
        if first is None:
            first = plan
            if plan.count != len(dues):
                yield f"its plan counts {plan.count} due times, and there are {len(dues)}"
        if plan != first:
            yield f"{where} its plan has changed"
        mark = (status.get("plan") or {}).get("mark")
        if mark and read_instant(mark) not in order:
            yield f"{where} its mark {mark} is not planned"
            continue
        begun = order[: order.index(read_instant(mark)) + 1] if mark else []
        active, done = under_way(status), status.get("done") or 0
        if not active <= set(begun):
            yield f"{where} runs are active that have not begun"
        if done + len(active) != len(begun):
            yield f"{where} {done} are done and {len(active)} active of {len(begun)} that began"
        if len(active) > _most_active(asked) and not forgiven.more_at_once_after_a_kill(
            asked.outcome
        ):
            yield f"{where} {len(active)} are active"


def _most_active(asked: Asked) -> int:
    """Over all times: it can be changed."""
    return max(spec.get("maxActive", 1) for _, spec in specs_of(asked.outcome, asked.uid))


def _is_halted(asked: Asked) -> Iterator[str]:
    """Nothing begins while the request is suspended, nor while its schedule is suspended or
    paused, without force."""
    outcome, old_s = asked.outcome, stale_s(asked.outcome)
    for job in asked.jobs:
        begin = job.at - old_s
        if job.attempt == 1 and held_throughout(
            specs_of(outcome, asked.uid), begin, job.at, lambda spec: spec.get("suspend", False)
        ):
            yield f"{job.name} was created although the request was suspended"
        if asked.spec.get("force"):
            continue
        if held_throughout(
            specs_of(outcome, job.uid), begin, job.at, lambda spec: spec.get("suspend", False)
        ):
            yield f"{job.name} was created although its schedule was suspended"
        # Whose resume no status has told of yet.
        edited = any(begin - RESUMED_S <= at <= job.at for at, _ in specs_of(outcome, job.uid))
        if not edited and held_throughout(
            outcome.statuses.get(job.uid, []), begin, job.at, lambda status: "pause" in status
        ):
            yield f"{job.name} was created although its schedule was paused"


# --- the end --------------------------------------------------------------------------------------


def _ends_in_time(asked: Asked) -> Iterator[str]:
    """In calm a request goes on, unless it rightly waits."""
    outcome = asked.outcome
    if not asked.is_there or final_of(asked.status) or _rightly_waits(asked):
        return
    times = [read_instant(asked.item["metadata"]["creationTimestamp"]), outcome.world.base]
    times += [at for at, _ in specs_of(outcome, asked.uid)]
    calm_from = outcome.world.base + outcome.world.calm_from_s
    patience_s = PROGRESS_S
    if outcome.processes[0].play.trouble.storm is not None:
        times.append(calm_from)
        patience_s += 60  # until the last watch is healthy, and back-offs are over
    schedule = _schedule_of(asked)
    if schedule is None:
        patience_s = max(patience_s, PATIENCE_S)
        times += [at for uid, at in outcome.deleted.items() if _key(outcome, uid) == asked.schedule]
    else:
        uid = schedule["metadata"]["uid"]
        times += [at for at, _ in specs_of(outcome, uid)]
        mine = [job for job in outcome.all_jobs.values() if job.uid == uid]
        if not _shares_places(asked, schedule):
            mine = [job for job in mine if job.kind == asked.kind]
        times += [job.deleted_at or job.ended_at or job.at for job in mine]
        patience_s += _longest_retry_s(outcome, uid)
    silence_s = outcome.now - max(times)
    if silence_s > patience_s and not forgiven.clock_was_set(outcome):
        yield f"{asked.status.get('state')}, and nothing has happened for {silence_s:.0f} s"


def _key(outcome: Outcome, uid: str) -> str:
    metadata = outcome.schedules[uid]["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}"


def _schedule_of(asked: Asked) -> Json | None:
    ns, _, name = asked.schedule.partition("/")
    return asked.outcome.server.objects[SCHEDULED_JOB].get((ns, name))


def _shares_places(asked: Asked, schedule: Json) -> bool:
    policy = schedule["spec"].get("concurrencyPolicy", "Allow")
    return asked.spec.get("overlap") != "Allow" and policy != "Allow"


def _longest_retry_s(outcome: Outcome, uid: str) -> float:
    retries = [item["spec"].get("retry") or {} for item in outcome.specs[uid]]
    return max((retry.get("delaySeconds", 0) * 4 for retry in retries), default=0)


def _rightly_waits(asked: Asked) -> bool:
    """For somebody, for its time, for a place, or for the end of a Job that runs."""
    outcome, spec = asked.outcome, asked.spec
    if spec.get("suspend"):
        return True
    if "range" not in spec and asked.due > outcome.now - PROGRESS_S:
        return True
    schedule = _schedule_of(asked)
    if schedule is None:
        return False
    status = schedule.get("status") or {}
    if condition_of(status, "ScheduleAccepted").get("status") == "False":
        return True
    halted = schedule["spec"].get("suspend") or status.get("pause")
    if halted and not spec.get("force"):
        return True
    uid, shares = schedule["metadata"]["uid"], _shares_places(asked, schedule)
    return any(
        job.deleted_at is None and not job.ended
        for job in outcome.all_jobs.values()
        if job.uid == uid and (shares or job.kind == asked.kind)
    )


def _is_deleted_by_its_ttl(asked: Asked) -> Iterator[str]:
    outcome, ttl_s, ended = (
        asked.outcome,
        asked.spec.get("ttlSecondsAfterFinished"),
        ended_at(asked),
    )
    deleted = outcome.requests_deleted.get(asked.uid)
    if deleted is not None and deleted[1] != "user":
        if ttl_s is None or ended is None:
            yield "was deleted by the operator, and had no ttl or no end"
        elif deleted[0] < ended or (
            deleted[0] < read_instant(_finished_at(asked)) + ttl_s
            and not forgiven.clock_was_set(outcome)
        ):
            yield f"was deleted {deleted[0] - ended:.1f} s after its end was stored"
    if asked.is_there and ended is not None and ttl_s is not None:
        late_s = outcome.now - max(ended + ttl_s, outcome.world.base + outcome.world.calm_from_s)
        if late_s > PROGRESS_S + 30 and not forgiven.clock_was_set(outcome):
            yield f"is there {late_s:.0f} s after its ttl"


def _finished_at(asked: Asked) -> str:
    """As a status told it first: of two writers one may take it back."""
    return next(status["finishedAt"] for _, status in asked.stored if status.get("finishedAt"))


def _begins_nothing_once_deleted(asked: Asked) -> Iterator[str]:
    deleted = asked.outcome.requests_deleted.get(asked.uid)
    if deleted is None:
        return
    for job in asked.jobs:
        if job.at > deleted[0] + stale_s(asked.outcome):
            late_s = job.at - deleted[0]
            yield f"{job.name} was created {late_s:.1f} s after the request was deleted"


def _says_what_it_waits_for(asked: Asked) -> Iterator[str]:
    """In the end the operator has looked at the spec, and says how it stands."""
    outcome = asked.outcome
    young = read_instant(asked.item["metadata"]["creationTimestamp"]) > outcome.now - PROGRESS_S
    if not asked.is_there or young:
        return
    status, generation = asked.status, asked.item["metadata"]["generation"]
    edited = outcome.edited[asked.uid][-1] > outcome.now - PROGRESS_S
    if status.get("observedGeneration") != generation and not edited and not final_of(status):
        yield f"its status speaks of generation {status.get('observedGeneration')}"
    ready = condition_of(status, "Ready")
    if not ready.get("reason") or not ready.get("message"):
        yield f"says nothing of how it stands: {ready}"
    accepted = status.get("state") in ("Running", "Succeeded")
    if accepted and ready.get("status") != "True":
        yield f"is {status['state']}, and Ready {ready.get('status')} ({ready.get('reason')})"


# --- schedules ------------------------------------------------------------------------------------


def _schedules_keep_theirs(outcome: Outcome) -> Iterator[str]:
    """`internal.waiting` of a schedule names runs by schedule alone."""
    for uid, stored in outcome.statuses.items():
        if forgiven.status_was_forged(outcome, uid):
            continue
        for at, status in stored:
            kinds = {row.get("kind", BY_SCHEDULE) for row in internal(status).get("waiting") or ()}
            if kinds - {BY_SCHEDULE}:
                where = f"{_key(outcome, uid)} at {at - outcome.world.base:.3f}"
                yield f"{where}: its status keeps a requested run"
