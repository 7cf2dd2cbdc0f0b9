"""Placing in the scheduler: when a phase is chosen, and that it is kept for ever after."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import clock, cron, edited, every, instant, rejection
from tests.unit.core.world import World

from evenkeel.model import Interval, Schedule, Window
from evenkeel.settings import Settings

HOUR_S = 3600


def placed(name: str = "report", *, every_s: int = HOUR_S, **changes: object) -> Schedule:
    """An interval that leaves its phase to the operator."""
    return every(every_s, offset_s=None, name=name, **changes)


def anchor(world: World, name: str = "report") -> str:
    """As it is stored."""
    found: str = world.status(name)["placement"]["anchor"]
    return found


def test_a_new_interval_starts_within_one_interval_and_keeps_its_rhythm():
    world = World(Settings(loop_interval_s=10)).see(placed())
    for _ in range(5):
        world.run_until(world.now + HOUR_S)
        for fact in list(world.jobs.values()):
            world.succeed(placed(), clock(fact.run.due))

    first = instant(world.started()[0])
    assert instant("10:00:10") < first <= instant("11:00")
    assert [instant(each) - first for each in world.started()] == [n * HOUR_S for n in range(5)]


def test_intervals_that_come_together_do_not_start_together():
    world = World()
    for n in range(8):
        world.see(placed(f"j{n}"))
    firsts = [instant(world.status(f"j{n}")["nextRunTime"]) for n in range(8)]
    slots = [first // 900 for first in firsts]
    assert max(map(slots.count, slots)) == 2  # the four slots of an hour
    assert len(set(firsts)) == 8


def test_what_its_owner_timed_is_placed_around_and_never_moved():
    world = World().see(cron("20 * * * *", name="fixed", placement=replace(WISH, weight=100)))
    world.see(placed())
    assert world.status("fixed")["nextRunTime"] == "2026-03-02T10:20:00Z"
    assert not 15 <= instant(world.status()["nextRunTime"]) % HOUR_S // 60 < 30
    assert "placement" not in world.status("fixed")


def test_a_phase_outlives_a_crash():
    world = World().see(placed())
    for n in range(5):
        world.see(placed(f"j{n}"))
    before = {name: anchor(world, name) for name in ("report", *(f"j{n}" for n in range(5)))}
    world.crash(for_s=90)
    assert {name: anchor(world, name) for name in before} == before
    assert len(world.said("Placed")) == 6, "none was placed again"


@pytest.mark.parametrize(
    "change",
    [
        {"template_hash": "second"},
        {"priority": 7},
        {"placement": "pinned"},
    ],
)
def test_an_edit_that_is_not_about_when_keeps_the_phase(change):
    seen = placed()
    world = World().see(seen).run_until("10:02")
    world.see(placed("other"))
    before = anchor(world)
    if change == {"placement": "pinned"}:
        change = {"placement": replace(seen.placement, pinned=True)}
    world.see(edited(seen, **change))
    assert anchor(world) == before


@pytest.mark.parametrize(
    "change",
    [
        {"rule": Interval(2 * HOUR_S)},
        {"placement": "weight"},
        {"placement": "window"},
    ],
)
def test_another_interval_weight_or_window_is_placed_afresh(change):
    seen = placed(every_s=86_400)
    world = World().see(seen).run_until("10:02")
    if change == {"placement": "weight"}:
        change = {"placement": replace(seen.placement, weight=3)}
    elif change == {"placement": "window"}:
        change = {"placement": replace(seen.placement, window=Window(22 * HOUR_S, 6 * HOUR_S))}
    world.see(edited(seen, **change))
    assert world.status()["placement"]["placedAt"] == "2026-03-02T10:02:00Z"
    assert len(world.said("Placed")) == 2
    assert [line.event for line in world.logged].count("rescheduled job (rhythm preserved)") == 1


def test_resumed_it_is_placed_afresh_by_the_load_of_that_time():
    seen = placed()
    world = World().see(seen).see(edited(seen, suspend=True)).run_until("10:30")
    world.see(edited(edited(seen), suspend=False))
    assert world.status()["placement"]["placedAt"] == "2026-03-02T10:30:00Z"
    assert instant("10:30") < instant(world.status()["nextRunTime"]) <= instant("11:30")


def test_suspended_from_the_start_it_has_no_phase_and_no_load():
    world = World().see(placed(suspend=True))
    assert "placement" not in world.status()
    assert sum(world.scheduler.state.load.distribution(int(world.now)).slots) == 0


def test_a_fixed_offset_takes_the_phase_away():
    seen = placed()
    world = World().see(seen)
    world.see(edited(seen, rule=Interval(HOUR_S, 300, instant("10:00"))))
    assert world.status().get("placement") is None
    assert world.status()["nextRunTime"] == "2026-03-02T11:05:00Z"


def test_the_same_name_within_a_day_gets_its_phase_back():
    seen = placed()
    world = World().see(seen)
    for n in range(5):
        world.see(placed(f"j{n}"))
    before = instant(anchor(world))
    world.gone(seen)
    world.stall_until("+1d 09:00")
    world.see(replace(seen, uid="uid-again", created=int(world.now)))
    stored = world.statuses["uid-again"]
    assert instant(stored["placement"]["anchor"]) % HOUR_S == before % HOUR_S


def test_after_a_day_the_phase_of_a_name_is_forgotten():
    seen = placed()
    world = World().see(seen)
    before = instant(anchor(world))
    world.gone(seen)
    world.stall_until("+1d 10:01")
    world.see(cron(f"{before % HOUR_S // 60} * * * *", name="there"))
    world.see(replace(seen, uid="uid-again", created=int(world.now)))
    stored = world.statuses["uid-again"]
    assert instant(stored["placement"]["anchor"]) % HOUR_S != before % HOUR_S


def test_what_was_due_by_the_old_phase_is_reckoned_before_the_new_one_counts():
    seen = placed(every_s=600)
    world = World().see(seen)
    due = instant(world.status()["nextRunTime"])
    world.now = due + 5.0
    world.monotonic += due + 5 - instant("10:00")
    world.see(edited(seen, rule=Interval(1200)))
    assert world.started() == [clock(due)]
    assert instant(world.status()["nextRunTime"]) > due + 5


def test_a_window_is_kept_to():
    wish = replace(placed().placement, window=Window(22 * HOUR_S, 6 * HOUR_S))
    world = World().see(placed(every_s=86_400, placement=wish))
    second = instant(world.status()["nextRunTime"]) % 86_400
    assert second >= 22 * HOUR_S or second < 6 * HOUR_S


def test_observed_only_it_goes_by_the_hash_of_its_name_and_says_what_it_would_do():
    settings = Settings(placement_mode="Observe")
    worlds = [World(settings), World(settings).see(cron("* * * * *", name="busy"))]
    for world in worlds:
        world.see(placed())
    assert anchor(worlds[0]) == anchor(worlds[1])
    assert "observe" in worlds[0].status()["placement"]["reason"].lower()


def test_a_rejected_edit_keeps_the_phase_for_the_edit_that_mends_it():
    seen = placed()
    world = World().see(seen)
    before = anchor(world)
    world.see(rejection(seen)).run_until("10:05")
    world.see(edited(edited(seen)))
    assert anchor(world) == before


def test_phases_are_remembered_for_so_many_names_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("evenkeel.core.placing.REMEMBERED_LIMIT", 2)
    world = World()
    for n in range(4):
        world.see(placed(f"j{n}"))
        world.gone(placed(f"j{n}"))
    assert list(world.scheduler.state.phases) == ["shop/j2", "shop/j3"]


WISH = placed().placement


def test_a_phase_of_the_far_future_in_a_status_is_not_believed():
    seen = placed()
    world = World().see(seen)
    world.statuses[seen.uid]["placement"]["anchor"] = "2999-01-01T00:00:00Z"
    world.crash()
    assert instant("10:00") < instant(world.status()["nextRunTime"]) <= instant("11:00")
