"""evenkeel.local: the scheduler without a cluster, on a virtual clock."""

import asyncio
import datetime as dt
import logging
import selectors
import threading

import pytest
from tests.builders import MONDAY
from tests.sim.virtual import SimulatedClock, VirtualLoop

from evenkeel.core.effects import BuildIndex
from evenkeel.core.scheduler import make_index
from evenkeel.errors import BadField
from evenkeel.local import Schedule
from evenkeel.loop import OFFLOADED
from evenkeel.settings import Settings

DAY_S = 86_400


class PatientLoop(VirtualLoop):
    """An event loop whose time jumps only while no callback runs: threads run in real time."""

    def __init__(self) -> None:
        super().__init__()
        self._working = 0
        self._jump = self._selector.select
        self._selector.select = self._select

    def run_in_executor(self, executor, func, *args):
        self._working += 1
        future = asyncio.SelectorEventLoop.run_in_executor(self, executor, func, *args)
        future.add_done_callback(self._done)
        return future

    def _done(self, _: object) -> None:
        self._working -= 1

    async def shutdown_default_executor(self, *limit_s):
        """By this loop's clock a limit for the threads would be over before one of them ends."""
        self._working += 1
        await super().shutdown_default_executor(*limit_s)

    def _select(self, timeout=None):
        if self._working and timeout != 0:
            return selectors.DefaultSelector.select(self._selector, 0.05)
        return self._jump(timeout)


class VirtualDay:
    """A schedule with a virtual clock, which begins at midnight and stops after some hours."""

    def __init__(self, *, hours: float, workers: int = 4) -> None:
        self.loop = PatientLoop()
        self.clock = SimulatedClock(self.loop, base=MONDAY)
        self.hours = hours
        self.schedule = Schedule(
            clock=self.clock,
            workers=workers,
            settings=Settings(loop_interval_s=60, min_interval_s=1),
            run_loop=self._run,
        )
        self.due: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def _run(self, main) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            self.loop.call_at(self.hours * 3600 + 0.5, self.schedule.stop)
            runner.run(main)
        assert self.loop.failures == []

    def at(self, hours: float, do) -> None:
        self.loop.call_at(hours * 3600, do)

    def note(self, id: str, due: dt.datetime) -> None:
        with self._lock:
            self.due.setdefault(id, []).append(due.strftime("%H:%M"))

    def run(self) -> dict[str, list[str]]:
        self.schedule.run()
        return {id: sorted(times) for id, times in self.due.items()}


def minutes(*of_day: int) -> list[str]:
    return [f"{minute // 60:02}:{minute % 60:02}" for minute in of_day]


def test_the_readmes_example_runs_to_the_minute_for_a_day():
    the_example()


def test_and_when_its_index_is_built_on_another_thread(monkeypatch):
    built_by = []

    def make_aside(build):
        built_by.append(threading.current_thread())
        return make_index(build)

    monkeypatch.setattr("evenkeel.core.scheduler.INLINE_SCHEDULES", 0)
    monkeypatch.setitem(OFFLOADED, BuildIndex, make_aside)
    the_example()
    assert len(built_by) > 100
    assert threading.main_thread() not in built_by


def the_example():
    day = VirtualDay(hours=23.99)
    add = day.schedule.add_interval
    day.schedule.add_hourly("hourly 17", 17, day.note)
    add("every 4", 4, callback=day.note)
    add("every 6 offset 1", 6, offset=1, callback=day.note)
    add("every 25 offset 2", 25, offset=2, callback=day.note)
    add("every 100", 100, callback=day.note)
    due = day.run()
    assert due["hourly 17"][:3] == ["00:17", "01:17", "02:17"]
    assert due["every 4"][:2] == ["00:04", "00:08"]
    assert due["every 6 offset 1"][:3] == ["00:07", "00:13", "00:19"]
    assert due["every 25 offset 2"][:4] == ["00:27", "00:52", "01:17", "01:42"]
    assert due["every 100"][:3] == ["01:40", "03:20", "05:00"]
    assert due["hourly 17"] == minutes(*range(17, 1440, 60))
    assert due["every 4"] == minutes(*range(4, 1440, 4))
    assert due["every 6 offset 1"] == minutes(*range(7, 1440, 6))
    assert due["every 25 offset 2"] == minutes(*range(27, 1440, 25))
    assert due["every 100"] == minutes(*range(100, 1440, 100))


def test_jobs_due_together_go_by_priority():
    day, order = VirtualDay(hours=1, workers=1), []
    for id, priority in (("low", -3), ("high", 7), ("middle", 0)):
        day.schedule.add_interval(
            id, 60, callback=lambda id, due: order.append(id), priority=priority
        )
    day.run()
    assert order == ["high", "middle", "low"]


def test_an_added_job_counts_from_its_addition():
    day = VirtualDay(hours=1)
    day.at(0.25, lambda: day.schedule.add_interval("late", 10, callback=day.note))
    assert day.run() == {"late": ["00:25", "00:35", "00:45", "00:55"]}


def test_a_removed_job_does_not_run_any_more():
    day = VirtualDay(hours=1)
    day.schedule.add_interval("sweep", 10, callback=day.note)
    day.at(0.5 - 0.001, lambda: day.schedule.remove("sweep"))
    assert day.run() == {"sweep": ["00:10", "00:20"]}


