"""A requested run beside the scheduled run of the same due time: neither hides, ends or loses the
other, and the scheduled one alone moves the mark. The request itself is gone."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import clock, every, instant
from tests.unit.core.world import World

from evenkeel import rfc3339
from evenkeel.core import messages
from evenkeel.model import Concurrency, JobFact, JobRef, JobState, Retry, RunId, Verdict
from evenkeel.resource.job import job_name, read_job_name
from evenkeel.resource.status import parse

SEEN = every(60, retry=Retry(limit=1, delay_s=5))
DUE = instant("10:02")
SCHEDULED = RunId(SEEN.uid, DUE)
REQUESTED = RunId(SEEN.uid, DUE, "q0abcdef")


def requested_job(world: World, state: JobState = JobState.STARTED, attempt: int = 1) -> JobFact:
    """Somebody's request has made a Job, and the watch tells of it."""
    name = job_name(SEEN.name, REQUESTED, attempt)
    ended = state in (JobState.SUCCEEDED, JobState.FAILED)
    fact = JobFact(
        JobRef(SEEN.ns, name, f"uid-{name}"),
        REQUESTED,
        attempt,
        state,
        started=int(world.now),
        finished=int(world.now) if ended else None,
    )
    world.jobs[name] = fact
    world.scheduler.inbox.hint(fact.ref.uid, messages.JobSeen(fact))
    world.settle()
    return fact


def living(world: World) -> set[RunId]:
    return set(world.scheduler.state.entries[SEEN.uid].runs)


def test_both_are_followed_by_their_own_jobs() -> None:
    world = World().see(SEEN).run_until("10:02:10")
    fact = requested_job(world)
    assert {SCHEDULED, REQUESTED} <= living(world)
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    assert SCHEDULED in living(world)
    assert REQUESTED not in living(world)
    world.succeed(SEEN, "10:02")
    assert SCHEDULED not in living(world)


def test_a_requested_run_counts_for_its_request_alone() -> None:
    world = World().see(SEEN).run_until("10:02:10")
    before = world.status()["recent"], world.counts(), world.status()["internal"]["mark"]
    fact = requested_job(world)
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    world.write(SEEN.uid)
    assert (world.status()["recent"], world.counts()) == before[:2]
    assert world.status()["lastSuccessfulTime"] == "2026-03-02T10:02:10Z"
    assert "lastResult" not in world.status()
    assert world.status()["consecutiveFailures"] == 0


def test_the_mark_waits_for_the_scheduled_run_alone() -> None:
    world = World(answering=lambda launch: None).see(SEEN).run_until("10:01:10")
    fact = requested_job(world)
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    world.write(SEEN.uid)
    assert clock(rfc3339.read(world.status()["internal"]["mark"])) == "10:00:59"
    world.answer(world.in_flight[0], Verdict.CREATED)
    world.write(SEEN.uid)
    assert clock(rfc3339.read(world.status()["internal"]["mark"])) == "10:01:00"


def test_a_scheduled_run_waits_for_a_requested_one_and_is_not_skipped() -> None:
    seen = replace(SEEN, concurrency=Concurrency.FORBID)
    world = World().see(seen).run_until("10:01:50")
    world.succeed(seen, "10:01")
    fact = requested_job(world)
    world.run_until("10:02:10")
    assert world.started() == ["10:01:00"]
    world.change(fact, state=JobState.SUCCEEDED, finished=int(world.now))
    assert world.started() == ["10:01:00", "10:02:00"]


def test_a_job_whose_request_is_gone_is_not_lost_with_it() -> None:
    world = World().see(SEEN).run_until("10:02:10")
    fact = requested_job(world)
    world.write(SEEN.uid)
    names = [read_job_name(ref["name"]) for ref in world.status()["active"]]
    assert {named.kind for named in names if named} == {"s", "q0abcdef"}
    world.remove(fact, told=False)
    world.crash(for_s=5)
    assert REQUESTED not in living(world)
    assert SCHEDULED in living(world)
    assert world.counts() == {}


STEPS = st.lists(
    st.sampled_from(
        [
            *("requested runs", "requested ends", "requested fails", "requested vanishes"),
            *("scheduled ends", "scheduled fails", "crash", "wait"),
        ]
    ),
    max_size=8,
)


@given(STEPS)
def test_whatever_becomes_of_one_becomes_of_the_other_only_by_its_own_job(steps: list[str]) -> None:
    """The same story without the requested Job gives the scheduled runs the same ends."""
    told = [_ends(steps, with_request=with_request) for with_request in (True, False)]
    assert told[0] == told[1]


def _ends(steps: list[str], *, with_request: bool) -> object:
    world = World().see(SEEN).run_until("10:02:10")
    for step in steps:
        _take(world, step, with_request=with_request)
    world.run_until(world.now + 30)
    world.write(SEEN.uid)
    status = world.status()
    memory = parse(status)
    return (
        world.started(),
        world.counts(),
        status["recent"],
        status["internal"]["mark"],
        memory.waiting,
    )


def _take(world: World, step: str, *, with_request: bool) -> None:
    who, _, what = step.partition(" ")
    if step == "crash":
        world.crash(for_s=3)
    elif step == "wait":
        world.run_until(world.now + 20)
    elif who == "scheduled":
        due = clock(DUE)
        try:
            fact = world.job(SEEN, due)
        except KeyError:
            return
        if fact.finished is None:
            (world.succeed if what == "ends" else world.fail)(SEEN, due)
    elif with_request:
        _take_requested(world, what)


def _take_requested(world: World, what: str) -> None:
    name = job_name(SEEN.name, REQUESTED)
    if what == "runs" and name not in world.jobs:
        requested_job(world)
    elif what == "vanishes" and name in world.jobs:
        world.remove(world.jobs[name])
    elif name in world.jobs and world.jobs[name].finished is None:
        state = JobState.SUCCEEDED if what == "ends" else JobState.FAILED
        world.change(world.jobs[name], state=state, finished=int(world.now))
