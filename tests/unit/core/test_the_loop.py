"""SPEC 5: five steps, the inbox, budgets, queries, shutdown, statistics; and legal steps only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import cron, every, instant, job
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.entry import IllegalStepError, Run
from evenkeel.core.inbox import Inbox
from evenkeel.core.lanes import Lanes
from evenkeel.core.scheduler import (
    MESSAGES_PER_STEP,
    SCHEDULES_PER_STEP,
    STARTS_PER_STEP,
    Scheduler,
)
from evenkeel.model import ENDED, NEXT_STATES, JobPhase, RunId, RunState, Verdict
from evenkeel.settings import Settings

EVERY_MINUTE = "* * * * *"


def test_one_step_does_the_five_in_order(monkeypatch):
    done = []
    steps = [
        "_rebuild_index",
        "_hand_out_due_runs",
        "_drain_inbox",
        "_forget_ended",
        "_update_statistics",
    ]
    for name in steps:
        original = getattr(Scheduler, name)
        monkeypatch.setattr(
            Scheduler, name, lambda self, name=name, do=original: done.append(name) or do(self)
        )
    Scheduler(Settings()).step(float(instant("10:00")), 1.0)
    assert done == steps


# --- the inbox --------------------------------------------------------------------------------


def ask(n: int) -> messages.GetRun:
    return messages.GetRun(n, RunId("uid", n))


def test_hints_of_one_object_coalesce_to_the_newest():
    inbox = Inbox(size=10)
    for uid in ("a", "b", "a", "a"):
        inbox.hint(uid, messages.ScheduleGone(uid))
    inbox.hint("a", messages.ScheduleGone("newest"))
    assert [message.uid for message in inbox.drain(10)] == ["newest", "b"]


def test_a_full_inbox_refuses_results_and_queries_but_never_a_hint():
    inbox = Inbox(size=3)
    assert [inbox.offer(ask(n)) for n in range(5)] == [True, True, True, False, False]
    for n in range(100):
        inbox.hint(n, messages.ScheduleGone(str(n)))
    assert len(inbox) == 103
    inbox.drain(1)
    assert inbox.offer(ask(9))


def test_ten_thousand_hints_do_not_refuse_a_result():
    inbox = Inbox(size=10)
    for n in range(10_000):
        inbox.hint(n, messages.ScheduleGone(str(n)))
    assert inbox.offer(ask(1))


def test_the_inbox_wakes_the_loop():
    inbox, woken = Inbox(size=1), []
    inbox.on_arrival = lambda: woken.append(1)
    inbox.hint("a", messages.SchedulesChanged())
    inbox.offer(ask(1))
    inbox.offer(ask(2))
    assert len(woken) == 2


@given(
    st.lists(st.tuples(st.sampled_from(["hint", "offer", "drain"]), st.integers(0, 5)), max_size=60)
)
def test_nothing_that_was_taken_in_is_lost(steps):
    inbox, owed, got = Inbox(size=4), {}, []
    for number, (what, key) in enumerate(steps):
        message = ask(number)
        if what == "hint":
            inbox.hint(key, message)
            owed["hint", key] = message
        elif what == "offer" and inbox.offer(message):
            owed["offer", number] = message
        elif what == "drain":
            taken = inbox.drain(key)
            assert len(taken) <= key
            got += taken
            owed = {name: kept for name, kept in owed.items() if kept not in taken}
    assert sorted(message.ask for message in owed.values()) == sorted(
        message.ask for message in inbox.drain(100)
    )
    assert len(inbox) == 0 and not inbox.full


# --- budgets ----------------------------------------------------------------------------------


def test_a_storm_of_messages_is_read_in_bites():
    world = World()
    for n in range(MESSAGES_PER_STEP + 50):
        world.scheduler.inbox.hint(f"x{n}", messages.ScheduleGone(f"x{n}"))
    left = len(world.scheduler.inbox)
    world.step()
    assert len(world.scheduler.inbox) == left - MESSAGES_PER_STEP
    assert world.wake_at == world.now
    world.settle()
    assert len(world.scheduler.inbox) == 0


def test_new_schedules_are_read_in_smaller_bites_than_other_messages():
    world = World(settings=Settings(inbox_size=5000))
    world.settle()
    for n in range(SCHEDULES_PER_STEP + 5):
        world.scheduler.inbox.hint(f"s{n}", _seen(n))
    before = len(world.scheduler.state.entries)
    world.step()
    assert len(world.scheduler.state.entries) - before == SCHEDULES_PER_STEP
    world.settle()
    assert len(world.scheduler.state.entries) - before == SCHEDULES_PER_STEP + 5


def test_a_herd_is_started_in_bites_and_completely():
    world = World(settings=Settings(inbox_size=5000))
    for n in range(STARTS_PER_STEP + 100):
        world.scheduler.inbox.hint(f"s{n}", _seen(n))
    world.run_until("10:00:59")
    world.now = float(instant("10:01"))
    world.step()
    assert len(world.launches) == STARTS_PER_STEP
    assert world.wake_at == world.now
    world.settle()
    assert len(world.launches) == STARTS_PER_STEP + 100


def _seen(n: int) -> messages.ScheduleSeen:
    from evenkeel.resource.status import EMPTY

    return messages.ScheduleSeen(cron(EVERY_MINUTE, name=f"s{n}"), EMPTY)


def test_the_scheduler_wakes_exactly_at_the_next_due_time():
    world = World().see(cron(EVERY_MINUTE)).run_until(instant("10:00:59") + 0.5)
    assert world.wake_at == instant("10:01")


def test_it_wakes_at_least_every_loop_interval():
    world = World(settings=Settings(loop_interval_s=7)).run_until("10:00:10")
    assert world.wake_at - world.now <= 7


@pytest.mark.parametrize("pre_schedule_s", [0, 0.5, 10])
@pytest.mark.parametrize("loop_interval_s", [0.7, 60])
def test_runs_are_on_time_however_rarely_the_loop_wakes(pre_schedule_s, loop_interval_s):
    settings = Settings(pre_schedule_s=pre_schedule_s, loop_interval_s=loop_interval_s)
    world = World(settings=settings, now=instant("10:00") + 0.3)
    world.see(every(77)).run_until("10:20")
    assert [at - run.due for run, _, at in world.creations] == [0.0] * 15


def test_runs_are_prepared_before_their_instant_and_launched_at_it():
    world = World().see(cron(EVERY_MINUTE)).run_until("10:00:50")
    assert [each.run.due for each in world.prepared] == [instant("10:01")]
    assert world.launches == []


# --- queries ----------------------------------------------------------------------------------


def test_the_state_of_a_run_is_told_while_it_lives_and_for_grace_after():
    seen = cron(EVERY_MINUTE)
    run = RunId(seen.uid, instant("10:01"))
    world = World().see(seen).run_until("10:01")

    def state() -> RunState | None:
        return world.ask(lambda asked: messages.GetRun(asked, run))

    assert state() is RunState.RUNNING
    world.succeed(seen, "10:01")
    assert state() is RunState.SUCCEEDED
    world.run_until("10:01:29")
    assert state() is RunState.SUCCEEDED
    world.run_until("10:01:31")
    assert state() is None


def test_all_active_runs_are_told():
    world = World().see(cron(EVERY_MINUTE)).see(every(60, name="other")).run_until("10:01")
    active = world.ask(messages.GetActiveRuns)
    assert sorted((key, state.value) for key, _, state, _ in active) == [
        ("shop/other", "running"),
        ("shop/report", "running"),
    ]


def test_the_status_of_a_schedule_is_told_as_it_would_be_written():
    world = World().see(cron(EVERY_MINUTE))
    told = world.ask(lambda asked: messages.GetSchedule(asked, "shop/report"))
    assert told["nextRunTime"] == "2026-03-02T10:01:00Z"
    assert world.ask(lambda asked: messages.GetSchedule(asked, "shop/nobody")) is None


# --- shutdown ---------------------------------------------------------------------------------


def test_a_shutdown_puts_back_what_has_not_begun():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:00:55").tell(messages.Shutdown())
    assert world.stopped
    assert len(world.let_go) == 1
    assert world.run_until("10:02").launches == []
    assert world.crash().started() == ["10:02:00"] or world.started() == ["10:01:00", "10:02:00"]


def test_a_run_put_back_from_its_lane_is_launched_by_the_next_process():
    world = World(answering=lambda _: None).see(cron(EVERY_MINUTE)).run_until("10:01")
    world.tell(messages.Shutdown())
    run = world.launches[0].run
    world.tell(messages.PutBack(run, 1))
    assert world.ask(lambda asked: messages.GetRun(asked, run)) is RunState.SCHEDULED
    world.answering = lambda _: Verdict.CREATED
    assert world.crash(for_s=5).started() == ["10:01:00"]


@pytest.mark.parametrize(
    "spec", [{"ttl_s": 0}, {"concurrency": "Queue"}], ids=["marked first", "out of the queue"]
)
def test_a_run_that_the_mark_has_passed_is_not_lost_when_it_is_put_back(spec):
    from evenkeel.model import Concurrency

    if "concurrency" in spec:
        spec = {"concurrency": Concurrency.QUEUE}
    seen = cron(EVERY_MINUTE, **spec)
    world = World().see(seen)
    if "ttl_s" not in spec:
        world.run_until("10:02:30")
        world.answering = lambda _: None
        world.succeed(seen, "10:01")
    else:
        world.answering = lambda _: None
        world.run_until("10:01")
    launch = world.in_flight[0]
    world.tell(messages.Shutdown()).tell(messages.PutBack(launch.run, 1))
    world.answering = lambda _: Verdict.CREATED
    world.crash(for_s=5)
    assert launch.run in {run for run, _, _ in world.creations}
    assert not world.counts().get("lost")


def test_running_jobs_go_on_and_are_adopted_by_the_next_process():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:01").tell(messages.Shutdown()).crash()
    assert world.alive() == {"10:01:00": "running"}
    world.succeed(seen, "10:01")
    assert world.counts() == {"succeeded": 1}


# --- statistics, an index aside ---------------------------------------------------------------


def test_statistics_count_what_there_is():
    world = World().see(cron(EVERY_MINUTE)).see(every(60, name="other")).run_until("10:01:02")
    numbers = world.scheduler.state.statistics
    assert (numbers.schedules, numbers.running, numbers.waiting) == (2, 2, 0)
    assert numbers.index_runs >= 20


def test_ended_runs_are_forgotten_after_grace():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen)
    for minute in range(1, 30):
        world.run_until(f"10:{minute:02}")
        world.succeed(seen, f"10:{minute:02}")
    assert len(world.scheduler.state.ended_states) <= 2
    assert len(world.scheduler.state.agenda) <= 3


def test_above_the_inline_limit_the_index_is_built_aside(monkeypatch):
    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)
    world = World().see(cron(EVERY_MINUTE)).run_until("10:20:30")
    assert len(world.started()) == 20


def test_the_same_messages_at_the_same_times_have_the_same_effects():
    def history() -> list[str]:
        seen, effects = cron(EVERY_MINUTE), []
        world = World().see(seen)
        for second in range(0, 300, 7):
            world.run_until(instant("10:00") + second)
            effects += [repr(effect) for effect in world.step()]
        return effects

    assert history() == history()


# --- legal steps ------------------------------------------------------------------------------


@pytest.mark.parametrize("before", RunState)
def test_only_legal_steps_are_taken(before):
    for after in RunState:
        run = Run(RunId("uid", 1), taken_at=0.0, state=before)
        if after is before or after in NEXT_STATES.get(before, ()):
            run.move(after)
            assert run.state is after
        else:
            with pytest.raises(IllegalStepError):
                run.move(after)


def test_an_end_has_no_next():
    assert not ENDED & NEXT_STATES.keys()
    assert ENDED | NEXT_STATES.keys() == set(RunState)


# --- lanes ------------------------------------------------------------------------------------


def lanes(*pushes: tuple[str, int, int, str]) -> list[tuple[str, int, int, str]]:
    queue: Lanes[tuple[str, int, int, str]] = Lanes()
    for push in pushes:
        ns, priority, due, name = push
        queue.push(push, ns=ns, priority=priority, due=due, name=name)
    return [queue.pop() for _ in range(len(queue))]


def test_namespaces_take_turns():
    order = lanes(*[("a", 0, 1, f"n{k}") for k in range(3)], ("b", 0, 1, "x"), ("b", 0, 1, "y"))
    assert [push[0] for push in order] == ["a", "b", "a", "b", "a"]


def test_inside_a_namespace_it_goes_by_priority_then_due_then_name():
    pushes = [("a", 0, 2, "x"), ("a", 5, 9, "x"), ("a", 0, 1, "y"), ("a", 0, 1, "x")]
    assert lanes(*pushes) == [
        ("a", 5, 9, "x"),
        ("a", 0, 1, "x"),
        ("a", 0, 1, "y"),
        ("a", 0, 2, "x"),
    ]


def test_an_empty_lane_has_nothing_to_give():
    with pytest.raises(IndexError):
        Lanes().pop()


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.integers(-2, 2), st.integers(0, 3), st.sampled_from("xy")
        ),
        max_size=40,
    )
)
def test_lanes_are_fair_complete_and_in_order(pushes):
    order = lanes(*pushes)
    assert sorted(order) == sorted(pushes)
    for ns in "abc":
        own = [(-priority, due, name) for n, priority, due, name in order if n == ns]
        assert own == sorted(own)
    waiting = {ns: sum(push[0] == ns for push in pushes) for ns in "abc"}
    for position, push in enumerate(order):
        waiting[push[0]] -= 1
        others = [ns for ns in "abc" if ns != push[0] and waiting[ns] > 0]
        upcoming = {later[0] for later in order[position + 1 : position + 1 + len(others)]}
        assert set(others) <= upcoming | {push[0]}


def test_a_job_that_is_not_ours_has_no_due_time_in_its_name():
    from evenkeel.core.follow import due_of

    ours = job(cron(EVERY_MINUTE), "10:01", JobPhase.STARTED).ref.name
    assert due_of(ours) == instant("10:01")
    assert due_of(f"{ours}-r2") == instant("10:01")
    assert due_of("report-20261332-000000-aaaaaaaaaa") is None
    assert due_of("somebody-elses") is None
