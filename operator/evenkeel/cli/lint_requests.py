"""What `evenkeel lint` says of the RunRequests of a set of files.

A request is judged by itself, and beside its schedule where the same files hold the schedule. A
request whose schedule is elsewhere is right. Not guaranteed: that the operator accepts a request;
it also knows which due times have run.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from evenkeel.cli.given import needs_a_phase
from evenkeel.manifests.cronjob import is_cronjob
from evenkeel.manifests.findings import Found, Mistake, Problem
from evenkeel.manifests.manifest import Manifests, defined_twice, problem_of
from evenkeel.manifests.nearest import nearest
from evenkeel.manifests.request_mistakes import (
    examine_request,
    mistakes_beside,
    mistakes_of_time,
)
from evenkeel.model import Instant, Request, Schedule
from evenkeel.when import compile_timing


@dataclass(slots=True)
class JudgedRequests:
    """All requests of the files."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    right: int = 0
    """So many have no mistake."""


def judge_requests(found: Manifests, now: Instant) -> JudgedRequests:
    """The mistakes and notes of all requests, as if they were applied at this time."""
    out = JudgedRequests()
    schedules = {
        each.key: each for each in found.schedules if not is_cronjob(found.found[each.key].object)
    }
    first: dict[str, Found] = {}
    for each in found.requests:
        request, mistakes = examine_request(each.object)
        problems = [problem_of(each, mistake) for mistake in mistakes]
        if request is not None:
            beside = schedules.get(request.schedule_key)
            problems += [problem_of(each, one) for one in _mistakes(request, beside, now)]
            if beside is None:
                out.notes += [problem_of(each, one) for one in _other_name(request, schedules)]
            if "name" in each.object["metadata"]:
                before = first.setdefault(request.key, each)
                problems += [defined_twice(each, before)] * (before is not each)
        out.problems += problems
        out.right += not problems
    return out


def _mistakes(request: Request, schedule: Schedule | None, now: Instant) -> Iterator[Mistake]:
    yield from mistakes_of_time(request, now)
    if schedule is not None:
        placed_later = needs_a_phase(schedule)
        dues = None if placed_later else compile_timing(schedule.timing, seed=schedule.key)
        yield from mistakes_beside(request, schedule, dues)


def _other_name(request: Request, schedules: dict[str, Schedule]) -> Iterator[Mistake]:
    """The schedule may be elsewhere; but a near name is probably the one that was meant."""
    names = (each.name for each in schedules.values() if each.ns == request.ns)
    meant = nearest(request.schedule, names)
    if meant is not None:
        sentence = f"these files hold no ScheduledJob {request.schedule}; did you mean {meant}?"
        yield Mistake(("spec", "schedule"), sentence)
