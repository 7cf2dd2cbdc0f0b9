"""Five steps in their order, budgets, queries, statistics."""

import pytest
from tests.builders import cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel.core import messages
from evenkeel.core.scheduler import (
    INLINE_SCHEDULES,
    MESSAGES_PER_STEP,
    SCHEDULES_PER_STEP,
    STARTS_PER_STEP,
    Scheduler,
)
from evenkeel.model import RunId, RunState
from evenkeel.resource.record import EMPTY
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


# --- statistics, an index aside ---------------------------------------------------------------


def test_statistics_count_what_there_is():
    world = World().see(cron(EVERY_MINUTE)).see(every(60, name="other")).run_until("10:01:02")
    state = world.scheduler.state
    assert (state.statistics.schedules, state.census.running, state.census.waiting) == (2, 2, 0)
    assert state.statistics.index_runs >= 20


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


def test_the_inline_limit_is_where_a_build_would_stop_the_loop():
    """tests/bench/index.py: some 20 ms at this many schedules."""
    assert INLINE_SCHEDULES == 20_000


def test_while_an_index_is_built_aside_the_old_one_serves_and_no_other_is_begun(monkeypatch):
    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)
    world = World().see(cron(EVERY_MINUTE)).run_until("10:00:30")
    inbox, built = world.scheduler.inbox, []
    tell = inbox.hint

    def hold_back(key, message):
        built.append(message) if isinstance(message, messages.IndexBuilt) else tell(key, message)

    monkeypatch.setattr(inbox, "hint", hold_back)
    old = world.scheduler.state.index.current.generation
    world.tell(messages.SchedulesChanged()).run_until("10:03:30")
    world.tell(messages.SchedulesChanged()).run_until("10:05:30")
    assert [message.index.generation for message in built] == [old + 1]
    assert world.scheduler.state.index.current.generation == old
    assert world.started() == [f"10:0{minute}:00" for minute in range(1, 6)]
    tell("index", built.pop())  # what changed meanwhile has the next one built
    world.run_until("10:06:30")
    assert [message.index.generation for message in built] == [old + 2]
    assert world.scheduler.state.index.current.generation == old + 1
    assert world.started()[5:] == ["10:06:00"]


def test_the_same_messages_at_the_same_times_have_the_same_effects():
    def history() -> list[str]:
        seen, effects = cron(EVERY_MINUTE), []
        world = World().see(seen)
        for second in range(0, 300, 7):
            world.run_until(instant("10:00") + second)
            effects += [repr(effect) for effect in world.step()]
        return effects

    assert history() == history()


def test_told_that_schedules_changed_it_rebuilds_the_index():
    world = World().see(every(60)).run_until("10:00:10")
    before = world.scheduler.state.index.current.generation
    world.tell(messages.SchedulesChanged()).run_until("10:00:13")
    assert world.scheduler.state.index.current.generation == before + 1


def test_a_hundred_rapid_edits_are_few_indexes():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).run_until("10:00:20")
    world.observed.clear()
    for _ in range(100):
        seen = edited(seen, priority=seen.generation % 10)
        world.see(seen).run_until(world.now + 0.05)
    builds = [each for each in world.observed if each.metric == "index_build"]
    assert len(builds) <= 5 * 2  # two a second
