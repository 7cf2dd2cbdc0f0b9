"""A status names 50 active runs and 128 waiting ones. Of more than that a crash forgets none."""

import pytest
from tests.builders import clock, cron, edited, every, instant
from tests.unit.core.world import World

from evenkeel.core.schedule.life import ROOM_PAUSE_S
from evenkeel.model import Cron, MissedRuns, Retry, Verdict
from evenkeel.resource.record import ACTIVE_COUNT, WAITING_COUNT

SHORT_TTL_S = 60


def created(_):
    return Verdict.CREATED


def held(_):
    return Verdict.HELD


def nothing(_):
    """The create is under way, and stays so."""


def forgotten(world: World) -> int:
    """Due times that neither have a verdict nor a run that is alive."""
    due = int((world.now - instant("10:00")) // 60)
    alive = [begun for begun in world.alive() if begun <= clock(world.now)]
    return due - world.verdicts() - len(alive)


def missed_all(count: int, *, answering, **spec) -> World:
    """`count` due times came together: nobody was there, and All wants every one of them."""
    seen = every(60, missed_runs=MissedRuns.ALL, catch_up_limit=1000, **spec)
    world = World().see(seen)
    world.answering = answering
    world.crash(for_s=count * 60 + 5)
    return world.run_until(world.now + 2)


def test_a_create_that_the_mark_has_passed_is_named_among_fifty_running():
    seen = every(60, ttl_s=SHORT_TTL_S)
    world = World().see(seen).run_until("10:50:30")
    world.answering = nothing
    world.run_until("10:51:05")
    assert len(world.status()["active"]) == ACTIVE_COUNT
    world.answering = created
    world.crash(for_s=70).run_until("10:52:50")
    assert ("10:51:00", "lost", "outcome_unknown") in world.ends()
    assert forgotten(world) == 0


def test_no_more_creates_that_are_announced_are_under_way_than_waiting_names():
    world = missed_all(200, answering=nothing, ttl_s=SHORT_TTL_S)
    assert len(world.in_flight) == WAITING_COUNT
    world.answering = created
    world.crash(for_s=SHORT_TTL_S + 1).run_until(world.now + 5)
    assert len([end for end in world.ends() if end[1] == "lost"]) == WAITING_COUNT
    assert forgotten(world) == 0


def test_those_that_waited_for_room_go_on_as_the_others_are_answered():
    world = missed_all(200, answering=nothing, ttl_s=SHORT_TTL_S)
    for launch in list(world.in_flight):
        world.answer(launch, Verdict.CREATED)
    world.answering = created
    world.run_until(world.now + ROOM_PAUSE_S)
    assert len(world.jobs) == 200
    assert world.ends() == []


@pytest.mark.parametrize("ttl_s", [None, SHORT_TTL_S])
def test_creates_that_are_held_after_the_mark_has_passed_fit_into_waiting(ttl_s):
    world = missed_all(200, answering=held, ttl_s=ttl_s)
    assert len(world.status()["internal"]["waiting"]) <= WAITING_COUNT
    world.answering = created
    world.crash(for_s=5).run_until(world.now + 40)
    assert forgotten(world) == 0
    assert world.verdicts() == 0


def test_held_ones_of_short_lived_jobs_go_on_without_a_crash_too():
    world = missed_all(200, answering=held, ttl_s=SHORT_TTL_S)
    world.answering = created
    world.run_until(world.now + 50)
    assert forgotten(world) == 0
    assert world.verdicts() == 0


def by_an_edit(world: World) -> None:
    world.see(edited(world.schedules["uid-report"], rule=Cron("0 0 1 1 *")))


def by_a_suspension(world: World) -> None:
    suspended = edited(world.schedules["uid-report"], suspend=True)
    world.see(suspended).see(edited(suspended, suspend=False))


@pytest.mark.parametrize("passes", [by_an_edit, by_a_suspension])
def test_creates_in_lanes_for_which_waiting_has_no_room_are_given_up_not_forgotten(passes):
    world = missed_all(200, answering=nothing)
    passes(world)
    assert len(world.status()["internal"]["waiting"]) == WAITING_COUNT
    assert [end[1:] for end in world.ends()] == [("missed", "catch_up_limit")] * 72
    world.answering = created
    world.crash(for_s=5).run_until(world.now + 40)
    assert world.verdicts() == 72
    assert forgotten(world) == 0


def test_the_last_in_their_lanes_are_given_up_and_called_back():
    world = missed_all(200, answering=nothing)
    by_an_edit(world)
    missed = {end[0] for end in world.ends()}
    assert min(missed) > max(world.alive())
    assert {clock(effect.run.due) for effect in world.withdraw} >= missed
    for launch in list(world.in_flight):  # on their way already: they arrive all the same
        world.answer(launch, Verdict.CREATED)
    assert len(world.jobs) == WAITING_COUNT


def test_a_retry_that_waiting_has_no_room_for_is_the_end_of_its_run():
    seen = every(60, retry=Retry(limit=1, delay_s=86_400, factor=1, max_delay_s=86_400))
    world = World().see(seen).run_until("12:30:30")
    for minute in range(1, 151):
        world.fail(seen, clock(instant("10:00") + 60 * minute))
    assert len(world.status()["internal"]["waiting"]) == WAITING_COUNT
    assert world.counts() == {"failed": 150 - WAITING_COUNT}
    (sentence, *_) = world.said("RunFailed")
    assert "not tried again: 128 runs wait already" in sentence
    world.crash(for_s=5)
    assert list(world.alive().values()) == ["retrying"] * WAITING_COUNT
    assert forgotten(world) == 0


def test_taking_over_thousands_of_jobs_reads_each_once(monkeypatch):
    """Looked through once for each run, four thousand stopped the loop for 1.4 s."""
    from evenkeel.core.schedule import jobs

    calls = 0
    is_of = jobs.is_of

    def counted(entry, fact):
        nonlocal calls
        calls += 1
        return is_of(entry, fact)

    monkeypatch.setattr(jobs, "is_of", counted)
    world = World().see(cron("* * * * *")).run_until("12:00:30")
    calls = 0
    world.crash(for_s=5)
    assert calls == 120
    assert len(world.alive()) == 120


def test_of_more_running_than_active_names_those_that_vanish_unseen_are_lost():
    world = World().see(every(60)).run_until("11:20:30")
    assert world.status()["activeCount"] == 80
    world.remove(world.job(every(60), "11:15"), told=False)
    world.remove(world.job(every(60), "11:16"), told=False)
    world.remove(world.job(every(60), "10:05"), told=False)
    world.crash(for_s=5)
    assert world.counts() == {"lost": 3}
    assert len(world.alive()) == 77
    assert forgotten(world) == 0
    world.crash(for_s=5)
    assert world.counts() == {"lost": 3}


def test_runs_above_the_mark_that_active_has_no_room_for_are_not_lost():
    """A process died in a catch-up before a status told of it. The next one adopts the Jobs that
    there are, and creates of earlier due times hold the mark back when it dies as well."""

    def the_later_half(launch):
        return created(launch) if launch.run.due > instant("11:00") else nothing(launch)

    seen = every(60, missed_runs=MissedRuns.ALL, catch_up_limit=1000)
    world = World().see(seen)
    world.writes, world.answering = False, the_later_half
    world.crash(for_s=120 * 60 + 5)
    world.writes, world.answering = True, nothing
    world.crash(for_s=5)
    assert world.status()["activeCount"] == 60
    assert world.status()["internal"]["mark"] < "2026-03-02T10:01:00Z"
    world.answering = created
    world.crash(for_s=5).run_until(world.now + 5)
    assert world.counts() == {}
    assert len(world.alive()) == 120
    assert forgotten(world) == 0