def test_nothing_is_kept_of_callbacks_that_have_ended():
    day = VirtualDay(hours=20)
    day.schedule.add_interval("sweep", 1, callback=day.note)
    day.schedule.add_interval("gone", 60, callback=lambda id, due: day.schedule.remove(id))
    kept: list[int] = []

    def look() -> None:
        state = day.schedule._running._scheduler.state
        (entry,) = state.entries.values()
        kept.extend((len(entry.finished_jobs), len(entry.runs), len(state.job_facts)))

    day.at(19.999, look)
    assert len(day.run()["sweep"]) > 1000
    assert max(kept) <= 5


def test_the_same_id_again_takes_the_place_of_the_older():
    day = VirtualDay(hours=1)
    day.schedule.add_interval("sweep", 10, callback=day.note)
    day.at(0.4, lambda: day.schedule.add_interval("sweep", 25, callback=day.note))
    assert day.run() == {"sweep": ["00:10", "00:20", "00:49"]}


def test_an_exception_is_logged_counted_and_stops_nothing(caplog):
    day = VirtualDay(hours=1)

    def fails(id: str, due: dt.datetime) -> None:
        day.note(id, due)
        raise ValueError("no disk")

    day.schedule.add_interval("bad", 25, callback=fails)
    day.schedule.add_interval("good", 25, callback=day.note)
    assert day.run() == {"bad": ["00:25", "00:50"], "good": ["00:25", "00:50"]}
    assert day.schedule.counts() == {"failed": 2, "succeeded": 2}
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError] * 2


def test_the_failure_of_a_last_callback_is_counted():
    day = VirtualDay(hours=1)

    def fails(id: str, due: dt.datetime) -> None:
        day.schedule.stop()
        raise ValueError("no disk")

    day.schedule.add_interval("bad", 25, callback=fails)
    day.run()
    assert day.schedule.counts() == {"failed": 1}


def test_sys_exit_in_a_callback_ends_only_the_callback(caplog):
    day = VirtualDay(hours=1)

    def leaves(id: str, due: dt.datetime) -> None:
        raise SystemExit(3)

    day.schedule.add_interval("leaves", 25, callback=leaves)
    day.schedule.add_interval("good", 25, callback=day.note)
    assert day.run()["good"] == ["00:25", "00:50"]
    assert day.schedule.counts() == {"failed": 2, "succeeded": 2}


def test_without_a_callback_the_run_is_logged(caplog):
    day = VirtualDay(hours=1)
    day.schedule.add_hourly("report", 17)
    with caplog.at_level(logging.INFO, logger="evenkeel.local"):
        day.run()
    assert "report due 2026-03-02T00:17:00+00:00" in caplog.messages


def test_a_machine_that_slept_for_days_goes_on(caplog):
    day = VirtualDay(hours=2)
    day.schedule.add_interval("sweep", 30, callback=day.note)

    def sleep() -> None:
        day.clock.set_by_s = 3.0 * DAY_S

    day.at(0.75, sleep)
    due = day.run()["sweep"]
    assert len(due) == 5  # 00:30, the newest of the missed ones, and three more
    assert day.schedule.counts()["missed"] == 3 * 48 - 1


async def a_coroutine(id: str, due: dt.datetime) -> None:
    """An async callback, which a thread cannot call."""


WRONG = {
    "a minute beyond the hour": ("minute", lambda it: it.add_hourly("x", 60)),
    "a minute in words": ("minute", lambda it: it.add_hourly("x", "17")),
    "a minute and a half": ("minute", lambda it: it.add_hourly("x", 17.5)),
    "no time at all": ("every", lambda it: it.add_interval("x", 0)),
    "a part of a minute": ("every", lambda it: it.add_interval("x", 1.5)),
    "yes": ("every", lambda it: it.add_interval("x", True)),
    "more than a year": ("every", lambda it: it.add_interval("x", 53, unit="w")),
    "an offset as long as the interval": ("offset", lambda it: it.add_interval("x", 5, offset=5)),
    "an offset before it": ("offset", lambda it: it.add_interval("x", 5, offset=-1)),
    "a unit nobody knows": ("unit", lambda it: it.add_interval("x", 5, unit="month")),
    "a number for a name": ("id", lambda it: it.add_interval(7, 5)),
    "no name": ("id", lambda it: it.add_interval("", 5)),
    "two lines for a name": ("id", lambda it: it.add_interval("x\nforged line", 5)),
    "a priority in words": ("priority", lambda it: it.add_interval("x", 5, priority="high")),
    "a priority beyond all": ("priority", lambda it: it.add_interval("x", 5, priority=1001)),
    "a name of a callback": ("callback", lambda it: it.add_interval("x", 5, callback="work")),
    "a coroutine": ("callback", lambda it: it.add_interval("x", 5, callback=a_coroutine)),
    "too few places for what it is told": (
        "callback",
        lambda it: it.add_interval("x", 5, callback=lambda: None),
    ),
}


@pytest.mark.parametrize(("field", "wrong"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_refused_with_a_sentence(field, wrong):
    schedule = Schedule()
    with pytest.raises(BadField) as refusal:
        wrong(schedule)
    assert refusal.value.field == field
    with pytest.raises(KeyError):  # and nothing of it is left
        schedule.remove("x")


def test_a_built_in_function_is_accepted_as_callback():
    schedule = Schedule()
    schedule.add_interval("x", 5, callback=print)
    schedule.add_interval("y", 5, callback=dict)  # has no signature to look at
    schedule.remove("x")
    schedule.remove("y")
