"""Oracles of what may be used: requests a second, and what is kept in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.sim import forgiven
from tests.sim.outcome import Outcome
from tests.sim.server import JOB, RUN_REQUEST, SCHEDULED_JOB

from evenkeel.core.schedule.pods import LONGEST_PAUSE_S

WINDOW_S = 10

REPEATS_LIMIT = 40
"""The same request by one process within ten seconds: a herd of retries is below, a loop above."""

CALLS_LIMIT = 300
"""By one process within ten seconds: 4 schedules with a run every ten seconds need 40."""

CALLS_TWICE = 800
"""Where two operators catch up with the same runs; see `catching_up_beside_another`."""

TASKS_OF_GONE = 3
"""Tasks of the agenda that a deleted schedule leaves behind: two proofs of its template, and a look
at its Pods. Each is dropped when its instant comes."""

TASKS_LIMIT = 40
"""Tasks of the event loop that a process at rest may have."""


EVENTS_AT_ONCE = 10
"""Of a schedule, told in the last second of a play: they are sent fifty a second."""


JUST_NOW_S = 5
"""Creates of what came due, or failed and is tried again, this shortly before the end may be under
way."""


RUNS_LIMIT = 150
"""Of a schedule that catches up: catchUpLimit is 100, and as many as 20 may be queued."""


ROWS_AT_ONCE = 10
"""Of a schedule, told in the last second of a play, or told by no stored status yet."""


REASONS_LIMIT = 20
"""Reasons of Events: the last of each schedule and reason is remembered, to be counted up."""


def no_hot_loop(outcome: Outcome) -> Iterator[str]:
    """No process asks for the same thing again and again, nor for too much."""
    for process in outcome.processes:
        repeated, most = _busiest_window(process.connection.asked)
        for (verb, path), (count, at) in repeated.items():
            if not (
                forgiven.opening_connections(outcome, path)
                or forgiven.catching_up(outcome, verb, path)
            ):
                yield f"operator {process.number}: {verb} {path} {count} times in 10 s at {at:.1f}"
        if most > CALLS_LIMIT and not forgiven.catching_up_beside_another(
            outcome, most, CALLS_TWICE
        ):
            yield f"operator {process.number}: {most} requests in 10 s"


def _busiest_window(
    asked: list[tuple[float, str, str]],
) -> tuple[dict[tuple[str, str], tuple[int, float]], int]:
    """What was asked more often than REPEATS_LIMIT within ten seconds, with its most and when; and
    the most requests of all kinds."""
    window: Counter[tuple[str, str]] = Counter()
    repeated: dict[tuple[str, str], tuple[int, float]] = {}
    begin = most = 0
    for number, (at, verb, path) in enumerate(asked):
        window[verb, path] += 1
        while asked[begin][0] < at - WINDOW_S:
            window[asked[begin][1:]] -= 1
            begin += 1
        count = window[verb, path]
        if count > REPEATS_LIMIT and count > repeated.get((verb, path), (0, 0.0))[0]:
            repeated[verb, path] = count, at
        most = max(most, number + 1 - begin)
    return repeated, most


def nothing_is_left_over(outcome: Outcome) -> Iterator[str]:
    """What a process holds is bounded by what there is, not by what there was."""
    left = outcome.left
    if left is None:
        return  # it could not answer: that is told as a failure
    if left.tasks > TASKS_LIMIT:
        yield f"left over at the end: {left.tasks} tasks, at most {TASKS_LIMIT} expected"
    limits = _limits(outcome, left.sizes)
    for what, size in left.sizes.items():
        if what not in limits:
            yield f"left over at the end: {size} {what}, and no oracle says how many there may be"
        elif size > limits[what] and not (
            # Until when a create may arrive goes by the wall clock, which may be back for hours.
            (what == "scheduler: unwanted creates" and forgiven.clock_was_set(outcome))
            # A task is dropped when its instant comes: by a forged status in a year.
            or (
                what == "scheduler: agenda" and forgiven.status_was_forged(outcome, *outcome.forged)
            )
        ):
            yield f"left over at the end: {size} {what}, at most {limits[what]} expected"


def _limits(outcome: Outcome, sizes: dict[str, int]) -> dict[str, int]:
    """How much of each there may be in the calm at the end."""
    now, jobs = outcome.now, len(outcome.server.objects[JOB])
    exist = len(outcome.server.objects[SCHEDULED_JOB])
    asked_for = len(outcome.server.objects[RUN_REQUEST])
    asked_for += sum(at > now - 60 for at, _ in outcome.requests_deleted.values())
    schedules, requests = sizes["scheduler: schedules"], sizes["scheduler: requests"]
    left = outcome.left
    assert left is not None
    # A task is dropped when its instant comes. By a clock that was set back that may be in hours,
    # and its schedule be deleted before.
    planned_for = len(outcome.schedules) if "wall" in outcome.world.tags else schedules
    outlived = sum(at > now - LONGEST_PAUSE_S for at in outcome.deleted.values())
    due_just_now = sum(due > left.now - JUST_NOW_S for _, due in left.active)
    due_just_now += len(left.requested)
    due_just_now += sum(job.ended_at > now - JUST_NOW_S for job in outcome.jobs.values())  # retries
    return {
        "scheduler: schedules": exist + sum(at > now - 60 for at in outcome.deleted.values()),
        "scheduler: schedules not admitted": 0,
        "scheduler: Jobs without a schedule": 0,
        "scheduler: runs": RUNS_LIMIT * schedules,
        "scheduler: prepared runs": sizes["scheduler: runs"],
        "scheduler: queued runs": 20 * schedules,
        "scheduler: ended runs": RUNS_LIMIT * schedules,
        "scheduler: schedules that arrived together": 0,
        "scheduler: moves of a set": 0,
        "scheduler: agenda": 2 * sizes["scheduler: runs"]
        + 10 * (planned_for + requests)
        + TASKS_OF_GONE * outlived,
        "scheduler: unwanted creates": 0,
        "scheduler: decided due times": 20 * schedules,
        # History counts those of each request apart, and some vanish unseen.
        "scheduler: finished Jobs": jobs + schedules + requests,
        "scheduler: Jobs to delete": 0,
        "scheduler: requests": asked_for,
        "scheduler: requests in line": asked_for,
        "scheduler: requests under way": asked_for,
        "scheduler: unfinished requests": asked_for,
        "scheduler: closed requests": 0,
        "scheduler: unclaimed Jobs": 0,
        "launcher: bodies": sizes["scheduler: prepared runs"],
        "launcher: creates that wait": due_just_now,
        "launcher: creates in flight": due_just_now,
        "launcher: withdrawn creates": 0,
        "status sync: statuses that wait": schedules,
        "status sync: first statuses that wait": schedules,
        "status sync: times of writes": schedules,
        "status sync: failed writes": 0,
        "status sync: versions": schedules,
        "status sync: stored revisions": schedules,
        "request status sync: statuses that wait": asked_for,
        "request status sync: first statuses that wait": asked_for,
        "request status sync: times of writes": asked_for,
        "request status sync: failed writes": 0,
        "request status sync: versions": asked_for,
        "request status sync: stored revisions": asked_for,
        "request errands: requests to make": 0,
        "request errands: requests to delete": 0,
        "errands: templates to prove": 0,
        "errands: dry runs": 0,
        "errands: Jobs to find": 0,
        "events: Events that wait": 0 if left.behind else EVENTS_AT_ONCE * (schedules + requests),
        "events: series of Events": REASONS_LIMIT
        * (len(outcome.schedules) + len(outcome.requests)),
        "watch: Jobs": jobs + 10,
        "ledger: rows that wait": ROWS_AT_ONCE * schedules,
        "ledger: marks that wait": schedules,
        "ledger: schedules and requests with rows": schedules + asked_for,
        "ledger: schedules with a gap": 0,
        "ledger: gaps that wait for a status": 0,
        "ledger: told marks": schedules,
        "ledger: told requests": asked_for,
        "ledger: runs left over": 0,
        "ledger: requests known": 0,
        "ledger: first sights": 0,
        "ledger: rows read": 0,
        # A retry that did not come to its time is forgotten when that has come.
        "ledger: deferred runs": sizes["scheduler: runs"] + 2 * schedules + asked_for,
        "ledger: minutes": 1,
        "ledger: questions": 0,
    }
