"""A handler that raises closes its own schedule and no other.

In each handler of one schedule an exception is planted for a while. The other schedule goes on in
time, the schedule concerned says InternalError, and after the plant is removed it goes on without a
restart: no due time is lost, none runs twice.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import cron, edited, every, instant, rejection, request
from tests.unit.core.world import World

from evenkeel.core import messages, route
from evenkeel.core.agenda import (
    CauseDeadline,
    DeletionDeadline,
    LedgerDeadline,
    LookAtRequest,
    PendingDeadline,
    ProofDeadline,
    ProveTemplate,
    Start,
    StartWarning,
    UnwantedExpired,
)
from evenkeel.core.effects import ScheduleEnded
from evenkeel.core.messages import GetRun, GetSchedule
from evenkeel.core.schedule import accept, due, jobs, life, planning, requested, start, view
from evenkeel.errors import Busy
from evenkeel.model import (
    Concurrency,
    JobState,
    Rejection,
    Request,
    Retry,
    RunId,
    RunState,
    Verdict,
)
from evenkeel.reasons import ConditionReason, Reason

REPORT = every(60, retry=Retry(limit=1, delay_s=5))
OTHER = every(60, name="other")
RUN = RunId(REPORT.uid, instant("10:03"))
ASKED = request(span=("10:01", "10:03"), suspend=True)
"""Of runs that have succeeded: it asks the ledger, and nothing runs."""

Provoke = Callable[[World], Any]


def nothing(world: World) -> None:
    """It comes by itself."""


def tell(message: messages.Message) -> Provoke:
    return lambda world: world.tell(message)


def at_once(task: Any) -> Provoke:
    def put(world: World) -> None:
        state = world.scheduler.state
        state.agenda.put_delay(world.monotonic, task)
        world.settle()

    return put


def lists_jobs(world: World) -> None:
    world.jobs_listed()
    world.settle()


def wants(world: World) -> World:
    return world.want(ASKED)


def edited_request() -> Request:
    return replace(ASKED, max_active=2, generation=2)


def stalls(world: World) -> None:
    world.stall_until("10:03:55")  # longer than grace, and nothing was due


MESSAGES: dict[type, Provoke] = {
    messages.CreateResult: nothing,
    messages.Unanswered: tell(messages.Unanswered(RUN, 1)),
    messages.PutBack: tell(messages.PutBack(RUN, 1)),
    messages.PodsLookedAt: tell(messages.PodsLookedAt(RUN, 1, False, Reason.IMAGE, "no image")),
    messages.TemplateChecked: tell(
        messages.TemplateChecked(REPORT.uid, "first", True, ConditionReason.ACCEPTED, "")
    ),
    messages.StatusWritten: nothing,
    messages.LedgerTold: tell(messages.LedgerTold(REPORT.uid, {})),
    messages.TriggerMade: tell(messages.TriggerMade(REPORT.uid, "monday", made=True)),
}

TASKS: dict[type, Provoke] = {
    Start: nothing,
    PendingDeadline: at_once(PendingDeadline(RUN, 1)),
    CauseDeadline: at_once(CauseDeadline(RUN, 1)),
    StartWarning: at_once(StartWarning(REPORT.uid)),
    DeletionDeadline: at_once(DeletionDeadline(RUN, 1)),
    UnwantedExpired: at_once(UnwantedExpired(RUN, 1)),
    ProveTemplate: at_once(ProveTemplate(REPORT.uid)),
    ProofDeadline: at_once(ProofDeadline(REPORT.uid)),
    LedgerDeadline: at_once(LedgerDeadline(REPORT.uid)),
    LookAtRequest: at_once(LookAtRequest(REPORT.uid, "q0abcdef")),
}

FUNCTIONS: dict[str, tuple[Any, str, Provoke]] = {
    "a Job is seen": (jobs, "job_seen", nothing),
    "a Job is gone": (jobs, "job_gone", lambda world: world.remove(world.job(REPORT, "10:02"))),
    "Jobs are listed": (jobs, "compare_with_list", lists_jobs),
    "an edit is accepted": (accept, "accept", lambda w: w.see(edited(REPORT, priority=1))),
    "an edit is rejected": (accept, "reject", lambda world: world.see(rejection(REPORT))),
    "a due time of the index is taken up": (due, "offer", nothing),
    "a stall is caught up": (due, "catch_up", stalls),
    "free places are given": (
        start,
        "give_free_places",
        lambda world: world.see(edited(REPORT, concurrency=Concurrency.QUEUE)),
    ),
    "new due times are looked at": (
        accept,
        "look_ahead",
        lambda world: world.see(edited(REPORT, rule=cron("* * * * *").timing.rule)),
    ),
    "a person cancels a run": (life, "cancel_run", lambda world: world.cancel(REPORT, "10:03")),
    "the status is rendered": (view, "take_document", nothing),
    "a request is carried out": (requested, "go_on", wants),
    "the due times of a range are listed": (planning, "dues_listed", wants),
    "the ledger tells of past runs": (planning, "runs_told", wants),
    "the status of a request is stored": (requested, "written", wants),
    "a request is edited": (requested, "edited", lambda w: wants(w).want(edited_request())),
    "a request is deleted": (requested, "deleted", lambda w: wants(w).request_gone(ASKED)),
}


def plant(monkeypatch: pytest.MonkeyPatch, handler: Callable[..., Any]) -> Callable[..., Any]:
    """The handler, raising for one schedule."""

    def planted(*arguments: Any, **more: Any) -> Any:
        entry = arguments[0] if len(arguments) == 1 else arguments[1]
        if entry.name == "report":
            raise RuntimeError("planted")
        return handler(*arguments, **more)

    return planted


def begun() -> World:
    """Three runs of each schedule; the last of report still runs."""
    world = World(surprises=True).see(REPORT).see(OTHER).run_until("10:03:10")
    for minute in ("10:01", "10:02"):
        world.succeed(REPORT, minute)
    return world


def shows_that_it_harmed_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch, provoke: Provoke
) -> None:
    provoke(world)
    if not world.scheduler.state.closed:
        world.run_until("10:04:02")
    wrong = world.condition("Degraded"), world.condition("Ready")
    assert wrong == (("True", "InternalError"), ("Unknown", "InternalError"))
    assert world.said("InternalError")
    assert isinstance(world.ask(lambda asked: GetSchedule(asked, REPORT.key)), Busy)
    assert isinstance(world.ask(lambda asked: GetRun(asked, RUN)), Busy)
    world.run_until("10:07:30")
    monkeypatch.undo()
    if isinstance(world.schedules[REPORT.uid], Rejection):
        world.see(edited(edited(REPORT)))
    world.run_until("10:20:30")
    minutes = [f"10:{minute:02}:00" for minute in range(1, 21)]
    assert world.started("other") == minutes
    assert world.scheduler.ready
    assert world.condition("Degraded") == ("False", "AsExpected")
    created = [(run, attempt) for run, attempt, _ in world.creations]
    assert len(created) == len(set(created)), "a Job was created twice"
    under_way = [due for due in world.alive() if instant(due) <= world.now]
    covered = sum(world.counts().values()) + len(under_way)
    assert covered == len(minutes), (world.counts(), world.alive())


@pytest.mark.parametrize("kind", MESSAGES)
def test_in_the_handler_of_a_message(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    world = begun()
    planted = plant(monkeypatch, route.OF_ONE_SCHEDULE[kind])
    monkeypatch.setitem(route.OF_ONE_SCHEDULE, kind, planted)
    shows_that_it_harmed_nobody_else(world, monkeypatch, MESSAGES[kind])


@pytest.mark.parametrize("kind", TASKS)
def test_in_the_handler_of_a_task(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    world = begun()
    monkeypatch.setitem(route.TASKS, kind, plant(monkeypatch, route.TASKS[kind]))
    shows_that_it_harmed_nobody_else(world, monkeypatch, TASKS[kind])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wherever_a_schedule_is_handled(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    room, function, provoke = FUNCTIONS[name]
    world = begun()
    monkeypatch.setattr(room, function, plant(monkeypatch, getattr(room, function)))
    shows_that_it_harmed_nobody_else(world, monkeypatch, provoke)


def test_the_tables_above_name_every_handler() -> None:
    assert MESSAGES.keys() == route.OF_ONE_SCHEDULE.keys()
    assert TASKS.keys() == route.TASKS.keys()


# --- reading again ------------------------------------------------------------------------------


def test_it_is_read_again_later_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = begun()
    planted = plant(monkeypatch, route.TASKS[Start])
    monkeypatch.setitem(route.TASKS, Start, planted)
    world.run_until("10:30")
    pauses = [
        log.fields["read_again_s"]
        for log in world.logged
        if log.event == "handler of a schedule failed"
    ]
    assert pauses[:5] == [10.0, 20.0, 40.0, 80.0, 160.0]
    assert max(pauses) == 300.0


def test_what_a_handler_said_before_it_raised_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    world = begun()

    def half(turn, entry, message):
        if entry.name == "report":
            life.end(turn, entry, entry.runs[RUN], RunState.SUCCEEDED)
            raise RuntimeError("planted")

    monkeypatch.setitem(route.OF_ONE_SCHEDULE, messages.Unanswered, half)
    ends = world.ends()
    world.tell(messages.Unanswered(RUN, 1))
    assert world.ends() == ends


def test_a_job_that_ended_and_one_that_was_deleted_meanwhile_are_known_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = begun()
    world.run_until("10:04:10")
    planted = plant(monkeypatch, route.OF_ONE_SCHEDULE[messages.Unanswered])
    monkeypatch.setitem(route.OF_ONE_SCHEDULE, messages.Unanswered, planted)
    world.tell(messages.Unanswered(RUN, 1))
    world.change(world.job(REPORT, "10:03"), state=JobState.SUCCEEDED, finished=int(world.now))
    world.remove(world.job(REPORT, "10:04"))
    world.run_until("10:04:30")
    assert world.ends()[-2:] == [
        ("10:03:00", "succeeded", ""),
        ("10:04:00", "lost", "outcome_unknown"),
    ]


def test_a_schedule_that_is_deleted_while_it_is_closed_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = begun()
    planted = plant(monkeypatch, route.OF_ONE_SCHEDULE[messages.Unanswered])
    monkeypatch.setitem(route.OF_ONE_SCHEDULE, messages.Unanswered, planted)
    world.tell(messages.Unanswered(RUN, 1))
    world.gone(REPORT)
    monkeypatch.undo()
    world.run_until("10:10")
    assert world.scheduler.state.entries.keys() == {OTHER.uid}
    assert not world.scheduler.state.closed
    ended = [told for told in world.accounts if isinstance(told, ScheduleEnded)]
    assert [(told.uid, told.key) for told in ended] == [(REPORT.uid, REPORT.key)]


def test_a_create_that_is_under_way_when_its_schedule_is_closed_is_adopted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = begun()
    world.answering = lambda launch: None if launch.run.uid == REPORT.uid else Verdict.CREATED
    world.run_until("10:04:01")
    (launch,) = world.in_flight
    planted = plant(monkeypatch, route.OF_ONE_SCHEDULE[messages.Unanswered])
    monkeypatch.setitem(route.OF_ONE_SCHEDULE, messages.Unanswered, planted)
    world.tell(messages.Unanswered(RUN, 1))
    world.answer(launch, Verdict.CREATED)
    world.answering = lambda _: Verdict.CREATED
    monkeypatch.undo()
    world.run_until("10:04:30")
    assert world.started().count("10:04:00") == 1
    assert world.alive()["10:04:00"] == "running"
