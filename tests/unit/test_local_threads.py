"""evenkeel.local in real seconds and real threads."""

import datetime as dt
import threading
import time

import pytest

from evenkeel.local import Schedule


class Running:
    """A schedule that runs in a thread of its own."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._thread = threading.Thread(target=schedule.run)

    def __enter__(self) -> Schedule:
        self._thread.start()
        return self._schedule

    def __exit__(self, *_: object) -> None:
        self._schedule.stop()
        self._thread.join(timeout=90)
        assert not self._thread.is_alive()


def until(holds, seconds: float = 90.0) -> None:
    """Wait until a condition holds; the test's own limit is far away."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)


def test_it_really_waits_and_calls_back_each_second():
    called: list[tuple[str, dt.datetime, float]] = []
    schedule = Schedule()
    schedule.add_interval(
        "tick", 1, unit="s", callback=lambda id, due: called.append((id, due, time.time()))
    )
    with Running(schedule):
        until(lambda: len(called) >= 3)
    assert [id for id, _, _ in called] == ["tick"] * len(called)
    assert all(at >= due.timestamp() for _, due, at in called)
    seconds = [int(due.timestamp()) for _, due, _ in called]
    assert seconds == list(range(seconds[0], seconds[0] + len(seconds)))


def test_jobs_are_added_and_removed_from_many_threads_while_it_runs():
    called: set[str] = set()
    with Running(Schedule(workers=8)) as schedule:

        def churn(thread: int) -> None:
            for n in range(40):
                id = f"{thread}/{n}"
                schedule.add_interval(id, 1, unit="s", callback=lambda id, due: called.add(id))
                if n % 2:
                    schedule.remove(id)

        threads = [threading.Thread(target=churn, args=(n,)) for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kept = {f"{thread}/{n}" for thread in range(5) for n in range(0, 40, 2)}
        until(lambda: kept <= called)
        called.clear()
        until(lambda: kept <= called)
    assert called == kept


def test_a_slow_callback_delays_no_other():
    release, called = threading.Event(), []
    schedule = Schedule(workers=4)
    schedule.add_interval("slow", 1, unit="s", callback=lambda id, due: release.wait(240))
    schedule.add_interval("quick", 1, unit="s", callback=lambda id, due: called.append(due))
    with Running(schedule):
        until(lambda: len(called) >= 2)  # while the slow one has not come back once
        release.set()


def test_it_stops_cleanly_and_can_run_again():
    called: list[str] = []
    schedule = Schedule()
    schedule.add_interval("tick", 1, unit="s", callback=lambda id, due: called.append(id))
    for _ in range(2):
        called.clear()
        with Running(schedule):
            until(lambda: bool(called))
        after = len(called)
        time.sleep(1.2)
        assert len(called) == after


def test_it_cannot_run_twice_at_once():
    schedule = Schedule()
    with Running(schedule):
        until(lambda: schedule._running is not None)
        with pytest.raises(RuntimeError, match="running already"):
            schedule.run()


def test_stopping_waits_for_the_callback_under_way_and_starts_no_other():
    began, done = threading.Event(), []

    def slow(id: str, due: dt.datetime) -> None:
        began.set()
        time.sleep(0.5)
        done.append(id)

    schedule = Schedule(workers=1)
    for n in range(5):
        schedule.add_interval(f"slow {n}", 1, unit="s", callback=slow)
    with Running(schedule):
        assert began.wait(90)
    assert 1 <= len(done) < 5
    assert schedule.counts() == {"succeeded": len(done)}  # those that ended after the loop, too


def test_what_is_removed_while_it_waits_for_a_worker_is_not_called():
    began, release, called = threading.Event(), threading.Event(), []

    def slow(id: str, due: dt.datetime) -> None:
        began.set()
        release.wait(240)

    schedule = Schedule(workers=1)
    schedule.add_interval("slow", 1, unit="s", callback=slow, priority=1)
    schedule.add_interval("next", 1, unit="s", callback=lambda id, due: called.append(id))
    with Running(schedule):
        assert began.wait(90)
        schedule.remove("next")
        schedule.remove("slow")
        release.set()
    assert called == []


def test_threads_that_cannot_be_had_end_it_with_the_reason(monkeypatch):
    """If the error were swallowed, `run` would block for ever and call nobody back."""

    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    schedule = Schedule()
    schedule.add_interval("tick", 1, unit="s", callback=print)
    monkeypatch.setattr(threading.Thread, "start", none_left)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        schedule.run()
